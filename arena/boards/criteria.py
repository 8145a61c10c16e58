"""The board of mean grades by criterion."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from arena.boards.scores import ScoreBoard
from arena.present.blocks import Section
from arena.present.numbers import COUNT, FIGURE
from arena.present.table import Column, Table
from arena.results.criteria import COLUMN

if TYPE_CHECKING:
    from arena.config.settings import StoredSettings


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
                if graded := scores.count(agent):
                    mean = {"mean": scores.means[agent].value, "graded": graded, "wanted": scores.missing(agent)[1]}
                    means.setdefault(agent, {})[scores.name] = mean
        return means
