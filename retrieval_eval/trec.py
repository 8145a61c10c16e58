"""What trec_eval reads: runs and qrels, as records."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from judges.types import Retrieved

Faulty: TypeAlias = Literal["refuse", "skip"]
"""What to do about a line that is wrong: refuse the file, or leave the line out and list it."""


@dataclass(frozen=True, slots=True)
class FaultyLine:
    """A line that was left out.

    Attributes:
        line: of the file, from 1; of Parquet the row.
        problem: what is wrong, one line.
        value: the part that is wrong, where there is one.
    """

    line: int
    problem: str
    value: str | None = None

    def __str__(self) -> str:
        """One line for people."""
        return f"line {self.line}: {self.problem}" + ("" if self.value is None else f" ({self.value!r})")


@dataclass(frozen=True, slots=True)
class Note:
    """Something that is allowed and that a reader of figures should know.

    Attributes:
        kind: ``ties``: documents with the score of another one of the query; ``rank_order``: queries whose rank column
            contradicts the scores; ``rank_gaps``: queries whose ranks do not count up one by one; ``tags``: names of
            runs in one file; ``repeated``: lines of qrels that repeat an earlier one.
        count: of what ``kind`` says.
        text: the same as a sentence for people.
    """

    kind: Literal["ties", "rank_order", "rank_gaps", "tags", "repeated"]
    count: int
    text: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents of one query in trec_eval's order, each once.

    Attributes:
        doc_ids: by descending score, equal scores by descending doc_id. Scores are compared in 32 bits, as trec_eval
            keeps them.
        scores: as the file gives them, in the same order.
    """

    doc_ids: tuple[str, ...]
    scores: tuple[float, ...]

    @staticmethod
    def of(doc_ids: Iterable[str], scores: Iterable[float]) -> Ranking:
        """Bring documents, each once, into trec_eval's order (Buckley's ``form_res_rels.c``, ``comp_sim_docno``)."""
        exact = list(scores)
        entries = sorted(zip(array("f", exact), doc_ids, exact, strict=True), reverse=True)
        return Ranking(tuple(entry[1] for entry in entries), tuple(entry[2] for entry in entries))


@dataclass(frozen=True)
class Run:
    """What one system retrieved.

    Attributes:
        name: the run's tag, or the file's name where it has several.
        rankings: by query_id, in the order of the file.
        notes: what is odd about the file.
        faulty: lines left out, where that was asked for.
    """

    name: str
    rankings: Mapping[str, Ranking]
    notes: tuple[Note, ...] = ()
    faulty: tuple[FaultyLine, ...] = ()

    def scores(self) -> dict[str, dict[str, float]]:
        """Scores by query_id and doc_id, the form of pytrec_eval and ir_measures; doc_ids in trec_eval's order."""
        return {
            query_id: dict(zip(ranking.doc_ids, ranking.scores, strict=True))
            for query_id, ranking in self.rankings.items()
        }


@dataclass(frozen=True)
class Qrels:
    """Relevance labels of people or of a judge.

    Attributes:
        name: the file's name without its extensions.
        labels: by query_id and doc_id, in the order of the file.
        notes: what is odd about the file.
        faulty: lines left out, where that was asked for.
    """

    name: str
    labels: Mapping[str, Mapping[str, int]]
    notes: tuple[Note, ...] = ()
    faulty: tuple[FaultyLine, ...] = ()

    def __len__(self) -> int:
        """Labelled (query, document) pairs."""
        return sum(map(len, self.labels.values()))


def runs_of(retrieved: Iterable[Retrieved]) -> list[Run]:
    """The runs that agents' retrieved documents make up, by name; the document at rank r scores 1/r.

    An agent's own order is kept: scores of agents need not fall with the rank, and ranks are what agents are held to.
    """
    found: dict[str, dict[str, list[tuple[int, str]]]] = {}
    for entry in retrieved:
        found.setdefault(entry.agent, {}).setdefault(entry.query_id, []).append((entry.rank, sys.intern(entry.doc_id)))
    return [
        Run(
            agent,
            {
                query_id: Ranking(tuple(doc_id for _, doc_id in ranked), tuple(1 / rank for rank, _ in ranked))
                for query_id, ranked in ((query_id, sorted(entries)) for query_id, entries in queries.items())
            },
        )
        for agent, queries in sorted(found.items())
    ]
