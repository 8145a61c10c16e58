"""A tournament by itself: whether its ways of scoring tell one story, what its judges cost, what style does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from arena.boards.agreement import WIDE, correlation_columns
from arena.boards.calibration.people import slug
from arena.boards.judge_sentences import least_and_most_alike
from arena.calibration.comparison import Comparison
from arena.calibration.consensus import OrderHealth
from arena.calibration.methods import MethodComparison
from arena.calibration.style import StyleEffect
from arena.config.stages import FURTHER
from arena.present.blocks import Block, Remarks
from arena.present.numbers import ALIGNED, COUNT, FIGURE, MONEY, PERCENT, POINTS, SIGNED, Number, listed, with_interval
from arena.present.picture import Chart, Dot, Matrix, MatrixCell, of_table
from arena.present.table import ORDERS, Column, Table, flat
from arena.results.calibration import Spending
from retrieval_eval.stats.missing import MissingShare

Title: TypeAlias = Callable[[str], str]
_METHODS: Final[Mapping[str, tuple[str, Number]]] = {
    "elo": ("Elo", POINTS),
    "bradley_terry": ("Bradley-Terry", POINTS),
    "cover": ("EXAM-Cover", FIGURE),
    "v_strict": ("Nuggets V strict", FIGURE),
    "people": ("People's votes", POINTS),
    "criteria": ("Criteria", FIGURE),
    "criteria, people": ("People's grades", FIGURE),
    **{name: (heading, FIGURE) for stage in FURTHER.values() for name, heading in stage.scores.items()},
}
"""Headings, and how scores are written; those of retrieval are named by their measure."""
_PAIRS: Final = (
    Column("first_name", "Way of scoring", programs=False),
    Column("second_name", "Other way", programs=False),
    Column("first", ""),
    Column("second", ""),
    Column("agents", "Agents", COUNT, "That both score."),
    *correlation_columns({"kendall": "Kendall's tau-b", "spearman": "Spearman's rho"}),
)
_JUDGES: Final = (
    Column("judge", "Judge"),
    Column("games", "Games", COUNT),
    Column("agreement", "Same as people", PERCENT, interval=WIDE),
    Column("kappa", "Kappa", FIGURE, interval=WIDE),
    Column("order_agreement", "Same in both orders", PERCENT, "One outcome, whichever answer is first.", WIDE),
    Column("failures", "Failed", ALIGNED),
    Column("cost_per_1000_games", "Cost of 1000 games", MONEY, "None where a price is not known."),
)
_STYLES: Final = (
    Column("judge", "Judge"),
    Column("quality", "Quality"),
    Column("games", "Verdicts", COUNT),
    Column("points", "Points", SIGNED, interval=WIDE),
    Column("why_not", "Why not known"),
)


_QUALITIES: Final = {
    "log_words": "longer",
    "list_items": "more list items",
    "citations": "more citations",
    "confident_words": "more confident words",
}
"""Of answers, as people call them."""


def method_blocks(found: MethodComparison | None) -> list[Block]:
    """Places by all ways of scoring, and how alike every two are."""
    if found is None or not found.methods:
        return []
    if not found.pairs:
        alone = "No two ways of scoring score three agents or more: no order to compare."
        return [_scores(found), Remarks([alone, *lacking(found.uneven, method_title)])]
    alike = dict.fromkeys((pair.first, pair.second) for pair in least_and_most_alike(found) or ())
    charts = [method_chart(found, *names) for names in alike]
    return [
        _scores(found),
        Remarks([_alike(found), *lacking(found.uneven, method_title)]),
        tau_matrix(found),
        method_pairs(found),
        *charts,
    ]


def lacking(uneven: Sequence[MissingShare], said: Title) -> Iterator[str]:
    """Of whom a way of scoring lacks so much that it cannot be held against others."""
    for agent in dict.fromkeys(one.agent for one in uneven):
        counts = [f"{one.missing:,} of {one.wanted:,} ({said(one.score)})" for one in uneven if one.agent == agent]
        yield (
            f"Judgments of {agent} are missing, more than of others by more than chance: {listed(counts)}. Its scores "
            "there are over what is left. They enter no correlation, and no disagreement is read from them that the "
            "missing could turn."
        )


def method_title(method: str) -> str:
    """How people call a way of scoring."""
    return way_of(method)[0]


def method_pairs(found: MethodComparison, title_of: Title = method_title) -> Table:
    """A line for every two ways of scoring."""
    rows = [flat(one) | {f"{at}_name": title_of(getattr(one, at)) for at in ("first", "second")} for one in found.pairs]
    agents = max((pair.agents for pair in found.pairs), default=0)
    note = (
        "1 is the same order of agents, 0 none in common, -1 the reverse; intervals by scoring every way anew on the "
        f"same draws of the queries. {agents} agents make {agents * (agents - 1) // 2} pairs: with few, even 1 may be "
        "chance."
    )
    title = "Rank correlation of every two ways of scoring"
    return Table("correlations", title, _PAIRS, rows, [note, ORDERS] if rows else ())


def methods_json(found: MethodComparison) -> dict[str, Any]:
    """Scores and places by each way of scoring, and how alike every two are."""
    ways = {way.method: {"scores": way.scores, "ranks": way.ranks} for way in found.methods}
    return flat(found) | {"methods": ways, "pairs": [flat(pair) for pair in found.pairs]}


def method_charts(found: MethodComparison) -> list[Chart]:
    """Agents by every two ways of scoring."""
    return [method_chart(found, pair.first, pair.second) for pair in found.pairs]


def method_chart(
    found: MethodComparison,
    across: str,
    up: str,
    *,
    ends: Callable[[str, str], tuple[float, float] | None] = lambda way, agent: None,  # noqa: ARG005
    link: Callable[[str], str] = lambda agent: "",  # noqa: ARG005
    title_of: Title = method_title,
) -> Chart:
    """Agents by two ways of scoring; those whose places differ most are named first.

    ``ends`` gives the interval of a way's score of an agent, ``link`` the address that an agent's dot leads to.
    """
    ways = {way.method: way for way in found.methods}
    x, y = ways[across], ways[up]
    both = sorted(x.scores.keys() & y.scores.keys(), key=lambda agent: (-abs(x.ranks[agent] - y.ranks[agent]), agent))
    tau = next((pair.kendall.value for pair in found.pairs if {pair.first, pair.second} == {across, up}), None)
    first, second = title_of(across), title_of(up)
    return Chart(
        slug(across, up),
        f"{first} and {second}: Kendall's tau {FIGURE.write(tau)}",
        f"Agents by {first} and {second}.",
        "A mark for each agent: two ways of scoring that agree put them on a line that rises to the right.",
        first,
        second,
        [
            Dot(
                x.scores[agent],
                y.scores[agent],
                agent,
                x_ends=ends(across, agent),
                y_ends=ends(up, agent),
                link=link(agent),
            )
            for agent in both
        ],
    )


def tau_matrix(found: MethodComparison, title_of: Title = method_title) -> Matrix:
    """Kendall's tau of every two ways of scoring."""
    names = [title_of(way.method) for way in found.methods]
    cells: dict[tuple[str, str], MatrixCell] = {}
    for pair in found.pairs:
        tau, first, second = pair.kendall, title_of(pair.first), title_of(pair.second)
        if tau.value is not None:
            below = "" if tau.low is None else FIGURE.between(tau.low, tau.high)
            told = f"{first} and {second}: tau {with_interval(tau)}, Spearman's rho {with_interval(pair.spearman)}"
            cell = MatrixCell(FIGURE.write(tau.value), tau.value, below, told)
            cells |= {(first, second): cell, (second, first): cell}
    words = "Kendall's tau of the agents' places by every two ways of scoring, with its 95% interval."
    caption = f"{words} {ORDERS} A gap is two ways that do not score three agents in common."
    title = "Kendall's tau between ways of scoring"
    return Matrix("places-by-two-methods", title, words, caption, names, names, cells, "Way of scoring")


def _scores(found: MethodComparison) -> Table:
    agents = {agent for way in found.methods for agent in way.scores}
    apart = {gap.agent: gap.worst - gap.best for gap in found.places}

    def places(agent: str) -> tuple[list[int], str]:
        return [way.ranks.get(agent, len(agents)) for way in found.methods], agent

    rows: list[dict[str, Any]] = [
        {
            way.method: f"{way.ranks[agent]} ({way_of(way.method)[1].write(way.scores[agent])})"
            for way in found.methods
            if agent in way.scores
        }
        | {"agent": agent, "apart": apart.get(agent)}
        for agent in sorted(agents, key=places)
    ]
    columns = [Column("agent", "Agent"), *(Column(way.method, way_of(way.method)[0]) for way in found.methods)]
    if len(found.methods) > 1:
        columns.append(Column("apart", "Places apart", COUNT, "The agent's worst place less its best."))
    return Table("scores", "Places by each way of scoring, scores in brackets", columns, rows)


def way_of(method: str) -> tuple[str, Number]:
    """How people call a way of scoring, and how its scores are written."""
    measure = method.removesuffix(", people")
    return _METHODS.get(method, (method if measure == method else f"{measure} by people", FIGURE))


def _alike(found: MethodComparison) -> str:
    ends = least_and_most_alike(found)
    if ends is None:
        return "No two ways of scoring tell agents apart."
    least, most = (
        f"{method_title(pair.first)} and {method_title(pair.second)} (tau {FIGURE.write(pair.kendall.value)})"
        for pair in ends
    )
    return f"Most alike are {most}." if least == most else f"Most alike are {most}, least {least}."


def judges_json(spent: Mapping[str, Spending], orders: Mapping[str, OrderHealth]) -> dict[str, dict[str, Any]]:
    """What each judge's games took, and what its verdicts say about places."""
    return {
        judge: flat(own) | {"cost_per_1000_games": own.per_thousand} | flat(orders.get(judge, {}))
        for judge, own in spent.items()
    }


def cost_table(judges: Mapping[str, Mapping[str, Any]], comparisons: Sequence[Comparison]) -> list[Table]:
    """Agreement with people beside price, of ``judges_json``; nothing without judges."""
    verdicts = next((one for one in comparisons if one.people.level == "verdicts"), None)
    against = {} if verdicts is None else verdicts.judges
    rows = [
        (flat(against[judge].labels or {}) if judge in against else {})
        | {"judge": judge, **figures, "failures": f"{figures['failed']:,} of {figures['wanted']:,}"}
        for judge, figures in judges.items()
    ]
    return [Table("judges-of-answers", "Judges of answers", _JUDGES, rows)] if rows else []


def style_blocks(styles: Sequence[StyleEffect]) -> list[Block]:
    """What answer judges like besides strength; nothing without games."""
    if not styles:
        return []
    rows = [flat(effect) | {"quality": _QUALITIES.get(effect.name, effect.name)} for effect in styles]
    table = Table("style", "What judges like besides strength", _STYLES, rows)
    words = "What each quality of an answer is worth to each judge, in rating points, between equally good agents."
    caption = f"{words} Right of 0 the judge favours it; an interval that holds 0 may be chance."
    axis = "points for a quality"
    picture = of_table(table, {"blue": "points"}, axis, words, caption=caption, names=2, zero=True)
    return [*picture, table]
