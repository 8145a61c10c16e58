"""The Compare board: whether each score orders the agents as the games do, and the win matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import compress
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from arena.boards.games import Wins, by_points
from arena.boards.groups import with_group
from arena.boards.left_out_judges import other_judges_table, parts_picture
from arena.boards.methods import lacking, method_chart, method_pairs, tau_matrix
from arena.boards.quantities import WON, quantity
from arena.calibration.methods import (
    Departure,
    Method,
    MethodComparison,
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
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, Number, bracketed, capital, counted, deserved, listed
from arena.present.picture import (
    Aligned,
    CellPanel,
    Chart,
    Line,
    Look,
    Mark,
    Matrix,
    Share,
    Strip,
    Whiskers,
    nowhere,
)
from arena.present.table import INTERVAL, Column, Table, flat, plain
from arena.ratings.pairs import pair_results
from arena.ratings.results import UNITS, OtherJudges
from arena.results.cache import DRAWN, Cache, cached_games, cached_leaderboard
from arena.results.opinions import peoples_opinions
from arena.results.ratings import rating_settings
from arena.results.scores import PEOPLE, RATING, enough, people_methods, stored_methods, too_few
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.stats.bootstrap import ALONE, Clusters, estimates, mean_estimates, units_of, units_with
from retrieval_eval.stats.estimate import Drawn, Estimate
from retrieval_eval.stats.scores import MissingShare, Scores

Link: TypeAlias = Callable[..., str]
"""Function that returns the address of the queries page with the given fields set."""

OF_STAGE: Final[Mapping[str, str]] = {"pairwise": RATING, "exam": "cover", "nuggets": "v_strict"}
"""Score that is meant if a stage is named instead of a score, by stage, such as ``cover`` for ``exam``."""


def score_of(on: str) -> str:
    """Name of the score that is meant by ``on``: the main one if it names a stage, else ``on``."""
    stage = further_stages().get(on)
    return OF_STAGE.get(on) or next(iter(stage.scores if stage is not None else ()), on)


MOST_CHOSEN: Final = 4
_LEFT_OUT: Final = ("elo",)
"""Scores not shown: Elo rates the same games as Bradley-Terry."""
_PHRASES: Final[Mapping[str, str]] = {"v_strict": "nuggets", "criteria": "mean grades", "people": "people's votes"} | {
    "criteria, people": "people's grades"
}
_TAU_SAMPLES: Final = 200
"""Number of bootstrap samples for the intervals of rank correlations, which are the slowest to compute."""
_SAME: Final = 1e-9
_MOST_NAMED: Final = 3
_LOOKS: Final[Sequence[Look]] = ("blue", "orange", "grey")
_FIRST: Final = (RATING, "cover", "v_strict")
"""Scores shown first, in this order."""
_LEGEND: Final[Mapping[Look, str]] = {
    "blue": "agrees: most pairs of the agent are proven",
    "open": "open: most are not",
    "orange": "reversed: pairs are proven the other way round",
}
_RANKS: Final = "Lines: ranks with 95% intervals, 1 is best. Pale bands: the same by the games."
_PROVEN: Final = (
    "Proven: the games and the score both tell the two agents apart; with a probability of 95% all proven pairs hold. "
    "Bars: dark is proven, pale is not; blue is the order of the games, orange the reverse, grey a tie."
)
_ALONE: Final = (
    "Only the games score these agents. Exam questions, nuggets, criteria or labels would show whether other scores "
    "agree."
)
_LEAD: Final = "Whether each score orders the agents as the games do."


class Way(Struct, frozen=True):
    """All agents' scores by one way of scoring, such as games or nuggets.

    Attributes:
        scores: score by agent; ``n`` is the number of queries behind it.
        queries: number of queries on which any agent has a score.
        missing: by agent, the number of missing judgments (failed or never made), and of all planned judgments.
        orders: whether the score by itself says which agent is better; only such scores are held against each other.
        ranks, by_games: ranks of the agents that the games rate too, by this way and by the games.
    """

    name: str
    scores: Mapping[str, Estimate]
    queries: int
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    orders: bool = True
    ranks: Mapping[str, Estimate] = field(default_factory=dict)
    by_games: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return quantity(self.name).title

    @property
    def phrase(self) -> str:
        return _PHRASES.get(self.name, self.title)

    @property
    def form(self) -> Number:
        return _form(quantity(self.name).form, self.scores.values())


class Placement(NamedTuple):
    """An agent that a score places differently from the games.

    Attributes:
        others: agents whose order with this agent differs between the score and the games.
        above: ``True`` if the score places the agent above all of them, ``False`` if below all, ``None`` if mixed.
    """

    agent: str
    others: tuple[str, ...]
    above: bool | None


class CompareBoard(Board, frozen=True, eq=False):
    """The scores of the same agents by every way of scoring.

    Attributes:
        order: agents, best rated first, then the agents without a rating.
        queries: number of queries, or of conversations, behind the scores.
        ways: the scores; the rating comes first if there is one.
        orders: orders of pairs of agents by the other scores, beside the rating's; pairs that missing judgments could
            turn are not certain. ``None`` without a rating.
        uneven: agents that lack more judgments of a score than other agents do, by more than chance.
        few: number of queries by score, for scores of people that are left out as there are too few.
    """

    order: tuple[str, ...]
    queries: int
    ways: tuple[Way, ...]
    orders: tuple[PairOrders, ...] | None
    methods: MethodComparison
    wins: Wins | None
    by_query: tuple[Scores, ...]
    clusters: Clusters = field(default_factory=dict)
    uneven: tuple[MissingShare, ...] = ()
    other_judges: tuple[OtherJudges, ...] = ()
    tournament: str = ""
    few: Mapping[str, int] = field(default_factory=dict)

    @property
    def noun(self) -> tuple[str, str]:
        return UNITS["conversation" if self.clusters else "query"]

    def sections(self) -> Sequence[Section]:
        if not self.ways:
            return []
        blocks: list[Block] = [Remarks(self.sentences()), self.figure()]
        if self.methods.pairs:
            blocks += [self.agreement(), self.correlations()]
        return [Section("compare", "Compare", _LEAD, [*blocks, self.table(), *self.judges()])]

    def judges(self) -> list[Block]:
        """Picture and table of neighbours' differences with judges as a source of error; empty below three judges."""
        picture = parts_picture(self.other_judges)
        return [] if picture is None else [picture, other_judges_table(self.other_judges, "compare")]

    def report(self) -> Section:
        return Section("compare", "Compare", _LEAD, [Remarks(self.sentences()), self.figure()])

    def json(self) -> Any:
        orders = {order.way: order for order in self.orders or ()}
        ways = {
            way.name: {
                "queries": way.queries,
                "scores": {name: flat(score) for name, score in way.scores.items()},
                "missing": {name: {"missing": lost, "of": of} for name, (lost, of) in way.missing.items()},
                "ranks": {name: flat(rank) for name, rank in way.ranks.items()},
                "pairs": orders[way.name].tally()._asdict() if way.name in orders else None,
                "tau": flat(tau) if (tau := self._tau(way.name)) is not None else None,
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

    def findings(self, way: str) -> list[Placement]:
        """Agents about which the score ``way`` disagrees with the games, most disagreements first (greedy cover)."""
        orders = self._orders(way)
        left: Sequence[Departure] = orders.departures if orders is not None else ()
        placements: list[Placement] = []
        while left:
            counts = Counter(agent for departure in left for agent in (departure.raised, departure.lowered))
            agent = max(self.order, key=lambda name: counts[name])  # the best rated if several are equally frequent
            involved = [departure for departure in left if agent in (departure.raised, departure.lowered)]
            raised = {departure.raised == agent for departure in involved}
            others = {departure.lowered if departure.raised == agent else departure.raised for departure in involved}
            above = raised.pop() if len(raised) == 1 else None
            placements.append(Placement(agent, tuple(name for name in self.order if name in others), above))
            left = [departure for departure in left if departure not in involved]
        return placements

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
        counted_ways = [
            _sentence(way, orders.tally(), self.findings(way.name))
            for way in others
            if (orders := self._orders(way.name)) is not None
        ]
        untested = [way.phrase for way in others if self._orders(way.name) is None]
        if untested:
            counted_ways.append(f"Too few {self.noun[1]} to hold {listed(untested)} against the games.")
        return counted_ways

    def _orders(self, way: str) -> PairOrders | None:
        return next((orders for orders in self.orders or () if orders.way == way), None)

    def _tau(self, way: str) -> Estimate | None:
        """Rank correlation of a score with the rating."""
        if self.orders is None:
            return None
        pairs = (pair.kendall for pair in self.methods.pairs if (pair.first, pair.second) == (RATING, way))
        return next((tau for tau in pairs if tau.value is not None), None)

    def figure(self, link: Link = nowhere, *, values: bool = False, agents: Collection[str] = ()) -> Aligned:
        """Chart of the ranks by all scores, coloured by agreement with the games, and the win matrix.

        Args:
            link: returns the address of a page on an agent or two agents.
            values: draw scores on axes of their own instead of ranks.
            agents: agents to show; all if empty.

        """
        shown = [(number, agent) for number, agent in enumerate(self.order, 1) if not agents or agent in agents]
        names = [agent for _, agent in shown]
        panels: list[Strip | CellPanel] = [
            self._strip(way, names, link, values=values) for way in self.ways if way.orders
        ]
        captions = ["Lines: 95% intervals." if values else _RANKS]
        if self.orders:
            captions.append(_PROVEN)
        if self.wins is not None:
            wins = self.wins.picture(lambda agent, opponent: link(view="games", agent=agent, opponent=opponent))
            cells = {place: replace(cell, below="") for place, cell in wins.cells.items()}
            panels.append(CellPanel(f"{quantity(WON).title} in percent, row against column", cells))
            captions.append(
                "In the matrix, blue: the row's agent wins more games against the agent of that number; bold: their "
                "own games tell the two apart."
            )
        asked = "How the scores order the agents"
        if self.orders is not None:
            others = len(self.ways) > 1
            asked = (
                "Do the other scores order the agents as the games do?" if others else "How the games order the agents"
            )
        return Aligned(
            "compare",
            f"{self.tournament}: {asked[0].lower()}{asked[1:]}" if self.tournament else asked,
            "Ranks of the agents by every score, beside those by the games, and the win matrix.",
            " ".join(captions),
            names,
            panels,
            "Agent",
            {agent: link(agent=agent) for agent in self.order},
            [number for number, _ in shown],
            _LEGEND if self.orders else {},
        )

    def title(self, way: str) -> str:
        return quantity(way).title

    def agreement(self) -> Matrix:
        return tau_matrix(self.methods, self.title)

    def correlations(self) -> Table:
        return method_pairs(self.methods, self.title)

    def scatter(self, across: str, up: str, link: Link = nowhere) -> Chart:
        ways = {way.name: way for way in self.ways}

        def ends(way: str, agent: str) -> tuple[float, float] | None:
            score = ways[way].scores[agent]
            return None if score.low is None or score.high is None else (score.low, score.high)

        return method_chart(
            self.methods, across, up, ends=ends, link=lambda agent: link(agent=agent), title_of=self.title
        )

    def deltas(self, way: str, agents: Sequence[str], groups: Mapping[str, Collection[str]]) -> Whiskers:
        """Chart of each agent's difference from the first agent in one score, a line for each group of queries.

        ``way`` is the name of a score in ``by_query``; ``agents`` has at most ``MOST_CHOSEN`` names.
        """
        scores = next(means for means in self.by_query if means.name == way)
        first, *others = agents
        differences = {
            name: {other: self._difference(scores.among(queries), other, first) for other in others}
            for name, queries in {"All queries": scores.queries, **groups}.items()
        }
        every = (score for by_agent in differences.values() for score in by_agent.values() if score.value is not None)
        form = _form(replace(quantity(way).form, signed=True), every)
        lines = []
        for name, by_agent in differences.items():
            marks = [
                Mark(score.value, score.low, score.high, look, f"({counted(score.n or 0, *self.noun)})")
                for look, score in zip(_LOOKS, by_agent.values(), strict=False)
                if score.value is not None
            ]
            if marks:
                lines.append(Line(name, marks))
        legend = dict(zip(_LOOKS, others, strict=False))
        axis = f"{self.title(way)}, difference from {first}"
        caption = (
            f"Right of 0, the agent scores higher than {first}. Each interval stands alone: of many, some differ "
            "by chance."
        )
        words = f"{axis}, by group of queries"
        return Whiskers("deltas", "", words, caption, lines, axis, form, legend=legend, zero=True)

    def _difference(self, scores: Scores, agent: str, reference: str) -> Estimate:
        if not {agent, reference} <= set(scores.agents):
            return Estimate(None)
        scores = scores.contributions() if scores.conditional else scores
        scores_a, scores_b = (scores.values[scores.agents.index(name)] for name in (agent, reference))
        scored = ~np.isnan(scores_a - scores_b)
        differences = (scores_a - scores_b)[scored]
        if not differences.size:
            return Estimate(None)
        units = units_of(compress(scores.queries, scored), self.clusters)
        low, high = scores.scale or (min(0.0, np.nanmin(scores.values)), max(1.0, np.nanmax(scores.values)))
        (estimate,) = mean_estimates(differences[np.newaxis], units, (low - high, high - low))
        # If all queries have the same difference, its variance cannot be estimated.
        return replace(estimate, low=None, high=None) if np.ptp(differences) < _SAME else estimate

    def table(self) -> Table:
        rows = [
            {"agent": agent} | {way.name: way.scores.get(agent, Estimate(None)) for way in self.ways}
            for agent in self.order
        ]
        columns = [Column(way.name, way.title, way.form, interval=INTERVAL) for way in self.ways]
        return Table("compare", "Scores with intervals", [Column("agent", "Agent"), *columns], rows)

    def _strip(self, way: Way, agents: Sequence[str], link: Link, *, values: bool) -> Strip:
        is_reference, orders = self.orders is not None and way.name == RATING, self._orders(way.name)
        named = {placement.agent for placement in self.findings(way.name)}
        marks = {}
        for agent in filter(way.scores.__contains__, agents):
            rank = way.ranks.get(agent, Estimate(None))
            drawn = way.scores[agent] if values else rank
            if drawn.value is None:
                continue
            tally = orders.tally(agent) if orders is not None and agent in orders.agents else None
            look: Look = "quiet" if tally is None else _state(tally)
            if tally is not None and (agent in named or 0 < tally.reversed >= tally.proven):
                look = "orange"
            games = Estimate(None) if values or is_reference else way.by_games.get(agent, Estimate(None))
            band = None if games.low is None or games.high is None else (games.low, games.high)
            tooltip = f"{agent} by {way.phrase}: {'; '.join(self._details(way, agent, tally))}."
            marks[agent] = Mark(drawn.value, drawn.low, drawn.high, look, "", tooltip, band, link(agent=agent))
        title, form = (way.title, way.form) if values else ("Games" if is_reference else way.title, COUNT)
        notes, ranks = self._notes(way), 0 if values else len(self.order)
        if orders is None:
            untested: tuple[Look, str] = "open", f"too few {self.noun[1]}"
            verdict = None if is_reference or self.orders is None else untested
            return Strip(title, marks, form, verdict, (), ["the reference"] * is_reference + notes, ranks)
        tally = orders.tally()
        others = tally.pairs - tally.alike - tally.tied - tally.reversed
        shares = [
            Share("blue", tally.proven, "proven"),
            Share("blue", tally.alike - tally.proven, "in the games' order", faint=True),
            Share("grey", tally.tied, "tied", faint=True),
            Share("orange", others, "in the reverse order", faint=True),
            Share("orange", tally.reversed, "reversed"),
        ]
        look, word = _state(tally), "mostly open" if tally.proven else "open"
        verdict = look, "agrees" if look == "blue" else word
        if named:
            verdict = "orange", f"disagrees on {counted(len(named), 'agent')}"
        counts = [
            f"{tally.alike:,} of {counted(tally.pairs, 'pair')} as the games",
            f"{tally.proven:,} proven, {tally.reversed:,} reversed" + (f", {tally.tied:,} tied" if tally.tied else ""),
        ]
        return Strip(title, marks, form, verdict, shares, [*counts, *notes], ranks)

    def _details(self, way: Way, agent: str, tally: PairTally | None) -> Iterator[str]:
        score, rank = way.scores[agent], way.ranks.get(agent, Estimate(None))
        if rank.value is not None:
            yield f"rank {bracketed(rank, COUNT)}"
        yield bracketed(score, way.form)
        if tally is not None:
            yield (
                f"of {counted(tally.pairs, 'pair')}, {tally.alike} ordered as the games do, {tally.proven} proven, "
                f"{tally.reversed} reversed"
            )
        if score.n is not None:
            yield f"on {score.n:,} of {counted(self.queries, *self.noun)}"
        if (missing := way.missing.get(agent, (0, 0)))[0]:
            yield f"{missing[0]:,} of {missing[1]:,} judgments are missing"

    def _notes(self, way: Way) -> list[str]:
        tau = self._tau(way.name)
        notes = [] if tau is None else [f"tau {bracketed(tau, _form(FIGURE, [tau]))}"]
        if way.queries != self.queries:
            notes.append(f"{way.queries:,} of {counted(self.queries, *self.noun)}")
        if len(way.ranks) < len(self.order):
            notes.append(f"{len(way.ranks)} of {counted(len(self.order), 'agent')}")
        return notes


def _state(tally: PairTally) -> Look:
    """Look of the marks of an agent, or of a score, with these pairs."""
    return "blue" if 2 * tally.proven > tally.pairs else "open"


def _sentence(way: Way, tally: PairTally, placements: Sequence[Placement]) -> str:
    """What a score says of the games' order of the agents, in one sentence."""
    is_many = way.name in _PHRASES
    (s, them), who = ("", "they") if is_many else ("s", "it"), capital(way.phrase) if is_many else way.phrase
    proven, turned = (f"{count:,}" if count else "none" for count in (tally.proven, tally.reversed))
    counts = (
        f"{them} order{s} {tally.alike:,} of {counted(tally.pairs, 'pair')} of agents as the games do, prove{s} "
        f"{proven} and reverse{s} {turned}"
    )
    if placements:
        return f"{who} disagree{s} with the games about {listed([*map(_placed, placements)], _MOST_NAMED)}: {counts}."
    if not tally.proven:
        return f"Whether {way.phrase} agree{s} with the games is open: {counts}."
    where = "" if _state(tally) == "blue" else " where both are sure, but most is open"
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
        pairs = pair_results(played)
        order = [agent for agent in ratings or by_points(pairs) if agent in pairs.agents]
        wins, board = Wins(pairs, order), replace(board, order=tuple(dict.fromkeys([*order, *board.order])))
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
            missing = {} if method.gaps is None else {agent: method.gaps.of(agent) for agent in method.gaps.agents}
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


def _form(form: Number, scores: Iterable[Estimate]) -> Number:
    precise = deserved(form, [(score.low, score.high) for score in scores])
    assert isinstance(precise, Number)
    return precise
