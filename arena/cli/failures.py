"""``failures``: what failed and why, counted first and then one by one with the last reply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from arena.cli.options import Form, Source
from judges.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("failures")(failures)


def failures(
    source: Source,
    tournament: Annotated[str | None, typer.Option(help="only this one, where a store holds several")] = None,
    cause: Annotated[list[str] | None, typer.Option(help="only this cause; may be repeated")] = None,
    judge: Annotated[list[str] | None, typer.Option(help="only this judge; may be repeated")] = None,
    form: Form = "table",
) -> None:
    """List what failed and why.

    Counts per cause and judge, then each with its last reply; and answers that agents owe.

    Of a store that holds several tournaments, all of them. 'ragleague run' asks most causes again by itself, the others
    with --retry-failed.
    """
    from contextlib import closing

    from arena.boards.failures import FailuresBoard, failed_in
    from arena.cli.show import show
    from arena.cli.sources import location_and_name
    from arena.run.batches import waiting_lines
    from arena.store import Store
    from retrieval_eval.agents.types import AGENT_CAUSES

    location, named = location_and_name(source)
    _require("--cause", cause or (), AGENT_CAUSES)
    with closing(Store.open(location)) as store:
        one = tournament or named
        names = store.tournaments() if one is None else [one]
        found = [failed for name in names for failed in failed_in(store, name)]
        if judge:
            _require("--judge", judge, dict.fromkeys(want.judge for name in names for want, _ in store.wanted(name)))
        waiting = list(waiting_lines(store))
    kept = [own for own in found if (not cause or own["cause"] in cause) and (not judge or own["judge"] in judge)]
    board = FailuresBoard(kept, len(names) > 1, waiting)
    show(board, form)


def _require(option: str, given: Iterable[str], known: Iterable[str]) -> None:
    from judges.sections import nearest

    names = list(known)
    for name in given:
        if name not in names:
            raise InputError(f"{option} {name}: there is none{nearest(name, names)}")
