"""Command ``queries``, to show which queries separate the agents, and on which queries each agent fails."""

from __future__ import annotations

from typing import Annotated

import typer

from arena.boards.queries import QueryBoard, query_board
from arena.cli.options import Form, Source, Tournament
from arena.cli.show import show, show_parts
from arena.cli.sources import open_tournament
from arena.present.table import first
from judges.errors import InputError
from judges.sections import nearest


def queries(
    source: Source,
    tournament: Tournament = None,
    agent: Annotated[
        str | None, typer.Option(help="name of an agent, to show the queries on which it does worst")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="column of the queries, to show each agent's score by its values, such as by kind of query",
        ),
    ] = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="show the relevance labels of each query's documents, the queries with the lowest labels first",
        ),
    ] = False,
    most: Annotated[int, typer.Option(min=1, help="maximum number of rows to show")] = 20,
    form: Form = "table",
) -> None:
    """Which queries tell the agents apart, and where each agent fails."""
    if (agent is not None) + (by is not None) + labels > 1:
        raise InputError("--agent, --by and --labels: each shows a table of its own; give only one of them")
    with open_tournament(source, tournament) as (store, name):
        board = query_board(store, name)
    _check(board, agent, by, labels=labels)
    if form == "json":
        show(board, form)
    elif by is not None:
        show_parts([board.groups_table(by, board.standings.agents)], form)
    elif agent is not None or labels:
        show_parts([first(board.labels_table() if agent is None else board.failures_table(agent), most)], form)
    else:
        show_parts([first(board.by_separation_table(), most), board.in_short()], form)


def _check(board: QueryBoard, agent: str | None, by: str | None, *, labels: bool) -> None:
    if labels and not board.labels:
        raise InputError(
            "--labels: no document has a relevance label; add a section 'retrieval' to the configuration and run it"
        )

    for option, name, known in (("--agent", agent, board.standings.agents), ("--by", by, board.all_columns)):
        if name is not None and name not in known:
            hint = nearest(name, known) if known else "; the queries have no column beside their id and text"
            raise InputError(f"{option} {name}: no such {'agent' if option == '--agent' else 'column'}{hint}")
