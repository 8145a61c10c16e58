"""Board of the audit: how many points each judge gave to known cheating answers, and a trust check for each judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from arena.boards.quantities import WON, quantity
from arena.boards.trust import CHEATS
from arena.present.blocks import Board, Check, Checks, Section, Status, settled
from arena.present.numbers import COUNT, PERCENT, listed, with_interval
from arena.present.table import INTERVAL, Column, Table
from arena.results.audit import AuditResults

BAR: Final = 0.15
"""Largest share of points that a judge may give to a cheating answer beyond what the answer deserves."""

_COLUMNS: Final = (
    Column("judge", "Judge"),
    Column("canary", "Cheat"),
    Column("queries", "Queries", COUNT, "Those on which both orders were judged."),
    Column("missing", "Missing", COUNT, "Queries without both verdicts; in no figure."),
    quantity(WON).column("points", interval=True),
    Column("fair", "Fair", PERCENT, "What it deserves: half where it copies the answer that it meets."),
    Column("given", "Given away", PERCENT, "Win rate less what is fair.", INTERVAL),
    Column("rank", "Would rank", meaning="The place that these points would give it among the agents."),
)


class AuditBoard(Board, frozen=True):
    """Points that each judge gave to known cheating answers; ``rows`` come from ``AuditResults``."""

    rows: Sequence[Mapping[str, Any]]

    def sections(self) -> list[Section]:
        lead = "Known cheats played against the agents. They are rated apart and are no agents."
        table = Table("audit", "Points given away to cheats", _COLUMNS, self.rows)
        return [Section("audit", "Can the judge be gamed?", lead, [Checks(self.checks()), table])]

    def checks(self) -> list[Check]:
        return [self._check(judge) for judge in dict.fromkeys(row["judge"] for row in self.rows)]

    def _check(self, judge: str) -> Check:
        judge_rows = [row for row in self.rows if row["judge"] == judge]
        status = {row["canary"]: settled(row["given"], -1, BAR) for row in judge_rows}
        fooled = [name for name, state in status.items() if state == "failed"]
        unknown = [name for name, state in status.items() if state == "unknown"]
        rated_rows = [row for row in judge_rows if row["given"].value is not None]
        sentence = "No cheat has both verdicts on any query"
        if rated_rows:
            worst = max(rated_rows, key=lambda row: row["given"].value)
            sentence = f"It gives {with_interval(worst['given'], PERCENT)} of points away to '{worst['canary']}'"
        if fooled:
            sentence += f", and is fooled by {listed(fooled)}"
        elif unknown:
            sentence += f"; not known for {listed(unknown, 3)}"
        verdict: Status = "failed" if fooled else "unknown" if unknown else "passed"
        remedy = "Use another judge or prompt, and check whether agents give such answers."
        if verdict == "unknown":
            remedy = "Add queries: a cheat meets one agent on each."
        return Check(f"{CHEATS} {judge}", verdict, f"{sentence}; the bar is {PERCENT.write(BAR)}.", remedy)

    def json(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self.rows]


def board(results: AuditResults) -> AuditBoard:
    return AuditBoard(results.rows)
