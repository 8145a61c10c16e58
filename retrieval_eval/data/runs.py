"""Readers and writer of runs, the rankings that systems retrieved: trec_eval's lines or tables, plain or gzip."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, pairwise
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from judges.errors import DataError
from judges.types import Retrieved
from retrieval_eval.data.files import file_stem
from retrieval_eval.data.rows import are_floats, finite, in_form
from retrieval_eval.data.table_spec import say_count
from retrieval_eval.data.trec import Faults, Faulty, FaultyLine, Note, run_fields, write_trec_lines


class Ranking(Struct, frozen=True):
    """The documents that a system retrieved for one query, in trec_eval's order and without repetitions.

    Attributes:
        doc_ids: document ids by descending score, ties by descending doc_id; as in trec_eval, scores are compared as
            32-bit floats.
        scores: the scores as written in the file, in the order of ``doc_ids``.
    """

    doc_ids: tuple[str, ...]
    scores: tuple[float, ...]

    @staticmethod
    def of(doc_ids: Iterable[str], scores: Iterable[float]) -> Ranking:
        """Sort distinct documents by score as trec_eval does (Buckley's ``form_res_rels.c``, ``comp_sim_docno``)."""
        exact = list(scores)
        entries = sorted(zip(array("f", exact), doc_ids, exact, strict=True), reverse=True)
        return Ranking(tuple(entry[1] for entry in entries), tuple(entry[2] for entry in entries))


class Run(Struct, frozen=True):
    """The rankings of one system.

    Attributes:
        name: the run's tag; the file's name if the file contains several tags.
        rankings: the ranking for each query_id, in the order of the file.
        notes: remarks on oddities of the file.
        faulty: lines that ``read_run`` skipped because of ``faulty="skip"``.
    """

    name: str
    rankings: Mapping[str, Ranking]
    notes: tuple[Note, ...] = ()
    faulty: tuple[FaultyLine, ...] = ()

    def scores(self) -> dict[str, dict[str, float]]:
        """Scores by query_id and doc_id, as pytrec_eval and ir_measures expect them; doc_ids in trec_eval's order."""
        return {
            query_id: dict(zip(ranking.doc_ids, ranking.scores, strict=True))
            for query_id, ranking in self.rankings.items()
        }


def runs_of(retrieved: Iterable[Retrieved]) -> list[Run]:
    """One run per agent, sorted by name, from the documents that the agents retrieved; the score at rank r is 1/r.

    The agents' own scores are not used: they need not decrease with the rank, and evaluation uses the ranks.
    """
    entries_by_agent: dict[str, dict[str, list[tuple[int, str]]]] = {}
    for entry in retrieved:
        entries_by_agent.setdefault(entry.agent, {}).setdefault(entry.query_id, []).append(
            (entry.rank, sys.intern(entry.doc_id))
        )
    return [
        Run(
            agent,
            {
                query_id: Ranking(tuple(doc_id for _, doc_id in ranked), tuple(1 / rank for rank, _ in ranked))
                for query_id, ranked in ((query_id, sorted(entries)) for query_id, entries in queries.items())
            },
        )
        for agent, queries in sorted(entries_by_agent.items())
    ]


_NO_RANK = -(2**31)


class _Entries:
    """The lines of a run for one query, in the order of the file; packed arrays, since runs have millions of lines."""

    def __init__(self) -> None:
        self.doc_ids: list[str] = []
        self.scores = array("d")
        self.ranks = array("q")
        self.lines = array("I")
        self.ranked = False

    def add(self, line: int, doc_id: str, rank: str, score: float) -> None:
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
        """Remove lines whose document is on an earlier line; returns their line numbers and doc_ids."""
        if len(set(self.doc_ids)) == len(self.doc_ids):
            return []
        first: dict[str, int] = {}
        is_first = [first.setdefault(doc_id, index) == index for index, doc_id in enumerate(self.doc_ids)]
        lines = zip(self.lines, self.doc_ids, is_first, strict=True)
        dropped = [(line, doc_id) for line, doc_id, kept in lines if not kept]
        self.doc_ids, self.scores = list(first), array("d", compress(self.scores, is_first))
        self.ranks, self.lines = array("q", compress(self.ranks, is_first)), array("I", compress(self.lines, is_first))
        return dropped


def _entries_of_run(
    path: Path, faults: Faults, *, by_tag: bool = False
) -> tuple[dict[tuple[str, str], _Entries], dict[str, None]]:
    """Read a run's lines by query_id and tag (``""`` unless ``by_tag``); returns them, and all tags in the file."""
    entries_by_key: dict[tuple[str, str], _Entries] = {}
    tags: dict[str, None] = {}
    stem = file_stem(path)
    for line, (query_id, doc_id, rank, score_text, tag) in run_fields(path, faults):
        if (score := finite(score_text)) is None:
            faults.add(line, "the score is not a finite number", score_text)
            continue
        key = query_id, (tag or stem) if by_tag else ""
        entries = entries_by_key.get(key)
        if entries is None:
            entries = entries_by_key[key] = _Entries()
        entries.add(line, sys.intern(doc_id), rank, score)
        tags[tag] = None
    if not entries_by_key:
        raise DataError(path, f"holds no usable line of a run; write lines 'qid Q0 did rank score tag'{faults.example}")
    for (query_id, tag), entries in entries_by_key.items():
        for line, doc_id in entries.drop_repeated():
            whose = f" of {tag!r}" if tag else ""
            faults.add(line, f"query {query_id!r}{whose} has this document twice", doc_id)
    return entries_by_key, tags


def with_ids_of(run: Run, queries: Collection[str]) -> Run:
    """Rewrite the run's query ids in the form of ``queries`` (``1`` or ``1.0``), if none matches as it is written."""
    floats = are_floats(queries)
    if floats == are_floats(run.rankings) or not run.rankings.keys().isdisjoint(queries):
        return run
    return replace(run, rankings={in_form(ident, floats=floats): ranking for ident, ranking in run.rankings.items()})


class _RankOddities:
    """Counts oddities of a run: queries whose ranks and scores disagree, and documents with tied scores."""

    def __init__(self) -> None:
        self._tied = self._tied_queries = self._contrary = self._gaps = 0

    def ranking(self, entries: _Entries) -> Ranking:
        """One query's documents in trec_eval's order; also updates the counts of oddities."""
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
        """One note for each kind of oddity that occurred."""
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
    """Whether a document with a higher score than another has a later rank."""
    scores = _in_32_bits(entries.scores)
    ranks = np.frombuffer(entries.ranks, dtype=np.int64)
    by_score = np.lexsort((ranks, -scores))
    falls = scores[by_score][1:] < scores[by_score][:-1]
    ranks_by_score = ranks[by_score]
    return bool(np.any((ranks_by_score[1:] < np.maximum.accumulate(ranks_by_score)[:-1]) & falls))


def _in_32_bits(scores: array[float]) -> NDArray[np.float32]:
    return np.frombuffer(array("f", scores), dtype=np.float32)


def read_run(path: Path | str, *, faulty: Faulty = "refuse") -> Run:
    """Read one run: ``query Q0 document rank score tag``, or a table ``qid, did, score[, rank, tag]``.

    Like trec_eval, this function ignores the rank column and the order of the lines and sorts by score, see
    ``Ranking``. The run's notes report queries whose ranks contradict that order.

    Args:
        path: the file.
        faulty: ``refuse`` raises on the first faulty line; ``skip`` skips and lists all faulty lines. If a document is
            repeated, its first line is used.
    """
    path, faults = Path(path), Faults(Path(path), faulty)
    queries, tags = _entries_of_run(path, faults)
    oddities = _RankOddities()
    rankings = {query_id: oddities.ranking(entries) for (query_id, _), entries in queries.items()}
    name = next(iter(tags)) if len(tags) == 1 else ""
    notes = [*oddities.notes()]
    if len(tags) > 1:
        shown = ", ".join(map(repr, list(tags)[:3]))
        notes.append(Note("tags", len(tags), f"{len(tags)} run tags in one file, read as one run: {shown}"))
    return Run(name or file_stem(path), rankings, tuple(notes), faults.lines)


def read_runs(paths: Iterable[Path | str], *, faulty: Faulty = "refuse") -> list[Run]:
    """Read several runs and name each by its tag, or by its file if two runs have the same tag."""
    files = [Path(path) for path in paths]
    runs = [read_run(path, faulty=faulty) for path in files]
    name_counts = Counter(run.name for run in runs)
    runs = [
        run if name_counts[run.name] == 1 else Run(file_stem(path), run.rankings, run.notes, run.faulty)
        for path, run in zip(files, runs, strict=True)
    ]
    _say_rankings(
        files, ((query_id, len(ranking.doc_ids)) for run in runs for query_id, ranking in run.rankings.items())
    )
    path_of_name: dict[str, Path] = {}
    for path, run in zip(files, runs, strict=True):
        if (other := path_of_name.setdefault(run.name, path)) is not path:
            problem = f"has the same tag or name as {other}; give one of the files another name"
            raise DataError(path, problem, value=run.name)
    return runs


def read_rankings(paths: Iterable[Path | str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Read the doc_ids that systems retrieved, by (query_id, tag), in trec_eval's order.

    Unlike in ``read_run``, a file may contain the runs of several systems, each with its own tag.
    """
    all_entries: dict[tuple[str, str], _Entries] = {}
    files = [Path(path) for path in paths]
    for path in files:
        faults = Faults(path, "refuse")
        file_entries, _ = _entries_of_run(path, faults, by_tag=True)
        for key in file_entries:
            if key in all_entries:
                problem = f"an earlier file has what {key[1]!r} retrieved for query {key[0]!r} already"
                faults.add(file_entries[key].lines[0], problem, file_entries[key].doc_ids[0])
        all_entries |= file_entries
    _say_rankings(files, ((query_id, len(entries.doc_ids)) for (query_id, _), entries in all_entries.items()))
    return {key: Ranking.of(entries.doc_ids, entries.scores).doc_ids for key, entries in all_entries.items()}


def _say_rankings(paths: Sequence[Path], lengths: Iterable[tuple[str, int]]) -> None:
    rankings = list(lengths)
    query_ids = {query_id for query_id, _ in rankings}
    say_count(paths, queries=len(query_ids), rankings=len(rankings), documents=sum(length for _, length in rankings))


def write_run(path: Path | str, run: Run) -> None:
    """Write a run in trec_eval's format, with ranks from 1; ``read_run`` reads the same rankings from it."""
    write_trec_lines(
        path,
        (
            (query_id, "Q0", doc_id, str(rank), repr(score), run.name)
            for query_id, ranking in run.rankings.items()
            for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, ranking.scores, strict=True), start=1)
        ),
    )
