"""The lines of a run by query, compact while they are gathered, and what their ranks and scores say of each other."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from retrieval_eval.trec import Note, Ranking

_NO_RANK = -(2**31)
"""Stands for a rank that is no whole number."""


class RunEntries:
    """The lines of one query in the order of the file. Runs have millions of lines, so numbers are packed."""

    def __init__(self) -> None:
        self.doc_ids: list[str] = []
        self.scores = array("d")
        self.ranks = array("q")
        self.ranked = False
        self._lines = array("I")

    def add(self, line: int, doc_id: str, rank: str, score: float) -> None:
        """One line; an empty rank is none."""
        self.doc_ids.append(doc_id)
        self.scores.append(score)
        self._lines.append(line)
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
            (self._lines[place], doc_id)
            for place, doc_id in enumerate(self.doc_ids)
            if first.setdefault(doc_id, place) != place
        ]
        kept = first.values()
        self.scores = array("d", [self.scores[place] for place in kept])
        self.ranks = array("q", [self.ranks[place] for place in kept])
        self._lines = array("I", [self._lines[place] for place in kept])
        self.doc_ids = list(first)
        return dropped


class RankOddities:
    """Counts over the queries of a run where ranks and scores do not say one and the same order."""

    def __init__(self) -> None:
        self._tied = self._tied_queries = self._contrary = self._gaps = 0

    def ranking(self, entries: RunEntries) -> Ranking:
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


def _contradict(entries: RunEntries) -> bool:
    """Whether a document with a higher score has a later rank than one with a lower score."""
    scores = _in_32_bits(entries.scores)
    ranks = np.frombuffer(entries.ranks, dtype=np.int64)
    by_score = np.lexsort((ranks, -scores))
    falls = scores[by_score][1:] < scores[by_score][:-1]
    ordered = ranks[by_score]
    return bool(np.any((ordered[1:] < np.maximum.accumulate(ordered)[:-1]) & falls))


def _in_32_bits(scores: array[float]) -> NDArray[np.float32]:
    return np.frombuffer(array("f", scores), dtype=np.float32)
