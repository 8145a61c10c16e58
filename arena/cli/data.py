"""``import`` and ``export``: verdicts, people's labels, and a tournament's data as tables of other tools."""

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

_VOTES, _VERDICTS, _READING = "People's labels", "Verdicts", "How tables are read"
_LISTED_PEOPLE = 3
"""At most this many people are named in a line."""

What = Literal["verdicts", "labels", "query-labels", "criteria", "qrels", "data", "votes"]
_OPTIONS_OF: Final = {
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
            help="verdicts: qid, agent_a, agent_b, verdict [, judge, order]; with --kind also people's labels, grades, "
            "qrels or assignments",
        ),
    ],
    store: Annotated[
        str,
        typer.Option(
            metavar="CONFIG|STORE", help="the store to import into; for verdicts it is created if it does not exist"
        ),
    ],
    tournament: Annotated[
        str | None, typer.Option(help="the tournament's name; for verdicts the default is the file's name")
    ] = None,
    kind: Annotated[
        KindName | None,
        typer.Option(help="import people's labels of this kind into an existing tournament", rich_help_panel=_VOTES),
    ] = None,
    annotator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="the person who made the labels; default: the table's column of annotators, or the file's name",
            rich_help_panel=_VOTES,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="read NAME from the column COLUMN", rich_help_panel=_READING),
    ] = None,
    value: Values = None,
    item: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="a further column that identifies an item of a query, such as the turn",
            rich_help_panel=_VERDICTS,
        ),
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="the queries' texts", rich_help_panel=_VERDICTS)] = None,
    documents: Annotated[Path | None, typer.Option(help="the retrieved documents", rich_help_panel=_VERDICTS)] = None,
    answers: Annotated[Path | None, typer.Option(help="the answers' texts", rich_help_panel=_VERDICTS)] = None,
    form: Form = "table",
) -> None:
    """Import recorded verdicts or people's labels into a store.

    Verdicts may come from another tool's judge; the leaderboard and the web pages then show them like any others. With
    --kind it imports people's labels into an existing tournament; their earlier labels stay in the history.
    """
    from arena.boards.rated_tables import column_names
    from arena.data.verdict_words import meanings
    from arena.results.opinion_tables import TableReading

    options = given_options(ctx)
    if kind is None:
        if annotator is not None:
            raise InputError("--annotator: goes with --kind, for labels by people")
        texts = {"queries": queries, "documents": documents, "answers": answers, "item": tuple(item or ())}
        _import_verdicts(
            file, store, tournament, columns=column_names(column or ()), values=meanings(value or ()), **texts
        )
    elif misplaced := options & {"--queries", "--documents", "--answers", "--item"}:
        raise InputError(f"{', '.join(sorted(misplaced))}: goes with verdicts of a judge, without --kind")
    else:
        reading = TableReading(columns=column_names(column or ()), values=meanings(value or ()))
        _import_votes(store, file, kind, annotator, tournament, reading, form)


def _import_verdicts(file: Path, store: str, name: str | None, **options: Any) -> None:
    from arena.cli.console import output
    from arena.run.imports import import_table
    from arena.store import shown

    tournament = name or file.name.split(".")[0]
    imported = import_table(file, store, tournament, **options)
    again = f", {counted(imported.repeated, 'repeated row')} left out" if imported.repeated else ""
    output.print(f"{counted(imported.verdicts, 'verdict')} imported as {tournament!r}{again}")
    if imported.replaced:
        replaced = f"{counted(imported.replaced, 'verdict')} of the earlier import as {tournament!r}"
        output.print(f"no longer shown: {replaced}; to keep both, name one of them otherwise with --tournament")
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
        raise InputError("--kind flag: flags cannot be imported; people make them on the page of a game")
    is_nuggets = kind == NUGGETS.name
    if is_nuggets and annotator is None:
        raise InputError("--annotator: name the person who made these assignments; the file does not say")
    person = annotator_name(annotator) if is_nuggets and annotator is not None else ""
    assignments = read_assignments([file]) if is_nuggets else []
    with open_tournament(source, tournament) as (store, name):
        data = store.dataset(name)
        if is_nuggets:
            imported = imported_assignments(assignments, _nuggets(store, name).banks, data.answers, person)
        else:
            imported = read_table(file, KINDS[kind], data, annotator, reading)
        if not imported.annotations:
            reasons = "".join(f"; {reason}: {number}" for reason, number in imported.left_out.items())
            nothing = f"no label of an answer and a nugget of {name!r}{reasons}"
            raise InputError(
                f"{file}: {nothing if is_nuggets else f'nothing about the queries, answers and documents of {name!r}'}"
            )
        new, count = Annotations(store, name).add(imported.annotations), len(imported.annotations)
    people = sorted({annotation.annotator for annotation in imported.annotations})
    record: dict[str, Any] = {"annotators": people, "votes": count, "new": new}
    record["left_out"] = sum(imported.left_out.values())
    line = f"{count:,} by {_people_line(people)}, {new:,} of them new"
    if is_nuggets:
        answers = len({(annotation.query_id, annotation.item) for annotation in imported.annotations})
        record = {"annotator": person, "labels": count, "answers": answers, "new": new, "left_out": imported.left_out}
        line = f"{counted(count, 'label')} by {person}, {new} of them new, answers: {answers}"
    tell(record, [line, *(f"- {reason}, left out: {number}" for reason, number in imported.left_out.items())], form)


def export(
    ctx: typer.Context,
    source: Source,
    out: Annotated[
        Path | None,
        typer.Argument(metavar="[OUT]", help="a .csv, .tsv, .jsonl or .parquet file (or .gz); a folder for data"),
    ] = None,
    what: Annotated[What, typer.Option(help="what to write")] = "verdicts",
    tournament: Tournament = None,
    judge: Annotated[
        str | None, typer.Option(help="for qrels: this judge's labels; default: all judges combined")
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="for millions of verdicts: write this many Parquet files, split by query, into the folder OUT",
        ),
    ] = None,
    kind: Annotated[KindName, typer.Option(help="for votes: the kind of label", rich_help_panel=_VOTES)] = VERDICT.name,
    annotator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="the person; needed for nuggets and qrels by several people; default: all",
            rich_help_panel=_VOTES,
        ),
    ] = None,
    force: Force = False,
    form: Form = "table",
) -> None:
    """Write a tournament's data and results as tables.

    Verdicts, relevance labels (as a table or as qrels), the mean label of each query, or criteria grades as one file;
    or the queries, documents and answers as a folder. Qrels leave out failed judgments and report their number; the
    exit status is then 3.

    Votes are people's labels of the current texts; without OUT it shows how many there are, by person and kind. Use
    verdicts, labels and grades with 'calibrate --people' and nuggets with 'nuggets'; flags on games are for reading.
    """
    from arena.cli.sources import open_tournament

    allowed = _OPTIONS_OF.get(what, set()) | {"--what", "--tournament", "--force"}
    if misplaced := given_options(ctx) - allowed:
        raise InputError(f"{', '.join(sorted(misplaced))}: does not go with --what {what}")
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
    """Write the votes of one kind, by everybody or one person; returns the JSON record and the lines of text."""
    from arena.people.votes import write_table
    from arena.results.opinions import current_annotations
    from retrieval_eval.data.trec import is_qrels

    votes, outdated = current_annotations(store, name, kind)
    if annotator is not None or is_qrels(out) or not votes:
        person = _single_annotator(votes, annotator, name)
        votes = [vote for vote in votes if vote.annotator == person]
    write_table(out, KINDS[kind], votes)
    people = sorted({vote.annotator for vote in votes})
    lines = [f"wrote {out}: {len(votes):,} by {_people_line(people)}"]
    lines += [f"- of texts that have changed since, left out: {outdated}"] if outdated else []
    return {"file": str(out), "annotators": people, "votes": len(votes), "outdated": outdated}, lines


def _export_nuggets(
    store: Store, name: str, out: Path, _kind: str, annotator: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Write one person's assignments of the current nuggets; returns the JSON record and the lines of text."""
    from arena.people.votes import assignments_of
    from arena.store.annotations import Annotations
    from retrieval_eval.nuggets.files import write_assignments

    banks, data = _nuggets(store, name).banks, store.dataset(name)
    latest = Annotations(store, name).latest(NUGGETS.name)
    person = _single_annotator(latest, annotator, name)
    assignments = assignments_of(
        banks, data.answers.values(), [annotation for annotation in latest if annotation.annotator == person]
    )
    if not assignments:
        raise InputError(f"{name}: {person!r} has assigned no current nugget to a current answer")
    write_assignments(out, assignments)
    labels = [label for assignment in assignments for label in assignment.labels]
    assigned, expected = sum(label is not None for label in labels), len(labels)
    left_out = sum(query_id in banks for query_id, _ in data.answers) - len(assignments)
    lines = [f"wrote {out}: {assigned} of {expected} labels by {person}, answers: {len(assignments)}"]
    lines += [f"- answers that are not assessed yet, left out: {left_out}"] if left_out else []
    lines += ["- labels that are missing are written as failed"] if assigned < expected else []
    record = {
        "file": str(out),
        "annotator": person,
        "answers": len(assignments),
        "labels": expected,
        "assigned": assigned,
    }
    return record | {"not_assessed": left_out}, lines


def _people_line(people: Sequence[str]) -> str:
    first = ", ".join(people[:_LISTED_PEOPLE])
    return first if len(people) <= _LISTED_PEOPLE else f"{len(people)} people ({first}, ...)"


def _single_annotator(annotations: Sequence[Annotation], named: str | None, tournament: str) -> str:
    """The annotator with this name, or the only one.

    Raises:
        InputError: nobody has this name, or there are several and none is named.
    """
    names = sorted({annotation.annotator for annotation in annotations})
    if named in names:
        return named
    if not names:
        raise InputError(f"{tournament}: there are no labels of this kind by people yet")
    if named is None and len(names) == 1:
        return names[0]
    unknown = "" if named is None else f"there is no {named!r}; "
    raise InputError(f"{tournament}: {unknown}name one of the annotators with --annotator: {_people_line(names)}")


def _nuggets(store: Store, name: str) -> NuggetResults:
    from arena.results.nuggets import nugget_results

    results = nugget_results(store, name)
    if results is None or not results.banks:
        raise InputError(f"the tournament {name!r} has no nuggets yet; 'ragleague run' makes or reads them")
    return results
