"""What became of the queries that agents were asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from arena.data.corpus import ReadCorpus
from arena.run.ledger import StageSummary
from arena.stages.answers.declared import Declared


@dataclass(slots=True)
class AgentSummary:
    """What became of the queries to one agent.

    Attributes:
        wanted: all of them.
        answered: in this run.
        known: answered without a call, earlier or by another process, or by an agent that is the same.
        causes: of the failures: of this run, and earlier ones that are not asked again.
        calls: of this run, failed attempts included.
        cost_usd: of this run's calls, as far as it is known.
        cost_unknown: replies and failures of this run without a known cost.
        seconds: from the first question to the last reply.
        stopped: why it was asked nothing more, empty if it was.
    """

    wanted: int
    answered: int = 0
    known: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0
    seconds: float = 0.0
    stopped: str = ""

    @property
    def failed(self) -> int:
        """No answer, with a cause."""
        return sum(self.causes.values())

    @property
    def left(self) -> int:
        """Not asked: the agent or its model stopped, or a stop was requested."""
        return self.wanted - self.answered - self.known - self.failed

    @property
    def complete(self) -> bool:
        """Whether every query has an answer."""
        return self.answered + self.known == self.wanted


@dataclass(frozen=True, slots=True)
class AgentsRun:
    """What a run did.

    Attributes:
        agents: by name.
        declared: the agents as a tournament knows them.
        corpus: what they search, ``None`` where none does.
        interrupted: whether it was told to stop.
    """

    agents: dict[str, AgentSummary]
    declared: list[Declared]
    corpus: ReadCorpus | None = None
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every agent has answered every query."""
        return all(summary.complete for summary in self.agents.values())

    @property
    def stage(self) -> StageSummary:
        """All agents together, as one stage of a run."""
        own = self.agents.values()
        return StageSummary(
            wanted=sum(each.wanted for each in own),
            judged=sum(each.answered for each in own),
            known=sum(each.known for each in own),
            failed=sum(each.failed for each in own),
            calls=sum(each.calls for each in own),
            cost_usd=math.fsum(each.cost_usd for each in own),
            cost_unknown=sum(each.cost_unknown for each in own),
        )

    @property
    def answers(self) -> int:
        """How many there are now, from this run or earlier ones."""
        return sum(summary.answered + summary.known for summary in self.agents.values())
