"""Scores of agents that need no games, such as grades: their table, their JSON and their leaderboard columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from arena.config.stages import further_stages
from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT, FIGURE
from arena.present.table import INTERVAL, Column, Table, TableRow, flat
from arena.results.criteria import COLUMN
from arena.results.outcomes import StageResults
from retrieval_eval.stats.scores import Scores, missing_of

if TYPE_CHECKING:
    from arena.config.settings import StoredSettings


class ScoreBoard(Board, frozen=True, eq=False):
    """Scores of a tournament's agents.

    Attributes:
        key: name of the configuration's section that the scores come from.
        scores: one entry per kind of score, with all agents; agents are ordered by the first kind.
        title: title of the table of scores.
        order: agents to list first, in this order; the others follow, best first.
    """

    key: str
    scores: tuple[Scores, ...]
    title: str = ""
    order: Sequence[str] = ()

    def scored(self) -> Collection[str]:
        """The agents with a row on the leaderboard: all agents if any agent has a score, else none."""
        return self.agents() if any(scores.seen().any() for scores in self.scores) else ()

    def columns(self, agent: str) -> TableRow:
        """An agent's scores as columns of the leaderboard; the columns are the same for every agent."""
        row: TableRow = {scores.column: scores.means.get(agent) for scores in self.scores if scores.column}
        return row | self._missing(agent)

    def _missing(self, agent: str) -> TableRow:
        if not self.scores or self.scores[0].judgments is None:
            return {}
        return {f"{self.key}_missing": missing_of(self.scores[0]).get(agent, (None,))[0]}

    def agents(self) -> list[str]:
        means = self.scores[0].means if self.scores else {}
        sign = 1 if self.scores and self.scores[0].lower else -1
        best = sorted(means, key=lambda agent: (means[agent].value is None, sign * (means[agent].value or 0), agent))
        return [
            *(agent for agent in self.order if agent in means),
            *(agent for agent in best if agent not in self.order),
        ]

    def sections(self) -> list[Section]:
        columns = [
            Column("agent", "Agent"),
            *(Column(each.column, each.heading or each.name, FIGURE, "", INTERVAL) for each in self.scores),
            Column("queries", "Queries", COUNT, "Those with a score."),
            Column(f"{self.key}_missing", "Missing", COUNT, "Judgments that failed or were never made; in no score."),
        ]
        rows = [
            {"agent": agent, "queries": self.scores[0].count(agent), **self.columns(agent)} for agent in self.agents()
        ]
        return [Section(self.key, self.title, "", [Table(self.key, self.title, columns, rows)])]

    def json(self) -> Any:
        return {"agents": {agent: flat(self.columns(agent)) for agent in self.agents()}}


def further_boards(results: Mapping[str, StageResults]) -> dict[str, Board]:
    """Boards with the results of further stages, by the name of the stage's section in the configuration."""
    boards: dict[str, Board] = {}
    for key, result in results.items():
        stage = further_stages()[key]
        own = import_module(stage.board).board if stage.board else None
        boards[key] = ScoreBoard(key, result.scores, stage.words) if own is None else own(result)
    return boards


class Criteria(ScoreBoard, frozen=True, eq=False, kw_only=True):
    """Mean grades of answers by agent and criterion."""

    settings: StoredSettings

    def sections(self) -> list[Section]:
        means = self.json()
        if not means:
            return []
        rows = []
        for agent in [*(agent for agent in self.order if agent in means), *sorted({*means} - {*self.order})]:
            fullest = max(means[agent].values(), key=lambda mean: mean["wanted"])
            graded = f"{COUNT.write(fullest['graded'])} of {COUNT.write(fullest['wanted'])}"
            rows.append({"agent": agent, **self.columns(agent), "graded": graded})
        named = (Column(key, key.removeprefix(COLUMN), FIGURE) for key in self.columns(""))
        columns = [Column("agent", "Agent"), *named, Column("graded", "Answers graded")]
        criteria = self.settings.criteria
        low, high = ("the lowest", "the highest") if criteria is None else criteria.scale
        lead = f"Each answer is graded on its own, from {low} to {high}, without seeing the others; higher is better."
        table = Table("criteria", "Mean grades by criterion", columns, rows)
        return [Section("criteria", "Grades by criterion", lead, [table])]

    def scored(self) -> Collection[str]:
        return self.json()

    def columns(self, agent: str) -> dict[str, float | None]:
        graded = (scores for scores in self.scores if scores.seen().any())
        return {scores.column: scores.means[agent].value if agent in scores.means else None for scores in graded}

    def json(self) -> dict[str, dict[str, Any]]:
        """By agent and criterion: mean grade, number of graded answers, and number of answers to grade.

        A criterion without a graded answer of the agent is left out.
        """
        means: dict[str, dict[str, Any]] = {}
        for agent in sorted({agent for scores in self.scores for agent in scores.agents}):
            for scores in self.scores:
                missing, wanted = scores.missing(agent)
                if graded := wanted - missing:
                    mean = {"mean": scores.means[agent].value, "graded": graded, "wanted": wanted}
                    means.setdefault(agent, {})[scores.name] = mean
        return means
