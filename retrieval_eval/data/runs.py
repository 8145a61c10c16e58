"""Runs: what systems retrieved, read from trec_eval's lines or a table with a header; plain or gzip."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from judges.errors import DataError
from judges.types import Retrieved
from retrieval_eval.data.column_report import say_count
from retrieval_eval.data.files import file_stem
from retrieval_eval.data.rows import are_floats, in_form
from retrieval_eval.data.trec import Faults, Faulty, FaultyLine, Note, finite, run_fields, write_trec_lines


class Ranking(Struct, frozen=True):
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


class Run(Struct, frozen=True):
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


_NO_RANK = -(2**31)
"""Stands for a rank that is no whole number."""


class _Entries:
    """Lines on one query in the order of the file. Runs have millions of lines, so numbers are packed."""

    def __init__(self) -> None:
        self.doc_ids: list[str] = []
        self.scores = array("d")
        self.ranks = array("q")
        self.lines = array("I")
        self.ranked = False

    def add(self, line: int, doc_id: str, rank: str, score: float) -> None:
        """One line; an empty rank is none."""
        self.doc_ids.append(doc_id)
        self.scores.append(score)
        self.lines.append(line)
        try:
            self.ranks.append(int(rank))
        except (ValueError, OverflowError):
            self.ranks.append(_NO_RANK)
        if rank:
            self.ranked = True

    def drop_repeated(self) -> list[tuple[int, str]]:
        """Leave out every line on a document that stands further up; its number and the doc_id."""
        if len(set(self.doc_ids)) == len(self.doc_ids):
            return []
        first: dict[str, int] = {}
        dropped = [
            (self.lines[place], doc_id)
            for place, doc_id in enumerate(self.doc_ids)
            if first.setdefault(doc_id, place) != place
        ]
        places = first.values()
        self.scores = array("d", [self.scores[place] for place in places])
        self.ranks = array("q", [self.ranks[place] for place in places])
        self.lines = array("I", [self.lines[place] for place in places])
        self.doc_ids = list(first)
        return dropped


def _gathered(
    path: Path, faults: Faults, *, by_tag: bool = False
) -> tuple[dict[tuple[str, str], _Entries], dict[str, None]]:
    """The lines of a run by query_id and, where that is asked for, tag; and all tags."""
    found: dict[tuple[str, str], _Entries] = {}
    tags: dict[str, None] = {}
    stem = file_stem(path)
    for line, (query_id, doc_id, rank, given, tag) in run_fields(path, faults):
        if (score := finite(given)) is None:
            faults.add(line, "the score is not a finite number", given)
            continue
        key = query_id, (tag or stem) if by_tag else ""
        entries = found.get(key)
        if entries is None:
            entries = found[key] = _Entries()
        entries.add(line, sys.intern(doc_id), rank, score)
        tags[tag] = None
    if not found:
        raise DataError(path, f"holds no usable line of a run{faults.example}")
    for (query_id, tag), entries in found.items():
        for line, doc_id in entries.drop_repeated():
            whose = f" of {tag!r}" if tag else ""
            faults.add(line, f"query {query_id!r}{whose} has this document twice", doc_id)
    return found, tags


def with_ids_of(run: Run, queries: Collection[str]) -> Run:
    """The run with ids such as 1.0 written as those of other queries, where one side has floats only."""
    floats = are_floats(queries)
    if floats == are_floats(run.rankings) or not run.rankings.keys().isdisjoint(queries):
        return run
    return replace(run, rankings={in_form(ident, floats=floats): own for ident, own in run.rankings.items()})


class _RankOddities:
    """Counts over the queries of a run where ranks and scores do not say one and the same order."""

    def __init__(self) -> None:
        self._tied = self._tied_queries = self._contrary = self._gaps = 0

    def ranking(self, entries: _Entries) -> Ranking:
        """One query's documents in trec_eval's order, counted."""
        ranking = Ranking.of(entries.doc_ids, entries.scores)
        scores = np.sort(_in_32_bits(entries.scores))
        equal = scores[1:] == scores[:-1]
        tied = int(np.count_nonzero(np.append(equal, False) | np.append(False, equal)))
        self._tied += tied
        self._tied_queries += tied > 0
        if entries.ranked:
            self._contrary += _contradict(entries)
            ranks = sorted(entries.ranks)
            self._gaps += ranks[0] not in {0, 1} or any(after != before + 1 for before, after in pairwise(ranks))
        return ranking

    def notes(self) -> Iterator[Note]:
        """What was found, in words."""
        if self._tied:
            text = f"{self._tied} documents tie (same score in 32 bits; queries affected: {self._tied_queries})"
            yield Note("ties", self._tied, f"{text}: ordered by descending doc_id, as by trec_eval")
        if self._contrary:
            text = f"ranks contradict the scores (queries affected: {self._contrary})"
            yield Note("rank_order", self._contrary, f"{text}: the scores count, as for trec_eval")
        if self._gaps:
            text = f"ranks do not count up one by one (queries affected: {self._gaps})"
            yield Note("rank_gaps", self._gaps, f"{text}: ranks are ignored, as by trec_eval")


def _contradict(entries: _Entries) -> bool:
    """Whether a document with a higher score has a later rank than one with a lower score."""
    scores = _in_32_bits(entries.scores)
    ranks = np.frombuffer(entries.ranks, dtype=np.int64)
    by_score = np.lexsort((ranks, -scores))
    falls = scores[by_score][1:] < scores[by_score][:-1]
    ordered = ranks[by_score]
    return bool(np.any((ordered[1:] < np.maximum.accumulate(ordered)[:-1]) & falls))


def _in_32_bits(scores: array[float]) -> NDArray[np.float32]:
    return np.frombuffer(array("f", scores), dtype=np.float32)


def read_run(path: Path | str, *, faulty: Faulty = "refuse") -> Run:
    """Read one run: ``query Q0 document rank score tag``, or a table ``qid, did, score[, rank, tag]``.

    The rank column and the order of the lines are ignored, as by trec_eval; ``Ranking`` says what counts. The notes say
    where that gives another order than the ranks.

    Args:
        path: the file.
        faulty: ``refuse`` raises on the first line that is wrong; ``skip`` leaves such lines out and lists them. Of a
            document that stands twice the first line counts.

    Raises:
        DataError: the file cannot be read or holds no usable line; with ``refuse`` also a line with the wrong number of
            fields, a score that is no finite number, or a document that was retrieved twice for one query.
    """
    path, faults = Path(path), Faults(Path(path), faulty)
    queries, tags = _gathered(path, faults)
    oddities = _RankOddities()
    rankings = {query_id: oddities.ranking(entries) for (query_id, _), entries in queries.items()}
    name = next(iter(tags)) if len(tags) == 1 else ""
    return Run(name or file_stem(path), rankings, (*oddities.notes(), *_tag_notes(tags)), faults.lines)


def read_runs(paths: Iterable[Path | str], *, faulty: Faulty = "refuse") -> list[Run]:
    """Read several runs and tell them apart: by their tags, or by the files' names where two have the same tag.

    Raises:
        DataError: see ``read_run``; or two runs have the same tag and the same file name.
    """
    given = [Path(path) for path in paths]
    runs = [read_run(path, faulty=faulty) for path in given]
    named = Counter(run.name for run in runs)
    runs = [
        run if named[run.name] == 1 else Run(file_stem(path), run.rankings, run.notes, run.faulty)
        for path, run in zip(given, runs, strict=True)
    ]
    _say_rankings(given, ((query_id, len(own.doc_ids)) for run in runs for query_id, own in run.rankings.items()))
    taken: dict[str, Path] = {}
    for path, run in zip(given, runs, strict=True):
        if (other := taken.setdefault(run.name, path)) is not path:
            problem = f"has the same tag or name as {other}; give one of the files another name"
            raise DataError(path, problem, value=run.name)
    return runs


def read_rankings(paths: Iterable[Path | str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """What systems retrieved, by (query_id, tag), in trec_eval's order.

    Unlike ``read_run`` a file may hold the runs of several systems, told apart by their tags.

    Raises:
        DataError: see ``read_run``; or an earlier file has this system's documents for the query already.
    """
    found: dict[tuple[str, str], _Entries] = {}
    given = [Path(path) for path in paths]
    for path in given:
        faults = Faults(path, "refuse")
        own, _ = _gathered(path, faults, by_tag=True)
        for key in own:
            if key in found:
                problem = f"an earlier file has what {key[1]!r} retrieved for query {key[0]!r} already"
                faults.add(own[key].lines[0], problem, own[key].doc_ids[0])
        found |= own
    _say_rankings(given, ((query_id, len(own.doc_ids)) for (query_id, _), own in found.items()))
    return {key: Ranking.of(entries.doc_ids, entries.scores).doc_ids for key, entries in found.items()}


def _say_rankings(paths: Sequence[Path], lengths: Iterable[tuple[str, int]]) -> None:
    read = list(lengths)
    asked = {query_id for query_id, _ in read}
    say_count(paths, queries=len(asked), rankings=len(read), documents=sum(length for _, length in read))


def write_run(path: Path | str, run: Run) -> None:
    """Write trec_eval's lines, ranks from 1; ``read_run`` gives the same rankings back.

    Raises:
        DataError: the file cannot be written, or a name has white space or is empty, which the form has no place for.
    """
    write_trec_lines(
        path,
        (
            (query_id, "Q0", doc_id, str(rank), repr(score), run.name)
            for query_id, ranking in run.rankings.items()
            for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, ranking.scores, strict=True), start=1)
        ),
    )


def _tag_notes(tags: Collection[str]) -> tuple[Note, ...]:
    if len(tags) < 2:
        return ()
    shown = ", ".join(map(repr, list(tags)[:3]))
    return (Note("tags", len(tags), f"{len(tags)} run tags in one file, read as one run: {shown}"),)
