"""Results of calibration: judges compared with people, what judges cost, and how style and model family affect them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from arena.calibration.comparison import Comparison, Settings
from arena.calibration.consensus import OrderHealth
from arena.calibration.methods import MethodComparison
from arena.calibration.style import StyleEffect
from arena.calibration.votes import GradeTest, Level


class Spending(Struct, frozen=True):
    """The games and costs of one judge.

    Attributes:
        games: number of pairs of answers with a verdict in at least one order.
        wanted: number of verdicts to make.
        failed: number of verdicts that failed.
        cost_usd: cost of all the judge's verdicts in dollars; ``None`` if a price is not known.
    """

    games: int
    wanted: int
    failed: int
    cost_usd: float | None

    @property
    def per_thousand(self) -> float | None:
        """Dollars per 1000 games; ``None`` if the cost is not known or no game was judged."""
        return None if self.cost_usd is None or not self.games else 1000 * self.cost_usd / self.games


class Calibration(Struct, frozen=True):
    """Judges compared with people, from tables of opinions or from a tournament's store.

    Attributes:
        comparisons: comparisons of judges with people; empty if there are no opinions of people.
        settings: settings of the comparisons.
        notes: sentences about oddities in the input and about opinions that were left out.
        texts: texts to show with disagreements: queries by ``(query_id, "")``; answers, documents and nuggets by query
            and name.
        tournament: the tournament's name. This and the attributes below are empty for tables of opinions.
        methods: comparison of the tournament's ways of scoring.
        spent, orders: cost and position bias of each answer judge.
        styles: how answer style and model family affect the answer judges.
        apart: levels at which people annotated only items that no judge judged.
        grade_tests: comparisons of agents by people's grades.
    """

    comparisons: tuple[Comparison, ...] = ()
    settings: Settings = field(default_factory=Settings)
    notes: tuple[str, ...] = ()
    texts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    tournament: str = ""
    methods: MethodComparison | None = None
    spent: Mapping[str, Spending] = field(default_factory=dict)
    orders: Mapping[str, OrderHealth] = field(default_factory=dict)
    styles: tuple[StyleEffect, ...] = ()
    apart: tuple[Level, ...] = ()
    grade_tests: tuple[GradeTest, ...] = ()
