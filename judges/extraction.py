"""Answer extraction: one question, one passage, the answer that the passage gives."""

from __future__ import annotations

from judges.prompts import PromptTemplate
from judges.types import AnnotatedDocument, Answer, Document, Inputs, Prompt, Query


def extraction_prompt(template: PromptTemplate, question: Query, passage: Document | Answer) -> Prompt:
    """Ask for the answer to ``question`` in ``passage`` (EXAM++ paper, section 4.2.1).

    The outcome is the answer's text; the empty text stands for "unanswerable from this passage".
    """
    if isinstance(passage, Answer):
        return template.render(Inputs(question, answers=(passage,)))
    return template.render(Inputs(question, documents=(AnnotatedDocument(passage),)))
