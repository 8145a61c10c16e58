"""``leaderboard`` and ``rate``: ratings from a tournament's judgments or from a table of verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from msgspec.structs import replace

from arena.cli.console import INCOMPLETE
from arena.cli.options import BelowCoverage, Details, Form, Samples, Set, Source, Tournament, Values, read_set
from judges.errors import InputError

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
    matrix: Annotated[bool, typer.Option("--matrix", help="print instead the matrix of win percentages")] = False,
    details: Details = False,
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN=VALUE", help="only queries with this value in this column")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="plot ratings, win matrix and all other scores to this .svg, .png or .html file"),
    ] = None,
) -> None:
    """Print the leaderboard of a tournament.

    Exit status 3: too little is judged for ratings; the output says what is missing.
    """
    from arena.cli.sources import open_tournament
    from arena.results.cache import cached_leaderboard
    from arena.results.ratings import of_group

    column, separator, value = (group or "").partition("=")
    if group is not None and not (column and separator):
        raise InputError(f"--group {group!r}: write COLUMN=VALUE, such as kind=factual")
    group_filter = None if group is None else (column.strip(), value.strip())
    with open_tournament(source, tournament) as (store, name):
        board = cached_leaderboard(store, name, group_filter, below_coverage=below_coverage)
        pairs = None
        if matrix and board.ratings is not None:
            from arena.boards.wins import Wins, as_declared, tournament_pairs
            from arena.cli.show import show

            pairs = tournament_pairs(store if group_filter is None else of_group(store, name, group_filter), name)
        if pairs is not None:
            show(Wins(pairs, as_declared(board)), form)
        else:
            from arena.cli.show import print_leaderboard

            print_leaderboard(store, board, form, source=source, tournament=tournament, details=details)
        if plot is not None:
            from arena.boards.compare import compare_board
            from arena.present.files import save_plot

            comparison = compare_board(store, name, group_filter)
            save_plot(plot, [comparison.figure()] if comparison.ways else [], name)
    if board.withheld:
        raise typer.Exit(INCOMPLETE)


def rate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a table of verdicts, or a matrix of win percentages")],
    method: Annotated[
        RatingMethod, typer.Option(help="the rating that orders the agents; ranks are always those of Bradley-Terry")
    ] = "bt",
    covariate: Annotated[
        list[str] | None, typer.Option(help="a numeric column to control for; may be repeated")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="judge", help="'judge': also show the ratings of each judge")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="read NAME from the column COLUMN", rich_help_panel=_READING),
    ] = None,
    value: Values = None,
    skip_faulty: Annotated[
        bool,
        typer.Option(
            "--skip-faulty",
            help="skip rows without a verdict and games of an agent against itself, and report how many",
            rich_help_panel=_READING,
        ),
    ] = False,
    as_games: Annotated[
        bool | None,
        typer.Option(
            "--as-games/--reconcile",
            help="count every row as one game, or reconcile both orders; default: depends on the columns",
            rich_help_panel=_READING,
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(min=1, help="number of games behind each cell of a win matrix", rich_help_panel=_READING),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="COLUMN|none",
            help="what the bootstrap resamples: values of a column, or games; auto: conversation or qid",
        ),
    ] = "auto",
    samples: Samples = 1000,
    seed: Annotated[int, typer.Option(min=0, help="random seed of Elo's orders and the bootstrap samples")] = 0,
    set_entries: Set = None,
    form: Form = "table",
) -> None:
    """Rate agents from a table of verdicts alone.

    FILE has columns qid, agent_a, agent_b, verdict (and judge, order), or is a matrix of win percentages with one row
    and one column per agent, which needs --queries.

    --set: ties=davidson, rao-kupper or half (how Bradley-Terry counts a tie); preferences=soft (score games by columns
    p_a, p_b, p_tie); position=true (estimate the advantage of being shown first); intervals=sandwich (a formula, faster
    than the bootstrap); anchor=AGENT (its Bradley-Terry rating is 'initial'); initial=1000 and scale=400 (points per
    factor of ten in the odds); k=32 and tournaments=500 (Elo's step, and the random orders it averages; 0: no Elo);
    win_and_tie=win (what a win in one order and a tie in the other make); level=0.95 (of intervals); fragility=none,
    leader or neighbours (whose place is tested against the loss of queries).
    """
    from arena.boards.rated_tables import TableOptions, rate_table, rate_win_matrix
    from arena.boards.ratings import RatedBoard
    from arena.cli.show import show
    from arena.config.ratings import RatingOptions
    from arena.data.verdict_words import meanings
    from arena.data.win_matrix import is_win_matrix

    options = read_set(
        RatingOptions,
        set_entries,
        bootstrap=samples,
        cluster=cluster != "none",
        reconcile=None if as_games is None else not as_games,
        seed=seed,
    )
    if by not in {None, "judge"}:
        raise InputError(f"--by: must be 'judge', not {by!r}")
    matrix = is_win_matrix(file) and not column
    if matrix:
        table_options = {
            "--set preferences": options.preferences == "soft",
            "--set position": options.position,
            "--covariate": covariate,
            "--cluster": cluster not in {"auto", "qid"},
            "--by": by,
            "--value": value,
            "--as-games/--reconcile": as_games is not None,
            "--skip-faulty": skip_faulty,
        }
        if misplaced := [option for option, value in table_options.items() if value]:
            raise InputError(
                f"{file}: is a matrix of win percentages; {', '.join(misplaced)}: only with a table of verdicts"
            )
    elif queries is not None:
        raise InputError(f"{file}: --queries goes with a matrix of win percentages, and this is a table of verdicts")
    table_settings = TableOptions(
        cluster,
        tuple(covariate or ()),
        tuple(column or ()),
        meanings(value or ()),
        skip_faulty,
        skip_faulty,
        by == "judge",
    )
    settings = options.settings()
    rated = rate_win_matrix(file, settings, queries) if matrix else rate_table(file, settings, table_settings)
    rated = replace(
        rated,
        ratings=_in_order(rated.ratings, method),
        by_judge={judge: _in_order(ratings, method) for judge, ratings in rated.by_judge.items()},
    )
    show(RatedBoard(rated), form)


def _in_order(ratings: Ratings, method: RatingMethod) -> Ratings:
    if method == "bt":
        return ratings
    elos = {row.agent: row.elo for row in ratings.agents if row.elo is not None}
    if len(elos) < len(ratings.agents):
        raise InputError(
            "--method elo: these games have no Elo ratings (fractions of games, or tournaments=0); leave --method out"
        )
    return replace(ratings, agents=tuple(sorted(ratings.agents, key=lambda row: (-elos[row.agent], row.agent))))
