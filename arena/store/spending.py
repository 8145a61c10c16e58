"""What each runner has spent: added up in the transaction that keeps its results, so that not even a kill loses any.

A run has one runner, and only who asked for a result has it on the account: what was found in the store or imported is
nobody's spending, and what another run asked for is that one's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection
from sqlmodel import Field, SQLModel, select

from arena.store.bulk import CHUNK, among, chunks, insert_rows
from arena.store.rows import Result, has_table, table
from arena.store.runners import Runner
from judges.types import Judgment
from retrieval_eval.agents.types import AgentReply, Reply

AGENTS: Final = "agents"
"""The stage of answers; the others are called as their task is."""


class SpendingRow(SQLModel, table=True):
    """One runner's results of one stage, see ``Spent``."""

    __tablename__ = "spending"
    runner_id: str = Field(primary_key=True)
    stage: str = Field(primary_key=True)
    judged: int
    failed: int
    calls: int
    input_tokens: int
    output_tokens: int
    tokens_unknown: int
    cost_usd: float
    cost_unknown: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What came of asking, and what that took.

    Attributes:
        judged: judgments, or answers of agents.
        failed: results without one.
        calls: requests sent, attempts included.
        input_tokens, output_tokens: of the results of which both are known.
        tokens_unknown: the other results.
        cost_usd: as far as prices and tokens are known.
        cost_unknown: results without a known cost.
    """

    judged: int = 0
    failed: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_unknown: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(*(getattr(self, name) + getattr(other, name) for name in _FIGURES))

    @property
    def results(self) -> int:
        """All that was asked for and came to an end."""
        return self.judged + self.failed

    @property
    def tokens_known(self) -> bool:
        """Whether the tokens are those of anything, or nothing took any."""
        return self.tokens_unknown < self.results or not self.results

    @property
    def cost_known(self) -> bool:
        """Whether the cost is that of anything, or nothing was asked for."""
        return self.cost_unknown < self.results or not self.results


ByStage: TypeAlias = Mapping[str, Spent]

_FIGURES: Final = tuple(figure.name for figure in fields(Spent))
_ADDED: Final = ", ".join(f"{name} = spending.{name} + excluded.{name}" for name in _FIGURES)


def add(connection: Connection, runner: Runner, results: Iterable[tuple[str, Result | Reply]]) -> None:
    """Put results, each with its stage, on a runner's account."""
    stages: dict[str, Spent] = {}
    for stage, result in results:
        stages[stage] = stages.get(stage, Spent()) + _of(result)
    rows = [{"runner_id": runner.runner_id, "stage": stage, **asdict(own)} for stage, own in sorted(stages.items())]
    insert_rows(connection, SpendingRow, rows, f"(runner_id, stage) DO UPDATE SET {_ADDED}")


def spent_by(connection: Connection, runner_ids: Sequence[str]) -> dict[str, dict[str, Spent]]:
    """What these runners have spent by stage; none for one that has kept nothing, or did so before it was counted."""
    found: dict[str, dict[str, Spent]] = {}
    if has_table(connection, SpendingRow):
        accounts = table(SpendingRow)
        for chunk in chunks(runner_ids, CHUNK):
            chosen = select(accounts).where(among(connection, accounts.c.runner_id, chunk)).order_by(accounts.c.stage)
            for row in connection.execute(chosen):
                found.setdefault(row.runner_id, {})[row.stage] = Spent(*row[2:])
    return found


def told(stages: Mapping[str, Mapping[str, Any]]) -> dict[str, Spent]:
    """What a run said of its stages in the end, where nobody counted meanwhile.

    Tokens are not among it, and among the failures may be earlier ones.
    """
    names = ("judged", "failed", "calls", "cost_usd", "cost_unknown")
    asked = {stage: own for stage, own in stages.items() if own["calls"]}
    return {
        stage: Spent(tokens_unknown=own["judged"] + own["failed"], **{name: own[name] for name in names})
        for stage, own in asked.items()
    }


def _of(result: Result | Reply) -> Spent:
    good = isinstance(result, Judgment | AgentReply)
    sent, received = result.usage.input_tokens, result.usage.output_tokens
    unknown = sent is None or received is None
    return Spent(
        judged=int(good),
        failed=int(not good),
        calls=result.calls,
        input_tokens=0 if unknown else sent or 0,
        output_tokens=0 if unknown else received or 0,
        tokens_unknown=int(unknown),
        cost_usd=result.cost_usd or 0.0,
        cost_unknown=int(result.cost_usd is None),
    )
