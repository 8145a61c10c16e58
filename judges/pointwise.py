"""The relevance judge: one query, one document, one label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from judges.types import LABEL, AnnotatedDocument, Document, Inputs, Outcome, Prompt, Query

if TYPE_CHECKING:
    from judges.prompts import PromptTemplate


def relevance_prompt(template: PromptTemplate, query: Query, document: Document) -> Prompt:
    """Ask for the relevance of ``document`` to ``query`` (RAGElo paper, appendix A.1)."""
    return template.render(Inputs(query, documents=(AnnotatedDocument(document),)))


def label_of(outcome: Outcome) -> int:
    """The relevance label of a relevance judgment's outcome, whatever else the prompt asked for.

    Raises:
        TypeError: the outcome is of another task.
    """
    label = outcome.get(LABEL) if isinstance(outcome, Mapping) else outcome
    if not isinstance(label, int):
        raise TypeError(f"{outcome!r} holds no relevance label")
    return label


def details_of(outcome: Outcome) -> dict[str, float | str]:
    """What a relevance judgment says besides its label, by field; nothing where the prompt asked for the label only."""
    if not isinstance(outcome, Mapping):
        return {}
    return {name: value for name, value in outcome.items() if name != LABEL}
