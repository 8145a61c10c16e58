"""What tables or a tournament show of judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from arena.boards.calibration.corrected import corrected_figures, estimates_json
from arena.boards.calibration.differences import difference_charts, disagreements
from arena.boards.calibration.methods import (
    cost_table,
    judges_json,
    method_blocks,
    method_pairs,
    methods_json,
    style_blocks,
)
from arena.boards.calibration.people import (
    against_people,
    among_people,
    coefficient_tables,
    judge_figures,
    judges_of,
    people_blocks,
)
from arena.calibration.calibrated import Calibrated
from arena.calibration.comparison import Comparison
from arena.calibration.judge_people import JudgeAgainstPeople
from arena.present.blocks import Board, Remarks, Section
from arena.present.plain import flat, plain
from arena.present.table import Table

_CORRECTED: Final = (
    "The judge's figures over all things, moved by its error on those that people labelled. Right whatever the judge "
    "is like, if what people labelled is a random sample ('ragleague calibrate --next' draws one)."
)
_METHODS: Final = "An order that several ways of looking share is more than one judge's habit."
_MONEY: Final = (
    "Take the cheapest judge whose agreement with people is no lower than that of a dearer one by more than the "
    "intervals allow, that seldom fails, and that does not change its mind with the order of the answers."
)
_STYLE: Final = (
    "What goes along with winning besides an agent's strength, in rating points: one standard deviation more words (on "
    "a log scale), list items, citations or confident words; own family: what a judge gives to its kin more than other "
    "raters do. It says what verdicts go along with, not why: a longer answer may be a better one."
)
_DISAGREEMENTS: Final = (
    "The furthest apart, most agreed upon by people first. Read them before you blame the judge: some will be people's "
    "errors. They are no random sample: do not label by this list."
)


@dataclass(frozen=True, slots=True)
class Calibration(Board):
    """A calibration; ``width`` is of an interval, to say how many labels it needs."""

    calibrated: Calibrated
    width: float | None = None

    def sections(self) -> Sequence[Section]:  # noqa: D102
        known, comparisons = self.calibrated, self.calibrated.comparisons
        whom = "the consensus" if known.settings.against == "consensus" else "each vote"
        corrected = [block for judge in judges_of(comparisons) for block in corrected_figures(judge, self.width)]
        listed = list(disagreements(comparisons, known.texts))
        sections = [
            Section(
                "people", "People and the judge", "Does the judge see what people see?", people_blocks(comparisons)
            ),
            Section("coefficients", "All coefficients", "", coefficient_tables(comparisons, whom)),
            Section("corrected", "The answer if the judge is biased", _CORRECTED, corrected),
            Section("methods", "Do the ways of scoring agree?", _METHODS, method_blocks(known.methods)),
            Section("money", "Which judge for the money", _MONEY, cost_table(known)),
            Section("style", "Style and kin", _STYLE, style_blocks(known.styles)),
            Section("differences", "Judge minus people", "", difference_charts(comparisons)),
            Section("disagreements", "Where they disagree most", _DISAGREEMENTS, [Remarks(listed)] if listed else []),
            Section("notes", "Left out", "", [Remarks(known.notes)] if known.notes else []),
        ]
        return [section for section in sections if section.blocks]

    def tables(self) -> list[Table]:
        """All tables, first the one that is written as CSV: a line for every two methods, of tables for every judge."""
        methods = self.calibrated.methods
        first = against_people(self.calibrated.comparisons) if methods is None else method_pairs(methods)
        return [first, *(table for table in Board.tables(self) if table.name != first.name)]

    def json(self) -> Any:  # noqa: D102
        known = self.calibrated
        shape: dict[str, Any] = {
            "comparisons": [self._comparison_json(one) for one in known.comparisons],
            "settings": known.settings,
            "notes": known.notes,
        }
        if known.methods is not None:
            shape |= {
                "tournament": known.tournament,
                "style": [flat(effect) for effect in known.styles],
                "methods": methods_json(known.methods),
                "judges": judges_json(known),
            }
        return plain(shape)

    def _comparison_json(self, one: Comparison) -> dict[str, Any]:
        accuracy = {rater.rater: rater.accuracy for rater in one.people.consensus.raters}
        annotators = [{**flat(person), "accuracy": accuracy.get(person.rater)} for person in one.people.annotators]
        return {
            "group": one.group or None,
            "level": one.people.level,
            "people": {**among_people(one), "annotators": annotators},
            "judges": {name: self._judge_json(judge) for name, judge in one.judges.items()},
            "panel": one.gain and flat(one.gain),
        }

    def _judge_json(self, judge: JudgeAgainstPeople) -> dict[str, Any]:
        row = {key: value for key, value in judge_figures(judge).items() if key not in ("group", "level")}
        if judge.labels is not None:
            row |= {"scale": judge.labels.scale, "confusion": judge.labels.confusion}
        row["outside_scale"] = [{"value": value, "n": count} for value, count in judge.outside]
        row["disagreements"] = judge.disagreements
        if judge.differences is not None:
            row["points"] = judge.differences.points
        if judge.estimates is not None:
            row["estimates"] = estimates_json(judge.estimates, self.width)
        return row
