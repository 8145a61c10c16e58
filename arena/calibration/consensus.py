"""Combine several raters' opinions or both orders of a game into one value, and measure position bias.

The consensus is the majority, or the most likely label under a model of the raters' reliability. In the model of Dawid
and Skene (1979, Applied Statistics 28) each rater has a confusion matrix: the probability of each label given the true
one. Expectation maximisation fits true labels and matrices together, starting from the majority. A prior of 0.1 virtual
votes per cell prevents a few votes from making a rater look certain.
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

from arena.calibration import ItemKey, Opinion
from arena.calibration.votes import Values, by_item, by_rater
from arena.ratings.games import Games, VerdictTable, codes_of, without_repeats
from arena.ratings.health import both_orders, judged_games
from retrieval_eval.stats import Floats, Int32s
from retrieval_eval.stats.bootstrap import share_estimate
from retrieval_eval.stats.estimate import Estimate

ConsensusMethod: TypeAlias = Literal["majority", "dawid-skene"]

_MAX_ITERATIONS = 1000
_TOLERANCE = 1e-6
_PRIOR_VOTES = 0.1


class Reliability(Struct, frozen=True):
    """Reliability of a rater, as estimated by the model of Dawid and Skene.

    Attributes:
        votes: number of the rater's votes.
        accuracy: estimated probability that the rater gives an item its true label.
    """

    rater: str
    votes: int
    accuracy: float


class Consensus(Struct, frozen=True):
    """One value per item, combined from all raters.

    Attributes:
        method: how the values were combined.
        values: the combined value of each item, by query and item.
        numbers: as ``values``, except that labels with equally many votes are averaged. Means and differences use
            ``numbers``, since taking the lowest label would bias them.
        contested: number of items on which no single value leads. ``values`` has a tie (verdicts) or the lowest label.
        raters: reliability of each rater under the model, the least reliable first; empty for the majority.
        iterations, converged: number of iterations of the fit, and whether it converged; ``None`` for the majority.
    """

    method: ConsensusMethod
    values: Mapping[str, Mapping[ItemKey, float]]
    numbers: Mapping[str, Mapping[ItemKey, float]]
    contested: int = 0
    raters: tuple[Reliability, ...] = ()
    iterations: int | None = None
    converged: bool | None = None


def consensus(opinions: Iterable[Opinion], method: ConsensusMethod, *, mirrored: bool = False) -> Consensus:
    """Combine the raters' opinions into one value per item; ``mirrored`` means that the values are verdicts."""
    votes = list(opinions)
    return dawid_skene(votes, mirrored=mirrored) if method == "dawid-skene" else majority(votes, mirrored=mirrored)


def majority(opinions: Iterable[Opinion], *, mirrored: bool = False) -> Consensus:
    """Take the most frequent value of each item.

    If several values are equally frequent, a verdict (``mirrored``) becomes a tie, and of labels the lowest is taken.
    """
    leading: dict[tuple[str, ItemKey], Sequence[float]] = {}
    for query_id, items in by_item(opinions).items():
        for item, votes in items.items():
            counts = Counter(vote.value for vote in votes)
            leading[query_id, item] = [value for value, count in counts.items() if count == max(counts.values())]
    return Consensus("majority", *_consensus_values(leading, mirrored=mirrored))


def _consensus_values(
    leading: Mapping[tuple[str, ItemKey], Sequence[float]], *, mirrored: bool
) -> tuple[Values, Values, int]:
    """Compute ``values``, ``numbers`` and ``contested`` of a ``Consensus`` from the values that lead on each item."""
    values: dict[str, dict[ItemKey, float]] = {}
    numbers: dict[str, dict[ItemKey, float]] = {}
    for (query_id, item), labels in leading.items():
        values.setdefault(query_id, {})[item] = labels[0] if len(labels) == 1 else 0.0 if mirrored else min(labels)
        numbers.setdefault(query_id, {})[item] = values[query_id][item] if mirrored else sum(labels) / len(labels)
    return values, numbers, sum(len(labels) > 1 for labels in leading.values())


def dawid_skene(opinions: Sequence[Opinion], *, mirrored: bool = False, prior_votes: float = _PRIOR_VOTES) -> Consensus:
    """Estimate the most likely value of each item under the model of Dawid and Skene.

    ``prior_votes`` virtual votes are added to each cell of each rater's confusion matrix. If the values are verdicts
    (``mirrored``), each matrix treats the two agents of a game alike.
    """
    items = list(dict.fromkeys((opinion.query_id, opinion.item) for opinion in opinions))
    raters = sorted({opinion.rater for opinion in opinions})
    observed = {opinion.value for opinion in opinions}
    labels = sorted(observed | {-value for value in observed}) if mirrored else sorted(observed)
    item, rater, label = ({name: index for index, name in enumerate(names)} for names in (items, raters, labels))
    rows = [(item[opinion.query_id, opinion.item], rater[opinion.rater], label[opinion.value]) for opinion in opinions]
    votes = tuple(np.array(rows, np.int64).reshape(len(rows), 3).T)
    shape = len(items), len(raters), len(labels)
    truth, confusion, shares, iterations, converged = _fit(votes, shape, prior_votes, mirrored=mirrored)
    leading = {
        key: [name for name, p in zip(labels, posterior, strict=True) if p > posterior.max() - 1e-9]
        for key, posterior in zip(items, truth, strict=True)
    }
    accuracy = np.einsum("k,rkk->r", shares, confusion)
    counts = np.bincount(votes[1], minlength=len(raters))
    reliabilities = [Reliability(*row) for row in zip(raters, counts.tolist(), accuracy.tolist(), strict=True)]
    by_accuracy = tuple(sorted(reliabilities, key=lambda reliability: reliability.accuracy))
    combined = _consensus_values(leading, mirrored=mirrored)
    return Consensus("dawid-skene", *combined, by_accuracy, iterations, converged)


def _fit(
    votes: tuple[NDArray[np.int64], ...], shape: tuple[int, int, int], prior_votes: float, *, mirrored: bool
) -> tuple[Floats, Floats, Floats, int, bool]:
    """Fit the model of Dawid and Skene by expectation maximisation.

    Args:
        votes: indices of the item, the rater and the label of each vote, three arrays.
        shape: numbers of items, raters and labels.
        prior_votes: virtual votes in each cell of a confusion matrix.
        mirrored: whether the labels are verdicts, so that the two agents of a game are treated alike.

    Returns:
        Probabilities of each item's label, shape (items, labels); confusion matrices, shape (raters, true labels,
        given labels); shares of the labels; number of iterations; whether they converged.
    """
    item, rater, label = votes
    items, raters, labels = shape
    truth = np.zeros((items, labels))
    np.add.at(truth, (item, label), 1.0)
    truth /= truth.sum(axis=1, keepdims=True)
    change, iterations = np.inf, 0
    while True:
        confusion = np.zeros((raters, labels, labels))
        np.add.at(confusion.transpose(0, 2, 1), (rater, label), truth[item])
        shares = truth.mean(axis=0)
        if mirrored:
            confusion, shares = confusion + confusion[:, ::-1, ::-1], (shares + shares[::-1]) / 2
        confusion += prior_votes
        confusion /= confusion.sum(axis=2, keepdims=True)
        if change < _TOLERANCE or iterations == _MAX_ITERATIONS:
            return truth, confusion, shares, iterations, change < _TOLERANCE
        with np.errstate(divide="ignore"):
            likelihood = np.tile(np.log(shares), (items, 1))
        np.add.at(likelihood, item, np.log(confusion)[rater, :, label])
        updated = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        updated /= updated.sum(axis=1, keepdims=True)
        change, truth, iterations = float(np.abs(updated - truth).max()), updated, iterations + 1


class OrderHealth(Struct, frozen=True):
    """Position bias in verdicts. All intervals are clustered by query.

    Attributes:
        both_orders: number of games judged in both orders.
        order_agreement: share of these games with the same outcome in both orders.
        first_share: share of decided verdicts that the answer shown first won. A judge without position bias has 0.5
            if each agent is shown first as often as second.
    """

    verdicts: int
    tie_rate: float
    both_orders: int
    order_agreement: Estimate
    first_share: Estimate


def settled(opinions: Sequence[Opinion], *, verdicts: bool, ordered: bool = False) -> list[Opinion]:
    """Reduce the opinions to one per rater and item.

    The verdicts of a rater on both orders of a game are combined into one, as for ratings. With ``ordered`` each order
    stays a separate item, and several verdicts on it are combined by majority. A repeated label or grade replaces the
    earlier one.
    """
    if not opinions:
        return []
    if ordered or not verdicts:
        values: Mapping[str, Values] = by_rater(opinions)
        if verdicts:
            own = {rater: [opinion for opinion in opinions if opinion.rater == rater] for rater in values}
            values = {rater: majority(votes, mirrored=True).values for rater, votes in own.items()}
        return [
            Opinion(query_id, item, rater, value)
            for rater, by_query in values.items()
            for query_id, items in by_query.items()
            for item, value in items.items()
        ]
    table = _verdict_table(opinions, [opinion.rater for opinion in opinions])
    games, queries, agents = judged_games(table), _query_keys(table), table.agents
    return [
        Opinion(query_id, (*further, agents[a], agents[b]), table.judges[rater], float(outcome))
        for (query_id, further), rater, a, b, outcome in zip(
            (queries[query] for query in games.query), games.judge, games.a, games.b, games.outcome, strict=True
        )
    ]


def as_shown(opinions: Sequence[Opinion]) -> list[Opinion]:
    """Turn each verdict so that its ``item`` names the agent shown first before the other.

    If the order shown is unknown, the order in the file counts.
    """
    return [
        opinion._replace(
            item=(*opinion.item[:-2], opinion.item[-1], opinion.item[-2]), value=-opinion.value or 0.0, swapped=False
        )
        if opinion.swapped
        else opinion
        for opinion in opinions
    ]


def games_of(opinions: Sequence[Opinion]) -> tuple[Games, tuple[str, ...]]:
    """Convert verdicts, one per rater and game, to ``Games``; also returns the query ids, one per cluster of games."""
    agents, codes = codes_of([name for opinion in opinions for name in opinion.item[-2:]])
    queries, query = codes_of([opinion.query_id for opinion in opinions])
    score = np.array([(1 + opinion.value) / 2 for opinion in opinions])
    agents, first, second, repeat = without_repeats(agents, codes[::2], codes[1::2])
    return Games(agents, first, second, score, query, repeat=repeat), queries


def values_of(settled_opinions: Sequence[Opinion]) -> Values:
    """One rater's value of each item, by query and item; ``settled`` must have left one opinion per item."""
    return {
        query_id: {item: opinions[0].value for item, opinions in items.items()}
        for query_id, items in by_item(settled_opinions).items()
    }


def order_health(opinions: Sequence[Opinion]) -> OrderHealth | None:
    """Measure position bias in verdicts, of all raters together; ``None`` if no verdict has a known order."""
    placed = [opinion for opinion in opinions if opinion.placed]
    if not placed:
        return None
    table = _verdict_table(placed, [""] * len(placed))
    _, unit = np.unique([query_id for query_id, _ in _query_keys(table)], return_inverse=True)
    return table_health(table, unit.astype(np.int32))


def table_health(table: VerdictTable, unit: Int32s | None = None) -> OrderHealth:
    """Measure position bias in a table of verdicts.

    ``unit`` numbers the conversation, or other independent unit, of each query; the default is the table's clusters.
    """
    assert table.query is not None
    query_unit = table.units[1] if unit is None else unit
    decided = table.outcome != 0
    agree, query = both_orders(table)
    return OrderHealth(
        verdicts=len(table),
        tie_rate=1 - int(decided.sum()) / len(table),
        both_orders=agree.size,
        order_agreement=_share(agree, query_unit[query]),
        first_share=_share(table.outcome[decided] > 0, query_unit[table.query[decided]]),
    )


def _share(hits: NDArray[np.bool_], unit: NDArray[np.integer]) -> Estimate:
    return share_estimate(np.bincount(unit, hits), np.bincount(unit))


def _query_keys(table: VerdictTable) -> list[tuple[str, tuple[str, ...]]]:
    keys = (json.loads(key) for key in table.queries or ())
    return [(query_id, tuple(further)) for query_id, *further in keys]


def _verdict_table(opinions: Sequence[Opinion], raters: Sequence[str]) -> VerdictTable:
    """Convert verdicts to a table in the order shown, with queries named by ``_query_key``."""
    pairs = [opinion.item[-2:][:: -1 if opinion.swapped else 1] for opinion in opinions]
    agents, codes = codes_of([name for pair in pairs for name in pair])
    queries, query = codes_of([_query_key(opinion.query_id, opinion.item[:-2]) for opinion in opinions])
    judges, judge = codes_of(raters)
    outcome = np.array([-opinion.value if opinion.swapped else opinion.value for opinion in opinions]).astype(np.int8)
    return VerdictTable(agents, codes[::2], codes[1::2], outcome, queries, query, judges, judge)


@lru_cache(maxsize=1 << 16)
def _query_key(query_id: str, further: tuple[str, ...]) -> str:
    """One string for a query and the further columns that identify a game; cached, as it is called once per verdict."""
    return json.dumps([query_id, *further])
