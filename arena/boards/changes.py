"""Compare two leaderboards: moved agents, and changes of agents, judges, queries and settings.

Ratings are relative to the field: adding or removing an agent moves the ratings of all others. Places are therefore
compared among the agents that both states have.
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
"""Number of names in a cell; the others are only counted."""
_LONGEST = 200
"""Largest number of characters of a setting's value in a cell."""
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
    """A leaderboard at one time.

    Attributes:
        subject: settings, agents, and a digest of every query, see ``arena.run.recorder.subject_of``.
        standings: the leaderboard's rows, best first, see ``arena.run.recorder.standings_of``.
    """

    subject: Mapping[str, Any]
    standings: Sequence[Mapping[str, Any]]


class Move(Struct, frozen=True):
    """One agent's places in two states of the leaderboard.

    Attributes:
        before, after: the agent's rows on the two leaderboards.
        place_before, place_after: places among the agents that both states have; 1 is the best.
        apart: whether the two intervals of its rating do not overlap, so that the change exceeds the rating's
            uncertainty; ``None`` if an interval is missing.
    """

    agent: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    place_before: int
    place_after: int
    apart: bool | None

    @property
    def points(self) -> float:
        """Rating points gained; negative if the rating fell."""
        return float(self.after["bt"] - self.before["bt"])


class SettingChange(Struct, frozen=True):
    """A changed setting: its path, such as ``judges.strict.model``, and both values; ``None`` if it was not set."""

    path: str
    before: Any
    after: Any


class NamesChanged(Struct, frozen=True):
    """Names that only the second state has, that only the first has, and that both have with different content."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Changes(Board, frozen=True):
    """Differences between two states.

    Attributes:
        moves: agents rated in both states, best rated first.
        agents: agents added, removed, and changed (other answers; detected only if both states have answer digests).
        judges: judges added, removed, and changed (same name, other settings).
        queries: ids of queries added, removed, and changed (other text).
        settings: all changed settings, sorted by path.
    """

    moves: tuple[Move, ...]
    agents: NamesChanged
    judges: NamesChanged
    queries: NamesChanged
    settings: tuple[SettingChange, ...]

    @property
    def same_subject(self) -> bool:
        """Whether agents, judges, queries and settings are the same, so that only verdicts can differ."""
        return not (self.agents or self.judges or self.queries or self.settings)

    def sections(self) -> list[Section]:
        blocks: list[Block] = [Remarks([self.in_short()])]
        if self.moves:
            blocks.append(Table("agents-in-both", "Agents in both", _BOTH, list(self._moves())))
        return [Section("changes", "What changed", "", [*blocks, *self._subjects()])]

    def in_short(self) -> str:
        """The outcome in one or two sentences."""
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
        if rows := [{"what": kind, **_names(names)} for kind, names in kinds.items() if names]:
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
    """List the differences between two states."""
    old_subject, new_subject = before.subject, after.subject
    old, new = (_settings(subject) for subject in (old_subject, new_subject))
    return Changes(
        tuple(_moves(before.standings, after.standings)),
        _difference(*_agents(old_subject, new_subject)),
        _difference(*(settings.get("judges", {}) for settings in (old, new))),
        _difference(*(subject.get("queries", {}) for subject in (old_subject, new_subject))),
        tuple(_differences("", old, new)),
    )


def _agents(old_subject: Mapping[str, Any], new_subject: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Agents of both states, with digests of their answers if both states have digests and the same queries."""
    if (
        "answers" in old_subject
        and "answers" in new_subject
        and old_subject.get("queries") == new_subject.get("queries")
    ):
        return [old_subject["answers"], new_subject["answers"]]
    return [dict.fromkeys(subject.get("agents", ())) for subject in (old_subject, new_subject)]


def _settings(subject: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded settings; rating settings that did not exist yet get their defaults, so they count as unchanged."""
    settings = dict(subject.get("settings", {}))
    if "ratings" in settings:
        settings["ratings"] = RatingsSection.model_validate(settings["ratings"]).model_dump(mode="json")
    return settings


def _moves(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[Move]:
    old_lines = {line["agent"]: line for line in before}
    new_lines = [line for line in after if line["agent"] in old_lines]
    shared = {line["agent"] for line in new_lines}
    old_place = {
        agent: position for position, agent in enumerate((agent for agent in old_lines if agent in shared), start=1)
    }
    for position, line in enumerate(new_lines, start=1):
        agent = line["agent"]
        yield Move(agent, old_lines[agent], line, old_place[agent], position, _apart(old_lines[agent], line))


def _apart(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool | None:
    if None in (old["bt_low"], new["bt_low"]):
        return None
    return bool(old["bt_high"] < new["bt_low"] or new["bt_high"] < old["bt_low"])


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


def _names(changes: NamesChanged) -> dict[str, str]:
    return {"added": _few(changes.added), "removed": _few(changes.removed), "changed": _few(changes.changed)}


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return clipped(", ".join(names[:_NAMED]), _LONGEST) + more


def _setting(value: object) -> str:
    return "not set" if value is None else clipped(str(value), _LONGEST)
