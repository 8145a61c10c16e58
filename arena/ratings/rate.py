"""Entry point of the ratings: verdicts in, a leaderboard with its uncertainty and the judge's health out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter

import numpy as np
from msgspec.structs import replace

from arena.present.numbers import SIGNED, listed
from arena.ratings.bootstrap import Bootstrap, bootstrap
from arena.ratings.bradley_terry import BradleyTerry, bradley_terry
from arena.ratings.elo import play_all, sorted_games
from arena.ratings.fragility import fragilities
from arena.ratings.games import (
    Games,
    GameVerdict,
    Tally,
    Unit,
    VerdictTable,
    as_games,
    average,
    reconcile,
    tabulate,
    without_preferences,
)
from arena.ratings.health import Lengths, both_orders, fitted_position, judge_agreement, judge_health, of_judge
from arena.ratings.other_judges import other_judges
from arena.ratings.pairs import direct_results
from arena.ratings.ranks import PairTests, compare, competition_ranks, groups, pair_differences, rank_intervals
from arena.ratings.results import (
    MOST_JUDGES,
    UNITS,
    AgentRating,
    Convergence,
    JudgeHealth,
    Ratings,
    RatingSettings,
    fewest_queries,
)
from judges.errors import InputError
from retrieval_eval.stats import Floats
from retrieval_eval.stats.estimate import Estimate

_ONE_ORDER = (
    "Not every game was judged in both orders: ranks, groups and intervals hold only if being shown first counts for "
    "nothing."
)

_MIN_PRESENCE = 0.9
"""A note names the agents that have games on less than this share of the queries."""
_MAX_NAMES = 5
_DIFFERENT_QUERIES = (
    "ratings compare agents that met on different queries, which may be easier for one than for another."
)


def rate(
    verdicts: Iterable[GameVerdict] | VerdictTable,
    settings: RatingSettings | None = None,
    lengths: Lengths | None = None,
) -> Ratings:
    """Rate the agents of a set of verdicts; the result does not depend on the order of rows.

    The judge's preference for longer answers is measured only if the answers' ``lengths`` are given.

    Raises:
        InputError: a verdict is invalid, or the anchor has no games.
    """
    chosen, table = settings or RatingSettings(), tabulate(verdicts)
    rated = _rate(table, chosen, lengths)
    return replace(rated, judges=judge_agreement(table), without_judge=_without_judges(table, chosen))


def _without_judges(table: VerdictTable, settings: RatingSettings) -> dict[str, Ratings]:
    """Ratings without each judge in turn, as far as conclusions need them; empty for one judge, or for voters."""
    if not 2 <= len(table.judges) <= MOST_JUDGES or table.query is None:
        return {}
    options = replace(settings, tournaments=0, fragility="none")
    left = {judge: table.of(table.judge != number) for number, judge in enumerate(table.judges)}
    return {judge: _rate(rest, anchored(options, rest.agents)[0], None) for judge, rest in left.items()}


def _rate(table: VerdictTable, chosen: RatingSettings, lengths: Lengths | None) -> Ratings:
    if chosen.anchor is not None and chosen.anchor not in table.agents:
        raise InputError(f"ratings: the anchor {chosen.anchor!r} has no games; choose one of {', '.join(table.agents)}")
    health = judge_health(table, lengths, ties=chosen.ties, scale=chosen.scale)
    games = games_to_rate(table, chosen, health)
    rated = rate_games(games, chosen, health, table.units[0], table.unit)
    if chosen.preferences == "soft":
        rated = replace(rated, notes=(*rated.notes, _preference_note(table)))
    in_both_orders = games.tally is not None and games.tally.both_orders == len(games)
    beyond = None
    if not (chosen.position or in_both_orders):
        first = rated.by_rank[0]  # not surely best if its worst rank is below the first
        beyond = first.rank_high in (1, None) and _beyond_place(as_games(table), first.agent, chosen)
        if not beyond and any(pair.separable for pair in rated.pairs):
            rated = replace(rated, notes=(*rated.notes, _ONE_ORDER))
    return replace(rated, beyond_place=beyond)


def rate_by_judge(
    verdicts: Iterable[GameVerdict] | VerdictTable,
    settings: RatingSettings | None = None,
    lengths: Lengths | None = None,
) -> dict[str, Ratings]:
    """A separate leaderboard, with the judge's health, for each judge by name; the arguments are those of ``rate``.

    If a judge has no verdict on the agent ``settings.anchor``, its leaderboard fixes the mean instead, and a note says
    so.

    Raises:
        InputError: as in ``rate``.
    """
    table = tabulate(verdicts)
    boards = {}
    for judge in table.judges:
        judge_verdicts = of_judge(table, judge)
        chosen, anchor_notes = anchored(settings or RatingSettings(), judge_verdicts.agents)
        rated = rate(judge_verdicts, chosen, lengths)
        boards[judge] = replace(rated, notes=(*rated.notes, *anchor_notes))
    return boards


def anchored(settings: RatingSettings, agents: Sequence[str]) -> tuple[RatingSettings, tuple[str, ...]]:
    """The settings and notes on them; if the anchor is not among the agents, it is removed and a note says so."""
    if settings.anchor is None or settings.anchor in agents:
        return settings, ()
    note = f"{settings.anchor}, the anchor, has no verdict here: the ratings are centred on their mean instead."
    return replace(settings, anchor=None), (note,)


def rate_games(
    games: Games,
    settings: RatingSettings,
    health: JudgeHealth | None = None,
    queries: tuple[str, ...] | None = None,
    by: Unit = "query",
) -> Ratings:
    """Rate the agents of games; every agent must have a game.

    ``health`` is the health of the judge that judged the games. ``queries`` has the names of the clusters in
    ``games.cluster``, and ``by`` is their kind.

    Raises:
        ValueError: an agent has no games, or a setting does not fit the games.
    """
    settings = replace(settings, ties=settings.tie_model)
    parts, _, by_query = without_preferences(games, by_query=settings.cluster)
    fitted = bradley_terry(parts, settings.bradley_terry)
    samples = settings.bootstrap if settings.intervals == "bootstrap" else 0
    unit: Unit = by if settings.cluster and games.cluster is not None else "game"
    units = round(float(games.weights.sum())) if unit == "game" else _presence(games)[1]
    order = sorted_games(games) if games.are_whole and settings.tournaments else None
    with ThreadPoolExecutor(1) as elo_thread:  # beside the bootstrap, whose sums leave Python to others
        elo_future = None if order is None else elo_thread.submit(play_all, order, settings)
        resampled = bootstrap(parts, fitted, samples, settings.seed, by_query=by_query)
        if resampled is not None:
            resampled = replace(resampled, by=unit)
        compared = compare(parts, fitted, resampled, by_query=by_query, level=settings.level, seed=settings.seed)
        tournaments = None if elo_future is None else elo_future.result()
    agents = _rows(parts, fitted, tournaments, resampled, compared, settings=settings)
    position_effect = fitted_position(parts, fitted, by_query=by_query, level=settings.level)
    samples_requested = compared is None if settings.intervals == "sandwich" else samples > 0
    sentences = notes(
        games, fitted, resampled, compared, asked_for_samples=samples_requested, by_query=settings.cluster, by=by
    )
    if settings.anchor is not None:
        sentences += (
            f"{settings.anchor} is fixed at {settings.centre:g}: the intervals are for the difference to it.",
        )
    rated = Ratings(
        agents=agents,
        pairs=pair_differences(games.agents, compared),
        judge_health=health,
        position_effect=fitted.position_effect,
        tie_parameter=fitted.tie_parameter,
        tally=games.tally,
        settings=settings,
        convergence=Convergence(
            converged=fitted.converged,
            iterations=fitted.iterations,
            gradient_norm=fitted.gradient_norm,
            prior_games=float(fitted.prior.max()),
            resampled=resampled.by if resampled else None,
            units=resampled.units if resampled else 0,
            samples=len(resampled.samples) if resampled else 0,
            samples_without_maximum=resampled.without_maximum if resampled else 0,
            samples_not_converged=resampled.not_converged if resampled else 0,
        ),
        notes=sentences if position_effect.value is None else (*sentences, _position_note(fitted, position_effect)),
        fragility=fragilities(parts, fitted, [row.agent for row in agents], settings, queries, by=by),
        position_low=position_effect.low,
        position_high=position_effect.high,
        unit=unit,
        units=units,
        absent=_absent(games),
    )
    ranked, above = (
        [row.agent for row in rated.by_rank],
        ((pair.better, pair.worse) for pair in rated.pairs if pair.separable),
    )
    return replace(
        rated,
        direct=direct_results(parts, settings.level, ranked, above, by_query=by_query),
        other_judges=other_judges(parts, fitted, compared, rated.neighbours),
    )


def games_to_rate(table: VerdictTable, settings: RatingSettings, health: JudgeHealth | None = None) -> Games:
    """Convert verdicts to games as the settings say; pass the judge's ``health`` if it is already computed."""
    folds = settings.reconcile
    if folds is None:
        games_in_both_orders = both_orders(table)[0].size if health is None else health.both_orders
        folds = games_in_both_orders > 0 and not settings.position
    if settings.preferences == "soft":
        return average(table) if folds else as_games(table, soft=True)
    return reconcile(table, win_and_tie=settings.win_and_tie) if folds else as_games(table)


def _beyond_place(games: Games, first: str, settings: RatingSettings) -> bool:
    """Whether agent ``first`` is surely better than all others in a fit that estimates a position effect."""
    fitted = bradley_terry(games, replace(settings.bradley_terry, position=True))
    if any(problem.cause == "position" for problem in fitted.problems):
        return False
    compared = compare(games, fitted, None, by_query=settings.cluster, level=settings.level, seed=settings.seed)
    if compared is None:
        return False
    index, joint = games.agents.index(first), compared.joint
    others = np.arange(len(games.agents)) != index
    return bool((joint.different[index] & (joint.difference[index] > 0))[others].all())


def _rows(
    games: Games,
    fitted: BradleyTerry,
    tournaments: Floats | None,
    resampled: Bootstrap | None,
    compared: PairTests | None,
    *,
    settings: RatingSettings,
) -> tuple[AgentRating, ...]:
    ratings, pairs, flags = fitted.ratings, fitted.counts, _flags(games, fitted)
    wins, losses, ties = (
        np.bincount(pairs.a, first[0], ratings.size) + np.bincount(pairs.b, second[0], ratings.size)
        for first, second in ((pairs.wins_a, pairs.wins_b), (pairs.wins_b, pairs.wins_a), (pairs.ties, pairs.ties))
    )
    elo = None if tournaments is None else tournaments.mean(axis=0)
    spread = None if tournaments is None or len(tournaments) < 2 else tournaments.std(axis=0, ddof=1)
    ranks = competition_ranks(ratings)
    different = compared.joint.different if compared else np.zeros((ratings.size, ratings.size), np.bool_)
    letters = groups(ratings, different)
    low = high = rank_low = rank_high = None
    if compared and (resampled or settings.intervals == "sandwich"):
        low, high = compared.interval(ratings, settings.level)
        rank_low, rank_high = rank_intervals(compared.joint)
    rows = [
        AgentRating(
            agent=name,
            rank=int(ranks[i]),
            rank_low=None if rank_low is None else int(rank_low[i]),
            rank_high=None if rank_high is None else int(rank_high[i]),
            group=letters[i],
            elo=None if elo is None else float(elo[i]),
            elo_order_sd=None if spread is None else float(spread[i]),
            bt=float(ratings[i]),
            bt_low=None if low is None else float(low[i]),
            bt_high=None if high is None else float(high[i]),
            games=_whole(wins[i] + ties[i] + losses[i]),
            wins=_whole(wins[i]),
            ties=_whole(ties[i]),
            losses=_whole(losses[i]),
            flags=flags[name],
        )
        for i, name in enumerate(games.agents)
    ]
    return tuple(sorted(rows, key=attrgetter("rank", "agent")))


def _flags(games: Games, fitted: BradleyTerry) -> dict[str, tuple[str, ...]]:
    flags: dict[str, list[str]] = {name: [] for name in games.agents}
    for problem in fitted.problems:
        for name in problem.agents:
            flags[name].append(problem.cause)
    for name, count in zip(games.agents, games.per_agent(), strict=True):
        if count <= 1:
            flags[name].append("single_game")
    return {name: tuple(dict.fromkeys(causes)) for name, causes in flags.items()}


def _whole(count: float) -> float:
    """Convert a whole number to ``int``, so that it prints without decimals; leave a fraction unchanged."""
    nearest = round(float(count))
    return nearest if abs(count - nearest) < 1e-9 * max(1, nearest) else float(count)


def notes(
    games: Games,
    fitted: BradleyTerry,
    resampled: Bootstrap | None,
    compared: PairTests | None,
    *,
    asked_for_samples: bool,
    by_query: bool,
    by: Unit = "query",
) -> tuple[str, ...]:
    """Warnings about the ratings, one sentence each; empty if there is nothing unusual."""
    unit: Unit = by if by_query and games.cluster is not None else "game"
    sentences = [
        *_too_few_notes(games.agents, compared, unit),
        *_fit_notes(games, fitted),
        *_cluster_notes(games, by_query=by_query),
        *_absence_notes(games, UNITS[by][1]),
    ]
    if resampled is not None:
        sentences += _bootstrap_notes(resampled)
    elif asked_for_samples:
        cause = "there is a single game" if unit == "game" else f"all games are on one {UNITS[by][0]}"
        sentences.append(f"There are no intervals: {cause}, which says nothing about variation.")
    if games.tally is not None:
        sentences += _tally_notes(games.tally)
    return tuple(sentences)


def _too_few_notes(agents: Sequence[str], compared: PairTests | None, unit: Unit) -> list[str]:
    least, units = fewest_queries(len(agents)), UNITS[unit][1]
    if compared is None:
        return []
    if compared.units < least:
        return [
            f"Too few {units} ({compared.units}): intervals miss too often, so no agent is told from another; "
            f"{len(agents)} agents need at least {least}."
        ]
    too_few = sorted(row for row in zip(compared.per_agent.tolist(), agents, strict=True) if row[0] < least)
    if not too_few:
        return []
    named = listed([f"{name} ({count})" for count, name in too_few], _MAX_NAMES)
    return [
        f"Too few {units} of their own: {named}. {len(agents)} agents need at least {least} each, so these are told "
        "from no other."
    ]


def _preference_note(table: VerdictTable) -> str:
    explanation = "Games are scored by preferences: 0.7 is 0.7 of a win and 0.3 of a loss, a tie is half of each"
    without = len(table) if table.preference is None else int(np.isnan(table.preference).sum())
    if not without:
        return f"{explanation}."
    return f"{explanation}; {without:,} of {len(table):,} verdicts have no probability and count as 1, 0.5 or 0."


def _position_note(fitted: BradleyTerry, first: Estimate) -> str:
    """A note on games with a position term, with the size of the position effect if it is identified."""
    explanation = "Every verdict is a game, as a position term needs: the two orders of a pair are not reconciled."
    if any(problem.cause == "position" for problem in fitted.problems):
        return explanation
    interval = "" if first.low is None else f" ({SIGNED.between(first.low, first.high)})"
    effect = f"{SIGNED.write(first.value)} points{interval}"
    return f"Being shown first is worth {effect}, which these ratings take off. {explanation}"


def _fit_notes(games: Games, fitted: BradleyTerry) -> list[str]:
    sentences = [f"No maximum of the likelihood: {problem.message}." for problem in fitted.problems]
    if fitted.problems:
        sentences.append(
            f"Flagged ratings rest on a weak prior, {fitted.settings.prior_games:g} virtual draw(s) against an average "
            "agent; where they are flagged for ties or position it holds the tie parameter and order effect instead."
        )
    if not fitted.converged:
        sentences.append(
            f"Bradley-Terry did not converge in {fitted.iterations} iterations "
            f"(gradient {fitted.gradient_norm:.2g} games): do not use these ratings."
        )
    if not games.are_whole:
        sentences.append("There is no Elo rating: counts are fractions of games, which cannot be replayed in order.")
    single = [name for name, count in zip(games.agents, games.per_agent(), strict=True) if count <= 1]
    if single:
        sentences.append(f"Rated on a single game: {', '.join(single)}.")
    return sentences


def _cluster_notes(games: Games, *, by_query: bool) -> list[str]:
    if not by_query:
        return ["Intervals treat games as independent, as asked; games on one query usually are not."]
    if games.cluster is None:
        return ["Verdicts name no query: intervals treat games as independent and are too narrow if queries repeat."]
    return []


def _presence(games: Games) -> tuple[dict[str, int], int]:
    """Number of clusters with a game of each agent, by name, and number of clusters with any game."""
    if games.cluster is None:
        return {}, 0
    played = np.zeros((len(games.agents), int(games.cluster.max(initial=-1)) + 1), np.bool_)
    played[games.a, games.cluster] = played[games.b, games.cluster] = True
    return dict(zip(games.agents, played.sum(axis=1).tolist(), strict=True)), int(played.any(axis=0).sum())


def _absent(games: Games) -> dict[str, int]:
    """Number of queries, by agent, for agents with less than 90 % of the queries of the agent with the most."""
    counts, _ = _presence(games)
    largest = max(counts.values(), default=0)
    return {name: count for name, count in counts.items() if count < _MIN_PRESENCE * largest}


def _absence_notes(games: Games, units: str) -> list[str]:
    counts, queries = _presence(games)
    absent = sorted((count, name) for name, count in counts.items() if count < _MIN_PRESENCE * queries)
    if not absent:
        return []
    if len(absent) == len(counts):
        subject = f"Agents have games on {absent[0][0]:,} to {absent[-1][0]:,}"
        if absent[0][0] == absent[-1][0]:
            subject = f"Each agent has games on {absent[0][0]:,}"
        return [f"{subject} of {queries:,} {units}: {_DIFFERENT_QUERIES}"]
    named = [f"{name} has games on {count:,} of {queries:,} {units}" for count, name in absent[:_MAX_NAMES]]
    others = f", and {len(absent) - _MAX_NAMES:,} more agents are absent from some" if len(absent) > _MAX_NAMES else ""
    return [f"{', '.join(named)}{others}: {_DIFFERENT_QUERIES}"]


def _bootstrap_notes(resampled: Bootstrap) -> list[str]:
    sentences = []
    samples = len(resampled.samples)
    if resampled.without_maximum and resampled.without_maximum < samples:
        sentences.append(
            f"{resampled.without_maximum} of {samples} bootstrap samples have no maximum of the likelihood "
            "(an agent without a loss, a win or a game in them) and use the weak prior."
        )
    if resampled.not_converged:
        sentences.append(f"{resampled.not_converged} of {samples} bootstrap samples did not converge.")
    if resampled.model_samples is not None:
        sentences.append(
            "Resampling cannot show all uncertainty here, so intervals are widened to those of a normal approximation "
            "to the fitted model."
        )
    return sentences


def _tally_notes(tally: Tally) -> list[str]:
    sentences = []
    if tally.both_orders and tally.single_order:
        sentences.append(
            f"{tally.single_order:,} of {tally.games:,} games were judged in one order only; that verdict stands."
        )
    if tally.contradictions:
        sentences.append(
            f"{tally.contradictions:,} of {tally.both_orders:,} games judged in both orders contradict themselves: "
            "ties."
        )
    if tally.repeated and tally.games < tally.verdicts:
        sentences.append(
            f"{tally.repeated} verdicts repeat a query, judge and order; the majority of each order counts."
        )
    elif tally.repeated:
        sentences.append(f"{tally.repeated} verdicts repeat a query, judge and order, and count as separate games.")
    return sentences
