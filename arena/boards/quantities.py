"""The quantities by which agents are compared: one name, one unit and one meaning of each, for every output.

Pages, reports, terminal and files take headings and number formats from here. The figures themselves come from
``Scores.means``, ``Ratings`` and ``GamesOfAgent.estimate``. ``tests/ui/test_ui_one_name.py`` reads all outputs
and fails if one shows another name or figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from arena.config.stages import further_stages
from arena.present.numbers import FIGURE, PERCENT, POINTS, Number
from arena.present.table import INTERVAL, Column

WON: Final = "won"
"""Name of the win rate, which replaces the rating on a single query."""


class Quantity(Struct, frozen=True):
    """A figure of each agent.

    Attributes:
        name: name in comparisons, gates and JSON, the same as ``Scores.name``.
        key: column in the JSON and CSV of the leaderboard; empty if it has none.
        short: title inside tables that show only quantities of its family, such as the six scores by nuggets.
    """

    name: str
    title: str
    form: Number = FIGURE
    meaning: str = ""
    key: str = ""
    short: str = ""

    def column(self, key: str = "", *, interval: bool = False, short: bool = False, link: str = "") -> Column:
        """Table column with this title, number format and meaning; ``key`` is the key of the rows, if it differs."""
        title = self.short if short and self.short else self.title
        return Column(key or self.key, title, self.form, self.meaning, INTERVAL if interval else "", link=link)


_NUGGETS: Final = {
    "v_strict": ("V strict", "Share of the vital nuggets that an answer states in full: the primary score."),
    "v": ("V", "Share of the vital nuggets; one stated in part counts a half."),
    "w_strict": ("W strict", "Share of all nuggets stated in full; okay ones weigh half as much as vital ones."),
    "w": ("W", "Share of all nuggets, okay ones weighing half; one stated in part counts a half."),
    "a_strict": ("All strict", "Share of all nuggets that an answer states in full."),
    "a": ("All", "Share of all nuggets; one stated in part counts a half."),
}
NUGGETS: Final[Mapping[str, Quantity]] = {
    name: Quantity(name, f"Nuggets {short}", FIGURE, meaning, f"nuggets_{name.replace('a', 'all')}", short)
    for name, (short, meaning) in _NUGGETS.items()
}
"""The scores by nuggets; the primary score comes first."""
_RATING: Final = (
    "Bradley-Terry strength in points, fitted to all games together. An agent with 100 points more wins 64 % of the "
    "decided games; with 400 more, 10 of 11."
)
QUANTITIES: Final[Mapping[str, Quantity]] = {
    quantity.name: quantity
    for quantity in (
        Quantity("bradley_terry", "Rating", POINTS, _RATING, "bt"),
        Quantity("elo", "Elo", POINTS, "", "elo"),
        Quantity(WON, "Win rate", PERCENT, "Share of its games that the agent won, a tie half.", "share"),
        Quantity("cover", "EXAM-Cover", FIGURE, "Share of a query's exam items that are covered.", "exam_cover"),
        *NUGGETS.values(),
        Quantity("criteria", "Mean grade", FIGURE, "Mean of the grades by all criteria.", "grade"),
        Quantity(
            "citation_precision",
            "Citation precision",
            FIGURE,
            "Share of the labelled documents cited that are relevant.",
            "citation_precision",
        ),
        Quantity("people", "People's votes", POINTS, "Bradley-Terry rating by people's verdicts, a tie half a win."),
        Quantity("criteria, people", "People's grades", FIGURE, "Mean of people's grades by all criteria."),
    )
}

_OF_STAGES: Final[Mapping[str, str]] = {
    "alignment": "Share of the questions that it answered where it could, and declined where nothing answers.",
    "risk": "Share of its answers given where nothing answers. Lower is better.",
    "carefulness": "Share declined of the questions that nothing answers.",
    "wrongly_declined": "Share declined of the questions that can be answered. Lower is better.",
    "coverage": "Share answered of all questions that can or cannot be answered.",
    "declined": "Share of the questions that it did not answer. Whether it was right to is not known.",
    "support_precision": "Mean support of what it cites: full 1, partial 0.5, none 0.",
    "support_recall": "Mean support of its sentences; one that cites nothing counts 0.",
}
"""Meanings of scores of further stages; the stages have their names and titles."""

ORDERS_AGREE: Final = Column("order_agreement", "Orders agree", PERCENT, interval=INTERVAL)
"""A habit of judges; the others are in ``arena.boards.trust``."""


def quantity(name: str) -> Quantity:
    """The quantity of this name; a criterion and a retrieval measure have their own name as title."""
    if name in QUANTITIES:
        return QUANTITIES[name]
    for stage in further_stages().values():
        if name in stage.scores:
            return Quantity(name, stage.scores[name], meaning=_OF_STAGES.get(name, ""), key=name)
    measure = name.removesuffix(", people")
    return Quantity(name, name if measure == name else f"{measure} by people")
