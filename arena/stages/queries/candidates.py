"""Queries that models write: who wrote them about what, why some are dropped, how the rest are drawn; their files.

Draws go by hash: seeded, without replacement, and the same whatever the order in which things come in. Everything that
can be drawn has a place of its own, given by the seed and its id alone, and a draw takes the first ones: something
added or taken away changes a draw only where it stands itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from arena.config.synth import FiltersSection
from arena.stages.queries.own_files import CHANGED, OwnFiles
from judges.errors import DataError, InputError
from judges.types import Document
from retrieval_eval.data.collections import topic_rows
from retrieval_eval.data.files import read_lines
from retrieval_eval.data.rows import Cell, Row, known_format
from retrieval_eval.data.tables import read_rows
from retrieval_eval.documents.passages import NearDuplicates

Item = TypeVar("Item")

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


class Candidate(Struct, frozen=True):
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


def drawn(items: Iterable[Item], seed: int, ident: Callable[[Item], str]) -> list[Item]:
    """All items in the order of the draw."""

    def place(item: Item) -> tuple[str, str]:
        return hashlib.sha256(f"{seed}\0{ident(item)}".encode()).hexdigest(), ident(item)

    return sorted(items, key=place)


def by_quota(items: Iterable[Item], quotas: Mapping[str, int], group: Callable[[Item], str]) -> list[Item]:
    """The first items of each group up to its quota, in their order; all where there are no quotas.

    A group with fewer items than its quota gives them all; what is missing is for the caller to say.
    """
    if not quotas:
        return list(items)
    left = dict(quotas)
    taken = []
    for item in items:
        if left.get(group(item), 0) > 0:
            left[group(item)] -= 1
            taken.append(item)
    return taken


def sampled_passages(passages: Iterable[Document], number: int | None, seed: int) -> list[Document]:
    """So many passages, or all of them, in the order of the draw.

    Raises:
        InputError: there is none.
    """
    found = drawn(passages, seed, lambda passage: passage.doc_id)
    if not found:
        raise InputError("no document has any text; 'ragleague documents' lists what was skipped and why")
    return found[:number]


PROVENANCE = ("generator", "model", "passage", "source", "title", "page", "prompt", "seed")
QUERIES = ("qid", "query", *PROVENANCE, "decision", "generated")
REVIEW = ("qid", "decision", "query", "generated", "state", "why", *PROVENANCE, "passage_text")
DECISIONS = ("accept", "edit", "reject")


def _are_topics(path: Path) -> bool:
    """Whether a file that is no table has topics, as SGML, XML or ``id<TAB>text``."""
    first = next((line for _, line in read_lines(path) if not line.isspace()), "")
    return first.lstrip().startswith("<") or "\t" in first.strip()


def read_examples(path: Path | None) -> list[str]:
    """The experts' queries: of a table its column ``query``, of topics their texts, else a query a line.

    Raises:
        DataError: the file cannot be read, or has no query.
    """
    if path is None:
        return []
    if known_format(path) is None and not _are_topics(path):
        texts = [line.strip() for _, line in read_lines(path)]
        texts = texts[texts[:1] == ["query"] :]
    else:
        texts = [row.text("query").strip() for row in topic_rows(path, ids=False)]
    if not any(texts):
        raise DataError(path, "has no query with text")
    return list(dict.fromkeys(filter(None, texts)))


class WrittenQuery(Struct, frozen=True):
    """A query as files have it; ``provenance`` has the columns of that name."""

    query_id: str
    text: str
    generator: str
    provenance: Mapping[str, str]
    decision: str = ""
    generated: str = ""


def written(each: Candidate, seed: int) -> WrittenQuery:
    """A model's query with where it comes from."""
    named = each.passage.metadata
    provenance = {"generator": each.generator, "model": each.model, "passage": each.passage.doc_id}
    provenance |= {name: named.get(name, "") for name in ("source", "title", "page")}
    provenance |= {"prompt": each.prompt, "seed": str(seed)}
    return WrittenQuery(each.query_id, each.text, each.generator, provenance)


def write_queries(files: OwnFiles, path: Path, queries: Sequence[WrittenQuery], *, reviewed: bool = False) -> str:
    """Write a file of queries; what is empty in all of them has no column.

    Returns:
        What became of the file: ``written``, or a phrase for why it was left as it is.

    Raises:
        DataError: the file cannot be written.
    """
    rows: list[dict[str, Cell]] = []
    for query in queries:
        told: dict[str, Cell] = {"qid": query.query_id, "query": query.text, **query.provenance}
        rows.append({**told, "decision": query.decision, "generated": query.generated})
    columns = [name for name in QUERIES if name in ("qid", "query") or any(row[name] for row in rows)]
    return files.replace(path, columns, [{name: row[name] for name in columns} for row in rows], reviewed=reviewed)


def write_review(
    files: OwnFiles, path: Path, candidates: Sequence[Candidate], chosen: Collection[str], seed: int
) -> str:
    """Write all queries for review: those chosen first, then the others in the order in which they would follow.

    Returns:
        As ``write_queries``.

    Raises:
        DataError: the file cannot be written, or what is there cannot be read.
    """
    places = {"chosen": 0, "reserve": 1, "dropped": 2}
    rows = sorted(_review_rows(candidates, chosen, seed), key=lambda row: places[str(row["state"])])
    came_to = files.replace(path, REVIEW, rows)
    if came_to == CHANGED and any(row.text("decision").strip() for row in read_rows(path)):
        return "left as it is, since it holds decisions"
    return came_to


def _review_rows(candidates: Sequence[Candidate], chosen: Collection[str], seed: int) -> Iterator[dict[str, Cell]]:
    for each in candidates:
        state = "dropped" if each.dropped else "chosen" if each.query_id in chosen else "reserve"
        why = ": ".join(filter(None, (REASONS.get(each.dropped, ""), each.detail)))
        row = {"qid": each.query_id, "decision": "", "query": each.text, "generated": each.text, "state": state}
        yield {**row, "why": why, **written(each, seed).provenance, "passage_text": each.passage.text}


class Reviewed(Struct, frozen=True):
    """What people decided: the queries that they accepted or edited, and counts of the others."""

    queries: Sequence[WrittenQuery]
    rejected: Mapping[str, int]
    undecided: int
    generated: Mapping[str, int]


def read_reviewed(path: Path) -> Reviewed:
    """Read a reviewed file. What a person accepts is taken, also where a filter had dropped it.

    Raises:
        DataError: a decision is none, a text was changed without saying so or not changed in spite of that, a query
            stands there twice, or nothing is accepted.
    """
    queries: list[WrittenQuery] = []
    rejected: dict[str, int] = {}
    generated: dict[str, int] = {}
    undecided = 0
    places: dict[str, str] = {}
    for row in read_rows(path, ("qid", "decision", "query", "generated", "generator")):
        found, decision = _written(row), _decision(row)
        generated[found.generator] = generated.get(found.generator, 0) + 1
        if decision == "reject":
            rejected[found.generator] = rejected.get(found.generator, 0) + 1
        elif not decision:
            undecided += 1
        else:
            for what, key in (("query id", found.query_id), ("text", found.text.casefold())):
                if key in places:
                    raise row.error(f"this {what} is accepted in {places[key]} already", key)
                places[key] = row.place
            queries.append(found)
    if not queries:
        raise DataError(path, "accepts no query; write accept, edit or reject into the column 'decision'")
    return Reviewed(queries, rejected, undecided, generated)


def _decision(row: Row) -> str:
    decision = row.text("decision").strip().lower()
    if decision and decision not in DECISIONS:
        raise row.error(f"a decision is one of {', '.join(DECISIONS)}, or empty", decision)
    changed = row.text("query").strip() != row.text("generated").strip()
    if changed and decision == "accept":
        raise row.error("the query was changed; say edit", row.text("query"))
    if not changed and decision == "edit":
        raise row.error("says edit, and the query is as it was generated; say accept, or change it", row.text("query"))
    if decision in ("accept", "edit") and not row.text("query").strip():
        raise row.error("the query is empty; say reject")
    return decision


def _written(row: Row) -> WrittenQuery:
    provenance = {name: row.text(name) for name in PROVENANCE}
    decision = row.text("decision").strip().lower()
    generated = row.text("generated") if decision == "edit" else ""
    text = " ".join(row.text("query").split())
    return WrittenQuery(row.identifier("qid"), text, row.identifier("generator"), provenance, decision, generated)
