"""Queries on their way: who wrote them about what, and why some are dropped. Pure: nothing is read or asked here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arena.config.synth import FiltersSection
from arena.stages.queries.draw import drawn
from judges.types import Document
from retrieval_eval.documents.passages import NearDuplicates

_NOT_LETTERS = re.compile(r"[\W_]+")
_SOURCE = r"(?:passage|text|document|excerpt|extract|paragraph|section|chapter|table|figure|page|article)"
_POINTS_AT_SOURCE = re.compile(
    rf"\b(?:(?:according to|based on|in|from|by|of) (?:the|this)(?: (?:above|given|provided|following))? {_SOURCE}s?"
    rf"|(?:the|this|these) (?:above|given|provided|following) {_SOURCE}s?"
    rf"|(?:mentioned|described|listed|shown|given|discussed) (?:above|below|here|in (?:the|this) {_SOURCE}s?)"
    rf"|does (?:the|this) {_SOURCE} (?:say|mention|describe|list|state|suggest|recommend))\b",
    re.IGNORECASE,
)

REASONS: Mapping[str, str] = {
    "source": "speaks of its source, which a user does not see",
    "example": "repeats an example",
    "duplicate": "the same as another query",
    "near_duplicate": "nearly the same as another query",
    "unanswerable": "the passage does not answer it",
    "unchecked": "whether the passage answers it is not known: a judgment failed or is missing",
    "rejected": "rejected by a person",
}
"""Every reason for which a query is dropped."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query that a model wrote.

    Attributes:
        query_id: a hash of the model, the passage and the words.
        generator: the model, by its name in the configuration.
        model: its own name, as its server gave it.
        prompt: name and version.
        dropped: one of ``REASONS``; empty where there is none.
        detail: which query it repeats, or what the judge said.
    """

    query_id: str
    text: str
    passage: Document
    generator: str
    model: str
    prompt: str
    dropped: str = ""
    detail: str = ""

    def without(self, reason: str, detail: str = "") -> Candidate:
        """The same, dropped."""
        return replace(self, dropped=reason, detail=detail)


def candidate(text: str, passage: Document, generator: str, model: str, prompt: str) -> Candidate:
    """A query with its id."""
    plain = " ".join(text.split())
    digest = hashlib.sha256("\0".join((generator, passage.doc_id, plain)).encode("utf-8", "replace")).hexdigest()
    return Candidate(f"sq-{digest[:12]}", plain, passage, generator, model, prompt)


def filtered(
    candidates: Iterable[Candidate], examples: Sequence[str], seed: int, how: FiltersSection
) -> list[Candidate]:
    """All candidates in the order of the draw, those that are not to be used with the reason.

    Of queries that repeat each other the first of the draw stays, so that no model is favoured and the order in which
    replies come makes no difference.
    """
    seen: dict[str, str] = {}
    known = {_letters(text) for text in examples}
    alike = NearDuplicates(how.near_duplicates, shingle=1, same_numbers=True) if how.near_duplicates else None
    unique = {each.query_id: each for each in candidates}
    return [_judged(each, seen, known, alike, how) for each in drawn(unique.values(), seed, lambda each: each.query_id)]


def _judged(
    each: Candidate, seen: dict[str, str], known: set[str], alike: NearDuplicates | None, how: FiltersSection
) -> Candidate:
    letters = _letters(each.text)
    if how.mentions_source and _POINTS_AT_SOURCE.search(each.text):
        return each.without("source")
    if letters in known:
        return each.without("example")
    if letters in seen:
        return each.without("duplicate", seen[letters])
    if alike is not None and (twin := alike.twin(each.query_id, each.text)) is not None:
        return each.without("near_duplicate", f"{twin.kept} ({twin.similarity:.2f})")
    seen[letters] = each.query_id
    return each


def _letters(text: str) -> str:
    return _NOT_LETTERS.sub("", text).casefold()


def to_be_checked(
    candidates: Sequence[Candidate], quotas: Mapping[str, int], checked: Mapping[str, bool | None]
) -> Iterator[Candidate]:
    """Those whose answer must be known to fill the quotas, but is not.

    Args:
        candidates: in the order of the draw.
        quotas: by generator; everything is checked without any.
        checked: by query_id, whether the passage answers it; ``None`` where that was asked in vain.
    """
    places = dict(quotas)
    for each in candidates:
        if each.dropped or checked.get(each.query_id, True) is not True:
            continue
        if quotas and places.get(each.generator, 0) == 0:
            continue
        places[each.generator] = places.get(each.generator, 1) - 1
        if each.query_id not in checked:
            yield each
