"""Candidate queries: filters them, draws a sample, and reads and writes their files.

Items are drawn in the order of a hash of the seed and the item's id. So draws are without replacement and independent
of input order, and adding or removing an item leaves the order of the other items unchanged.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from arena.config.schema import FiltersSection
from arena.stages.queries.own_files import CHANGED, WrittenFiles
from judges.errors import DataError, InputError
from judges.types import Document
from retrieval_eval.data.collections import topic_rows
from retrieval_eval.data.files import first_line, read_lines
from retrieval_eval.data.rows import Cell, Row, known_format
from retrieval_eval.data.table_spec import TableSpec
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
"""Reasons for dropping a query, each with the phrase shown in reports and review files."""


class Candidate(Struct, frozen=True):
    """A query that a model wrote.

    Attributes:
        query_id: a hash of model, passage and text.
        generator: the model's name in the configuration.
        model: the model's name on its server.
        prompt: name and version of the prompt.
        dropped: a key of ``REASONS``; empty if the query is not dropped.
        detail: the other query that this one repeats, or the judge's reason.
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
        """A copy of this candidate, marked as dropped for this reason."""
        return replace(self, dropped=reason, detail=detail)


def candidate(text: str, passage: Document, generator: str, model: str, prompt: str) -> Candidate:
    """Make a candidate, with an id computed from generator, passage and text."""
    plain = " ".join(text.split())
    digest = hashlib.sha256("\0".join((generator, passage.doc_id, plain)).encode("utf-8", "replace")).hexdigest()
    return Candidate(f"sq-{digest[:12]}", plain, passage, generator, model, prompt)


def filtered(
    candidates: Iterable[Candidate], examples: Sequence[str], seed: int, filters: FiltersSection
) -> list[Candidate]:
    """All candidates in random order; unusable candidates are marked with a reason.

    Of several equal queries, the first is kept. As the order is random, no model is favoured, and the order in which
    replies arrived makes no difference.
    """
    seen: dict[str, str] = {}
    example_letters = {_letters(text) for text in examples}
    near_duplicates = (
        NearDuplicates(filters.near_duplicates, shingle=1, same_numbers=True) if filters.near_duplicates else None
    )
    unique = {each.query_id: each for each in candidates}
    return [
        _judged(each, seen, example_letters, near_duplicates, filters)
        for each in drawn(unique.values(), seed, lambda each: each.query_id)
    ]


def _judged(
    each: Candidate,
    seen: dict[str, str],
    example_letters: set[str],
    near_duplicates: NearDuplicates | None,
    filters: FiltersSection,
) -> Candidate:
    letters = _letters(each.text)
    if filters.mentions_source and _POINTS_AT_SOURCE.search(each.text):
        return each.without("source")
    if letters in example_letters:
        return each.without("example")
    if letters in seen:
        return each.without("duplicate", seen[letters])
    if near_duplicates is not None and (twin := near_duplicates.twin(each.query_id, each.text)) is not None:
        return each.without("near_duplicate", f"{twin.kept} ({twin.similarity:.2f})")
    seen[letters] = each.query_id
    return each


def _letters(text: str) -> str:
    return _NOT_LETTERS.sub("", text).casefold()


def to_be_checked(
    candidates: Sequence[Candidate], quotas: Mapping[str, int], checked: Mapping[str, bool | None]
) -> Iterator[Candidate]:
    """The candidates that must be checked next to fill the quotas.

    Args:
        candidates: the candidates in the order of the draw.
        quotas: number of queries for each generator; if empty, all candidates are checked.
        checked: whether the passage answers the query, by query_id; ``None`` if the check failed.
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
    """All items in seeded random order."""

    def place(item: Item) -> tuple[str, str]:
        return hashlib.sha256(f"{seed}\0{ident(item)}".encode()).hexdigest(), ident(item)

    return sorted(items, key=place)


def by_quota(items: Iterable[Item], quotas: Mapping[str, int], group: Callable[[Item], str]) -> list[Item]:
    """The first items of each group up to its quota, in input order; all items if there are no quotas.

    A group smaller than its quota is returned whole; the caller reports what is missing.
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
    """``number`` passages, or all of them, in random order.

    Raises:
        InputError: there are no passages.
    """
    ordered = drawn(passages, seed, lambda passage: passage.doc_id)
    if not ordered:
        raise InputError("no document has any text; 'ragleague documents' lists what was skipped and why")
    return ordered[:number]


PROVENANCE = ("generator", "model", "passage", "source", "title", "page", "prompt", "seed")
QUERIES = ("qid", "query", *PROVENANCE, "decision", "generated")
REVIEW = ("qid", "decision", "query", "generated", "state", "why", *PROVENANCE, "passage_text")
DECISIONS = ("accept", "edit", "reject")


def _are_topics(path: Path) -> bool:
    """Whether a file holds topics as SGML, XML or ``id<TAB>text``."""
    first = first_line(path)
    return first.lstrip().startswith("<") or "\t" in first.strip()


def read_examples(path: Path | None) -> list[str]:
    """The experts' queries: column ``query`` of a table, the texts of topics, or the lines of a text file.

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
    """A query as written in a file; ``provenance`` holds the columns in ``PROVENANCE``."""

    query_id: str
    text: str
    generator: str
    provenance: Mapping[str, str]
    decision: str = ""
    generated: str = ""


def written(each: Candidate, seed: int) -> WrittenQuery:
    """The candidate as written to files, with its provenance."""
    named = each.passage.metadata
    provenance = {"generator": each.generator, "model": each.model, "passage": each.passage.doc_id}
    provenance |= {name: named.get(name, "") for name in ("source", "title", "page")}
    provenance |= {"prompt": each.prompt, "seed": str(seed)}
    return WrittenQuery(each.query_id, each.text, each.generator, provenance)


def write_queries(files: WrittenFiles, path: Path, queries: Sequence[WrittenQuery], *, reviewed: bool = False) -> str:
    """Write a file of queries, without columns that would be empty.

    Returns:
        ``written``, or a phrase that says why the file was left alone.

    Raises:
        DataError: the file cannot be written.
    """
    rows: list[dict[str, Cell]] = []
    for query in queries:
        cells: dict[str, Cell] = {"qid": query.query_id, "query": query.text, **query.provenance}
        rows.append({**cells, "decision": query.decision, "generated": query.generated})
    columns = [name for name in QUERIES if name in ("qid", "query") or any(row[name] for row in rows)]
    return files.replace(path, columns, [{name: row[name] for name in columns} for row in rows], reviewed=reviewed)


def write_review(
    files: WrittenFiles, path: Path, candidates: Sequence[Candidate], chosen: Collection[str], seed: int
) -> str:
    """Write all candidates for review: first the chosen candidates, then the others in the order of the draw.

    Returns:
        ``written``, or a phrase that says why the file was left alone.

    Raises:
        DataError: the file cannot be written, or its present version cannot be read.
    """
    places = {"chosen": 0, "reserve": 1, "dropped": 2}
    rows = sorted(_review_rows(candidates, chosen, seed), key=lambda row: places[str(row["state"])])
    outcome = files.replace(path, REVIEW, rows)
    if outcome == CHANGED and any(row.text("decision").strip() for row in read_rows(path)):
        return "left as it is, since it holds decisions"
    return outcome


def _review_rows(candidates: Sequence[Candidate], chosen: Collection[str], seed: int) -> Iterator[dict[str, Cell]]:
    for each in candidates:
        state = "dropped" if each.dropped else "chosen" if each.query_id in chosen else "reserve"
        why = ": ".join(filter(None, (REASONS.get(each.dropped, ""), each.detail)))
        row = {"qid": each.query_id, "decision": "", "query": each.text, "generated": each.text, "state": state}
        yield {**row, "why": why, **written(each, seed).provenance, "passage_text": each.passage.text}


REVIEWED: Final = TableSpec(("qid", "query"), ("qid", "decision", "query", "generated", "generator"))


class Reviewed(Struct, frozen=True):
    """The reviewers' decisions: accepted and edited queries, and counts of the other rows."""

    queries: Sequence[WrittenQuery]
    rejected: Mapping[str, int]
    undecided: int
    generated: Mapping[str, int]


def read_reviewed(path: Path) -> Reviewed:
    """Read a reviewed file; an accepted query is used even if a filter had dropped it.

    Raises:
        DataError: a decision is unknown or contradicts a change of the text, a query occurs twice, or none is accepted.
    """
    queries: list[WrittenQuery] = []
    rejected: dict[str, int] = {}
    generated: dict[str, int] = {}
    undecided = 0
    places: dict[str, str] = {}
    for row in REVIEWED.rows(path):
        query, decision = _written(row), _decision(row)
        generated[query.generator] = generated.get(query.generator, 0) + 1
        if decision == "reject":
            rejected[query.generator] = rejected.get(query.generator, 0) + 1
        elif not decision:
            undecided += 1
        else:
            for what, key in (("query id", query.query_id), ("text", query.text.casefold())):
                if key in places:
                    raise row.error(f"this {what} is accepted in {places[key]} already", key)
                places[key] = row.place
            queries.append(query)
    if not queries:
        raise DataError(path, "accepts no query; write accept, edit or reject into the column 'decision'")
    return Reviewed(queries, rejected, undecided, generated)


def _decision(row: Row) -> str:
    decision = row.text("decision").strip().lower()
    if decision and decision not in DECISIONS:
        raise row.error(f"a decision is one of {', '.join(DECISIONS)}, or empty", decision)
    changed = row.text("query").strip() != row.text("generated").strip()
    if changed and decision == "accept":
        raise row.error("the query was changed; write edit", row.text("query"))
    if not changed and decision == "edit":
        raise row.error(
            "the decision is edit, but the query is unchanged; write accept, or change it", row.text("query")
        )
    if decision in ("accept", "edit") and not row.text("query").strip():
        raise row.error("the query is empty; write reject")
    return decision


def _written(row: Row) -> WrittenQuery:
    provenance = {name: row.text(name) for name in PROVENANCE}
    decision = row.text("decision").strip().lower()
    generated = row.text("generated") if decision == "edit" else ""
    text = " ".join(row.text("query").split())
    return WrittenQuery(row.identifier("qid"), text, row.identifier("generator"), provenance, decision, generated)
