"""Ratings over runs and over versions of an agent, anchored to the agents that did not change. Pure.

Ratings are relative to the field, so those of two states cannot be held together as they are. Here each state is moved
by one number, so that the agents whose answers are the same as now have the mean rating that they have now. What an
earlier state had judged is gone once its data are replaced; its leaderboard was kept at the end of its run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np
from msgspec import Struct

from arena.boards.changes import BoardState, compare
from arena.boards.runs import run_names
from arena.data.dataset import Dataset
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, POINTS, SIGNED, counted, listed
from arena.present.picture import Line, Mark, Whiskers
from arena.present.table import Column, Table
from arena.results.ratings import Leaderboard
from arena.run.recorder import answer_digests, standings_of, subject_of
from arena.store.runs import StoredRun
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import estimates, units_of
from retrieval_eval.stats.estimate import Drawn, Estimate

NOW: Final = "now"
"""The name of the last state."""
_Z: Final = 1.959964
"""Of a 95 % interval."""
_DRAWN: Final = 30
"""States in the picture, the latest ones."""
_NAMED: Final = 6
"""Agents that a remark names."""


class Moment(BoardState, frozen=True):
    """A state with what is needed to hold it beside now.

    Attributes:
        name: when its run began, or ``NOW``.
        unchanged: agents whose answers, to the queries there were, are the same now.
        differs: what else is not as it is now: judges, queries, settings.
        variances: of the difference of every two ratings, NaN where they are not known.
        draws: ratings on draws of the queries, shape (samples, agents); no sample where none were kept.
    """

    name: str
    unchanged: frozenset[str]
    differs: tuple[str, ...]
    variances: Floats
    draws: Floats

    @property
    def ratings(self) -> dict[str, float]:
        """Rating by agent, relative to its own field."""
        return {line["agent"]: line["bt"] for line in self.standings}

    def distance(self, agent: str, anchors: Collection[str]) -> Estimate:
        """The rating of an agent less the mean rating of the anchors, with its interval where that is known."""
        ratings = self.ratings
        value = ratings[agent] - fmean(ratings[anchor] for anchor in anchors)
        names = list(ratings)
        own, others = names.index(agent), [names.index(anchor) for anchor in anchors]
        # The variance of a contrast, from those of the differences of every two.
        found = self.variances[own, others].mean() - self.variances[np.ix_(others, others)].mean() / 2
        if math.isnan(found):
            return Estimate(value)
        half = _Z * math.sqrt(max(found, 0.0))
        return Estimate(value, value - half, value + half)

    def drawn(self, agent: str, anchors: Collection[str]) -> Floats:
        """The same on each draw, NaN where a draw rates nobody."""
        names = list(self.ratings)
        others = [names.index(anchor) for anchor in anchors]
        apart: Floats = self.draws[:, names.index(agent)] - self.draws[:, others].mean(axis=1)
        return apart

    def is_paired(self, other: Moment) -> bool:
        """Whether draws of both are of the same queries and, with the same seed, the same draws."""
        seeds = [own.subject.get("settings", {}).get("ratings", {}).get("seed") for own in (self, other)]
        drawn = [(own.subject["queries"], own.subject.get("conversations", {})) for own in (self, other)]
        same = drawn[0] == drawn[1] and seeds[0] == seeds[1]
        return same and 0 < len(self.draws) == len(other.draws)


def moment(state: BoardState, name: str, unchanged: frozenset[str], differs: tuple[str, ...]) -> Moment:
    """A state with the variances of all differences, as far as they were kept with it."""
    count = len(state.standings)
    variances = np.full((count, count), math.nan)
    np.fill_diagonal(variances, 0.0)
    for at, line in enumerate(state.standings):
        for other, error in enumerate(line.get("se", ()), start=at + 1):
            variances[at, other] = variances[other, at] = math.nan if error is None else error**2
    draws = [line.get("draws", ()) for line in state.standings]
    drawn = np.array(draws, np.float64).T if all(draws) else np.empty((0, count))
    return Moment(state.subject, state.standings, name, unchanged, differs, variances, drawn)


class Version(Struct, frozen=True):
    """An agent as long as it gave the same answers.

    Attributes:
        number: from 1 for the first that is known.
        since: the first moment with it.
        last: the last one.
        rating: at the last one, on the scale of now; as it was among its own field where nothing anchors it.
        change: from the version before, in points; ``None`` where nothing anchors both.
        paired: whether the interval of the change is that of the same queries drawn at both.
    """

    agent: str
    number: int
    since: str
    last: str
    rating: Estimate
    change: Estimate | None
    paired: bool


class HistoryBoard(Board, frozen=True):
    """Ratings of a tournament over its runs.

    Attributes:
        moments: oldest first, the last one is now.
        agent: the only one drawn; ``None`` for the one of most versions.
    """

    moments: Sequence[Moment]
    agent: str | None = None

    def sections(self) -> list[Section]:
        """What anchors the ratings, the picture of one agent, and a line for each version of each."""
        versions = [version for agent in self.agents for version in reversed(self.versions(agent))]
        columns = [
            Column("agent", "Agent"),
            Column("version", "Version", COUNT, "Its answers are others than those of the version before."),
            Column("since", "Since", meaning="The first run with these answers."),
            Column("rating", "Rating", POINTS, "At the last run with these answers.", interval="95% interval"),
            Column("change", "Change", SIGNED, "Points gained on the version before.", interval="95% interval"),
            Column("interval", "Interval from"),
        ]
        rows: list[Mapping[str, Any]] = [
            {"agent": own.agent, "version": own.number, "since": own.since, "rating": own.rating, "change": own.change}
            | {"interval": None if own.change is None else "same queries" if own.paired else "independent"}
            for own in versions
        ]
        note = (
            "Same queries: both versions were judged on them, and its interval is from a paired bootstrap over them. "
            "Independent: they were not, or an earlier version of ragleague judged; its interval is wider than needed."
        )
        blocks: list[Block] = [Remarks(list(self._remarks())), self.picture()]
        return [Section("history", "History", "", [*blocks, Table("versions", "Versions", columns, rows, [note])])]

    @property
    def agents(self) -> list[str]:
        """All agents that ever had a rating: those of now, best first, then those that are gone."""
        return list(dict.fromkeys(line["agent"] for own in reversed(self.moments) for line in own.standings))

    @property
    def drawn(self) -> str:
        """The agent of the picture."""
        return self.agent or max(self.agents, key=lambda agent: len(self.versions(agent)))

    def anchors(self, *moments: Moment) -> list[str]:
        """Agents that are rated now and in each of these, with the same answers."""
        alike = [set(own.ratings) & own.unchanged for own in (*moments, self.moments[-1])]
        return sorted(set.intersection(*alike))

    def rating(self, moment: Moment, agent: str) -> Estimate:
        """A rating on the scale of now, or of its own field where nothing anchors it."""
        anchors, now = self.anchors(moment), self.moments[-1]
        if moment is now or not anchors:
            line = next(line for line in moment.standings if line["agent"] == agent)
            return Estimate(line["bt"], line["bt_low"], line["bt_high"])
        own, level = moment.distance(agent, anchors), fmean(now.ratings[anchor] for anchor in anchors)
        assert own.value is not None
        if own.low is None or own.high is None:
            return Estimate(own.value + level)
        return Estimate(own.value + level, own.low + level, own.high + level)

    def versions(self, agent: str) -> list[Version]:
        """The versions of an agent, the first first."""
        groups: list[list[Moment]] = []
        for own in self.moments:
            if agent in own.ratings:
                if groups and _same(groups[-1][-1], own, agent):
                    groups[-1].append(own)
                else:
                    groups.append([own])
        found = []
        for number, group in enumerate(groups, start=1):
            change, paired = (None, False) if number == 1 else self._change(groups[number - 2][-1], group[-1], agent)
            rating = self.rating(group[-1], agent)
            found.append(Version(agent, number, group[0].name, group[-1].name, rating, change, paired))
        return found

    def _change(self, before: Moment, after: Moment, agent: str) -> tuple[Estimate | None, bool]:
        anchors = self.anchors(before, after)
        if not anchors:
            return None, False
        one, other = (own.distance(agent, anchors) for own in (before, after))
        assert one.value is not None
        assert other.value is not None
        value = other.value - one.value
        if before.is_paired(after):
            moved = after.drawn(agent, anchors) - before.drawn(agent, anchors)
            known = moved[~np.isnan(moved), np.newaxis]
            if len(known) > len(moved) / 2:
                unit = units_of(after.subject["queries"], after.subject.get("conversations", {}))
                (found,) = estimates([value], known, np.unique(unit).size)
                return found, True
        if one.low is None or other.low is None:
            return Estimate(value), False
        half = math.hypot(one.value - one.low, other.value - other.low)
        return Estimate(value, value - half, value + half), False

    def _remarks(self) -> Iterator[str]:
        earlier = self.moments[:-1]
        anchored = [own for own in earlier if self.anchors(own)]
        if anchored:
            always = self.anchors(*anchored)
            runs = "each earlier run" if len(anchored) == len(earlier) else f"{len(anchored)} of {len(earlier)} runs"
            named = f": always {listed(always, _NAMED)}" if always else ""
            yield f"Ratings of {runs} are anchored to the agents whose answers are the same now{named}."
        if lost := len(earlier) - len(anchored):
            runs = counted(lost, "run has", "runs have")
            yield f"{runs} no anchor: no agent is known to give the same answers now to all queries there were."

    def picture(self) -> Whiskers:
        """One agent's rating at each moment."""
        agent, versions = self.drawn, self.versions(self.drawn)
        starts = {own.since: f"version {own.number}" for own in versions} if len(versions) > 1 else {}
        lines = []
        for own in reversed(self.moments):
            if agent in own.ratings:
                found = self.rating(own, agent)
                same = not own.differs and (own is self.moments[-1] or bool(self.anchors(own)))
                assert found.value is not None
                mark = Mark(found.value, found.low, found.high, "blue" if same else "grey")
                beside = f"other {listed(own.differs)}" if own.differs else ""
                lines.append(Line(own.name, [mark], tag=starts.get(own.name, beside)))
        grey = any(mark.look == "grey" for line in lines for mark in line.marks)
        return Whiskers(
            "history",
            agent,
            f"Ratings of {agent} over the runs, with 95% intervals. The table below has its versions.",
            "A mark is a Bradley-Terry rating on the scale of now, the line its 95% interval.",
            lines[:_DRAWN],
            axis="Bradley-Terry rating, points",
            form=POINTS,
            legend={"blue": "anchored", "grey": "not on one scale with now"} if grey else {},
        )


def history(runs: Sequence[StoredRun], board: Leaderboard, data: Dataset, drawn: Drawn | None = None) -> HistoryBoard:
    """The history of a tournament.

    ``runs`` begin with the latest, whose place ``board`` takes; for ``drawn`` see ``arena.results.cache.rating_draws``.
    """
    names, now = run_names(runs), BoardState(subject_of(board.settings, data), standings_of(board, drawn))
    same: dict[tuple[str, ...], dict[str, str]] = {}
    moments = []
    for run in reversed(runs[1:]):
        if run.standings:
            moments.append(_moment(names[run.run_id], BoardState(run.subject, run.standings), now, data, same))
    return HistoryBoard([*moments, moment(now, NOW, frozenset(data.agents), ())])


def _moment(
    name: str, state: BoardState, now: BoardState, data: Dataset, digests: dict[tuple[str, ...], dict[str, str]]
) -> Moment:
    queries: Mapping[str, str] = state.subject.get("queries", {})
    unchanged: frozenset[str] = frozenset()
    if queries.items() <= now.subject["queries"].items():
        if tuple(queries) not in digests:
            digests[tuple(queries)] = answer_digests(data, queries)
        said = state.subject.get("answers", {})
        unchanged = frozenset(agent for agent, own in digests[tuple(queries)].items() if said.get(agent) == own)
    found = compare(state, now)
    kinds = {"judges": found.judges, "queries": found.queries}
    differs = [kind for kind, difference in kinds.items() if difference]
    if any(change.path.split(".")[0] not in ("judges", "agents", "left_out") for change in found.settings):
        differs.append("settings")
    return moment(state, name, unchanged, tuple(differs))


def _same(one: Moment, other: Moment, agent: str) -> bool:
    """Whether an agent gave the same answers at both; where nobody knows, it did as long as both are like now."""
    if agent in one.unchanged and agent in other.unchanged:
        return True
    if "answers" not in one.subject or "answers" not in other.subject:  # kept by an earlier version, which did not say
        return "answers" not in one.subject and "answers" not in other.subject
    alike = one.subject["queries"] == other.subject["queries"]
    return bool(alike and one.subject["answers"].get(agent) == other.subject["answers"].get(agent))
