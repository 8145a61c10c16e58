"""Runs of a tournament: what each asked for and what that took, in a line, by stage, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from arena.coverage import AGENTS_ASKED, STAGES
from arena.present.numbers import COUNT, DURATION, MONEY, counted, listed
from arena.present.table import Column, Table
from arena.store.runs import Run
from arena.store.spending import AGENTS, Spent

_WORDS: Final[Mapping[str, str]] = {AGENTS: AGENTS_ASKED, **{task.value: words for task, words in STAGES.items()}}
_CALLS: Final = Column("calls", "Calls", COUNT, "Requests sent, attempts included.")
_COST: Final = Column("cost_usd", "Cost", MONEY, "As far as prices and tokens are known.")
_RUNS: Final = (
    Column("began", "Began (UTC)"),
    Column("took_s", "Took", DURATION),
    Column("state", "State"),
    Column("answered", "Answered", COUNT, "By agents that the run asked."),
    Column("judged", "Judged", COUNT, "By calls of the run."),
    Column("known", "Known", COUNT, "Found in the store, or the same as another one."),
    Column("failed", "Failed", COUNT),
    _CALLS,
    _COST,
    Column("cost_unknown", "Cost unknown", COUNT, "Judgments and answers whose cost is not known."),
    Column("first", "First", meaning="The best rated agent after the run; see who is tied with it."),
)
_STAGES: Final = (
    Column("stage", "Stage"),
    Column("wanted", "Wanted", COUNT),
    Column("made", "Made", COUNT, "Judgments or answers that this run asked for and got."),
    Column("known", "Known", COUNT, "Without a call: in the store, or the same as another one."),
    Column("failed", "Failed", COUNT, "Of this run; once it has ended also earlier ones not asked again."),
    _CALLS,
    Column("input_tokens", "Tokens in", COUNT),
    Column("output_tokens", "Tokens out", COUNT),
    _COST,
    Column("cost_known", "Cost known", meaning="Results whose cost is known; the others are left out."),
)


def runs_table(runs: Sequence[Run]) -> Table:
    """A line for each run, the latest first; counts are sums over its stages, empty where it was not there to tell."""
    asks = any(AGENTS in run.spent for run in runs)
    return Table("runs-so-far", "", _RUNS, [_run(run, asks=asks) for run in runs])


def stages_table(run: Run, *, at_work: bool = False, name: str = "run-by-stage") -> Table:
    """A line for each stage of a run, agents first; a figure that nobody knows is empty, not 0.

    Args:
        run: whose stages.
        at_work: leave out what is told only in the end.
        name: of the table.
    """
    columns = [column for column in _STAGES if not (at_work and column.key in {"wanted", "known"})]
    stages = [stage for stage in _WORDS if stage in run.stages or stage in run.spent]
    return Table(name, "", columns, [_stage(run, stage) for stage in stages])


def agents_so_far(run: Run) -> tuple[int, int, int]:
    """Of the queries that the run asks agents: how many came to an end, how many failed, and how many there are."""
    told = run.stages.get(AGENTS, {})
    _, failed, done = _ended(told, run.spent.get(AGENTS, Spent()))
    return done, failed, told.get("wanted", 0)


def in_words(run: Run) -> str:
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


def _run(run: Run, *, asks: bool) -> dict[str, Any]:
    spent, stages = _total(run), run.stages.keys() | run.spent.keys()
    answered = run.spent[AGENTS].judged if AGENTS in run.spent else 0
    told = run.stages and not run.spent.keys() - run.stages.keys()
    return {
        "began": f"{datetime.fromtimestamp(run.begun, UTC):%Y-%m-%d %H:%M:%S}",
        "took_s": None if run.ended is None else run.ended - run.begun,
        "state": run.state,
        "answered": answered if asks else None,
        "judged": spent.judged - answered,
        "known": sum(own["known"] for own in run.stages.values()) if told else None,
        "failed": sum(_ended(run.stages.get(stage, {}), run.spent.get(stage, Spent()))[1] for stage in stages),
        "calls": spent.calls,
        "cost_usd": spent.cost_usd if spent.cost_known else None,
        "cost_unknown": spent.cost_unknown,
        "first": run.standings[0]["agent"] if run.standings else None,
    }


def _stage(run: Run, stage: str) -> dict[str, Any]:
    told, spent = run.stages.get(stage, {}), run.spent.get(stage, Spent())
    made, failed, _ = _ended(told, spent)
    return {
        "stage": _WORDS[stage],
        "wanted": told.get("wanted"),
        "made": made,
        "known": told.get("known"),
        "failed": failed,
        "calls": spent.calls,
        "input_tokens": spent.input_tokens if spent.tokens_known else None,
        "output_tokens": spent.output_tokens if spent.tokens_known else None,
        "cost_usd": spent.cost_usd if spent.cost_known else None,
        "cost_known": f"{spent.results - spent.cost_unknown:,} of {spent.results:,}",
    }


def _total(run: Run) -> Spent:
    return sum(run.spent.values(), Spent())


def _ended(told: Mapping[str, int], spent: Spent) -> tuple[int, int, int]:
    """Made, failed, and all that came to an end, known ones included; what was told may be of the beginning."""
    made, failed = max(told.get("judged", 0), spent.judged), max(told.get("failed", 0), spent.failed)
    return made, failed, told.get("known", 0) + made + failed


def _without(number: int, what: str) -> str:
    return f" without {counted(number, 'result')} of unknown {what}" if number else ""
