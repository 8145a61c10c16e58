"""Ratings for people: the table, and those of a table of verdicts with all that was made of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arena.cli.console import output, print_json, printable
from arena.cli.health_output import few_alike, print_health
from arena.cli.markup import print_csv
from arena.cli.shapes import flat_rated, rated_json
from arena.cli.tables import print_table
from arena.conclusion import BY_PLACE, conclude
from arena.rated_tables import RatedTable
from arena.ratings.covariates import ControlledBoard
from arena.ratings.results import AgentRating
from arena.wording import controlled_doubts, controlled_effects


def print_rated(rated: RatedTable, form: str) -> None:
    """Write the ratings of a table to standard output, as a table, JSON or CSV."""
    if form == "json":
        print_json(rated_json(rated))
    elif form == "csv":
        print_csv(flat_rated(rated))
    else:
        print_rating_table(rated.ratings.agents)
        if rated.cluster_column is not None:
            column = printable(rated.cluster_column)
            output.print(f"\nresampled by {column}: what is said of queries below is about its values")
        conclusion = conclude(rated.ratings)
        print_health(rated.ratings, conclusion)
        if conclusion.headline == BY_PLACE and rated.rows.get("order_assumed"):
            output.print(
                "places: without a column 'order' agent_a counts as the one shown first; if not, add the column, "
                "empty where nobody knows"
            )
        for judge, own in rated.by_judge.items():
            output.print(f"\njudge {printable(judge)}:")
            print_rating_table(own.agents)
            print_health(own, conclude(own))
        if rated.controlled is not None:
            print_controlled(rated.controlled.board())
        _print_rows(rated.rows)


def print_rating_table(agents: Sequence[AgentRating], exam: Mapping[str, float] | None = None, unit: str = "") -> None:
    """Write the agents as they are given, beside their EXAM-Cover where it is known."""
    headings = ["Bradley-\nTerry", "95 %\ninterval", "group", "Elo", "order\nsd", "games", "W/T/L"]
    headings += [f"EXAM-Cover\n{unit}"] if exam else []
    rows = []
    for row in agents:
        cells = [
            f"{row.bt:.1f}",
            "-" if row.bt_low is None or row.bt_high is None else f"{row.bt_low:.0f}..{row.bt_high:.0f}",
            row.group,
            "-" if row.elo is None else f"{row.elo:.1f}",
            "-" if row.elo_order_sd is None else f"{row.elo_order_sd:.1f}",
            _number(row.games),
            "/".join(map(_number, (row.wins, row.ties, row.losses))),
        ]
        if exam:
            cells.append(f"{exam[row.agent]:.3f}" if row.agent in exam else "-")
        rows.append([_rank(row), row.agent, *cells])
    flags = [row.flags for row in agents]
    print_table(["rank", "agent"], headings, rows, flags=flags if any(flags) else ())


def _number(count: float) -> str:
    """A number of games, fractions of them to one digit."""
    return f"{count:g}" if float(count).is_integer() else f"{count:.1f}"


def _rank(row: AgentRating) -> str:
    if row.rank_low is None or row.rank_low == row.rank_high:
        return str(row.rank)
    return f"{row.rank} ({row.rank_low}-{row.rank_high})"


def print_controlled(board: ControlledBoard) -> None:
    """Write controlled ratings beside the raw ones of the same games, and what each covariate is worth."""
    output.print("\nevery verdict one game, controlled for " + printable(", ".join(e.name for e in board.effects)))
    rows = [
        [
            row.agent,
            f"{row.rating:.1f}",
            "-" if row.standard_error is None else f"{row.standard_error:.1f}",
            f"{row.raw:.1f}",
        ]
        for row in board.agents
    ]
    print_table(["agent"], ["controlled", "standard\nerror", "raw"], rows)
    for line in controlled_effects(board):
        output.print(printable(line))
    for note in few_alike(controlled_doubts(board)):
        output.print(printable(f"note: {note}"))


def _print_rows(rows: Mapping[str, int]) -> None:
    words = {
        "skipped": "without a verdict left out",
        "self_play": "of an agent against itself left out",
        "duplicates": "repeat another in every column",
        "conflicts": "contradicted by another row of the same game",
        "order_unknown": "with an empty order, taken as agent_a first",
    }
    told = [f"{rows[name]:,} {phrase}" for name, phrase in words.items() if rows.get(name)]
    if told:
        output.print(f"rows: {rows['rows']:,}; " + "; ".join(told))
