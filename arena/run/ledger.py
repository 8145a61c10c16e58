"""What became of every want of a run: judged, known, failed or left; per stage and per judge."""

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
"""Results kept in memory: many times what is judged while the store is asked for one chunk of wants."""

_LISTING = (Task.QUESTIONS, Task.NUGGETS)

SettledKind: TypeAlias = Literal["judged", "known", "failed"]


class Progress(Protocol):
    """Told of what happens, to show it."""

    def begin(self, stage: str, wanted: int, /) -> None:
        """A task of judges begins, or an agent's turn."""

    def more(self, stage: str, wanted: int, /) -> None:
        """So many wants more than were known when it began."""

    def count(self, stage: str, kind: SettledKind, cost_usd: float | None, /) -> None:
        """One more want is ``judged`` by a call, ``known`` without one, or ``failed``."""


class StageSummary(Struct):
    """What became of a stage's wants.

    Attributes:
        wanted: all of them.
        judged: by a call of this run.
        known: without a call: judged earlier or by another process, the same texts as another want, or equal answers.
        failed: no judgment, and asking again would need ``retry_failed``; or a call of this run that failed.
        calls: requests sent, attempts included.
        cost_usd: of this run's calls, as far as prices and tokens are known.
        cost_unknown: results of this run without a known cost.
        lasting: of the failed, those that are asked again on request only.
        changed_lists: lists of questions or nuggets that are shorter than asked for, or of which texts were left out.
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
        """Not asked: a judge stopped, money spent, a stop requested, or documents not labelled yet."""
        return self.wanted - self.judged - self.known - self.failed


class JudgeSummary(Struct, frozen=True):
    """One judge's calls in a run.

    Attributes:
        calls: attempts sent.
        replies: calls that brought a reply, usable or not.
        latency_s: median, 90th and 99th percentile over the replies, ``None`` without any.
        seconds: of the whole run.
        spent_usd: as far as the price is known.
    """

    calls: int
    replies: int
    latency_s: tuple[float, float, float] | None
    seconds: float
    spent_usd: float

    @property
    def replies_per_s(self) -> float:
        """Throughput over the whole run."""
        return self.replies / self.seconds if self.seconds else 0.0


class RunSummary(Struct):
    """What a run did.

    Attributes:
        stopped: a line for each judge that could not go on.
        awaits: the stage that others wait for and that was not asked for, by its name; empty where none is.
        run_id: its id in the store.
        waiting: a line for each judge with batches under way.
        goes_on: whether the server has one of these for certain.
        notes: a line for each thing to know of the data.
        retried: whether all failures were asked again.
    """

    stages: dict[Task, StageSummary] = field(default_factory=dict)
    judges: dict[str, JudgeSummary] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    awaits: str = ""
    run_id: str = ""
    waiting: list[str] = field(default_factory=list)
    goes_on: bool = False
    notes: list[str] = field(default_factory=list)
    retried: bool = False

    @property
    def complete(self) -> bool:
        """Whether every want of the stages that were asked for has a judgment."""
        return all(stage.failed + stage.left == 0 for stage in self.stages.values())

    @property
    def next_step(self) -> str:
        """What completes an incomplete run; running again helps only where that asks for something."""
        return self.next_step_with("")

    def next_step_with(self, option: str) -> str:
        """The same, where running again takes an option, such as to write over what this run has written."""
        again = f"run again with {option}" if option else "run again"
        if self.goes_on:
            return f"the server goes on with the batches; {again} to fetch their replies"
        if self.waiting:
            return f"{again}: it looks for the batch on the server, and hands it in if it is not there"
        if self.awaits:
            return f"what is left waits for {self.awaits}: run '--stage {self.awaits}' first, or run without --stage"
        first = "mend what is named above, then " if self.stopped else ""
        lasting = sum(stage.lasting for stage in self.stages.values())
        failed = sum(stage.failed for stage in self.stages.values())
        passing = failed > lasting or any(stage.left for stage in self.stages.values())
        if lasting and self.retried and not self.stopped and not passing:
            return "what failed was asked again in vain; 'ragleague failures' lists it, and what may help"
        if lasting and not (self.retried and passing):
            retry = " ".join(filter(None, ("--retry-failed", option)))
            return f"'ragleague failures' lists what failed; {first}run again with {retry} to ask for it anew"
        look = "'ragleague failures' lists what failed; " if failed else ""
        return f"{look}{first}{again} to go on"


class Ledger:
    """Counts wants; several of them may share one judgment.

    Args:
        progress: told of every count.
        settled: told of every want that nothing more will be asked for, with its result.
        stage_of: what wants are counted by.
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
        """A stage begins; its wants are added as they become known, ``shown`` of them are expected."""
        self.stages[stage] = StageSummary(0)
        self._expected[stage] = shown
        self._progress.begin(stage, shown)

    def want(self, stage: str, number: int) -> None:
        """So many wants more, maybe more than were expected."""
        self.stages[stage].wanted += number
        if (more := self.stages[stage].wanted - self._expected[stage]) > 0:
            self._expected[stage] += more
            self._progress.more(stage, more)

    def count(self, want: Wanted, kind: SettledKind, result: Any, cost_usd: float | None = None) -> None:
        """A want is settled."""
        stage = self.stages[self._stage_of(want)]
        setattr(stage, kind, getattr(stage, kind) + 1)
        stage.lasting += kind == "failed" and getattr(result, "cause", None) not in RETRIED_NEXT_RUN
        # A list has no reason of the judge's: what stands there is what became of it. A file's list took no call.
        stage.changed_lists += (
            want.task in _LISTING and isinstance(result, Judgment) and bool(result.calls and result.reason)
        )
        self._progress.count(self._stage_of(want), kind, cost_usd)
        self._settled(want, result)

    def is_first(self, want: Wanted, ident: str) -> bool:
        """Whether nothing in this run asked for this judgment before; if not, the want is counted with the first."""
        if ident in self._recent:  # judged while the store was being asked whether it is
            self._count_again(want, self._recent[ident])
            return False
        waiting = self._waiting.setdefault(ident, [])
        waiting.append(want)
        return len(waiting) == 1

    def unsettled(self) -> Collection[str]:
        """The judgments that this run asks for, or is about to."""
        return self._waiting.keys()

    def withdraw(self, ident: str) -> list[Wanted]:
        """This run does not ask for a judgment after all; returns the wants that wait for it."""
        return self._waiting.pop(ident, [])

    def has_asked(self, ident: str) -> bool:
        """Whether this run asks for a judgment, or has done so lately. Works in any thread."""
        return ident in self._waiting or ident in self._recent

    def settle(self, ident: str, result: Any) -> None:
        """Count a result that is safely stored, for every want that waits for it."""
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
    """Whether a result, of a judge or of an agent, is a failure."""
    return getattr(result, "cause", None) is not None


def judge_summary(judge: Judge, seconds: float) -> JudgeSummary:
    """What a judge did in a run of so many seconds."""
    latencies = judge.latencies_s
    return JudgeSummary(judge.calls, len(latencies), _percentiles(latencies), seconds, judge.spent_usd)


def _percentiles(latencies_s: Sequence[float]) -> tuple[float, float, float] | None:
    if not latencies_s:
        return None
    median, ninetieth, ninety_ninth = np.percentile(latencies_s, (50, 90, 99)).tolist()
    return median, ninetieth, ninety_ninth


def _why(spec: JudgeSpec, stopped: JudgeStoppedError) -> str:
    """The error that stopped a judge, cut to ``_ROOM``, and what mends it; of batches, the error says that itself."""
    if spec.in_batches:
        return str(stopped)
    cause = "exception" if spec.provider == "python" else stopped.cause
    code = "the function" if spec.provider == "python" else "the model or its settings"
    to_do = stopped.to_do or TO_DO.get(cause, "").format(address=spec.address_from, key=spec.secret_from, code=code)
    said, room = stopped.problem.rstrip("."), max(_LEAST_ROOM, _ROOM - len(to_do))
    said = said if len(said) <= room else f"{said[: room - 1]}…"
    return f"{said}; {to_do}" if to_do else said


_LEAST_ROOM: Final = 76
_ROOM: Final = 135
"""Characters of two lines of 80 for why a judge stopped and what to do, beside its name."""


def stopped_lines(judges: Mapping[str, Judge]) -> list[str]:
    """One line for each judge that could not go on."""
    reasons = {
        name: _why(judge.spec, judge.stopped)
        if judge.stopped
        else f"max_cost_usd of {judge.spec.max_cost_usd} is spent; raise it"
        for name, judge in judges.items()
        if judge.stopped or judge.budget_spent
    }
    return [f"judge {name!r} stopped: {reason}" for name, reason in reasons.items()]
