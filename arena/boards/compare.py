"""Every way of scoring the same agents side by side, who beats whom, and where a score disagrees with the games."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import compress
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from arena.boards.calibration.methods import lacking, method_chart, method_pairs, tau_matrix, way_of
from arena.boards.wins import Wins, by_points
from arena.calibration.methods import Means, Method, MethodComparison, compare_drawn, draw, uneven_shares
from arena.calibration.reversals import Departure, Departures, departures
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import Number, counted, deserved, listed
from arena.present.picture import FLAG, Aligned, CellPanel, Chart, Line, Look, Mark, Matrix, Strip, Whiskers, nowhere
from arena.present.table import Column, Table, flat
from arena.ratings.pairs import pair_results
from arena.ratings.results import UNITS
from arena.results.cache import DRAWN, Cache, cached_games, cached_leaderboard
from arena.results.opinions import peoples_opinions
from arena.results.ratings import Group, of_group, rating_settings
from arena.results.scores import RATING, people_methods, stored_methods
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.stats.bootstrap import ALONE, Clusters, estimates, units_of, units_with
from retrieval_eval.stats.estimate import Drawn, Estimate
from retrieval_eval.stats.means import mean_estimates
from retrieval_eval.stats.missing import MissingShare

Link: TypeAlias = Callable[..., str]
"""The address of the queries' page with these fields."""

WON: Final = "won"
"""In place of the rating on single queries: the share of its games that an agent won, a tie half."""
OF_STAGE: Final[Mapping[str, str]] = {"pairwise": RATING, "exam": "cover", "nuggets": "v_strict"}
"""The way of scoring that stands for a stage, by what people call it; others go by their own names."""
MOST_CHOSEN: Final = 4
"""Agents whose differences are drawn together."""
_LEFT_OUT: Final = ("elo",)
"""No other opinion than Bradley and Terry's: the same games rated."""
_SAID: Final[Mapping[str, str]] = {"v_strict": "nuggets", "criteria": "criteria", "people": "people's votes"} | {
    "criteria, people": "people's grades"
}
_TAU_SAMPLES: Final = 200
"""Draws that intervals of rank correlations are made of, which take longest."""
_SAME: Final = 1e-9
_MOST_NAMED: Final = 3
"""Agents in a sentence."""
_LOOKS: Final[Sequence[Look]] = ("blue", "orange", "grey")
_ALONE: Final = (
    "Only the games score these agents. Exam questions, nuggets, criteria or labels would show whether other scores "
    "agree."
)
_LEAD: Final = "Every score of every agent, with 95% intervals from the same draws of the queries."


class Way(Struct, frozen=True):
    """One way of scoring.

    Attributes:
        scores: by agent; ``n`` is the number of queries that a score rests on.
        queries: those that it scores any agent on.
        missing: by agent, judgments that failed or were never made, and of how many.
    """

    name: str
    scores: Mapping[str, Estimate]
    queries: int
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """For people, in headings."""
        return "Rating" if self.name == RATING else way_of(self.name)[0]

    @property
    def said(self) -> str:
        """For people, in sentences."""
        return _SAID.get(self.name, self.title)

    @property
    def form(self) -> Number:
        """As precise as its intervals deserve."""
        return _form(way_of(self.name)[1], self.scores.values())


class Placement(NamedTuple):
    """An agent that a way of scoring places otherwise than the games do.

    Attributes:
        others: agents that it is placed above, or below.
        above: whether above all of them; ``None`` where above some and below others.
    """

    agent: str
    others: tuple[str, ...]
    above: bool | None


class CompareBoard(Board, frozen=True, eq=False):
    """Every way of scoring the same agents.

    Attributes:
        group: of queries that all is about, ``None`` for all queries.
        order: agents, best rated first; those that no game rates follow.
        queries: their number, or that of their conversations, as of every score.
        ways: the rating first, where there is one.
        departures: where a score departs from the rating, ``None`` without a rating. What missing judgments alone
            could turn is none.
        methods: how alike the ways order the agents.
        wins: who beats whom, ``None`` without games.
        by_query: scores of single queries, by which groups of queries are compared.
        samples, seed: of the draws.
        clusters: the conversations of the queries.
        uneven: agents that lack more judgments of a score than others do by more than chance.
    """

    tournament: str
    group: Group | None
    order: tuple[str, ...]
    queries: int
    ways: tuple[Way, ...]
    departures: Departures | None
    methods: MethodComparison
    wins: Wins | None
    by_query: tuple[Means, ...]
    samples: int
    seed: int
    clusters: Clusters = field(default_factory=dict)
    uneven: tuple[MissingShare, ...] = ()

    @property
    def noun(self) -> tuple[str, str]:
        """What a score rests on so many of: one, and many."""
        return UNITS["conversation" if self.clusters else "query"]

    def sections(self) -> Sequence[Section]:
        if not self.ways:
            return []
        blocks: list[Block] = [Remarks(self.sentences()), self.figure()]
        if self.methods.pairs:
            blocks += [self.agreement(), self.correlations()]
        return [Section("compare", "Compare", _LEAD, [*blocks, self.table()])]

    def report(self) -> Section:
        """What the report shows: the sentences and the figure."""
        return Section("compare", "Compare", _LEAD, [Remarks(self.sentences()), self.figure()])

    def json(self) -> Any:
        found = [flat(one) for one in self.departures.pairs] if self.departures is not None else []
        ways = {
            way.name: {
                "queries": way.queries,
                "scores": {name: flat(own) for name, own in way.scores.items()},
                "missing": {name: {"missing": lost, "of": of} for name, (lost, of) in way.missing.items()},
            }
            for way in self.ways
        }
        return {
            "agents": list(self.order),
            "queries": self.queries,
            "ways": ways,
            "departures": found,
            "uneven": [flat(one) for one in self.uneven],
        }

    def findings(self, way: str) -> list[Placement]:
        """The fewest agents that all of a way's departures are about: always the one that is in most of the rest."""
        left, found = [one for one in (self.departures.pairs if self.departures else ()) if one.way == way], []
        while left:
            counts = Counter(agent for one in left for agent in (one.raised, one.lowered))
            agent = max(self.order, key=lambda name: counts[name])  # the best rated of several
            own = [one for one in left if agent in (one.raised, one.lowered)]
            raised = {one.raised == agent for one in own}
            others = {one.lowered if one.raised == agent else one.raised for one in own}
            above = raised.pop() if len(raised) == 1 else None
            found.append(Placement(agent, tuple(name for name in self.order if name in others), above))
            left = [one for one in left if one not in own]
        return found

    def sentences(self) -> list[str]:
        """What the figure shows, in words, and of whom a score lacks so much that it cannot be held against others."""
        return [*self._told(), *self._lacking()]

    def _lacking(self) -> Iterator[str]:
        ways = {way.name: way.said for way in self.ways}
        return lacking(self.uneven, ways.__getitem__)

    def _told(self) -> list[str]:
        if self.departures is None:
            few = "Too few games are judged to rate" if self.wins is not None else "No games rate"
            return [f"{few} these agents, so the scores are compared with each other alone."]
        others = [way for way in self.ways if way.name != self.departures.first]
        if not others:
            return [_ALONE]
        by_finding: dict[Placement, list[Way]] = {}
        for way in others:
            for one in self.findings(way.name):
                by_finding.setdefault(one, []).append(way)
        told = [_sentence(one, ways) for one, ways in by_finding.items()]
        silent = [way.said for way in others if way.name not in self.departures.tested]
        if not told and len(silent) < len(others):
            told = ["No score disagrees with the games about any two agents by more than chance."]
        if silent:
            told.append(f"Too few {self.noun[1]} to hold {listed(silent)} against the games.")
        return told

    def figure(self, link: Link = nowhere) -> Aligned:
        """The one figure; ``link`` gives the address of an agent's queries and of two agents' games."""
        flags = self._flags()
        panels: list[Strip | CellPanel] = []
        for way in self.ways:
            panels.append(self._strip(way, flags, link))
            if way is self.ways[0] and self.wins is not None:
                panels.append(CellPanel("Row against column, % won", self._cells(link)))
        caption = "Lines are 95% intervals."
        if self.wins is not None:
            caption += (
                " In the matrix, blue: the row's agent wins more games against the agent of that number; bold: their "
                "own games tell the two apart."
            )
        if self.departures is not None and self.departures.tested:
            caption += (
                f" {FLAG} marks a score that disagrees with the games: by both, two agents are told apart, in opposite "
                "orders. With a probability of 95% none of the marks is chance."
            )
        links = {agent: link(agent=agent) for agent in self.order}
        words = f"{_LEAD[:-1]}, and the win matrix."
        return Aligned("compare", "", words, caption, self.order, panels, "Agent", links)

    def title(self, way: str) -> str:
        """A way of scoring for people."""
        return next((own.title for own in self.ways if own.name == way), "Share of games won")

    def agreement(self) -> Matrix:
        """Kendall's tau of every two ways."""
        return tau_matrix(self.methods, self.title)

    def correlations(self) -> Table:
        """The same, pair by pair."""
        return method_pairs(self.methods, self.title)

    def scatter(self, across: str, up: str, link: Link = nowhere) -> Chart:
        """Agents by two ways, with their intervals."""
        ways = {way.name: way for way in self.ways}

        def ends(way: str, agent: str) -> tuple[float, float] | None:
            own = ways[way].scores[agent]
            return None if own.low is None or own.high is None else (own.low, own.high)

        return method_chart(
            self.methods, across, up, ends=ends, link=lambda agent: link(agent=agent), title_of=self.title
        )

    def deltas(self, way: str, agents: Sequence[str], groups: Mapping[str, Collection[str]]) -> Whiskers:
        """By group of queries, how far agents lie from the first of them in one way of scoring.

        ``way`` is one of ``by_query``, and there are up to ``MOST_CHOSEN`` agents.
        """
        scores = next(own for own in self.by_query if own.name == way)
        first, *others = agents
        found: dict[str, dict[str, Estimate]] = {}
        for name, queries in {"All queries": scores.queries, **groups}.items():
            found[name] = {other: self._difference(scores.among(queries), other, first) for other in others}
        known = [own for by_agent in found.values() for own in by_agent.values() if own.value is not None]
        form = _form(replace(way_of(way)[1], signed=True), known)
        lines = []
        for name, by_agent in found.items():
            marks = [
                Mark(own.value, own.low, own.high, look, f"({counted(own.n or 0, *self.noun)})")
                for look, own in zip(_LOOKS, by_agent.values(), strict=False)
                if own.value is not None
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

    def _difference(self, scores: Means, one: str, other: str) -> Estimate:
        if not {one, other} <= set(scores.agents):
            return Estimate(None)
        a, b = (scores.values[scores.agents.index(name)] for name in (one, other))
        both = ~np.isnan(a - b)
        apart = (a - b)[both]
        if not apart.size:
            return Estimate(None)
        unit = units_of(compress(scores.queries, both), self.clusters)
        low, high = scores.scale or (min(0.0, np.nanmin(scores.values)), max(1.0, np.nanmax(scores.values)))
        (found,) = mean_estimates(apart[np.newaxis], unit, (low - high, high - low))
        # Where no query differs from another, nothing shows how the difference varies.
        return replace(found, low=None, high=None) if np.ptp(apart) < _SAME else found

    def table(self) -> Table:
        """The figures of the picture."""
        rows = [
            {"agent": agent} | {way.name: way.scores.get(agent, Estimate(None)) for way in self.ways}
            for agent in self.order
        ]
        columns = [Column(way.name, way.title, way.form, interval="95% interval") for way in self.ways]
        return Table("compare", "Scores with intervals", [Column("agent", "Agent"), *columns], rows)

    def _strip(self, way: Way, flags: Mapping[tuple[str, str], str], link: Link) -> Strip:
        marks = {}
        for agent in self.order:
            own = way.scores.get(agent)
            if own is None or own.value is None:
                continue
            flag = flags.get((way.name, agent), "")
            told = f"On {own.n:,} of {counted(self.queries, *self.noun)}." if own.n is not None else ""
            if (lacking := way.missing.get(agent, (0, 0)))[0]:
                told = f"{told} {lacking[0]:,} of {lacking[1]:,} judgments are missing.".strip()
            look: Look = "orange" if flag else "blue"
            marks[agent] = Mark(own.value, own.low, own.high, look, "", told, flag, link(agent=agent))
        note = "" if way.queries == self.queries else f"{way.queries:,} of {counted(self.queries, *self.noun)}"
        return Strip(way.title, marks, way.form, note)

    def _flags(self) -> dict[tuple[str, str], str]:
        """By way and agent, why its mark stands out."""
        found = {}
        for way in self.ways:
            for one in self.findings(way.name):
                found[way.name, one.agent] = _sentence(one, [way])
        return found

    def _cells(self, link: Link) -> Mapping[Any, Any]:
        assert self.wins is not None
        return self.wins.picture(lambda agent, opponent: link(view="games", agent=agent, opponent=opponent)).cells


def _sentence(found: Placement, ways: Sequence[Way]) -> str:
    who = listed([way.said for way in ways])
    verb = "disagree" if len(ways) > 1 or ways[0].name in _SAID else "disagrees"
    sentence = f"{who[:1].upper()}{who[1:]} {verb} with the games about {found.agent}"
    if found.above is None:
        return f"{sentence}."
    here, there = ("above", "below") if found.above else ("below", "above")
    return f"{sentence}: {here} {listed(found.others, _MOST_NAMED)} there, {there} in the games."


def compare_board(store: Store, tournament: str, group: Group | None = None) -> CompareBoard:
    """Every way of scoring a tournament's agents, on all its queries or on a group of them.

    What is computed is kept in the store until something is judged, or people say something new.

    Raises:
        InputError: no such tournament or group.
    """
    kept = Cache(store, tournament)
    kind = "compare" if group is None else f"compare {'='.join(group)}"
    said = repr(Annotations(store, tournament).latest()).encode()
    return kept.made(kind, lambda: _made(store, tournament, group, kept), said)


def _made(store: Store, tournament: str, group: Group | None, kept: Cache) -> CompareBoard:
    rated = cached_leaderboard(store, tournament, group).ratings
    store = store if group is None else of_group(store, tournament, group)
    ratings = None if rated is None else {row.agent: Estimate(row.bt, row.bt_low, row.bt_high) for row in rated.agents}
    how, games = rating_settings(store.settings(tournament)), cached_games(store, tournament)
    methods = stored_methods(store, tournament, games, cache(partial(store.dataset, tournament)))
    methods += people_methods(peoples_opinions(store, tournament)[0])

    def drawn(method: Method, queries: Sequence[str]) -> Drawn:
        make = partial(draw, method, queries, how.bootstrap, how.seed, games.clusters)
        return kept.made(DRAWN.format(group), make) if method.name == RATING else make()

    draws = how.bootstrap, how.seed
    board = compared(methods, sorted(store.queries(tournament)), ratings, draws, drawn, clusters=games.clusters)
    wins, played = None, games.rated(how)
    if played is not None:
        pairs = pair_results(played)
        order = [agent for agent in ratings or by_points(pairs.wins) if agent in pairs.wins.agents]
        wins, board = Wins(pairs, order), replace(board, order=tuple(dict.fromkeys([*order, *board.order])))
    return replace(board, tournament=tournament, group=group, wins=wins)


def compared(
    methods: Sequence[Method],
    queries: Sequence[str],
    ratings: Mapping[str, Estimate] | None,
    draws: tuple[int, int] = (1000, 0),
    drawn: Callable[[Method, Sequence[str]], Drawn] | None = None,
    *,
    clusters: Clusters = ALONE,
) -> CompareBoard:
    """The board of some ways of scoring, without the win matrix.

    Args:
        methods: ratings by Bradley and Terry among them are held against all others.
        queries: that are drawn from.
        ratings: as they are shown, the best first; without them nothing is rated.
        draws: how many, and their seed.
        drawn: gives the scores of a way on these draws.
        clusters: what queries are drawn in.
    """
    drawn = drawn or (lambda method, names: draw(method, names, *draws, clusters))
    known = [own for own in methods if own.name not in _LEFT_OUT and (own.name != RATING or ratings is not None)]
    known = [own.among(queries) if isinstance(own, Means) else own for own in known]
    known.sort(key=lambda own: own.name != RATING)
    found = [drawn(own, queries) for own in known]
    counts = {own.name: units_with(own.seen(), units_of(own.queries, clusters)).tolist() for own in known}
    seen = {own.name: dict(zip(own.agents, counts[own.name], strict=True)) for own in known}
    units = {
        own.name: int(units_with(np.asarray(own.seen().any(axis=0)), units_of(own.queries, clusters))) for own in known
    }
    gaps = {own.name: own.gaps for own in known if isinstance(own, Means) and own.gaps is not None}
    counts_missing = {name: {agent: own.of(agent) for agent in own.agents} for name, own in gaps.items()}
    uneven = uneven_shares(known, clusters)
    ways = []
    for method, own in zip(known, found, strict=True):
        if isinstance(method, Means):
            scores = mean_estimates(method.values, units_of(method.queries, clusters), method.scale)
        else:
            scores = estimates(own.points, own.samples, [seen[own.name][agent] for agent in own.agents])
        ways.append(_way(own, scores, units[own.name], counts_missing.get(own.name, {})))
    drawn_from = len({*units_of(queries, clusters).tolist()})
    order: list[str] = []
    if ratings is not None and ways and ways[0].name == RATING:
        order = list(ratings)
        ways[0] = replace(ways[0], scores={name: replace(own, n=seen[RATING][name]) for name, own in ratings.items()})
    for way in ways:
        order += sorted(way.scores.keys() - set(order), key=lambda agent: -(way.scores[agent].value or 0))
    return CompareBoard(
        "",
        None,
        tuple(order),
        drawn_from,
        tuple(ways),
        _standing(departures(found, seen), known) if ways and ways[0].name == RATING else None,
        compare_drawn([replace(own, samples=own.samples[:_TAU_SAMPLES]) for own in found], drawn_from, uneven),
        None,
        tuple(map(_by_query, known)),
        *draws,
        clusters,
        uneven,
    )


def _standing(found: Departures, methods: Sequence[Method]) -> Departures:
    """Without the departures that a score's missing judgments could turn round, were all of them at the worst."""
    ends = {own.name: own for own in methods if isinstance(own, Means)}

    def stands(one: Departure) -> bool:
        own = ends.get(one.way)
        return own is None or own.lowest(one.raised) > own.highest(one.lowered)

    return replace(found, pairs=tuple(filter(stands, found.pairs)))


def _by_query(method: Method) -> Means:
    """Scores of single queries; of games, the share that was won."""
    if isinstance(method, Means):
        return method
    return replace(method.won(), name=WON) if method.name == RATING else method.won()


def _way(drawn: Drawn, scores: Sequence[Estimate], queries: int, missing: Mapping[str, tuple[int, int]]) -> Way:
    by_agent = zip(drawn.agents, scores, strict=True)
    known = {agent: own for agent, own in by_agent if own.value is not None}
    return Way(drawn.name, known, queries, missing)


def _form(form: Number, scores: Iterable[Estimate]) -> Number:
    found = deserved(form, [(own.low, own.high) for own in scores])
    assert isinstance(found, Number)
    return found
