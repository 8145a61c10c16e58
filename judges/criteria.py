"""The pointwise answer judge: one query, one answer, a grade for each criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judges.errors import PromptError
from judges.pairwise import DEFAULT_REFERENCES, ReferenceOptions, references
from judges.prompts import PromptTemplate
from judges.prompts.reply import Scale, whole_numbers
from judges.types import AnnotatedDocument, Answer, Inputs, Prompt, Query, ReplyContract


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing an answer is graded on; ``description`` goes into the prompt."""

    name: str
    description: str = ""


DEFAULT_CRITERIA = (
    Criterion("relevance", "the answer addresses what was asked"),
    Criterion("accuracy", "what the answer says is true, as far as the documents show"),
    Criterion("completeness", "the answer holds all that is needed to settle the question"),
    Criterion("precision", "the answer is about exactly the product, thing or case that was asked about"),
)
"""The four criteria of the RAGElo paper (section 5.1), each 0 to 2."""


def criteria_prompt(
    template: PromptTemplate,
    query: Query,
    answer: Answer,
    documents: Sequence[AnnotatedDocument] = (),
    *,
    criteria: Sequence[Criterion] = DEFAULT_CRITERIA,
    scale: tuple[int, int] = (0, 2),
    options: ReferenceOptions = DEFAULT_REFERENCES,
) -> Prompt:
    """Ask for one whole number on ``scale`` (both ends included) per criterion.

    Raises:
        PromptError: a criterion is called what the prompt calls its explanation, or the template fails.
    """
    grades = whole_numbers(*scale)
    if template.reply.reason in (criterion.name for criterion in criteria):
        raise PromptError(f"criteria: {template.reply.reason!r} is the judge's own field; name the criterion otherwise")
    contract = ReplyContract(template.reply.reason, {criterion.name: grades for criterion in criteria})
    return template.render(
        Inputs(query, references(documents, options), (answer,)),
        contract=contract,
        annotations=options.annotations,
        criteria=criteria,
        scale=Scale(min=scale[0], max=scale[1]),
    )
