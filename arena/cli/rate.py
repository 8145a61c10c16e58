"""Command ``rate``, to rate agents from a table of verdicts without a tournament."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from msgspec.structs import replace

from arena.boards.rated_tables import TableOptions, column_names, rate_table, rate_win_matrix
from arena.boards.ratings import RatedBoard
from arena.cli.options import Columns, Form, Samples, Set, Values, read_set, reading_option
from arena.cli.show import show
from arena.config.ratings import RatingOptions
from arena.data.verdict_words import meanings
from arena.data.verdicts import is_win_matrix
from arena.ratings.results import Ratings
from judges.errors import InputError

RatingMethod: TypeAlias = Literal["elo", "bt"]
"""Rating that orders the agents in the output: Elo, or Bradley-Terry (``bt``)."""


def rate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="file of verdicts: a table, or a matrix of win percentages")
    ],
    method: Annotated[
        RatingMethod, typer.Option(help="rating that orders the agents; ranks are always those of Bradley-Terry")
    ] = "bt",
    covariate: Annotated[
        list[str] | None,
        typer.Option(help="quality to control for: 'length' for numeric columns length_a, length_b; may be repeated"),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="judge", help="'judge': also show the ratings from each judge's verdicts alone"),
    ] = None,
    column: Columns = None,
    value: Values = None,
    skip_faulty: Annotated[
        bool,
        reading_option(
            "--skip-faulty",
            help="skip rows without a verdict and games of an agent against itself, and report how many",
        ),
    ] = False,
    as_games: Annotated[
        bool | None,
        reading_option(
            "--as-games/--reconcile",
            help="count every row as one game, or combine both orders of a game; default: depends on the columns",
        ),
    ] = None,
    queries: Annotated[
        int | None, reading_option(min=1, help="number of games behind each cell of a matrix of win percentages")
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="COLUMN|none",
            help="column by whose values the bootstrap resamples; none: single games; auto: conversation or qid",
        ),
    ] = "auto",
    samples: Samples = 1000,
    seed: Annotated[
        int,
        typer.Option(min=0, help="random seed of the orders of games that Elo averages, and of the bootstrap samples"),
    ] = 0,
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
            listing = ", ".join(misplaced)
            raise InputError(
                f"{file}: is a matrix of win percentages; leave out {listing}, which is only for a table of verdicts"
            )
    elif queries is not None:
        raise InputError(
            f"{file}: is a table of verdicts; leave out --queries, which is only for a matrix of win percentages"
        )
    table_settings = TableOptions(
        cluster,
        tuple(covariate or ()),
        column_names(column or ()),
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
            "--method elo: there are no Elo ratings of fractions of games or with tournaments=0; leave --method out"
        )
    return replace(ratings, agents=tuple(sorted(ratings.agents, key=lambda row: (-elos[row.agent], row.agent))))
