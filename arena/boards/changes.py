"""What changed between two states of tournaments, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from arena.boards.comparison import Changes, Difference
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import ALIGNED, COUNT, POINTS, SIGNED, clipped, listed
from arena.present.picture import Line, Mark, Whiskers
from arena.present.table import Column, Table
from retrieval_eval.stats.estimate import Estimate

_NAMED = 8
"""Names in a cell; the others are counted."""
_LONGEST = 200
"""Characters of a setting in a cell."""
_BOTH = (
    Column("agent", "Agent"),
    Column("place_before", "Place before", COUNT, "Among the agents that both states rate."),
    Column("place_after", "Place after", COUNT),
    Column("ranks_before", "Ranks before", ALIGNED, "The ranks it might have, among all agents there."),
    Column("ranks_after", "Ranks after", ALIGNED),
    Column("bt_before", "Rating before", POINTS, interval="Interval before"),
    Column("bt_after", "Rating after", POINTS, interval="Interval after"),
    Column("points", "Points", SIGNED, "Rating points gained."),
    Column(
        "intervals",
        "Intervals",
        meaning="Apart: they share no point, so the change is more than the ratings' own uncertainty.",
    ),
)


@dataclass(frozen=True, slots=True)
class ChangesBoard(Board):
    """Two states compared."""

    changes: Changes

    def sections(self) -> list[Section]:
        """What moved, and what differs in agents, judges, queries and settings."""
        blocks: list[Block] = [Remarks([self.in_short()])]
        if self.changes.moves:
            blocks += [Table("agents-in-both", "Agents in both", _BOTH, list(self._moves())), self._picture()]
        return [Section("changes", "What changed", "", [*blocks, *self._subjects()])]

    def in_short(self) -> str:
        """What it comes to, in one sentence or two."""
        changes = self.changes
        same = "Agents, judges, queries and settings are the same"
        if changes.same_subject and not changes.moves:
            return f"{same}; no agent has a rating in both."
        if changes.same_subject:
            moved = sum(move.place_before != move.place_after for move in changes.moves)
            return f"{same}; {moved} of {len(changes.moves)} agents changed place."
        kinds = {"agents": changes.agents, "judges": changes.judges, "queries": changes.queries}
        different = [kind for kind, difference in kinds.items() if difference]
        if any(change.path.split(".")[0] != "judges" for change in changes.settings):
            different.append("settings")
        return (
            f"Different are {listed(different)}. Ratings of different fields, judges or queries are not on one scale."
        )

    def _moves(self) -> Iterator[Mapping[str, Any]]:
        apart = {True: "apart", False: "overlap", None: None}
        for move in self.changes.moves:
            row: dict[str, Any] = {"agent": move.agent, "points": move.points, "intervals": apart[move.apart]}
            row |= {"place_before": move.place_before, "place_after": move.place_after}
            for when, line in (("before", move.before), ("after", move.after)):
                row[f"ranks_{when}"] = COUNT.between(line["rank_low"], line["rank_high"])
                row[f"bt_{when}"] = Estimate(line["bt"], line["bt_low"], line["bt_high"])
            yield row

    def _picture(self) -> Whiskers:
        lines = [
            Line(
                move.agent,
                [
                    Mark(move.before["bt"], move.before["bt_low"], move.before["bt_high"], "grey"),
                    Mark(move.after["bt"], move.after["bt_low"], move.after["bt_high"], "blue"),
                ],
            )
            for move in self.changes.moves
        ]
        return Whiskers(
            "ratings-in-both",
            "",
            "Ratings with intervals before and after. The table above has them.",
            "A mark is a Bradley-Terry rating, the line its interval. Where both states share games, overlapping "
            "intervals do not show that nothing changed.",
            lines,
            axis="Bradley-Terry rating, points",
            form=POINTS,
            legend={"grey": "before", "blue": "after"},
        )

    def _subjects(self) -> Iterator[Table]:
        changes = self.changes
        kinds = {"Agents": changes.agents, "Judges": changes.judges, "Queries": changes.queries}
        if rows := [{"what": kind, **_names(found)} for kind, found in kinds.items() if found]:
            columns = (Column("what", "What"), *(Column(name, name.capitalize()) for name in _names(changes.agents)))
            yield Table("subjects", "Agents, judges and queries that differ", columns, rows)
        if changes.settings:
            columns = (Column("path", "Setting"), Column("before", "Before"), Column("after", "After"))
            rows = [
                {name: _setting(value) if name != "path" else value for name, value in asdict(change).items()}
                for change in changes.settings
            ]
            yield Table("settings", "Settings that differ", columns, rows)


def _names(found: Difference) -> dict[str, str]:
    return {"added": _few(found.added), "removed": _few(found.removed), "changed": _few(found.changed)}


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return clipped(", ".join(names[:_NAMED]), _LONGEST) + more


def _setting(value: object) -> str:
    return "not set" if value is None else clipped(str(value), _LONGEST)
