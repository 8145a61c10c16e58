"""Several judges held against the same people: who agrees most, and where each of them does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arena.calibration.consensus import majority
from arena.calibration.estimates import estimates
from arena.calibration.judge_people import (
    JudgeAgainstPeople,
    People,
    Settings,
    disagreements,
    judge_against_people,
    people,
)
from arena.calibration.leaderboards import leaderboard_agreement
from arena.calibration.opinions import Level, Opinion
from arena.calibration.orders import OrderHealth, as_shown, order_health, settled, values_of
from arena.calibration.panel_gain import PanelGain, panel_gain

PANEL = "panel (majority)"
"""The name of all judges together, each with one vote."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All judges of one kind of things.

    Attributes:
        group: what was compared, where a table holds several things such as dimensions; else empty.
        people: without a judge.
        orders: what people's votes say about places, ``None`` for anything but verdicts.
        judges: by name, and with several all together as ``PANEL``.
        gain: the panel against its best member, ``None`` for one judge.
    """

    group: str
    people: People
    orders: OrderHealth | None
    judges: Mapping[str, JudgeAgainstPeople]
    gain: PanelGain | None

    @property
    def what(self) -> str:
        """What was compared: a level, and the group of a table that holds several."""
        return ", ".join(filter(None, (self.group, self.people.level)))


def compare(
    level: Level,
    judges: Mapping[str, Sequence[Opinion]],
    said_by_people: Sequence[Opinion],
    settings: Settings | None = None,
    *,
    group: str = "",
    most: int = 0,
    label_next: int | None = None,
) -> Comparison:
    """Hold judges against people.

    Args:
        level: what was judged.
        judges: everything each judge said.
        said_by_people: everything people said.
        settings: the defaults if absent.
        group: a name for what is compared.
        most: disagreements listed of each judge.
        label_next: things to label next, of each judge corrected by people; ``None`` corrects none.
    """
    verdicts, how = level == "verdicts", settings or Settings()
    orders = {name: order_health(said) for name, said in judges.items() if said and verdicts}
    of_people = order_health(said_by_people) if verdicts else None
    ordered = how.games == "ordered"
    if verdicts and ordered:
        judges, said_by_people = {name: as_shown(said) for name, said in judges.items()}, as_shown(said_by_people)
    votes = how.against == "votes"
    cast = said_by_people if votes else settled(said_by_people, verdicts=verdicts, ordered=ordered)
    against = people(level, cast, settings)
    of_judge = {name: settled(said, verdicts=verdicts, ordered=ordered) for name, said in judges.items() if said}
    if votes:
        judges = of_judge
    members = {name: values_of(own) for name, own in of_judge.items()}
    values, said, gain = dict(members), dict(judges), None
    if len(of_judge) > 1:
        values[PANEL] = majority([one for own in of_judge.values() for one in own], mirrored=verdicts).values
        said[PANEL] = [
            Opinion(query_id, item, PANEL, value)
            for query_id, things in values[PANEL].items()
            for item, value in things.items()
        ]
        gain = panel_gain(members, values[PANEL], against.consensus.values, verdicts=verdicts)
    reports = {
        name: replace(
            judge_against_people(name, own, said[name], against, settings),
            group=group,
            orders=orders.get(name),
            disagreements=tuple(disagreements(own, against, most)),
            estimates=None
            if label_next is None
            else estimates(level, own, against.consensus.values, label_next, how.seed),
            boards=leaderboard_agreement(level, own, against.consensus.values, how.samples, how.seed),
        )
        for name, own in values.items()
    }
    return Comparison(group, against, of_people, reports, gain)
