"""What is known of judges from their own verdicts: habits, and agreement with each other and with themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from arena.present.blocks import Block, Section
from arena.present.numbers import ALIGNED, COUNT, FIGURE, PERCENT, POINTS, Number, counted, with_interval
from arena.present.plain import flat
from arena.present.table import Column, Table

if TYPE_CHECKING:
    from arena.ratings.judges import JudgeAgreement
    from arena.ratings.panel import PanelRatings
    from arena.ratings.rate import Ratings
    from arena.stages.samples import Consistency
    from judges.types import Task

_MOST_PAIRS: Final = 15
"""Pairs of judges that a person can take in; those with the most games in common come first."""
_FEWEST_GAMES: Final = 10
"""Below so many games in common a kappa is noise."""
_WORTH: Final = Number(0, signed=True, unit=" points")
_HABITS: Final[Sequence[tuple[str, str, Number, str]]] = (
    ("order_agreement", "Orders agree", PERCENT, "near 100%"),
    ("first_share", "First shown wins", PERCENT, "50%"),
    ("first_effect", "First is worth", _WORTH, "0"),
    ("longer_share", "Longer wins", PERCENT, "near 50%"),
    ("tie_rate", "Ties", PERCENT, "few"),
)
"""Fields of a judge's health, what people call them, how they are written, and what a judge without a habit has."""
_AGREEMENT: Final = (
    Column("judges", "Judges"),
    Column("games", "Games judged by both", COUNT),
    Column("agreement", "Same outcome", PERCENT),
    Column("kappa", "Kappa or alpha", FIGURE, "1 is full agreement, 0 what chance gives.", "95% interval"),
)
_CONSISTENCY: Final = (
    Column("judge", "Judge"),
    Column("stage", "Stage"),
    Column("repeated", "Judged several times", COUNT),
    Column("agreement", "Two samples agree", PERCENT),
)


def judge_section(
    ratings: Ratings,
    by_judge: Mapping[str, Ratings],
    panel: PanelRatings | None = None,
    consistency: Mapping[Task, Mapping[str, Consistency]] | None = None,
) -> Iterator[Section]:
    """The judges' health; nothing without verdicts.

    Args:
        ratings: by all judges.
        by_judge: by each alone, where there are several.
        panel: ratings that weigh the judges.
        consistency: how far samples of one judge agree.
    """
    if ratings.judge_health is None:
        return
    blocks: list[Block] = [habits_table(ratings, by_judge)]
    if by_judge:
        blocks.append(_alone(ratings, by_judge, panel))
    if ratings.judges is not None:
        blocks.append(_agreement(ratings.judges))
    if consistency:
        samples = [
            {"judge": judge, "stage": task.value, **flat(own)}
            for task, judges in consistency.items()
            for judge, own in judges.items()
        ]
        blocks.append(Table("self-consistency", "Does a judge agree with itself?", _CONSISTENCY, samples))
    lead = "Whether place, length or chance decide in place of quality."
    yield Section("judges", "The judge's health", lead, blocks)


def habits_table(ratings: Ratings, by_judge: Mapping[str, Ratings]) -> Table:
    """What decides in place of quality, over all verdicts, and those of each judge where there are several."""
    of_all = "All judges" if by_judge else "The judge"
    found = {of_all: ratings.judge_health, **{judge: own.judge_health for judge, own in by_judge.items()}}
    known = {judge: own for judge, own in found.items() if own is not None}
    rows = [
        {
            "habit": heading,
            **{judge: with_interval(getattr(own, key), form) for judge, own in known.items()},
            "fair": fair,
        }
        for key, heading, form, fair in _HABITS
    ]
    circles = {
        judge: f"{COUNT.write(own.intransitive_triples)} of {COUNT.write(own.triples)}" for judge, own in known.items()
    }
    rows.append({"habit": "Circles of three", **circles, "fair": "few"})
    rows.append({"habit": "Verdicts", **{judge: COUNT.write(own.n) for judge, own in known.items()}})
    columns = [Column("habit", "Habit"), *(Column(judge, judge, ALIGNED) for judge in known)]
    return Table("habits", "", [*columns, Column("fair", "Without a habit")], rows)


def _alone(ratings: Ratings, by_judge: Mapping[str, Ratings], panel: PanelRatings | None) -> Table:
    """Ratings by each judge alone, and by the panel that weighs them."""
    columns = [Column("agent", "Agent"), Column("all", "All judges")]
    columns += [Column(f"by {judge}", judge) for judge in by_judge]
    columns.append(Column("weighed", "Weighed", POINTS, "Each judge counts as much as it tells agents apart."))
    found: dict[str, dict[str, object]] = {row.agent: {"agent": row.agent} for row in ratings.agents}
    for key, own in {"all": ratings, **{f"by {judge}": own for judge, own in by_judge.items()}}.items():
        for row in own.agents:
            found[row.agent][key] = f"{row.rank} ({POINTS.write(row.bt)})"
    notes = ["The place of each agent by Bradley-Terry ratings, which are in brackets."]
    if panel is not None:
        for agent, rating in zip(panel.agents, panel.ratings.tolist(), strict=True):
            found[agent]["weighed"] = rating
        shown = ", ".join(f"{judge.judge} {FIGURE.write(judge.discrimination)}" for judge in panel.judges)
        notes.append(f"How well judges tell agents apart (1 average, 0 a coin, below 0 the wrong way): {shown}.")
    return Table("judges-alone", "What each judge alone would say", columns, [*found.values()], notes)


def _agreement(own: JudgeAgreement) -> Table:
    common = sorted((two for two in own.pairs if two.games >= _FEWEST_GAMES), key=lambda two: -two.games)[:_MOST_PAIRS]
    rows: list[Mapping[str, object]] = [
        {"judges": "all (Krippendorff's alpha)", "games": own.games, "kappa": own.alpha},
        *(flat(two) | {"judges": f"{two.first} and {two.second}"} for two in common),
    ]
    notes = ["Both orders of a game are reconciled first."]
    if left := sum(two.games > 0 for two in own.pairs) - len(common):
        notes.append(f"{counted(left, 'more pair')} of judges, with few games in common: in --format json.")
    return Table("judges-agree", "Do the judges agree with each other?", _AGREEMENT, rows, notes)
