"""What judges like besides quality: long answers, lists, citations, confident words, and kin of their own.

Bradley-Terry with covariates (``arena.ratings.covariates``): the effect is what one standard deviation more of a
quality is worth in points between agents of equal strength. A judge's liking for its own family cannot be told from
these agents being good by its verdicts alone; so the games of all raters are fitted together, and the effect is how
much better the judge finds its family than the others do, people among them where there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.calibration.consensus import games_of
from arena.calibration.votes import Opinion
from arena.present.numbers import counted
from arena.ratings import covariates
from arena.ratings.covariates import controlled_ratings, standardised_difference
from arena.ratings.games import Games, VerdictTable
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import FEW_QUERIES, student
from retrieval_eval.stats.estimate import Estimate

QUALITIES: Final[Mapping[str, Callable[[str], float]]] = {
    {"log_length": "log_words"}.get(name, name): measure for name, measure in covariates.QUALITIES.items()
}
"""Of an answer's text."""

Tell: TypeAlias = Callable[[float], None]
"""Told how far something is, from 0 to 1."""
_TOLD: Final = 2000
"""So many answers between two words on how far it is."""

AnswerQualities: TypeAlias = Mapping[tuple[str, str], Sequence[float]]
"""Each quality of each answer, in the order of ``QUALITIES``, by query and agent."""


class StyleEffect(Struct, frozen=True):
    """What a judge makes of one quality, or of its own family.

    Attributes:
        name: of the quality, or ``own family``.
        points: rating points per standard deviation (of a family: for being of it), at 95 % clustered by query.
        games: verdicts that it rests on.
        why_not: why there is no effect to tell.
    """

    judge: str
    name: str
    points: Estimate
    games: int
    why_not: str = ""


def answer_qualities(texts: Mapping[tuple[str, str], str], tell: Tell = lambda _: None) -> AnswerQualities:
    """Look at every answer once, however many games it plays; ``texts`` by query and agent."""
    found = {}
    for at, (key, text) in enumerate(texts.items()):
        if not at % _TOLD:
            tell(at / len(texts))
        found[key] = [measure(text) for measure in QUALITIES.values()]
    return found


def style_effects(
    judge: str, verdicts: VerdictTable, answers: AnswerQualities, tell: Tell = lambda _: None
) -> tuple[StyleEffect, ...]:
    """The effect of each quality on one judge's verdicts, each by itself.

    Verdicts on answers without known qualities are left out; ``tell`` is called with the share that is done.
    """
    assert verdicts.query is not None
    low, high = np.minimum(verdicts.a, verdicts.b), np.maximum(verdicts.a, verdicts.b)
    measured = _by_number(verdicts, answers)
    sides = measured[verdicts.query, low], measured[verdicts.query, high]
    known = np.asarray(~np.isnan(sides[0] + sides[1]).any(axis=1), np.bool_)
    games = _games(verdicts, known)
    found = []
    for place, name in enumerate(QUALITIES):
        tell(place / len(QUALITIES))
        first, second = (side[known, place] for side in sides)
        if (first == second).all():
            why_not = "the same in both answers of every game" if len(games) else "no answer's text is known"
            found.append(StyleEffect(judge, name, Estimate(None), len(games), why_not))
            continue
        found.append(_effect(judge, name, games, standardised_difference(first, second)))
    return tuple(found)


def family_effects(
    said: Sequence[Opinion], judges: Mapping[str, str], agents: Mapping[str, str]
) -> tuple[StyleEffect, ...]:
    """How much better each judge finds agents of its own family than all other raters do.

    ``said`` are the verdicts of all raters, people among them; the others are families, by name of judge and of agent.
    """
    games, _ = games_of(said)
    found = []
    for judge, family in sorted(judges.items()):
        kin = {name for name, own in agents.items() if own == family}
        difference = np.array(
            [float((one.item[-2] in kin) - int(one.item[-1] in kin)) * (one.rater == judge) for one in said]
        )
        own = int(np.count_nonzero(difference))
        if not own:
            found.append(StyleEffect(judge, "own family", Estimate(None), 0, f"no game of {family} against another"))
            continue
        found.append(replace(_effect(judge, "own family", games, difference), games=own))
    return tuple(found)


def _by_number(verdicts: VerdictTable, answers: AnswerQualities) -> Floats:
    """Qualities of the answers that play, NaN where there are none, shape (queries, agents, qualities)."""
    unknown = [np.nan] * len(QUALITIES)
    queries = verdicts.queries or ()
    return np.array([[answers.get((query_id, agent), unknown) for agent in verdicts.agents] for query_id in queries])


def _games(verdicts: VerdictTable, rows: NDArray[np.bool_]) -> Games:
    assert verdicts.cluster is not None
    a, b, outcome = verdicts.a[rows], verdicts.b[rows], verdicts.outcome[rows]
    used, codes = np.unique(np.concatenate([np.minimum(a, b), np.maximum(a, b)]), return_inverse=True)
    low, high = np.split(codes.astype(np.int32), 2)
    score = (1 + np.where(a < b, outcome, -outcome)) / 2
    cluster = np.unique(verdicts.cluster[rows], return_inverse=True)[1].astype(np.int32)
    return Games(tuple(verdicts.agents[agent] for agent in used), low, high, score, cluster)


def _effect(judge: str, name: str, games: Games, difference: Floats) -> StyleEffect:
    assert games.cluster is not None
    apart = np.unique(games.cluster[difference != 0]).size  # all others say nothing of it, nor of how it varies
    if apart < FEW_QUERIES:
        why_not = f"games differ in it on {counted(apart, 'query', 'queries')} only; it takes {FEW_QUERIES}"
        return StyleEffect(judge, name, Estimate(None), len(games), why_not)
    try:
        fitted = controlled_ratings(games, {name: difference})
    except ValueError as error:
        return StyleEffect(judge, name, Estimate(None), len(games), str(error))
    (effect,) = fitted.effects
    if effect.sd is None or not fitted.converged:
        return StyleEffect(judge, name, Estimate(effect.points), len(games))
    half = student(0.95, apart) * effect.sd
    points = Estimate(effect.points, effect.points - half, effect.points + half)
    return StyleEffect(judge, name, points, len(games))
