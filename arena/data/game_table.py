"""Games as columns of numbers: a query, two agents and a judge each, and what the judge said in both orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arena.boards.coverage import Coverage
from arena.ratings.games import Floats, Games, GameVerdict, Ints, Tally, VerdictTable, WinAndTie, counted, fold
from arena.ratings.rate import RatingSettings, games_to_rate
from judges.types import Verdict

Bools: TypeAlias = NDArray[np.bool_]

FIRST, TIE, SECOND = 1, 0, -1
"""A verdict, seen from the game's first agent, whichever was shown first."""
_VERDICTS = {FIRST: Verdict.A, TIE: Verdict.TIE, SECOND: Verdict.B}
FAILED, WAITING, NOT_WANTED = 2, 3, 4
"""In place of one: the judge failed, was not asked yet, or is not to be asked in this order."""


class GameKey(NamedTuple):
    """What names a game."""

    query_id: str
    agent_a: str
    agent_b: str
    judge: str


@dataclass(frozen=True, eq=False)
class GameTable:
    """All games wanted of a tournament, in the order of its plan.

    Attributes:
        agents, queries, judges: names, sorted; the columns number them.
        a, b, query, judge: of each game, int32, shape (games,); ``a`` is the agent whose name comes first.
        said: shape (games, 2), int8: with ``a`` shown first, and with ``b``.
        identical: whether both answers are the same text, shape (games,).
        preference: the judge's probability, in each order, that ``a``'s answer is the better one, NaN where it gives
            none; shape (games, 2), or (0, 2) where games are scored by verdicts.
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    judges: tuple[str, ...]
    a: Ints
    b: Ints
    query: Ints
    judge: Ints
    said: NDArray[np.int8]
    identical: Bools
    preference: Floats = field(default_factory=lambda: np.empty((0, 2)))

    def __len__(self) -> int:
        return self.a.size

    def key(self, row: int) -> GameKey:
        """The names of one game."""
        return GameKey(
            self.queries[self.query[row]],
            self.agents[self.a[row]],
            self.agents[self.b[row]],
            self.judges[self.judge[row]],
        )

    def find(self, key: GameKey) -> int | None:
        """The row of a game, its agents in either order; ``None`` if there is no such game."""
        pair = self.of_agent(key.agent_a) & self.of_agent(key.agent_b) & (key.agent_a != key.agent_b)
        found = np.flatnonzero(pair & self.of_query(key.query_id) & self.of_judge(key.judge))
        return int(found[0]) if found.size else None

    def of_agent(self, name: str) -> Bools:
        """Whether the agent plays, shape (games,)."""
        number = _place(self.agents, name)
        return np.asarray((self.a == number) | (self.b == number), np.bool_)

    def of_query(self, *names: str) -> Bools:
        """Whether the game is on one of these queries, shape (games,)."""
        return np.isin(self.query, [_place(self.queries, name) for name in names])

    def of_judge(self, name: str) -> Bools:
        """Whether the judge judges it, shape (games,)."""
        return np.asarray(self.judge == _place(self.judges, name), np.bool_)

    @cached_property
    def judged(self) -> Bools:
        """Whether an order has a verdict, shape (games, 2)."""
        return np.asarray(self.said <= FIRST, np.bool_)

    @cached_property
    def played(self) -> Bools:
        """Whether a game has any verdict, shape (games,)."""
        return np.asarray(self.judged.any(axis=1), np.bool_)

    @cached_property
    def orders_disagree(self) -> Bools:
        """Whether both orders have a verdict, and not the same, shape (games,)."""
        differ = self.said[:, 0] != self.said[:, 1]
        return np.asarray(self.judged.all(axis=1) & differ, np.bool_)

    def judges_disagree(self, scores: Floats) -> Bools:
        """Whether two judges score the same pair on the same query differently, shape (games,)."""
        size = len(self.agents)
        _, pair = np.unique((self.query.astype(np.int64) * size + self.a) * size + self.b, return_inverse=True)
        low, high = np.full(pair.max(initial=-1) + 1, np.inf), np.full(pair.max(initial=-1) + 1, -np.inf)
        np.fmin.at(low, pair, scores)
        np.fmax.at(high, pair, scores)
        return np.asarray(low[pair] < high[pair], np.bool_)

    def scores(self, win_and_tie: WinAndTie) -> Floats:
        """Score of ``a`` in each rated game: 1, 0.5 or 0, NaN without a verdict; shape (games,)."""
        outcome, _ = self._folded(self.played, win_and_tie)
        scores = np.full(len(self), np.nan)
        scores[self.played] = (outcome + 1) / 2
        return scores

    def games(self, win_and_tie: WinAndTie) -> Games:
        """The rated games, in the order of the table: what ``reconcile`` makes of ``verdicts``, without a sort."""
        rows = self.played
        outcome, tally = self._folded(rows, win_and_tie)
        agents, both = _used(self.agents, np.concatenate([self.a[rows], self.b[rows]]))
        size = outcome.size
        return Games(agents, both[:size], both[size:], (outcome + 1) / 2, self.query[rows], tally=tally)

    def _folded(self, rows: Bools, win_and_tie: WinAndTie) -> tuple[NDArray[np.int8], Tally]:
        judged = self.judged[rows]
        both = np.asarray(judged.all(axis=1), np.bool_)
        return fold(np.where(judged, self.said[rows], 0).astype(np.int8), both, win_and_tie)

    def verdicts(self, of: Bools | None = None) -> VerdictTable:
        """Single verdicts, the answer shown first as ``a``; of some games only, if ``of`` says which."""
        rows, ordered = np.nonzero(self.judged if of is None else self.judged & of[:, None])
        swapped = ordered == 1
        said = self.said[rows, ordered]
        first, second = np.where(swapped, self.b[rows], self.a[rows]), np.where(swapped, self.a[rows], self.b[rows])
        outcome = np.where(swapped, -said, said).astype(np.int8)
        agents, both = _used(self.agents, np.concatenate([first, second]))
        queries, query = _used(self.queries, self.query[rows])
        judges, judge = _used(self.judges, self.judge[rows])
        preference = None
        if len(self.preference):
            of_a = self.preference[rows, ordered]
            preference = np.where(swapped, 1 - of_a, of_a)
        sides = both[: rows.size], both[rows.size :]
        return VerdictTable(agents, *sides, outcome, queries, query, judges, judge, preference)

    def each_verdict(self) -> Iterator[GameVerdict]:
        """Single verdicts one by one, game by game."""
        for row, second in zip(*map(np.ndarray.tolist, np.nonzero(self.judged)), strict=True):
            query_id, a, b, judge = self.key(row)
            first, other, said = (b, a, -self.said[row, 1]) if second else (a, b, self.said[row, 0])
            yield GameVerdict(query_id, first, other, _VERDICTS[int(said)], judge)

    def rated(self, how: RatingSettings, of: Bools | None = None) -> Games | None:
        """The games as they are rated, of some only if ``of`` says which; ``None`` where none has a verdict.

        Games scored by preferences come as wins and losses of fractional weight.
        """
        verdicts = self.verdicts(of)
        return counted(games_to_rate(verdicts, how), by_query=True).games if len(verdicts) else None

    def coverage(self) -> Coverage:
        """Of the verdicts; each order of a game is one."""
        wanted = self.said != NOT_WANTED
        judged, failed = int(self.judged.sum()), int((self.said == FAILED).sum())
        identical = int((self.judged & self.identical[:, None]).sum())
        return Coverage(int(wanted.sum()), judged, failed, int((self.said == WAITING).sum()), identical)

    def coverage_by_name(self) -> Mapping[str, Mapping[str, tuple[int, int]]]:
        """Verdicts there and wanted of each judge and each agent; one for each order of a game."""
        judged, wanted = self.judged.sum(axis=1), (self.said != NOT_WANTED).sum(axis=1)
        return {
            "judge": _sums(self.judges, [self.judge], judged, wanted),
            "agent": _sums(self.agents, [self.a, self.b], judged, wanted),
        }

    def coverage_by_query(self) -> Mapping[str, tuple[int, int]]:
        """Verdicts there and wanted on each query that has games."""
        judged, wanted = self.judged.sum(axis=1), (self.said != NOT_WANTED).sum(axis=1)
        return _sums(self.queries, [self.query], judged, wanted)


def _used(names: tuple[str, ...], codes: NDArray[np.integer]) -> tuple[tuple[str, ...], Ints]:
    """The names that occur, and the codes counted anew."""
    seen = np.zeros(len(names), np.bool_)
    seen[codes] = True
    return tuple(names[code] for code in np.flatnonzero(seen)), (np.cumsum(seen, dtype=np.int32) - 1)[codes]


def _place(names: Sequence[str], name: str) -> int:
    """The number of a name, -1 where it is none of them."""
    return names.index(name) if name in names else -1


def _sums(names: Sequence[str], of: Sequence[Ints], *what: NDArray[np.integer]) -> dict[str, tuple[int, int]]:
    judged, wanted = (np.bincount(np.concatenate(of), np.tile(some, len(of)), len(names)) for some in what)
    return {name: (int(judged[code]), int(wanted[code])) for code, name in enumerate(names)}
