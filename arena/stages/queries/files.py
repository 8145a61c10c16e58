"""Queries as files: experts' examples, the ones to be used, and all of them for people to accept, edit and reject."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.stages.queries.candidates import REASONS, Candidate
from judges.errors import DataError
from retrieval_eval.data.collections import topic_rows
from retrieval_eval.data.rows import Cell, Row
from retrieval_eval.data.tables import read_rows, write_rows

PROVENANCE = ("generator", "model", "passage", "source", "title", "page", "prompt", "seed")
QUERIES = ("qid", "query", *PROVENANCE, "decision", "generated")
REVIEW = ("qid", "decision", "query", "generated", "state", "why", *PROVENANCE, "passage_text")
DECISIONS = ("accept", "edit", "reject")


def read_examples(path: Path | None) -> list[str]:
    """The experts' queries.

    Raises:
        DataError: the file cannot be read, or has no query.
    """
    if path is None:
        return []
    texts = [row.text("query").strip() for row in topic_rows(path)]
    if not any(texts):
        raise DataError(path, "has no query with text")
    return list(dict.fromkeys(filter(None, texts)))


@dataclass(frozen=True, slots=True)
class Written:
    """A query as files have it; ``provenance`` has the columns of that name."""

    query_id: str
    text: str
    generator: str
    provenance: Mapping[str, str]
    decision: str = ""
    generated: str = ""


def written(each: Candidate, seed: int) -> Written:
    """A model's query with where it comes from."""
    named = each.passage.metadata
    provenance = {"generator": each.generator, "model": each.model, "passage": each.passage.doc_id}
    provenance |= {name: named.get(name, "") for name in ("source", "title", "page")}
    provenance |= {"prompt": each.prompt, "seed": str(seed)}
    return Written(each.query_id, each.text, each.generator, provenance)


def write_queries(path: Path, queries: Sequence[Written]) -> None:
    """Write a file of queries; what is empty in all of them has no column.

    Raises:
        DataError: the file cannot be written.
    """
    rows: list[dict[str, Cell]] = []
    for query in queries:
        told: dict[str, Cell] = {"qid": query.query_id, "query": query.text, **query.provenance}
        rows.append({**told, "decision": query.decision, "generated": query.generated})
    columns = [name for name in QUERIES if name in ("qid", "query") or any(row[name] for row in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, columns, ({name: row[name] for name in columns} for row in rows))


def write_review(path: Path, candidates: Sequence[Candidate], chosen: Collection[str], seed: int) -> bool:
    """Write all queries for review: those chosen first, then the others in the order in which they would follow.

    Returns:
        False where the file is there and holds decisions: it is left as it is.

    Raises:
        DataError: the file cannot be written, or what is there cannot be read.
    """
    if path.exists() and any(row.text("decision").strip() for row in read_rows(path, ("decision",))):
        return False
    places = {"chosen": 0, "reserve": 1, "dropped": 2}
    rows = sorted(_review_rows(candidates, chosen, seed), key=lambda row: places[str(row["state"])])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, REVIEW, rows)
    return True


def _review_rows(candidates: Sequence[Candidate], chosen: Collection[str], seed: int) -> Iterator[dict[str, Cell]]:
    for each in candidates:
        state = "dropped" if each.dropped else "chosen" if each.query_id in chosen else "reserve"
        why = ": ".join(filter(None, (REASONS.get(each.dropped, ""), each.detail)))
        row = {"qid": each.query_id, "decision": "", "query": each.text, "generated": each.text, "state": state}
        yield {**row, "why": why, **written(each, seed).provenance, "passage_text": each.passage.text}


@dataclass(frozen=True)
class Reviewed:
    """What people decided: the queries that they accepted or edited, and counts of the others."""

    queries: Sequence[Written]
    rejected: Mapping[str, int]
    undecided: int
    generated: Mapping[str, int]


def read_reviewed(path: Path) -> Reviewed:
    """Read a reviewed file. What a person accepts is taken, also where a filter had dropped it.

    Raises:
        DataError: a decision is none, a text was changed without saying so or not changed in spite of that, a query
            stands there twice, or nothing is accepted.
    """
    queries: list[Written] = []
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


def _written(row: Row) -> Written:
    provenance = {name: row.text(name) for name in PROVENANCE}
    decision = row.text("decision").strip().lower()
    generated = row.text("generated") if decision == "edit" else ""
    text = " ".join(row.text("query").split())
    return Written(row.identifier("qid"), text, row.identifier("generator"), provenance, decision, generated)
