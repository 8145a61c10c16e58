"""The games of a tournament as columns: query, two agents, judge, and the outcome in both orders.

Columns are numbers from the moment they are read from the store, so that millions of games need no special code. The
store's rows on one query, judge and pair become one game, and several samples of a verdict are combined. If a judge
gives a probability for each label, each verdict comes with the judge's certainty.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from arena.config.settings import StoredSettings
from arena.ratings.games import (
    Games,
    Tally,
    VerdictTable,
    WinAndTie,
    first_of_each,
    fold,
    rows_of,
    used,
    without_preferences,
    without_repeats,
)
from arena.ratings.results import RatingSettings
from arena.results.outcomes import Coverage
from arena.store import Store
from arena.store.bulk import RowColumns
from judges.types import GameOutcome, Judgment, Verdict, conversations, repeat_name, repeat_of
from retrieval_eval.stats import Bools, Floats, Int32s
from retrieval_eval.stats.repeats import mean_of_repeats
from retrieval_eval.stats.scores import Scores

if TYPE_CHECKING:
    from arena.data.dataset import Dataset
    from arena.store.outcomes import Consistency

FAILED, WAITING, NOT_WANTED = 2, 3, 4
"""Codes for an order of a game without a verdict: the judge failed, was not asked yet, or is not to be asked."""


class GameKey(NamedTuple):
    """A game; the agents' names have the number of the repeat, see ``judges.types.repeat_of``."""

    query_id: str
    agent_a: str
    agent_b: str
    judge: str


class GameTable(Struct, frozen=True, eq=False, dict=True):
    """All games of a tournament, judged or not, in the order of its plan.

    Attributes:
        agents, queries, judges: sorted names; the columns hold indexes into them.
        a, b, query, judge: columns of the games, int32, shape (games,); ``a`` is the agent whose name sorts first.
        outcome: outcome with ``a`` shown first and with ``b`` shown first, int8, shape (games, 2).
        identical: whether the texts of both answers are the same, shape (games,).
        preference: the judge's probability, in each order, that the answer of ``a`` is better, NaN if the judge gave
            none; shape (games, 2), or (0, 2) if games are scored by verdicts.
        clusters: the conversation of each query that belongs to one; every other query is independent.
        causes: number of failed judgments by cause, where each order of a game is a judgment.
        consistency: agreement between the samples of each judge that was asked several times.
        models: number of verdicts by judge and model, for judges whose models run on servers; their replies name the
            model.
        repeat: number of the repeat that both agents played with, from 1, int32, shape (games,); ``None`` if all
            answers are the first.
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    judges: tuple[str, ...]
    a: Int32s
    b: Int32s
    query: Int32s
    judge: Int32s
    outcome: NDArray[np.int8]
    identical: Bools
    preference: Floats = field(default_factory=lambda: np.empty((0, 2)))
    clusters: Mapping[str, str] = field(default_factory=dict)
    causes: Mapping[str, int] = field(default_factory=dict)
    consistency: Mapping[str, Consistency] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    repeat: Int32s | None = None

    def __len__(self) -> int:
        return self.a.size

    def key(self, row: int) -> GameKey:
        repeat = 1 if self.repeat is None else int(self.repeat[row])
        return GameKey(
            self.queries[self.query[row]],
            repeat_name(self.agents[self.a[row]], repeat),
            repeat_name(self.agents[self.b[row]], repeat),
            self.judges[self.judge[row]],
        )

    def find(self, key: GameKey) -> int | None:
        """The row of a game; its agents may be given in either order. ``None`` if there is no such game."""
        (first, repeat), (second, _) = repeat_of(key.agent_a), repeat_of(key.agent_b)
        pair = self.of_agent(first) & self.of_agent(second) & (first != second)
        pair &= repeat == (1 if self.repeat is None else self.repeat)
        rows = np.flatnonzero(pair & self.of_query(key.query_id) & self.of_judge(key.judge))
        return int(rows[0]) if rows.size else None

    def of_agent(self, name: str) -> Bools:
        number = _index(self.agents, name)
        return np.asarray((self.a == number) | (self.b == number), np.bool_)

    def of_query(self, *names: str) -> Bools:
        return np.isin(self.query, [_index(self.queries, name) for name in names])

    def of_judge(self, name: str) -> Bools:
        return np.asarray(self.judge == _index(self.judges, name), np.bool_)

    @cached_property
    def pair(self) -> NDArray[np.int64]:
        """A number that identifies each game's query, agents and repeat, equal for all judges, shape (games,)."""
        size = len(self.agents)
        pair = (self.query.astype(np.int64) * size + self.a) * size + self.b
        return np.asarray(pair if self.repeat is None else pair * self.repeats + self.repeat - 1, np.int64)

    @property
    def repeats(self) -> int:
        """The largest number of a repeat; 1 if all answers are the first."""
        return 1 if self.repeat is None else int(self.repeat.max(initial=1))

    def of_pairs(self, pairs: Iterable[tuple[str, str, str]]) -> Bools:
        """Whether each game is among ``pairs`` (query, and two agents of a ``GameKey``, sorted), shape (games,)."""
        query, agent = ({name: index for index, name in enumerate(names)} for names in (self.queries, self.agents))
        size, pair_numbers = len(self.agents), []
        for query_id, *names in pairs:
            (a, repeat), (b, _) = map(repeat_of, names)
            if query_id in query and a in agent and b in agent and repeat <= self.repeats:
                pair = (query[query_id] * size + agent[a]) * size + agent[b]
                pair_numbers.append(pair * self.repeats + repeat - 1)
        return np.isin(self.pair, np.array(pair_numbers, np.int64))

    @cached_property
    def judged(self) -> Bools:
        return np.asarray(self.outcome <= GameOutcome.FIRST, np.bool_)

    @cached_property
    def played(self) -> Bools:
        return np.asarray(self.judged.any(axis=1), np.bool_)

    @cached_property
    def orders_disagree(self) -> Bools:
        """Whether both orders of a game have verdicts and these differ, shape (games,)."""
        differ = self.outcome[:, 0] != self.outcome[:, 1]
        return np.asarray(self.judged.all(axis=1) & differ, np.bool_)

    def judges_disagree(self, scores: Floats) -> Bools:
        """Whether judges give different ``scores`` to the game's pair on its query, shape (games,)."""
        _, pair = np.unique(self.pair, return_inverse=True)
        low, high = np.full(pair.max(initial=-1) + 1, np.inf), np.full(pair.max(initial=-1) + 1, -np.inf)
        np.fmin.at(low, pair, scores)
        np.fmax.at(high, pair, scores)
        return np.asarray(low[pair] < high[pair], np.bool_)

    def scores(self, win_and_tie: WinAndTie) -> Floats:
        """Score of ``a`` in each game: 1, 0.5 or 0, NaN without a verdict; shape (games,)."""
        outcome, _ = self._folded(self.played, win_and_tie)
        scores = np.full(len(self), np.nan)
        scores[self.played] = (outcome + 1) / 2
        return scores

    def games(self, win_and_tie: WinAndTie) -> Games:
        """The games with a verdict, in the table's order; same games as those of ``reconcile``, but computed faster."""
        rows = self.played
        outcome, tally = self._folded(rows, win_and_tie)
        agents, both = used(self.agents, np.concatenate([self.a[rows], self.b[rows]]))
        size = outcome.size
        sides = both[:size], both[size:]
        columns = agents, *sides, (outcome + 1) / 2, self.query[rows]
        return Games(*columns, tally=tally, judge=self.judge[rows], repeat=rows_of(self.repeat, rows))

    def _folded(self, rows: Bools, win_and_tie: WinAndTie) -> tuple[NDArray[np.int8], Tally]:
        judged = self.judged[rows]
        both = np.asarray(judged.all(axis=1), np.bool_)
        return fold(np.where(judged, self.outcome[rows], 0).astype(np.int8), both, win_and_tie)

    def verdicts(self, of: Bools | None = None) -> VerdictTable:
        """All verdicts, up to two per game; ``a`` is the agent whose answer was shown first. ``of`` selects games."""
        rows, ordered = np.nonzero(self.judged if of is None else self.judged & of[:, None])
        swapped = ordered == 1
        outcome_of_a = self.outcome[rows, ordered]
        first, second = np.where(swapped, self.b[rows], self.a[rows]), np.where(swapped, self.a[rows], self.b[rows])
        outcome = np.where(swapped, -outcome_of_a, outcome_of_a).astype(np.int8)
        agents, both = used(self.agents, np.concatenate([first, second]))
        queries, query = used(self.queries, self.query[rows])
        judges, judge = used(self.judges, self.judge[rows])
        preference = None
        if len(self.preference):
            of_a = self.preference[rows, ordered]
            preference = np.where(swapped, 1 - of_a, of_a)
        sides = both[: rows.size], both[rows.size :]
        repeat = rows_of(self.repeat, rows)
        table = VerdictTable(agents, *sides, outcome, queries, query, judges, judge, preference, repeat=repeat)
        return table.clustered(self.clusters)

    def rated(self, settings: RatingSettings, of: Bools | None = None) -> Games | None:
        """The games as the ratings use them; ``None`` if no game has a verdict. ``of`` selects games, by default all.

        Games scored by preferences become wins and losses of fractional weight.
        """
        verdicts = self.verdicts(of)
        from arena.ratings.rate import games_to_rate  # imported late: cached games need no fits

        return without_preferences(games_to_rate(verdicts, settings), by_query=True)[0] if len(verdicts) else None

    def points(self, win_and_tie: WinAndTie) -> Scores | None:
        """Each agent's share of points on each query, over all games, a tie counting half; ``None`` without repeats.

        It serves to compare an agent with itself: its repeats never meet, but each has met the others.
        """
        if self.repeat is None:
            return None
        score, shape = self.scores(win_and_tie), (self.repeats, len(self.agents), len(self.queries))
        known = ~np.isnan(score)
        cells = [
            ((self.repeat - 1) * shape[1] + side)[known].astype(np.int64) * shape[2] + self.query[known]
            for side in (self.a, self.b)
        ]
        points = np.concatenate([score[known], 1 - score[known]])
        number, total = (np.bincount(np.concatenate(cells), of, math.prod(shape)) for of in (None, points))
        repeats = np.where(number > 0, total / np.maximum(number, 1), np.nan).reshape(shape)
        columns = self.agents, self.queries, mean_of_repeats(repeats)
        return Scores("pairwise", *columns, clusters=self.clusters, repeats=repeats)

    def coverage(self) -> Coverage:
        wanted = self.outcome != NOT_WANTED
        judged, failed = int(self.judged.sum()), int((self.outcome == FAILED).sum())
        identical = int((self.judged & self.identical[:, None]).sum())
        return Coverage(int(wanted.sum()), judged, failed, int((self.outcome == WAITING).sum()), identical)

    @cached_property
    def judgments(self) -> NDArray[np.int64]:
        """Number of planned and of missing verdicts, shape (2, agents, queries); each order of a game needs one."""
        agents, queries = len(self.agents), len(self.queries)
        cells = np.concatenate([side.astype(np.int64) * queries + self.query for side in (self.a, self.b)])
        wanted, judged = (self.outcome != NOT_WANTED).sum(axis=1), self.judged.sum(axis=1)
        counts = [np.bincount(cells, np.tile(own, 2), agents * queries) for own in (wanted, wanted - judged)]
        return np.array(counts, np.int64).reshape(2, agents, queries)

    def coverage_by_name(self) -> Mapping[str, Mapping[str, tuple[int, int]]]:
        judged, wanted = self.judged.sum(axis=1), (self.outcome != NOT_WANTED).sum(axis=1)
        return {
            "judge": _sums(self.judges, [self.judge], judged, wanted),
            "agent": _sums(self.agents, [self.a, self.b], judged, wanted),
        }

    def coverage_by_query(self) -> Mapping[str, tuple[int, int]]:
        judged, wanted = self.judged.sum(axis=1), (self.outcome != NOT_WANTED).sum(axis=1)
        return _sums(self.queries, [self.query], judged, wanted)


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1


def _sums(names: Sequence[str], columns: Sequence[Int32s], *counts: NDArray[np.integer]) -> dict[str, tuple[int, int]]:
    judged, wanted = (
        np.bincount(np.concatenate(columns), np.tile(count, len(columns)), len(names)) for count in counts
    )
    return {name: (int(judged[code]), int(wanted[code])) for code, name in enumerate(names)}


PROBABILITIES: Final = {"p_a": Verdict.A.value, "p_b": Verdict.B.value, "p_tie": Verdict.TIE.value}
"""Columns of a table of verdicts with the judge's probabilities, and the verdict of each."""


def verdict_probabilities(judgment: Judgment) -> dict[str, float]:
    """The judge's probability of each verdict, by column of ``PROBABILITIES``; empty if the judgment has none."""
    from judges.providers.transformers import label_probabilities

    by_label = label_probabilities(judgment.reason)
    if not by_label or by_label.get(str(judgment.outcome)) != max(by_label.values()):
        return {}
    return {column: by_label.get(label, 0.0) for column, label in PROBABILITIES.items()}


def preference(judgment: Judgment) -> float | None:
    """Probability that the answer shown first is better, plus half that of a tie; ``None`` without probabilities."""
    probabilities = verdict_probabilities(judgment)
    total = sum(probabilities.values())
    return (probabilities["p_a"] + probabilities["p_tie"] / 2) / total if total else None


_OUTCOME_CODES: Final = {json.dumps(outcome.verdict): outcome for outcome in GameOutcome}
"""Outcome for the answer shown first, by the JSON text of the verdict in the store."""


def read_games(store: Store, tournament: str, data: Dataset | None = None) -> GameTable:
    """Read all games of a tournament; combines samples of a verdict and adds preferences if the settings use them.

    Args:
        data: the tournament's dataset, if it has been read already.

    Raises:
        InputError: there is no such tournament.
        StoreError: a verdict cannot be parsed.
    """
    settings = store.settings(tournament)
    queries = store.queries(tournament) if data is None else data.queries
    extra_columns = ["reason"] if settings.ratings.preferences == "soft" else []
    extra_columns += ["model"] if settings.hosted else []
    return games_of(store.games(tournament, extra_columns), settings, conversations(queries.values()))


def games_of(rows: RowColumns, settings: StoredSettings, clusters: Mapping[str, str] | None = None) -> GameTable:
    """Build the games, in the order of the plan, from rows with one sample of one order of a game each.

    Args:
        rows: columns from ``Store.games``, with ``reason`` if games are scored by preferences.
    """
    rows = rows.in_order_of("position")
    judges, (judge,) = rows.in_order("judge")
    queries, (query,) = rows.in_order("query")
    names, sides = rows.in_order("first", "second")
    agents, first, second, repeat = without_repeats(names, *sides)
    a, b, b_first = np.minimum(first, second), np.maximum(first, second), first > second
    limit = len(queries) * len(judges) * len(agents) ** 2
    key = ((query.astype(np.int64) * len(judges) + judge) * len(agents) + a) * len(agents) + b
    if repeat is not None:
        limit, key = limit * int(repeat.max()), key * int(repeat.max()) + repeat - 1
    start, game = first_of_each(key, limit)
    del key  # frees memory, as above
    plan_order = np.argsort(start)
    place = np.empty(start.size, np.int64)
    place[plan_order] = np.arange(start.size)
    start, slot = start[plan_order], 2 * place[game] + b_first  # a slot is one order of a game
    del game
    row_outcomes = _row_outcomes(rows)
    seen_from_a = np.where(b_first & (row_outcomes <= GameOutcome.FIRST), -row_outcomes, row_outcomes)
    counts = {
        outcome: np.bincount(slot[seen_from_a == outcome], minlength=2 * start.size).astype(np.int32)
        for outcome in (*GameOutcome, FAILED, WAITING)
    }
    sampled = bool(rows.numbers["sample"].any())
    slot_judge = np.repeat(judge[start], 2)
    slot_outcomes = _combined(counts, _combination_codes(judges, settings)[slot_judge] if sampled else None)
    identical = np.zeros(start.size, np.bool_)
    identical[slot[rows.numbers["identical"] > 0] // 2] = True
    return GameTable(
        agents,
        queries,
        judges,
        a[start],
        b[start],
        query[start],
        judge[start],
        slot_outcomes.reshape(-1, 2),
        identical,
        _preferences(rows, settings, slot, b_first, start.size) if "reason" in rows.names else np.empty((0, 2)),
        clusters or {},
        _causes(rows, row_outcomes, slot, slot_outcomes),
        _consistency(counts, slot_judge, judges) if sampled else {},
        _models(rows, settings),
        rows_of(repeat, start),
    )


def _models(rows: RowColumns, settings: StoredSettings) -> dict[str, dict[str, int]]:
    if "model" not in rows.names:
        return {}
    judges, models = rows.names["judge"], rows.names["model"]
    judged = rows.mapped("outcome", lambda name: name is not None) & rows.mapped("judge", settings.hosted.__contains__)
    judged &= rows.numbers["identical"] == 0  # no model was asked
    judge, model = (rows.numbers[name][judged] for name in ("judge", "model"))
    pairs, counts = np.unique(judge.astype(np.int64) * len(models) + model, return_counts=True)
    by_judge: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        by_judge[str(judges[pair // len(models)])][str(models[pair % len(models)])] = count
    return dict(by_judge)


def _row_outcomes(rows: RowColumns) -> NDArray[np.int8]:
    failed = rows.mapped("cause", lambda name: WAITING if name is None else FAILED, np.int8)
    verdict = rows.mapped("outcome", lambda name: NOT_WANTED if name is None else _OUTCOME_CODES[name], np.int8)
    return np.where(verdict == NOT_WANTED, failed, verdict).astype(np.int8)


def _combination_codes(judges: Iterable[str], settings: StoredSettings) -> Int32s:
    """How each judge's samples are combined, shape (judges,): 0 for ``majority``, 1 for ``median``, 2 for ``mean``."""
    combinations = settings.combinations
    return np.array(
        [("majority", "median", "mean").index(combinations.get(judge, "majority")) for judge in judges], np.int32
    )


def _combined(counts: Mapping[int, NDArray[np.integer]], codes: Int32s | None) -> NDArray[np.int8]:
    """Outcome of each order of each game, combined from its samples as ``combined`` does, shape (orders,).

    ``counts`` has the number of samples with each outcome. ``codes`` has each order's way of combining, from
    ``_combination_codes``; ``None`` if every order has a single sample.
    """
    wins, ties, losses = (counts[outcome] for outcome in (GameOutcome.FIRST, GameOutcome.TIE, GameOutcome.SECOND))
    verdict = (wins > np.maximum(ties, losses)).astype(np.int8) - (losses > np.maximum(ties, wins))
    judged = wins + ties + losses
    if codes is not None:
        lower, upper = (
            (index >= losses + ties).astype(np.int8) - (index < losses) for index in ((judged - 1) // 2, judged // 2)
        )
        verdict = np.choose(codes, [verdict, np.sign(lower + upper), np.sign(wins - losses)])
    failed, waiting = counts[FAILED], counts[WAITING]
    cases = [waiting > 0, judged < failed, judged > 0]
    return np.asarray(np.select(cases, [WAITING, FAILED, verdict], NOT_WANTED), np.int8)


def _causes(
    rows: RowColumns, row_outcomes: NDArray[np.int8], slot: NDArray[np.int64], slot_outcomes: NDArray[np.int8]
) -> dict[str, int]:
    """Number of failed orders of games by cause; among several failed samples, the first decides."""
    failing = np.flatnonzero((row_outcomes == FAILED) & (slot_outcomes[slot] == FAILED))
    _, firsts = np.unique(slot[failing], return_index=True)
    counts = Counter(rows.numbers["cause"][failing[firsts]].tolist())
    return {str(rows.names["cause"][code]): count for code, count in counts.items()}


def _consistency(
    counts: Mapping[int, NDArray[np.integer]], slot_judge: Int32s, judges: tuple[str, ...]
) -> dict[str, Consistency]:
    from arena.store.outcomes import Consistency

    tallies = np.array([counts[outcome] for outcome in (GameOutcome.FIRST, GameOutcome.TIE, GameOutcome.SECOND)])
    several = tallies.sum(axis=0) > 1
    pairs, equal, repeated = (
        np.bincount(slot_judge, weights, len(judges))
        for weights in (_pairs(tallies.sum(axis=0)), _pairs(tallies).sum(axis=0), several)
    )
    return {
        judges[code]: Consistency(float(equal[code] / pairs[code]), int(repeated[code]))
        for code in dict.fromkeys(slot_judge[several].tolist())
    }


def _pairs(number: NDArray[np.integer]) -> NDArray[np.integer]:
    return number * (number - 1) // 2


def _preferences(
    rows: RowColumns, settings: StoredSettings, slot: NDArray[np.int64], b_first: NDArray[np.bool_], games: int
) -> Floats:
    """Mean preference for ``a`` over the samples of each order, shape (games, 2), NaN if unknown; (0, 2) if all are."""
    probabilistic = rows.mapped("judge", lambda name: settings.gives_probabilities(str(name)))
    preferred = np.full(slot.size, np.nan)
    outcomes, reasons = rows.names["outcome"], rows.names["reason"]
    for row in np.flatnonzero(probabilistic).tolist():
        outcome = outcomes[rows.numbers["outcome"][row]]
        if outcome is not None:
            reason = reasons[rows.numbers["reason"][row]] or ""
            value = preference(Judgment("", json.loads(outcome), reason, "", ""))
            preferred[row] = np.nan if value is None else value
    known = ~np.isnan(preferred)
    if not known.any():
        return np.empty((0, 2))
    of_a = np.where(b_first, 1 - preferred, preferred)[known]
    number, total = (np.bincount(slot[known], weights, 2 * games) for weights in (None, of_a))
    means: Floats = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return means.reshape(-1, 2)
