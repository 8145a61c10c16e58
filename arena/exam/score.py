"""The leaderboard of an evaluation by exam, at every level at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arena.exam.study import Study
from retrieval_eval.exam.alpha_ndcg import DEFAULT_ALPHA, alpha_ndcg
from retrieval_eval.exam.cover import DEFAULT_K, CoverScores, Floats, Mean, cover_means, cover_scores, mean
from retrieval_eval.exam.grades import Grids, make_grids
from retrieval_eval.exam.leaderboards import Correlation, correlate, places


@dataclass(frozen=True)
class AgentScores:
    """What one agent reaches.

    Attributes:
        agent: its name.
        cover: mean EXAM-Cover@k by level.
        possible: the same if every ungraded pair covered its item.
        normalised: mean normalised cover by level.
        alpha_ndcg: mean alpha-nDCG@k by level.
        place: on the leaderboard of the cover, by level; ties share the average.
        queries: queries of the topic set to which it has a response.
        pairs: pairs of passage and item that count.
        graded: those of them that have a grade.
    """

    agent: str
    cover: Mapping[int, Mean]
    possible: Mapping[int, Mean]
    normalised: Mapping[int, Mean]
    alpha_ndcg: Mapping[int, Mean]
    place: Mapping[int, float]
    queries: int
    pairs: int
    graded: int


@dataclass(frozen=True)
class ScoreReport:
    """Everything that ``exam score`` says.

    Attributes:
        agents: by cover at the usual level, the highest first.
        levels: lowest grades that count as covered.
        scores: the scores of each query.
        official: for each level, how the leaderboards of cover and of normalised cover agree with an official one.
    """

    agents: tuple[AgentScores, ...]
    levels: tuple[int, ...]
    scores: CoverScores
    official: Mapping[int, Mapping[str, Correlation]]


def score_report(
    study: Study,
    *,
    k: int = DEFAULT_K,
    alpha: float = DEFAULT_ALPHA,
    workbench: bool = False,
    official: Mapping[str, float] | None = None,
) -> ScoreReport:
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
    scores = cover_scores(grids, study.rankings, levels=study.levels, k=k)
    means = {
        name: cover_means(scores, values, own_queries=workbench)
        for name, values in {
            "cover": scores.cover,
            "possible": scores.possible,
            "normalised": scores.normalised,
        }.items()
    }
    ranks = {
        level: places({agent: means["cover"][agent, level].value for agent in scores.agents}) for level in scores.levels
    }
    diverse = {level: _alpha_ndcg(study, grids, scores, level, alpha) for level in scores.levels}
    rows = []
    for number, agent in enumerate(scores.agents):
        counted = scores.present[number] if workbench else np.ones(len(scores.queries), np.bool_)
        own = {name: {level: by[agent, level] for level in scores.levels} for name, by in means.items()}
        rows.append(
            AgentScores(
                agent,
                **own,
                alpha_ndcg={level: mean(diverse[level][number][counted]) for level in scores.levels},
                place={level: ranks[level][agent] for level in scores.levels},
                queries=int(scores.present[number].sum()),
                pairs=int(scores.pairs[number].sum()),
                graded=int(scores.graded[number].sum()),
            )
        )
    usual = study.usual_level
    rows.sort(key=lambda row: (row.place[usual], row.agent))
    return ScoreReport(tuple(rows), scores.levels, scores, _official(rows, scores.levels, official))


def _alpha_ndcg(study: Study, grids: Grids, scores: CoverScores, level: int, alpha: float) -> Floats:
    """Of every response, shape (agents, queries); 0 where an agent has none."""
    found = np.zeros((len(scores.agents), len(scores.queries)))
    for at, query_id in enumerate(scores.queries):
        responses = [study.rankings.get((query_id, agent), ()) for agent in scores.agents]
        found[:, at] = alpha_ndcg(grids.grids[query_id], responses, level=level, k=scores.k, alpha=alpha)
    return found


def _official(
    rows: list[AgentScores], levels: tuple[int, ...], official: Mapping[str, float] | None
) -> dict[int, dict[str, Correlation]]:
    if official is None:
        return {}
    return {
        level: {
            "cover": correlate({row.agent: row.place[level] for row in rows}, official),
            "normalised": correlate(places({row.agent: row.normalised[level].value for row in rows}), official),
        }
        for level in levels
    }
