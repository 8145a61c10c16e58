"""The exam of a tournament from its store: the bank, the grades, and what they make of each agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from arena.config.judging import ExamSection
from arena.config.settings import Combine, StoredExam, StoredSettings
from arena.results.exam_evaluation import ExamScores, Study, exam_scores
from arena.stages.exam.bank import bank_kept, generated_bank, material, written_items
from arena.store import Result, Store, Wanted
from arena.store.outcomes import combined
from arena.store.subjects import FacetSubject, PassageSubject
from judges.prompts.tasks import grades_of
from judges.self_rating import is_answer, self_rating
from judges.types import Judgment, Task, conversations
from retrieval_eval.exam.grades import Grade, Graded, Grader, checked_grade, make_grids
from retrieval_eval.exam.items import Bank, Item
from retrieval_eval.exam.passages import by_document
from retrieval_eval.exam.scores import RATED_LEVELS

OutcomesOf: TypeAlias = Callable[[Task], Sequence[tuple[Wanted, Result | None]]]
"""Gives the wants of a task with their results, ``None`` where there is none yet."""


def stored_scores(store: Store, tournament: str, outcomes: OutcomesOf | None = None) -> ExamScores | None:
    """Score what has been graded so far; ``None`` where there is nothing to score.

    That is so without an exam, before an item is written, and where answers are extracted and not graded.

    Args:
        store: where the judgments are.
        tournament: its name.
        outcomes: each task's wants with their results, where they have been read already.
    """
    exam = store.settings(tournament).exam
    if exam is None or exam.section.grading == "extraction_only":
        return None
    study = exam_study(store, tournament, outcomes)
    if study.bank is None or not study.bank.items:
        return None
    return exam_scores(study, k=exam.section.depth, workbench=exam.section.compat == "workbench")


def exam_study(store: Store, tournament: str, outcomes: OutcomesOf | None = None) -> Study:
    """Everything that the exam of a tournament says, from its store; ``outcomes`` as for ``stored_scores``.

    Raises:
        KeyError: the tournament has no exam.
    """
    settings = store.settings(tournament)
    exam = _exam(settings)
    section, data = exam.section, store.dataset(tournament)
    outcomes = outcomes or partial(store.outcomes, tournament)
    bank = stored_bank(store, tournament)
    grades = list(_Reader(outcomes, settings.combinations, section, bank).grades())
    given = material(data, section)
    rated = section.grading == "self_rating"
    grader = _grader(settings)
    source = Graded(
        {grader: grades},
        frozenset({grader} if rated else ()),
        given.texts,
        given.passage_rankings,
        nuggets=frozenset(item.item_id for item in bank.items if item.item_type == "nugget"),
    )
    graded = by_document(source) if section.texts == "documents" else source
    return Study(
        source,
        graded,
        grader,
        graded.grades[grader],
        bank,
        given.rankings,
        make_grids(graded.grades[grader], bank, given.rankings),
        data.qrels if section.texts == "documents" else {},
        RATED_LEVELS if rated else (1,),
        section.texts,
        section.min_grade if rated else 1,
        (exam.bank or {}).get("version"),
        conversations(data.queries.values()),
    )


def stored_bank(store: Store, tournament: str) -> Bank:
    """The bank of a tournament: of its file, without secret texts, or as far as it is written."""
    settings = store.settings(tournament)
    exam = _exam(settings)
    if exam.bank is not None:
        bank = bank_kept(exam.bank)
        return bank if store.only is None else bank.of_queries(store.only)
    section = exam.generate
    assert section is not None
    writer = settings.judges[section.judge or exam.section.judge]
    drawn = {"temperature": writer.temperature, "seed": writer.seed}
    origin = {name: value for name, value in drawn.items() if value is not None} | {"prompt": exam.prompts["questions"]}
    written = store.outcomes(tournament, Task.QUESTIONS)
    items = [
        item
        for want, result in written
        if isinstance(result, Judgment) and isinstance(result.outcome, tuple)
        for item in written_items(
            section, want.query_id, FacetSubject.of(want).subtopic, result.outcome, {"model": result.model, **origin}
        )
    ]
    facets = [(want.query_id, FacetSubject.of(want).subtopic) for want, _ in written]
    return generated_bank(store.dataset(tournament).queries, facets, items)


def open_items(store: Store, tournament: str) -> frozenset[str]:
    """Ids of the items that count and are not secret; none where the tournament has no exam."""
    if store.settings(tournament).exam is None:
        return frozenset()
    return frozenset(item.item_id for item in stored_bank(store, tournament).items if not item.secret)


class _Reader:
    def __init__(self, read: OutcomesOf, how: Mapping[str, Combine], section: ExamSection, bank: Bank) -> None:
        self._read, self._how, self._section = read, how, section
        self._active = {item.item_id: item for items in bank.active.values() for item in items}

    def grades(self) -> Iterator[Grade]:
        """One for each passage and item that was to be graded, or whose answer to be extracted; ``None`` where missing.

        That is so where the judgment failed, and where it was never made.
        """
        if self._section.grading == "self_rating":
            yield from self._ratings()
            return
        checked = {
            PassageSubject.of(want): int(str(result.outcome))
            for want, result in self._outcomes(Task.ANSWER_CHECK)
            if isinstance(result, Judgment)
        }
        for want, result in self._outcomes(Task.EXTRACTION):
            graded = PassageSubject.of(want)
            (item_id,) = graded.item_ids
            if item_id in self._active:
                grade, answer = None, ""
                if isinstance(result, Judgment):
                    answer = str(result.outcome)
                    grade = self._checked(self._active[item_id], answer, checked.get(graded))
                yield Grade(want.query_id, graded.passage_id, item_id, grade, answer)

    def _checked(self, item: Item, answer: str, by_judge: int | None) -> int | None:
        if self._section.grading == "extraction_words":
            return checked_grade(answer, item, compat=self._section.compat)
        if self._section.grading == "extraction_only":
            return None
        return by_judge if is_answer(answer) else 0

    def _ratings(self) -> Iterator[Grade]:
        for want, result in self._outcomes(Task.GRADING):
            graded = PassageSubject.of(want)
            ids, said = graded.item_ids, ""
            given: Sequence[int | None] = [None] * len(ids)
            if isinstance(result, Judgment):
                said = "" if len(ids) > 1 or result.reply.strip().isdigit() else result.reply.strip()
                given = grades_of(result.outcome, len(ids))
            for item_id, grade in zip(ids, given, strict=True):
                if item_id in self._active:
                    yield Grade(want.query_id, graded.passage_id, item_id, grade, said)

    def _outcomes(self, task: Task) -> list[tuple[Wanted, Result | None]]:
        return combined(self._read_anew(self._read(task)), self._how)

    def _read_anew(self, outcomes: Iterable[tuple[Wanted, Result | None]]) -> Iterator[tuple[Wanted, Result | None]]:
        """As they are; with ``compat`` ratings are what the workbench's code makes of the first reply."""
        for want, result in outcomes:
            if self._section.compat is None or want.task is not Task.GRADING or result is None or result.reply is None:
                yield want, result
                continue
            first = result.rejected[0] if result.rejected else result.reply
            outcome = self_rating(first, compat=self._section.compat)
            yield want, _judgment(result, outcome, first)


def _judgment(result: Result, outcome: int, reply: str) -> Judgment:
    if isinstance(result, Judgment):
        return replace(result, outcome=outcome, reply=reply)
    return Judgment(result.judgment_id, outcome, "", reply, result.model)


def _exam(settings: StoredSettings) -> StoredExam:
    if settings.exam is None:
        raise KeyError("exam")
    return settings.exam


def _grader(settings: StoredSettings) -> Grader:
    """Who graded: the declared model, or the judge's name where it has none, and the prompts."""
    exam = _exam(settings)
    judge = exam.section.judge
    names = [prompt for name, prompt in sorted(exam.prompts.items()) if name != "questions"]
    return Grader(settings.judges[judge].model or judge, " + ".join(names))
