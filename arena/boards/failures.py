"""Board of failed judgments and answers: counts by cause, most frequent first, then each failure with its reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from arena.config.stages import all_tasks
from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import COUNT
from arena.present.table import Column, Table, plain
from arena.results.exam import open_items
from arena.results.replies import failures as failures_of_agents
from arena.run.answers import ASKED_AGAIN
from arena.store import Store, Wanted
from arena.store.rows import GradedSubject
from judges.errors import CAUSES, remedy
from judges.types import JudgeFailure, Task
from retrieval_eval.agents.types import AGENT_CAUSES, AgentFailure
from retrieval_eval.exam.items import SECRET_TEXT

_ABOUT_ITEMS: Final = frozenset({Task.GRADING, Task.EXTRACTION, Task.ANSWER_CHECK})
_AGENTS: Final = "agents"
_SHOWN: Final = 200
"""Characters of a reply to show in the text for people; programs get the whole reply."""
Failed: TypeAlias = Mapping[str, Any]
"""One failure of a judge, or of an agent that gave no answer, as a row for programs. Secret items are masked."""

_COLUMNS: Final = (
    Column("cause", "Cause"),
    Column("judge", "Judge"),
    Column("meaning", "Meaning"),
    Column("failed", "Failed", COUNT),
)


class FailuresBoard(Board, frozen=True):
    """All failures of some tournaments.

    Attributes:
        failed: the failures by tournament, agents' failures first.
        several: whether there are several tournaments, so that each line names its tournament.
        waiting: sentences on batches that are still running.
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
        causes = dict.fromkeys((failure["cause"], failure["task"] == _AGENTS) for failure in self.failed)
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
    """The failures of one tournament, agents' failures first.

    Raises:
        InputError: no such tournament.
    """
    settings = store.settings(tournament)  # raises InputError with the known names if there is no such tournament
    agent_failures = failures_of_agents(store, store.dataset(tournament), settings)
    where, open_ids = {"tournament": tournament}, open_items(store, tournament)
    agents = [
        {**where, "task": _AGENTS, "judge": "", "qid": query_id, "item": agent, **_common_fields(failure, AGENT_CAUSES)}
        for agent, query_id, failure in agent_failures
    ]
    results = (outcome for task in all_tasks() for outcome in store.outcomes(tournament, task))
    return agents + [
        {**where, **_of_judge(want, result, open_ids)} for want, result in results if isinstance(result, JudgeFailure)
    ]


_OF_AGENTS: Final = {
    "contract": "fix the agent's 'mapping' or prompt",
    "exception": "fix the agent's code",
    "not_recorded": "add the answer to the agent's file",
    "empty": "check why the agent's answer to this query is empty",
    "refusal": "check why the agent refuses",
    "bad_request": "read the message of the agent's server",
}


def _remedy(cause: str, *, of_agents: bool) -> str:
    """What to do about failures with this cause."""
    if not of_agents or cause not in _OF_AGENTS:
        return remedy(cause)
    again = "run again" if cause in ASKED_AGAIN else "run again with --retry-failed"
    return f"{_OF_AGENTS[cause]}; then {again}"


def _of_judge(want: Wanted, result: JudgeFailure, open_ids: Collection[str]) -> dict[str, Any]:
    """Fields of a judge's failure; hides the id of a secret item, and message and reply, which may quote it."""
    secret = want.task in _ABOUT_ITEMS and not set(GradedSubject.of(want).by) <= set(open_ids)
    item = " / ".join(filter(None, (want.item, SECRET_TEXT if secret else want.other, want.order)))
    where = {"task": want.task.value, "judge": want.judge, "qid": want.query_id, "item": item}
    texts = {"message": SECRET_TEXT} if secret else {"reply": result.reply}
    return {**where, **_common_fields(result, CAUSES), **texts}


def _common_fields(failed: JudgeFailure | AgentFailure, causes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "cause": failed.cause,
        "meaning": causes.get(failed.cause, failed.cause),
        "message": failed.message,
        "reply": None,
        "calls": failed.calls,
    }
