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
    """One thing an answer is graded on.

    Attributes:
        description: goes into the prompt.
        levels: what each grade stands for, from the lowest on; goes into the prompt as well.
    """

    name: str
    description: str = ""
    levels: tuple[tuple[int, str], ...] = ()


DEFAULT_CRITERIA = (
    Criterion("relevance", "the answer addresses what was asked"),
    Criterion("accuracy", "what the answer says is true, as far as the documents show"),
    Criterion("completeness", "the answer holds all that is needed to settle the question"),
    Criterion("precision", "the answer is about exactly the product, thing or case that was asked about"),
)
"""The four criteria of the RAGElo paper (section 5.1), each 0 to 2."""

_LEVELS = {
    "relevance": (
        "it speaks of something else than what was asked",
        "it speaks to a part of what was asked, or mixes that with other matters",
        "it speaks to all that was asked",
    ),
    "accuracy": (
        "what matters in it is wrong, or the documents contradict it",
        "some of its claims hold and others do not",
        "every claim in it holds",
    ),
    "completeness": (
        "it leaves the question open",
        "it settles some of the question and leaves the rest open",
        "it settles the whole question; nothing that is needed is missing",
    ),
    "precision": (
        "it is about another product, thing or case",
        "it is about one of the same kind or family, but not the very one",
        "it is about the very one that was asked about",
    ),
}
ANCHORED_CRITERIA = tuple(
    Criterion(each.name, each.description, tuple(enumerate(_LEVELS[each.name]))) for each in DEFAULT_CRITERIA
)
"""The same with an anchor for each grade, as in the paper's appendix A.2, in our own words."""


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
