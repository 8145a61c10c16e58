"""The exam: grades of passages on exam items, people's labels, and agents' scores at every level; read from a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.settings import StoredExam
from arena.results.outcomes import OutcomesOf, outcomes_of
from arena.stages.exam import bank_kept, generated_bank, material, told_items, written_items
from arena.store import Result, Store
from arena.store.outcomes import combined
from arena.store.rows import GradedSubject
from judges.errors import DataError, InputError
from judges.prompts.tasks import grades_of
from judges.self_rating import is_answer, self_rating
from judges.spec import Combine
from judges.types import Judgment, Task, conversations
from retrieval_eval.data.files import read_json
from retrieval_eval.data.rows import finite
from retrieval_eval.data.spans import SpanLabels
from retrieval_eval.data.table_spec import TableSpec
from retrieval_eval.exam.grades import (
    Grade,
    Graded,
    Grader,
    Grids,
    Rankings,
    by_document,
    checked_grade,
    make_grids,
    origin_of,
)
from retrieval_eval.exam.items import Bank, Item
from retrieval_eval.exam.scores import (
    DEFAULT_ALPHA,
    DEFAULT_K,
    RATED_LEVELS,
    CoverScores,
    ExamScores,
    GradedUnit,
    alpha_ndcg,
    cover_scores,
)
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import Clusters

USUAL_LEVEL = 4
"""The lowest grade at which the authors of the method (seed 001) count an item as covered."""


class Study(Struct, frozen=True, dict=True):
    """The input for exam scores and for the comparison of grades with people's labels.

    Attributes:
        source: all grades as the graders gave them, one for each passage and item.
        graded: the same grades, merged by document if documents were cut into passages for grading.
        bank: the bank of exam items; ``None`` without a bank, in which case the graded items are used.
        rankings: the passages of each agent's response, or its documents.
        labels: people's relevance labels, empty if there are none.
        levels: the thresholds in use; at level 4, an item counts as covered by a grade of 4 or more.
        unit: what was graded: passages of ``answers``, or retrieved ``documents``.
        min_grade: the default level, if the configuration names one.
        bank_version: version of the bank with all its texts, if ``bank`` lacks the secret ones.
    """

    source: Graded
    graded: Graded
    grader: Grader
    grades: Sequence[Grade]
    bank: Bank | None
    rankings: Rankings
    grids: Grids
    labels: Labels
    levels: tuple[int, ...]
    unit: GradedUnit
    min_grade: int | None = None
    bank_version: str | None = None
    clusters: Clusters = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        return self.bank_version or (self.bank.version if self.bank is not None else None)

    @property
    def usual_level(self) -> int:
        """The default level: the configured ``min_grade``, or else 4 if that is a level, or else the highest level."""
        if self.min_grade is not None:
            return self.min_grade
        return USUAL_LEVEL if USUAL_LEVEL in self.levels else max(self.levels)

    @property
    def strange_queries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(query_id for query_id, _ in self.rankings if query_id not in self.grids.grids))

    def of_query(self, query_id: str) -> Study:
        return replace(self, grids=Grids({query_id: self.grids.grids[query_id]}))

    def text_of(self, item_id: str) -> str:
        """The text of an item; a placeholder if the item is secret, its id if the bank is not known."""
        return self.bank.by_id[item_id].open_text if self.bank is not None and item_id in self.bank.by_id else item_id

    def text_of_passage(self, query_id: str, passage_id: str) -> str:
        return self.graded.passages.get(query_id, {}).get(passage_id, "")

    def open_id(self, item_id: str) -> str:
        """The item's id; for a secret item, whose id may reveal it, its number among the query's secret items."""
        if item_id not in self.secret:
            return item_id
        query_id = self.secret[item_id]
        secret_ids = [secret for secret, query in self.secret.items() if query == query_id]
        return f"(secret {secret_ids.index(item_id) + 1})"

    def open_answers(self) -> dict[tuple[str, str, str], str]:
        """Extracted answers by query, passage and item, without answers to secret items, which may reveal them."""
        answers = self.graded.answers(self.grader)
        return {key: answer for key, answer in answers.items() if key[2] not in self.secret}

    @cached_property
    def secret(self) -> Mapping[str, str]:
        items = self.bank.items if self.bank is not None else ()
        return {item.item_id: item.query_id for item in items if item.secret}


def load_study(
    file: Path,
    *,
    bank: Path | None = None,
    runs: Sequence[Path] = (),
    qrels: Path | None = None,
    items: str | None = None,
    llm: str | None = None,
    prompt: str | None = None,
) -> Study:
    """Read the input for exam scores from files.

    Args:
        file: the workbench's graded file or a table of grades.
        runs: trec_eval run files; by default the rankings in the file of grades, or else those that follow from the ids
            of the answers' passages.
        qrels: people's relevance labels; by default the judgments in the file of grades.
        items: a shell pattern that the ids of the items must match.
        llm: the grader's model, if there are several graders.
        prompt: the grader's prompt, if there are several graders.

    Raises:
        InputError: a file is invalid, no grader or no item matches, or several graders match.
    """
    from retrieval_eval.data.runs import read_rankings
    from retrieval_eval.data.trec import read_qrels
    from retrieval_eval.exam.bank_files import read_bank
    from retrieval_eval.exam.grade_files import read_graded

    source = read_graded(file)
    graded = by_document(source)
    grader = graded.chosen(llm, prompt)
    grades = [entry for entry in graded.grades[grader] if items is None or fnmatchcase(entry.item_id, items)]
    if not grades:
        raise InputError(f"{file}: no graded item has an id that matches the pattern {items!r} of --items")
    known_bank = read_bank(bank) if bank is not None else None
    if known_bank is not None and items is not None:
        known_bank = replace(
            known_bank, items=tuple(item for item in known_bank.items if fnmatchcase(item.item_id, items))
        )
    of_answers = _rankings_of_ids(grades)
    rankings = read_rankings(runs) if runs else graded.rankings or of_answers
    grades = _on_chunks(str(file), grades, rankings)
    grids = make_grids(grades, known_bank, rankings)
    if known_bank is not None and grids.pairs == grids.ungraded:
        raise InputError(f"{file}: no grade is for an item of the bank {bank}; both files must use the same item ids")
    passages = {entry.passage_id for entry in grades}
    labels = read_qrels(qrels).on_chunks(passages, {}).labels if qrels is not None else graded.labels
    levels = RATED_LEVELS if grader in graded.rated else (1,)
    unit: GradedUnit = "answers" if of_answers else "documents"
    return Study(source, graded, grader, grades, known_bank, rankings, grids, labels, levels, unit)


def _on_chunks(name: str, grades: list[Grade], rankings: Rankings) -> list[Grade]:
    """The grades of ranked passages; those of spans are mapped onto them, see ``SpanLabels``."""
    passages = {passage_id for ranked in rankings.values() for passage_id in ranked}
    spans = SpanLabels(name, {entry.passage_id for entry in grades} if passages else (), passages, {})
    if not spans.chunks:
        return grades
    best: dict[tuple[str, str, str], Grade] = {}
    # The last one counts: the highest grade, but before it that of the passage's own id.
    for entry in sorted(
        grades, key=lambda each: (each.passage_id in passages, -1 if each.grade is None else each.grade)
    ):
        for chunk in spans.chunks.get(entry.passage_id, (entry.passage_id,)):
            best[entry.query_id, chunk, entry.item_id] = entry._replace(passage_id=chunk)
    return list(best.values())


def load_labels(file: Path, *, llm: str | None = None, prompt: str | None = None) -> tuple[Labels, Labels] | None:
    """Relevance labels that a model gave to passages, and people's labels; ``None`` if the file grades exam items.

    Args:
        file: the workbench's graded file or a table of grades.

    Raises:
        InputError: the file is invalid, or several graders match.
    """
    from retrieval_eval.exam.grade_files import read_graded

    graded = read_graded(file)
    graders = graded.labelling(llm, prompt)
    if not graders or any((llm or grader.llm, prompt or grader.prompt) == grader for grader in graded.grades):
        return None
    if len(graders) > 1:
        choices = "; ".join(f"--llm {grader.llm!r} --prompt {grader.prompt!r}" for grader in graders)
        raise InputError(f"{file}: several graders labelled its passages; choose one of them: {choices}")
    return graded.direct[graders[0]], graded.labels


def _rankings_of_ids(grades: Sequence[Grade]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Passage ids of each answer, in the answer's order; empty if a passage id does not name its answer."""
    passages: dict[tuple[str, str], dict[int, str]] = {}
    for passage_id in dict.fromkeys(entry.passage_id for entry in grades):
        origin = origin_of(passage_id)
        if origin is None:
            return {}
        query_id, agent, number = origin
        passages.setdefault((query_id, agent), {})[number] = passage_id
    return {key: tuple(by_number[number] for number in sorted(by_number)) for key, by_number in passages.items()}


LEADERBOARD: Final = TableSpec(("agent", "rank", "score"), ("agent",), {"agent": ("method", "run"), "rank": ("place",)})


def read_official(path: Path) -> dict[str, float]:
    """Read an official leaderboard, JSON with ranks by agent or a table of ranks or scores; the lowest number is best.

    Raises:
        DataError: the file cannot be read, names an agent twice, or a rank or score is not a number.
    """
    if path.name.endswith(".json"):
        return _official_json(path)
    ranks: dict[str, float] = {}
    ranked = True
    for row in LEADERBOARD.rows(path):
        ranked = "rank" in row.values
        text = row.text("rank" if ranked else "score")
        if (value := finite(text)) is None:
            raise row.error("an official leaderboard needs a number in its column 'rank' or 'score'", text)
        if row.identifier("agent") in ranks:
            raise row.error("this agent is listed twice", row.text("agent"))
        ranks[row.identifier("agent")] = value
    return ranks if ranked else {agent: -score for agent, score in ranks.items()}


def _official_json(path: Path) -> dict[str, float]:
    content = read_json(path)
    if not isinstance(content, Mapping) or not content:
        raise DataError(path, 'must be a JSON object that gives each agent\'s rank, such as {"agent a": 1}')
    for agent, rank in content.items():
        if isinstance(rank, bool) or not isinstance(rank, int | float):
            raise DataError(path, f"the rank of {agent!r} is not a number", value=str(rank))
    return {str(agent): float(rank) for agent, rank in content.items()}


def exam_scores(
    study: Study,
    *,
    k: int = DEFAULT_K,
    alpha: float = DEFAULT_ALPHA,
    workbench: bool = False,
    official: Mapping[str, float] | None = None,
) -> ExamScores:
    """Compute the exam scores of all agents.

    Args:
        k: number of passages of a response that count, from the first on.
        workbench: score as the rubric workbench does: divide by the items that have a grade instead of the bank's, give
            every item the weight 1, and average over the queries to which the agent has a response.
        official: ranks of the agents on an official leaderboard.
    """
    grids = make_grids(study.grades, None, study.rankings) if workbench else study.grids
    cover = cover_scores(grids, study.rankings, levels=study.levels, k=k, clusters=study.clusters)
    diverse = {
        level: replace(measures["cover"], values=_alpha_ndcg(study, grids, cover, level, alpha), ends=None)
        for level, measures in cover.by_level.items()
    }
    return ExamScores(
        study.usual_level,
        cover,
        diverse,
        study.unit,
        study.grader,
        study.version,
        None if study.bank is None else sum(map(len, study.bank.active.values())),
        study.strange_queries,
        study.grids.unknown,
        workbench,
        official,
    )


def _alpha_ndcg(study: Study, grids: Grids, cover: CoverScores, level: int, alpha: float) -> Floats:
    """Alpha-nDCG of every response, shape (agents, queries); 0 without a response, NaN if grades are missing."""
    agents, queries = cover.agents, cover.queries
    columns = []
    for query_id in queries:
        responses = [study.rankings.get((query_id, agent), ()) for agent in agents]
        columns.append(alpha_ndcg(grids.grids[query_id], responses, level=level, k=cover.k, alpha=alpha))
    return np.array(columns).reshape(len(queries), len(agents)).T


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
