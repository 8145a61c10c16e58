"""What people said, counted; and who of them is meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from arena.cli.console import output, print_json, printable
from arena.cli.sources import open_tournament
from arena.cli.tables import print_table
from arena.store import Annotation, Annotations
from arena.store.annotations import Kind
from judges.errors import InputError

_COUNTS = ("labels", "skipped", "replaced")


def print_counts(source: str, tournament: str | None, *, as_json: bool) -> None:
    """Print one line for each annotator and kind."""
    store, name = open_tournament(source, tournament)
    with closing(store):
        kept = Annotations(store, name)
        latest, said = kept.latest(), Counter((own.annotator, own.kind) for own in kept.history())
    rows = [_counted(annotator, kind, latest, said[annotator, kind]) for annotator, kind in sorted(said)]
    if as_json:
        print_json({"tournament": name, "votes": rows})
    elif rows:
        cells = [
            [row["annotator"], row["kind"], *(str(row[column]) for column in _COUNTS), row["last"]] for row in rows
        ]
        print_table(["annotator", "kind"], [*_COUNTS, "last"], cells)
    else:
        output.print(printable(f"nobody has said anything of {name!r} yet; 'ragarena ui' has a page for it"))


def the_annotator(said: Sequence[Annotation], named: str | None, tournament: str) -> str:
    """Who is meant: the one who is named, or the only one there is.

    Raises:
        InputError: there is nobody of that name, or several and none is named.
    """
    there = sorted({own.annotator for own in said})
    if named in there:
        return named
    if not there:
        raise InputError(f"{tournament}: nobody has said anything of this kind yet")
    if named is None and len(there) == 1:
        return there[0]
    nobody = "" if named is None else f"there is no {named!r}; "
    raise InputError(f"{tournament}: {nobody}name one of the annotators with --annotator: {', '.join(there)}")


def _counted(annotator: str, kind: Kind, latest: list[Annotation], ever: int) -> dict[str, Any]:
    own = [said for said in latest if (said.annotator, said.kind) == (annotator, kind)]
    labels = sum(said.value is not None for said in own)
    counts = {"labels": labels, "skipped": len(own) - labels, "replaced": ever - len(own)}
    return {"annotator": annotator, "kind": kind.value, **counts, "last": max(said.at for said in own)[:19]}
