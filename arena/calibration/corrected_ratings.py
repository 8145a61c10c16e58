"""Prediction-powered Bradley-Terry ratings: all games of a judge, corrected by the few games that people judged too.

Also corrects a judge's means (``estimates``). The ratings use prediction-powered estimation of a convex loss
(Angelopoulos, Duchi and Zrnic 2023, "PPI++", section 2). The loss of a game with score s between agents whose strengths
differ by d is log(1 + exp(d)) - s d, where a tie has score 0.5. The corrected strengths minimise

    lambda mean_all(loss with f) + mean_L(loss with y) - lambda mean_L(loss with f)

For every lambda its expectation is that of people's games, so the judge's bias cancels. The covariance is a sandwich
estimate from sums by query, corrected as in ``prediction_powered``. Lambda minimises the sum of the variances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.calibration import ItemKey, ItemMeans
from arena.calibration.prediction_powered import (
    REJECTED,
    Corrected,
    by_student,
    corrected_mean,
    inflated,
    label_shares,
    next_labels,
    not_random,
    queries_not_random,
    tuned,
)
from arena.calibration.votes import ONE_MEAN, Level, Values
from arena.ratings.likelihood import reachable
from judges.errors import InputError
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import numbered, ratio_estimate, share_estimate
from retrieval_eval.stats.estimate import Estimate

Places: TypeAlias = NDArray[np.int64]
"""Array of indices into the list of agents."""
Chances: TypeAlias = Mapping[tuple[str, ItemKey], float]
"""The probability with which each item was drawn for labelling, by query and item."""

_CENTRE, _POINTS = 1000.0, 400.0 / math.log(10)
"""Mean of the agents' ratings, and rating points per unit of log-odds."""
_STEPS = 100
_TOLERANCE = 1e-9
_FURTHEST = 10.0
"""Largest distance of an agent's strength from the mean, in log-odds; beyond it the fit counts as diverged."""
_TOO_FEW = "corrected by people's labels, some agents only win or only lose: label more games"
_ROUNDS = 3
"""Number of rounds, each of which tunes lambda and then fits the agents' strengths."""


class ScoredGame(Struct, frozen=True):
    """A game of two agents, with its score by the judge and by people: 1 if ``a`` wins, 0.5 for a tie, 0 if ``b`` wins.

    ``people`` is ``None`` if people did not judge the game. ``chance`` is the probability with which the game was
    drawn for people to judge; leave the default if it is the same for all games.
    """

    query_id: str
    a: str
    b: str
    judge: float
    people: float | None
    chance: float = 1.0


class CorrectedRatings(Struct, frozen=True):
    """Ratings in points with 95 % intervals, estimated in three ways; they have the order of ``agents``.

    Attributes:
        corrected: ratings from the judge's games, corrected by people's.
        people: ratings from people's games only; ``None`` if these games do not connect all agents by wins and losses
            in both directions.
        judge: ratings from the judge's games only.
        weight: lambda, the weight of the judge's games in ``corrected``.
        games: number of games that the judge judged.
        labelled: number of games that both the judge and people judged.
        queries: number of queries with games that people judged.
        converged: whether all fits converged.
    """

    agents: tuple[str, ...]
    corrected: tuple[Estimate, ...]
    people: tuple[Estimate, ...] | None
    judge: tuple[Estimate, ...]
    weight: float
    games: int
    labelled: int
    queries: int
    converged: bool


def corrected_ratings(games: Sequence[ScoredGame]) -> CorrectedRatings:
    """Rate agents by all games of the judge, corrected by the games that people judged too.

    The two orders of a game must be combined into one score beforehand.

    Raises:
        InputError: people judged none of the games, or some agents only win or only lose against the others, so that
            no finite ratings exist.
    """
    table = _GameArrays.of(games)
    if not table.has_maximum(table.f, np.ones(table.f.size, np.bool_)):
        raise InputError(
            "the judge's games give no ratings, since some agents only win or only lose against the others; "
            "judge more queries"
        )
    judge_strengths, all_converged = table.fit(1.0, judge_alone=True)
    people_ratings = None
    if table.has_maximum(table.y, table.labelled):
        strengths, converged = table.fit(0.0)
        all_converged &= converged
        people_ratings = _estimates(table, strengths, 0.0)
    strengths, weight = judge_strengths, 1.0
    for _ in range(_ROUNDS):
        weight = table.tuned(strengths)
        if weight == 0.0 and people_ratings is None:
            weight = 1.0  # people's games alone give no ratings
        strengths, converged = table.fit(weight)
        if np.abs(strengths).max() > _FURTHEST:
            raise InputError(_TOO_FEW)
    judge_slopes = table.slopes(judge_strengths, 1.0, judge_alone=True)
    judge_curvature = table.curvature(judge_strengths, 1.0, judge_alone=True)
    return CorrectedRatings(
        agents=table.agents,
        corrected=_estimates(table, strengths, weight),
        people=people_ratings,
        judge=_in_points(judge_strengths, judge_slopes @ np.linalg.inv(judge_curvature), int(table.unit.max()) + 1, 1),
        weight=weight,
        games=table.f.size,
        labelled=int(table.labelled.sum()),
        queries=table.groups,
        converged=all_converged and converged,
    )


class _GameArrays(Struct, frozen=True, eq=False):
    """Games as arrays with one element per game.

    Attributes:
        a, b: indices of the two agents.
        f: the judge's score of agent ``a``.
        y: people's score of agent ``a``; 0 if people did not judge the game.
        labelled: whether people judged the game.
        share: weight of the game in a mean over the games that people judged (``label_shares``).
        unit: index of the game's query.
    """

    agents: tuple[str, ...]
    a: Places
    b: Places
    f: Floats
    y: Floats
    labelled: np.ndarray
    share: Floats
    unit: np.ndarray

    @classmethod
    def of(cls, games: Sequence[ScoredGame]) -> _GameArrays:
        agents = tuple(sorted({name for game in games for name in (game.a, game.b)}))
        agent_index = {name: index for index, name in enumerate(agents)}
        labelled = np.array([game.people is not None for game in games], np.bool_)
        if not labelled.any():
            raise InputError("people judged none of the judge's games; have people judge some of them")
        return cls(
            agents,
            np.array([agent_index[game.a] for game in games]),
            np.array([agent_index[game.b] for game in games]),
            np.array([game.judge for game in games]),
            np.array([0.0 if game.people is None else game.people for game in games]),
            labelled,
            label_shares(labelled, [game.chance for game in games]),
            numbered([game.query_id for game in games]),
        )

    @property
    def groups(self) -> int:
        return int(np.unique(self.unit[self.labelled]).size)

    def has_maximum(self, scores: Floats, rows: np.ndarray) -> bool:
        """Whether finite ratings exist: chains of wins or ties lead from every agent to every other (Ford 1957)."""
        a, b, scores = self.a[rows], self.b[rows], scores[rows]
        beats = self.by_pair(a, b, scores > 0) + self.by_pair(b, a, scores < 1)
        return bool(reachable((beats > 0) | np.eye(len(beats), dtype=np.bool_)).all())

    def fit(self, weight: float, *, judge_alone: bool = False) -> tuple[Floats, bool]:
        """Fit the agents' strengths, with sum 0, by Newton's method; also returns whether it converged."""
        theta = np.zeros(len(self.agents))
        for _ in range(_STEPS):
            slope = self.slopes(theta, weight, judge_alone=judge_alone).sum(axis=0)
            try:
                step = np.linalg.solve(self.curvature(theta, weight, judge_alone=judge_alone), slope)
            except np.linalg.LinAlgError:  # with lambda 0, a few labelled games need not connect all agents
                raise InputError(_TOO_FEW) from None
            theta = theta - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
            if np.abs(step).max() < _TOLERANCE:
                return theta, True
            if np.abs(theta).max() > _FURTHEST:
                break
        return theta, False

    def slopes(self, theta: Floats, weight: float, *, judge_alone: bool = False) -> Floats:
        """Gradient of the loss in the strengths, split by query; shape (queries, agents)."""
        people_part, judge_part = self.gradient_parts(theta)
        if judge_alone:
            return self.by_query((self.expected(theta) - self.f) / self.f.size)
        gradient: Floats = people_part - weight * judge_part
        return gradient

    def gradient_parts(self, theta: Floats) -> tuple[Floats, Floats]:
        """Two parts by query, shape (queries, agents) each; the gradient is the first minus lambda times the second."""
        p = self.expected(theta)
        people_part = self.by_query(self.share * (p - self.y))
        judge_part = self.by_query(self.share * (p - self.f) - (p - self.f) / p.size)
        return people_part, judge_part

    def by_query(self, residuals: Floats) -> Floats:
        """Sum the games' residuals by query and agent: added for agent ``a`` of a game, subtracted for agent ``b``.

        From shape (games,) to (queries, agents).
        """
        agents = len(self.agents)
        cells = (int(self.unit.max()) + 1) * agents
        sums_a, sums_b = (np.bincount(self.unit * agents + side, residuals, cells) for side in (self.a, self.b))
        return np.asarray((sums_a - sums_b).reshape(-1, agents), np.float64)

    def by_pair(self, first: Places, second: Places, amounts: np.ndarray) -> Floats:
        """Sum the games' amounts by the pair (first, second) of agents, shape (agents, agents)."""
        agents = len(self.agents)
        sums = np.bincount(first * agents + second, amounts, agents**2)
        return np.asarray(sums.reshape(agents, agents), np.float64)

    def expected(self, theta: Floats) -> Floats:
        p: Floats = scipy.special.expit(theta[self.a] - theta[self.b])
        return p

    def curvature(self, theta: Floats, weight: float, *, judge_alone: bool = False) -> Floats:
        """Hessian of the loss in the agents' strengths, shape (agents, agents)."""
        p = self.expected(theta)
        shares = np.full(p.size, (1.0 if judge_alone else weight) / p.size)
        if not judge_alone:
            shares += (1 - weight) * self.share
        return self.hessian(shares * p * (1 - p))

    def hessian(self, game_weights: Floats) -> Floats:
        """Laplacian matrix of the weighted games, made invertible by a term that only fixes the mean strength at 0."""
        pair_weights = self.by_pair(self.a, self.b, game_weights)
        pair_weights += pair_weights.T
        hessian: Floats = np.diag(pair_weights.sum(axis=0)) - pair_weights + 1 / len(self.agents)
        return hessian

    def tuned(self, theta: Floats) -> float:
        """The lambda in [0, 1] that minimises the sum of the strengths' variances."""
        p = self.expected(theta)
        inverse = np.linalg.inv(self.hessian(p * (1 - p) / p.size))
        people_part, judge_part = (part @ inverse for part in self.gradient_parts(theta))
        return tuned(people_part, judge_part)


def _estimates(table: _GameArrays, theta: Floats, weight: float) -> tuple[Estimate, ...]:
    query_shares = np.bincount(table.unit, table.share)
    slopes = table.slopes(theta, weight) / np.maximum(1 - query_shares, 1 / table.labelled.sum())[:, np.newaxis]
    influence = slopes @ np.linalg.inv(table.curvature(theta, weight))
    return _in_points(theta, influence, table.groups, 2 if weight else 1)


def _in_points(theta: Floats, influence: Floats, units: int, parameters: int) -> tuple[Estimate, ...]:
    """Convert strengths to ratings in points with intervals.

    ``influence`` is the effect of each query on each strength, shape (queries, agents).
    """
    return tuple(
        by_student(
            _CENTRE + _POINTS * strength,
            _POINTS**2 * inflated(float((column**2).sum()), units, parameters),
            units - parameters,
        )
        for strength, column in zip(theta.tolist(), influence.T, strict=True)
    )


class Estimates(Struct, frozen=True):
    """A judge's means and ratings, corrected by people's labels.

    Attributes:
        figures: corrected means by name; for verdicts, each agent's win rate, where a tie counts half.
        ratings: corrected Bradley-Terry ratings; for verdicts only.
        no_ratings: why there are no ratings; empty if there are, or if the values are not verdicts.
        next: items that people should label next, each as query and item.
        refused: why a mean was not corrected, by its name: its labels are not a random sample.
    """

    figures: Mapping[str, Corrected]
    ratings: CorrectedRatings | None
    no_ratings: str
    next: tuple[tuple[str, ItemKey], ...]
    refused: Mapping[str, str]


class _ItemScore(NamedTuple):
    """An item's score by the judge and by people, for one agent; ``kind`` names the opponent if the item is a game."""

    query_id: str
    judge: float
    people: float | None
    chance: float
    kind: str


def estimates(
    level: Level,
    judge: Values,
    people: Values,
    chances: Chances,
    *,
    means: ItemMeans = ONE_MEAN,
    label_next: int = 0,
    seed: int = 0,
) -> Estimates:
    """Correct a judge's means and ratings by people's labels, and choose the items to label next.

    ``judge`` has the judge's values in the order of the file. ``people`` has people's consensus on some of the items;
    these must be a random sample, unless ``chances`` has the probability with which each was drawn. A mean is not
    corrected if its labels visibly are no random sample.

    Raises:
        InputError: only some of the labelled items have a probability.
    """
    items = [(query_id, item) for query_id, values in judge.items() for item in values]
    is_labelled = [item in people.get(query_id, {}) for query_id, item in items]
    labelled = [key for key, has_label in zip(items, is_labelled, strict=True) if has_label]
    if chances and (missing := sum(key not in chances for key in labelled)):
        raise InputError(
            f"column 'probability': missing for {missing:,} of {len(labelled):,} labelled items; "
            "give the probability with every label, or with none"
        )
    queries = [query_id for query_id, _ in items]
    chosen = next_labels(queries, is_labelled, label_next, seed) if label_next else []
    query_reason = "" if chances else queries_not_random(np.array(is_labelled, np.bool_), queries, REJECTED / 2)
    figures, refused = _figures(level, judge, people, chances, query_reason, means=means)
    ratings, why = _ratings(judge, people, chances, query_reason) if level == "verdicts" else (None, "")
    return Estimates(figures, ratings, why, tuple(items[index] for index in chosen), refused)


def _figures(
    level: Level, judge: Values, people: Values, chances: Chances, query_reason: str, *, means: ItemMeans
) -> tuple[dict[str, Corrected], dict[str, str]]:
    """Compute the corrected means by name, and the reason for each mean that is not corrected.

    If ``query_reason`` is not empty, it is the reason for all means.
    """
    by_name: dict[str, list[_ItemScore]] = {}
    for query_id, values in judge.items():
        for item, value in values.items():
            human, chance = people.get(query_id, {}).get(item), chances.get((query_id, item), 1.0)
            for name, mirrored, kind in means_of(level, item, means):
                people_score = None if human is None else score_of(level, human, mirrored=mirrored)
                row = _ItemScore(query_id, score_of(level, value, mirrored=mirrored), people_score, chance, kind)
                by_name.setdefault(name, []).append(row)
    figures, refused = {}, {}
    for name, rows in sorted(by_name.items()):
        queries, judge_scores, people_scores, probabilities, kinds = zip(*rows, strict=True)
        if all(score is None for score in people_scores):
            continue
        level_each = REJECTED / 2 / len(by_name)
        if not chances and (
            reason := query_reason or _not_random(queries, people_scores, judge_scores, kinds, level=level_each)
        ):
            refused[name] = reason
        else:
            figure = corrected_mean(judge_scores, people_scores, queries, probabilities, means.ends)
            figures[name] = replace(figure, judge=_alone(level, judge_scores, queries, figure.ends))
    return figures, refused


def _alone(level: Level, scores: Sequence[float], queries: Sequence[str], ends: tuple[float, float]) -> Estimate:
    """The judge's mean with the interval that such a figure has on the leaderboard."""
    if ends[0] == ends[1]:
        return Estimate(ends[0])
    unit = numbered(queries)
    parts, wholes = np.bincount(unit, scores).astype(np.float64), np.bincount(unit).astype(np.float64)
    return share_estimate(parts, wholes) if level == "verdicts" else ratio_estimate(parts, wholes, ends)


def _not_random(
    queries: Sequence[str],
    people: Sequence[float | None],
    judge: Sequence[float],
    kinds: Sequence[str],
    *,
    level: float,
) -> str:
    labelled = np.array([value is not None for value in people], np.bool_)
    return not_random(labelled, queries, {"the judge's value": np.array(judge), "the opponent": kinds}, level)


def means_of(level: Level, item: ItemKey, means: ItemMeans) -> list[tuple[str, bool, str]]:
    """List the means that an item's value belongs to: the name, whether to reverse the value, and a game's opponent."""
    if level == "verdicts":
        return [(item[-2], False, item[-1]), (item[-1], True, item[-2])]
    return [(", ".join(item[place] for place in means.names) or "all documents", False, "")]


def score_of(level: Level, value: float, *, mirrored: bool) -> float:
    if level != "verdicts":
        return value
    return (1 - value) / 2 if mirrored else (1 + value) / 2


def _ratings(judge: Values, people: Values, chances: Chances, query_reason: str) -> tuple[CorrectedRatings | None, str]:
    """Compute the corrected ratings; ``None`` with the reason if there are none."""
    games = []
    for query_id, values in judge.items():
        for item, value in values.items():
            human, chance = people.get(query_id, {}).get(item), chances.get((query_id, item), 1.0)
            people_score = None if human is None else (1 + human) / 2
            games.append(ScoredGame(query_id, item[-2], item[-1], (1 + value) / 2, people_score, chance))
    queries, pairs = [game.query_id for game in games], [f"{game.a} and {game.b}" for game in games]
    people_scores, judge_scores = [game.people for game in games], [game.judge for game in games]
    if not chances and (
        reason := query_reason or _not_random(queries, people_scores, judge_scores, pairs, level=REJECTED / 2)
    ):
        return None, reason
    try:
        return corrected_ratings(games), ""
    except InputError as error:
        return None, str(error)
