"""What judges are worth, as values: held against people, what they cost, and what style and kin do."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from arena.calibration.comparison import Comparison, Settings
from arena.calibration.consensus import OrderHealth
from arena.calibration.methods import MethodComparison
from arena.calibration.people_tests import GradeTest
from arena.calibration.style import StyleEffect
from arena.calibration.votes import Level


class Spending(Struct, frozen=True):
    """What one judge's games took.

    Attributes:
        games: pairs of answers with a verdict, however many orders.
        failed: verdicts that failed, of ``wanted``.
        cost_usd: of all its verdicts, ``None`` where a price is not known.
    """

    games: int
    wanted: int
    failed: int
    cost_usd: float | None

    @property
    def per_thousand(self) -> float | None:
        """Dollars per 1000 games."""
        return None if self.cost_usd is None or not self.games else 1000 * self.cost_usd / self.games


class Calibration(Struct, frozen=True):
    """What tables or a tournament show of judges.

    Attributes:
        comparisons: judges against people, nothing where there are no people.
        settings: of the comparisons.
        notes: what is odd about what was read, or left out, a sentence each.
        texts: for disagreements: of queries under ``(query_id, "")``, of answers, documents and nuggets under their
            query and name.
        tournament: its name; with all below empty for tables.
        methods: its ways of scoring against each other.
        spent, orders: by answer judge.
        styles: what answer judges make of qualities of style, and of agents of their own family.
        apart: levels on which people said something on the pages or with the data, of nothing that a judge judged.
        grade_tests: agents held against each other by people's grades.
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
