"""``votes``: what people said of a tournament's texts, in and out of its store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.cli.options import Form, Source, Tournament
from judges.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arena.people.votes import TableKind
    from arena.stages.nuggets.results import NuggetResults
    from arena.store import Store
    from arena.store.annotations import Annotation

group = typer.Typer(help="What people say: listing, importing and exporting it.", no_args_is_help=True)


class VoteKind(StrEnum):
    """What people say, as files hold it."""

    VERDICT = "verdict"
    RELEVANCE = "relevance"
    CRITERIA = "criteria"
    NUGGETS = "nuggets"
    FLAG = "flag"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="votes")


@group.command("list")
def list_votes(source: Source, tournament: Tournament = None, form: Form = "table") -> None:
    """Count what each person said, by kind; a later word on the same thing takes the place of the earlier one."""
    from arena.boards.votes import vote_counts
    from arena.cli.show import show
    from arena.cli.sources import open_tournament

    with open_tournament(source, tournament) as (store, name):
        show(vote_counts(store, name), form)


@group.command("export")
def export_votes(
    source: Source,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="a table, or for relevance .qrels; for nuggets a .jsonl file as nuggetizer's"
        ),
    ],
    kind: Annotated[VoteKind, typer.Option(help="what they said")],
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="who; nuggets and qrels are one person's, else all by default")
    ] = None,
    tournament: Tournament = None,
    force: Annotated[bool, typer.Option("--force", help="write over a file that is there")] = False,
    form: Form = "table",
) -> None:
    """Write what people said of the texts as they are now.

    Verdicts, labels and grades are for 'calibrate --people', nuggets for 'nuggets score' and 'nuggets correlate', flags
    on games for people.
    """
    from arena.cli.console import tell
    from arena.cli.nuggets import require_free
    from arena.cli.sources import open_tournament

    require_free(out, force)
    with open_tournament(source, tournament) as (store, name):
        written = (_export_nuggets if kind is VoteKind.NUGGETS else _export_table)(store, name, out, kind, annotator)
    tell(*written, form)


@group.command("import")
def import_votes(
    source: Source,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="a table of verdicts, labels or grades, qrels, or assignments"),
    ],
    kind: Annotated[VoteKind, typer.Option(help="what it holds")],
    annotator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="whose word it is; without, a table names them, or else its own name does"),
    ] = None,
    tournament: Tournament = None,
    form: Form = "table",
) -> None:
    """Take a file as what people said. What they said before stays in the history."""
    from arena.cli.console import tell
    from arena.cli.sources import open_tournament
    from arena.people.votes import imported_assignments, read_table
    from arena.store.annotations import Annotations, annotator_name
    from retrieval_eval.nuggets.files import read_assignments

    if kind is VoteKind.FLAG:
        raise InputError("--kind flag: flags are exported only; a reader makes one on the page of a game")
    is_nuggets = kind is VoteKind.NUGGETS
    if is_nuggets and annotator is None:
        raise InputError("--annotator: name the one whose nuggets these are; the file does not")
    who = annotator_name(annotator) if is_nuggets and annotator is not None else ""
    assignments = read_assignments([file]) if is_nuggets else []
    with open_tournament(source, tournament) as (store, name):
        data = store.dataset(name)
        if is_nuggets:
            imported = imported_assignments(assignments, _nuggets(store, name).banks, data.answers, who)
        else:
            imported = read_table(file, _table_kind(kind), data, annotator)
        if not imported.annotations:
            why = "".join(f"; {words}: {number}" for words, number in imported.left_out.items())
            nothing = f"no label of an answer and a nugget of {name!r}{why}"
            raise InputError(
                f"{file}: {nothing if is_nuggets else f'nothing about the queries, answers and documents of {name!r}'}"
            )
        new, count = Annotations(store, name).add(imported.annotations), len(imported.annotations)
    people = sorted({one.annotator for one in imported.annotations})
    shape: dict[str, Any] = {"annotators": people, "votes": count, "new": new}
    shape["left_out"] = sum(imported.left_out.values())
    line = f"{count} by {', '.join(people)}, {new} of them new"
    if is_nuggets:
        answers = len({(one.query_id, one.item) for one in imported.annotations})
        shape = {"annotator": who, "labels": count, "answers": answers, "new": new, "left_out": imported.left_out}
        line = f"{count} labels by {who}, {new} of them new, answers: {answers}"
    tell(
        shape,
        [line, *(f"- {words}, left out: {number}" for words, number in imported.left_out.items())],
        form,
    )


def _table_kind(kind: VoteKind) -> TableKind:
    from arena.store.annotations import Kind

    kinds: dict[VoteKind, TableKind] = {
        VoteKind.VERDICT: Kind.VERDICT,
        VoteKind.RELEVANCE: Kind.RELEVANCE,
        VoteKind.CRITERIA: Kind.CRITERIA,
        VoteKind.FLAG: Kind.FLAG,
    }
    return kinds[kind]


def _export_table(
    store: Store, name: str, out: Path, kind: VoteKind, annotator: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Write what everybody or one person said; the fields for programs, and the lines for people."""
    from arena.people.opinions import current_annotations
    from arena.people.votes import write_table
    from retrieval_eval.data.trec import is_qrels

    said, outdated = current_annotations(store, name, _table_kind(kind))
    if annotator is not None or is_qrels(out) or not said:
        who = _the_annotator(said, annotator, name)
        said = [one for one in said if one.annotator == who]
    write_table(out, _table_kind(kind), said)
    people = sorted({one.annotator for one in said})
    lines = [f"wrote {out}: {len(said)} by {', '.join(people)}"]
    lines += [f"- of texts that have changed since, left out: {outdated}"] if outdated else []
    return {"file": str(out), "annotators": people, "votes": len(said), "outdated": outdated}, lines


def _export_nuggets(
    store: Store, name: str, out: Path, _kind: VoteKind, annotator: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Write one person's assignments of the nuggets as they are now."""
    from arena.people.votes import assignments_of
    from arena.store.annotations import Annotations, Kind
    from retrieval_eval.nuggets.files import write_assignments

    banks, data = _nuggets(store, name).banks, store.dataset(name)
    latest = Annotations(store, name).latest(Kind.NUGGET)
    who = _the_annotator(latest, annotator, name)
    assignments = assignments_of(banks, data.answers.values(), [one for one in latest if one.annotator == who])
    if not assignments:
        raise InputError(f"{name}: {who!r} has assigned nothing to the answers and nuggets as they are now")
    write_assignments(out, assignments)
    labels = [label for assignment in assignments for label in assignment.labels]
    given, expected = sum(label is not None for label in labels), len(labels)
    left_out = sum(query_id in banks for query_id, _ in data.answers) - len(assignments)
    lines = [f"wrote {out}: {given} of {expected} labels by {who}, answers: {len(assignments)}"]
    lines += [f"- answers that are not assessed yet, left out: {left_out}"] if left_out else []
    lines += ["- labels that are missing are written as failed"] if given < expected else []
    shape = {"file": str(out), "annotator": who, "answers": len(assignments), "labels": expected, "assigned": given}
    return shape | {"not_assessed": left_out}, lines


def _the_annotator(said: Sequence[Annotation], named: str | None, tournament: str) -> str:
    """The one who is named, or the only one there is.

    Raises:
        InputError: there is nobody of that name, or several and none is named.
    """
    names = sorted({one.annotator for one in said})
    if named in names:
        return named
    if not names:
        raise InputError(f"{tournament}: nobody has said anything of this kind yet")
    if named is None and len(names) == 1:
        return names[0]
    nobody = "" if named is None else f"there is no {named!r}; "
    raise InputError(f"{tournament}: {nobody}name one of the annotators with --annotator: {', '.join(names)}")


def _nuggets(store: Store, name: str) -> NuggetResults:
    from arena.stages.nuggets.results import nugget_results

    results = nugget_results(store, name)
    if results is None or not results.banks:
        raise InputError(f"the tournament {name!r} has no nuggets yet; 'ragleague run' makes or reads them")
    return results
