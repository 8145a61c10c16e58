"""Missing judgments by agent and query, and a test of whether one agent misses more than the others.

A judgment that failed or was never made is missing. It does not count as 0: a score is the mean of the judgments that
exist, shown with the number of those that do not. Where the missing ones could change a conclusion, the score also has
bounds: its value if all of them were the worst possible, and if all were the best.

Judgments may be missing because of one agent, for example if a filter refuses its answers. Fisher's exact test compares
each agent's share of missing judgments with that of all others. Judgments of one query often fail together, so both
shares are counted as an effective number of independent judgments, by the design effect between queries or
conversations (the larger of the two; Korn and Graubard 1998, Survey Methodology 24): ten failures on one query count as
one. p-values are corrected for the number of agents and scores (Holm).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace

from retrieval_eval.stats.arrays import Floats, Ints
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of
from retrieval_eval.stats.significance import holm

LEVEL: Final = 0.05
"""Below this p-value, after Holm's correction, a share differs by more than chance."""
_ROUNDING: Final = 1e-7


class Gaps(Struct, frozen=True, eq=False):
    """Judgments by agent and query.

    Attributes:
        agents, queries: of the rows and columns.
        wanted: that a score rests on, shape (agents, queries).
        missing: those of them that failed or were never made; likewise.
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    wanted: Ints
    missing: Ints

    def of(self, agent: str) -> tuple[int, int]:
        """How many are missing, and of how many."""
        if agent not in self.agents:
            return 0, 0
        row = self.agents.index(agent)
        return int(self.missing[row].sum()), int(self.wanted[row].sum())

    def among(self, agents: Sequence[str]) -> Gaps:
        """The same of these agents alone."""
        rows = [self.agents.index(agent) for agent in agents if agent in self.agents]
        names = tuple(self.agents[row] for row in rows)
        return Gaps(names, self.queries, self.wanted[rows], self.missing[rows])


def gaps_of(judged: Iterable[tuple[str, str, bool]]) -> Gaps:
    """Of agents and queries with a judgment each, and whether it is there."""
    counts: dict[tuple[str, str], list[int]] = {}
    for agent, query_id, there in judged:
        own = counts.setdefault((agent, query_id), [0, 0])
        own[0] += 1
        own[1] += not there
    agents, queries = (tuple(sorted({key[place] for key in counts})) for place in (0, 1))
    cells = np.array([[counts.get((agent, query), (0, 0)) for query in queries] for agent in agents], np.int64)
    wanted, missing = np.moveaxis(cells.reshape(len(agents), len(queries), 2), -1, 0)
    return Gaps(agents, queries, wanted, missing)


class MissingShare(Struct, frozen=True):
    """What one agent lacks of one score beside all others.

    Attributes:
        score: its name.
        missing, wanted: of the agent's judgments.
        others_missing, others_wanted: of all other agents'.
        p: that the shares differ so far by chance, corrected for all that is looked at.
        p_alone: the same if no two judgments failed together.
    """

    score: str
    agent: str
    missing: int
    wanted: int
    others_missing: int
    others_wanted: int
    p: float
    p_alone: float

    @property
    def more(self) -> bool:
        """Whether the agent lacks a larger share than the others."""
        return self.missing * self.others_wanted > self.others_missing * self.wanted

    @property
    def uneven(self) -> bool:
        """Whether it lacks more by more than chance."""
        return self.more and self.p < LEVEL

    @property
    def doubtful(self) -> bool:
        """Whether it lacks more, and a few queries may be why."""
        return self.more and self.p_alone < LEVEL <= self.p


def shares(gaps: Mapping[str, Gaps], clusters: Clusters = ALONE) -> tuple[MissingShare, ...]:
    """Every agent's share of every score of which anything is missing, by the score's name."""
    found: list[MissingShare] = []
    for name, own in gaps.items():
        if not own.missing.any() or len(own.agents) < 2:
            continue
        unit = units_of(own.queries, clusters)
        missing, wanted = (np.array([np.bincount(unit, row) for row in table]) for table in (own.missing, own.wanted))
        for row, agent in enumerate(own.agents):
            rest = np.arange(len(own.agents)) != row
            ours, theirs = missing[row], missing[rest].sum(axis=0)
            of_ours, of_theirs = wanted[row], wanted[rest].sum(axis=0)
            counts = [int(count.sum()) for count in (ours, of_ours, theirs, of_theirs)]
            if of_ours.any() and of_theirs.any():
                effect = max(1.0, _design_effect(ours, of_ours), _design_effect(theirs, of_theirs))
                clustered = _fisher(*(round(count / effect) for count in counts))
                found.append(MissingShare(name, agent, *counts, clustered, _fisher(*counts)))  # type: ignore[call-arg]
    corrected = (holm(np.array([getattr(own, name) for own in found])).tolist() for name in ("p", "p_alone"))
    return tuple(replace(own, p=p, p_alone=alone) for own, p, alone in zip(found, *corrected, strict=True))


def _design_effect(missing: Floats, wanted: Floats) -> float:
    """How many times as much a share varies between units as one of independent judgments would."""
    units, size, share = int((wanted > 0).sum()), wanted.sum(), missing.sum() / wanted.sum()
    spread = share * (1 - share)
    if not spread or units < 2:
        return 1.0
    return float(((missing - share * wanted) ** 2).sum() / size / spread * units / (units - 1))


def _fisher(lost: int, n: int, also: int, m: int) -> float:
    """Two-sided p-value of two shares, ``lost`` of ``n`` and ``also`` of ``m``."""
    total = lost + also
    first = np.arange(max(0, total - m), min(total, n) + 1)
    log = _log_choose(n, first) + _log_choose(m, total - first) - _log_choose(n + m, total)
    chances = np.exp(log - scipy.special.logsumexp(log))
    return min(1.0, float(chances[chances <= chances[lost - first[0]] * (1 + _ROUNDING)].sum()))


def _log_choose(n: int, k: Ints | int) -> Floats:
    found: Floats = (
        scipy.special.gammaln(n + 1)
        - scipy.special.gammaln(np.add(k, 1))
        - scipy.special.gammaln(n - np.asarray(k) + 1)
    )
    return found


def over_the_known(share: Floats, least: Floats, most: Floats) -> Floats:
    """A share of parts, some of which lack judgments: exact where these leave nothing open, else over the others.

    Where the best of several judgments decides of a part (whether any passage answers a question, whether any citation
    supports a sentence), a part that lacks a judgment may be known all the same, as one of the others is the best there
    can be. Such parts are in the bounds and not in the share: the more judgments fail, the more of the known parts
    would be good ones. With four passages, of which 30 % of the grades fail, a cover of 0.30 would look like 0.51, with
    60 % like 0.85; over the parts that lack none it stays 0.30. A single share may so lie outside its bounds. To move
    it there would raise the mean again, to 0.36, since what is known is mostly good.

    ``share`` is over the parts of which no judgment is missing, NaN without any. ``least`` and ``most`` are of all
    parts, whatever the missing judgments would say.
    """
    return np.where(least == most, least, share)
