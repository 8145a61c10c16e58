"""Tables and charts of a tournament's scoring methods, their rank correlations, judges' costs, and style bias."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from arena.boards.metrics import COEFFICIENTS, correlation_columns
from arena.boards.people import slug
from arena.boards.quantities import ORDERS_AGREE, quantity
from arena.calibration.comparison import Comparison
from arena.calibration.consensus import OrderHealth
from arena.calibration.methods import MethodComparison, MethodPair
from arena.calibration.style import StyleEffect
from arena.present.blocks import Block, Remarks
from arena.present.numbers import ALIGNED, COUNT, FIGURE, MONEY, SIGNED, listed, with_interval
from arena.present.picture import Chart, Dot, Matrix, MatrixCell, of_table
from arena.present.table import INTERVAL, ORDERS, Column, Table, flat
from arena.results.table_agreement import Spending
from retrieval_eval.stats.scores import MissingShare

_PAIRS: Final = (
    Column("first_name", "Way of scoring", programs=False),
    Column("second_name", "Other way", programs=False),
    Column("first", ""),
    Column("second", ""),
    Column("agents", "Agents", COUNT, "Scored in both ways."),
    *correlation_columns({"kendall": "Kendall's tau", "spearman": "Spearman's rho"}),
)
_JUDGES: Final = (
    Column("judge", "Judge"),
    Column("games", "Games", COUNT),
    *COEFFICIENTS[:2],
    ORDERS_AGREE,
    Column("failures", "Failed", ALIGNED),
    Column("cost_per_1000_games", "Cost of 1000 games", MONEY, "Empty if a price is not known."),
)
_STYLES: Final = (
    Column("judge", "Judge"),
    Column("quality", "Quality"),
    Column("games", "Verdicts", COUNT),
    Column("points", "Points", SIGNED, interval=INTERVAL),
    Column("why_not", "Why not known"),
)


_QUALITIES: Final = {
    "log_words": "longer",
    "list_items": "more list items",
    "citations": "more citations",
    "confident_words": "more confident words",
}
"""How an answer with more of a quality is described, by quality."""


def method_blocks(comparison: MethodComparison | None) -> list[Block]:
    if comparison is None or not comparison.methods:
        return []
    blocks: list[Block] = [
        _scores(comparison),
        Remarks([_extremes_sentence(comparison), *lacking(comparison.uneven, method_title)]),
    ]
    if comparison.pairs:
        extremes = dict.fromkeys((pair.first, pair.second) for pair in least_and_most_alike(comparison) or ())
        charts = (method_chart(comparison, *names) for names in extremes)
        blocks += [tau_matrix(comparison), method_pairs(comparison), *charts]
    return blocks


def lacking(uneven: Sequence[MissingShare], title_of: Callable[[str], str]) -> Iterator[str]:
    """Yield a warning for each agent with significantly more missing judgments than the others."""
    for agent in dict.fromkeys(share.agent for share in uneven):
        counts = [
            f"{share.missing:,} of {share.wanted:,} ({title_of(share.score)})"
            for share in uneven
            if share.agent == agent
        ]
        yield (
            f"Judgments of {agent} are missing, more than of others by more than chance: {listed(counts)}. Its scores "
            "there are over what is left. They enter no correlation, and no disagreement is read from them that the "
            "missing could turn."
        )


def method_title(method: str) -> str:
    return quantity(method).title


def method_pairs(comparison: MethodComparison) -> Table:
    rows = [
        flat(pair) | {f"{side}_name": method_title(getattr(pair, side)) for side in ("first", "second")}
        for pair in comparison.pairs
    ]
    agents = max((pair.agents for pair in comparison.pairs), default=0)
    note = (
        "1 is the same order of agents, 0 none in common, -1 the reverse; intervals by scoring every way anew on the "
        f"same draws of the queries. {agents} agents make {agents * (agents - 1) // 2} pairs: with few, even 1 may be "
        "chance."
    )
    title = "Rank correlation of every two ways of scoring"
    return Table("correlations", title, _PAIRS, rows, [note, ORDERS] if rows else ())


def methods_json(comparison: MethodComparison) -> dict[str, Any]:
    methods = {method.method: {"scores": method.scores, "ranks": method.ranks} for method in comparison.methods}
    return flat(comparison) | {"methods": methods, "pairs": [flat(pair) for pair in comparison.pairs]}


def method_charts(comparison: MethodComparison) -> list[Chart]:
    return [method_chart(comparison, pair.first, pair.second) for pair in comparison.pairs]


def method_chart(
    comparison: MethodComparison,
    across: str,
    up: str,
    *,
    ends: Callable[[str, str], tuple[float, float] | None] = lambda way, agent: None,  # noqa: ARG005
    link: Callable[[str], str] = lambda agent: "",  # noqa: ARG005
    numbers: Mapping[str, int] | None = None,
) -> Chart:
    """Scatter chart of the agents by two scores; agents whose ranks differ most are labelled first.

    ``numbers`` label the agents for whose names there is no room.
    """
    methods = {method.method: method for method in comparison.methods}
    x, y = methods[across], methods[up]
    agents = sorted(x.scores.keys() & y.scores.keys(), key=lambda agent: (-abs(x.ranks[agent] - y.ranks[agent]), agent))
    tau = next((pair.kendall.value for pair in comparison.pairs if {pair.first, pair.second} == {across, up}), None)
    first, second = method_title(across), method_title(up)
    return Chart(
        slug(across, up),
        f"{first} and {second}: Kendall's tau {FIGURE.write(tau)}",
        f"Agents by {first} and {second}.",
        "A mark for each agent: two ways of scoring that agree put them on a line that rises to the right."
        + (" A number stands for the agent with that number above." if numbers else ""),
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
                short=str(numbers[agent]) if numbers else "",
            )
            for agent in agents
        ],
    )


def tau_matrix(comparison: MethodComparison) -> Matrix:
    cells: dict[tuple[str, str], MatrixCell] = {}
    for pair in comparison.pairs:
        tau, first, second = pair.kendall, method_title(pair.first), method_title(pair.second)
        if tau.value is not None:
            interval = "" if tau.low is None else FIGURE.between(tau.low, tau.high)
            tooltip = f"{first} and {second}: tau {with_interval(tau)}, Spearman's rho {with_interval(pair.spearman)}"
            cell = MatrixCell(FIGURE.write(tau.value), tau.value, interval, tooltip)
            cells |= {(first, second): cell, (second, first): cell}
    titles = [method_title(method.method) for method in comparison.methods]
    names = [title for title in titles if any(title in place for place in cells)]
    words = "Kendall's tau of the agents' places by every two ways of scoring, with its 95% interval."
    caption = f"{words} 1 is the same order, 0 none in common, -1 the reverse. {ORDERS}"
    if len(cells) < len(names) * (len(names) - 1):
        caption += " A gap is two ways that do not tell three agents in common apart."
    title = "Kendall's tau between ways of scoring"
    return Matrix("places-by-two-methods", title, words, caption, names, names, cells, "Way of scoring")


def _scores(comparison: MethodComparison) -> Table:
    agents = {agent for method in comparison.methods for agent in method.scores}
    rank_gaps = {gap.agent: gap.worst - gap.best for gap in comparison.places}

    def ranks(agent: str) -> tuple[list[int], str]:
        return [method.ranks.get(agent, len(agents)) for method in comparison.methods], agent

    rows: list[dict[str, Any]] = [
        {
            method.method: f"{method.ranks[agent]} ({quantity(method.method).form.write(method.scores[agent])})"
            for method in comparison.methods
            if agent in method.scores
        }
        | {"agent": agent, "apart": rank_gaps.get(agent)}
        for agent in sorted(agents, key=ranks)
    ]
    headings = (Column(method.method, quantity(method.method).title) for method in comparison.methods)
    columns = [Column("agent", "Agent"), *headings]
    if len(comparison.methods) > 1:
        columns.append(Column("apart", "Places apart", COUNT, "The agent's worst place less its best."))
    return Table("scores", "Places by each way of scoring, scores in brackets", columns, rows)


def _extremes_sentence(comparison: MethodComparison) -> str:
    if not comparison.pairs:
        return "No two ways of scoring score three agents or more: no order to compare."
    extremes = least_and_most_alike(comparison)
    if extremes is None:
        return "No two ways of scoring tell agents apart."
    least, most = (
        f"{method_title(pair.first)} and {method_title(pair.second)} (tau {FIGURE.write(pair.kendall.value)})"
        for pair in extremes
    )
    return f"Most alike are {most}." if least == most else f"Most alike are {most}, least {least}."


def least_and_most_alike(comparison: MethodComparison) -> tuple[MethodPair, MethodPair] | None:
    by_tau = {pair.kendall.value: pair for pair in reversed(comparison.pairs) if pair.kendall.value is not None}
    return (by_tau[min(by_tau)], by_tau[max(by_tau)]) if by_tau else None


def judges_json(spent: Mapping[str, Spending], orders: Mapping[str, OrderHealth]) -> dict[str, dict[str, Any]]:
    return {
        judge: flat(spending) | {"cost_per_1000_games": spending.per_thousand} | flat(orders.get(judge, {}))
        for judge, spending in spent.items()
    }


def cost_table(judges: Mapping[str, Mapping[str, Any]], comparisons: Sequence[Comparison]) -> list[Table]:
    verdicts = next((comparison for comparison in comparisons if comparison.people.level == "verdicts"), None)
    against = {} if verdicts is None else verdicts.judges
    rows = [
        (flat(against[judge].labels or {}) if judge in against else {})
        | {"judge": judge, **figures, "failures": f"{figures['failed']:,} of {figures['wanted']:,}"}
        for judge, figures in judges.items()
    ]
    return [Table("judges-of-answers", "Judges of answers", _JUDGES, rows)] if rows else []


def style_blocks(styles: Sequence[StyleEffect]) -> list[Block]:
    if not styles:
        return []
    rows = [flat(effect) | {"quality": _QUALITIES.get(effect.name, effect.name)} for effect in styles]
    table = Table("style", "What judges like besides strength", _STYLES, rows)
    words = "What each quality of an answer is worth to each judge, in rating points, between equally good agents."
    caption = f"{words} Right of 0 the judge favours it; an interval that holds 0 may be chance."
    axis = "points for a quality"
    picture = of_table(table, {"blue": "points"}, axis, words, caption=caption, names=2, zero=True)
    return [*picture, table]
