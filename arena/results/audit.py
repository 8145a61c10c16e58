"""Results of the audit: points that judges gave to cheating answers, and what other wordings of a prompt change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration.cheats import COPIES, rating_for
from arena.config.stages import WORDINGS
from arena.ratings.games import tabulate
from arena.ratings.other_judges import parts_of
from arena.ratings.rate import anchored, rate, rate_by_judge
from arena.ratings.results import OtherJudges, Ratings, RatingSettings
from arena.results.cache import cached_games
from arena.results.outcomes import StageResults, each_outcome, outcomes
from arena.results.ratings import rating_settings
from arena.stages.audit import AUDIT
from arena.stages.support import SUPPORT
from arena.store import Result, Store, Wanted
from arena.store.outcomes import game_verdicts
from judges.types import GAME_OUTCOMES, Judgment, Task, Verdict, repeat_of
from retrieval_eval.exam.grades import origin_of
from retrieval_eval.nuggets.types import Support
from retrieval_eval.stats.agreement import label_agreement
from retrieval_eval.stats.bootstrap import Clusters, mean_estimates, share_estimate, smallest_share, units_of
from retrieval_eval.stats.components import contributions_of_mean, for_other_judges, variance
from retrieval_eval.stats.estimate import Estimate

BAR: Final = 0.2
"""Largest share of judgments that another wording may flip."""
_TASKS: Final[Mapping[Task, str]] = {
    Task.PAIRWISE: "games",
    Task.CRITERIA: "criteria",
    Task.GRADING: "exam",
    Task.ASSIGNMENT: "nuggets",
    Task.PASSAGE_ASSIGNMENT: "nuggets of documents",
    SUPPORT: "citations",
}
_NUMBERS: Final = {
    Verdict.A.value: 1,
    Verdict.TIE.value: 0,
    Verdict.B.value: -1,
    Support.FULL.value: 2,
    Support.PARTIAL.value: 1,
    Support.NONE.value: 0,
}
"""Number of each outcome that is a word; other outcomes are numbers."""
USUAL: Final = "wording 1"


class Flips(Struct, frozen=True):
    """How often another wording of the prompt flips a judge's judgments.

    Attributes:
        stage: what was judged, such as ``games``.
        wording: number of the wording; the usual one is 1.
        n, queries: number of labels judged by both wordings, and of queries (or conversations) that these are on.
        flips: share of them that differ.
        kappa: Cohen's kappa of both wordings.
        least: the smallest share of flips that this sample shows to be above ``BAR`` with 80 % probability.
    """

    stage: str
    judge: str
    wording: int
    n: int
    queries: int
    flips: Estimate
    kappa: Estimate
    least: float | None


class AuditResults(StageResults, frozen=True, eq=False, kw_only=True):
    """The points that each judge gave to each kind of cheating answer, and what other wordings change.

    Attributes:
        rows: one row per judge and cheat, with ``judge``, ``canary``, ``queries`` (number of games with verdicts in
            both orders), ``missing`` (number of other games), ``points`` (share of the points that the cheat won, a tie
            counts half), ``fair`` (the share that it deserves), ``given`` (points minus fair) and ``rank`` (the rank
            among the agents that these points would give it).
        flips: one row per task, judge and further wording.
        by_wording: ratings from the sample's games by each wording alone.
        differences: by task, neighbours in the sample with intervals for other wordings, and parts of the variance.
        changes: by task other than games, what changes by a wording alone, in words.
    """

    rows: Sequence[Mapping[str, Any]]
    flips: Sequence[Flips] = ()
    by_wording: Mapping[str, Ratings] = {}
    differences: Mapping[str, Sequence[OtherJudges]] = {}
    changes: Mapping[str, Sequence[str]] = {}


def results(store: Store, tournament: str) -> AuditResults:
    settings, games = store.settings(tournament), cached_games(store, tournament)
    options = replace(rating_settings(settings), intervals="sandwich", bootstrap=0, tournaments=0, fragility="none")
    rated = rate(games.verdicts(), options) if games.played.any() else None
    points: defaultdict[tuple[str, str], dict[tuple[str, str], dict[str, float]]] = defaultdict(dict)
    for want, result in outcomes(store, tournament, AUDIT):
        orders = points[want.judge, want.item].setdefault((want.query_id, want.other), {})
        if isinstance(result, Judgment):
            won = GAME_OUTCOMES[str(result.outcome)].points
            orders[want.order] = won if want.order == "ab" else 1 - won
    rows = [_row(key, orders, rated, games.clusters) for key, orders in points.items()]
    return AuditResults(rows=rows, **_reworded(store, tournament, games.clusters, options))


def _reworded(store: Store, tournament: str, clusters: Clusters, options: RatingSettings) -> dict[str, Any]:
    """The fields of ``AuditResults`` on wordings."""
    flips: list[Flips] = []
    fields: dict[str, Any] = {"flips": flips, "differences": {}, "changes": {}}
    for task, name in _TASKS.items():
        again = {
            number: {replace(want, task=task): result for want, result in outcomes(store, tournament, worded)}
            for worded, (first, number) in WORDINGS.items()
            if first is task
        }
        sample = set().union(*again.values())
        if not sample:
            continue
        usual = {want: result for want, result in each_outcome(store, tournament, task) if want in sample}
        by_wording = {number: _judged(results) for number, results in {1: usual, **again}.items() if results}
        for number, judged in by_wording.items():
            flips += [
                _flips((name, judge, number), by_wording[1], judged, clusters)
                for judge in dict.fromkeys(want.judge for want in sample)
                if number > 1
            ]
        whole = set.intersection(*(set(judged) for judged in by_wording.values()))
        if task is Task.PAIRWISE and whole:
            table = tabulate(
                replace(verdict, judge=f"wording {number}")
                for number, judged in by_wording.items()
                for verdict in game_verdicts((want, judged[want]) for want in usual if want in whole)
            ).clustered(clusters)
            options, _ = anchored(options, table.agents)
            fields["by_wording"] = rate_by_judge(table, options)
            fields["differences"][name] = rate(table, options).other_judges
        elif whole:
            values = {number: {want: judged[want] for want in whole} for number, judged in by_wording.items()}
            fields["differences"][name], fields["changes"][name] = _of_scores(values, clusters)
    return fields


def _judged(results: Mapping[Wanted, Result | None]) -> dict[Wanted, Judgment]:
    return {want: result for want, result in results.items() if isinstance(result, Judgment)}


def _labels(judgment: Judgment) -> list[int]:
    outcome = judgment.outcome
    values = outcome.values() if isinstance(outcome, Mapping) else outcome if isinstance(outcome, tuple) else [outcome]
    return [_NUMBERS[value] if isinstance(value, str) else round(value) for value in values]


def _flips(
    of: tuple[str, str, int], usual: Mapping[Wanted, Judgment], again: Mapping[Wanted, Judgment], clusters: Clusters
) -> Flips:
    """``of`` is the stage, the judge and the number of the wording."""
    stage, judge, _ = of
    both: tuple[defaultdict[str, dict[Any, int]], ...] = defaultdict(dict), defaultdict(dict)
    for want in (want for want in usual if want.judge == judge and want in again):
        for labels, judged in zip(both, (usual, again), strict=True):
            labels[want.query_id] |= {(want, place): label for place, label in enumerate(_labels(judged[want]))}
    agreement = label_agreement(*both, mirrored=stage == _TASKS[Task.PAIRWISE], clusters=clusters)
    same = agreement.agreement
    value, low, high = (None if end is None else 1 - end for end in (same.value, same.high, same.low))
    flips = Estimate(value, low, high, agreement.queries, same.method)
    least = smallest_share(BAR, flips, agreement.queries)
    return Flips(*of, agreement.n, agreement.queries, flips, agreement.kappa, least)


def _of_scores(
    by_wording: Mapping[int, Mapping[Wanted, Judgment]], clusters: Clusters
) -> tuple[list[OtherJudges], list[str]]:
    """Neighbours by the mean label of each agent's answers, and which of them change places by a wording alone."""
    labels: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for place, judged in enumerate(by_wording.values()):
        for want, judgment in judged.items():
            origin = origin_of(want.item) if want.task is Task.GRADING else (want.query_id, want.item, 0)
            if origin is not None and want.task is not Task.PASSAGE_ASSIGNMENT:
                labels[repeat_of(origin[1])[0], clusters.get(want.query_id, want.query_id), place] += _labels(judgment)
    agents, units = sorted({agent for agent, _, _ in labels}), sorted({unit for _, unit, _ in labels})
    means = np.full((len(agents), len(units), len(by_wording)), np.nan)
    for (agent, unit, place), numbers in labels.items():
        means[agents.index(agent), units.index(unit), place] = np.mean(numbers)
    best = sorted(range(len(agents)), key=lambda at: (-float(np.nanmean(means[at, :, 0])), agents[at]))
    rows, changes = list[OtherJudges](), list[str]()
    for one, other in pairwise(best):
        difference = means[one] - means[other]
        if (known := ~np.isnan(difference[:, 0])).sum() < 2:
            continue
        cells = contributions_of_mean(difference[np.newaxis])
        half = float(variance(cells).half_widths(0.025)[0])
        reach = max(1.0, float(np.abs(difference[known]).max()))
        both = np.stack([difference[known].mean(axis=1), difference[known, 0]])
        together, usual = mean_estimates(both, np.arange(known.sum()), (-reach, reach))
        interval, ahead, behind = for_other_judges(together, half), agents[one], agents[other]
        rows.append(OtherJudges(ahead, behind, len(by_wording), interval, parts_of(cells[..., np.newaxis])))
        changes += [
            f"by wording {number} alone {behind} is ahead of {ahead}"
            for number, value in zip(by_wording, difference[known].mean(axis=0).tolist(), strict=True)
            if value < 0 < (usual.low or 0)
        ]
    return rows, changes


def _row(
    key: tuple[str, str],
    games: Mapping[tuple[str, str], Mapping[str, float]],
    rated: Ratings | None,
    clusters: Clusters,
) -> dict[str, Any]:
    judge, canary = key
    ratings = {} if rated is None else {row.agent: row.bt for row in rated.agents}
    scored_games = {game: sum(orders.values()) / 2 for game, orders in games.items() if len(orders) == 2}
    unit = units_of([clusters.get(game[0], repr(game)) for game in scored_games])
    share = share_estimate(np.bincount(unit, [*scored_games.values()]), np.bincount(unit))
    fair = 0.5 if canary in COPIES else 0.0
    met = [ratings[agent] for _, agent in scored_games if agent in ratings]
    model: dict[str, Any] = {}
    if rated is not None:
        model = {"ties": rated.settings.tie_model, "tie_parameter": rated.tie_parameter, "scale": rated.settings.scale}
    places = [_place(rating_for(end, met, **model), ratings) for end in (share.value, share.high, share.low)]
    rank = None
    if places[0] is not None:
        rank = f"{places[0]} of {len(ratings) + 1}"
        rank += f" ({places[1]} to {places[2]})" if None not in places and places[1] != places[2] else ""
    value, low, high = (None if end is None else end - fair for end in (share.value, share.low, share.high))
    return {
        "judge": judge,
        "canary": canary,
        "queries": len(scored_games),
        "missing": len(games) - len(scored_games),
        "points": share,
        "fair": fair,
        "given": Estimate(value, low, high),
        "rank": rank,
    }


def _place(rating: float | None, ratings: Mapping[str, float]) -> int | None:
    return (
        None if rating is None or not ratings else 1 + sum(agent_rating > rating for agent_rating in ratings.values())
    )
