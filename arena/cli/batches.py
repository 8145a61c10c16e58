"""``batches``: what servers work off for a store, and giving it up."""

from __future__ import annotations

from typing import Annotated

import typer

from judges.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("batches")(batches)


def batches(
    source: Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")],
    forget: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="give this batch up: its replies are lost, and asked again; 'all' for all"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable output")] = False,
) -> None:
    """List the batches whose replies are not in the store yet. Asks no server.

    'ragarena run CONFIG' fetches what has ended. Cancel a batch with the vendor: what it has done comes back all the
    same. Forget one only if the server has lost it, or its replies are not wanted: it is paid for nevertheless.
    """
    from arena.batches import moment
    from arena.cli.console import output, print_json
    from arena.cli.sources import location_and_name
    from arena.cli.tables import print_table
    from arena.store import Store
    from arena.store.batches import drop, open_batches

    store = Store.open(location_and_name(source)[0])
    found = open_batches(store)
    if forget:
        names = {
            name: each.batch.marker for each in found for name in (each.batch.marker, each.batch.remote_id) if name
        }
        markers = list(names.values()) if "all" in forget else [_marker(names, name) for name in forget]
        for marker in dict.fromkeys(markers):
            drop(store, marker)
        found = open_batches(store)
    store.close()
    rows = [
        {
            "id": each.batch.remote_id or each.batch.marker,
            "state": "handed in" if each.batch.remote_id else "not answered",
            "judge": each.judge,
            "model": each.model,
            "since": moment(each.batch.made_at),
            "requests": each.batch.requests,
            "open": each.open,
        }
        for each in found
    ]
    if as_json:
        print_json(rows)
        return
    if rows:
        print_table(list(rows[0])[:5], list(rows[0])[5:], [list(map(str, row.values())) for row in rows])
    output.print(f"{len(rows)} under way")


def _marker(names: dict[str, str], name: str) -> str:
    from judges.sections import nearest

    if name not in names:
        raise InputError(f"--forget {name}: there is no such batch{nearest(name, [*names, 'all'])}")
    return names[name]
