"""Tables of verdicts, and their conversion to the games that ratings use.

``tabulate`` checks verdicts once and turns them into arrays. ``reconcile`` merges the two orders of a game into one
outcome. ``as_games`` makes one game per verdict, which keeps the order shown and so allows a position term.

The score of a game may be a preference, the probability that an answer is the better one, so that 0.51 and 0.99 differ.
Elo uses the preference as the score. In the Bradley-Terry likelihood a game counts as p of a win and 1 - p of a loss,
so that a tie, 0.5, is half a win for each (a fractional response: Papke and Wooldridge 1996, Journal of Applied
Econometrics 11).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from judges.errors import InputError
from judges.types import GAME_OUTCOMES, GameOutcome, Verdict, repeat_name, repeat_of
from retrieval_eval.stats import Floats, Int32s

WinAndTie: TypeAlias = Literal["tie", "win"]
Unit: TypeAlias = Literal["query", "conversation", "game"]
"""Kind of unit with independent results: intervals cluster by it, the bootstrap draws it, fragility removes it."""

NO_SPREAD: Final = 1e-3
"""A standard error below this many points is numerical noise: the results do not vary between games."""

_VERDICTS = {outcome.value: outcome.verdict for outcome in GameOutcome}


class GameVerdict(Struct, frozen=True):
    """One verdict on one game: the judge saw ``agent_a`` first and ``agent_b`` second.

    Attributes:
        query_id: the query, or ``None`` if unknown; verdicts on one query depend on each other.
        verdict: A if the answer shown first won, B if the second won, TIE otherwise.
        preference: probability that the answer shown first is the better one, plus half the probability of a tie;
            ``None`` if the judge gives no probabilities.
    """

    query_id: str | None
    agent_a: str
    agent_b: str
    verdict: Verdict
    judge: str = ""
    preference: float | None = None


class VerdictTable(Struct, frozen=True, eq=False, dict=True):
    """Verdicts as columns of equal length. Names are numbered in sorted order, whatever the order of verdicts.

    Attributes:
        agents: names, sorted; ``a`` (shown first) and ``b`` (shown second) index them.
        queries: names, sorted, or ``None`` if the verdicts have no query; ``query`` indexes them.
        judges: names, sorted; ``judge`` indexes them.
        outcome: 1 if the answer shown first won, 0 for a tie, -1 if the second won.
        preference: preference for the answer shown first, 0 to 1; NaN for a verdict without a preference; ``None`` if
            no verdict has one.
        clusters: the cluster of each of ``queries``, such as its conversation; verdicts within a cluster depend on each
            other. ``None`` if each query is a cluster.
        unit: kind of the clusters; a topic or another column counts as ``query``.
        repeat: number of the repeat, see ``judges.types.repeat_of``; ``None`` if all answers are the first. The repeats
            of a query are games of their own in its cluster.
        weight: number of games that each verdict counts as, fractions allowed; ``None`` counts each once.
    """

    agents: tuple[str, ...]
    a: Int32s
    b: Int32s
    outcome: NDArray[np.int8]
    queries: tuple[str, ...] | None
    query: Int32s | None
    judges: tuple[str, ...]
    judge: Int32s
    preference: Floats | None = None
    clusters: tuple[str, ...] | None = None
    unit: Unit = "query"
    weight: Floats | None = None
    repeat: Int32s | None = None

    def __len__(self) -> int:
        return self.a.size

    def clustered(self, clusters: Mapping[str, str], unit: Unit = "conversation") -> VerdictTable:
        """The same verdicts with clusters from ``clusters``, by query; a query without an entry is its own cluster."""
        names = tuple(clusters.get(name, name) for name in self.queries or ())
        if names == (self.queries or ()):
            return replace(self, clusters=None, unit="query")
        return replace(self, clusters=names, unit=unit)

    @cached_property
    def units(self) -> tuple[tuple[str, ...], Int32s]:
        """Names of the clusters, and the cluster number of each query, shape (queries,)."""
        queries = self.queries or ()
        return (queries, np.arange(len(queries), dtype=np.int32)) if self.clusters is None else codes_of(self.clusters)

    @cached_property
    def cluster(self) -> Int32s | None:
        """Cluster number of each verdict, shape (n,); intervals and tests treat clusters as independent."""
        return self.query if self.query is None or self.clusters is None else self.units[1][self.query]

    @cached_property
    def pairs(self) -> Pairs:
        """Verdicts grouped by query, judge and unordered pair; an ``InputError`` if they do not name their query."""
        if self.query is None:
            raise InputError(
                "the two orders of a game are matched by query: give all verdicts a query_id, or count each as one game"
            )
        low, high, size = np.minimum(self.a, self.b), np.maximum(self.a, self.b), len(self.agents)
        limit = len(self.queries or ()) * len(self.judges) * size**2 * _repeats(self)
        first, game = first_of_each(_key(self, self.query, low, high), limit)
        return Pairs(first, game, low[first], high[first])

    @cached_property
    def by_order(self) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        """Majority outcome of each of ``pairs`` in both orders, and whether there is a verdict; shapes (games, 2).

        The first column is the order with the lower-numbered agent first. Outcomes are that agent's: 1, 0 or -1, and 0
        if the order is missing.
        """
        lower_second, groups = self.a > self.b, self.pairs.first.size
        slot = 2 * self.pairs.game + lower_second
        outcome = np.where(lower_second, -self.outcome, self.outcome)
        wins, ties, losses = (np.bincount(slot[outcome == value], minlength=2 * groups) for value in (1, 0, -1))
        majority = (wins > np.maximum(ties, losses)).astype(np.int8) - (losses > np.maximum(ties, wins))
        present = (wins + ties + losses > 0).reshape(groups, 2)
        return majority.astype(np.int8).reshape(groups, 2), present

    def each(self) -> Iterator[GameVerdict]:
        queries = itertools.repeat(None) if self.query is None else map((self.queries or ()).__getitem__, self.query)
        preferences = itertools.repeat(None) if self.preference is None else self.preference.tolist()
        sides = [map(self.agents.__getitem__, side.tolist()) for side in (self.a, self.b)]
        if self.repeat is not None:
            sides = [map(repeat_name, side, self.repeat.tolist()) for side in sides]
        outcomes, judges = map(_VERDICTS.__getitem__, self.outcome.tolist()), map(self.judges.__getitem__, self.judge)
        for query_id, a, b, verdict, judge, preference in zip(
            queries, *sides, outcomes, judges, preferences, strict=False
        ):
            yield GameVerdict(
                query_id, a, b, verdict, judge, None if preference is None or math.isnan(preference) else preference
            )

    def of(self, rows: NDArray[np.bool_]) -> VerdictTable:
        """A table of the chosen rows, with only the agents and judges that occur there; queries keep their numbers."""
        agents, codes = used(self.agents, np.concatenate([self.a[rows], self.b[rows]]))
        judges, judge = used(self.judges, self.judge[rows])
        a, b = np.split(codes, 2)
        query = None if self.query is None else self.query[rows]
        preference = None if self.preference is None else self.preference[rows]
        columns = agents, a, b, self.outcome[rows], self.queries, query, judges, judge, preference
        weight = None if self.weight is None else self.weight[rows]
        return VerdictTable(*columns, self.clusters, self.unit, weight, rows_of(self.repeat, rows))

    def weight_of_pairs(self) -> Floats | None:
        """Mean weight of the verdicts of each of ``pairs``."""
        if self.weight is None:
            return None
        weights: Floats = np.bincount(self.pairs.game, self.weight) / np.bincount(self.pairs.game)
        return weights

    def preferences(self) -> Floats:
        """Preference for the answer shown first, shape (n,); if the judge gave none, 1, 0.5 or 0 by the verdict."""
        by_verdict = _score(self.outcome)
        if self.preference is None:
            return by_verdict
        return np.where(np.isnan(self.preference), by_verdict, self.preference)


class Tally(Struct, frozen=True):
    """Counts of the verdicts that were converted to games, and of the games.

    Attributes:
        repeated: number of verdicts with the same query, judge, pair and order as an earlier verdict.
        both_orders: games judged in both orders: the sum of agreements, contradictions and ``win_and_tie``.
        single_order: games judged in one order only; its verdict counts.
        agreements, contradictions: games with the same outcome in both orders, and games in which each order prefers
            another agent, which count as ties. These and ``win_and_tie`` are 0 if preferences are averaged over orders.
        win_and_tie: games with a winner in one order and a tie in the other; the setting of that name decides.
    """

    verdicts: int
    games: int
    repeated: int = 0
    both_orders: int = 0
    single_order: int = 0
    agreements: int = 0
    contradictions: int = 0
    win_and_tie: int = 0


class Games(Struct, frozen=True, eq=False):
    """Games as columns, one row each; a ``ValueError`` if columns differ in length or have invalid values.

    Attributes:
        agents: names; ``a`` and ``b`` index them.
        a, b: the two agents of each game, int32, shape (n,).
        score: score of ``a``: 1 win, 0.5 tie, 0 loss, shape (n,).
        cluster: number of each game's query or conversation, shape (n,); ``None`` if unknown.
        a_shown_first: whether ``a`` was shown first in every game; ``False`` if the order shown is not known.
        weight: number of games that each row counts as, fractions allowed, shape (n,); ``None`` counts each row once.
        tally: counts of the verdicts that the games come from; ``None`` if there were no verdicts.
        soft: whether scores are preferences between 0 and 1.
        judge: number of each game's judge, shape (n,); ``None`` if unknown.
        repeat: number of the repeat, from 1, shape (n,); ``None`` if all answers are the first.
    """

    agents: tuple[str, ...]
    a: Int32s
    b: Int32s
    score: Floats
    cluster: Int32s | None = None
    a_shown_first: bool = False
    weight: Floats | None = None
    tally: Tally | None = None
    soft: bool = False
    judge: Int32s | None = None
    repeat: Int32s | None = None

    def __post_init__(self) -> None:
        optional = (self.cluster, self.weight, self.judge, self.repeat)
        columns = [self.a, self.b, self.score, *(column for column in optional if column is not None)]
        if any(column.shape != (self.a.size,) for column in columns):
            raise ValueError(f"columns of games differ in shape: {[column.shape for column in columns]}")
        if len(set(self.agents)) != len(self.agents):
            raise ValueError("agent names repeat")
        if self.a.size == 0:
            return
        if min(self.a.min(), self.b.min()) < 0 or max(self.a.max(), self.b.max()) >= len(self.agents):
            raise ValueError(f"agent numbers must lie in 0..{len(self.agents) - 1}")
        if (self.a == self.b).any():
            raise ValueError("an agent cannot play itself")
        if self.soft and not ((self.score >= 0) & (self.score <= 1)).all():
            raise ValueError("preferences must lie in 0..1")
        if not self.soft and not np.isin(self.score, (0.0, 0.5, 1.0)).all():
            raise ValueError("scores must be 1, 0.5 or 0")
        if self.weight is not None and not (np.isfinite(self.weight) & (self.weight >= 0)).all():
            raise ValueError("weights must be finite and not negative")

    def __len__(self) -> int:
        return self.a.size

    @property
    def weights(self) -> Floats:
        """Number of games that each row counts as, shape (n,)."""
        return np.ones(self.a.size) if self.weight is None else self.weight

    @property
    def are_whole(self) -> bool:
        return self.weight is None or bool((self.weight == np.floor(self.weight)).all())

    def twice(self) -> NDArray[np.int8]:
        """Twice the score of ``a``: 2, 1 or 0, shape (n,); a ``ValueError`` if scores are preferences."""
        if self.soft:
            raise ValueError("scores are preferences: convert them to wins and losses by without_preferences() first")
        return (2 * self.score).astype(np.int8)

    def per_agent(self) -> Floats:
        """Weighted number of games of each agent, shape (agents,)."""
        size = len(self.agents)
        return (np.bincount(self.a, self.weights, size) + np.bincount(self.b, self.weights, size)).astype(np.float64)


def used(names: tuple[str, ...], codes: NDArray[np.integer]) -> tuple[tuple[str, ...], Int32s]:
    """The names whose numbers occur in ``codes``, and ``codes`` renumbered to index only these names."""
    is_used = np.zeros(len(names), np.bool_)
    is_used[codes] = True
    return tuple(names[code] for code in np.flatnonzero(is_used)), (np.cumsum(is_used, dtype=np.int32) - 1)[codes]


def tabulate(verdicts: Iterable[GameVerdict] | VerdictTable) -> VerdictTable:
    """Check verdicts and convert them to columns, in the order given; returns a ``VerdictTable`` unchanged.

    Raises:
        InputError: there are no verdicts, a name is empty or missing, an agent plays itself, a verdict is not A, B or
            TIE, a preference is outside 0 to 1, or only some verdicts name their query.
    """
    if isinstance(verdicts, VerdictTable):
        return verdicts
    rows = list(verdicts)
    if not rows:
        raise InputError("there are no verdicts to rate: give at least one verdict")
    for number, row in enumerate(rows, start=1):
        _check(row, number)
    agents, codes = codes_of([row.agent_a for row in rows] + [row.agent_b for row in rows])
    agents, first, second, repeat = without_repeats(agents, codes[: len(rows)], codes[len(rows) :])
    judges, judge = codes_of([row.judge for row in rows])
    queries, query = _query_column(rows)
    outcome = np.fromiter((GAME_OUTCOMES[row.verdict] for row in rows), np.int8, len(rows))
    preference = None
    if any(row.preference is not None for row in rows):
        preference = np.array([np.nan if row.preference is None else row.preference for row in rows])
    return VerdictTable(agents, first, second, outcome, queries, query, judges, judge, preference, repeat=repeat)


def without_repeats(
    names: tuple[str, ...], first: Int32s, second: Int32s
) -> tuple[tuple[str, ...], Int32s, Int32s, Int32s | None]:
    """The agents of ``names`` (see ``repeat_of``), the two of each game, and its repeat; ``None`` if all are the first.

    Raises:
        InputError: different repeats met, or an agent met itself.
    """
    parts = [repeat_of(name) for name in names]
    if all(repeat == 1 for _, repeat in parts):
        return names, first, second, None
    agents, code = codes_of([agent for agent, _ in parts])
    repeat = np.array([repeat for _, repeat in parts], np.int32)
    if (different := repeat[first] != repeat[second]).any():
        row = int(different.argmax())
        pair = f"{names[first[row]]!r} met {names[second[row]]!r}"
        raise InputError(f"{pair}: games pair the same repeat of two agents; leave such games out")
    return agents, code[first], code[second], repeat[first]


def as_games(verdicts: Iterable[GameVerdict] | VerdictTable, *, soft: bool = False) -> Games:
    """One game per verdict, in the order given; ``a`` is the agent shown first.

    With ``soft`` the score is the judge's preference instead of its verdict.
    """
    table = tabulate(verdicts)
    repeated = 0
    if table.query is not None:
        limit = len(table.queries or ()) * len(table.judges) * len(table.agents) ** 2 * _repeats(table)
        repeated = len(table) - number_distinct(_key(table, table.query, table.a, table.b), limit)
    tally = Tally(verdicts=len(table), games=len(table), repeated=repeated)
    score = table.preferences() if soft else _score(table.outcome)
    columns = table.agents, table.a, table.b, score, table.cluster
    return Games(*columns, True, table.weight, tally=tally, soft=soft, judge=table.judge, repeat=table.repeat)


def reconcile(verdicts: Iterable[GameVerdict] | VerdictTable, *, win_and_tie: WinAndTie = "tie") -> Games:
    """Merge the verdicts on the same query, judge and unordered pair into one game; games are sorted by these three.

    A game has the outcome of its orders if these agree. A win in one order and a tie in the other gives the value of
    ``win_and_tie``; opposite winners give a tie. If only one order was judged, it decides alone. Several verdicts on
    the same order count as one: the most frequent outcome, or a tie if none is most frequent. Verdicts without a query
    raise an ``InputError``, since the two orders of a game cannot be matched.
    """
    table = tabulate(verdicts)
    pairs = table.pairs
    outcome, tally = fold_pairs(table, win_and_tie)
    cluster = None if table.cluster is None else table.cluster[pairs.first]
    judge, repeat = table.judge[pairs.first], rows_of(table.repeat, pairs.first)
    columns = table.agents, pairs.low, pairs.high, _score(outcome), cluster
    return Games(*columns, weight=table.weight_of_pairs(), tally=tally, judge=judge, repeat=repeat)


def rows_of(column: Int32s | None, rows: NDArray[Any]) -> Int32s | None:
    return None if column is None else column[rows]


class Pairs(NamedTuple):
    """Verdicts grouped by query, judge and unordered pair.

    Attributes:
        first: row of the first verdict of each group.
        game: number of each verdict's group.
        low, high: the two agents of each group, low < high.
    """

    first: NDArray[np.intp]
    game: NDArray[np.intp]
    low: Int32s
    high: Int32s


def fold_pairs(table: VerdictTable, win_and_tie: WinAndTie) -> tuple[NDArray[np.int8], Tally]:
    """Outcome of each of the table's ``pairs`` for its lower-numbered agent, and the counts of verdicts and games."""
    outcome, present = table.by_order
    return fold(outcome, present[:, 0] & present[:, 1], win_and_tie, repeated=len(table) - int(present.sum()))


def fold(
    by_order: NDArray[np.int8], both: NDArray[np.bool_], win_and_tie: WinAndTie, *, repeated: int = 0
) -> tuple[NDArray[np.int8], Tally]:
    """Merge the outcomes of the two orders of each game; returns the games' outcomes, and counts of verdicts and games.

    ``by_order`` has the outcomes for one agent of each game when shown first and when shown second: 1, 0 or -1, and 0
    if the order is missing; shape (games, 2). ``both`` says which games have both orders, shape (games,).
    """
    forward, backward = by_order[:, 0], by_order[:, 1]
    # An absent order has outcome 0, so the sum is the single verdict, or 0 for ties and contradictions.
    outcome = np.sign(forward + backward).astype(np.int8)
    agree = both & (forward == backward)
    contradict = both & (forward * backward == -1)
    mixed = both & ~agree & ~contradict
    if win_and_tie == "tie":
        outcome[mixed] = 0
    tally = Tally(
        verdicts=both.size + int(both.sum()) + repeated,
        games=both.size,
        repeated=repeated,
        both_orders=int(both.sum()),
        single_order=int((~both).sum()),
        agreements=int(agree.sum()),
        contradictions=int(contradict.sum()),
        win_and_tie=int(mixed.sum()),
    )
    return outcome, tally


def _key(table: VerdictTable, query: Int32s, left: Int32s, right: Int32s) -> NDArray[np.int64]:
    """A number for each verdict's query, judge, pair of agents and repeat, which sorts by these in this order."""
    size = len(table.agents)
    key = ((query.astype(np.int64) * len(table.judges) + table.judge) * size + left) * size + right
    return key if table.repeat is None else key * _repeats(table) + table.repeat - 1


def _repeats(table: VerdictTable) -> int:
    return 1 if table.repeat is None else int(table.repeat.max(initial=1))


def distinct(numbers: NDArray[Any], limit: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The distinct values of ``numbers`` (all below ``limit``), sorted, and the index of each number among them.

    Uses a lookup table instead of sorting if ``limit`` is small.
    """
    if limit > _largest_table(numbers.size):
        values, index = np.unique(numbers, return_inverse=True)
        return values.astype(np.int64), index
    occurs = _occurrences(numbers, limit)
    return np.flatnonzero(occurs), (np.cumsum(occurs, dtype=np.int32) - 1)[numbers].astype(np.intp)


def first_of_each(numbers: NDArray[Any], limit: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The index of each distinct number's first occurrence, and each number's index among the distinct numbers."""
    values, index = distinct(numbers, limit)
    first = np.empty(values.size, np.intp)
    first[index[::-1]] = np.arange(numbers.size - 1, -1, -1)
    return first, index


def number_distinct(numbers: NDArray[Any], limit: int) -> int:
    if limit > _largest_table(numbers.size):
        return int(np.count_nonzero(np.diff(np.sort(numbers), prepend=-1)))
    return int(np.count_nonzero(_occurrences(numbers, limit)))


def _occurrences(numbers: NDArray[Any], limit: int) -> NDArray[np.bool_]:
    occurs = np.zeros(limit, np.bool_)
    occurs[numbers] = True
    return occurs


def _largest_table(games: int) -> int:
    """Largest size of a lookup table that is faster than sorting, for this many games."""
    return 8 * games + 1_000_000


def _score(outcome: NDArray[np.int8]) -> Floats:
    return (outcome + 1) / 2


def _check(row: GameVerdict, number: int) -> None:
    for name in (row.agent_a, row.agent_b):
        if not _is_name(name):
            raise InputError(f"verdict {number}: an agent's name is empty or missing ({name!r}): name both agents")
    if row.agent_a == row.agent_b:
        raise InputError(f"verdict {number}: agent {row.agent_a!r} plays itself: a game needs two different agents")
    if row.verdict not in GAME_OUTCOMES:
        raise InputError(f"verdict {number}: the verdict {row.verdict!r} is not A, B or TIE")
    if row.preference is not None and not 0 <= row.preference <= 1:
        raise InputError(
            f"verdict {number}: the preference {row.preference!r} is not a probability: give a number from 0 to 1"
        )
    if not isinstance(row.judge, str):
        raise InputError(f"verdict {number}: the judge's name must be text, not {row.judge!r}")


def _query_column(rows: Sequence[GameVerdict]) -> tuple[tuple[str, ...] | None, Int32s | None]:
    query_ids = {name for name in {row.query_id for row in rows} if name is not None and _is_name(name)}
    names = [row.query_id for row in rows if row.query_id in query_ids]
    if not names:
        return None, None
    if len(names) < len(rows):
        raise InputError(
            f"{len(rows) - len(names)} of {len(rows)} verdicts have no query_id: give all of them one, or none"
        )
    return codes_of(names)


def _is_name(name: object) -> bool:
    """Whether a name is a string that is not blank; in pandas tables, missing names are NaN."""
    return isinstance(name, str) and bool(name.strip())


def codes_of(names: Sequence[str]) -> tuple[tuple[str, ...], Int32s]:
    """Sorted distinct names, and the index of each name among them."""
    labels = tuple(sorted(set(names)))
    number = {name: code for code, name in enumerate(labels)}
    return labels, np.fromiter((number[name] for name in names), np.int32, len(names))


def average(table: VerdictTable) -> Games:
    """Merge the verdicts on the same query, judge and unordered pair into one game, scored by their mean preference.

    The score is the mean of the two orders, and that of an order is the mean over its verdicts. Games are sorted as in
    ``reconcile``. Verdicts without a query raise an ``InputError``.
    """
    pairs = table.pairs
    lower_second = table.a > table.b
    score = np.where(lower_second, 1 - table.preferences(), table.preferences())
    slot, slots = 2 * pairs.game + lower_second, 2 * pairs.first.size
    counts, sums = (np.bincount(slot, weights, slots).reshape(-1, 2) for weights in (None, score))
    present = counts > 0
    means = (sums / np.maximum(counts, 1)).sum(axis=1) / present.sum(axis=1)
    in_both_orders = int(present.all(axis=1).sum())
    tally = Tally(
        verdicts=len(table),
        games=means.size,
        repeated=len(table) - int(present.sum()),
        both_orders=in_both_orders,
        single_order=means.size - in_both_orders,
    )
    cluster = None if table.cluster is None else table.cluster[pairs.first]
    judge, repeat = table.judge[pairs.first], rows_of(table.repeat, pairs.first)
    columns = table.agents, pairs.low, pairs.high, np.clip(means, 0, 1), cluster
    return Games(*columns, weight=table.weight_of_pairs(), tally=tally, soft=True, judge=judge, repeat=repeat)


def without_preferences(games: Games, *, by_query: bool) -> tuple[Games, NDArray[np.intp] | None, bool]:
    """Split each game with a preference p into a win of weight p and a loss of weight 1 - p.

    Preferences of 0, 0.5 (a tie) and 1 stay one row. The added losses follow after all other rows. ``by_query`` says
    whether verdicts on one query depend on each other.

    Returns:
        The new games; for each, its row in ``games``, or ``None`` if the games have no preferences; and whether to
        cluster the new games, which also keeps the two parts of a split game together.
    """
    if not games.soft:
        return games, None, by_query
    clustered = by_query and games.cluster is not None
    cluster = games.cluster if clustered and games.cluster is not None else np.arange(len(games), dtype=np.int32)
    fractional = np.flatnonzero(~np.isin(games.score, (0.0, 0.5, 1.0)))
    rows = np.concatenate([np.arange(len(games)), fractional])
    score, weight = games.score[rows], games.weights[rows]
    weight[fractional] *= games.score[fractional]
    weight[len(games) :] *= 1 - games.score[fractional]
    score[fractional], score[len(games) :] = 1.0, 0.0
    sides = games.a[rows], games.b[rows]
    columns = games.agents, *sides, score, cluster[rows], games.a_shown_first, weight, games.tally
    parts = Games(*columns, judge=rows_of(games.judge, rows), repeat=rows_of(games.repeat, rows))
    return parts, rows, True
