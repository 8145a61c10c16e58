"""Tables about a tournament's runs: the plan of the next run, the calls and cost of past runs, and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import asdict

from arena.config.stages import all_tasks
from arena.present.blocks import Block, Board, Figure, Figures, Remarks, Section
from arena.present.numbers import COUNT, DURATION, MONEY, POINTS, SIGNED_2, counted, listed
from arena.present.table import Column, Table, fields, plain
from arena.results.exam import open_items
from arena.results.outcomes import AGENTS_ASKED, stage_words
from arena.results.replies import failures as failures_of_agents
from arena.run.answers import ASKED_AGAIN
from arena.store import Store, Wanted
from arena.store.rows import GradedSubject
from arena.store.runs import AGENTS, Spent, StoredRun
from judges.errors import CAUSES, remedy
from judges.types import JudgeFailure, Task
from retrieval_eval.agents.types import AGENT_CAUSES, AgentFailure
from retrieval_eval.exam.items import SECRET_TEXT
from retrieval_eval.stats.components import ROUGH
from retrieval_eval.stats.decidable import ENOUGH

if TYPE_CHECKING:
    from arena.run.decidable import Decides
    from arena.run.plan import Plan

_STAGE: Final = Column("stage", "Stage")
_WANTED: Final = Column("wanted", "Wanted", COUNT)
_FAILED: Final = Column("failed", "Failed", COUNT, "Of this run; after its end, with earlier ones not asked again.")
_CALLS: Final = Column("calls", "Calls", COUNT, "Requests sent, attempts included.")
_TOKENS: Final = (Column("input_tokens", "Tokens in", COUNT), Column("output_tokens", "Tokens out", COUNT))
_COST: Final = Column("cost_usd", "Cost", MONEY, "As far as prices and tokens are known.")
_PLAN: Final = (
    _STAGE,
    Column("who", "Who"),
    _WANTED,
    Column("known", "Known", COUNT, "In the store already, or the same as another one."),
    Column("waiting", "In a batch", COUNT, "Not asked again: perhaps sent already; see 'ragleague batches'."),
    Column("identical", "Identical", COUNT, "Games of equal answers: ties without a call."),
    Column("calls", "Calls", COUNT),
    *_TOKENS,
    Column(
        "cached_tokens",
        "Cached",
        COUNT,
        "Of the tokens in: read from the server's cache, as far as prompts begin alike.",
    ),
    Column("written_tokens", "Written", COUNT, "Of the tokens in: written to the server's cache, which costs more."),
    Column("cost_usd", "Cost", MONEY),
    Column("seconds", "Time", DURATION, "At two seconds a call."),
)
_DECIDES: Final = (
    Column("run", "Run"),
    Column("queries", "Queries", COUNT),
    Column("judges", "Judges", COUNT),
    Column("repeats", "Repeats", COUNT, programs=False),
    Column("smallest", "Difference found", SIGNED_2, "The smallest that 80% of runs find, from half of the points."),
    Column("other_judges", "For other judges", SIGNED_2, "With intervals for other judges of this kind."),
    Column("cost_usd", "Cost", MONEY, "Of the judgments still to make; agents' answers come on top."),
)
_RUNS: Final = (
    Column("began", "Began (UTC)", link="to"),
    Column("took_s", "Took", DURATION),
    Column("state", "State"),
    Column("answered", "Answered", COUNT, "By agents that the run asked."),
    Column("judged", "Judged", COUNT, "By calls of the run."),
    _FAILED,
    _COST,
    Column("first", "First", meaning="The agent that the intervals put first; empty where several may be."),
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
    plan: Plan

    def sections(self) -> Sequence[Section]:
        plan = self.plan
        sums = [
            Figure("Calls", plan.calls, COUNT, "As far as they can be counted."),
            Figure("Cost", plan.cost_usd, MONEY, "Of all calls; - if a price is not known."),
        ]
        blocks: list[Block] = [Table("plan", "", _PLAN, _rows(plan))]
        if (most := plan.most) is not None:
            blocks.append(Table("plan-at-most", "At most, with what is still to come", _PLAN, _rows(most)))
            sums += [
                Figure("Calls at most", most.calls, COUNT, "With what is still to come."),
                Figure("Cost at most", most.cost_usd, MONEY, "With what is still to come."),
            ]
        blocks.append(Figures(sums))
        if plan.decides is not None:
            blocks.append(_decides_table(plan.decides))
        blocks.append(Remarks(plan.notes))
        return [Section("plan", "The next run", "", blocks)]

    def json(self) -> Any:
        plan = self.plan
        at_most = fields(plan.most or plan, "calls", "cost_usd")
        return plain(fields(plan, "agents", "cost_usd", "notes", "decides") | {"stages": plan.rows, "at_most": at_most})


def _decides_table(decides: Decides) -> Table:
    planned, judged = decides.runs[0], counted(decides.judged_queries, "query", "queries")
    answers = f"{counted(planned.repeats, 'answer')} each"
    size = f"{counted(planned.queries, 'query', 'queries')}, {counted(planned.judges, 'judge')} and {answers}"
    found = "no difference is found"
    if (smallest := planned.smallest) is not None:
        points, won, lost = (POINTS.write(100 * share) for share in (smallest, 0.5 + smallest, 0.5 - smallest))
        found = f"a difference of {points} points of wins ({won} to {lost}%) or more is found"
    notes = [
        f"With {size}, {found} in 80% of runs, by one comparison ('compare'); the order of all agents takes more.",
        f"Predicted from {judged} that {listed(decides.judges, 3)} judged in tournament {decides.tournament!r}, pooled "
        f"over {counted(decides.pairs, 'pair')} of agents.",
    ]
    if decides.judged_queries < ENOUGH:
        notes.append(f"Rough: fewer than {ENOUGH} judged queries say little of how queries differ.")
    if decides.components.rest is None:
        notes.append("What more judges buy is not known: one judge has judged so far.")
    elif decides.components.judges is not None and len(decides.judges) < ROUGH:
        notes.append(f"For other judges it is rough: fewer than {ROUGH} judges say little of how judges differ.")
    several = decides.components.answers is not None
    rows = [row | {"repeats": row["repeats"] if several else None} for row in plain(decides.runs)]
    return Table("decides", "What the run can decide", _DECIDES, rows, notes)


def _rows(plan: Plan) -> list[dict[str, Any]]:
    words = stage_words()
    return [
        *(plain(entry) | {"stage": AGENTS_ASKED, "who": entry.agent} for entry in plan.agents),
        *(
            plain(entry)
            | {"stage": words.get(entry.task, entry.task.value), "who": entry.judge}
            | {name: getattr(entry, name) or None for name in ("waiting", "cached_tokens", "written_tokens")}
            for entry in plan.rows
        ),
    ]


def runs_table(runs: Sequence[StoredRun], link: Callable[[StoredRun], str] = lambda _: "") -> Table:
    """Table of runs, latest first; figures that a run did not record are empty. ``link`` gives the address of a run."""
    asks = any(AGENTS in run.spent for run in runs)
    return Table("runs-so-far", "", _RUNS, [_run(run, asks=asks) | {"to": link(run)} for run in runs])


def stages_table(run: StoredRun) -> Table:
    """Table of a run's stages; the answers that agents were asked for come first. An unknown figure is empty, not 0."""
    words = {AGENTS: AGENTS_ASKED} | {task.value: heading for task, heading in stage_words().items()}
    words |= {stage: stage for stage in (*run.stages, *run.spent) if stage not in words}
    present = {stage: heading for stage, heading in words.items() if stage in run.stages or stage in run.spent}
    return Table("run-by-stage", "", _STAGES, [_stage(run, *named) for named in present.items()])


def run_names(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Name of each run by its id: the time it began, with a number if several began in the same second.

    ``runs`` must be ordered from the latest to the earliest.
    """
    begun: Counter[str] = Counter()
    names = {}
    for run in reversed(runs):
        time = f"{datetime.fromtimestamp(run.begun, UTC):%Y-%m-%d %H:%M:%S} UTC"
        begun[time] += 1
        names[run.run_id] = time if begun[time] == 1 else f"{time} ({begun[time]})"
    return names


def agents_so_far(run: StoredRun) -> tuple[int, int, int]:
    _, failed, done = _ended(run, AGENTS)
    return done, failed, run.stages.get(AGENTS, {}).get("wanted", 0)


def in_words(run: StoredRun) -> str:
    """Say in words how many results, calls and tokens a run had, its cost, and how many results lack these figures."""
    spent, answers = _total(run), run.spent.get(AGENTS, Spent()).judged
    if not spent.results:
        return "nothing was asked for" if run.state == "complete" else "no reply was kept"
    counts = [(answers, "answer"), (spent.judged - answers, "judgment"), (spent.failed, "failure")]
    phrases = [
        f"{listed([counted(number, noun) for number, noun in counts if number])} by {counted(spent.calls, 'call')}"
    ]
    if spent.tokens_known:
        tokens = f"{COUNT.write(spent.input_tokens)} tokens in and {COUNT.write(spent.output_tokens)} out"
        phrases.append(tokens + _without(spent.tokens_unknown, "tokens"))
    cost = MONEY.write(spent.cost_usd) + _without(spent.cost_unknown, "cost")
    phrases.append(cost if spent.cost_known else "unknown cost")
    return "; ".join(phrases)


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
        "first": _first(run),
    }


def _first(run: StoredRun) -> str | None:
    """The one agent that may be first after a run; ``None`` if several may be, or if judges only compared words."""
    may_be = [str(line["agent"]) for line in run.standings if line["rank_low"] == 1]
    judges = run.subject.get("settings", {}).get("judges", {}).values()
    of_words = judges and all(judge.get("provider") == "lexical" for judge in judges)
    return may_be[0] if len(may_be) == 1 and not of_words else None


def _stage(run: StoredRun, stage: str, words: str) -> dict[str, Any]:
    progress = run.stages.get(stage, {})
    made, failed, _ = _ended(run, stage)
    counts = {"wanted": progress.get("wanted"), "made": made, "known": progress.get("known"), "failed": failed}
    return {**_spent(run.spent.get(stage, Spent())), "stage": words, **counts}


def _spent(spent: Spent) -> dict[str, Any]:
    return asdict(spent) if spent.cost_known else {**asdict(spent), "cost_usd": None}


def _total(run: StoredRun) -> Spent:
    return sum(run.spent.values(), Spent())


def _ended(run: StoredRun, stage: str) -> tuple[int, int, int]:
    """Numbers of a stage's judgments that the run made, that failed, and that are finished in all.

    The last number includes judgments known before the run. The first two are the larger of the recorded progress and
    the recorded spending, since the progress may be out of date.
    """
    progress, spent = run.stages.get(stage, {}), run.spent.get(stage, Spent())
    made, failed = max(progress.get("judged", 0), spent.judged), max(progress.get("failed", 0), spent.failed)
    return made, failed, progress.get("known", 0) + made + failed


def _without(number: int, figure: str) -> str:
    return f" without {counted(number, 'result')} of unknown {figure}" if number else ""


_ABOUT_ITEMS: Final = frozenset({Task.GRADING, Task.EXTRACTION, Task.ANSWER_CHECK})
_SHOWN: Final = 200
"""Maximum number of characters of a failure's reply in the text output; JSON has the complete reply."""
Failed: TypeAlias = Mapping[str, Any]
"""A failed judgment, or an answer that an agent failed to give, as a JSON object. Secret exam items are masked."""

_COLUMNS: Final = (
    Column("cause", "Cause"),
    Column("judge", "Judge"),
    Column("meaning", "Meaning"),
    Column("failed", "Failed", COUNT),
)


class FailuresBoard(Board, frozen=True):
    """Failures of one or more tournaments.

    Attributes:
        several: whether the failures may be of several tournaments, so that each line names its own.
        waiting: sentences about batches that the servers still process.
    """

    failed: Sequence[Failed]
    several: bool = False
    waiting: Sequence[str] = ()

    def sections(self) -> Sequence[Section]:
        counts = Counter(tuple(failure[name] for name in ("cause", "judge", "meaning")) for failure in self.failed)
        rows = [
            {"cause": cause, "judge": judge, "meaning": meaning, "failed": count}
            for (cause, judge, meaning), count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        ]
        lines = [line for failure in self.failed for line in self._lines(failure)]
        causes = dict.fromkeys((failure["cause"], failure["task"] == AGENTS) for failure in self.failed)
        helps = [f"what helps with {cause}: {_remedy(cause, of_agents=of_agents)}" for cause, of_agents in causes]
        remarks = Remarks([*lines, *helps, f"{COUNT.write(len(self.failed))} failed", *self.waiting])
        return [Section("failures", "Failures", "", [Table("failures", "", _COLUMNS, rows), remarks])]

    def json(self) -> Any:
        return plain(self.failed)

    def _lines(self, failure: Failed) -> Iterator[str]:
        prefix = failure["tournament"] + ": " if self.several else ""
        place = " ".join(filter(None, (failure["task"], failure["judge"], failure["qid"], failure["item"])))
        yield f"{prefix}{place}: {failure['cause']}: {failure['message']}"
        if failure["reply"]:
            yield f"    reply: {failure['reply'][:_SHOWN]!r}"


def failed_in(store: Store, tournament: str) -> list[dict[str, Any]]:
    """Read the failures of one tournament: answers that agents failed to give, then failed judgments."""
    settings = store.settings(tournament)  # raises InputError with the known names if there is no such tournament
    agent_failures = failures_of_agents(store, store.dataset(tournament), settings)
    results = (outcome for task in all_tasks() for outcome in store.outcomes(tournament, task))
    open_ids = open_items(store, tournament)
    rows = [
        {"task": AGENTS, "judge": "", "qid": query_id, "item": agent} | _common_fields(failure, AGENT_CAUSES)
        for agent, query_id, failure in agent_failures
    ]
    rows += [_of_judge(want, result, open_ids) for want, result in results if isinstance(result, JudgeFailure)]
    return [{"tournament": tournament, **row} for row in rows]


_OF_AGENTS: Final = {
    "contract": "fix the agent's 'mapping' or prompt",
    "exception": "fix the agent's code",
    "not_recorded": "add the answer to the agent's file",
    "empty": "check why the agent's answer to this query is empty",
    "refusal": "check why the agent refuses",
    "bad_request": "read the message of the agent's server",
}


def _remedy(cause: str, *, of_agents: bool) -> str:
    if not of_agents or cause not in _OF_AGENTS:
        return remedy(cause)
    again = "run again" if cause in ASKED_AGAIN else "run again with --retry-failed"
    return f"{_OF_AGENTS[cause]}; then {again}"


def _of_judge(want: Wanted, result: JudgeFailure, open_ids: Collection[str]) -> dict[str, Any]:
    """JSON fields of a failed judgment; for a secret exam item, id, message and reply are masked."""
    secret = want.task in _ABOUT_ITEMS and not set(GradedSubject.of(want).by) <= set(open_ids)
    item = " / ".join(filter(None, (want.item, SECRET_TEXT if secret else want.other, want.order)))
    where = {"task": want.task.value, "judge": want.judge, "qid": want.query_id, "item": item}
    texts = {"message": SECRET_TEXT} if secret else {"reply": result.reply}
    return {**where, **_common_fields(result, CAUSES), **texts}


def _common_fields(failed: JudgeFailure | AgentFailure, causes: Mapping[str, str]) -> dict[str, Any]:
    own = fields(failed, "cause", "message", "calls")
    return own | {"meaning": causes.get(failed.cause, failed.cause), "reply": None}
