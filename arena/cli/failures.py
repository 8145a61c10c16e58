"""Commands ``failures``, to list failed judgments and answers, and ``batches``, to list, cancel or give up batches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

import typer

from arena.boards.runs import FailuresBoard, failed_in
from arena.cli.console import INCOMPLETE, errors, print_json, say
from arena.cli.options import Form, Source
from arena.cli.show import show, show_parts
from arena.cli.sources import parts_of, read_source
from arena.config.schema import load_config
from arena.present.numbers import COUNT
from arena.present.table import Column, Table
from arena.run.batches import cancel as cancel_batches
from arena.run.batches import moment, waiting, waiting_lines
from arena.store import Store, shown
from arena.store.batches import OpenBatch, drop, open_batches
from judges.errors import InputError
from judges.sections import nearest
from retrieval_eval.agents.types import AGENT_CAUSES

_UNKNOWN: Final = "not answered"
_UNKNOWN_NOTE: Final = (
    f"{_UNKNOWN}: it is not known whether the server has the batch; 'ragleague run CONFIG' searches for it. On "
    "OpenAI's page of batches its metadata has the ID; on Anthropic's, look for a batch with as many requests then"
)


def failures(
    source: Source,
    tournament: Annotated[
        str | None, typer.Option(help="list only the failures of this tournament, if the store has several")
    ] = None,
    cause: Annotated[list[str] | None, typer.Option(help="list only failures with this cause; may be repeated")] = None,
    judge: Annotated[list[str] | None, typer.Option(help="list only failures of this judge; may be repeated")] = None,
    form: Form = "table",
) -> None:
    """List failed judgments and answers, with causes.

    Prints the number of failures by cause and judge, then each failure with the server's last reply. Failures are
    judgments, and answers that agents failed to give.

    If the store has several tournaments, it lists the failures of all. 'ragleague run' retries most failures by itself;
    to retry the others, add --retry-failed to it.
    """
    location, configured_name, config = read_source(source)
    _require("--cause", cause or (), AGENT_CAUSES)
    with closing(Store.open(location)) as store:
        names = [tournament] if tournament else [configured_name] if configured_name else store.tournaments()
        several = len(names) > 1
        if tournament is None and config is not None:
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
            raise InputError(f"{option} {name}: no such {option.strip('-')}{nearest(name, names)}")


def batches(
    source: Source,
    cancel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="cancel the batch with this ID on the server, which keeps finished replies; 'all': every batch",
        ),
    ] = None,
    forget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="give up the batch with this ID: the next run requests its lost replies again; 'all': every batch",
        ),
    ] = None,
    form: Form = "table",
) -> None:
    """List, cancel or give up batches that are under way.

    This command contacts a server only to cancel a batch. 'ragleague run CONFIG' fetches the replies of batches that
    have ended. Of a cancelled batch it fetches the finished replies; with --retry-failed it requests the others again.
    Forget a batch only if the server has lost it or you do not want its replies: you pay for it anyway.
    """
    store = Store.open(read_source(source)[0])
    pending = open_batches(store)
    complete = True
    if cancel:
        complete = _cancel(source, _batches_named("--cancel", cancel, pending))
    if forget:
        for entry in _batches_named("--forget", forget, pending):
            drop(store, entry.batch.marker)
        pending = open_batches(store)
    store.close()
    rows = [
        {
            "id": entry.batch.remote_id or entry.batch.marker,
            "state": "handed in" if entry.batch.remote_id else _UNKNOWN,
            "judge": entry.judge,
            "model": entry.model,
            "since": moment(entry.batch.made_at),
            "requests": entry.batch.requests,
            "open": entry.open,
        }
        for entry in pending
    ]
    if form == "json":
        print_json(rows)
    else:
        names = {"id": "ID", "state": "State", "judge": "Judge", "model": "Model", "since": "Since"}
        columns = [Column(key, name) for key, name in names.items()]
        columns += [Column("requests", "Requests", COUNT), Column("open", "Open", COUNT)]
        remarks = [f"{len(rows)} under way"]
        if any(row["state"] == _UNKNOWN for row in rows):
            remarks.append(_UNKNOWN_NOTE)
        show_parts([Table("batches", "", columns, rows, remarks)], form)
    if not complete:
        raise typer.Exit(INCOMPLETE)


def _cancel(source: str, chosen: Sequence[OpenBatch]) -> bool:
    """Cancel batches and print each batch's result on standard error; returns whether all batches were cancelled."""
    if not source.endswith((".yaml", ".yml")):
        raise InputError(
            f"--cancel: name the tournament's YAML file instead of {shown(source)}; only it names the server"
        )
    judges = load_config(Path(source)).judges

    async def cancel_all() -> bool:
        all_cancelled = True
        async for name, problem in cancel_batches(chosen, judges):
            status = f"could not be cancelled: {problem}" if problem else "is being cancelled"
            say(f"batch {name} {status}", errors)
            all_cancelled = all_cancelled and not problem
        return all_cancelled

    all_cancelled = asyncio.run(cancel_all())
    if chosen:
        say(f"'ragleague run {source}' keeps the replies that cancelled batches have", errors)
    return all_cancelled


def _batches_named(option: str, ids: Sequence[str], batches: Sequence[OpenBatch]) -> list[OpenBatch]:
    """Find the batches whose IDs the user gave with an option, each once.

    An ID is the batch's ID in the store or on the server, or ``all``.
    """
    by_id = {name: each for each in batches for name in (each.batch.marker, each.batch.remote_id) if name}
    for name in ids:
        if name not in by_id and name != "all":
            raise InputError(f"{option} {name}: there is no such batch{nearest(name, [*by_id, 'all'])}")
    return list(batches) if "all" in ids else list({by_id[name].batch.marker: by_id[name] for name in ids}.values())
