"""The scores of an evaluation by exam, at every level at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from arena.stages.exam.study import Study
from retrieval_eval.exam.grades import Grids, make_grids
from retrieval_eval.exam.scores import (
    DEFAULT_ALPHA,
    DEFAULT_K,
    CoverScores,
    Mean,
    alpha_ndcg,
    cover_means,
    cover_scores,
    places,
)
from retrieval_eval.stats.bootstrap import Floats

Measure: TypeAlias = Literal["cover", "possible", "normalised", "alpha_ndcg"]
"""EXAM-Cover@k; the same if every ungraded pair covered its item; normalised cover; alpha-nDCG@k."""


@dataclass(frozen=True)
class ExamScores:
    """What every agent reaches in an exam.

    Attributes:
        study: what is scored.
        grids: the grades that count.
        cover: of each agent, query and level.
        alpha: of alpha-nDCG.
        workbench: whether means are over the queries to which an agent has a response, as the workbench's code counts.
        official: places of the agents on another leaderboard, to compare with.
    """

    study: Study
    grids: Grids
    cover: CoverScores
    alpha: float = DEFAULT_ALPHA
    workbench: bool = False
    official: Mapping[str, float] | None = None

    @property
    def level(self) -> int:
        """The grade from which an item usually counts as covered."""
        return self.study.usual_level

    def means(self, measure: Measure, level: int) -> dict[str, Mean]:
        """Each agent's mean over queries."""
        of = self.alpha_ndcg if measure == "alpha_ndcg" else getattr(self.cover, measure)
        return cover_means(self.cover, of, level, own_queries=self.workbench)

    def places(self, level: int, measure: Measure = "cover") -> dict[str, float]:
        """Each agent's place, the first one first, then by name; ties share the average."""
        found = places({agent: mean.value for agent, mean in self.means(measure, level).items()})
        return dict(sorted(found.items(), key=lambda own: (own[1], own[0])))

    def agents(self, level: int) -> dict[str, dict[str, Any]]:
        """By agent, the first one first: ``place``, the mean of each measure, and how much that rests on."""
        means = {measure: self.means(measure, level) for measure in get_args(Measure)}
        counts = {
            "queries": self.cover.present.sum(axis=1).tolist(),
            "pairs": self.cover.pairs.sum(axis=1).tolist(),
            "graded": self.cover.graded.sum(axis=1).tolist(),
        }
        return {
            agent: {
                "place": place,
                **{measure: own[agent] for measure, own in means.items()},
                **{name: own[self.cover.agents.index(agent)] for name, own in counts.items()},
            }
            for agent, place in self.places(level).items()
        }

    @cached_property
    def covers(self) -> dict[str, float]:
        """By agent the mean cover at the usual level."""
        means = self.means("cover", self.level)
        return {agent: means[agent].value for agent in self.places(self.level)}

    @cached_property
    def alpha_ndcg(self) -> Floats:
        """Of every response, shape (agents, queries, levels); 0 where an agent has none."""
        found = np.zeros(self.cover.cover.shape)
        for at, query_id in enumerate(self.cover.queries):
            responses = [self.study.rankings.get((query_id, agent), ()) for agent in self.cover.agents]
            for place, level in enumerate(self.cover.levels):
                found[:, at, place] = alpha_ndcg(
                    self.grids.grids[query_id], responses, level=level, k=self.cover.k, alpha=self.alpha
                )
        return found


def exam_scores(
    study: Study,
    *,
    k: int = DEFAULT_K,
    alpha: float = DEFAULT_ALPHA,
    workbench: bool = False,
    official: Mapping[str, float] | None = None,
) -> ExamScores:
    """Score all agents.

    Args:
        study: what to score.
        k: passages of a response that count.
        alpha: of alpha-nDCG.
        workbench: as its code does: divide by the items that have a grade instead of the bank's, every item with the
            weight 1, and average over the queries to which an agent has a response.
        official: places of the agents on another leaderboard.
    """
    grids = make_grids(study.grades, None, study.rankings) if workbench else study.grids
    cover = cover_scores(grids, study.rankings, levels=study.levels, k=k)
    return ExamScores(study, grids, cover, alpha, workbench, official)
