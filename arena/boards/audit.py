"""Board of the audit: points that judges gave to cheating answers, flips by other wordings, and their trust checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from arena.boards.conclusion import judge_changes
from arena.boards.left_out_judges import WithoutJudge, other_judges_table
from arena.boards.quantities import WON, quantity
from arena.boards.trust import CHEATS
from arena.present.blocks import Block, Board, Check, Checks, Section, Status, settled
from arena.present.numbers import COUNT, FIGURE, PERCENT, capital, counted, listed, with_interval
from arena.present.table import INTERVAL, Column, Table, fields, flat, plain
from arena.ratings.results import OtherJudges
from arena.results.audit import BAR as FLIPPED
from arena.results.audit import USUAL, AuditResults, Flips
from retrieval_eval.stats.components import JUDGES

WORDING: Final = "Wording of the prompt"
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
_FLIPS: Final = (
    Column("stage", "Judged"),
    Column("judge", "Judge"),
    Column("wording", "Wording", COUNT, "The usual wording is 1."),
    Column("queries", "Queries", COUNT),
    Column("n", "Labels", COUNT, "Verdicts, grades or labels by both wordings."),
    Column("flips", "Flipped", PERCENT, "Other than by the usual wording, chance of the judge included.", INTERVAL),
    Column("kappa", "Kappa", FIGURE, "Agreement of both wordings, corrected for chance.", INTERVAL),
    Column("least", "Would find", PERCENT, f"Flips that it shows to be above {PERCENT.write(FLIPPED)}, in 80%."),
)


class AuditBoard(Board, frozen=True):
    """Points given to known cheating answers, and flips by other wordings; all from ``AuditResults``."""

    results: AuditResults

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        return self.results.rows

    def sections(self) -> list[Section]:
        sections, checks = [], self.checks()
        if self.rows:
            lead = "Known cheats played against the agents. They are rated apart and are no agents."
            table = Table("audit", "Points given away to cheats", _COLUMNS, self.rows)
            fooled = Checks([check for check in checks if check.name != WORDING])
            sections.append(Section("audit", "Can the judge be gamed?", lead, [fooled, table]))
        if self.results.flips:
            blocks: list[Block] = [Checks([check for check in checks if check.name == WORDING])]
            blocks.append(
                Table("wordings", "Flipped by another wording", _FLIPS, [flat(row) for row in self.results.flips])
            )
            for stage, rows in self.results.differences.items():
                if any(row.parts for row in rows):
                    blocks.append(other_judges_table(rows, f"wordings-{stage.replace(' ', '-')}", "wording", stage))
            lead = "A random sample was judged again by other wordings of the same prompt."
            sections.append(Section("wordings", "Does the prompt's wording decide?", lead, blocks))
        return sections

    def checks(self) -> list[Check]:
        checks = [self._check(judge) for judge in dict.fromkeys(row["judge"] for row in self.rows)]
        return [*checks, self._in_other_words()] if self.results.flips else checks

    def _in_other_words(self) -> Check:
        status = {row: settled(row.flips, -1, FLIPPED) for row in self.results.flips}
        changes, words = self._changes(), self._change_words()
        verdict: Status = "passed"
        if "unknown" in status.values() or words:
            verdict = "unknown"
        if "failed" in status.values() or any(change.refuted for change in changes):
            verdict = "failed"
        measured = [row for row in status if row.flips.value is not None]
        finding = "No judgment of the sample has two wordings yet"
        if measured:
            worst = max(measured, key=lambda row: row.flips.value or 0)
            finding = f"Wording {worst.wording} flips {with_interval(worst.flips, PERCENT)} of {_counted(worst)}"
            finding += f"; the bar is {PERCENT.write(FLIPPED)}"
            least = [row.least for row in measured if row.least is not None]
            if least and verdict != "failed":
                finding += f". A true share of {PERCENT.write(max(least))} or more is found in 80% of such audits"
            finding += f". {capital(words)}" if words else ". No conclusion changes in the sample"
        return Check(
            WORDING,
            verdict,
            f"{finding}.",
            "Judge by several wordings or judges, or say in the prompt what decides."
            if verdict == "failed"
            else "Raise audit.sample, on more queries.",
        )

    def _changes(self) -> list[WithoutJudge]:
        """What each further wording alone changes in the conclusion from the sample's games."""
        ratings = dict(self.results.by_wording)
        usual = ratings.pop(USUAL, None)
        return [] if usual is None else judge_changes(replace(usual, without_judge=ratings))

    def _change_words(self) -> str:
        sentences = [f"by {change.judge} alone {change.leads}" for change in self._changes() if change.leads]
        sentences += [words for changes in self.results.changes.values() for words in changes]
        return listed(sentences, 3) if sentences else ""

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

    def json(self) -> dict[str, Any]:
        differences = self.results.differences.items()
        shape: dict[str, Any] = plain(
            {
                "cheats": [dict(row) for row in self.rows],
                "wordings": {
                    "flips": self.results.flips,
                    "differences": {stage: [*map(_of_wordings, rows)] for stage, rows in differences},
                    "changes": {"games": self._changes(), **self.results.changes},
                },
            }
        )
        return shape


def _of_wordings(row: OtherJudges) -> dict[str, Any]:
    parts = {"wordings" if name == JUDGES else name: share for name, share in row.parts.items()}
    return {**fields(row, "better", "worse", "interval"), "wordings": row.judges, "parts": parts}


def _counted(row: Flips) -> str:
    return f"{counted(row.n, 'label')} of {row.judge} ({row.stage})"


def board(results: AuditResults) -> AuditBoard:
    return AuditBoard(results)
