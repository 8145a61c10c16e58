"""Two states of tournaments compared: whose place changed, and what of agents, judges, queries and settings did. Pure.

Ratings are relative to the field: where agents came or went, those of all others move without any of them changing. So
places are compared among the agents that both states have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from arena.config.ratings import RatingsSection
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, POINTS, SIGNED, clipped, listed
from arena.present.table import Column, Table

_NAMED = 8
"""Names in a cell; the others are counted."""
_LONGEST = 200
"""Characters of a setting in a cell."""
_BOTH = (
    Column("agent", "Agent"),
    Column("place_before", "Place before", COUNT, "Among the agents that both states rate."),
    Column("place_after", "Place after", COUNT),
    Column("bt_before", "Rating before", POINTS),
    Column("bt_after", "Rating after", POINTS),
    Column("points", "Points", SIGNED, "Rating points gained."),
    Column(
        "intervals",
        "Intervals",
        meaning="Apart: they share no point, so the change is more than the ratings' own uncertainty.",
    ),
)


class BoardState(Struct, frozen=True):
    """What a leaderboard was at one time.

    Attributes:
        subject: settings, agents, and a digest of every query, see ``arena.run.recorder.subject_of``.
        standings: the leaderboard's lines, best first, see ``arena.run.recorder.standings_of``.
    """

    subject: Mapping[str, Any]
    standings: Sequence[Mapping[str, Any]]


class Move(Struct, frozen=True):
    """One agent in both states.

    Attributes:
        before, after: its lines.
        place_before, place_after: among the agents that both have, 1 for the best rated.
        apart: whether the intervals of its rating share no point, so that the change is more than its own uncertainty;
            ``None`` where one is missing.
    """

    agent: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    place_before: int
    place_after: int
    apart: bool | None

    @property
    def points(self) -> float:
        """Rating points gained."""
        return float(self.after["bt"] - self.before["bt"])


class SettingChange(Struct, frozen=True):
    """One setting by its path, such as ``judges.strict.model``; ``None`` where it was not there."""

    path: str
    before: Any
    after: Any


class NamesChanged(Struct, frozen=True):
    """Names that only the second state has, that only the first has, and that both have with something else."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Changes(Board, frozen=True):
    """What is different in the second of two states.

    Attributes:
        moves: of the agents rated in both, best rated first.
        agents: an agent is changed that gives other answers; known of runs that kept digests of them.
        judges: a judge is changed that is asked otherwise under its old name.
        queries: by id; a query is changed that has another text.
        settings: all that differ, in the order of their paths.
    """

    moves: tuple[Move, ...]
    agents: NamesChanged
    judges: NamesChanged
    queries: NamesChanged
    settings: tuple[SettingChange, ...]

    @property
    def same_subject(self) -> bool:
        """Whether both are of the same agents, judges, queries and settings: then they differ by what is judged."""
        return not (self.agents or self.judges or self.queries or self.settings)

    def sections(self) -> list[Section]:
        """What moved, and what differs in agents, judges, queries and settings."""
        blocks: list[Block] = [Remarks([self.in_short()])]
        if self.moves:
            blocks.append(Table("agents-in-both", "Agents in both", _BOTH, list(self._moves())))
        return [Section("changes", "What changed", "", [*blocks, *self._subjects()])]

    def in_short(self) -> str:
        """What it comes to, in one sentence or two."""
        same = "Agents, judges, queries and settings are the same"
        if self.same_subject and not self.moves:
            return f"{same}; no agent has a rating in both."
        if self.same_subject:
            moved = sum(move.place_before != move.place_after for move in self.moves)
            return f"{same}; {moved} of {len(self.moves)} agents changed place."
        kinds = {"agents": self.agents, "judges": self.judges, "queries": self.queries}
        different = [kind for kind, difference in kinds.items() if difference]
        if any(change.path.split(".")[0] != "judges" for change in self.settings):
            different.append("settings")
        scale = "Ratings of different agents, judges or queries are not on one scale; History anchors them."
        return f"Changed: {listed(different)}. {scale}"

    def _moves(self) -> Iterator[Mapping[str, Any]]:
        apart = {True: "apart", False: "overlap", None: None}
        for move in self.moves:
            row: dict[str, Any] = {"agent": move.agent, "points": move.points, "intervals": apart[move.apart]}
            row |= {"place_before": move.place_before, "place_after": move.place_after}
            for when, line in (("before", move.before), ("after", move.after)):
                row[f"bt_{when}"] = line["bt"]
            yield row

    def _subjects(self) -> Iterator[Table]:
        kinds = {"Agents": self.agents, "Judges": self.judges, "Queries": self.queries}
        if rows := [{"what": kind, **_names(found)} for kind, found in kinds.items() if found]:
            columns = (Column("what", "What"), *(Column(name, name.capitalize()) for name in _names(self.agents)))
            yield Table("subjects", "Agents, judges and queries that differ", columns, rows)
        if self.settings:
            columns = (Column("path", "Setting"), Column("before", "Before"), Column("after", "After"))
            rows = [
                {name: _setting(value) if name != "path" else value for name, value in asdict(change).items()}
                for change in self.settings
            ]
            yield Table("settings", "Settings that differ", columns, rows)


def compare(before: BoardState, after: BoardState) -> Changes:
    """What changed from one state to the other."""
    one, other = before.subject, after.subject
    old, new = (_settings(subject) for subject in (one, other))
    return Changes(
        tuple(_moves(before.standings, after.standings)),
        _difference(*_agents(one, other)),
        _difference(*(settings.get("judges", {}) for settings in (old, new))),
        _difference(*(subject.get("queries", {}) for subject in (one, other))),
        tuple(_differences("", old, new)),
    )


def _agents(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The agents of both; with digests of their answers where both were kept with these and are of the same queries."""
    if "answers" in one and "answers" in other and one.get("queries") == other.get("queries"):
        return [one["answers"], other["answers"]]
    return [dict.fromkeys(subject.get("agents", ())) for subject in (one, other)]


def _settings(subject: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the defaults of keys on ratings that came after they were kept: these have not changed."""
    settings = dict(subject.get("settings", {}))
    if "ratings" in settings:
        settings["ratings"] = RatingsSection.model_validate(settings["ratings"]).model_dump(mode="json")
    return settings


def _moves(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[Move]:
    first = {line["agent"]: line for line in before}
    new = [line for line in after if line["agent"] in first]
    both = {line["agent"] for line in new}
    place = {agent: at for at, agent in enumerate((agent for agent in first if agent in both), start=1)}
    for at, line in enumerate(new, start=1):
        agent = line["agent"]
        yield Move(agent, first[agent], line, place[agent], at, _apart(first[agent], line))


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool | None:
    if None in (one["bt_low"], other["bt_low"]):
        return None
    return bool(one["bt_high"] < other["bt_low"] or other["bt_high"] < one["bt_low"])


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> NamesChanged:
    return NamesChanged(
        tuple(name for name in after if name not in before),
        tuple(name for name in before if name not in after),
        tuple(name for name in after if name in before and before[name] != after[name]),
    )


def _differences(path: str, before: Any, after: Any) -> Iterator[SettingChange]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            yield from _differences(f"{path}.{name}" if path else name, before.get(name), after.get(name))
    elif before != after:
        yield SettingChange(path, before, after)


def _names(found: NamesChanged) -> dict[str, str]:
    return {"added": _few(found.added), "removed": _few(found.removed), "changed": _few(found.changed)}


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return clipped(", ".join(names[:_NAMED]), _LONGEST) + more


def _setting(value: object) -> str:
    return "not set" if value is None else clipped(str(value), _LONGEST)
