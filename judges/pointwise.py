"""The relevance judge: one query, one document, one label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judges.types import AnnotatedDocument, Document, Inputs, Prompt, Query

if TYPE_CHECKING:
    from judges.prompts import PromptTemplate


def relevance_prompt(template: PromptTemplate, query: Query, document: Document) -> Prompt:
    """Ask for the relevance of ``document`` to ``query`` (RAGElo paper, appendix A.1)."""
    return template.render(Inputs(query, documents=(AnnotatedDocument(document),)))
