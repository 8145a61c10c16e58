"""The exam of a tournament, read from its store: the bank, the grades, and the scores of each agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from arena.config.judging import ExamSection
from arena.config.settings import StoredExam, StoredSettings
from arena.results.exam_evaluation import ExamScores, Study, exam_scores
from arena.stages.exam.bank import bank_kept, generated_bank, material, written_items
from arena.store import Result, Store, Wanted
from arena.store.outcomes import combined
from arena.store.subjects import GradedSubject
from judges.prompts.tasks import grades_of
from judges.self_rating import is_answer, self_rating
from judges.spec import Combine
from judges.types import Judgment, Task, conversations
from retrieval_eval.exam.grades import Grade, Graded, Grader, by_document, checked_grade, make_grids
from retrieval_eval.exam.items import Bank, Item
from retrieval_eval.exam.scores import RATED_LEVELS

OutcomesOf: TypeAlias = Callable[[Task], Sequence[tuple[Wanted, Result | None]]]
"""Returns a task's judgments to make, each with its result, or ``None`` if it is not judged yet."""


def stored_scores(store: Store, tournament: str, outcomes: OutcomesOf | None = None) -> ExamScores | None:
    """Score what has been graded so far; ``None`` if there is nothing to score.

    There is nothing to score if the tournament has no exam, if no item is written yet, or if answers are extracted but
    not graded.

    Args:
        store: the store that holds the judgments.
        tournament: the tournament's name.
        outcomes: returns a task's judgments to make with their results, if the caller has read them already.
    """
    exam = store.settings(tournament).exam
    if exam is None or exam.grading == "extraction_only":
        return None
    study = exam_study(store, tournament, outcomes)
    if study.bank is None or not study.bank.items:
        return None
    return exam_scores(study, k=exam.depth, workbench=exam.compat == "workbench")


def exam_study(store: Store, tournament: str, outcomes: OutcomesOf | None = None) -> Study:
    """Read a tournament's exam from its store; ``outcomes`` is explained in ``stored_scores``.

    Raises:
        KeyError: the tournament has no exam.
    """
    settings = store.settings(tournament)
    section, data = _exam(settings), store.dataset(tournament)
    outcomes = outcomes or partial(store.outcomes, tournament)
    bank = stored_bank(store, tournament)
    grades = list(_Reader(outcomes, settings.combinations, section, bank).grades())
    exam_material = material(data, section)
    rated = section.grading == "self_rating"
    grader = _grader(settings)
    source = Graded(
        {grader: grades},
        frozenset({grader} if rated else ()),
        exam_material.texts,
        exam_material.passage_rankings,
        nuggets=frozenset(item.item_id for item in bank.items if item.item_type == "nugget"),
    )
    graded = by_document(source) if section.texts == "documents" else source
    return Study(
        source,
        graded,
        grader,
        graded.grades[grader],
        bank,
        exam_material.rankings,
        make_grids(graded.grades[grader], bank, exam_material.rankings),
        data.qrels if section.texts == "documents" else {},
        RATED_LEVELS if rated else (1,),
        section.texts,
        section.min_grade if rated else 1,
        (section.content or {}).get("version"),
        conversations(data.queries.values()),
    )


def stored_bank(store: Store, tournament: str) -> Bank:
    """The test bank of a tournament: read from its file, without secret texts, or the items written so far."""
    settings = store.settings(tournament)
    exam = _exam(settings)
    if exam.content is not None:
        bank = bank_kept(exam.content)
        return bank if store.only is None else bank.of_queries(store.only)
    section = exam.generate
    assert section is not None
    writer = settings.judges[section.judge or exam.judge]
    sampling = {"temperature": writer.temperature, "seed": writer.seed}
    origin = {name: value for name, value in sampling.items() if value is not None} | {
        "prompt": exam.prompts["questions"]
    }
    item_outcomes = store.outcomes(tournament, Task.QUESTIONS)
    items = [
        item
        for want, result in item_outcomes
        if isinstance(result, Judgment) and isinstance(result.outcome, tuple)
        for item in written_items(
            section, want.query_id, want.item or None, result.outcome, {"model": result.model, **origin}
        )
    ]
    facets = [(want.query_id, want.item or None) for want, _ in item_outcomes]
    return generated_bank(store.dataset(tournament).queries, facets, items)


def open_items(store: Store, tournament: str) -> frozenset[str]:
    """Ids of the items that count and are not secret; empty if the tournament has no exam."""
    if store.settings(tournament).exam is None:
        return frozenset()
    return frozenset(item.item_id for item in stored_bank(store, tournament).items if not item.secret)


class _Reader:
    def __init__(
        self, outcomes_of: OutcomesOf, combinations: Mapping[str, Combine], section: ExamSection, bank: Bank
    ) -> None:
        self._outcomes_of, self._combinations, self._section = outcomes_of, combinations, section
        self._active = {item.item_id: item for items in bank.active.values() for item in items}

    def grades(self) -> Iterator[Grade]:
        """Yield a grade for each pair of passage and item to grade, ``None`` if the judgment failed or does not exist.

        If answers are extracted, the pairs are taken from the extraction.
        """
        if self._section.grading == "self_rating":
            yield from self._ratings()
            return
        checked = {
            GradedSubject.of(want): int(str(result.outcome))
            for want, result in self._outcomes(Task.ANSWER_CHECK)
            if isinstance(result, Judgment)
        }
        for want, result in self._outcomes(Task.EXTRACTION):
            subject = GradedSubject.of(want)
            (item_id,) = subject.by
            if item_id in self._active:
                grade, answer = None, ""
                if isinstance(result, Judgment):
                    answer = str(result.outcome)
                    grade = self._checked(self._active[item_id], answer, checked.get(subject))
                yield Grade(want.query_id, subject.item, item_id, grade, answer)

    def _checked(self, item: Item, answer: str, by_judge: int | None) -> int | None:
        if self._section.grading == "extraction_words":
            return checked_grade(answer, item, compat=self._section.compat)
        if self._section.grading == "extraction_only":
            return None
        return by_judge if is_answer(answer) else 0

    def _ratings(self) -> Iterator[Grade]:
        for want, result in self._outcomes(Task.GRADING):
            subject = GradedSubject.of(want)
            ids, reply = subject.by, ""
            item_grades: Sequence[int | None] = [None] * len(ids)
            if isinstance(result, Judgment):
                reply = "" if len(ids) > 1 or result.reply.strip().isdigit() else result.reply.strip()
                item_grades = grades_of(result.outcome, len(ids))
            for item_id, grade in zip(ids, item_grades, strict=True):
                if item_id in self._active:
                    yield Grade(want.query_id, subject.item, item_id, grade, reply)

    def _outcomes(self, task: Task) -> list[tuple[Wanted, Result | None]]:
        return combined(self._reparsed(self._outcomes_of(task)), self._combinations)

    def _reparsed(self, outcomes: Iterable[tuple[Wanted, Result | None]]) -> Iterator[tuple[Wanted, Result | None]]:
        """Yield the outcomes; with ``compat``, ratings are parsed again from the first reply as the workbench does."""
        for want, result in outcomes:
            if self._section.compat is None or want.task is not Task.GRADING or result is None or result.reply is None:
                yield want, result
                continue
            reply = result.rejected[0] if result.rejected else result.reply
            outcome = self_rating(reply, compat=self._section.compat)
            yield want, _judgment(result, outcome, reply)


def _judgment(result: Result, outcome: int, reply: str) -> Judgment:
    if isinstance(result, Judgment):
        return replace(result, outcome=outcome, reply=reply)
    return Judgment(result.judgment_id, outcome, "", reply, result.model)


def _exam(settings: StoredSettings) -> StoredExam:
    if settings.exam is None:
        raise KeyError("exam")
    return settings.exam


def _grader(settings: StoredSettings) -> Grader:
    """The grader: the declared model, or the judge's name if it has none, and the prompts."""
    exam = _exam(settings)
    judge = exam.judge
    names = [prompt for name, prompt in sorted(exam.prompts.items()) if name != "questions"]
    return Grader(settings.judges[judge].model or judge, " + ".join(names))
