"""The drawing of Compare: ranks by every score beside those by the games, the win matrix, and two scores together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Final, TypeAlias

import numpy as np
from msgspec.structs import replace

from arena.boards.compare_figures import ComparedScores, Way, form_of, state_of
from arena.boards.methods import method_chart
from arena.boards.quantities import WON, quantity
from arena.calibration.methods import PairTally
from arena.present.numbers import COUNT, FIGURE, bracketed, counted
from arena.present.picture import Aligned, CellPanel, Chart, Line, Look, Mark, Share, Strip, Whiskers, nowhere
from arena.results.scores import RATING
from retrieval_eval.stats.bootstrap import mean_estimates, units_of
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.scores import Scores

Link: TypeAlias = Callable[..., str]
"""Function that returns the address of the queries page with the given fields set."""

MOST_CHOSEN: Final = 4
_LOOKS: Final[Sequence[Look]] = ("blue", "orange", "grey")
_SAME: Final = 1e-9
_LEGEND: Final[Mapping[Look, str]] = {
    "blue": "agrees: most pairs of the agent are proven",
    "open": "open: half of the agent's pairs or more are not proven",
    "orange": "reversed: pairs are proven the other way round",
    "band": "ranks by the games",
}
_RANKS: Final = "Marks and lines: ranks with 95% intervals, 1 is best."
_PROVEN: Final = (
    "Proven: the games and the score both tell the two agents apart; with a probability of 95% all proven pairs hold. "
    "Bars: dark is proven, pale is not; blue is the order of the games, orange the reverse, grey a tie."
)


def compare_figure(board: ComparedScores, link: Link = nowhere, *, agents: Collection[str] = ()) -> Aligned:
    """Chart of the ranks by all scores, coloured by agreement with the games, and the win matrix.

    Args:
        link: returns the address of a page on an agent or two agents.
        agents: agents to show; all if empty.

    """
    shown = [(number, agent) for number, agent in enumerate(board.order, 1) if not agents or agent in agents]
    names = [agent for _, agent in shown]
    panels: list[Strip | CellPanel] = [_strip(board, way, names, link) for way in board.ways if way.orders]
    captions = [_RANKS]
    if board.orders:
        captions.append(_PROVEN)
    if board.wins is not None:
        to_games = partial(_to_games, link) if link is not nowhere else nowhere
        wins = board.wins.picture(to_games)
        cells = {place: replace(cell, below="") for place, cell in wins.cells.items()}
        panels.append(CellPanel(f"{quantity(WON).title} in percent, row against column", cells))
        captions.append(f"In the matrix, {wins.caption[:1].lower()}{wins.caption[1:]}")
    asked = "How the scores order the agents"
    if board.orders is not None:
        others = len(board.ways) > 1
        asked = "Do the other scores order the agents as the games do?" if others else "How the games order the agents"
    return Aligned(
        "compare",
        f"{board.tournament}: {asked[0].lower()}{asked[1:]}" if board.tournament else asked,
        "Ranks of the agents by every score, beside those by the games, and the win matrix.",
        " ".join(captions),
        names,
        panels,
        "Agent",
        {agent: link(agent=agent) for agent in board.order},
        [number for number, _ in shown],
        _legend(panels),
    )


def _to_games(link: Link, agent: str, opponent: str) -> str:
    return link(view="games", agent=agent, opponent=opponent)


def _legend(panels: Sequence[Strip | CellPanel]) -> dict[Look, str]:
    """The meanings of the marks and bands that the strips show."""
    marks = [mark for panel in panels if isinstance(panel, Strip) for mark in panel.marks.values()]
    looks: set[Look] = {mark.look for mark in marks} | {"band" for mark in marks if mark.band is not None}
    return {look: meaning for look, meaning in _LEGEND.items() if look in looks}


def compare_scatter(board: ComparedScores, across: str, up: str, link: Link = nowhere) -> Chart:
    ways = {way.name: way for way in board.ways}

    def ends(way: str, agent: str) -> tuple[float, float] | None:
        score = ways[way].scores[agent]
        return None if score.low is None or score.high is None else (score.low, score.high)

    numbers = {agent: number for number, agent in enumerate(board.order, 1)}
    return method_chart(board.methods, across, up, ends=ends, link=lambda agent: link(agent=agent), numbers=numbers)


def group_deltas(
    board: ComparedScores, way: str, agents: Sequence[str], groups: Mapping[str, Collection[str]]
) -> Whiskers:
    """Chart of each agent's difference from the first agent in one score, a line for each group of queries.

    ``way`` is the name of a score in ``by_query``; ``agents`` has at most ``MOST_CHOSEN`` names.
    """
    scores = next(means for means in board.by_query if means.name == way)
    first, *others = agents
    differences = {
        name: {other: _difference(board, scores.among(queries), other, first) for other in others}
        for name, queries in {"All queries": scores.queries, **groups}.items()
    }
    every = (score for by_agent in differences.values() for score in by_agent.values() if score.value is not None)
    form = form_of(replace(quantity(way).form, signed=True), every)
    lines = []
    for name, by_agent in differences.items():
        marks = [
            Mark(score.value, score.low, score.high, look, f"({counted(score.n or 0, *board.noun)})")
            for look, score in zip(_LOOKS, by_agent.values(), strict=False)
            if score.value is not None
        ]
        if marks:
            lines.append(Line(name, marks))
    legend = dict(zip(_LOOKS, others, strict=False))
    axis = f"{quantity(way).title}, difference from {first}"
    caption = (
        f"Right of 0, the agent scores higher than {first}. Each interval stands alone: of many, some differ by chance."
    )
    words = f"{axis}, by group of queries"
    return Whiskers("deltas", "", words, caption, lines, axis, form, legend=legend, zero=True)


def _difference(board: ComparedScores, scores: Scores, agent: str, reference: str) -> Estimate:
    if not {agent, reference} <= set(scores.agents):
        return Estimate(None)
    scores = scores.contributions() if scores.conditional else scores
    scores_a, scores_b = (scores.values[scores.agents.index(name)] for name in (agent, reference))
    scored = ~np.isnan(scores_a - scores_b)
    differences = (scores_a - scores_b)[scored]
    if not differences.size:
        return Estimate(None)
    units = units_of(compress(scores.queries, scored), board.clusters)
    low, high = scores.scale or (min(0.0, np.nanmin(scores.values)), max(1.0, np.nanmax(scores.values)))
    (estimate,) = mean_estimates(differences[np.newaxis], units, (low - high, high - low))
    # If all queries have the same difference, its variance cannot be estimated.
    return replace(estimate, low=None, high=None) if np.ptp(differences) < _SAME else estimate


def _strip(board: ComparedScores, way: Way, agents: Sequence[str], link: Link) -> Strip:
    is_reference, orders = board.orders is not None and way.name == RATING, board.orders_of(way.name)
    named = {placement.agent for placement in board.findings(way.name)}
    marks = {}
    for agent in filter(way.scores.__contains__, agents):
        rank = way.ranks.get(agent, Estimate(None))
        if rank.value is None:
            continue
        tally = orders.tally(agent) if orders is not None and agent in orders.agents else None
        look: Look = "quiet" if tally is None else state_of(tally)
        if tally is not None and (agent in named or 0 < tally.reversed >= tally.proven):
            look = "orange"
        games = Estimate(None) if is_reference or board.orders is None else way.by_games.get(agent, Estimate(None))
        band = None if games.low is None or games.high is None else (games.low, games.high)
        tooltip = f"{agent} by {way.phrase}: {'; '.join(_details(board, way, agent, tally))}."
        marks[agent] = Mark(rank.value, rank.low, rank.high, look, "", tooltip, band, link(agent=agent))
    meaning = quantity(way.name).meaning
    title, notes, ranks = "Games" if is_reference else way.title, _notes(board, way), len(board.order)
    if orders is None:
        untested: tuple[Look, str] = "open", f"too few {board.noun[1]}"
        verdict = None if is_reference or board.orders is None else untested
        return Strip(title, marks, ranks, verdict, (), ["the reference"] * is_reference + notes, meaning)
    tally = orders.tally()
    others = tally.pairs - tally.alike - tally.tied - tally.reversed
    shares = [
        Share("blue", tally.proven, "proven"),
        Share("blue", tally.alike - tally.proven, "in the games' order", faint=True),
        Share("grey", tally.tied, "tied", faint=True),
        Share("orange", others, "in the reverse order", faint=True),
        Share("orange", tally.reversed, "reversed"),
    ]
    look, word = state_of(tally), "mostly open" if tally.proven else "open"
    verdict = look, "agrees" if look == "blue" else word
    if named:
        verdict = "orange", f"disagrees on {counted(len(named), 'agent')}"
    counts = [
        f"{tally.alike:,} of {counted(tally.pairs, 'pair')} as the games",
        f"{tally.proven:,} proven, {tally.reversed:,} reversed" + (f", {tally.tied:,} tied" if tally.tied else ""),
    ]
    return Strip(title, marks, ranks, verdict, shares, [*counts, *notes], meaning)


def _details(board: ComparedScores, way: Way, agent: str, tally: PairTally | None) -> Iterator[str]:
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
        yield f"on {score.n:,} of {counted(board.queries, *board.noun)}"
    if (missing := way.missing.get(agent, (0, 0)))[0]:
        yield f"{missing[0]:,} of {missing[1]:,} judgments are missing"


def _notes(board: ComparedScores, way: Way) -> list[str]:
    tau = board.tau_of(way.name)
    notes = [] if tau is None else [f"tau {bracketed(tau, form_of(FIGURE, [tau]))}"]
    if way.queries != board.queries:
        notes.append(f"{way.queries:,} of {counted(board.queries, *board.noun)}")
    if len(way.ranks) < len(board.order):
        notes.append(f"{len(way.ranks)} of {counted(len(board.order), 'agent')}")
    return notes
