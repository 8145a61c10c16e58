"""``import`` and ``export``: judgments, what people said, and data as tables of other tools."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.options import Force, Form, Source, Tournament, Values, given_options, require_free
from arena.data.kinds import FLAG, KINDS, NUGGETS, VERDICT, Annotation
from arena.present.numbers import counted
from judges.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arena.results.nuggets import NuggetResults
    from arena.results.opinion_tables import TableReading
    from arena.store import Store

    KindName = str
else:
    KindName = Literal[tuple(KINDS)]

_VOTES, _VERDICTS, _READING = "What people said", "Verdicts", "How tables are read"
_NAMED = 3
"""People that a line names; more are counted."""

What = Literal["verdicts", "labels", "query-labels", "criteria", "qrels", "data", "votes"]
_GO_WITH: Final = {
    "verdicts": {"--parts"},
    "qrels": {"--judge"},
    "votes": {"--kind", "--annotator", "--format"},
}
_DATA: Final = ("queries.csv", "documents.csv", "answers.csv")


def import_file(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="verdicts: qid, agent_a, agent_b, verdict [, judge, order]; of people also labels, grades, qrels, "
            "assignments",
        ),
    ],
    store: Annotated[
        str, typer.Option(metavar="CONFIG|STORE", help="the store to put them in; made for verdicts if it is not there")
    ],
    tournament: Annotated[
        str | None, typer.Option(help="the tournament's name; of verdicts the file's name when absent")
    ] = None,
    kind: Annotated[
        KindName | None,
        typer.Option(help="people said it, of a tournament that is there: what", rich_help_panel=_VOTES),
    ] = None,
    annotator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="whose word it is; without, a table names them, or else its own name does",
            rich_help_panel=_VOTES,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="the file's name for a column", rich_help_panel=_READING),
    ] = None,
    value: Values = None,
    item: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="a further column that tells things of one query apart, as turns",
            rich_help_panel=_VERDICTS,
        ),
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="the queries' texts", rich_help_panel=_VERDICTS)] = None,
    documents: Annotated[Path | None, typer.Option(help="the retrieved documents", rich_help_panel=_VERDICTS)] = None,
    answers: Annotated[Path | None, typer.Option(help="the answers' texts", rich_help_panel=_VERDICTS)] = None,
    form: Form = "table",
) -> None:
    """Put recorded verdicts, or what people said, into a store.

    Verdicts may come from a judge elsewhere; leaderboard and web page then show them like any others. With --kind they
    are what people said of a tournament that is there; what they said before stays in the history.
    """
    from arena.boards.rated_tables import column_names
    from arena.data.verdict_words import meanings
    from arena.results.opinion_tables import TableReading

    given = given_options(ctx)
    if kind is None:
        if annotator is not None:
            raise InputError("--annotator: goes with --kind, what people said")
        texts = {"queries": queries, "documents": documents, "answers": answers, "item": tuple(item or ())}
        _import_verdicts(
            file, store, tournament, columns=column_names(column or ()), values=meanings(value or ()), **texts
        )
    elif strange := given & {"--queries", "--documents", "--answers", "--item"}:
        raise InputError(f"{', '.join(sorted(strange))}: goes with verdicts of a judge, without --kind")
    else:
        reading = TableReading(columns=column_names(column or ()), values=meanings(value or ()))
        _import_votes(store, file, kind, annotator, tournament, reading, form)


def _import_verdicts(file: Path, store: str, name: str | None, **how: Any) -> None:
    from arena.cli.console import output
    from arena.run.imports import import_table
    from arena.store import shown

    tournament = name or file.name.split(".")[0]
    imported = import_table(file, store, tournament, **how)
    again = f", {counted(imported.repeated, 'repeated row')} left out" if imported.repeated else ""
    output.print(f"{counted(imported.verdicts, 'verdict')} imported as {tournament!r}{again}")
    if imported.replaced:
        gone = f"{counted(imported.replaced, 'verdict')} of the earlier import as {tournament!r}"
        output.print(f"no longer shown: {gone}; to keep both, name one of them otherwise with --tournament")
    output.print(f"next:  ragleague leaderboard {shlex.quote(shown(store))} --tournament {shlex.quote(tournament)}")


def _import_votes(
    source: str,
    file: Path,
    kind: str,
    annotator: str | None,
    tournament: str | None,
    reading: TableReading,
    form: str,
) -> None:
    from arena.cli.console import tell
    from arena.cli.sources import open_tournament
    from arena.people.votes import imported_assignments, read_table
    from arena.store.annotations import Annotations, annotator_name
    from retrieval_eval.nuggets.files import read_assignments

    if kind == FLAG.name:
        raise InputError("--kind flag: flags are exported only; a reader makes one on the page of a game")
    is_nuggets = kind == NUGGETS.name
    if is_nuggets and annotator is None:
        raise InputError("--annotator: name the one whose nuggets these are; the file does not")
    who = annotator_name(annotator) if is_nuggets and annotator is not None else ""
    assignments = read_assignments([file]) if is_nuggets else []
    with open_tournament(source, tournament) as (store, name):
        data = store.dataset(name)
        if is_nuggets:
            imported = imported_assignments(assignments, _nuggets(store, name).banks, data.answers, who)
        else:
            imported = read_table(file, KINDS[kind], data, annotator, reading)
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
    line = f"{count:,} by {_named(people)}, {new:,} of them new"
    if is_nuggets:
        answers = len({(one.query_id, one.item) for one in imported.annotations})
        shape = {"annotator": who, "labels": count, "answers": answers, "new": new, "left_out": imported.left_out}
        line = f"{counted(count, 'label')} by {who}, {new} of them new, answers: {answers}"
    tell(shape, [line, *(f"- {words}, left out: {number}" for words, number in imported.left_out.items())], form)


def export(
    ctx: typer.Context,
    source: Source,
    out: Annotated[
        Path | None,
        typer.Argument(metavar="[OUT]", help="a .csv, .tsv, .jsonl, .parquet (or .gz) file; a folder for data"),
    ] = None,
    what: Annotated[What, typer.Option(help="what to write")] = "verdicts",
    tournament: Tournament = None,
    judge: Annotated[str | None, typer.Option(help="of qrels: whose labels; else of all judges together")] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help="verdicts by the million: OUT is a folder of so many Parquet parts by query"
        ),
    ] = None,
    kind: Annotated[KindName, typer.Option(help="of votes: what they said", rich_help_panel=_VOTES)] = VERDICT.name,
    annotator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="who; nuggets and qrels are one person's, else all", rich_help_panel=_VOTES),
    ] = None,
    force: Force = False,
    form: Form = "table",
) -> None:
    """Write what a tournament holds as tables.

    Verdicts, relevance labels (as a table or as qrels), the mean label of each query, or criteria grades as one file;
    or the queries, documents and answers as a folder. Of qrels a failed judgment is no label: it is left out and
    counted, and the exit status is then 3.

    Votes are what people said of the texts as they are now; without OUT they are counted by person and kind. Verdicts,
    labels and grades are for 'calibrate --people', nuggets for 'nuggets', flags on games for people.
    """
    from arena.cli.sources import open_tournament

    known = _GO_WITH.get(what, set()) | {"--what", "--tournament", "--force"}
    if strange := given_options(ctx) - known:
        raise InputError(f"{', '.join(sorted(strange))}: does not go with --what {what}")
    if out is None and what != "votes":
        raise InputError("OUT: name the file, or for data the folder, to write")
    if out is not None and parts is None:
        for file in [out / name for name in _DATA] if what == "data" else [out]:
            require_free(file, force)
    with open_tournament(source, tournament) as (store, name):
        if out is None:
            from arena.cli.show import show
            from arena.people.votes import vote_counts

            show(vote_counts(store, name), form)
        elif what == "votes":
            from arena.cli.console import tell

            write_votes = _export_nuggets if kind == NUGGETS.name else _export_table
            tell(*write_votes(store, name, out, kind, annotator), form)
        elif what == "qrels":
            _export_qrels(store, name, out, judge)
        else:
            _export_tables(store, name, out, what, parts)


def _export_tables(store: Store, name: str, out: Path, what: str, parts: int | None) -> None:
    from functools import partial

    from arena.boards import exports
    from arena.cli.console import output

    write = {
        "verdicts": exports.export_verdicts if parts is None else partial(exports.export_verdict_parts, parts=parts),
        "labels": exports.export_labels,
        "query-labels": exports.export_query_labels,
        "criteria": exports.export_criteria,
        "data": exports.export_data,
    }[what]
    store.verify(name)
    output.print(f"{counted(write(store, name, out), 'row')} written to {out}")


def _export_qrels(store: Store, name: str, out: Path, judge: str | None) -> None:
    from arena.boards.exports import export_qrels
    from arena.cli.console import output, say

    exported = export_qrels(store, name, out, judge)
    say(f"{counted(exported.written, 'label')} written to {out}")
    for cause, count in exported.failed.items():
        output.print(f"{count:,} failed: {cause} ('ragleague failures' lists them)")
    if exported.left:
        output.print(f"{exported.left:,} not judged yet ('ragleague run' goes on)")
    if exported.failed or exported.left:
        raise typer.Exit(INCOMPLETE)


def _export_table(
    store: Store, name: str, out: Path, kind: str, annotator: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Write what everybody or one person said; the fields for programs, and the lines for people."""
    from arena.people.votes import write_table
    from arena.results.opinions import current_annotations
    from retrieval_eval.data.trec import is_qrels

    said, outdated = current_annotations(store, name, kind)
    if annotator is not None or is_qrels(out) or not said:
        who = _the_annotator(said, annotator, name)
        said = [one for one in said if one.annotator == who]
    write_table(out, KINDS[kind], said)
    people = sorted({one.annotator for one in said})
    lines = [f"wrote {out}: {len(said):,} by {_named(people)}"]
    lines += [f"- of texts that have changed since, left out: {outdated}"] if outdated else []
    return {"file": str(out), "annotators": people, "votes": len(said), "outdated": outdated}, lines


def _export_nuggets(
    store: Store, name: str, out: Path, _kind: str, annotator: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Write one person's assignments of the nuggets as they are now."""
    from arena.people.votes import assignments_of
    from arena.store.annotations import Annotations
    from retrieval_eval.nuggets.files import write_assignments

    banks, data = _nuggets(store, name).banks, store.dataset(name)
    latest = Annotations(store, name).latest(NUGGETS.name)
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


def _named(people: Sequence[str]) -> str:
    first = ", ".join(people[:_NAMED])
    return first if len(people) <= _NAMED else f"{len(people)} people ({first}, ...)"


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
    raise InputError(f"{tournament}: {nobody}name one of the annotators with --annotator: {_named(names)}")


def _nuggets(store: Store, name: str) -> NuggetResults:
    from arena.results.nuggets import nugget_results

    results = nugget_results(store, name)
    if results is None or not results.banks:
        raise InputError(f"the tournament {name!r} has no nuggets yet; 'ragleague run' makes or reads them")
    return results
