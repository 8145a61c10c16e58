"""The commands ``import``, ``export`` and ``votes``: copy verdicts, people's labels and data into or out of a store."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from arena.boards import exports
from arena.boards.rated_tables import column_names
from arena.cli.console import INCOMPLETE, output, say, tell
from arena.cli.options import Columns, Force, Form, JsonForm, OutTable, Source, Tournament, Values, require_free
from arena.cli.show import show
from arena.cli.sources import open_tournament
from arena.data.kinds import KINDS, NUGGETS, VERDICT, Annotation
from arena.data.verdict_words import meanings
from arena.people.votes import (
    assignments_of,
    holds_assignments,
    imported_assignments,
    read_table,
    vote_counts,
    write_table,
)
from arena.present.numbers import counted, listed
from arena.results.nuggets import NuggetResults, nugget_results
from arena.results.opinion_tables import TableReading
from arena.results.opinions import current_annotations
from arena.run.imports import import_scores as scores_into_store
from arena.run.imports import import_table
from arena.store import Store, shown
from arena.store.annotations import Annotations, annotator_name
from judges.errors import InputError
from judges.sections import nearest
from retrieval_eval.data.trec import is_qrels
from retrieval_eval.nuggets.files import read_assignments, write_assignments

_DATA: Final = ("queries.csv", "documents.csv", "answers.csv")
_LISTED_PEOPLE: Final = 3
"""Maximum number of annotators' names in one line of output."""


def import_verdicts(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="table of verdicts: qid, agent_a, agent_b, verdict [, judge, order]")
    ],
    store: Annotated[
        str, typer.Option(metavar="CONFIG|STORE", help="store to import into; it is created if it does not exist")
    ],
    tournament: Annotated[str | None, typer.Option(help="name of the tournament; default: the file's name")] = None,
    column: Columns = None,
    value: Values = None,
    item: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="column that distinguishes several rows of one query, such as the turn; may be repeated",
        ),
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="table with the queries' texts")] = None,
    documents: Annotated[Path | None, typer.Option(help="table with the retrieved documents")] = None,
    answers: Annotated[Path | None, typer.Option(help="table with the answers' texts")] = None,
) -> None:
    """Import a table of verdicts as a tournament.

    The verdicts may come from another tool; the leaderboard and the web pages show them like those of a run. To add
    people's labels to a tournament that is already in the store, use 'import votes'.
    """
    name = tournament or file.name.split(".")[0]
    imported = import_table(
        file,
        store,
        name,
        columns=column_names(column or ()),
        values=meanings(value or ()),
        item=tuple(item or ()),
        queries=queries,
        documents=documents,
        answers=answers,
    )
    again = f", {counted(imported.repeated, 'repeated row')} left out" if imported.repeated else ""
    output.print(f"{counted(imported.verdicts, 'verdict')} imported as {name!r}{again}")
    if imported.replaced:
        replaced = f"{counted(imported.replaced, 'verdict')} of the earlier import as {name!r}"
        output.print(f"no longer shown: {replaced}; to keep both, name one of them otherwise with --tournament")
    output.print(f"next:  ragleague leaderboard {shlex.quote(shown(store))} --tournament {shlex.quote(name)}")


def import_scores(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="scores of answers: qid, agent, metric, value; or results of an evaluation"
        ),
    ],
    store: Annotated[
        str, typer.Option(metavar="CONFIG|STORE", help="store to import into; it is created if it does not exist")
    ],
    tournament: Annotated[
        str | None, typer.Option(help="name of the tournament; default: the first file's name")
    ] = None,
    column: Columns = None,
    lower: Annotated[
        list[str] | None, typer.Option(metavar="METRIC", help="lower is better for this score; may be repeated")
    ] = None,
    higher: Annotated[
        list[str] | None, typer.Option(metavar="METRIC", help="higher is better for this score; may be repeated")
    ] = None,
) -> None:
    """Import scores that another tool gave to answers; no judge is asked.

    FILE has a row for each score (qid, agent, metric, value; several runs have a column 'repeat'), a column for each
    (name them with --column score=NAME), or is what ragas, DeepEval, promptfoo, RAGChecker, MLflow, LangSmith or
    Inspect wrote. Without a column of agents each file is an agent. 'leaderboard', 'compare', 'gate --on METRIC' and
    the web pages show the scores like those of judges.
    """
    name = tournament or files[0].name.split(".")[0]
    names = column_names(column or ())
    data, is_lower = scores_into_store(files, store, name, columns=names, lower=lower or (), higher=higher or ())
    listing = [f"{score} (lower is better)" if low else score for score, low in is_lower.items()]
    agents, queries = counted(len(data.agents), "agent"), counted(len(data.queries), "query", "queries")
    output.print(f"{listed(listing)} of {agents} on {queries} imported as {name!r}", markup=False)
    output.print(f"next:  ragleague leaderboard {shlex.quote(shown(store))} --tournament {shlex.quote(name)}")


def export_verdicts(
    source: Source,
    out: OutTable,
    tournament: Tournament = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="for millions of games: split the verdicts by query into this many Parquet files in the folder OUT",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write the judges' verdicts as a table."""
    if parts is None:
        require_free(out, force)
    write = exports.export_verdicts if parts is None else partial(exports.export_verdict_parts, parts=parts)
    _export(write, source, tournament, out)


def export_labels(source: Source, out: OutTable, tournament: Tournament = None, force: Force = False) -> None:
    """Write the judges' relevance labels as a table."""
    require_free(out, force)
    _export(exports.export_labels, source, tournament, out)


def export_query_labels(source: Source, out: OutTable, tournament: Tournament = None, force: Force = False) -> None:
    """Write the mean relevance label of each query as a table."""
    require_free(out, force)
    _export(exports.export_query_labels, source, tournament, out)


def export_criteria(source: Source, out: OutTable, tournament: Tournament = None, force: Force = False) -> None:
    """Write the judges' grades of answers by criterion as a table."""
    require_free(out, force)
    _export(exports.export_criteria, source, tournament, out)


def export_scores(source: Source, out: OutTable, tournament: Tournament = None, force: Force = False) -> None:
    """Write the agents' scores by query, and their means, as a table.

    Columns: run_id, topic_id, measure, value; topic 'all' has the means. TREC's autojudge-evaluate reads a .jsonl file.
    """
    require_free(out, force)
    _export(exports.export_scores, source, tournament, out)


def export_data(
    source: Source,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="folder to write the tables into")],
    tournament: Tournament = None,
    force: Force = False,
) -> None:
    """Write the tables of queries, documents and answers into a folder."""
    for name in _DATA:
        require_free(folder / name, force)
    _export(exports.export_data, source, tournament, folder)


def export_qrels(
    source: Source,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="qrels file to write")],
    judge: Annotated[
        str | None, typer.Option(help="write only this judge's labels; default: the combined labels of all judges")
    ] = None,
    tournament: Tournament = None,
    force: Force = False,
) -> None:
    """Write the judges' relevance labels as qrels.

    Labels that failed or are missing are left out and counted; the exit status is then 3.
    """
    require_free(out, force)
    with open_tournament(source, tournament) as (store, name):
        exported = exports.export_qrels(store, name, out, judge)
    say(f"{counted(exported.written, 'label')} written to {out}")
    for cause, count in exported.failed.items():
        output.print(f"{count:,} failed: {cause} ('ragleague failures' lists them)")
    if exported.left:
        output.print(f"{exported.left:,} not judged yet ('ragleague run' goes on)")
    if exported.failed or exported.left:
        raise typer.Exit(INCOMPLETE)


def _export(write: Callable[[Store, str, Path], int], source: str, tournament: str | None, out: Path) -> None:
    with open_tournament(source, tournament) as (store, name):
        output.print(f"{counted(write(store, name, out), 'row')} written to {out}")


def votes(source: Source, tournament: Tournament = None, form: Form = "table") -> None:
    """Count the labels that people gave, by person and kind of label."""
    with open_tournament(source, tournament) as (store, name):
        show(vote_counts(store, name), form)


def import_votes(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="file of people's labels: a table, TREC qrels, or nugget assignments")
    ],
    store: Annotated[
        str, typer.Option(metavar="CONFIG|STORE", help="store with the tournament, or the tournament's YAML file")
    ],
    tournament: Tournament = None,
    annotator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="name of the person who gave the labels; default: the file's annotator column, or the file's name",
        ),
    ] = None,
    column: Columns = None,
    value: Values = None,
    form: JsonForm = "table",
) -> None:
    """Import people's labels into a tournament.

    The columns of the file determine the kind of labels. Earlier labels by the same people stay in the history. A file
    of nugget assignments does not contain the annotator's name: give it with --annotator.
    """
    is_nuggets = holds_assignments(file)
    if is_nuggets and annotator is None:
        raise InputError(
            "--annotator: name the person who made these nugget assignments; the file does not contain the name"
        )
    person = annotator_name(annotator) if is_nuggets and annotator is not None else ""
    reading = TableReading(columns=column_names(column or ()), values=meanings(value or ()))
    assignments = read_assignments([file]) if is_nuggets else []
    with open_tournament(store, tournament) as (opened, name):
        data = opened.dataset(name)
        if is_nuggets:
            imported = imported_assignments(assignments, _nuggets(opened, name).banks, data.answers, person)
        else:
            imported = read_table(file, data, annotator, reading)
        if not imported.annotations:
            unit = "an answer and a nugget" if is_nuggets else "a query, answer or document"
            reasons = "".join(f"; {reason}: {number}" for reason, number in imported.left_out.items())
            raise InputError(f"{file}: has no label for {unit} of the tournament {name!r}{reasons}")
        new, count = Annotations(opened, name).add(imported.annotations), len(imported.annotations)
    people = sorted({annotation.annotator for annotation in imported.annotations})
    record: dict[str, Any] = {"annotators": people, "votes": count, "new": new}
    record["left_out"] = sum(imported.left_out.values())
    line = f"{counted(count, 'label')} by {listed(people, _LISTED_PEOPLE)}, {new:,} of them new"
    if is_nuggets:
        answers = len({(annotation.query_id, annotation.item) for annotation in imported.annotations})
        record = {"annotator": person, "labels": count, "answers": answers, "new": new, "left_out": imported.left_out}
        line = f"{counted(count, 'label')} by {person}, {new} of them new, answers: {answers}"
    tell(record, [line, *(f"- {reason}, left out: {number}" for reason, number in imported.left_out.items())], form)


def export_votes(
    source: Source,
    out: OutTable,
    kind: Annotated[
        str, typer.Option(metavar="|".join(KINDS), help="kind of labels to write; for a stage of your own, its name")
    ] = VERDICT.name,
    annotator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="write only this person's labels; required for nuggets and qrels if several people gave labels",
        ),
    ] = None,
    tournament: Tournament = None,
    force: Force = False,
    form: JsonForm = "table",
) -> None:
    """Write the labels that people gave to texts as they are now.

    'votes' counts the labels. 'calibrate --people' reads the files of verdicts, relevance labels and grades, and
    'nuggets score' reads those of nuggets. No command reads flags, which are people's remarks on games.
    """
    require_free(out, force)
    with open_tournament(source, tournament) as (store, name):
        if kind not in KINDS:  # checked here: a store brings the kinds of the stages that judged in it
            raise InputError(f"--kind {kind}: no such kind of labels{nearest(kind, KINDS)}")
        write = _export_nuggets if kind == NUGGETS.name else _export_table
        tell(*write(store, name, out, kind, annotator), form)


def _export_table(
    store: Store, name: str, out: Path, kind: str, annotator: str | None
) -> tuple[dict[str, Any], list[str]]:
    votes, outdated = current_annotations(store, name, kind)
    if annotator is not None or is_qrels(out) or not votes:
        person = _single_annotator(votes, annotator, name)
        votes = [vote for vote in votes if vote.annotator == person]
    write_table(out, KINDS[kind], votes)
    people = sorted({vote.annotator for vote in votes})
    lines = [f"wrote {out}: {counted(len(votes), 'label')} by {listed(people, _LISTED_PEOPLE)}"]
    lines += [f"- of texts that have changed since, left out: {outdated}"] if outdated else []
    return {"file": str(out), "annotators": people, "votes": len(votes), "outdated": outdated}, lines


def _export_nuggets(
    store: Store, name: str, out: Path, _kind: str, annotator: str | None
) -> tuple[dict[str, Any], list[str]]:
    banks, data = _nuggets(store, name).banks, store.dataset(name)
    latest = Annotations(store, name).latest(NUGGETS.name)
    person = _single_annotator(latest, annotator, name)
    assignments = assignments_of(
        banks, data.answers.values(), [annotation for annotation in latest if annotation.annotator == person]
    )
    if not assignments:
        raise InputError(
            f"{name}: {person!r} has no labels for the current nuggets and answers; name another annotator"
        )
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


def _single_annotator(annotations: Sequence[Annotation], named: str | None, tournament: str) -> str:
    """The annotator ``named`` or, without a name, the only annotator; raises ``InputError`` if there is none."""
    names = sorted({annotation.annotator for annotation in annotations})
    if named in names:
        return named
    if not names:
        raise InputError(
            f"{tournament}: nobody has given labels of this kind (--kind) yet; add some with 'ragleague import votes'"
        )
    if named is None and len(names) == 1:
        return names[0]
    unknown = "" if named is None else f"there is no {named!r}; "
    raise InputError(
        f"{tournament}: {unknown}name one of the annotators with --annotator: {listed(names, _LISTED_PEOPLE)}"
    )


def _nuggets(store: Store, name: str) -> NuggetResults:
    results = nugget_results(store, name)
    if results is None or not results.banks:
        raise InputError(f"the tournament {name!r} has no nuggets yet; create or read them with 'ragleague run'")
    return results
