"""``failures``: what failed and why, and the batches whose replies are not in the store yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.options import Form, Source
from judges.errors import InputError

if TYPE_CHECKING:
    from arena.store.batches import OpenBatch


_UNKNOWN: Final = "not answered"
_WHERE_TO_LOOK: Final = (
    f"{_UNKNOWN}: whether the server has it is not known; 'ragleague run CONFIG' looks for it. On OpenAI's page of "
    "batches it has the ID in its metadata, on Anthropic's it is one of as many requests made then"
)


def failures(
    source: Source,
    tournament: Annotated[str | None, typer.Option(help="only this one, where a store holds several")] = None,
    cause: Annotated[list[str] | None, typer.Option(help="only this cause; may be repeated")] = None,
    judge: Annotated[list[str] | None, typer.Option(help="only this judge; may be repeated")] = None,
    batches: Annotated[
        bool,
        typer.Option(
            "--batches",
            help="in their place the batches whose replies are not in the store yet",
            rich_help_panel="Batches",
        ),
    ] = False,
    cancel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="have the server end this batch; the replies it has are kept; 'all' for all",
            rich_help_panel="Batches",
        ),
    ] = None,
    forget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="give this batch up: its replies are lost, and asked again; 'all' for all",
            rich_help_panel="Batches",
        ),
    ] = None,
    form: Form = "table",
) -> None:
    """List what failed and why.

    Counts per cause and judge, then each with its last reply; and answers that agents owe.

    Of a store that holds several tournaments, all of them. 'ragleague run' asks most causes again by itself, the others
    with --retry-failed. No server is asked unless a batch is to be cancelled: 'ragleague run CONFIG' fetches what has
    ended, of a cancelled batch what it had done by then; it stops there, and with --retry-failed it asks for the rest
    again. Forget a batch only if the server has lost it, or its replies are not wanted: it is paid for nevertheless.
    """
    if batches or cancel or forget:
        _batches(source, cancel or (), forget or (), form)
        return
    from contextlib import closing

    from arena.boards.failures import FailuresBoard, failed_in
    from arena.cli.show import show
    from arena.cli.sources import configured_in, location_and_name, parts_of
    from arena.run.batches import waiting, waiting_lines
    from arena.store import Store
    from arena.store.batches import open_batches
    from retrieval_eval.agents.types import AGENT_CAUSES

    location, named = location_and_name(source)
    _require("--cause", cause or (), AGENT_CAUSES)
    with closing(Store.open(location)) as store:
        names = [tournament] if tournament else [named] if named else store.tournaments()
        several = len(names) > 1
        if tournament is None and (config := configured_in(source)) is not None:
            names = parts_of(store, config)
        found = [failed for name in names for failed in failed_in(store, name)]
        if judge:
            _require("--judge", judge, dict.fromkeys(want.judge for name in names for want, _ in store.wanted(name)))
        waits = waiting_lines(waiting(open_batches(store)))
    kept = [own for own in found if (not cause or own["cause"] in cause) and (not judge or own["judge"] in judge)]
    several = several or len({own["tournament"] for own in kept}) > 1
    board = FailuresBoard(kept, several, waits)
    show(board, form)


def _batches(source: str, cancel: Sequence[str], forget: Sequence[str], form: str) -> None:
    from arena.cli.console import print_json
    from arena.cli.show import show_parts
    from arena.cli.sources import location_and_name
    from arena.present.numbers import COUNT
    from arena.present.table import Column, Table
    from arena.run.batches import moment
    from arena.store import Store
    from arena.store.batches import drop, open_batches

    store = Store.open(location_and_name(source)[0])
    found = open_batches(store)
    whole = True
    if cancel:
        whole = _cancel(source, _named("--cancel", cancel, found))
    if forget:
        for each in _named("--forget", forget, found):
            drop(store, each.batch.marker)
        found = open_batches(store)
    store.close()
    rows = [
        {
            "id": each.batch.remote_id or each.batch.marker,
            "state": "handed in" if each.batch.remote_id else _UNKNOWN,
            "judge": each.judge,
            "model": each.model,
            "since": moment(each.batch.made_at),
            "requests": each.batch.requests,
            "open": each.open,
        }
        for each in found
    ]
    if form == "json":
        print_json(rows)
    else:
        names = {"id": "ID", "state": "State", "judge": "Judge", "model": "Model", "since": "Since"}
        columns = [Column(key, name) for key, name in names.items()]
        columns += [Column("requests", "Requests", COUNT), Column("open", "Open", COUNT)]
        remarks = [f"{len(rows)} under way"]
        if any(row["state"] == _UNKNOWN for row in rows):
            remarks.append(_WHERE_TO_LOOK)
        show_parts([Table("batches", "", columns, rows, remarks)], form)
    if not whole:
        raise typer.Exit(INCOMPLETE)


def _require(option: str, given: Iterable[str], known: Iterable[str]) -> None:
    from judges.sections import nearest

    names = list(known)
    for name in given:
        if name not in names:
            raise InputError(f"{option} {name}: there is none{nearest(name, names)}")


def _cancel(source: str, chosen: Sequence[OpenBatch]) -> bool:
    """Say on standard error what became of each; whether all are cancelled."""
    import asyncio

    from arena.cli.console import errors, say
    from arena.config.schema import load_config
    from arena.run.batches import cancel
    from arena.store import shown

    if not source.endswith((".yaml", ".yml")):
        raise InputError(
            f"--cancel: name the tournament's YAML file in place of {shown(source)}: the server is declared there"
        )
    judges = load_config(Path(source)).judges

    async def ask() -> bool:
        whole = True
        async for name, problem in cancel(chosen, judges):
            said = f"could not be cancelled: {problem}" if problem else "is being cancelled"
            say(f"batch {name} {said}", errors)
            whole = whole and not problem
        return whole

    whole = asyncio.run(ask())
    if chosen:
        say(f"'ragleague run {source}' keeps the replies that cancelled batches have", errors)
    return whole


def _named(option: str, given: Sequence[str], found: Sequence[OpenBatch]) -> list[OpenBatch]:
    """The batches that an option names by our id or the server's, each once."""
    from judges.sections import nearest

    names = {name: each for each in found for name in (each.batch.marker, each.batch.remote_id) if name}
    for name in given:
        if name not in names and name != "all":
            raise InputError(f"{option} {name}: there is no such batch{nearest(name, [*names, 'all'])}")
    return list(found) if "all" in given else list({names[name].batch.marker: names[name] for name in given}.values())
