"""One value of many: the two orders of a game, and several people; whether the place of an answer sways a judge.

What several people together say is their majority, or what a model of their reliability makes most likely: in Dawid and
Skene (1979, Applied Statistics 28) every rater has a confusion matrix, the chance of each label given the true one;
true labels and matrices are fitted together by expectation maximisation, from the majority on. A prior of 0.1 virtual
votes in each cell of a matrix keeps few votes from making a rater certain.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena.calibration.votes import ItemKey, Opinion, Values, by_item, by_rater
from arena.ratings.games import Games, VerdictTable, codes_of
from arena.ratings.health import both_orders
from arena.ratings.judges import JudgedGames, judged_games
from retrieval_eval.stats.arrays import Floats, Int32s
from retrieval_eval.stats.bootstrap import share_estimate
from retrieval_eval.stats.estimate import Estimate

ConsensusMethod: TypeAlias = Literal["majority", "dawid-skene"]

_MAX_ITERATIONS = 1000
_TOLERANCE = 1e-6
_PRIOR_VOTES = 0.1


class Reliability(Struct, frozen=True):
    """One rater in the model: the chance that it gives a thing's true label, and how many votes say so."""

    rater: str
    votes: int
    accuracy: float


class Consensus(Struct, frozen=True):
    """One value for each thing.

    Attributes:
        method: how it came about.
        values: by query and thing.
        numbers: the same, but the mean of the labels that lead where several do: what means and differences are made
            of, which the lowest label would bias.
        contested: things on which no value leads; a tie of verdicts, the lowest of labels.
        raters: of the model, the least reliable first; empty for the majority.
        iterations, converged: how the fit ended, ``None`` for the majority.
    """

    method: ConsensusMethod
    values: Mapping[str, Mapping[ItemKey, float]]
    numbers: Mapping[str, Mapping[ItemKey, float]]
    contested: int = 0
    raters: tuple[Reliability, ...] = ()
    iterations: int | None = None
    converged: bool | None = None


def consensus(opinions: Iterable[Opinion], method: ConsensusMethod, *, mirrored: bool = False) -> Consensus:
    """One value of many.

    Where it is ``mirrored``, values are verdicts, 1 and -1 for the two sides.
    """
    votes = list(opinions)
    return dawid_skene(votes, mirrored=mirrored) if method == "dawid-skene" else majority(votes, mirrored=mirrored)


def majority(opinions: Iterable[Opinion], *, mirrored: bool = False) -> Consensus:
    """The value that most raters gave, a tie being a verdict too; where several lead, a tie or the lowest label."""
    leading: dict[tuple[str, ItemKey], Sequence[float]] = {}
    for query_id, things in by_item(opinions).items():
        for item, own in things.items():
            counts = Counter(one.value for one in own)
            leading[query_id, item] = [value for value, times in counts.items() if times == max(counts.values())]
    return Consensus("majority", *_settled(leading, mirrored=mirrored))


def _settled(leading: Mapping[tuple[str, ItemKey], Sequence[float]], *, mirrored: bool) -> tuple[Values, Values, int]:
    """``values``, ``numbers`` and ``contested``, from the values that lead on each thing."""
    values: dict[str, dict[ItemKey, float]] = {}
    numbers: dict[str, dict[ItemKey, float]] = {}
    for (query_id, item), own in leading.items():
        values.setdefault(query_id, {})[item] = own[0] if len(own) == 1 else 0.0 if mirrored else min(own)
        numbers.setdefault(query_id, {})[item] = values[query_id][item] if mirrored else sum(own) / len(own)
    return values, numbers, sum(len(own) > 1 for own in leading.values())


def dawid_skene(opinions: Sequence[Opinion], *, mirrored: bool = False, prior_votes: float = _PRIOR_VOTES) -> Consensus:
    """The most likely value of each thing under the model.

    Args:
        opinions: of people.
        mirrored: values are verdicts; raters then err alike for both sides.
        prior_votes: virtual votes in each cell of each rater's matrix, so that few votes do not make a rater certain.
    """
    things = list(dict.fromkeys((one.query_id, one.item) for one in opinions))
    raters = sorted({one.rater for one in opinions})
    given = {one.value for one in opinions}
    labels = sorted(given | {-value for value in given}) if mirrored else sorted(given)
    votes = _numbered(opinions, things, raters, labels)
    fit = _fit(votes, (len(things), len(raters), len(labels)), prior_votes, mirrored=mirrored)
    leading = {
        thing: [label for label, chance in zip(labels, chances, strict=True) if chance > chances.max() - 1e-9]
        for thing, chances in zip(things, fit.truth, strict=True)
    }
    right = np.einsum("k,rkk->r", fit.shares, fit.confusion)
    counts = np.bincount(votes[1], minlength=len(raters))
    found = [Reliability(*one) for one in zip(raters, counts.tolist(), right.tolist(), strict=True)]
    order = tuple(sorted(found, key=lambda one: one.accuracy))
    return Consensus("dawid-skene", *_settled(leading, mirrored=mirrored), order, fit.iterations, fit.converged)


Votes: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Numbers of thing, rater and label of each vote."""


def _numbered(
    opinions: Sequence[Opinion], things: Sequence[tuple[str, ItemKey]], raters: Sequence[str], labels: Sequence[float]
) -> Votes:
    thing, rater, label = ({name: at for at, name in enumerate(names)} for names in (things, raters, labels))
    rows = [(thing[one.query_id, one.item], rater[one.rater], label[one.value]) for one in opinions]
    columns = np.array(rows, np.int64).reshape(len(rows), 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


class _Fit(Struct, frozen=True, eq=False):
    """``truth`` (things, labels), ``confusion`` (raters, true, given), ``shares`` (labels)."""

    truth: Floats
    confusion: Floats
    shares: Floats
    iterations: int
    converged: bool


def _fit(votes: Votes, shape: tuple[int, int, int], prior_votes: float, *, mirrored: bool) -> _Fit:
    thing, rater, label = votes
    things, raters, labels = shape
    truth = np.zeros((things, labels))
    np.add.at(truth, (thing, label), 1.0)
    truth /= truth.sum(axis=1, keepdims=True)
    change, iterations = np.inf, 0
    while True:
        confusion = np.zeros((raters, labels, labels))
        np.add.at(confusion.transpose(0, 2, 1), (rater, label), truth[thing])
        shares = truth.mean(axis=0)
        if mirrored:
            confusion, shares = confusion + confusion[:, ::-1, ::-1], (shares + shares[::-1]) / 2
        confusion += prior_votes
        confusion /= confusion.sum(axis=2, keepdims=True)
        if change < _TOLERANCE or iterations == _MAX_ITERATIONS:
            return _Fit(truth, confusion, shares, iterations, change < _TOLERANCE)
        with np.errstate(divide="ignore"):
            likelihood = np.tile(np.log(shares), (things, 1))
        np.add.at(likelihood, thing, np.log(confusion)[rater, :, label])
        updated = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        updated /= updated.sum(axis=1, keepdims=True)
        change, truth, iterations = float(np.abs(updated - truth).max()), updated, iterations + 1


class OrderHealth(Struct, frozen=True):
    """What one rater's verdicts say about places.

    Attributes:
        verdicts: how many.
        tie_rate: share of ties.
        both_orders: games judged in both orders.
        order_agreement: share of them with the same outcome in both; interval clustered by query, as all here.
        first_share: share of decided verdicts won by the answer shown first; 0.5 without a liking for places, where
            each agent is shown first as often as second.
    """

    verdicts: int
    tie_rate: float
    both_orders: int
    order_agreement: Estimate
    first_share: Estimate


def settled(said: Sequence[Opinion], *, verdicts: bool, ordered: bool = False) -> list[Opinion]:
    """One opinion of each rater on each thing: orders reconciled as for ratings; of other repeats the last one.

    Args:
        said: everything they said.
        verdicts: whether these are verdicts.
        ordered: each order of a game is a thing of its own; of several verdicts on one order most decide, as ever.
    """
    if not said:
        return []
    if verdicts and ordered:
        return [
            Opinion(query_id, item, rater, value)
            for rater in sorted({one.rater for one in said})
            for query_id, things in majority((one for one in said if one.rater == rater), mirrored=True).values.items()
            for item, value in things.items()
        ]
    if not verdicts:
        return [
            Opinion(query_id, item, rater, value)
            for rater, values in by_rater(said).items()
            for query_id, things in values.items()
            for item, value in things.items()
        ]
    games, names, raters, agents = _games(said)
    return [
        Opinion(query_id, (*further, agents[a], agents[b]), raters[rater], float(outcome))
        for (query_id, further), rater, a, b, outcome in zip(
            (names[query] for query in games.query), games.judge, games.a, games.b, games.outcome, strict=True
        )
    ]


def as_shown(said: Sequence[Opinion]) -> list[Opinion]:
    """Verdicts on games in the order shown, or written where nobody knows it: ``item`` names them so."""
    return [
        one._replace(item=(*one.item[:-2], one.item[-1], one.item[-2]), value=-one.value or 0.0, swapped=False)
        if one.swapped
        else one
        for one in said
    ]


def games_of(opinions: Sequence[Opinion]) -> tuple[Games, tuple[str, ...]]:
    """Verdicts, one of each rater on each game, as games; and the queries that their clusters number."""
    agents = tuple(sorted({name for one in opinions for name in one.item[-2:]}))
    place = {name: at for at, name in enumerate(agents)}
    queries = tuple(sorted({one.query_id for one in opinions}))
    number = {name: at for at, name in enumerate(queries)}
    games = Games(
        agents,
        np.array([place[one.item[-2]] for one in opinions], np.int32),
        np.array([place[one.item[-1]] for one in opinions], np.int32),
        np.array([(1 + one.value) / 2 for one in opinions]),
        np.array([number[one.query_id] for one in opinions], np.int32),
    )
    return games, queries


def values_of(settled_opinions: Sequence[Opinion]) -> Values:
    """One rater's opinions as values."""
    return {
        query_id: {item: own[0].value for item, own in things.items()}
        for query_id, things in by_item(settled_opinions).items()
    }


def order_health(said: Sequence[Opinion]) -> OrderHealth | None:
    """Places in these verdicts, whoever's; ``None`` where none is known of whose answer was shown first."""
    placed = [one for one in said if one.placed]
    if not placed:
        return None
    table = _table(placed, [""] * len(placed))
    _, unit = np.unique([query_id for query_id, _ in _things(table)], return_inverse=True)
    return table_health(table, unit.astype(np.int32))


def table_health(table: VerdictTable, unit: Int32s | None = None) -> OrderHealth:
    """Places in the verdicts of one judge.

    Args:
        table: of that judge alone.
        unit: the independent unit of each of the table's queries, shape (queries,); its clusters if absent.
    """
    assert table.query is not None
    of_query = table.units[1] if unit is None else unit
    decided = table.outcome != 0
    agree, query = both_orders(table)
    return OrderHealth(
        verdicts=len(table),
        tie_rate=1 - int(decided.sum()) / len(table),
        both_orders=agree.size,
        order_agreement=_share(agree, of_query[query]),
        first_share=_share(table.outcome[decided] > 0, of_query[table.query[decided]]),
    )


def _share(part: NDArray[np.bool_], unit: NDArray[np.integer]) -> Estimate:
    return share_estimate(np.bincount(unit, part), np.bincount(unit))


def _games(
    said: Sequence[Opinion],
) -> tuple[JudgedGames, list[tuple[str, tuple[str, ...]]], tuple[str, ...], tuple[str, ...]]:
    """Reconciled games, with the query and further columns, the rater and the agent behind each number."""
    table = _table(said, [one.rater for one in said])
    return judged_games(table), _things(table), table.judges, table.agents


def _things(table: VerdictTable) -> list[tuple[str, tuple[str, ...]]]:
    named = (json.loads(name) for name in table.queries or ())
    return [(query_id, tuple(further)) for query_id, *further in named]


def _table(said: Sequence[Opinion], raters: Sequence[str]) -> VerdictTable:
    """Verdicts as shown, whose query stands for the further columns too."""
    pairs = [one.item[-2:][:: -1 if one.swapped else 1] for one in said]
    agents, codes = codes_of([name for pair in pairs for name in pair])
    queries, query = codes_of([_game(one.query_id, one.item[:-2]) for one in said])
    judges, judge = codes_of(raters)
    outcome = np.array([-one.value if one.swapped else one.value for one in said]).astype(np.int8)
    return VerdictTable(agents, codes[::2], codes[1::2], outcome, queries, query, judges, judge)


@lru_cache(maxsize=1 << 16)
def _game(query_id: str, further: tuple[str, ...]) -> str:
    """One name for both; asked for once for each verdict, of which there may be hundreds of thousands."""
    return json.dumps([query_id, *further])
