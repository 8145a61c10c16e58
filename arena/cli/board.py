"""``leaderboard`` and ``rate``: from judgments, or a plain table of verdicts, to ratings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from msgspec.structs import replace
from pydantic import Field

from arena.cli.console import INCOMPLETE
from arena.cli.options import BelowCoverage, Details, Form, Samples, Set, Source, Tournament, Values, read_set
from judges.errors import InputError
from judges.sections import Section

if TYPE_CHECKING:
    from arena.ratings.results import Ratings


_READING = "How tables are read"
RatingMethod: TypeAlias = Literal["elo", "bt"]
"""Which rating orders the table."""


def leaderboard(
    source: Source,
    form: Form = "table",
    tournament: Tournament = None,
    below_coverage: BelowCoverage = False,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="print instead who won how many percent against whom")
    ] = False,
    details: Details = False,
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN=VALUE", help="only queries whose table has this value in this column")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="write ratings, win matrix and all other scores side by side to this .svg, .png or .html file"
        ),
    ] = None,
) -> None:
    """Print the leaderboard of what has been judged.

    Exit status 3: too little is judged to rate on, and the output says what is missing.
    """
    from arena.cli.sources import open_tournament
    from arena.results.cache import cached_leaderboard
    from arena.results.ratings import of_group

    column, given, value = (group or "").partition("=")
    if group is not None and not (column and given):
        raise InputError(f"--group {group!r}: COLUMN=VALUE, such as kind=factual")
    chosen = None if group is None else (column.strip(), value.strip())
    with open_tournament(source, tournament) as (store, name):
        board = cached_leaderboard(store, name, chosen, below_coverage=below_coverage)
        pairs = None
        if matrix and board.ratings is not None:
            from arena.boards.wins import Wins, as_declared, tournament_pairs
            from arena.cli.show import show

            pairs = tournament_pairs(store if chosen is None else of_group(store, name, chosen), name)
        if pairs is not None:
            show(Wins(pairs, as_declared(board)), form)
        else:
            from arena.cli.show import print_leaderboard

            print_leaderboard(store, board, form, source=source, tournament=tournament, details=details)
        if plot is not None:
            from arena.boards.compare import compare_board
            from arena.present.files import save_plot

            found = compare_board(store, name, chosen)
            save_plot(plot, [found.figure()] if found.ways else [], name)
    if board.withheld:
        raise typer.Exit(INCOMPLETE)


class _Fine(Section):
    """What is seldom chosen of how verdicts become ratings: the names of ``RatingSettings``."""

    ties: Literal["davidson", "rao-kupper", "half"] = "davidson"
    preferences: Literal["hard", "soft"] = "hard"
    position: bool = False
    intervals: Literal["bootstrap", "sandwich"] = "bootstrap"
    anchor: str | None = None
    initial: float = 1000.0
    scale: float = 400.0
    k: float = 32.0
    tournaments: Annotated[int, Field(ge=0, le=100_000)] = 500


def rate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a table of verdicts, or a matrix of win percentages")],
    method: Annotated[
        RatingMethod, typer.Option(help="which rating orders the agents; ranks stay Bradley-Terry's")
    ] = "bt",
    covariate: Annotated[
        list[str] | None, typer.Option(help="a numeric column that ratings are controlled for; may be repeated")
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="judge", help="'judge': also each judge's own ratings")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="the file's name for a column", rich_help_panel=_READING),
    ] = None,
    value: Values = None,
    skip_faulty: Annotated[
        bool,
        typer.Option(
            "--skip-faulty",
            help="leave out and count rows without a verdict, and games of an agent against itself",
            rich_help_panel=_READING,
        ),
    ] = False,
    as_games: Annotated[
        bool | None,
        typer.Option(
            "--as-games/--reconcile",
            help="every row one game, or both orders reconciled; else as the columns say",
            rich_help_panel=_READING,
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(min=1, help="games behind each cell of a win matrix", rich_help_panel=_READING),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="COLUMN|none", help="what is drawn: values of a column, or games; auto: conversation or qid"
        ),
    ] = "auto",
    samples: Samples = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of orders and samples")] = 0,
    fine: Set = None,
    form: Form = "table",
) -> None:
    """Rate agents from a table of verdicts alone.

    FILE has columns qid, agent_a, agent_b, verdict (and judge, order), or is a matrix of win percentages with one row
    and one column per agent, which needs --queries.

    --set: ties=davidson, rao-kupper or half (how Bradley-Terry counts a tie); preferences=soft (games scored by columns
    p_a, p_b, p_tie); position=true (what being shown first is worth); intervals=sandwich (a formula, quicker);
    anchor=AGENT (whose Bradley-Terry rating is 'initial'); initial=1000 and scale=400 (points per factor of ten in the
    odds); k=32 and tournaments=500 (Elo's step, and the random orders it is averaged over; 0: no Elo).
    """
    from arena.boards.rated_tables import TableOptions, rate_table, rate_win_matrix
    from arena.boards.ratings import RatedBoard
    from arena.cli.show import show
    from arena.data.verdict_words import meanings
    from arena.data.win_matrix import is_win_matrix
    from arena.ratings.results import RatingSettings

    chosen = read_set(_Fine, fine)
    if by not in {None, "judge"}:
        raise InputError(f"--by: must be 'judge', not {by!r}")
    matrix = is_win_matrix(file) and not column
    if matrix:
        of_tables = {
            "--set preferences": chosen.preferences == "soft",
            "--set position": chosen.position,
            "--covariate": covariate,
            "--cluster": cluster not in {"auto", "qid"},
            "--by": by,
            "--value": value,
            "--as-games/--reconcile": as_games is not None,
            "--skip-faulty": skip_faulty,
        }
        if given := [option for option, chosen in of_tables.items() if chosen]:
            raise InputError(f"{file}: a matrix of win percentages; {', '.join(given)}: only with a table of verdicts")
    elif queries is not None:
        raise InputError(f"{file}: --queries goes with a matrix of win percentages, and this is a table of verdicts")
    settings = RatingSettings(
        **chosen.model_dump(),
        centre=chosen.initial,
        bootstrap=samples,
        cluster=cluster != "none",
        reconcile=None if as_games is None else not as_games,
        seed=seed,
    )
    how = TableOptions(
        cluster,
        tuple(covariate or ()),
        tuple(column or ()),
        meanings(value or ()),
        skip_faulty,
        skip_faulty,
        by == "judge",
    )
    rated = rate_win_matrix(file, settings, queries) if matrix else rate_table(file, settings, how)
    rated = replace(
        rated,
        ratings=_in_order(rated.ratings, method),
        by_judge={judge: _in_order(own, method) for judge, own in rated.by_judge.items()},
    )
    show(RatedBoard(rated), form)


def _in_order(ratings: Ratings, method: RatingMethod) -> Ratings:
    if method == "bt":
        return ratings
    elos = {row.agent: row.elo for row in ratings.agents if row.elo is not None}
    if len(elos) < len(ratings.agents):
        raise InputError("--method elo: there is no Elo rating of fractions of games; leave --method out")
    return replace(ratings, agents=tuple(sorted(ratings.agents, key=lambda row: (-elos[row.agent], row.agent))))
