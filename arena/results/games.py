"""The games of a tournament: a query, two agents and a judge each, and what the judge said in both orders, as columns.

Columns of numbers all the way from the store, so that millions are no other case. Rows of one query, judge and pair
become one game, several samples of a verdict one verdict, as ``arena.results.samples`` says of single results. A judge
may give the probability of each label: then a verdict says how sure the judge is.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from arena.config.settings import StoredSettings
from arena.ratings.games import Games, GameVerdict, Tally, VerdictTable, WinAndTie, counted, first_of_each, fold, used
from arena.ratings.results import RatingSettings
from arena.results.coverage import Coverage
from arena.store import Store
from arena.store.bulk import RowColumns
from judges.types import Judgment, Verdict, conversations
from retrieval_eval.data.columns import in_order
from retrieval_eval.stats.arrays import Bools, Floats, Int32s
from retrieval_eval.stats.missing import Gaps

if TYPE_CHECKING:
    from arena.data.dataset import Dataset
    from arena.store.outcomes import Consistency


Made = TypeVar("Made")

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


class GameTable(Struct, frozen=True, eq=False, dict=True):
    """All games wanted of a tournament, in the order of its plan.

    Attributes:
        agents, queries, judges: names, sorted; the columns number them.
        a, b, query, judge: of each game, int32, shape (games,); ``a`` is the agent whose name comes first.
        said: shape (games, 2), int8: with ``a`` shown first, and with ``b``.
        identical: whether both answers are the same text, shape (games,).
        preference: the judge's probability, in each order, that ``a``'s answer is the better one, NaN where it gives
            none; shape (games, 2), or (0, 2) where games are scored by verdicts.
        clusters: the conversation of each query that is a turn of one; all others stand for themselves.
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    judges: tuple[str, ...]
    a: Int32s
    b: Int32s
    query: Int32s
    judge: Int32s
    said: NDArray[np.int8]
    identical: Bools
    preference: Floats = field(default_factory=lambda: np.empty((0, 2)))
    clusters: Mapping[str, str] = field(default_factory=dict)

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
    def pair(self) -> NDArray[np.int64]:
        """A number for the query and both agents of each game, whoever judges it, shape (games,)."""
        size = len(self.agents)
        return np.asarray((self.query.astype(np.int64) * size + self.a) * size + self.b, np.int64)

    def of_pairs(self, pairs: Iterable[tuple[str, str, str]]) -> Bools:
        """Whether the game is one of these, each a query and two agents in the order of their names; shape (games,)."""
        query, agent = ({name: at for at, name in enumerate(names)} for names in (self.queries, self.agents))
        size, known = len(self.agents), []
        for query_id, a, b in pairs:
            if query_id in query and a in agent and b in agent:
                known.append((query[query_id] * size + agent[a]) * size + agent[b])
        return np.isin(self.pair, np.array(known, np.int64))

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
        _, pair = np.unique(self.pair, return_inverse=True)
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
        agents, both = used(self.agents, np.concatenate([self.a[rows], self.b[rows]]))
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
        agents, both = used(self.agents, np.concatenate([first, second]))
        queries, query = used(self.queries, self.query[rows])
        judges, judge = used(self.judges, self.judge[rows])
        preference = None
        if len(self.preference):
            of_a = self.preference[rows, ordered]
            preference = np.where(swapped, 1 - of_a, of_a)
        sides = both[: rows.size], both[rows.size :]
        table = VerdictTable(agents, *sides, outcome, queries, query, judges, judge, preference)
        return table.clustered(self.clusters)

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
        from arena.ratings.rate import games_to_rate  # late: kept games need no fits

        return counted(games_to_rate(verdicts, how), by_query=True).games if len(verdicts) else None

    def coverage(self) -> Coverage:
        """Of the verdicts; each order of a game is one."""
        wanted = self.said != NOT_WANTED
        judged, failed = int(self.judged.sum()), int((self.said == FAILED).sum())
        identical = int((self.judged & self.identical[:, None]).sum())
        return Coverage(int(wanted.sum()), judged, failed, int((self.said == WAITING).sum()), identical)

    def gaps(self) -> Gaps:
        """Verdicts wanted of each agent on each query, and those that are not there; each order of a game is one."""
        agents, queries = len(self.agents), len(self.queries)
        cells = np.concatenate([side.astype(np.int64) * queries + self.query for side in (self.a, self.b)])
        wanted, judged = (self.said != NOT_WANTED).sum(axis=1), self.judged.sum(axis=1)
        counts = (np.bincount(cells, np.tile(own, 2), agents * queries) for own in (wanted, wanted - judged))
        return Gaps(self.agents, self.queries, *(own.astype(np.int64).reshape(agents, queries) for own in counts))

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


def _place(names: Sequence[str], name: str) -> int:
    """The number of a name, -1 where it is none of them."""
    return names.index(name) if name in names else -1


def _sums(names: Sequence[str], of: Sequence[Int32s], *what: NDArray[np.integer]) -> dict[str, tuple[int, int]]:
    judged, wanted = (np.bincount(np.concatenate(of), np.tile(some, len(of)), len(names)) for some in what)
    return {name: (int(judged[code]), int(wanted[code])) for code, name in enumerate(names)}


PROBABILITIES: Final = {"p_a": Verdict.A.value, "p_b": Verdict.B.value, "p_tie": Verdict.TIE.value}
"""Columns of a table of verdicts: the probability that each answer is the better one, and that neither is."""


def verdict_probabilities(judgment: Judgment) -> dict[str, float]:
    """The probability of each of ``PROBABILITIES``, from what the judge's reply says; empty where it says none."""
    from judges.providers.transformers import label_probabilities

    by_label = label_probabilities(judgment.reason)
    if not by_label or by_label.get(str(judgment.outcome)) != max(by_label.values()):
        return {}
    return {column: by_label.get(label, 0.0) for column, label in PROBABILITIES.items()}


def preference(judgment: Judgment) -> float | None:
    """Probability that the answer shown first is the better one, a tie counted as half; ``None`` without any."""
    found = verdict_probabilities(judgment)
    total = sum(found.values())
    return (found["p_a"] + found["p_tie"] / 2) / total if total else None


_STORED: Final = {json.dumps(verdict): said for verdict, said in zip(Verdict, (FIRST, SECOND, TIE), strict=True)}
"""By the outcome as it is stored, seen from the answer shown first."""


class WantedGames(Struct, frozen=True):
    """The games of a tournament with what was said of them.

    Attributes:
        table: every game, each judge's samples combined.
        causes: how many orders failed for which cause.
        consistency: of each judge that was asked several times, how far its samples agree.
        models: by judge of a server, the models that gave its verdicts, and how many each.
    """

    table: GameTable
    causes: Mapping[str, int]
    consistency: Mapping[str, Consistency]
    models: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def read_games(store: Store, tournament: str, make: Callable[[WantedGames], Made], data: Dataset | None = None) -> Made:
    """What is made of all games of a tournament, once these have been seen to be what was written.

    Args:
        store: where they are.
        tournament: its name.
        make: takes the games, samples combined as the settings say; with preferences where games are scored by them.
        data: the tournament's own, where they were read.

    Raises:
        InputError: no such tournament.
        StoreError: something that it is made of is not what was written.
    """
    settings = store.settings(tournament)
    queries = store.queries(tournament) if data is None else data.queries

    def made(columns: RowColumns) -> Made:
        games = games_of(columns, settings, conversations(queries.values()))
        del columns  # nobody else holds them, and of millions each column counts
        return make(games)

    also = ["reason"] if settings.ratings.preferences == "soft" else []
    also += ["model"] if settings.hosted else []
    return store.of_games(tournament, made, data, also)


def games_of(rows: RowColumns, settings: StoredSettings, clusters: Mapping[str, str] | None = None) -> WantedGames:
    """Wanted verdicts, a row for each sample of each order of a game, as games in the order of their plan.

    Args:
        rows: as ``Store.of_games`` has them; with ``reason`` where games are scored by preferences.
        settings: of the tournament.
        clusters: as of ``GameTable``.
    """
    rows = rows.in_order_of("position")
    judges, (judge,) = in_order(rows.texts["judge"])
    queries, (query,) = in_order(rows.texts["query"])
    agents, (first, second) = in_order(rows.texts["first"], rows.texts["second"])
    a, b, b_first = np.minimum(first, second), np.maximum(first, second), first > second
    limit = len(queries) * len(judges) * len(agents) ** 2
    key = ((query.astype(np.int64) * len(judges) + judge) * len(agents) + a) * len(agents) + b
    start, game = first_of_each(key, limit)
    del key  # of millions each column counts
    as_planned = np.argsort(start)
    place = np.empty(start.size, np.int64)
    place[as_planned] = np.arange(start.size)
    start, slot = start[as_planned], 2 * place[game] + b_first  # a slot is one order of a game
    del game
    given = _said(rows)
    seen_from_a = np.where(b_first & (given <= FIRST), -given, given)
    counts = {
        said: np.bincount(slot[seen_from_a == said], minlength=2 * start.size).astype(np.int32)
        for said in (FIRST, TIE, SECOND, FAILED, WAITING)
    }
    sampled = bool(rows.numbers["sample"].any())
    of_judge = np.repeat(judge[start], 2)
    said = _combined(counts, _ways(judges, settings)[of_judge] if sampled else None)
    identical = np.zeros(start.size, np.bool_)
    identical[slot[rows.numbers["identical"] > 0] // 2] = True
    table = GameTable(
        agents,
        queries,
        judges,
        a[start],
        b[start],
        query[start],
        judge[start],
        said.reshape(-1, 2),
        identical,
        _preferences(rows, settings, slot, b_first, start.size) if "reason" in rows.texts else np.empty((0, 2)),
        clusters or {},
    )
    consistency = _consistency(counts, of_judge, judges) if sampled else {}
    return WantedGames(table, _causes(rows, given, slot, said), consistency, _models(rows, settings))


def _models(rows: RowColumns, settings: StoredSettings) -> dict[str, dict[str, int]]:
    """By judge of a server, how many verdicts which model gave."""
    if "model" not in rows.texts:
        return {}
    judge, model, outcome = (rows.texts[name] for name in ("judge", "model", "outcome"))
    judged = np.array([name is not None for name in outcome.names], np.bool_)[outcome.codes]
    judged &= rows.numbers["identical"] == 0  # nobody was asked
    judged &= np.array([name in settings.hosted for name in judge.names], np.bool_)[judge.codes]
    pairs, counts = np.unique(
        judge.codes[judged].astype(np.int64) * len(model.names) + model.codes[judged], return_counts=True
    )
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        found[str(judge.names[pair // len(model.names)])][str(model.names[pair % len(model.names)])] = count
    return dict(found)


def _said(rows: RowColumns) -> NDArray[np.int8]:
    """What each row says, seen from the answer shown first."""
    outcome, cause = rows.texts["outcome"], rows.texts["cause"]
    failed = np.array([WAITING if name is None else FAILED for name in cause.names], np.int8)[cause.codes]
    verdict = np.array([NOT_WANTED if name is None else _STORED[name] for name in outcome.names], np.int8)
    judged = np.array([name is not None for name in outcome.names], np.bool_)[outcome.codes]
    return np.where(judged, verdict[outcome.codes], failed).astype(np.int8)


def _ways(judges: Iterable[str], settings: StoredSettings) -> Int32s:
    """By judge, the place among ``majority``, ``median`` and ``mean`` of how its samples become one."""
    how = settings.combinations
    return np.array([("majority", "median", "mean").index(how.get(judge, "majority")) for judge in judges], np.int32)


def _combined(counts: Mapping[int, NDArray[np.integer]], ways: Int32s | None) -> NDArray[np.int8]:
    """One verdict for each slot from how often each was given, see ``samples.combine``; shape (slots,)."""
    wins, ties, losses = (counts[said] for said in (FIRST, TIE, SECOND))
    verdict = (wins > np.maximum(ties, losses)).astype(np.int8) - (losses > np.maximum(ties, wins))
    judged = wins + ties + losses
    if ways is not None:
        lower, upper = (
            (at >= losses + ties).astype(np.int8) - (at < losses) for at in ((judged - 1) // 2, judged // 2)
        )
        verdict = np.choose(ways, [verdict, np.sign(lower + upper), np.sign(wins - losses)])
    failed, waiting = counts[FAILED], counts[WAITING]
    cases = [waiting > 0, judged < failed, judged > 0]
    return np.asarray(np.select(cases, [WAITING, FAILED, verdict], NOT_WANTED), np.int8)


def _causes(
    rows: RowColumns, given: NDArray[np.int8], slot: NDArray[np.int64], said: NDArray[np.int8]
) -> dict[str, int]:
    """How many slots failed for which cause, that of the first sample that did."""
    failing = np.flatnonzero((given == FAILED) & (said[slot] == FAILED))
    _, firsts = np.unique(slot[failing], return_index=True)
    cause = rows.texts["cause"]
    found = Counter(cause.codes[failing[firsts]].tolist())
    return {str(cause.names[code]): number for code, number in found.items()}


def _consistency(
    counts: Mapping[int, NDArray[np.integer]], of_judge: Int32s, judges: tuple[str, ...]
) -> dict[str, Consistency]:
    """By judge, how often two of its samples say the same."""
    from arena.store.outcomes import Consistency

    given = np.array([counts[said] for said in (FIRST, TIE, SECOND)])
    several = given.sum(axis=0) > 1
    pairs, equal, repeated = (
        np.bincount(of_judge, weights, len(judges))
        for weights in (_pairs(given.sum(axis=0)), _pairs(given).sum(axis=0), several)
    )
    return {
        judges[code]: Consistency(float(equal[code] / pairs[code]), int(repeated[code]))
        for code in dict.fromkeys(of_judge[several].tolist())
    }


def _pairs(number: NDArray[np.integer]) -> NDArray[np.integer]:
    return number * (number - 1) // 2


def _preferences(
    rows: RowColumns, settings: StoredSettings, slot: NDArray[np.int64], b_first: NDArray[np.bool_], games: int
) -> Floats:
    """The mean preference of each slot's samples for ``a``, NaN where there is none; (0, 2) without any."""
    judge, outcome, reason = (rows.texts[name] for name in ("judge", "outcome", "reason"))
    sure = [settings.gives_probabilities(str(name)) for name in judge.names]
    preferred = np.full(slot.size, np.nan)
    for row, (of, said, why) in enumerate(zip(judge.codes, outcome.codes, reason.codes, strict=True)):
        stored = outcome.names[said]
        if sure[of] and stored is not None:
            found = preference(Judgment("", json.loads(stored), reason.names[why] or "", "", ""))
            preferred[row] = np.nan if found is None else found
    known = ~np.isnan(preferred)
    if not known.any():
        return np.empty((0, 2))
    of_a = np.where(b_first, 1 - preferred, preferred)[known]
    number, total = (np.bincount(slot[known], weights, 2 * games) for weights in (None, of_a))
    means: Floats = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return means.reshape(-1, 2)
