"""Import and export of people's annotations, as tables, qrels or files of nugget assignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from arena.data.dataset import Dataset
from arena.data.kinds import FLAG, NUGGETS, RELEVANCE, VERDICT, Annotation, JudgedKind, as_whole, kind_of, texts_now
from arena.data.verdicts import write_verdicts
from arena.people.tasks import Banks, nugget_task, with_values
from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT
from arena.present.table import Column, Table, records
from arena.ratings.games import GameVerdict
from arena.results.opinion_tables import TableReading, read_opinions
from arena.store import Store
from arena.store.annotations import Annotations, annotator_name
from judges.errors import DataError
from judges.types import Answer, Verdict
from judges.writing import count_words
from retrieval_eval.data.rows import known_format
from retrieval_eval.data.tables import read_columns, write_rows
from retrieval_eval.data.trec import is_qrels, write_qrels
from retrieval_eval.nuggets.types import Assignment, Support, of_empty_answer

UNKNOWN_TEXTS: Final = "of answers or documents that the tournament does not have"
UNKNOWN_ANSWERS: Final = "answers that the tournament does not have"
CHANGED_ANSWERS: Final = "answers with another text than the tournament's"
UNKNOWN_NUGGETS: Final = "labels of nuggets that the tournament does not have"
FAILED_LABELS: Final = "labels that failed"


class ImportedVotes(Struct, frozen=True):
    """Annotations read from a file, and how many were skipped because they do not fit the tournament.

    Attributes:
        annotations: annotations of answers and documents that the tournament has, to add to its store.
        left_out: number of skipped annotations, by reason.
    """

    annotations: Sequence[Annotation]
    left_out: Mapping[str, int]


def write_table(out: Path, kind: JudgedKind, annotations: Sequence[Annotation]) -> None:
    """Write annotations of one kind to a table, or relevance labels to qrels if the file's name ends in ``.qrels``.

    In a table of verdicts, ``agent_a`` is the agent whose answer the annotator saw first. Qrels do not name annotators,
    so they must have the labels of only one.
    """
    if kind is VERDICT:
        verdicts = [
            GameVerdict(
                annotation.query_id, annotation.item, annotation.other, Verdict(annotation.value), annotation.annotator
            )
            for annotation in annotations
        ]
        write_verdicts(out, verdicts)
    elif kind is FLAG:
        flags = (
            {"qid": flag.query_id, **dict(zip(FLAG.columns, (flag.item, flag.other), strict=True)), **flag.value}
            | {"annotator": flag.annotator, "at": flag.at}
            for flag in annotations
        )
        write_rows(out, ("qid", *FLAG.columns, "judge", FLAG.column, "annotator", "at"), flags)
    elif kind is RELEVANCE and is_qrels(out):
        labels: dict[str, dict[str, int]] = {}
        for annotation in annotations:
            labels.setdefault(annotation.query_id, {})[annotation.item] = annotation.value
        write_qrels(out, labels)
    else:
        columns = ("qid", *kind.columns, kind.column, "annotator")
        rows = (
            (opinion.query_id, *kind.cells(opinion.item), as_whole(opinion.value), opinion.rater)
            for annotation in annotations
            for opinion in kind.opinions(annotation)
        )
        write_rows(out, columns, (dict(zip(columns, row, strict=True)) for row in rows))


def holds_assignments(file: Path) -> bool:
    """Whether the file is JSON lines with a ``nuggets`` column, as nuggetizer writes nugget assignments."""
    return known_format(file) == "jsonl" and "nuggets" in read_columns(file)


def read_table(
    file: Path, data: Dataset, annotator: str | None = None, reading: TableReading | None = None
) -> ImportedVotes:
    """Read people's labels from a table or qrels as annotations; the columns determine the kind of annotation.

    Labels of answers or documents that the tournament does not have are skipped and counted.

    Args:
        file: the table or qrels file, in a format that ``read_opinions`` reads.
        data: the tournament's dataset.
        annotator: the name of the annotator of all rows; by default the name in the table, or else the file's name.
        reading: options such as other column names.
    """
    table = read_opinions(file, reading)
    kind = kind_of(table.level)
    if kind is NUGGETS:
        raise DataError(
            file,
            "is a table of nugget labels; import a file of nugget assignments, as 'export votes' writes it",
        )
    opinions = table.groups.get("", ())
    raters = sorted({opinion.rater for opinion in opinions})
    if annotator is not None and len(raters) > 1:
        message = f"names {len(raters)} people, but --annotator gives one name for all; leave --annotator out"
        raise DataError(file, message, value=raters[0])
    names = {rater: annotator_name(annotator or rater) for rater in raters}
    read = list(kind.annotations(opinion._replace(rater=names[opinion.rater]) for opinion in opinions))
    known = [
        replace(annotation, texts=digest)
        for annotation in read
        if (digest := texts_now(annotation, data, {})) is not None
    ]
    return ImportedVotes(known, _without_zeros({UNKNOWN_TEXTS: len(read) - len(known)}))


def assignments_of(banks: Banks, answers: Iterable[Answer], annotations: Sequence[Annotation]) -> list[Assignment]:
    """Convert one annotator's nugget labels to assignments, one per answer; skips answers without a label.

    In an assignment, a nugget without a label gets ``None``. Empty answers get an assignment without being labelled,
    unless the annotator has no labels at all.
    """
    if all(annotation.value is None for annotation in annotations):
        return []
    known = [answer for answer in answers if answer.query_id in banks]
    open_tasks = (nugget_task(banks[answer.query_id], answer.text, (answer.agent,)) for answer in known)
    tasks = with_values(open_tasks, annotations)
    assignments = []
    for answer, task in zip(known, tasks, strict=True):
        bank = banks[answer.query_id]
        if not answer.text.strip():
            assignments.append(of_empty_answer(bank, answer.agent))
        elif any(task.values):
            labels = tuple(None if value is None else Support(value) for value in task.values)
            words = count_words(answer.text)
            assignments.append(
                Assignment(answer.query_id, answer.agent, bank.nuggets, labels, words, answer.text, bank.query)
            )
    return assignments


def imported_assignments(
    assignments: Iterable[Assignment], banks: Banks, answers: Mapping[tuple[str, str], Answer], annotator: str
) -> ImportedVotes:
    """Convert one person's nugget assignments to annotations of the tournament's answers.

    Assignments are matched to answers and nuggets by run, query and nugget id.
    """
    annotations: list[Annotation] = []
    left_out = dict.fromkeys((UNKNOWN_ANSWERS, CHANGED_ANSWERS, UNKNOWN_NUGGETS, FAILED_LABELS), 0)
    for assignment in assignments:
        query_id, run = assignment.query_id, assignment.run
        answer, bank = answers.get((query_id, run)), banks.get(query_id)
        if answer is None or bank is None:
            left_out[UNKNOWN_ANSWERS] += 1
        elif assignment.answer is not None and assignment.answer.strip() != answer.text.strip():
            left_out[CHANGED_ANSWERS] += 1
        else:
            pairs = zip(assignment.nuggets, assignment.labels, strict=True)
            labels = {nugget.nugget_id: label for nugget, label in pairs}
            left_out[UNKNOWN_NUGGETS] += len(labels.keys() - {nugget.nugget_id for nugget in bank.nuggets})
            left_out[FAILED_LABELS] += sum(label is None for label in labels.values())
            labelled = [nugget for nugget in bank.nuggets if labels.get(nugget.nugget_id) is not None]
            task = nugget_task(bank, answer.text, (run,), labelled)
            annotations += task.annotations(annotator, [labels[nugget_id] for nugget_id in task.parts])
    return ImportedVotes(annotations, _without_zeros(left_out))


def _without_zeros(left_out: Mapping[str, int]) -> dict[str, int]:
    return {reason: number for reason, number in left_out.items() if number}


_COLUMNS: Final = (
    Column("annotator", "Annotator"),
    Column("kind", "Kind"),
    Column("labels", "Labels", COUNT),
    Column("skipped", "Skipped", COUNT),
    Column("replaced", "Replaced", COUNT, "Earlier annotations that a later one replaced."),
    Column("last", "Last"),
)


class VoteCounts(Board, frozen=True):
    """The number of people's annotations, by annotator and kind."""

    tournament: str
    table: Table

    def sections(self) -> list[Section]:
        return [Section("votes", "What people said", "", [self.table])]

    def json(self) -> dict[str, Any]:
        return {"tournament": self.tournament, "votes": records(self.table)}


def vote_counts(store: Store, tournament: str) -> VoteCounts:
    """Count a tournament's annotations by annotator and kind."""
    annotations = Annotations(store, tournament)
    latest, rows = annotations.latest(), []
    totals = Counter((annotation.annotator, annotation.kind) for annotation in annotations.history())
    for (annotator, kind), total in sorted(totals.items()):
        current = [annotation for annotation in latest if (annotation.annotator, annotation.kind) == (annotator, kind)]
        labels = sum(annotation.value is not None for annotation in current)
        last = max(annotation.at for annotation in current)[:19]
        row = {"annotator": annotator, "kind": kind, "labels": labels, "skipped": len(current) - labels}
        rows.append(row | {"replaced": total - len(current), "last": last})
    none_yet = f"nobody has said anything of {tournament!r} yet; 'ragleague ui' has a page for it"
    return VoteCounts(tournament, Table("votes", "", _COLUMNS, rows, () if rows else (none_yet,)))
