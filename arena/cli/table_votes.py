"""Verdicts, labels and grades of people, as tables: out for ``calibrate`` and other tools, and in."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from arena.cli.console import output, print_json, printable
from arena.cli.nugget_runs import require_free
from arena.cli.sources import open_tournament
from arena.cli.vote_counts import the_annotator
from arena.opinions.people import said_of_texts_now
from arena.store import Annotations
from arena.voting.tables import TableKind, read_said, write_said
from judges.errors import InputError
from retrieval_eval.trec_files import is_qrels


def export_table(
    source: str,
    tournament: str | None,
    out: Path,
    kind: TableKind,
    annotator: str | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Write what everybody or one person said of the texts as they are now."""
    require_free(out, force)
    store, name = open_tournament(source, tournament)
    with closing(store):
        said, outdated = said_of_texts_now(store, name, kind)
    if annotator is not None or is_qrels(out) or not said:
        who = the_annotator(said, annotator, name)
        said = [one for one in said if one.annotator == who]
    write_said(out, kind, said)
    people = sorted({one.annotator for one in said})
    if as_json:
        print_json({"file": str(out), "annotators": people, "votes": len(said), "outdated": outdated})
        return
    output.print(printable(f"wrote {out}: {len(said)} by {', '.join(people)}"))
    if outdated:
        output.print(f"- of texts that have changed since, left out: {outdated}")


def import_table(
    source: str, tournament: str | None, file: Path, kind: TableKind, annotator: str | None, *, as_json: bool
) -> None:
    """Take a table as what people said."""
    store, name = open_tournament(source, tournament)
    with closing(store):
        found = read_said(file, kind, store.dataset(name), annotator)
        if not found.annotations:
            raise InputError(f"{file}: nothing about the queries, answers and documents of {name!r}")
        kept = Annotations(store, name).add(found.annotations)
    people = sorted({one.annotator for one in found.annotations})
    if as_json:
        told = {"annotators": people, "votes": len(found.annotations), "new": kept, "left_out": found.unknown}
        print_json(told)
        return
    output.print(printable(f"{len(found.annotations)} by {', '.join(people)}, {kept} of them new"))
    if found.unknown:
        output.print(f"- of answers or documents that the tournament does not have, left out: {found.unknown}")
