"""What judges like besides quality: long answers, lists, citations, confident words, and kin of their own.

Bradley-Terry with covariates (``arena.ratings.covariates``): the effect is what one standard deviation more of a
quality is worth in points between agents of equal strength. A judge's liking for its own family cannot be told from
these agents being good by its verdicts alone; so the games of all raters are fitted together, and the effect is how
much better the judge finds its family than the others do, people among them where there are any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from arena.calibration.opinions import Opinion
from arena.calibration.orders import games_of
from arena.ratings.clustered import student
from arena.ratings.covariates import controlled_ratings, standardised_difference
from retrieval_eval.resampling import Estimate

_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+", re.MULTILINE)
_CITATION = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_CONFIDENT = re.compile(
    r"\b(?:certainly|clearly|definitely|obviously|undoubtedly|always|never|surely|without (?:a )?doubt|of course)\b",
    re.I,
)

QUALITIES: Final[Mapping[str, Callable[[str], float]]] = {
    "log_words": lambda text: float(np.log(max(1, len(text.split())))),
    "list_items": lambda text: float(len(_LIST_ITEM.findall(text))),
    "citations": lambda text: float(len(_CITATION.findall(text))),
    "confident_words": lambda text: float(len(_CONFIDENT.findall(text))),
}
"""Of an answer's text."""


@dataclass(frozen=True, slots=True)
class StyleEffect:
    """What a judge makes of one quality, or of its own family.

    Attributes:
        judge: whose verdicts these are.
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


def style_effects(judge: str, said: Sequence[Opinion], texts: Mapping[tuple[str, str], str]) -> tuple[StyleEffect, ...]:
    """The effect of each quality on one judge's verdicts, each by itself.

    Args:
        judge: its name.
        said: its verdicts.
        texts: of answers, by query and agent; verdicts on answers without a text are left out.
    """
    known = [one for one in said if all((one.query_id, agent) in texts for agent in one.item[-2:])]
    found = []
    for name, measure in QUALITIES.items():
        sides = [
            np.array([measure(texts[one.query_id, one.item[place]]) for one in known], np.float64) for place in (-2, -1)
        ]
        if not known or not (sides[0] != sides[1]).any():
            found.append(StyleEffect(judge, name, Estimate(None), len(known), "the same in both answers of every game"))
            continue
        found.append(_effect(judge, name, known, standardised_difference(*sides)))
    return tuple(found)


def family_effects(
    said: Sequence[Opinion], judges: Mapping[str, str], agents: Mapping[str, str]
) -> tuple[StyleEffect, ...]:
    """How much better each judge finds agents of its own family than all other raters do.

    Args:
        said: the verdicts of all raters, people among them.
        judges: families of judges; raters without one have none.
        agents: families of agents.
    """
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
        found.append(replace(_effect(judge, "own family", said, difference), games=own))
    return tuple(found)


def _effect(judge: str, name: str, said: Sequence[Opinion], difference: np.ndarray) -> StyleEffect:
    games, _ = games_of(said)
    try:
        fitted = controlled_ratings(games, {name: difference})
    except ValueError as error:
        return StyleEffect(judge, name, Estimate(None), len(said), str(error))
    (effect,) = fitted.effects
    if effect.sd is None or not fitted.converged:
        return StyleEffect(judge, name, Estimate(effect.points), len(said))
    half = student(0.95, fitted.clusters) * effect.sd
    points = Estimate(effect.points, effect.points - half, effect.points + half)
    return StyleEffect(judge, name, points, len(said))
