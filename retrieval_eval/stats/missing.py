"""Missing judgments by agent and query, and a test of whether one agent has more of them than the other agents.

A judgment that failed or was never made is missing. It does not count as 0: a score is the mean of the existing
judgments, shown with the number of missing ones. If the missing judgments could change a conclusion, the score also has
bounds: its value if all missing judgments were the worst possible, and if all were the best.

Judgments may be missing because of one agent, for example if a filter refuses its answers. Fisher's exact test compares
each agent's share of missing judgments with the share of all other agents. Judgments of one query often fail together,
so both shares are counted as an effective number of independent judgments, by the design effect between queries or
conversations (the larger of the two; Korn and Graubard 1998, Survey Methodology 24): ten failures on one query count as
one. p-values are corrected for the number of agents and scores (Holm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import scipy
from msgspec import Struct
from msgspec.structs import replace

from retrieval_eval.stats.arrays import Floats, Ints
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of
from retrieval_eval.stats.significance import holm

LEVEL: Final = 0.05
"""Significance level for p-values after Holm's correction."""
_ROUNDING: Final = 1e-7


class Gaps(Struct, frozen=True, eq=False):
    """Numbers of requested and missing judgments by agent and query.

    Attributes:
        agents, queries: names of the rows and columns.
        wanted: number of judgments that a score needs, shape (agents, queries).
        missing: number of these judgments that failed or were never made, shape (agents, queries).
    """

    agents: tuple[str, ...]
    queries: tuple[str, ...]
    wanted: Ints
    missing: Ints

    def of(self, agent: str) -> tuple[int, int]:
        """An agent's number of missing judgments, and the number of judgments that its score needs."""
        if agent not in self.agents:
            return 0, 0
        row = self.agents.index(agent)
        return int(self.missing[row].sum()), int(self.wanted[row].sum())

    def among(self, agents: Sequence[str]) -> Gaps:
        """The numbers of only these agents."""
        rows = [self.agents.index(agent) for agent in agents if agent in self.agents]
        names = tuple(self.agents[row] for row in rows)
        return Gaps(names, self.queries, self.wanted[rows], self.missing[rows])


class MissingShare(Struct, frozen=True):
    """One agent's share of missing judgments for one score, compared with all other agents.

    Attributes:
        score: name of the score.
        missing: number of the agent's missing judgments.
        wanted: number of judgments that the agent's score needs.
        others_missing: number of missing judgments of all other agents together.
        others_wanted: number of judgments that the scores of all other agents need.
        p: p-value of equal shares, with judgments clustered by query, corrected for all agents and scores.
        p_alone: p-value of equal shares if all judgments are independent, corrected in the same way.
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
        """Whether the agent's share of missing judgments is larger than that of the other agents."""
        return self.missing * self.others_wanted > self.others_missing * self.wanted

    @property
    def uneven(self) -> bool:
        """Whether the agent's share of missing judgments is significantly larger than that of the other agents."""
        return self.more and self.p < LEVEL

    @property
    def doubtful(self) -> bool:
        """Whether the share is significantly larger only without clustering, so that a few queries may explain it."""
        return self.more and self.p_alone < LEVEL <= self.p


def shares(gaps: Mapping[str, Gaps], clusters: Clusters = ALONE) -> tuple[MissingShare, ...]:
    """Each agent's share of missing judgments, for each score with missing judgments; ``gaps`` has scores as keys."""
    agent_shares: list[MissingShare] = []
    for name, score_gaps in gaps.items():
        if not score_gaps.missing.any() or len(score_gaps.agents) < 2:
            continue
        unit = units_of(score_gaps.queries, clusters)
        missing, wanted = (
            np.array([np.bincount(unit, row) for row in table]) for table in (score_gaps.missing, score_gaps.wanted)
        )
        for row, agent in enumerate(score_gaps.agents):
            rest = np.arange(len(score_gaps.agents)) != row
            missing_here, missing_there = missing[row], missing[rest].sum(axis=0)
            wanted_here, wanted_there = wanted[row], wanted[rest].sum(axis=0)
            counts = [int(count.sum()) for count in (missing_here, wanted_here, missing_there, wanted_there)]
            if wanted_here.any() and wanted_there.any():
                effect = max(
                    1.0, _design_effect(missing_here, wanted_here), _design_effect(missing_there, wanted_there)
                )
                clustered = _fisher(*(round(count / effect) for count in counts))
                agent_shares.append(MissingShare(name, agent, *counts, clustered, _fisher(*counts)))  # type: ignore[call-arg]
    corrected = (holm(np.array([getattr(share, name) for share in agent_shares])).tolist() for name in ("p", "p_alone"))
    return tuple(replace(share, p=p, p_alone=alone) for share, p, alone in zip(agent_shares, *corrected, strict=True))


def _design_effect(missing: Floats, wanted: Floats) -> float:
    """Variance of the share between units, divided by the variance that independent judgments would have."""
    units, size, share = int((wanted > 0).sum()), wanted.sum(), missing.sum() / wanted.sum()
    spread = share * (1 - share)
    if not spread or units < 2:
        return 1.0
    return float(((missing - share * wanted) ** 2).sum() / size / spread * units / (units - 1))


def _fisher(missing: int, n: int, others_missing: int, m: int) -> float:
    """Two-sided p-value of Fisher's exact test of two shares, ``missing / n`` and ``others_missing / m``."""
    total = missing + others_missing
    first = np.arange(max(0, total - m), min(total, n) + 1)
    log = _log_choose(n, first) + _log_choose(m, total - first) - _log_choose(n + m, total)
    chances = np.exp(log - scipy.special.logsumexp(log))
    return min(1.0, float(chances[chances <= chances[missing - first[0]] * (1 + _ROUNDING)].sum()))


def _log_choose(n: int, k: Ints | int) -> Floats:
    logarithm: Floats = (
        scipy.special.gammaln(n + 1)
        - scipy.special.gammaln(np.add(k, 1))
        - scipy.special.gammaln(n - np.asarray(k) + 1)
    )
    return logarithm


def over_the_known(share: Floats, least: Floats, most: Floats) -> Floats:
    """A share of parts with missing judgments: the exact value if both bounds agree, else ``share``.

    The best of several judgments decides about a part (does any passage answer a question, does any citation support a
    sentence). So a part with a missing judgment can be known, because another judgment is already the best possible.
    Such parts count in the bounds but not in the share, because they always have the best value: the more judgments
    fail, the larger their proportion of the known parts. If 30 % of the grades of four passages fail, a cover of 0.30
    would become 0.51, and if 60 % fail, 0.85; over the parts without missing judgments it stays 0.30. So a single share
    may be outside its bounds. Clipping it to the bounds would bias the mean again, to 0.36.

    Args:
        share: share over the parts without missing judgments; NaN if there are none.
        least: lowest possible share over all parts.
        most: highest possible share over all parts.
    """
    return np.where(least == most, least, share)
