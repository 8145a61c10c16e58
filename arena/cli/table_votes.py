"""Verdicts, labels and grades of people, as tables: out for ``calibrate`` and other tools, and in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from arena.cli.console import tell
from arena.cli.nuggets import require_free
from arena.cli.sources import open_tournament
from arena.opinions.people import said_of_texts_now
from arena.store.annotations import Annotation, Annotations
from arena.voting.tables import TableKind, read_said, write_said
from judges.errors import InputError
from retrieval_eval.data.trec import is_qrels


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
    with open_tournament(source, tournament) as (store, name):
        said, outdated = said_of_texts_now(store, name, kind)
    if annotator is not None or is_qrels(out) or not said:
        who = the_annotator(said, annotator, name)
        said = [one for one in said if one.annotator == who]
    write_said(out, kind, said)
    people = sorted({one.annotator for one in said})
    lines = [f"wrote {out}: {len(said)} by {', '.join(people)}"]
    lines += [f"- of texts that have changed since, left out: {outdated}"] if outdated else []
    told = {"file": str(out), "annotators": people, "votes": len(said), "outdated": outdated}
    tell(told, lines, as_json=as_json)


def import_table(
    source: str, tournament: str | None, file: Path, kind: TableKind, annotator: str | None, *, as_json: bool
) -> None:
    """Take a table as what people said."""
    with open_tournament(source, tournament) as (store, name):
        found = read_said(file, kind, store.dataset(name), annotator)
        if not found.annotations:
            raise InputError(f"{file}: nothing about the queries, answers and documents of {name!r}")
        kept = Annotations(store, name).add(found.annotations)
    people = sorted({one.annotator for one in found.annotations})
    lines = [f"{len(found.annotations)} by {', '.join(people)}, {kept} of them new"]
    if found.unknown:
        lines.append(f"- of answers or documents that the tournament does not have, left out: {found.unknown}")
    told = {"annotators": people, "votes": len(found.annotations), "new": kept, "left_out": found.unknown}
    tell(told, lines, as_json=as_json)


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
