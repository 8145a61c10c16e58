"""The Compare board: whether each score orders the agents as the games do, and the win matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from arena.boards.compare_drawing import compare_figure
from arena.boards.compare_figures import PHRASES, ComparedScores, Placement, Way, state_of
from arena.boards.games import Wins, by_points
from arena.boards.groups import with_group
from arena.boards.left_out_judges import other_judges_table, parts_picture
from arena.boards.methods import lacking, tau_matrix
from arena.boards.quantities import WON, quantity
from arena.calibration.methods import (
    Method,
    PairOrders,
    PairTally,
    compare_drawn,
    draw,
    pair_orders,
    ranked,
    ranking,
    uneven_shares,
)
from arena.calibration.votes import Level
from arena.config.stages import further_stages
from arena.present.blocks import Block, Remarks, Section
from arena.present.numbers import capital, counted, listed
from arena.present.picture import Look, Matrix
from arena.present.table import INTERVAL, Column, Table, flat, plain
from arena.ratings.pairs import win_matrix
from arena.results.cache import DRAWN, Cache, cached_games, cached_leaderboard
from arena.results.opinions import peoples_opinions
from arena.results.ratings import rating_settings
from arena.results.scores import PEOPLE, RATING, enough, people_methods, stored_methods, too_few
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.stats.bootstrap import ALONE, Clusters, estimates, units_of, units_with
from retrieval_eval.stats.estimate import Drawn, Estimate
from retrieval_eval.stats.scores import Scores, missing_of

OF_STAGE: Final[Mapping[str, str]] = {"pairwise": RATING, "exam": "cover", "nuggets": "v_strict"}
"""Score that is meant if a stage is named instead of a score, by stage, such as ``cover`` for ``exam``."""


def score_of(on: str) -> str:
    """Name of the score that is meant by ``on``: the main one if it names a stage, else ``on``."""
    stage = further_stages().get(on)
    return OF_STAGE.get(on) or next(iter(stage.scores if stage is not None else ()), on)


_LEFT_OUT: Final = ("elo",)
"""Scores not shown: Elo rates the same games as Bradley-Terry."""
_TAU_SAMPLES: Final = 200
"""Number of bootstrap samples for the intervals of rank correlations, which are the slowest to compute."""
_MOST_NAMED: Final = 3
_FIRST: Final = (RATING, "cover", "v_strict")
"""Scores shown first, in this order."""
_ALONE: Final = (
    "Only the games score these agents. Exam questions, nuggets, criteria or labels would show whether other scores "
    "agree."
)
_LEAD: Final = "Whether each score orders the agents as the games do."


class CompareBoard(ComparedScores, frozen=True, eq=False):
    """The scores of the same agents by every way of scoring, and how to show them."""

    def judges(self) -> list[Block]:
        """Picture and table of neighbours' differences with judges as a source of error; empty below three judges."""
        picture = parts_picture(self.other_judges)
        return [] if picture is None else [picture, other_judges_table(self.other_judges, "compare")]

    def report(self) -> Section:
        lead = _LEAD if self.orders is not None else "How each score orders the agents."
        return Section("compare", "Compare", lead, [Remarks(self.sentences()), compare_figure(self)])

    def json(self) -> Any:
        orders = {order.way: order for order in self.orders or ()}
        ways = {
            way.name: {
                "queries": way.queries,
                "scores": {name: flat(score) for name, score in way.scores.items()},
                "missing": {name: {"missing": lost, "of": of} for name, (lost, of) in way.missing.items()},
                "ranks": {name: flat(rank) for name, rank in way.ranks.items()},
                "pairs": orders[way.name].tally()._asdict() if way.name in orders else None,
                "tau": flat(tau) if (tau := self.tau_of(way.name)) is not None else None,
            }
            for way in self.ways
        }
        return {
            "agents": list(self.order),
            "queries": self.queries,
            "ways": ways,
            "departures": [flat(departure) for order in orders.values() for departure in order.departures],
            "uneven": [flat(record) for record in self.uneven],
            "other_judges": plain(self.other_judges),
        }

    def sentences(self) -> list[str]:
        phrases = {way.name: way.phrase for way in self.ways}
        left_out = [
            f"{quantity(name).title} are on {counted(number, 'query', 'queries')}: too few to compare with."
            for name, number in self.few.items()
        ]
        return [*self._agreement(), *left_out, *lacking(self.uneven, phrases.__getitem__)]

    def _agreement(self) -> list[str]:
        if self.orders is None:
            few = "Too few games are judged to rate" if self.wins is not None else "No games rate"
            return [f"{few} these agents, so the scores are compared with each other alone."]
        if not (others := [way for way in self.ways[1:] if way.orders]):
            return [_ALONE]
        tested = [(way, orders, self.findings(way.name)) for way in others if (orders := self.orders_of(way.name))]
        disagreeing = [way for way, _, placements in tested if placements]
        sentences = [_sentence([way], [orders.tally()], placements) for way, orders, placements in tested if placements]
        alike: dict[tuple[Look, bool, int], list[tuple[Way, PairTally]]] = defaultdict(list)
        for way, orders, _ in tested:
            if way not in disagreeing:
                tally = orders.tally()
                alike[state_of(tally), tally.proven > 0, tally.pairs].append((way, tally))
        for key in sorted(alike):  # those that agree, then the open ones
            sentences.append(_sentence(*map(list, zip(*alike[key], strict=True))))
        untested = [way.phrase for way in others if self.orders_of(way.name) is None]
        if untested:
            sentences.append(f"Too few {self.noun[1]} to hold {listed(untested)} against the games.")
        return sentences

    def agreement(self) -> Matrix:
        return tau_matrix(self.methods)

    def table(self) -> Table:
        rows = [
            {"agent": agent} | {way.name: way.scores.get(agent, Estimate(None)) for way in self.ways}
            for agent in self.order
        ]
        columns = [Column(way.name, way.title, way.form, quantity(way.name).meaning, INTERVAL) for way in self.ways]
        return Table("compare", "Scores with intervals", [Column("agent", "Agent"), *columns], rows)


def _sentence(ways: Sequence[Way], tallies: Sequence[PairTally], placements: Sequence[Placement] = ()) -> str:
    """What scores that say the same of the games' order of the agents say, in one sentence."""
    is_many = len(ways) > 1 or ways[0].name in PHRASES
    (s, them), names = ("", "they") if is_many else ("s", "it"), listed([way.phrase for way in ways])

    def numbers(what: str) -> str:
        counts = [getattr(tally, what) for tally in tallies]
        return listed([f"{count:,}" if count else "none" for count in counts]) if any(counts) else "none"

    counts = (
        f"{them} order{s} {numbers('alike')} of {counted(tallies[0].pairs, 'pair')} of agents as the games do, "
        f"prove{s} {numbers('proven')} and reverse{s} {numbers('reversed')}"
    )
    who = capital(names) if is_many else names
    if placements:
        return f"{who} disagree{s} with the games about {listed([*map(_placed, placements)], _MOST_NAMED)}: {counts}."
    if not any(tally.proven for tally in tallies):
        return f"Whether {names} agree{s} with the games is open: {counts}."
    where = "" if state_of(tallies[0]) == "blue" else " where both are sure, but most is open"
    return f"{who} agree{s} with the games{where}: {counts}."


def _placed(placement: Placement) -> str:
    others = listed(placement.others, _MOST_NAMED)
    if placement.above is None:
        return f"{placement.agent} (beside {others})"
    here, there = ("above", "below") if placement.above else ("below", "above")
    return f"{placement.agent} ({here} {others}, {there} in the games)"


def compare_board(store: Store, tournament: str) -> CompareBoard:
    """All scores of a tournament's agents, cached in the store until a new verdict or annotation arrives."""
    board_cache = Cache(store, tournament)
    fingerprint = repr(Annotations(store, tournament).latest()).encode()
    return board_cache.made("compare", lambda: _computed(store, tournament, board_cache), fingerprint)


def _computed(store: Store, tournament: str, board_cache: Cache) -> CompareBoard:
    rated = cached_leaderboard(store, tournament).ratings
    ratings = None if rated is None else {row.agent: Estimate(row.bt, row.bt_low, row.bt_high) for row in rated.agents}
    ranks = {
        row.agent: Estimate(row.rank, row.rank_low, row.rank_high) for row in ([] if rated is None else rated.agents)
    }
    settings, games = rating_settings(store.settings(tournament)), cached_games(store, tournament)
    methods = stored_methods(store, tournament, games, cache(partial(store.dataset, tournament)))
    people = peoples_opinions(store, tournament)[0]
    methods += people_methods(enough(people))

    def draw_scores(method: Method, queries: Sequence[str]) -> Drawn:
        make = partial(draw, method, queries, settings.bootstrap, settings.seed, games.clusters)
        return board_cache.made(DRAWN, make) if method.name == RATING else make()

    draws = settings.bootstrap, settings.seed
    board = compared(
        methods, sorted(store.queries(tournament)), ratings, draws, draw_scores, clusters=games.clusters, ranks=ranks
    )
    wins, played = None, games.rated(settings)
    if played is not None:
        pairs = win_matrix(played)
        order = [agent for agent in ratings or by_points(pairs) if agent in pairs.agents]
        apart = [(pair.better, pair.worse) for pair in (rated.pairs if rated is not None else ()) if pair.separable]
        wins = Wins(pairs, order, frozenset(apart))
        board = replace(board, order=tuple(dict.fromkeys([*order, *board.order])))
    named: dict[tuple[Level, str], str] = {("verdicts", ""): PEOPLE, ("criteria", ""): f"criteria, {PEOPLE}"}
    few = {name: number for key, number in too_few(people).items() if (name := named.get(key, ""))}
    others = () if rated is None else rated.other_judges
    return replace(board, wins=wins, tournament=with_group(tournament, store.group), other_judges=others, few=few)


def compared(
    methods: Sequence[Method],
    queries: Sequence[str],
    ratings: Mapping[str, Estimate] | None,
    draws: tuple[int, int] = (1000, 0),
    draw_scores: Callable[[Method, Sequence[str]], Drawn] | None = None,
    *,
    clusters: Clusters = ALONE,
    ranks: Mapping[str, Estimate] | None = None,
) -> CompareBoard:
    """Make the board from scores, without its win matrix.

    ``ratings`` are best first; ``None`` leaves the games out. ``ranks`` are the leaderboard's, of the same agents.
    """
    draw_scores = draw_scores or (lambda method, names: draw(method, names, *draws, clusters))
    chosen = (method for method in methods if method.name not in _LEFT_OUT)
    used = [
        replace(method.among(queries), clusters=clusters) if isinstance(method, Scores) else method
        for method in sorted(chosen, key=_place)
        if method.name != RATING or ratings is not None
    ]
    score_draws = [draw_scores(method, queries) for method in used]
    seen: dict[str, dict[str, int]] = {}
    ways: list[Way] = []
    for method, drawn in zip(used, score_draws, strict=True):
        unit = units_of(method.queries, clusters)
        counts = dict(zip(method.agents, units_with(method.seen(), unit).tolist(), strict=True))
        missing = {}
        if isinstance(method, Scores):
            scores = dict(zip(drawn.agents, method.means.values(), strict=True))
            missing = missing_of(method)
        elif method.name == RATING and ratings is not None:
            scores = {agent: replace(rating, n=counts[agent]) for agent, rating in ratings.items()}
        else:
            found = estimates(drawn.points, drawn.samples, [counts[agent] for agent in drawn.agents])
            scores = dict(zip(drawn.agents, found, strict=True))
        known = {agent: score for agent, score in scores.items() if score.value is not None}
        seen[method.name] = counts
        on = int(units_with(np.asarray(method.seen().any(axis=0)), unit))
        ways.append(Way(method.name, known, on, missing, bool(ranking([method]))))
    is_rated = bool(ways) and ways[0].name == RATING
    order = [*ratings] if ratings is not None and is_rated else []
    for way in ways:
        order += sorted(way.scores.keys() - set(order), key=lambda agent: -(way.scores[agent].value or 0))
    if is_rated:
        ways = [_ranked(way, drawn, score_draws[0], seen, ranks) for way, drawn in zip(ways, score_draws, strict=True)]
    else:
        ways = [_ranked(way, drawn, drawn, seen, None) for way, drawn in zip(ways, score_draws, strict=True)]
    uneven, drawn_from = uneven_shares(used, clusters), len({*units_of(queries, clusters).tolist()})
    score_draws = [drawn for drawn, way in zip(score_draws, ways, strict=True) if way.orders]
    few_draws = [replace(drawn, samples=drawn.samples[:_TAU_SAMPLES]) for drawn in score_draws]
    return CompareBoard(
        tuple(order),
        drawn_from,
        tuple(ways),
        _robust(pair_orders(score_draws, seen), used) if is_rated else None,
        compare_drawn(few_draws, drawn_from, uneven),
        None,
        tuple(map(_by_query, used)),
        clusters,
        uneven,
    )


def _place(method: Method) -> int:
    return _FIRST.index(method.name) if method.name in _FIRST else len(_FIRST)


def _ranked(
    way: Way, drawn: Drawn, games: Drawn, seen: Mapping[str, Mapping[str, int]], ranks: Mapping[str, Estimate] | None
) -> Way:
    """Add to ``way`` the ranks of the agents that the games rate too; ``ranks`` are the leaderboard's of all agents."""
    agents = [name for name in drawn.agents if name in way.scores and name in games.agents]
    if not agents:
        return way
    by_games = ranks if ranks is not None and set(agents) == set(ranks) else ranked(games, agents, seen[games.name])
    own = by_games if drawn is games else ranked(drawn, agents, seen[way.name])
    return replace(way, ranks=own, by_games=by_games)


def _robust(orders: Sequence[PairOrders], methods: Sequence[Method]) -> tuple[PairOrders, ...]:
    """The orders, in which only the pairs are certain that are so whatever the scores' missing judgments would be."""
    means = {scores.name: scores for scores in methods if isinstance(scores, Scores)}

    def robust(order: PairOrders) -> PairOrders:
        if (scores := means.get(order.way)) is None:
            return order
        least, most = np.array([scores.mean_bounds(agent) for agent in order.agents]).T
        above = np.greater.outer(least, most)
        return replace(order, certain=order.certain & (above | above.T))

    return tuple(map(robust, orders))


def _by_query(method: Method) -> Scores:
    if isinstance(method, Scores):
        return method
    return replace(method.won(), name=WON) if method.name == RATING else method.won()
