"""``failures``: list failed judgments and answers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Annotated

import typer

from arena.boards.runs import FailuresBoard, failed_in
from arena.cli.options import Form, Source
from arena.cli.show import show
from arena.cli.sources import configured_in, location_and_name, parts_of
from arena.run.batches import waiting, waiting_lines
from arena.store import Store
from arena.store.batches import open_batches
from judges.errors import InputError
from judges.sections import nearest
from retrieval_eval.agents.types import AGENT_CAUSES


def failures(
    source: Source,
    tournament: Annotated[str | None, typer.Option(help="only this tournament, if the store has several")] = None,
    cause: Annotated[list[str] | None, typer.Option(help="only this cause; may be repeated")] = None,
    judge: Annotated[list[str] | None, typer.Option(help="only this judge; may be repeated")] = None,
    form: Form = "table",
) -> None:
    """List what failed and why.

    Prints counts per cause and judge, then each failure with its last reply, and the answers that agents still owe.

    If the store has several tournaments, it lists all. 'ragleague run' retries most causes by itself, the others with
    --retry-failed.
    """
    location, configured_name = location_and_name(source)
    _require("--cause", cause or (), AGENT_CAUSES)
    with closing(Store.open(location)) as store:
        names = [tournament] if tournament else [configured_name] if configured_name else store.tournaments()
        several = len(names) > 1
        if tournament is None and (config := configured_in(source)) is not None:
            names = parts_of(store, config)
        failed_wants = [failed for name in names for failed in failed_in(store, name)]
        if judge:
            _require("--judge", judge, dict.fromkeys(want.judge for name in names for want, _ in store.wanted(name)))
        waiting_batches = waiting_lines(waiting(open_batches(store)))
    selected = [
        row for row in failed_wants if (not cause or row["cause"] in cause) and (not judge or row["judge"] in judge)
    ]
    several = several or len({row["tournament"] for row in selected}) > 1
    board = FailuresBoard(selected, several, waiting_batches)
    show(board, form)


def _require(option: str, values: Iterable[str], known: Iterable[str]) -> None:
    names = list(known)
    for name in values:
        if name not in names:
            raise InputError(f"{option} {name}: not found{nearest(name, names)}")
