"""Counts a run's judgments by stage and judge: made, already known, failed, or not asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np
from msgspec import Struct, field

from arena.store import Wanted
from judges.errors import RETRIED_NEXT_RUN, TO_DO, JudgeStoppedError
from judges.judge import Judge
from judges.spec import JudgeSpec
from judges.types import Judgment, Task

_REMEMBERED = 1_000
"""Number of recent results kept in memory: far more than arrive while one lookup in the store takes place."""

_LISTING = (Task.QUESTIONS, Task.NUGGETS)

SettledKind: TypeAlias = Literal["judged", "known", "failed"]


class Progress(Protocol):
    """Interface of a progress display, which receives the events of a run."""

    def begin(self, stage: str, wanted: int, /) -> None:
        """Show a new stage: a judging task, or the queries to one agent; ``wanted`` is its number of results."""

    def more(self, stage: str, wanted: int, /) -> None:
        """Raise a stage's total by ``wanted``: results led to further judgments."""

    def count(self, stage: str, kind: SettledKind, cost_usd: float | None, /) -> None:
        """Count one judgment: ``judged`` by a call, ``known`` without a call, or ``failed``."""


class StageSummary(Struct):
    """Counts of one stage's judgments in a run.

    Attributes:
        judged: number of judgments made by a call of this run.
        known: number of judgments without a call: made earlier or by another process, or identical to another one.
        failed: number of failed calls of this run, and of earlier failures that only ``retry_failed`` retries.
        calls: number of requests sent, retries included.
        cost_usd: cost of this run's calls, where prices and tokens are known.
        cost_unknown: number of results of this run whose cost is unknown.
        lasting: number of failures that only ``retry_failed`` retries.
        changed_lists: number of generated lists of questions or nuggets that are shorter than requested, or that lost
            texts in cleaning.
    """

    wanted: int
    judged: int = 0
    known: int = 0
    failed: int = 0
    calls: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0
    changed_lists: int = 0
    lasting: int = 0

    @property
    def left(self) -> int:
        """Number of judgments not asked for: a judge or the run stopped, the budget is spent, or labels are missing."""
        return self.wanted - self.judged - self.known - self.failed


class JudgeSummary(Struct, frozen=True):
    """Counts and latency of one judge's calls in a run.

    Attributes:
        calls: number of requests sent, retries included.
        replies: number of calls that returned a reply, usable or not.
        latency_s: median, 90th and 99th percentile of the replies' latency; ``None`` without replies.
        seconds: duration of the whole run.
    """

    calls: int
    replies: int
    latency_s: tuple[float, float, float] | None
    seconds: float
    spent_usd: float

    @property
    def replies_per_s(self) -> float:
        return self.replies / self.seconds if self.seconds else 0.0


class RunSummary(Struct):
    """Outcomes of the judging in a run.

    Attributes:
        stopped: a line for each judge that stopped early, with the reason.
        awaits: name of a stage that this run leaves out although other stages wait for it; empty if there is none.
        waiting: a line for each judge with open batches.
        on_server: whether a provider's server has confirmed at least one of these batches.
        notes: remarks on the data for the user, one line each.
        retried: whether the run retried all failures.
    """

    stages: dict[Task, StageSummary] = field(default_factory=dict)
    judges: dict[str, JudgeSummary] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    awaits: str = ""
    run_id: str = ""
    waiting: list[str] = field(default_factory=list)
    on_server: bool = False
    notes: list[str] = field(default_factory=list)
    retried: bool = False

    @property
    def complete(self) -> bool:
        return all(stage.failed + stage.left == 0 for stage in self.stages.values())

    def next_step(self, option: str = "") -> str:
        """Advice for the user on how to complete an incomplete run; ``option`` must be repeated in the command."""
        again = f"run again with {option}" if option else "run again"
        if self.on_server:
            return f"the server goes on with the batches; {again} to fetch their replies"
        if self.waiting:
            return f"{again}: it looks for the batch on the server, and hands it in if it is not there"
        if self.awaits:
            return f"what is left waits for {self.awaits}: run '--stage {self.awaits}' first, or run without --stage"
        first = "fix what is named above, then " if self.stopped else ""
        lasting = sum(stage.lasting for stage in self.stages.values())
        failed = sum(stage.failed for stage in self.stages.values())
        passing = failed > lasting or any(stage.left for stage in self.stages.values())
        if lasting and self.retried and not self.stopped and not passing:
            return "the retry failed too; 'ragleague failures' lists what failed, and what may help"
        if lasting and not (self.retried and passing):
            retry = " ".join(filter(None, ("--retry-failed", option)))
            return f"'ragleague failures' lists what failed; {first}run again with {retry} to ask for it anew"
        look = "'ragleague failures' lists what failed; " if failed else ""
        return f"{look}{first}{again} to go on"


class Ledger:
    """Counts planned judgments by outcome; several planned judgments may share one stored judgment.

    Args:
        settled: called with every planned judgment that has a result, and with the result.
        stage_of: function that returns the stage in which a planned judgment is counted.
    """

    def __init__(
        self,
        progress: Progress,
        settled: Callable[[Wanted, Any], None],
        stage_of: Callable[[Wanted], Any] = attrgetter("task"),
    ) -> None:
        self.stages: dict[Any, StageSummary] = {}
        self._progress = progress
        self._expected: dict[str, int] = {}
        self._settled, self._stage_of = settled, stage_of
        self._waiting: dict[str, list[Wanted]] = {}
        self._recent: OrderedDict[str, Any] = OrderedDict()

    def begin(self, stage: str, shown: int) -> None:
        self.stages[stage] = StageSummary(0)
        self._expected[stage] = shown
        self._progress.begin(stage, shown)

    def want(self, stage: str, number: int) -> None:
        """Add planned judgments to a stage's total, and raise the displayed total if it is now too small."""
        self.stages[stage].wanted += number
        if (more := self.stages[stage].wanted - self._expected[stage]) > 0:
            self._expected[stage] += more
            self._progress.more(stage, more)

    def count(self, want: Wanted, kind: SettledKind, result: Any, cost_usd: float | None = None) -> None:
        stage = self.stages[self._stage_of(want)]
        setattr(stage, kind, getattr(stage, kind) + 1)
        stage.lasting += kind == "failed" and getattr(result, "cause", None) not in RETRIED_NEXT_RUN
        # The reason of a list says how it was shortened; lists from files took no call.
        stage.changed_lists += (
            want.task in _LISTING and isinstance(result, Judgment) and bool(result.calls and result.reason)
        )
        self._progress.count(self._stage_of(want), kind, cost_usd)
        self._settled(want, result)

    def is_first(self, want: Wanted, ident: str) -> bool:
        """Whether this planned judgment is the first with its id; if not, it gets the result of the first."""
        if ident in self._recent:  # judged during the lookup in the store
            self._count_again(want, self._recent[ident])
            return False
        waiting = self._waiting.setdefault(ident, [])
        waiting.append(want)
        return len(waiting) == 1

    def unsettled(self) -> Collection[str]:
        """Ids of the judgments that this run is asking for, or is about to."""
        return self._waiting.keys()

    def withdraw(self, ident: str) -> list[Wanted]:
        """Stop asking for the judgment with this id; returns the planned judgments that waited for it."""
        return self._waiting.pop(ident, [])

    def has_asked(self, ident: str) -> bool:
        """Whether this run is asking for a judgment, or asked for it recently. Thread-safe."""
        return ident in self._waiting or ident in self._recent

    def settle(self, ident: str, result: Any) -> None:
        """Count a judgment's new result for every planned judgment that waits for it."""
        self._recent[ident] = result
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        first, *others = self._waiting.pop(ident)
        stage = self.stages[self._stage_of(first)]
        stage.calls += result.calls
        stage.cost_usd += result.cost_usd or 0.0
        stage.cost_unknown += result.cost_usd is None
        self.count(first, "failed" if failed(result) else "judged", result, result.cost_usd)
        for want in others:
            self._count_again(want, result)

    def _count_again(self, want: Wanted, result: Any) -> None:
        self.count(want, "failed" if failed(result) else "known", result)


def failed(result: Any) -> bool:
    return getattr(result, "cause", None) is not None


def summary_of(ledger: Ledger, judges: Mapping[str, Judge], seconds: float, *, retried: bool) -> RunSummary:
    """Summarise a run: the counts by stage, each judge's calls in ``seconds`` seconds, and why judges stopped."""
    summaries = {
        name: JudgeSummary(
            judge.calls, len(judge.latencies_s), _percentiles(judge.latencies_s), seconds, judge.spent_usd
        )
        for name, judge in judges.items()
    }
    return RunSummary(ledger.stages, summaries, _stopped_lines(judges), retried=retried)


def _percentiles(latencies_s: Sequence[float]) -> tuple[float, float, float] | None:
    if not latencies_s:
        return None
    median, ninetieth, ninety_ninth = np.percentile(latencies_s, (50, 90, 99)).tolist()
    return median, ninetieth, ninety_ninth


def _why(spec: JudgeSpec, stopped: JudgeStoppedError) -> str:
    """The error that stopped a judge, shortened to fit ``_ROOM``, and what to do about it."""
    if spec.in_batches:
        return str(stopped)
    cause = "exception" if spec.provider == "python" else stopped.cause
    code = "the function" if spec.provider == "python" else "the model or its settings"
    to_do = stopped.to_do or TO_DO.get(cause, "").format(address=spec.address_from, key=spec.secret_from, code=code)
    problem, room = stopped.problem.rstrip("."), max(_LEAST_ROOM, _ROOM - len(to_do))
    problem = problem if len(problem) <= room else f"{problem[: room - 1]}…"
    return f"{problem}; {to_do}" if to_do else problem


_LEAST_ROOM: Final = 76
_ROOM: Final = 135
"""Maximum number of characters of an error and its advice: two lines of 80, less the judge's name."""


def _stopped_lines(judges: Mapping[str, Judge]) -> list[str]:
    """A line for each judge that stopped early, with the reason."""
    reasons = {
        name: _why(judge.spec, judge.stopped)
        if judge.stopped
        else f"max_cost_usd of {judge.spec.max_cost_usd} is spent; raise it"
        for name, judge in judges.items()
        if judge.stopped or judge.budget_spent
    }
    return [f"judge {name!r} stopped: {reason}" for name, reason in reasons.items()]
