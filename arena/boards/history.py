"""Ratings over a tournament's runs and over versions of an agent, anchored to the agents that did not change.

Ratings are relative to the field, so two states cannot be compared directly. The ratings of each state are shifted by a
constant so that the unchanged agents (same answers as now) have the mean rating that they have now. When data are
replaced, earlier verdicts are lost; the leaderboard stored at the end of each run remains.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from arena.boards.runs import run_names
from arena.config.ratings import RatingsSection
from arena.data.dataset import Dataset
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, POINTS, SIGNED, clipped, counted, listed
from arena.present.picture import Line, Mark, Whiskers
from arena.present.table import INTERVAL, Column, Table, TableRow
from arena.results.ratings import Leaderboard
from arena.run.recorder import answer_digests, standings_of, subject_of
from arena.store.runs import StoredRun
from retrieval_eval.stats import Floats
from retrieval_eval.stats.bootstrap import estimates, units_of
from retrieval_eval.stats.estimate import Drawn, Estimate

_MOST_NAMES: Final = 8
_LONGEST: Final = 200
"""Largest number of characters of names or of a setting in a table cell."""
_PLACES: Final = (
    Column("agent", "Agent"),
    Column("place_before", "Place before", COUNT, "Among the agents that both states rate."),
    Column("place_after", "Place after", COUNT),
)
_POINTS: Final = (
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
    """A tournament's leaderboard at one time, with the settings and data that it came from.

    Attributes:
        subject: settings, agents, and a digest of every query, see ``arena.run.recorder.subject_of``.
        standings: the leaderboard's rows, best first, see ``arena.run.recorder.standings_of``.
    """

    subject: Mapping[str, Any]
    standings: Sequence[Mapping[str, Any]]


class NamesChanged(Struct, frozen=True):
    """Names (of agents, judges or queries) that were added, removed, or changed in content between two states."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Changes(Board, frozen=True):
    """Differences between two states of a leaderboard.

    Attributes:
        moves: a row for each agent that both states rate, best first now; places are among these agents.
        agents: agents added, removed, and changed (other answers; detected only if both states have answer digests).
        queries: ids of queries added, removed, and changed (other text).
        settings: values before and after, ``None`` if not set, by path such as ``judges.strict.model``.
    """

    moves: Sequence[Mapping[str, Any]]
    agents: NamesChanged
    judges: NamesChanged
    queries: NamesChanged
    settings: Mapping[str, tuple[Any, Any]]

    @property
    def names(self) -> dict[str, NamesChanged]:
        kinds = {"agents": self.agents, "judges": self.judges, "queries": self.queries}
        return {kind: names for kind, names in kinds.items() if names}

    @property
    def same_subject(self) -> bool:
        """Whether agents, judges, queries and settings are the same, so that only verdicts can differ."""
        return not (self.names or self.settings)

    def changed_settings(self, *elsewhere: str) -> bool:
        """Whether a setting changed outside these sections of the configuration."""
        return any(path.split(".")[0] not in elsewhere for path in self.settings)

    def sections(self) -> list[Section]:
        blocks: list[Block] = [Remarks([self.in_short()])]
        if self.moves:
            shown: Sequence[Column] = (*_PLACES, *_POINTS) if self.same_subject else _PLACES
            blocks.append(Table("agents-in-both", "Agents in both", shown, self.moves))
        if rows := [
            {"what": kind.capitalize(), **{how: _few(some) for how, some in asdict(names).items()}}
            for kind, names in self.names.items()
        ]:
            columns = (Column("what", "What"), *(Column(how, how.capitalize()) for how in asdict(self.agents)))
            blocks.append(Table("subjects", "Agents, judges and queries that differ", columns, rows))
        if self.settings:
            columns = (Column("path", "Setting"), Column("before", "Before"), Column("after", "After"))
            rows = [
                {"path": path, "before": _setting(before), "after": _setting(after)}
                for path, (before, after) in self.settings.items()
            ]
            blocks.append(Table("settings", "Settings that differ", columns, rows))
        return [Section("changes", "What changed", "", blocks)]

    def in_short(self) -> str:
        if not self.same_subject:
            different = [*self.names, *(["settings"] if self.changed_settings("judges") else [])]
            scale = (
                "Ratings before and after are not on one scale then, so no points are shown here; History anchors them "
                "to the agents that did not change."
            )
            return f"Changed: {listed(different)}. {scale}"
        outcome = "no agent has a rating in both"
        if self.moves:
            moved = sum(move["place_before"] != move["place_after"] for move in self.moves)
            outcome = f"{moved} of {len(self.moves)} agents changed place"
        return f"Agents, judges, queries and settings are the same; {outcome}."


def compare(before: BoardState, after: BoardState) -> Changes:
    subjects = before.subject, after.subject
    old, new = map(_settings, subjects)
    return Changes(
        [*_moves(before.standings, after.standings)],
        _difference(*_agents(*subjects)),
        _difference(old.get("judges", {}), new.get("judges", {})),
        _difference(*(subject.get("queries", {}) for subject in subjects)),
        dict(_differences("", old, new)),
    )


def _agents(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Agents of both states, with digests of their answers if both states have digests and the same queries."""
    if "answers" in old and "answers" in new and old.get("queries") == new.get("queries"):
        return [old["answers"], new["answers"]]
    return [dict.fromkeys(subject.get("agents", ())) for subject in (old, new)]


def _settings(subject: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded settings; rating settings that did not exist yet get their defaults, so they count as unchanged."""
    settings = dict(subject.get("settings", {}))
    if "ratings" in settings:
        settings["ratings"] = RatingsSection.model_validate(settings["ratings"]).model_dump(mode="json")
    return settings


def _moves(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[TableRow]:
    rated = {line["agent"] for line in after}
    old_lines = {line["agent"]: line for line in before if line["agent"] in rated}
    old_places = {agent: place for place, agent in enumerate(old_lines, start=1)}
    for place, new in enumerate((line for line in after if line["agent"] in old_lines), start=1):
        old, intervals = old_lines[new["agent"]], None
        if None not in (old["bt_low"], new["bt_low"]):
            apart = old["bt_high"] < new["bt_low"] or new["bt_high"] < old["bt_low"]
            intervals = "apart" if apart else "overlap"
        yield {
            "agent": new["agent"],
            "place_before": old_places[new["agent"]],
            "place_after": place,
            "bt_before": old["bt"],
            "bt_after": new["bt"],
            "points": new["bt"] - old["bt"],
            "intervals": intervals,
        }


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> NamesChanged:
    return NamesChanged(
        tuple(name for name in after if name not in before),
        tuple(name for name in before if name not in after),
        tuple(name for name in after if name in before and before[name] != after[name]),
    )


def _differences(path: str, before: Any, after: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            yield from _differences(f"{path}.{name}" if path else name, before.get(name), after.get(name))
    elif before != after:
        yield path, (before, after)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return clipped(", ".join(names[:_MOST_NAMES]), _LONGEST) + more


def _setting(value: object) -> str:
    return "not set" if value is None else clipped(str(value), _LONGEST)


NOW: Final = "now"
_KINDS: Final = ("judges", "queries", "settings")
"""What may differ between two moments besides the agents' answers."""
_Z: Final = 1.959964
"""Quantile of the normal distribution for a 95 % interval."""
_DRAWN: Final = 30
"""Largest number of runs in the picture; older runs are left out."""
_NAMED: Final = 6


class Moment(BoardState, frozen=True):
    """A state of the leaderboard, with the data to compare it with the present state.

    Attributes:
        name: when its run began, or ``NOW``.
        unchanged: agents whose present answers to the queries of this state are the same as in this state.
        differs: which of judges, queries and settings have changed since.
        variances: variance of the difference of every two ratings, NaN if unknown.
        draws: ratings on bootstrap samples of the queries, shape (samples, agents); no rows if the run stored none.
    """

    name: str
    unchanged: frozenset[str]
    differs: tuple[str, ...]
    variances: Floats
    draws: Floats

    @property
    def ratings(self) -> dict[str, float]:
        return {line["agent"]: line["bt"] for line in self.standings}

    def distance(self, agent: str, anchors: Collection[str]) -> Estimate:
        """The agent's rating minus the anchors' mean rating, with an interval if the variances are known."""
        ratings = self.ratings
        value = ratings[agent] - fmean(ratings[anchor] for anchor in anchors)
        names = list(ratings)
        index, anchor_indices = names.index(agent), [names.index(anchor) for anchor in anchors]
        # Variance of a contrast, from the variances of pairwise differences.
        variance = (
            self.variances[index, anchor_indices].mean()
            - self.variances[np.ix_(anchor_indices, anchor_indices)].mean() / 2
        )
        if math.isnan(variance):
            return Estimate(value)
        half = _Z * math.sqrt(max(variance, 0.0))
        return Estimate(value, value - half, value + half)

    def drawn(self, agent: str, anchors: Collection[str]) -> Floats:
        """``distance`` on each bootstrap sample of the queries, NaN where the sample has no ratings."""
        names = list(self.ratings)
        anchor_indices = [names.index(anchor) for anchor in anchors]
        distances: Floats = self.draws[:, names.index(agent)] - self.draws[:, anchor_indices].mean(axis=1)
        return distances

    def is_paired(self, other: Moment) -> bool:
        """Whether the bootstrap samples of both moments have the same queries and seed, so that they can be paired."""
        seeds = [moment.subject.get("settings", {}).get("ratings", {}).get("seed") for moment in (self, other)]
        query_sets = [(moment.subject["queries"], moment.subject.get("conversations", {})) for moment in (self, other)]
        same = query_sets[0] == query_sets[1] and seeds[0] == seeds[1]
        return same and 0 < len(self.draws) == len(other.draws)


def moment(state: BoardState, name: str, unchanged: frozenset[str], differs: tuple[str, ...]) -> Moment:
    count = len(state.standings)
    variances = np.full((count, count), math.nan)
    np.fill_diagonal(variances, 0.0)
    for row, line in enumerate(state.standings):
        for other, error in enumerate(line.get("se", ()), start=row + 1):
            variances[row, other] = variances[other, row] = math.nan if error is None else error**2
    draws = [line.get("draws", ()) for line in state.standings]
    rating_draws = np.array(draws, np.float64).T if all(draws) else np.empty((0, count))
    return Moment(state.subject, state.standings, name, unchanged, differs, variances, rating_draws)


class Version(Struct, frozen=True):
    """A version of an agent: the moments between two changes of its answers.

    Attributes:
        change: rating minus the previous version's rating; ``None`` if no unchanged agent (anchor) connects them.
        paired: whether the interval of the change comes from paired bootstrap samples of the same queries.
        also: what else changed between the two versions, such as the judges.
        on_scale: whether the rating is on the present scale; other ratings are not shown.
    """

    agent: str
    number: int
    since: str
    rating: Estimate
    change: Estimate | None
    paired: bool
    also: str = ""
    on_scale: bool = True


class HistoryBoard(Board, frozen=True):
    """Ratings over the runs, oldest first; the picture shows ``agent``, or the agent with the most versions."""

    moments: Sequence[Moment]
    agent: str | None = None

    def sections(self) -> list[Section]:
        versions = [version for agent in self.agents for version in reversed(self.versions(agent))]
        columns = [
            Column("agent", "Agent"),
            Column("version", "Version", COUNT, "A version with other answers than the one before gets a new number."),
            Column("since", "Since", meaning="The first run with these answers."),
            Column("rating", "Rating", POINTS, "At the last run with these answers.", interval=INTERVAL),
            Column("change", "Change", SIGNED, "Points gained on the version before.", interval=INTERVAL),
            Column("interval", "Interval from"),
            Column(
                "also", "Also changed", meaning="What else changed between the two versions, and may be the reason."
            ),
        ]
        rows = [
            asdict(version)
            | {"version": version.number, "rating": version.rating if version.on_scale else None}
            | {"interval": None if version.change is None else "same queries" if version.paired else "independent"}
            for version in versions
        ]
        note = (
            "Same queries: both versions were judged on them, and its interval is from a paired bootstrap over them. "
            "Independent: they were not, or an earlier version of ragleague judged; its interval is wider than needed."
        )
        blocks: list[Block] = [Remarks(list(self._remarks())), self.picture()]
        return [Section("history", "History", "", [*blocks, Table("versions", "Versions", columns, rows, [note])])]

    @property
    def agents(self) -> list[str]:
        """All agents that ever had a rating: present agents, best first, then removed agents."""
        return list(dict.fromkeys(line["agent"] for moment in reversed(self.moments) for line in moment.standings))

    @property
    def drawn(self) -> str:
        return self.agent or max(self.agents, key=lambda agent: len(self.versions(agent)))

    def anchors(self, *moments: Moment) -> list[str]:
        """Agents rated at present and at each of these moments, with the same answers throughout."""
        unchanged = [set(moment.ratings) & moment.unchanged for moment in (*moments, self.moments[-1])]
        return sorted(set.intersection(*unchanged))

    def on_scale(self, moment: Moment) -> bool:
        """Whether ratings at a moment can be compared with the present ones: an agent gives the same answers."""
        return moment is self.moments[-1] or bool(self.anchors(moment))

    def rating(self, moment: Moment, agent: str) -> Estimate:
        """An agent's rating at a moment, shifted to the present scale; unshifted unless ``on_scale``."""
        anchors, now = self.anchors(moment), self.moments[-1]
        if moment is now or not anchors:
            line = next(line for line in moment.standings if line["agent"] == agent)
            return Estimate(line["bt"], line["bt_low"], line["bt_high"])
        distance, level = moment.distance(agent, anchors), fmean(now.ratings[anchor] for anchor in anchors)
        assert distance.value is not None
        if distance.low is None or distance.high is None:
            return Estimate(distance.value + level)
        return Estimate(distance.value + level, distance.low + level, distance.high + level)

    def versions(self, agent: str) -> list[Version]:
        groups: list[list[Moment]] = []
        for moment in self.moments:
            if agent in moment.ratings:
                if groups and _same(groups[-1][-1], moment, agent):
                    groups[-1].append(moment)
                else:
                    groups.append([moment])
        versions = []
        for number, group in enumerate(groups, start=1):
            before = groups[number - 2][-1] if number > 1 else group[-1]
            change, paired = (None, False) if number == 1 else self._change(before, group[-1], agent)
            differing = [kind for kind in _KINDS if (kind in before.differs) != (kind in group[-1].differs)]
            also = listed(differing) if change is not None and differing else ""
            rating, on_scale = self.rating(group[-1], agent), self.on_scale(group[-1])
            versions.append(Version(agent, number, group[0].name, rating, change, paired, also, on_scale))
        return versions

    def _change(self, before: Moment, after: Moment, agent: str) -> tuple[Estimate | None, bool]:
        anchors = self.anchors(before, after)
        if not anchors:
            return None, False
        old, new = (moment.distance(agent, anchors) for moment in (before, after))
        assert old.value is not None
        assert new.value is not None
        value = new.value - old.value
        if before.is_paired(after):
            changes = after.drawn(agent, anchors) - before.drawn(agent, anchors)
            known_changes = changes[~np.isnan(changes), np.newaxis]
            if len(known_changes) > len(changes) / 2:
                units = units_of(after.subject["queries"], after.subject.get("conversations", {}))
                (change,) = estimates([value], known_changes, np.unique(units).size)
                return change, True
        if old.low is None or new.low is None:
            return Estimate(value), False
        half = math.hypot(old.value - old.low, new.value - new.low)
        return Estimate(value, value - half, value + half), False

    def _remarks(self) -> Iterator[str]:
        earlier = self.moments[:-1]
        anchored = [moment for moment in earlier if self.anchors(moment)]
        if anchored:
            always = self.anchors(*anchored)
            runs = "each earlier run" if len(anchored) == len(earlier) else f"{len(anchored)} of {len(earlier)} runs"
            named = f": always {listed(always, _NAMED)}" if always else ""
            yield f"Ratings of {runs} are anchored to the agents whose answers are the same now{named}."
        if unanchored := len(earlier) - len(anchored):
            runs, them = counted(unanchored, "run has", "runs have"), "it" if unanchored == 1 else "them"
            yield (
                f"{runs} no anchor: no agent is known to give the same answers now as then. Ratings of {them} are on "
                "another scale and not shown."
            )

    def picture(self) -> Whiskers:
        agent, versions = self.drawn, self.versions(self.drawn)
        starts = {version.since: f"version {version.number}" for version in versions} if len(versions) > 1 else {}
        lines = []
        for moment in reversed(self.moments):
            if agent in moment.ratings:
                rating = self.rating(moment, agent)
                if rating.value is None or not self.on_scale(moment):
                    continue
                mark = Mark(rating.value, rating.low, rating.high, "grey" if moment.differs else "blue")
                difference = f"other {listed(moment.differs)}" if moment.differs else ""
                lines.append(Line(moment.name, [mark], tag=starts.get(moment.name, difference)))
        grey = any(mark.look == "grey" for line in lines for mark in line.marks)
        return Whiskers(
            "history",
            agent,
            f"Ratings of {agent} over the runs, with 95% intervals. The table below has its versions.",
            "A mark is a Bradley-Terry rating on the scale of now, the line its 95% interval.",
            lines[:_DRAWN],
            axis="Bradley-Terry rating, points",
            form=POINTS,
            legend={"blue": "anchored", "grey": "anchored, but judged in another way"} if grey else {},
        )


def history(runs: Sequence[StoredRun], board: Leaderboard, data: Dataset, drawn: Drawn | None = None) -> HistoryBoard:
    """Make the history of a tournament's ratings; ``runs`` are newest first, ``board`` is the newest leaderboard."""
    names, now = run_names(runs), BoardState(subject_of(board.settings, data), standings_of(board, drawn))
    digests: dict[tuple[str, ...], dict[str, str]] = {}
    moments = []
    for run in reversed(runs[1:]):
        if run.standings:
            moments.append(_moment(names[run.run_id], BoardState(run.subject, run.standings), now, data, digests))
    return HistoryBoard([*moments, moment(now, NOW, frozenset(data.agents), ())])


def _moment(
    name: str, state: BoardState, now: BoardState, data: Dataset, digests: dict[tuple[str, ...], dict[str, str]]
) -> Moment:
    queries: Mapping[str, str] = state.subject.get("queries", {})
    unchanged: frozenset[str] = frozenset()
    if queries.items() <= now.subject["queries"].items():
        if tuple(queries) not in digests:
            digests[tuple(queries)] = answer_digests(data, queries)
        recorded_digests = state.subject.get("answers", {})
        unchanged = frozenset(
            agent for agent, digest in digests[tuple(queries)].items() if recorded_digests.get(agent) == digest
        )
    changes = compare(state, now)
    differs = [kind for kind in changes.names if kind != "agents"]
    if changes.changed_settings("judges", "agents", "left_out"):
        differs.append("settings")
    return moment(state, name, unchanged, tuple(differs))


def _same(earlier: Moment, later: Moment, agent: str) -> bool:
    """Whether an agent gave the same answers at both moments; assumed if neither moment has answer digests."""
    if agent in earlier.unchanged and agent in later.unchanged:
        return True
    if "answers" not in earlier.subject or "answers" not in later.subject:  # stored by a version without digests
        return "answers" not in earlier.subject and "answers" not in later.subject
    same_queries = earlier.subject["queries"] == later.subject["queries"]
    return bool(same_queries and earlier.subject["answers"].get(agent) == later.subject["answers"].get(agent))
