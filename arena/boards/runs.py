"""Runs of a tournament: what the next one would ask, what each asked for and what that took, by stage and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from arena.present.blocks import Block, Board, Figure, Figures, Remarks, Section
from arena.present.numbers import COUNT, DURATION, MONEY, counted, listed
from arena.present.table import Column, Table, plain
from arena.results.coverage import AGENTS_ASKED, STAGES
from arena.store.runs import AGENTS, Spent, StoredRun

if TYPE_CHECKING:
    from arena.run.plan import Plan

_WORDS: Final[Mapping[str, str]] = {AGENTS: AGENTS_ASKED, **{task.value: words for task, words in STAGES.items()}}
_STAGE: Final = Column("stage", "Stage")
_WANTED: Final = Column("wanted", "Wanted", COUNT)
_FAILED: Final = Column("failed", "Failed", COUNT, "Of this run; once it has ended also earlier ones not asked again.")
_CALLS: Final = Column("calls", "Calls", COUNT, "Requests sent, attempts included.")
_TOKENS: Final = (Column("input_tokens", "Tokens in", COUNT), Column("output_tokens", "Tokens out", COUNT))
_COST: Final = Column("cost_usd", "Cost", MONEY, "As far as prices and tokens are known.")
_PLAN: Final = (
    _STAGE,
    Column("who", "Who"),
    _WANTED,
    Column("known", "Known", COUNT, "In the store already, or the same as another one."),
    Column("waiting", "In a batch", COUNT, "Not asked again: sent already, or maybe; 'failures --batches' says which."),
    Column("identical", "Identical", COUNT, "Games of equal answers: ties without a call."),
    Column("calls", "Calls", COUNT),
    *_TOKENS,
    Column("cost_usd", "Cost", MONEY),
    Column("seconds", "Time", DURATION, "At two seconds a call."),
)
_RUNS: Final = (
    Column("began", "Began (UTC)", link="to"),
    Column("took_s", "Took", DURATION),
    Column("state", "State"),
    Column("answered", "Answered", COUNT, "By agents that the run asked."),
    Column("judged", "Judged", COUNT, "By calls of the run."),
    _FAILED,
    _COST,
    Column("first", "First", meaning="The best rated agent after the run; see who is tied with it."),
)
_STAGES: Final = (
    _STAGE,
    _WANTED,
    Column("made", "Made", COUNT, "Judgments or answers that this run asked for and got."),
    Column("known", "Known", COUNT, "Without a call: in the store, or the same as another one."),
    _FAILED,
    _CALLS,
    _COST,
)


class PlanBoard(Board, frozen=True):
    """What a run would ask."""

    plan: Plan

    def sections(self) -> Sequence[Section]:
        """One: a line for each agent and each judge's part in each stage, the sums, and what they assume."""
        own = self.plan
        rows = _rows(own)
        sums = [
            Figure("Calls", own.calls, COUNT, "As far as they can be counted."),
            Figure("Cost", own.cost_usd, MONEY, "Of all of it; - where a price is not known."),
        ]
        blocks: list[Block] = [Table("plan", "", _PLAN, rows)]
        if (most := own.most) is not None:
            blocks.append(Table("plan-at-most", "At most, with what is still to come", _PLAN, _rows(most)))
            sums += [
                Figure("Calls at most", most.calls, COUNT, "With what is still to come."),
                Figure("Cost at most", most.cost_usd, MONEY, "With what is still to come."),
            ]
        blocks += [Figures(sums), Remarks(own.notes)]
        return [Section("plan", "The next run", "", blocks)]

    def json(self) -> Any:
        """The shape of ``plan --format json``."""
        own = self.plan
        most = own.most or own
        at_most = {"calls": most.calls, "cost_usd": most.cost_usd}
        shape = {"agents": own.agents, "stages": own.rows, "cost_usd": own.cost_usd, "notes": own.notes}
        return plain({**shape, "at_most": at_most})


def _rows(plan: Plan) -> list[dict[str, Any]]:
    rows = [{**plain(one), "stage": AGENTS_ASKED, "who": one.agent} for one in plan.agents]
    rows += [
        {**plain(one), "stage": STAGES[one.task], "who": one.judge, "waiting": one.waiting or None} for one in plan.rows
    ]
    return rows


def runs_table(runs: Sequence[StoredRun], link: Callable[[StoredRun], str] = lambda _: "") -> Table:
    """A line for each run, the latest first; counts are sums over its stages, empty where it was not there to tell.

    ``link`` says where a run leads.
    """
    asks = any(AGENTS in run.spent for run in runs)
    return Table("runs-so-far", "", _RUNS, [_run(run, asks=asks) | {"to": link(run)} for run in runs])


def stages_table(run: StoredRun) -> Table:
    """A line for each stage of a run, agents first; a figure that nobody knows is empty, not 0."""
    stages = [stage for stage in _WORDS if stage in run.stages or stage in run.spent]
    return Table("run-by-stage", "", _STAGES, [_stage(run, stage) for stage in stages])


def run_names(found: Sequence[StoredRun]) -> dict[str, str]:
    """What runs are called, by id: the second in which each began, with a number if it is not the first of that second.

    Args:
        found: all runs of a tournament, the latest first. A name stays as it is when others come, so an address may
            hold it.
    """
    begun: Counter[str] = Counter()
    called = {}
    for run in reversed(found):
        moment = f"{datetime.fromtimestamp(run.begun, UTC):%Y-%m-%d %H:%M:%S} UTC"
        begun[moment] += 1
        called[run.run_id] = moment if begun[moment] == 1 else f"{moment} ({begun[moment]})"
    return called


def agents_so_far(run: StoredRun) -> tuple[int, int, int]:
    """Of the queries that the run asks agents: how many came to an end, how many failed, and how many there are."""
    _, failed, done = _ended(run, AGENTS)
    return done, failed, run.stages.get(AGENTS, {}).get("wanted", 0)


def in_words(run: StoredRun) -> str:
    """What was asked for and what it took, with how many results the figures leave out."""
    spent, answers = _total(run), run.spent.get(AGENTS, Spent()).judged
    if not spent.results:
        return "nothing was asked for" if run.state == "complete" else "no reply was kept"
    came = [(answers, "answer"), (spent.judged - answers, "judgment"), (spent.failed, "failure")]
    said = [f"{listed([counted(number, one) for number, one in came if number])} by {counted(spent.calls, 'call')}"]
    if spent.tokens_known:
        tokens = f"{COUNT.write(spent.input_tokens)} tokens in and {COUNT.write(spent.output_tokens)} out"
        said.append(tokens + _without(spent.tokens_unknown, "tokens"))
    cost = MONEY.write(spent.cost_usd) + _without(spent.cost_unknown, "cost")
    said.append(cost if spent.cost_known else "unknown cost")
    return "; ".join(said)


def _run(run: StoredRun, *, asks: bool) -> dict[str, Any]:
    spent, stages = _total(run), run.stages.keys() | run.spent.keys()
    answered = run.spent[AGENTS].judged if AGENTS in run.spent else 0
    return {
        **_spent(spent),
        "began": f"{datetime.fromtimestamp(run.begun, UTC):%Y-%m-%d %H:%M:%S}",
        "took_s": None if run.ended is None else run.ended - run.begun,
        "state": run.state,
        "answered": answered if asks else None,
        "judged": spent.judged - answered,
        "failed": sum(_ended(run, stage)[1] for stage in stages),
        "first": run.standings[0]["agent"] if run.standings else None,
    }


def _stage(run: StoredRun, stage: str) -> dict[str, Any]:
    told = run.stages.get(stage, {})
    made, failed, _ = _ended(run, stage)
    counts = {"wanted": told.get("wanted"), "made": made, "known": told.get("known"), "failed": failed}
    return {**_spent(run.spent.get(stage, Spent())), "stage": _WORDS[stage], **counts}


def _spent(spent: Spent) -> dict[str, Any]:
    """What asking took; ``None`` for a cost that nobody knows."""
    return asdict(spent) if spent.cost_known else {**asdict(spent), "cost_usd": None}


def _total(run: StoredRun) -> Spent:
    return sum(run.spent.values(), Spent())


def _ended(run: StoredRun, stage: str) -> tuple[int, int, int]:
    """Made, failed, and all that came to an end, known ones included; what was told may be of the beginning."""
    told, spent = run.stages.get(stage, {}), run.spent.get(stage, Spent())
    made, failed = max(told.get("judged", 0), spent.judged), max(told.get("failed", 0), spent.failed)
    return made, failed, told.get("known", 0) + made + failed


def _without(number: int, what: str) -> str:
    return f" without {counted(number, 'result')} of unknown {what}" if number else ""
