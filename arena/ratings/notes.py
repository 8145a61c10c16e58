"""What a reader must know before believing a leaderboard, in words."""

from __future__ import annotations

import numpy as np

from arena.present.numbers import SIGNED
from arena.ratings.bootstrap import Bootstrap
from arena.ratings.bradley_terry import BradleyTerry
from arena.ratings.games import Games, Tally, VerdictTable
from arena.ratings.ranks import Comparison, fewest_queries
from retrieval_eval.stats.estimate import Estimate

ONE_ORDER = (
    "Not every game was judged in both orders: ranks, groups and intervals hold only if being shown first counts for "
    "nothing."
)

_PRESENT = 0.9
"""An agent without a game on more of the queries than this leaves is named."""
_NAMED = 5
_ELSEWHERE = "ratings compare agents that met on different queries, which may be easier for one than for another."


def notes(
    games: Games,
    fitted: BradleyTerry,
    resampled: Bootstrap | None,
    compared: Comparison | None,
    *,
    asked_for_samples: bool,
    by_query: bool,
) -> tuple[str, ...]:
    """Sentences on everything unusual about the ratings; none where there is nothing to say."""
    said = []
    enough = fewest_queries(len(games.agents))
    if compared is not None and compared.joint.units < enough:
        units = "queries" if by_query and games.cluster is not None else "games"
        said.append(
            f"Too few {units} ({compared.joint.units}): intervals miss too often, so no agent is told from another; "
            f"{len(games.agents)} agents need at least {enough}."
        )
    said += [*_of_fit(games, fitted), *_of_clusters(games, by_query=by_query), *_of_absence(games)]
    if resampled is not None:
        said += _of_bootstrap(resampled)
    elif asked_for_samples:
        alone = "there is a single game" if games.cluster is None or not by_query else "all games are on one query"
        said.append(f"There are no intervals: {alone}, which says nothing about variation.")
    if games.tally is not None:
        said += _of_tally(games.tally)
    return tuple(said)


def preference_note(table: VerdictTable) -> str:
    """What a reader of such ratings must know."""
    said = "Games are scored by preferences: 0.7 is 0.7 of a win and 0.3 of a loss, a tie is half of each"
    without = len(table) if table.preference is None else int(np.isnan(table.preference).sum())
    if not without:
        return f"{said}."
    return f"{said}; {without:,} of {len(table):,} verdicts have no probability and count as 1, 0.5 or 0."


def position_note(fitted: BradleyTerry, first: Estimate) -> str:
    """What ratings with a position term are, and what it comes to."""
    said = "Every verdict is a game, as a position term needs: the two orders of a pair are not reconciled."
    if any(problem.cause == "position" for problem in fitted.problems):
        return said
    interval = "" if first.low is None else f" ({SIGNED.between(first.low, first.high)})"
    return (
        f"Being shown first is worth {SIGNED.write(first.value)} points{interval}, which these ratings take off. {said}"
    )


def _of_fit(games: Games, fitted: BradleyTerry) -> list[str]:
    said = [f"No maximum of the likelihood: {problem.message}." for problem in fitted.problems]
    if fitted.problems:
        said.append(
            f"Flagged ratings rest on a weak prior, {fitted.settings.prior_games:g} virtual draw(s) against an average "
            "agent; where they are flagged for ties or position it holds the tie parameter and order effect instead."
        )
    if not fitted.converged:
        said.append(
            f"Bradley-Terry did not converge in {fitted.iterations} iterations "
            f"(gradient {fitted.gradient_norm:.2g} games): do not use these ratings."
        )
    if not games.are_whole:
        said.append("There is no Elo rating: counts are fractions of games, which cannot be replayed in order.")
    once = [name for name, count in zip(games.agents, games.per_agent(), strict=True) if count <= 1]
    if once:
        said.append(f"Rated on a single game: {', '.join(once)}.")
    return said


def _of_clusters(games: Games, *, by_query: bool) -> list[str]:
    if not by_query:
        return ["Intervals treat games as independent, as asked; games on one query usually are not."]
    if games.cluster is None:
        return ["Verdicts name no query: intervals treat games as independent and are too narrow if queries repeat."]
    return []


def _of_absence(games: Games) -> list[str]:
    """Agents without a game on many of the queries, the most absent first."""
    if games.cluster is None:
        return []
    played = np.zeros((len(games.agents), int(games.cluster.max(initial=-1)) + 1), np.bool_)
    played[games.a, games.cluster] = played[games.b, games.cluster] = True
    queries = int(played.any(axis=0).sum())
    counts = dict(zip(games.agents, played.sum(axis=1).tolist(), strict=True))
    absent = sorted((count, name) for name, count in counts.items() if count < _PRESENT * queries)
    if not absent:
        return []
    if len(absent) == len(counts):
        who = f"Agents have games on {absent[0][0]:,} to {absent[-1][0]:,}"
        if absent[0][0] == absent[-1][0]:
            who = f"Each agent has games on {absent[0][0]:,}"
        return [f"{who} of {queries:,} queries: {_ELSEWHERE}"]
    named = [f"{name} has games on {count:,} of {queries:,} queries" for count, name in absent[:_NAMED]]
    more = f", and {len(absent) - _NAMED:,} more agents are absent from some" if len(absent) > _NAMED else ""
    return [f"{', '.join(named)}{more}: {_ELSEWHERE}"]


def _of_bootstrap(resampled: Bootstrap) -> list[str]:
    said = []
    samples = len(resampled.samples)
    if resampled.without_maximum and resampled.without_maximum < samples:
        said.append(
            f"{resampled.without_maximum} of {samples} bootstrap samples have no maximum of the likelihood "
            "(an agent without a loss, a win or a game in them) and use the weak prior."
        )
    if resampled.not_converged:
        said.append(f"{resampled.not_converged} of {samples} bootstrap samples did not converge.")
    if resampled.model_samples is not None:
        said.append(
            "Resampling cannot show all uncertainty here, so intervals are widened to those of a normal approximation "
            "to the fitted model."
        )
    return said


def _of_tally(tally: Tally) -> list[str]:
    said = []
    if tally.both_orders and tally.single_order:
        said.append(
            f"{tally.single_order:,} of {tally.games:,} games were judged in one order only; that verdict stands."
        )
    if tally.contradictions:
        said.append(
            f"{tally.contradictions:,} of {tally.both_orders:,} games judged in both orders contradict themselves: "
            "ties."
        )
    if tally.repeated and tally.games < tally.verdicts:
        said.append(f"{tally.repeated} verdicts repeat a query, judge and order; the majority of each order counts.")
    elif tally.repeated:
        said.append(f"{tally.repeated} verdicts repeat a query, judge and order, and count as games of their own.")
    return said
