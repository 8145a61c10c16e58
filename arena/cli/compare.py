"""Commands ``compare``, of two agents, and ``gate``, which passes if a new agent is not worse than an old one."""

from __future__ import annotations

import sys
from pathlib import Path
from time import time
from typing import Annotated, Any

import typer

from arena.boards.gate import compare as stored
from arena.boards.gate.board import GateBoard
from arena.boards.gate.figures import JudgesAs
from arena.boards.gate.judged import decide
from arena.boards.report import write_report
from arena.cli.options import By, Form, LogJson, OfGroup, RetryFailed, Source, Tournament
from arena.cli.progress import print_part, traced_to, watching
from arena.cli.show import show
from arena.cli.sources import open_tournament
from arena.config.schema import load_config
from arena.data.dataset import read_group
from arena.run.preflight import require_writable
from judges.errors import InputError
from retrieval_eval.data.files import open_replacing

On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="SCORE",
        help="score to compare: pairwise, exam, nuggets, criteria, a criterion or a measure such as nDCG@10",
    ),
]
Judges = Annotated[
    JudgesAs,
    typer.Option(help="random: the verdict by games must hold for other judges of this kind too, three or more"),
]
Margin = Annotated[
    float,
    typer.Option(min=0, help="by how much the new agent may be worse: as a share of games, or in units of the score"),
]


def compare(
    source: Source,
    new: Annotated[str, typer.Argument(metavar="NEW", help="name of the new agent")],
    old: Annotated[str, typer.Argument(metavar="OLD", help="name of the agent to compare the new one with")],
    on: On = None,
    margin: Margin = 0.05,
    judges: Judges = "fixed",
    by: By = "",
    group: OfGroup = "",
    tournament: Tournament = None,
    form: Form = "table",
) -> None:
    """Compare two agents: better, not worse, worse or undecided.

    Compares all scores of the agents, query by query, unless --on names some. If the result is undecided, reports how
    many more queries would decide it.
    """
    with open_tournament(source, tournament, group) as (store, name):
        board = stored.compare(store, name, new, old, on=on or [], margin=margin, judges=judges, by=by)
        show_gate(board, form)


def show_gate(board: GateBoard, form: str) -> None:
    if form == "md":
        sys.stdout.write(board.markdown())
    else:
        show(board, form)


def gate(
    source: Source,
    new: Annotated[str, typer.Option(metavar="AGENT", help="name of the new agent, which is to replace the old one")],
    old: Annotated[str, typer.Option(metavar="AGENT", help="name of the old agent, which the new one would replace")],
    margin: Margin = 0.05,
    on: On = None,
    judges: Judges = "fixed",
    by: By = "",
    group: OfGroup = "",
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="also write the result to this file as JUnit XML")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="also write the report of 'ragleague report' to this file")
    ] = None,
    tournament: Tournament = None,
    retry_failed: RetryFailed = False,
    log_json: LogJson = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGENT", help="ask this agent, NEW or OLD, every query anew first: its system has changed"
        ),
    ] = None,
    form: Form = "table",
) -> None:
    """Pass if a new agent is not worse than an old one.

    With a configuration it first runs the missing judgments; with an adaptive schedule it stops as soon as the games
    decide. With a store or --tournament it judges nothing. Without --on it compares the agents by the games they won.

    Answers that are in the store are used again, and the output says when they were made; --ask makes new ones. A run
    that was stopped while asking goes on without --ask.

    With --by it passes only if the new agent is not shown to be worse on any group of queries either. With --group it
    looks only at these queries.

    Exit status 0: better, or not worse by more than the margin. 1: worse. 3: undecided.
    """
    if junit is not None and junit.is_file() and junit.read_bytes()[:1] not in {b"", b"<"}:
        raise InputError(f"{junit}: is not XML, and --junit would overwrite it; name another file")
    for out in filter(None, (junit, report)):
        require_writable(out)
    how: dict[str, Any] = {"on": on or ["pairwise"], "margin": margin, "judges": judges, "by": by}
    config = load_config(Path(source)) if tournament is None and source.endswith((".yaml", ".yml")) else None
    if config is not None:
        how |= {"ask": ask or [], "group": read_group(group), "retry_failed": retry_failed}
        with traced_to(log_json) as trace:
            board = decide(config, new, old, watching, print_part, trace=trace, **how)
    else:
        if ask:
            raise InputError(
                f"--ask {ask[0]}: a store does not say how to ask an agent; name the YAML file in place of it"
            )
        with open_tournament(source, tournament, group) as (store, name):
            board = stored.compare(store, name, new, old, since=time(), **how)
    show_gate(board, form)
    if junit is not None:
        with open_replacing(junit) as raw:
            raw.write(board.junit().encode())
    if report is not None:
        of_batches = config is not None and board.tournament != config.name  # it has the group alone
        with open_tournament(source, board.tournament, "" if of_batches else group) as (store, name):
            write_report(store, name, report, Path(store.location if of_batches else source).name, by=by)
    raise typer.Exit(board.status)
