"""What people said, as files: tables of verdicts, labels and grades as judges' are, and assignments of nuggets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from arena.calibration.votes import Opinion
from arena.data.dataset import Dataset
from arena.data.verdicts import write_verdicts
from arena.people.tasks import Banks, nugget_task, with_values
from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT
from arena.present.table import Column, Table, records
from arena.ratings.games import GameVerdict
from arena.results.annotations import texts_now
from arena.results.opinion_tables import OUTCOME, TableReading, read_opinions
from arena.stages.support import SupportSubject
from arena.store import Store
from arena.store.annotations import Annotation, Annotations, Kind, annotator_name
from judges.errors import DataError
from judges.types import Answer, Verdict
from judges.writing import count_words
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import is_qrels, write_qrels
from retrieval_eval.nuggets.types import Assignment, Support, of_empty_answer

TableKind: TypeAlias = Literal[Kind.VERDICT, Kind.RELEVANCE, Kind.CRITERIA, Kind.SUPPORT, Kind.FLAG]

UNKNOWN_TEXTS: Final = "of answers or documents that the tournament does not have"
UNKNOWN_ANSWERS: Final = "answers that the tournament does not have"
CHANGED_ANSWERS: Final = "answers with another text than the tournament's"
UNKNOWN_NUGGETS: Final = "labels of nuggets that the tournament does not have"
FAILED_LABELS: Final = "labels that failed"

_SUPPORT: Final = ("qid", "agent", "sentence", "did", "support", "annotator")
_VERDICT = {value: verdict for verdict, value in OUTCOME.items()}
_LEVEL = {Kind.VERDICT: "verdicts", Kind.RELEVANCE: "labels", Kind.CRITERIA: "criteria", Kind.SUPPORT: "support"}


class ImportedVotes(Struct, frozen=True):
    """What of a file is about a tournament's texts as they are now.

    Attributes:
        annotations: to be kept.
        left_out: how many others, by what they are.
    """

    annotations: Sequence[Annotation]
    left_out: Mapping[str, int]


def write_table(out: Path, kind: TableKind, said: Sequence[Annotation]) -> None:
    """Write what people said; for labels of one person also as qrels, where the name ends in ``.qrels``.

    Verdicts are written as their people saw the game, the answer shown first as agent_a.

    Raises:
        DataError: the file cannot be written.
    """
    if kind is Kind.VERDICT:
        write_verdicts(
            out, [GameVerdict(one.query_id, one.item, one.other, Verdict(one.value), one.annotator) for one in said]
        )
    elif kind is Kind.CRITERIA:
        grades = (
            {"qid": one.query_id, "agent": one.item, "criterion": name, "score": grade, "annotator": one.annotator}
            for one in said
            for name, grade in one.value.items()
        )
        write_rows(out, ("qid", "agent", "criterion", "score", "annotator"), grades)
    elif kind is Kind.FLAG:
        flags = (
            {"qid": one.query_id, "agent_a": one.item, "agent_b": one.other, **one.value}
            | {"annotator": one.annotator, "at": one.at}
            for one in said
        )
        write_rows(out, ("qid", "agent_a", "agent_b", "judge", "comment", "annotator", "at"), flags)
    elif kind is Kind.SUPPORT:
        subjects = [(one, SupportSubject.named(one.query_id, one.item, one.other)) for one in said]
        checked = (dict(zip(_SUPPORT, (*subject, one.value, one.annotator), strict=True)) for one, subject in subjects)
        write_rows(out, _SUPPORT, checked)
    elif is_qrels(out):
        labels: dict[str, dict[str, int]] = {}
        for one in said:
            labels.setdefault(one.query_id, {})[one.item] = one.value
        write_qrels(out, labels)
    else:
        rows = ({"qid": o.query_id, "did": o.item, "label": o.value, "annotator": o.annotator} for o in said)
        write_rows(out, ("qid", "did", "label", "annotator"), rows)


def read_table(
    file: Path, kind: TableKind, data: Dataset, annotator: str | None = None, reading: TableReading | None = None
) -> ImportedVotes:
    """A table, or qrels, as annotations of a tournament's texts as they are now.

    Args:
        file: see ``read_opinions``.
        kind: what it must hold.
        data: the tournament's.
        annotator: whose word all of it is; without, the table names them, or else its own name does.
        reading: how it is read.

    Raises:
        DataError: the file cannot be read or holds something else, or several people where one is named.
        InputError: a name is empty or very long.
    """
    table = read_opinions(file, reading)
    if table.level != _LEVEL[kind]:
        raise DataError(file, f"holds {table.level}, not {_LEVEL[kind]}")
    opinions = table.groups.get("", ())
    raters = sorted({one.rater for one in opinions})
    if annotator is not None and len(raters) > 1:
        raise DataError(file, f"names {len(raters)} people, so that --annotator cannot be one of them", value=raters[0])
    names = {rater: annotator_name(annotator or rater) for rater in raters}
    if kind is Kind.CRITERIA:
        given = list(_grades(opinions, names))
    else:
        given = [_annotation(one, kind, names[one.rater]) for one in opinions]
    known = [replace(one, texts=texts) for one in given if (texts := texts_now(one, data, {})) is not None]
    return ImportedVotes(known, _counted({UNKNOWN_TEXTS: len(given) - len(known)}))


def _grades(opinions: Sequence[Opinion], names: Mapping[str, str]) -> Iterator[Annotation]:
    """What each person said of each answer by all criteria."""
    by_answer: defaultdict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for one in opinions:
        agent, criterion = one.item
        by_answer[one.rater, one.query_id, agent][criterion] = int(one.value) if one.value.is_integer() else one.value
    for (rater, query_id, agent), grades in by_answer.items():
        yield Annotation(Kind.CRITERIA, names[rater], query_id, agent, "", "", grades)


def _annotation(one: Opinion, kind: TableKind, annotator: str) -> Annotation:
    if kind is Kind.RELEVANCE:
        return Annotation(kind, annotator, one.query_id, one.item[0], "", "", int(one.value))
    if kind is Kind.SUPPORT:
        agent, place, doc_id = one.item
        other = SupportSubject(one.query_id, agent, _place(place), doc_id).other
        return Annotation(kind, annotator, one.query_id, agent, other, "", int(one.value))
    first, second = one.item[::-1] if one.swapped else one.item
    verdict = _VERDICT[-one.value if one.swapped else one.value]
    return Annotation(kind, annotator, one.query_id, first, second, "", verdict)


def _place(written: str) -> int:
    """The place of a sentence; -1, where none stands, for what is no number."""
    return int(written) if written.isascii() and written.isdigit() else -1


def assignments_of(banks: Banks, answers: Iterable[Answer], said: Sequence[Annotation]) -> list[Assignment]:
    """One annotator's assignments of the nuggets as they are now; answers of which they said nothing are left out.

    A nugget without a label of theirs is ``None``. Empty answers come along once anything is labelled.
    """
    if all(one.value is None for one in said):
        return []
    known = [answer for answer in answers if answer.query_id in banks]
    tasks = with_values((nugget_task(banks[one.query_id], one.text, (one.agent,)) for one in known), said)
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
    """Somebody's assignments as annotations of a tournament's answers, by run, query and the text of nuggets."""
    annotations: list[Annotation] = []
    left_out = dict.fromkeys((UNKNOWN_ANSWERS, CHANGED_ANSWERS, UNKNOWN_NUGGETS, FAILED_LABELS), 0)
    for given in assignments:
        answer, bank = answers.get((given.query_id, given.run)), banks.get(given.query_id)
        if answer is None or bank is None:
            left_out[UNKNOWN_ANSWERS] += 1
        elif given.answer is not None and given.answer.strip() != answer.text.strip():
            left_out[CHANGED_ANSWERS] += 1
        else:
            labels = {nugget.nugget_id: label for nugget, label in zip(given.nuggets, given.labels, strict=True)}
            left_out[UNKNOWN_NUGGETS] += len(labels.keys() - {nugget.nugget_id for nugget in bank.nuggets})
            left_out[FAILED_LABELS] += sum(label is None for label in labels.values())
            known = [nugget for nugget in bank.nuggets if labels.get(nugget.nugget_id) is not None]
            task = nugget_task(bank, answer.text, (given.run,), known)
            annotations += task.annotations(annotator, [labels[nugget_id] for nugget_id in task.parts])
    return ImportedVotes(annotations, _counted(left_out))


def _counted(left_out: Mapping[str, int]) -> dict[str, int]:
    return {what: number for what, number in left_out.items() if number}


_COLUMNS: Final = (
    Column("annotator", "Annotator"),
    Column("kind", "Kind"),
    Column("labels", "Labels", COUNT),
    Column("skipped", "Skipped", COUNT),
    Column("replaced", "Replaced", COUNT, "Said anew: the later word stands."),
    Column("last", "Last"),
)


class VoteCounts(Board, frozen=True):
    """A line for each annotator and kind of what they said."""

    tournament: str
    table: Table

    def sections(self) -> list[Section]:
        return [Section("votes", "What people said", "", [self.table])]

    def json(self) -> dict[str, Any]:
        return {"tournament": self.tournament, "votes": records(self.table)}


def vote_counts(store: Store, tournament: str) -> VoteCounts:
    """Count a tournament's annotations."""
    kept = Annotations(store, tournament)
    latest, rows = kept.latest(), []
    for (annotator, kind), ever in sorted(Counter((own.annotator, own.kind) for own in kept.history()).items()):
        own = [said for said in latest if (said.annotator, said.kind) == (annotator, kind)]
        labels, last = sum(said.value is not None for said in own), max(said.at for said in own)[:19]
        row = {"annotator": annotator, "kind": kind.value, "labels": labels, "skipped": len(own) - labels}
        rows.append(row | {"replaced": ever - len(own), "last": last})
    nobody = f"nobody has said anything of {tournament!r} yet; 'ragleague ui' has a page for it"
    return VoteCounts(tournament, Table("votes", "", _COLUMNS, rows, () if rows else (nobody,)))
