"""Bradley-Terry ratings from all games of a judge, corrected by the few that people judged too.

Prediction-powered estimation of a convex loss (Angelopoulos, Duchi and Zrnic 2023, "PPI++", section 2): with the loss
of a game of score s between agents whose strengths differ by d, log(1 + exp(d)) - s d, a tie being half a win,

    lambda mean_all(loss with f) + mean_L(loss with y) - lambda mean_L(loss with f)

is least at the corrected strengths. Its expectation is that of people's games for every lambda, so the judge's bias
leaves no trace. The covariance is the sandwich of sums by query, divided as in ``prediction_powered``, and lambda is
tuned to the sum of its variances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from arena.calibration.prediction_powered import (
    Corrected,
    by_student,
    corrected_mean,
    inflated,
    label_shares,
    next_labels,
    tuned,
)
from arena.calibration.randomness import LEVEL, not_random, queries_not_random
from arena.calibration.votes import ItemKey, Level, Values
from arena.ratings.counts import reachable
from judges.errors import InputError
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import numbered
from retrieval_eval.stats.estimate import Estimate

Places: TypeAlias = NDArray[np.int64]
"""Numbers of agents."""
Chances: TypeAlias = Mapping[tuple[str, ItemKey], float]
"""With which things were drawn to be labelled, by query and thing."""

_CENTRE, _POINTS = 1000.0, 400.0 / math.log(10)
"""The mean rating, and points per unit of log-odds."""
_STEPS = 100
_TOLERANCE = 1e-9
_FURTHEST = 10.0
"""Log-odds from the mean beyond which strengths have run away."""
_TOO_FEW = "corrected by people's labels, some agents only win or only lose: label more games"
_TUNED = 3
"""Rounds of fitting strengths and lambda in turn."""


class ScoredGame(Struct, frozen=True):
    """One game: what the judge makes of it, and people where they judged it; 1 if ``a`` wins, 0.5, or 0."""

    query_id: str
    a: str
    b: str
    judge: float
    people: float | None
    chance: float = 1.0
    """With which it was drawn to be judged by people; that of all games if these are the same."""


class CorrectedRatings(Struct, frozen=True):
    """Ratings three ways.

    Attributes:
        agents: names, in the order of the estimates.
        corrected, people, judge: in points, with intervals at 95 %; those of people alone are ``None`` where their
            games do not connect all agents by wins and losses both ways.
        weight: lambda.
        games, labelled, queries: of the judge; those that people judged; queries of these.
        converged: whether all fits ended.
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
    """Rate agents by every game that the judge judged, orders reconciled.

    Raises:
        InputError: there are no labels, or the judge's own games give no ratings: an agent never wins or never loses
            against the others, or nobody links it to them.
    """
    data = _Data.of(games)
    if not data.settled(data.f, np.ones(data.f.size, np.bool_)):
        raise InputError("the judge's games give no ratings: some agents only win or only lose against the others")
    judged, all_converged = data.fit(1.0, judge_alone=True)
    alone = None
    if data.settled(data.y, data.labelled):
        strengths, converged = data.fit(0.0)
        all_converged &= converged
        alone = _estimates(data, strengths, 0.0)
    strengths, weight = judged, 1.0
    for _ in range(_TUNED):
        weight = data.tuned(strengths)
        if weight == 0.0 and alone is None:
            weight = 1.0  # without the judge there are no ratings
        strengths, converged = data.fit(weight)
        if np.abs(strengths).max() > _FURTHEST:
            raise InputError(_TOO_FEW)
    return CorrectedRatings(
        agents=data.agents,
        corrected=_estimates(data, strengths, weight),
        people=alone,
        judge=_in_points(
            judged,
            data.slopes(judged, 1.0, judge_alone=True) @ np.linalg.inv(data.curvature(judged, 1.0, judge_alone=True)),
            int(data.unit.max()) + 1,
            1,
        ),
        weight=weight,
        games=data.f.size,
        labelled=int(data.labelled.sum()),
        queries=data.groups,
        converged=all_converged and converged,
    )


class _Data(Struct, frozen=True, eq=False):
    """Games as arrays, one row each; ``a`` and ``b`` number agents, ``f`` and ``y`` are scores of ``a``."""

    agents: tuple[str, ...]
    a: Places
    b: Places
    f: Floats
    y: Floats
    labelled: np.ndarray
    share: Floats
    unit: np.ndarray

    @classmethod
    def of(cls, games: Sequence[ScoredGame]) -> _Data:
        agents = tuple(sorted({name for game in games for name in (game.a, game.b)}))
        place = {name: at for at, name in enumerate(agents)}
        labelled = np.array([game.people is not None for game in games], np.bool_)
        if not labelled.any():
            raise InputError("people judged none of the judge's games: there is nothing to correct by")
        return cls(
            agents,
            np.array([place[game.a] for game in games]),
            np.array([place[game.b] for game in games]),
            np.array([game.judge for game in games]),
            np.array([0.0 if game.people is None else game.people for game in games]),
            labelled,
            label_shares(labelled, [game.chance for game in games]),
            numbered([game.query_id for game in games]),
        )

    @property
    def groups(self) -> int:
        return int(np.unique(self.unit[self.labelled]).size)

    def settled(self, scores: Floats, rows: np.ndarray) -> bool:
        """Whether a maximum exists: from every agent a chain of wins or ties leads to every other (Ford 1957)."""
        a, b, own = self.a[rows], self.b[rows], scores[rows]
        beats = self.by_pair(a, b, own > 0) + self.by_pair(b, a, own < 1)
        return bool(reachable((beats > 0) | np.eye(len(beats), dtype=np.bool_)).all())

    def fit(self, weight: float, *, judge_alone: bool = False) -> tuple[Floats, bool]:
        """Strengths that sum to 0 where the loss is least, and whether Newton's method got there."""
        theta = np.zeros(len(self.agents))
        for _ in range(_STEPS):
            slope = self.slopes(theta, weight, judge_alone=judge_alone).sum(axis=0)
            try:
                step = np.linalg.solve(self.curvature(theta, weight, judge_alone=judge_alone), slope)
            except np.linalg.LinAlgError:  # labels of a few games, and a judge without weight, link not all agents
                raise InputError(_TOO_FEW) from None
            theta = theta - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
            if np.abs(step).max() < _TOLERANCE:
                return theta, True
            if np.abs(theta).max() > _FURTHEST:
                break
        return theta, False

    def slopes(self, theta: Floats, weight: float, *, judge_alone: bool = False) -> Floats:
        """Gradient of the loss by query, shape (queries, agents)."""
        of_people, of_judge = self.parts(theta)
        if judge_alone:
            return self.by_query((self.expected(theta) - self.f) / self.f.size)
        moved: Floats = of_people - weight * of_judge
        return moved

    def parts(self, theta: Floats) -> tuple[Floats, Floats]:
        """The gradient's two parts: without the judge, and what lambda takes off."""
        p = self.expected(theta)
        of_people = self.by_query(self.share * (p - self.y))
        of_judge = self.by_query(self.share * (p - self.f) - (p - self.f) / p.size)
        return of_people, of_judge

    def by_query(self, residuals: Floats) -> Floats:
        agents = len(self.agents)
        cells = (int(self.unit.max()) + 1) * agents
        of_a, of_b = (np.bincount(self.unit * agents + side, residuals, cells) for side in (self.a, self.b))
        return np.asarray((of_a - of_b).reshape(-1, agents), np.float64)

    def by_pair(self, first: Places, second: Places, amounts: np.ndarray) -> Floats:
        """Sums of what games have to give, shape (agents, agents)."""
        agents = len(self.agents)
        sums = np.bincount(first * agents + second, amounts, agents**2)
        return np.asarray(sums.reshape(agents, agents), np.float64)

    def expected(self, theta: Floats) -> Floats:
        """Of each game, the score of ``a``."""
        p: Floats = scipy.special.expit(theta[self.a] - theta[self.b])
        return p

    def curvature(self, theta: Floats, weight: float, *, judge_alone: bool = False) -> Floats:
        """Of the loss; a square of the mean strength is added, which holds it at 0 and changes nothing else."""
        p = self.expected(theta)
        shares = np.full(p.size, (1.0 if judge_alone else weight) / p.size)
        if not judge_alone:
            shares += (1 - weight) * self.share
        return self.weighed(shares * p * (1 - p))

    def weighed(self, shares: Floats) -> Floats:
        met = self.by_pair(self.a, self.b, shares)
        met += met.T
        curved: Floats = np.diag(met.sum(axis=0)) - met + 1 / len(self.agents)
        return curved

    def tuned(self, theta: Floats) -> float:
        """The lambda in [0, 1] with the least sum of variances at these strengths."""
        p = self.expected(theta)
        inverse = np.linalg.inv(self.weighed(p * (1 - p) / p.size))
        of_people, of_judge = (part @ inverse for part in self.parts(theta))
        return tuned(of_people, of_judge)


def _estimates(data: _Data, theta: Floats, weight: float) -> tuple[Estimate, ...]:
    held = np.bincount(data.unit, data.share)
    slopes = data.slopes(theta, weight) / np.maximum(1 - held, 1 / data.labelled.sum())[:, np.newaxis]
    moved = slopes @ np.linalg.inv(data.curvature(theta, weight))
    return _in_points(theta, moved, data.groups, 2 if weight else 1)


def _in_points(theta: Floats, moved: Floats, units: int, spent: int) -> tuple[Estimate, ...]:
    return tuple(
        by_student(
            _CENTRE + _POINTS * strength,
            _POINTS**2 * inflated(float((column**2).sum()), units, spent),
            units - spent,
        )
        for strength, column in zip(theta.tolist(), moved.T, strict=True)
    )


_ENDS: Final[Mapping[Level, tuple[float, float]]] = {
    "verdicts": (0.0, 1.0),
    "nuggets": (0.0, 2.0),
    "support": (0.0, 2.0),
}
"""Of the scale, where it is one for all tournaments."""


class Estimates(Struct, frozen=True):
    """A judge corrected by people.

    Attributes:
        figures: means, by what they are of; of verdicts win rates, ties half.
        ratings: of verdicts, Bradley-Terry's.
        no_ratings: why there are none.
        next: things to label next, each a query and what it is.
        refused: by what they are of, why there are no means: labels are no random sample.
    """

    figures: Mapping[str, Corrected]
    ratings: CorrectedRatings | None
    no_ratings: str
    next: tuple[tuple[str, ItemKey], ...]
    refused: Mapping[str, str]


class _Thing(NamedTuple):
    """Values of one thing; ``kind`` is what means are over, besides queries: the opponent."""

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
    label_next: int = 0,
    seed: int = 0,
) -> Estimates:
    """Correct a judge.

    Args:
        level: what was judged.
        judge: its values, in the order of the file.
        people: their consensus on some of the things. Without ``chances`` these must be a random sample; where they
            are visibly none, there are no figures.
        chances: with which labelled things were drawn; of all of them or of none.
        label_next: things to label next.
        seed: of what is drawn.

    Raises:
        InputError: only some of the labelled things have a chance.
    """
    things = [(query_id, item) for query_id, own in judge.items() for item in own]
    known = [item in people.get(query_id, {}) for query_id, item in things]
    labelled = [thing for thing, seen in zip(things, known, strict=True) if seen]
    if chances and (missing := sum(thing not in chances for thing in labelled)):
        raise InputError(
            f"'probability': missing for {missing:,} of {len(labelled):,} labelled things; "
            "give it with every label, or with none"
        )
    queries = [query_id for query_id, _ in things]
    places = next_labels(queries, known, label_next, seed) if label_next else []
    early = "" if chances else queries_not_random(np.array(known, np.bool_), queries, LEVEL / 2)
    figures, refused = _figures(level, judge, people, chances, early)
    ratings, why = _ratings(judge, people, chances, early) if level == "verdicts" else (None, "")
    return Estimates(figures, ratings, why, tuple(things[at] for at in places), refused)


def _figures(
    level: Level, judge: Values, people: Values, chances: Chances, early: str
) -> tuple[dict[str, Corrected], dict[str, str]]:
    found: dict[str, list[_Thing]] = {}
    for query_id, own in judge.items():
        for item, value in own.items():
            human, chance = people.get(query_id, {}).get(item), chances.get((query_id, item), 1.0)
            for name, turned, kind in _counts_for(level, item):
                score = None if human is None else _score(level, human, turned)
                found.setdefault(name, []).append(_Thing(query_id, _score(level, value, turned), score, chance, kind))
    figures, refused = {}, {}
    for name, rows in sorted(found.items()):
        queries, of_judge, of_people, drawn, kinds = zip(*rows, strict=True)
        if all(value is None for value in of_people):
            continue
        level_each = LEVEL / 2 / len(found)
        if not chances and (why := early or _not_random(queries, of_people, of_judge, kinds, level=level_each)):
            refused[name] = why
        else:
            figures[name] = corrected_mean(of_judge, of_people, queries, drawn, _ENDS.get(level))
    return figures, refused


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


def _counts_for(level: Level, item: ItemKey) -> list[tuple[str, bool, str]]:
    """What a thing counts for, whether its value is to be turned round, and the opponent in a game."""
    if level == "verdicts":
        return [(item[-2], False, item[-1]), (item[-1], True, item[-2])]
    if level == "criteria":
        return [(f"{item[-2]}, {item[-1]}", False, "")]
    if level == "support":
        return [(item[-3], False, "")]
    return [(item[-2] if level == "nuggets" else "all documents", False, "")]


def _score(level: Level, value: float, turned: bool) -> float:
    if level != "verdicts":
        return value
    return (1 - value) / 2 if turned else (1 + value) / 2


def _ratings(judge: Values, people: Values, chances: Chances, early: str) -> tuple[CorrectedRatings | None, str]:
    games = []
    for query_id, own in judge.items():
        for item, value in own.items():
            human, chance = people.get(query_id, {}).get(item), chances.get((query_id, item), 1.0)
            score = None if human is None else (1 + human) / 2
            games.append(ScoredGame(query_id, item[-2], item[-1], (1 + value) / 2, score, chance))
    queries, pairs = [game.query_id for game in games], [f"{game.a} and {game.b}" for game in games]
    scores, verdicts = [game.people for game in games], [game.judge for game in games]
    if not chances and (why := early or _not_random(queries, scores, verdicts, pairs, level=LEVEL / 2)):
        return None, why
    try:
        return corrected_ratings(games), ""
    except InputError as error:
        return None, str(error)
