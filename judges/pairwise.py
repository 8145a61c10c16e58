"""The answer judge: one query, two answers in the order shown, one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judges.prompts import PromptTemplate
from judges.types import AnnotatedDocument, Answer, Inputs, Prompt, Query


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """Which documents an answer judge sees (RAGElo paper, appendix A.2).

    Attributes:
        include: show documents at all.
        annotations: show the relevance judge's reason with each document.
        threshold: lowest label of a document that is shown; without labels every retrieved document is.
    """

    include: bool = True
    annotations: bool = True
    threshold: int = 2


DEFAULT_REFERENCES = ReferenceOptions()


@dataclass(frozen=True, slots=True)
class PairwiseOptions:
    """The options of the pairwise judge.

    Attributes:
        references: which documents it sees.
        citations: the answers cite documents, and citations are to be checked.
        factors: what to weigh, in the user's words; the prompt has its own default.
    """

    references: ReferenceOptions = DEFAULT_REFERENCES
    citations: bool = False
    factors: str = ""


DEFAULT_OPTIONS = PairwiseOptions()


def references(documents: Sequence[AnnotatedDocument], options: ReferenceOptions) -> tuple[AnnotatedDocument, ...]:
    """The documents that pass the threshold, best label first, in a fixed order so that prompts repeat."""
    if not options.include:
        return ()
    shown = [entry for entry in documents if entry.label is None or entry.label >= options.threshold]
    return tuple(sorted(shown, key=lambda entry: (-(entry.label or 0), entry.document.doc_id)))


def pairwise_prompt(
    template: PromptTemplate,
    query: Query,
    answers: tuple[Answer, Answer],
    documents: Sequence[AnnotatedDocument] = (),
    options: PairwiseOptions = DEFAULT_OPTIONS,
) -> Prompt:
    """Ask which of two answers is better; the first is shown as A, the second as B."""
    shown = references(documents, options.references)
    return template.render(
        Inputs(query, shown, answers),
        annotations=options.references.annotations,
        citations=options.citations,
        factors=options.factors,
    )
