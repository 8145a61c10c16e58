"""The Compare board: every score of every agent, the win matrix, and scores that disagree with the games."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import compress
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from arena.boards.games import Wins, by_points
from arena.boards.methods import lacking, method_chart, method_pairs, tau_matrix
from arena.boards.quantities import WON, quantity
from arena.calibration.methods import (
    Departure,
    Departures,
    Method,
    MethodComparison,
    compare_drawn,
    departures,
    draw,
    uneven_shares,
)
from arena.calibration.votes import Level
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import Number, capital, counted, deserved, listed
from arena.present.picture import FLAG, Aligned, CellPanel, Chart, Line, Look, Mark, Matrix, Strip, Whiskers, nowhere
from arena.present.table import INTERVAL, Column, Table, flat
from arena.ratings.pairs import pair_results
from arena.ratings.results import UNITS
from arena.results.cache import DRAWN, Cache, cached_games, cached_leaderboard
from arena.results.opinions import peoples_opinions
from arena.results.ratings import Group, of_group, rating_settings
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
_ALONE: Final = (
    "Only the games score these agents. Exam questions, nuggets, criteria or labels would show whether other scores "
    "agree."
)
_LEAD: Final = "Every score of every agent, with 95% intervals from the same draws of the queries."


class Way(Struct, frozen=True):
    """All agents' scores by one way of scoring, such as games or nuggets.

    Attributes:
        scores: score by agent; ``n`` is the number of queries behind it.
        queries: number of queries on which any agent has a score.
        missing: by agent, the number of missing judgments (failed or never made), and of all planned judgments.
    """

    name: str
    scores: Mapping[str, Estimate]
    queries: int
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)

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
        departures: disagreements of other scores with the rating that hold whatever the missing judgments would be;
            ``None`` without a rating.
        uneven: agents that lack more judgments of a score than other agents do, by more than chance.
        few: number of queries by score, for scores of people that are left out as there are too few.
    """

    order: tuple[str, ...]
    queries: int
    ways: tuple[Way, ...]
    departures: Departures | None
    methods: MethodComparison
    wins: Wins | None
    by_query: tuple[Scores, ...]
    clusters: Clusters = field(default_factory=dict)
    uneven: tuple[MissingShare, ...] = ()
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
        return [Section("compare", "Compare", _LEAD, [*blocks, self.table()])]

    def report(self) -> Section:
        return Section("compare", "Compare", _LEAD, [Remarks(self.sentences()), self.figure()])

    def json(self) -> Any:
        departure_rows = [flat(departure) for departure in self.departures.pairs] if self.departures is not None else []
        ways = {
            way.name: {
                "queries": way.queries,
                "scores": {name: flat(score) for name, score in way.scores.items()},
                "missing": {name: {"missing": lost, "of": of} for name, (lost, of) in way.missing.items()},
            }
            for way in self.ways
        }
        return {
            "agents": list(self.order),
            "queries": self.queries,
            "ways": ways,
            "departures": departure_rows,
            "uneven": [flat(record) for record in self.uneven],
        }

    def findings(self, way: str) -> list[Placement]:
        """Agents about which the score ``way`` disagrees with the games, most disagreements first (greedy cover)."""
        left = [departure for departure in (self.departures.pairs if self.departures else ()) if departure.way == way]
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
        return [*self._disagreements(), *left_out, *lacking(self.uneven, phrases.__getitem__)]

    def _disagreements(self) -> list[str]:
        if self.departures is None:
            few = "Too few games are judged to rate" if self.wins is not None else "No games rate"
            return [f"{few} these agents, so the scores are compared with each other alone."]
        others = [way for way in self.ways if way.name != self.departures.first]
        if not others:
            return [_ALONE]
        by_finding: dict[Placement, list[Way]] = {}
        for way in others:
            for placement in self.findings(way.name):
                by_finding.setdefault(placement, []).append(way)
        sentences = [_sentence(placement, ways) for placement, ways in by_finding.items()]
        untested = [way.phrase for way in others if way.name not in self.departures.tested]
        if not sentences and len(untested) < len(others):
            sentences = ["No score disagrees with the games about any two agents by more than chance."]
        if untested:
            sentences.append(f"Too few {self.noun[1]} to hold {listed(untested)} against the games.")
        return sentences

    def figure(self, link: Link = nowhere) -> Aligned:
        """Chart of all scores and the win matrix; ``link`` returns the address of a page on an agent or two agents."""
        flags = {
            (way.name, placement.agent): _sentence(placement, [way])
            for way in self.ways
            for placement in self.findings(way.name)
        }
        panels: list[Strip | CellPanel] = []
        for way in self.ways:
            panels.append(self._strip(way, flags, link))
            if way is self.ways[0] and self.wins is not None:
                wins = self.wins.picture(lambda agent, opponent: link(view="games", agent=agent, opponent=opponent))
                panels.append(CellPanel(f"{quantity(WON).title} in percent, row against column", wins.cells))
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

    def _strip(self, way: Way, flags: Mapping[tuple[str, str], str], link: Link) -> Strip:
        marks = {}
        for agent in self.order:
            score = way.scores.get(agent)
            if score is None or score.value is None:
                continue
            flag = flags.get((way.name, agent), "")
            details = f"On {score.n:,} of {counted(self.queries, *self.noun)}." if score.n is not None else ""
            if (missing := way.missing.get(agent, (0, 0)))[0]:
                details = f"{details} {missing[0]:,} of {missing[1]:,} judgments are missing.".strip()
            look: Look = "orange" if flag else "blue"
            marks[agent] = Mark(score.value, score.low, score.high, look, "", details, flag, link(agent=agent))
        note = "" if way.queries == self.queries else f"{way.queries:,} of {counted(self.queries, *self.noun)}"
        return Strip(way.title, marks, way.form, note)


def _sentence(placement: Placement, ways: Sequence[Way]) -> str:
    who = listed([way.phrase for way in ways])
    verb = "disagree" if len(ways) > 1 or ways[0].name in _PHRASES else "disagrees"
    sentence = f"{capital(who)} {verb} with the games about {placement.agent}"
    if placement.above is None:
        return f"{sentence}."
    here, there = ("above", "below") if placement.above else ("below", "above")
    return f"{sentence}: {here} {listed(placement.others, _MOST_NAMED)} there, {there} in the games."


def compare_board(store: Store, tournament: str, group: Group | None = None) -> CompareBoard:
    """All scores of a tournament's agents, cached in the store until a new verdict or annotation arrives."""
    board_cache = Cache(store, tournament)
    kind = "compare" if group is None else f"compare {'='.join(group)}"
    fingerprint = repr(Annotations(store, tournament).latest()).encode()
    return board_cache.made(kind, lambda: _computed(store, tournament, group, board_cache), fingerprint)


def _computed(store: Store, tournament: str, group: Group | None, board_cache: Cache) -> CompareBoard:
    rated = cached_leaderboard(store, tournament, group).ratings
    store = store if group is None else of_group(store, tournament, group)
    ratings = None if rated is None else {row.agent: Estimate(row.bt, row.bt_low, row.bt_high) for row in rated.agents}
    settings, games = rating_settings(store.settings(tournament)), cached_games(store, tournament)
    methods = stored_methods(store, tournament, games, cache(partial(store.dataset, tournament)))
    people = peoples_opinions(store, tournament)[0]
    methods += people_methods(enough(people))

    def draw_scores(method: Method, queries: Sequence[str]) -> Drawn:
        make = partial(draw, method, queries, settings.bootstrap, settings.seed, games.clusters)
        return board_cache.made(DRAWN.format(group), make) if method.name == RATING else make()

    draws = settings.bootstrap, settings.seed
    board = compared(methods, sorted(store.queries(tournament)), ratings, draws, draw_scores, clusters=games.clusters)
    wins, played = None, games.rated(settings)
    if played is not None:
        pairs = pair_results(played)
        order = [agent for agent in ratings or by_points(pairs) if agent in pairs.agents]
        wins, board = Wins(pairs, order), replace(board, order=tuple(dict.fromkeys([*order, *board.order])))
    named: dict[tuple[Level, str], str] = {("verdicts", ""): PEOPLE, ("criteria", ""): f"criteria, {PEOPLE}"}
    few = too_few(people)
    return replace(board, wins=wins, few={name: few[key] for key, name in named.items() if key in few})


def compared(
    methods: Sequence[Method],
    queries: Sequence[str],
    ratings: Mapping[str, Estimate] | None,
    draws: tuple[int, int] = (1000, 0),
    draw_scores: Callable[[Method, Sequence[str]], Drawn] | None = None,
    *,
    clusters: Clusters = ALONE,
) -> CompareBoard:
    """Make the board from scores, without its win matrix; ``ratings`` are best first, ``None`` leaves the games out."""
    draw_scores = draw_scores or (lambda method, names: draw(method, names, *draws, clusters))
    chosen = (method for method in methods if method.name not in _LEFT_OUT)
    used = [
        replace(method.among(queries), clusters=clusters) if isinstance(method, Scores) else method
        for method in sorted(chosen, key=lambda method: method.name != RATING)
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
        ways.append(Way(method.name, known, int(units_with(np.asarray(method.seen().any(axis=0)), unit)), missing))
    is_rated = bool(ways) and ways[0].name == RATING
    order = [*ratings] if ratings is not None and is_rated else []
    for way in ways:
        order += sorted(way.scores.keys() - set(order), key=lambda agent: -(way.scores[agent].value or 0))
    uneven, drawn_from = uneven_shares(used, clusters), len({*units_of(queries, clusters).tolist()})
    few_draws = [replace(drawn, samples=drawn.samples[:_TAU_SAMPLES]) for drawn in score_draws]
    return CompareBoard(
        tuple(order),
        drawn_from,
        tuple(ways),
        _robust(departures(score_draws, seen), used) if is_rated else None,
        compare_drawn(few_draws, drawn_from, uneven),
        None,
        tuple(map(_by_query, used)),
        clusters,
        uneven,
    )


def _robust(candidates: Departures, methods: Sequence[Method]) -> Departures:
    """The disagreements of scores with the games that remain whatever the scores' missing judgments would be."""
    means = {scores.name: scores for scores in methods if isinstance(scores, Scores)}

    def holds(departure: Departure) -> bool:
        scores = means.get(departure.way)
        return scores is None or scores.mean_bounds(departure.raised)[0] > scores.mean_bounds(departure.lowered)[1]

    return replace(candidates, pairs=tuple(filter(holds, candidates.pairs)))


def _by_query(method: Method) -> Scores:
    if isinstance(method, Scores):
        return method
    return replace(method.won(), name=WON) if method.name == RATING else method.won()


def _form(form: Number, scores: Iterable[Estimate]) -> Number:
    precise = deserved(form, [(score.low, score.high) for score in scores])
    assert isinstance(precise, Number)
    return precise
