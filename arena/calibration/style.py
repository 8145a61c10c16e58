"""Style bias of judges: their preference for length, lists, citations, confident words and their own model family.

Bradley-Terry with covariates (``arena.ratings.covariates``). The effect of a quality is what one standard deviation
more of it is worth, in rating points, between agents of equal strength. Family bias cannot be separated from the
strength of those agents by the judge's verdicts alone. So the games of all raters, people included, are fitted
together, and the effect is how much higher the judge rates its family than the other raters do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.calibration import Opinion
from arena.calibration.consensus import games_of
from arena.present.numbers import counted
from arena.ratings import covariates
from arena.ratings.covariates import controlled_ratings, standardised_difference
from arena.ratings.games import Games, VerdictTable, used
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import FEW_QUERIES, student
from retrieval_eval.stats.estimate import Estimate

QUALITIES: Final[Mapping[str, Callable[[str], float]]] = {
    {"log_length": "log_words"}.get(name, name): measure for name, measure in covariates.QUALITIES.items()
}

Tell: TypeAlias = Callable[[float], None]
"""Function to call with the share of the work that is done, from 0 to 1."""
_REPORT_EVERY: Final = 2000
"""Number of answers to measure between two reports of progress."""

AnswerQualities: TypeAlias = Mapping[tuple[str, str], Sequence[float]]
"""Measured qualities of each answer, such as its length, in the order of ``QUALITIES``; by query and agent."""


class StyleEffect(Struct, frozen=True):
    """How much a quality of answers, or being of the judge's own model family, raises an agent in a judge's verdicts.

    Attributes:
        name: name of the quality, or ``own family``.
        points: effect in rating points, for one standard deviation more of the quality or for being of the family,
            with a 95 % interval clustered by query.
        games: number of verdicts from which the effect is estimated.
        why_not: why the effect is unknown; else empty.
    """

    judge: str
    name: str
    points: Estimate
    games: int
    why_not: str = ""


def answer_qualities(texts: Mapping[tuple[str, str], str], tell: Tell = lambda _: None) -> AnswerQualities:
    """Measure qualities of each answer, such as its length; ``texts`` has the answers' texts by query and agent."""
    qualities = {}
    for number, (key, text) in enumerate(texts.items()):
        if not number % _REPORT_EVERY:
            tell(number / len(texts))
        qualities[key] = [measure(text) for measure in QUALITIES.values()]
    return qualities


def style_effects(
    judge: str, verdicts: VerdictTable, answers: AnswerQualities, tell: Tell = lambda _: None
) -> tuple[StyleEffect, ...]:
    """Estimate the effect of each quality on one judge's ``verdicts``, one quality at a time.

    Verdicts on answers without known qualities are skipped.
    """
    assert verdicts.query is not None
    low, high = np.minimum(verdicts.a, verdicts.b), np.maximum(verdicts.a, verdicts.b)
    measured = _quality_table(verdicts, answers)
    sides = measured[verdicts.query, low], measured[verdicts.query, high]
    known = np.asarray(~np.isnan(sides[0] + sides[1]).any(axis=1), np.bool_)
    games = _games(verdicts, known)
    effects = []
    for column, name in enumerate(QUALITIES):
        tell(column / len(QUALITIES))
        first, second = (side[known, column] for side in sides)
        if (first == second).all():
            why_not = "the same in both answers of every game" if len(games) else "no answer's text is known"
            effects.append(StyleEffect(judge, name, Estimate(None), len(games), why_not))
            continue
        effects.append(_effect(judge, name, games, standardised_difference(first, second)))
    return tuple(effects)


def family_effects(
    verdicts: Sequence[Opinion], judges: Mapping[str, str], agents: Mapping[str, str]
) -> tuple[StyleEffect, ...]:
    """Estimate how much higher each judge rates agents of its own model family than all other raters do.

    ``verdicts`` has the verdicts of all raters, people included. ``judges`` and ``agents`` have the model family of
    each judge and agent by name.
    """
    games, _ = games_of(verdicts)
    effects = []
    for judge, family in sorted(judges.items()):
        kin = {name for name, agent_family in agents.items() if agent_family == family}
        difference = np.array(
            [
                float((verdict.item[-2] in kin) - int(verdict.item[-1] in kin)) * (verdict.rater == judge)
                for verdict in verdicts
            ]
        )
        count = int(np.count_nonzero(difference))
        if not count:
            effects.append(StyleEffect(judge, "own family", Estimate(None), 0, f"no game of {family} against another"))
            continue
        effects.append(replace(_effect(judge, "own family", games, difference), games=count))
    return tuple(effects)


def _quality_table(verdicts: VerdictTable, answers: AnswerQualities) -> Floats:
    """Arrange the answers' qualities by query and agent, shape (queries, agents, qualities); NaN if unknown."""
    unknown = [np.nan] * len(QUALITIES)
    queries = verdicts.queries or ()
    return np.array([[answers.get((query_id, agent), unknown) for agent in verdicts.agents] for query_id in queries])


def _games(verdicts: VerdictTable, rows: NDArray[np.bool_]) -> Games:
    assert verdicts.cluster is not None
    a, b, outcome = verdicts.a[rows], verdicts.b[rows], verdicts.outcome[rows]
    agents, codes = used(verdicts.agents, np.concatenate([np.minimum(a, b), np.maximum(a, b)]))
    low, high = np.split(codes, 2)
    score = (1 + np.where(a < b, outcome, -outcome)) / 2
    return Games(agents, low, high, score, verdicts.cluster[rows])


def _effect(judge: str, name: str, games: Games, difference: Floats) -> StyleEffect:
    assert games.cluster is not None
    informative = np.unique(games.cluster[difference != 0]).size  # other queries tell nothing about the effect
    if informative < FEW_QUERIES:
        why_not = f"games differ in it on {counted(informative, 'query', 'queries')} only; it takes {FEW_QUERIES}"
        return StyleEffect(judge, name, Estimate(None), len(games), why_not)
    try:
        fitted = controlled_ratings(games, {name: difference})
    except ValueError as error:
        return StyleEffect(judge, name, Estimate(None), len(games), str(error))
    (effect,) = fitted.effects
    if effect.sd is None or not fitted.converged:
        return StyleEffect(judge, name, Estimate(effect.points), len(games))
    half = student(0.95, informative) * effect.sd
    points = Estimate(effect.points, effect.points - half, effect.points + half)
    return StyleEffect(judge, name, points, len(games))
