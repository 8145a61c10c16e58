"""The one entry: verdicts in, a leaderboard with its uncertainty and the judge's health out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from arena.ratings.bootstrap import Bootstrap, bootstrap
from arena.ratings.bradley_terry import BradleyTerry, bradley_terry
from arena.ratings.elo import EloRatings, elo
from arena.ratings.fragility import fragilities
from arena.ratings.games import (
    Games,
    GameVerdict,
    Tally,
    VerdictTable,
    as_games,
    average,
    counted,
    number_distinct,
    reconcile,
    tabulate,
)
from arena.ratings.health import JudgeHealth, Lengths, both_orders, fitted_position, judge_health
from arena.ratings.judges import JudgeAgreement, judge_agreement, of_judge
from arena.ratings.notes import ONE_ORDER, notes, position_note, preference_note
from arena.ratings.pairs import contradicted, direct_games, win_matrix
from arena.ratings.ranks import (
    Comparison,
    compare,
    competition_ranks,
    fewest_queries,
    groups,
    pair_differences,
    rank_intervals,
)
from arena.ratings.results import (
    UNITS,
    AgentRating,
    Convergence,
    DirectGames,
    Fragility,
    PairDifference,
    RatingSettings,
    Unit,
)
from judges.errors import InputError

__all__ = ["RatingSettings", "Ratings", "anchored", "games_to_rate", "rate", "rate_by_judge", "rate_games"]


@dataclass(frozen=True, slots=True)
class Ratings:
    """A leaderboard with all that is needed to judge it.

    Attributes:
        agents: best first.
        pairs: every pair of agents tested; empty where there is nothing to estimate variation from.
        judge_health: of all verdicts; ``None`` where games came without verdicts.
        position_effect: advantage of being shown first in points, ``None`` unless the settings ask for it.
        position_low, position_high: its interval at the level of the settings.
        tie_parameter: Davidson's nu, ``None`` with half-win ties.
        tally: how verdicts became games, ``None`` where games came without verdicts.
        notes: in words, what a reader must know before believing the numbers.
        judges: how far several judges agree; ``None`` for one judge, or where verdicts name no query.
        fragility: by game and, where they are known, by query; empty where the settings ask for none, and for
            fractions of games.
        direct: the games of every two agents that met.
        unit, units: what is independent, queries or games, and how many of them there are.
        beyond_place: whether the agent rated highest is still surely better than all others when the advantage of being
            shown first is estimated along; ``None`` where place cannot matter (every game was judged in both orders),
            is part of the ratings, or is not known.
    """

    agents: tuple[AgentRating, ...]
    pairs: tuple[PairDifference, ...]
    judge_health: JudgeHealth | None
    position_effect: float | None
    tie_parameter: float | None
    tally: Tally | None
    settings: RatingSettings
    convergence: Convergence
    notes: tuple[str, ...]
    judges: JudgeAgreement | None = None
    fragility: tuple[Fragility, ...] = ()
    position_low: float | None = None
    position_high: float | None = None
    direct: tuple[DirectGames, ...] = ()
    unit: Unit = "query"
    units: int = 0
    beyond_place: bool | None = None

    @property
    def noun(self) -> tuple[str, str]:
        """What is independent, in words: one, and many."""
        return UNITS[self.unit]

    @property
    def by_rank(self) -> tuple[AgentRating, ...]:
        """The agents from the highest Bradley-Terry rating down, whatever orders ``agents``."""
        return tuple(sorted(self.agents, key=attrgetter("rank", "agent")))

    @property
    def flips(self) -> tuple[Fragility, ...]:
        """What ``fragility`` says of agents whose order rests on games, not on the prior of those that are flagged.

        On few queries that prior moves all others too.
        """
        few = self.convergence.prior_games > 0 and self.units < fewest_queries(len(self.agents))
        held = {row.agent for row in self.agents if few or set(row.flags) - {"single_game"}}
        return tuple(one for one in self.fragility if one.count is None or held.isdisjoint((one.ahead, one.behind)))

    @property
    def contradicted(self) -> tuple[str, ...]:
        """Agents that one rating each cannot describe, from the highest rated down, see ``pairs.contradicted``."""
        above = ((pair.better, pair.worse) for pair in self.pairs if pair.separable)
        return contradicted([row.agent for row in self.by_rank], self.direct, above)

    @property
    def neighbours(self) -> tuple[PairDifference, ...]:
        """The pairs of agents that follow each other on the leaderboard, from the top."""
        of_two = {frozenset((pair.better, pair.worse)): pair for pair in self.pairs}
        names = [row.agent for row in self.agents]
        return tuple(of_two[frozenset(two)] for two in itertools.pairwise(names) if frozenset(two) in of_two)


def rate(
    verdicts: Iterable[GameVerdict] | VerdictTable,
    settings: RatingSettings | None = None,
    lengths: Lengths | None = None,
    *,
    clusters: Mapping[str, str] | None = None,
) -> Ratings:
    """Rate the agents of a set of verdicts. Equal sets give equal results, whatever the order of rows.

    Args:
        verdicts: single verdicts, in the order the answers were shown.
        settings: the defaults if absent.
        lengths: lengths of answers, for the judge's preference for longer ones.
        clusters: for each query what is resampled whole in its place, such as its topic; the query itself if absent.

    Raises:
        InputError: the verdicts or the settings cannot be used; says which and why.
    """
    chosen = settings or RatingSettings()
    table = tabulate(verdicts)
    if chosen.anchor is not None and chosen.anchor not in table.agents:
        raise InputError(f"ratings: the anchor {chosen.anchor!r} has no games; choose one of {', '.join(table.agents)}")
    health = judge_health(table, lengths, ties=chosen.ties, scale=chosen.scale)
    games, units = _regrouped(games_to_rate(table, chosen, health), table.queries, clusters)
    rated = rate_games(games, chosen, health, units)
    if chosen.preferences == "soft":
        rated = replace(rated, notes=(*rated.notes, preference_note(table)))
    in_both_orders = games.tally is not None and games.tally.both_orders == len(games)
    beyond = None
    if not (chosen.position or in_both_orders):
        shown, _ = _regrouped(as_games(table), table.queries, clusters)
        beyond = _beyond_place(shown, rated.by_rank[0].agent, chosen)
        if not beyond and any(pair.separable for pair in rated.pairs):
            rated = replace(rated, notes=(*rated.notes, ONE_ORDER))
    return replace(rated, judges=judge_agreement(table), beyond_place=beyond)


def rate_by_judge(
    verdicts: Iterable[GameVerdict] | VerdictTable,
    settings: RatingSettings | None = None,
    lengths: Lengths | None = None,
) -> dict[str, Ratings]:
    """Each judge's own leaderboard and health, by name; the arguments are those of ``rate``.

    A judge that has not seen the anchor is rated around the mean, and a note says so.

    Raises:
        InputError: as ``rate`` does.
    """
    table = tabulate(verdicts)
    boards = {}
    for judge in table.judges:
        seen = of_judge(table, judge)
        chosen, said = anchored(settings or RatingSettings(), seen.agents)
        rated = rate(seen, chosen, lengths)
        boards[judge] = replace(rated, notes=(*rated.notes, *said))
    return boards


def anchored(settings: RatingSettings, agents: Sequence[str]) -> tuple[RatingSettings, tuple[str, ...]]:
    """The settings around the mean if none of the agents is the anchor, with a note that says so."""
    if settings.anchor is None or settings.anchor in agents:
        return settings, ()
    said = f"{settings.anchor}, the anchor, has no verdict here: the mean of the ratings takes its place."
    return replace(settings, anchor=None), (said,)


def rate_games(
    games: Games,
    settings: RatingSettings,
    health: JudgeHealth | None = None,
    queries: tuple[str, ...] | None = None,
) -> Ratings:
    """Rate the agents of games, in which every agent must have played.

    Args:
        games: with the query's number as cluster where it is known.
        settings: how to rate.
        health: of the judge behind the games.
        queries: names of the queries.

    Raises:
        ValueError: an agent has no games, or a setting does not fit the games.
    """
    settings = replace(settings, ties=settings.tie_model)
    parts, _, by_query = counted(games, by_query=settings.cluster)
    fitted = bradley_terry(parts, settings.bradley_terry)
    by_elo = elo(games, settings.elo) if games.are_whole and settings.tournaments else None
    samples = settings.bootstrap if settings.intervals == "bootstrap" else 0
    unit: Unit = "query" if settings.cluster and games.cluster is not None else "game"
    units = round(float(games.weights.sum())) if unit == "game" else _clusters(games)
    resampled = bootstrap(parts, fitted, samples, settings.seed, by_query=by_query)
    if resampled is not None:
        resampled = replace(resampled, by=unit)
    compared = compare(parts, fitted, resampled, by_query=by_query, level=settings.level, seed=settings.seed)
    agents = _rows(parts, fitted, by_elo, resampled, compared, settings=settings)
    first = fitted_position(parts, fitted, by_query=by_query, level=settings.level)
    asked = compared is None if settings.intervals == "sandwich" else samples > 0
    said = notes(games, fitted, resampled, compared, asked_for_samples=asked, by_query=settings.cluster)
    if settings.anchor is not None:
        said += (f"{settings.anchor} is held at {settings.centre:g}: intervals are of the distance to it.",)
    return Ratings(
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
        notes=said if first.value is None else (*said, position_note(fitted, first)),
        fragility=fragilities(parts, fitted, agents, settings, queries),
        position_low=first.low,
        position_high=first.high,
        direct=direct_games(parts, settings.level, by_query=by_query),
        unit=unit,
        units=units,
    )


def _clusters(games: Games) -> int:
    cluster = np.asarray(games.cluster)
    return number_distinct(cluster, int(cluster.max(initial=-1)) + 1)


def _regrouped(
    games: Games, queries: tuple[str, ...] | None, clusters: Mapping[str, str] | None
) -> tuple[Games, tuple[str, ...] | None]:
    """The games with clusters of queries in place of queries, and the clusters' names."""
    if clusters is None or queries is None or games.cluster is None:
        return games, queries
    names = tuple(sorted({clusters[query] for query in queries}))
    number = {name: code for code, name in enumerate(names)}
    of_query = np.array([number[clusters[query]] for query in queries], np.int32)
    return replace(games, cluster=of_query[games.cluster]), names


def games_to_rate(table: VerdictTable, settings: RatingSettings, health: JudgeHealth | None = None) -> Games:
    """The games that ``rate`` makes of verdicts, whose health may be known already."""
    folds = settings.reconcile
    if folds is None:
        both = both_orders(table)[0].size if health is None else health.both_orders
        folds = both > 0 and not settings.position
    if settings.preferences == "soft":
        return average(table) if folds else as_games(table, soft=True)
    return reconcile(table, win_and_tie=settings.win_and_tie) if folds else as_games(table)


def _beyond_place(shown: Games, first: str, settings: RatingSettings) -> bool:
    """Whether an agent is surely better than all others when being shown first has an advantage of its own."""
    fitted = bradley_terry(shown, replace(settings.bradley_terry, position=True))
    if any(problem.cause == "position" for problem in fitted.problems):
        return False
    compared = compare(shown, fitted, None, by_query=settings.cluster, level=settings.level, seed=settings.seed)
    if compared is None:
        return False
    at, joint = shown.agents.index(first), compared.joint
    others = np.arange(len(shown.agents)) != at
    return bool((joint.different[at] & (joint.difference[at] > 0))[others].all())


def _rows(
    games: Games,
    fitted: BradleyTerry,
    by_elo: EloRatings | None,
    resampled: Bootstrap | None,
    compared: Comparison | None,
    *,
    settings: RatingSettings,
) -> tuple[AgentRating, ...]:
    ratings, matrix, flags = fitted.ratings, win_matrix(games), _flags(games, fitted)
    ranks = competition_ranks(ratings)
    different = compared.joint.different if compared else np.zeros((ratings.size, ratings.size), np.bool_)
    lettered = groups(ratings, different)
    low = high = rank_low = rank_high = None
    if resampled:
        low, high = resampled.interval(settings.level)
    elif compared and settings.intervals == "sandwich":
        low, high = compared.interval(ratings, settings.level)
    if low is not None and compared:
        rank_low, rank_high = rank_intervals(compared.joint)
    rows = [
        AgentRating(
            agent=name,
            rank=int(ranks[i]),
            rank_low=None if rank_low is None else int(rank_low[i]),
            rank_high=None if rank_high is None else int(rank_high[i]),
            group=lettered[i],
            elo=float(by_elo.ratings[i]) if by_elo else None,
            elo_order_sd=float(by_elo.order_sd[i]) if by_elo else None,
            bt=float(ratings[i]),
            bt_low=None if low is None else float(low[i]),
            bt_high=None if high is None else float(high[i]),
            games=_whole(matrix.games[i].sum()),
            wins=_whole(matrix.wins[i].sum()),
            ties=_whole(matrix.ties[i].sum()),
            losses=_whole(matrix.wins[:, i].sum()),
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
    """Counts of single games as integers, so that they print as such."""
    nearest = round(float(count))
    return nearest if abs(count - nearest) < 1e-9 * max(1, nearest) else float(count)
