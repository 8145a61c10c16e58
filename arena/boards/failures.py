"""What failed and why: counted by cause, the most frequent first, and then one by one with the last reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from arena.config.stages import TASKS
from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import COUNT
from arena.present.table import Column, Table, plain
from arena.results.exam import open_items
from arena.results.replies import failures as failures_of_agents
from arena.run.answers import ASKED_AGAIN
from arena.store import Store, Wanted
from arena.store.subjects import PassageSubject
from judges.errors import CAUSES, remedy
from judges.types import JudgeFailure, Task
from retrieval_eval.agents.types import AGENT_CAUSES, AgentFailure
from retrieval_eval.exam.items import SECRET_TEXT

_ABOUT_ITEMS: Final = frozenset({Task.GRADING, Task.EXTRACTION, Task.ANSWER_CHECK})
_AGENTS: Final = "agents"
_SHOWN: Final = 200
"""Characters of a reply that a person needs to see what went wrong; programs get all."""
Failed: TypeAlias = Mapping[str, Any]
"""One failure, of a judge or the answer that an agent owes, as programs get it. Nothing of a secret item is in it."""

_COLUMNS: Final = (
    Column("cause", "Cause"),
    Column("judge", "Judge"),
    Column("meaning", "Meaning"),
    Column("failed", "Failed", COUNT),
)


class FailuresBoard(Board, frozen=True):
    """All failures of some tournaments.

    Attributes:
        failed: by tournament, agents first.
        several: whether lines say of which tournament they are.
        waiting: what is under way, in words.
    """

    failed: Sequence[Failed]
    several: bool = False
    waiting: Sequence[str] = ()

    def sections(self) -> Sequence[Section]:
        """One: the counts, then each failure."""
        counts = Counter(tuple(own[name] for name in ("cause", "judge", "meaning")) for own in self.failed)
        rows = [
            {"cause": cause, "judge": judge, "meaning": meaning, "failed": count}
            for (cause, judge, meaning), count in sorted(counts.items(), key=lambda own: (-own[1], own[0]))
        ]
        lines = [line for own in self.failed for line in self._lines(own)]
        causes = dict.fromkeys((own["cause"], own["task"] == _AGENTS) for own in self.failed)
        helps = [f"what helps with {cause}: {_remedy(cause, of_agents=of_agents)}" for cause, of_agents in causes]
        said = Remarks([*lines, *helps, f"{COUNT.write(len(self.failed))} failed", *self.waiting])
        return [Section("failures", "Failures", "", [Table("failures", "", _COLUMNS, rows), said])]

    def json(self) -> Any:
        """A list of them."""
        return plain(self.failed)

    def _lines(self, own: Failed) -> Iterator[str]:
        whose = own["tournament"] + ": " if self.several else ""
        place = " ".join(filter(None, (own["task"], own["judge"], own["qid"], own["item"])))
        yield f"{whose}{place}: {own['cause']}: {own['message']}"
        if own["reply"]:
            yield f"    reply: {own['reply'][:_SHOWN]!r}"


def failed_in(store: Store, tournament: str) -> list[dict[str, Any]]:
    """The failures of one tournament, answers that agents owe first.

    Raises:
        InputError: no such tournament.
    """
    settings = store.settings(tournament)  # says which tournaments there are, if not this one
    owed = failures_of_agents(store, store.dataset(tournament), settings)
    where, open_ids = {"tournament": tournament}, open_items(store, tournament)
    agents = [
        {**where, "task": _AGENTS, "judge": "", "qid": query_id, "item": agent, **_what(failure, AGENT_CAUSES)}
        for agent, query_id, failure in owed
    ]
    judged = (outcome for task in TASKS for outcome in store.outcomes(tournament, task))
    return agents + [
        {**where, **_of_judge(want, result, open_ids)} for want, result in judged if isinstance(result, JudgeFailure)
    ]


_OF_AGENTS: Final = {
    "contract": "mend the agent's 'mapping' or prompt",
    "exception": "mend the agent's code",
    "not_recorded": "add the answer to the agent's file",
    "empty": "see what the agent says to this query",
    "refusal": "see why the agent refuses",
    "bad_request": "see what the agent's server says",
}


def _remedy(cause: str, *, of_agents: bool) -> str:
    """What brings what failed, in words."""
    if not of_agents or cause not in _OF_AGENTS:
        return remedy(cause)
    again = "run again" if cause in ASKED_AGAIN else "run again with --retry-failed"
    return f"{_OF_AGENTS[cause]}; then {again}"


def _of_judge(want: Wanted, result: JudgeFailure, open_ids: Collection[str]) -> dict[str, Any]:
    """One failure. Of a secret item neither its id is shown nor what was said about it, which may repeat it."""
    secret = want.task in _ABOUT_ITEMS and not set(PassageSubject.of(want).item_ids) <= set(open_ids)
    item = " / ".join(filter(None, (want.item, SECRET_TEXT if secret else want.other, want.order)))
    where = {"task": want.task.value, "judge": want.judge, "qid": want.query_id, "item": item}
    said = {"message": SECRET_TEXT} if secret else {"reply": result.reply}
    return {**where, **_what(result, CAUSES), **said}


def _what(failed: JudgeFailure | AgentFailure, causes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "cause": failed.cause,
        "meaning": causes.get(failed.cause, failed.cause),
        "message": failed.message,
        "reply": None,
        "calls": failed.calls,
    }
