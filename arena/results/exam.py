"""The exam of a tournament, read from its store: the bank of exam items, the grades, and the scores of each agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from arena.config.settings import StoredExam
from arena.results.exam_evaluation import ExamScores, Study, exam_scores
from arena.results.outcomes import OutcomesOf, outcomes_of
from arena.stages.exam import bank_kept, generated_bank, material, told_items, written_items
from arena.store import Result, Store
from arena.store.outcomes import combined
from arena.store.rows import GradedSubject
from judges.prompts.tasks import grades_of
from judges.self_rating import is_answer, self_rating
from judges.spec import Combine
from judges.types import Judgment, Task, conversations
from retrieval_eval.exam.grades import Grade, Graded, Grader, by_document, checked_grade, make_grids
from retrieval_eval.exam.items import Bank, Item
from retrieval_eval.exam.scores import RATED_LEVELS


def stored_scores(store: Store, tournament: str, outcomes: OutcomesOf | None = None) -> ExamScores | None:
    """Exam scores from the grades made so far; ``None`` if there is nothing to score.

    There is nothing to score if the tournament has no exam, if no exam item is written yet, or if by the settings
    judges only extract answers to the items and do not grade them.
    """
    exam = store.settings(tournament).exam
    if exam is None or exam.grading == "extraction_only":
        return None
    study = exam_study(store, tournament, outcomes)
    if study.bank is None or not study.bank.items:
        return None
    return exam_scores(study, k=exam.depth, workbench=exam.compat == "workbench")


def exam_study(store: Store, tournament: str, outcomes: OutcomesOf | None = None) -> Study:
    """The input for a tournament's exam scores, from the judgments made so far; the tournament must have an exam."""
    settings, outcomes = store.settings(tournament), outcomes or outcomes_of(store, tournament)
    section, data = settings.exam, store.dataset(tournament)
    assert section is not None
    bank = stored_bank(store, tournament, outcomes)
    # The declared model, or the judge's name if it has none, and the prompts.
    prompts = " + ".join(prompt for name, prompt in sorted(section.prompts.items()) if name != "questions")
    grader = Grader(settings.judges[section.judge].model or section.judge, prompts)
    exam_material = material(data, section)
    rated = section.grading == "self_rating"
    source = Graded(
        {grader: list(_grades(section, bank, outcomes, settings.combinations))},
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


def stored_bank(store: Store, tournament: str, outcomes: OutcomesOf | None = None) -> Bank:
    """The bank of exam items of a tournament: the file's items, without secret texts, or the items written so far."""
    settings = store.settings(tournament)
    exam = settings.exam
    assert exam is not None
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
    queries = store.dataset(tournament).queries
    told = told_items(exam, queries, section.kind)
    written = (outcomes or outcomes_of(store, tournament))(Task.QUESTIONS)
    items = [item for want, result in written for item in written_items(section, want, result, origin)]
    facets = [(want.query_id, want.item or None) for want, _ in written]
    facets += [(query_id, None) for query_id in told]
    return generated_bank(queries, facets, [*items, *told.values()])


def open_items(store: Store, tournament: str) -> frozenset[str]:
    """Ids of the exam items that are not secret; empty if the tournament has no exam."""
    if store.settings(tournament).exam is None:
        return frozenset()
    return frozenset(item.item_id for item in stored_bank(store, tournament).items if not item.secret)


_Judged: TypeAlias = Callable[[Task], Iterable[tuple[GradedSubject, Result | None]]]


def _grades(
    section: StoredExam, bank: Bank, outcomes: OutcomesOf, combinations: Mapping[str, Combine]
) -> Iterator[Grade]:
    """The grade for each passage and active item; its value is ``None`` if the judgment failed or does not exist."""

    def judged(task: Task) -> Iterator[tuple[GradedSubject, Result | None]]:
        results = outcomes(task)
        if section.compat is not None and task is Task.GRADING:
            results = [(want, _parsed_again(result)) for want, result in results]
        return ((GradedSubject.of(want), result) for want, result in combined(results, combinations))

    active = {item.item_id: item for items in bank.active.values() for item in items}
    grades = _ratings(judged) if section.grading == "self_rating" else _extracted(section, active, judged)
    return (grade for grade in grades if grade.item_id in active)


def _ratings(judged: _Judged) -> Iterator[Grade]:
    for subject, result in judged(Task.GRADING):
        reply, grades = "", list[int | None]([None] * len(subject.by))
        if isinstance(result, Judgment):
            reply = "" if len(subject.by) > 1 or result.reply.strip().isdigit() else result.reply.strip()
            grades = [*grades_of(result.outcome, len(subject.by))]
        for item_id, grade in zip(subject.by, grades, strict=True):
            yield Grade(subject.query_id, subject.item, item_id, grade, reply)


def _extracted(section: StoredExam, items: Mapping[str, Item], judged: _Judged) -> Iterator[Grade]:
    checks = {
        subject: int(str(result.outcome))
        for subject, result in judged(Task.ANSWER_CHECK)
        if isinstance(result, Judgment)
    }
    for subject, result in judged(Task.EXTRACTION):
        (item_id,) = subject.by
        answer, grade = str(result.outcome) if isinstance(result, Judgment) else "", None
        if isinstance(result, Judgment) and item_id in items:
            if section.grading == "extraction_words":
                grade = checked_grade(answer, items[item_id], compat=section.compat)
            elif section.grading == "extraction_llm":
                grade = checks.get(subject) if is_answer(answer) else 0
        yield Grade(subject.query_id, subject.item, item_id, grade, answer)


def _parsed_again(result: Result | None) -> Result | None:
    """The judgment by the rating in the judge's first reply, parsed as the rubric workbench does."""
    if result is None or result.reply is None:
        return result
    reply = result.rejected[0] if result.rejected else result.reply
    return Judgment(result.judgment_id, self_rating(reply, compat="workbench"), "", reply, result.model)
