"""``exam generate`` and ``exam grade`` as functions: the exam of a tournament, and its bank or grades as files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from arena.config.whole import Config
from arena.run import tournament
from arena.run.ledger import Progress, RunSummary
from arena.stages.exam.scores import ExamScores
from arena.stages.exam.stored import exam_study, stored_bank, stored_scores
from arena.stages.exam.study import Study
from arena.store import Store
from judges.errors import ConfigError
from judges.types import EXAM_TASKS, CallTrace, Task
from retrieval_eval.exam.grade_files import to_workbench, write_grades, write_workbench
from retrieval_eval.exam.items import Bank


@dataclass(frozen=True)
class GradedExam:
    """What ``grade`` comes to.

    Attributes:
        summary: of the run.
        study: all grades there are by now.
        scores: what it comes to, ``None`` where answers are extracted and not graded.
    """

    summary: RunSummary
    study: Study
    scores: ExamScores | None


def generate(
    config: Config,
    progress: Progress,
    *,
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
) -> tuple[RunSummary, Bank]:
    """Have the test bank written, as far as it is not yet, and return what there is of it.

    Raises:
        InputError: the configuration has no section ``exam.generate``, or data, prompts or judges cannot be used.
        StoreError: the store cannot be written.
    """
    if config.exam is None or config.exam.generate is None:
        raise ConfigError("exam.generate: the configuration does not say how to write a test bank")
    summary = tournament.run(config, progress, only=[Task.QUESTIONS], retry_failed=retry_failed, trace=trace)
    with closing(Store.open(config.store)) as store:
        return summary, stored_bank(store, config.name)


def grade(
    config: Config,
    progress: Progress,
    *,
    retry_failed: bool = False,
    trace: Callable[[CallTrace], None] | None = None,
) -> GradedExam:
    """Grade every passage of every answer, or of every document, against every item, as far as it is not done yet.

    Raises:
        InputError: the configuration has no section ``exam``, or data, bank, prompts or judges cannot be used.
        StoreError: the store cannot be written.
    """
    if config.exam is None:
        raise ConfigError("exam: the configuration has no such section")
    data = tournament.load_data(config)
    unit = config.exam.texts
    if not (data.retrieved if unit == "documents" else data.answers):
        raise ConfigError(f"exam.texts: {unit!r} are to be graded, and 'data' has none")
    summary = tournament.run(config, progress, data=data, only=EXAM_TASKS, retry_failed=retry_failed, trace=trace)
    with closing(Store.open(config.store)) as store:
        return GradedExam(summary, exam_study(store, config.name), stored_scores(store, config.name))


def save_grades(path: Path, study: Study, *, secret: bool = False) -> int:
    """Write grades: the workbench's form with passages and rankings to ``.jsonl.gz``, a table elsewhere.

    Args:
        path: where to.
        study: what to write.
        secret: also write the grades of secret items.

    Returns:
        How many grades of secret items were left out.

    Raises:
        DataError: the file cannot be written.
    """
    known = study.bank.secret_ids if study.bank is not None else ()
    graded, left_out = study.source.without(() if secret else known)
    if path.name.endswith(".jsonl.gz"):
        write_workbench(path, to_workbench(graded, tau=study.usual_level))
    else:
        write_grades(path, graded)
    return left_out
