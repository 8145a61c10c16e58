"""How labels made from grades agree with people's, or one grading with another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from arena.boards.agreement import coefficients
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import FIGURE, counted
from arena.present.plain import flat, plain
from arena.present.table import Table, crossed, for_programs
from arena.stages.exam.study import Study
from retrieval_eval.metrics import Labels
from retrieval_eval.stats.agreement import LabelAgreement, LabelTable, binarised_table, graded_table, label_agreement


@dataclass(frozen=True)
class ExamAgreementBoard(Board):
    """What ``exam --show agreement`` says.

    Attributes:
        agreement: of the labels as they are, the predicted ones first.
        borders: lowest predicted labels that count as relevant, each by itself.
        least_judged: lowest label of people that does.
        units: what has both labels.
        other: whose labels stand in the columns.
    """

    agreement: LabelAgreement
    borders: tuple[int, ...]
    least_judged: int
    units: str = "passages"
    other: str = "people"

    @property
    def counts(self) -> dict[str, LabelTable]:
        """The tables of counts by name: of all labels, then with each border."""
        found = {"graded": graded_table(self.agreement)}
        for border in self.borders:
            binarised = binarised_table(self.agreement, least_first=border, least_second=self.least_judged)
            found[f"min_grade {border}"] = binarised
        return found

    def sections(self) -> list[Section]:
        """The counts, how far they agree, and the same of what counts as relevant."""
        found = self.agreement
        said = [f"{found.n:,} {self.units} with both labels, of {counted(found.queries, 'query', 'queries')}."]
        for count, what in ((found.first_only, f"no label by {self.other}"), (found.second_only, "no predicted label")):
            if count:
                said.append(f"{count:,} {self.units} with {what} are left out.")
        graded, *binarised = (self._table(name, table) for name, table in self.counts.items())
        blocks: list[Block] = [Remarks(said), graded, coefficients(found), *binarised]
        return [Section("agreement", "Agreement", f"Do the grades say what {self.other} said?", blocks)]

    def _table(self, name: str, table: LabelTable) -> Table:
        title = "Labels" if name == "graded" else f"Relevant from {name.removeprefix('min_grade ')}"
        names = table.rows, (*table.columns, "Total")
        counts = [[*row, sum(row)] for row in table.counts.tolist()]
        note = f"Cohen's kappa {FIGURE.write(table.kappa)}."
        title = f"{title}: predicted in rows, {self.other} in columns"
        return crossed(name, title, "Predicted", names, counts, notes=[note])

    def tables(self) -> list[Table]:
        """All counts in one, for programs; then those for people."""
        rows = (
            (name, row, column, count, sum(counts), table.kappa)
            for name, table in self.counts.items()
            for row, counts in zip(table.rows, table.counts.tolist(), strict=True)
            for column, count in zip(table.columns, counts, strict=True)
        )
        names = ("table", "predicted", "judged", "count", "total", "kappa")
        return [for_programs("counts", names, rows), *super().tables()]

    def json(self) -> Any:
        """Coefficients with their intervals, and the counts."""
        found = self.agreement
        _, *binarised = self.counts.values()
        kappas = {name: getattr(found, name) for name in ("kappa", "kappa_linear", "kappa_quadratic")}
        shape = flat(kappas | {"alpha": found.alpha_ordinal}) | {"alpha_level": "ordinal"}
        shape |= {"n": found.n, "queries": found.queries}
        shape |= {"only_predicted": found.first_only, "only_judged": found.second_only}
        shape["confusion"] = {"labels": found.scale, "counts": found.confusion}
        shape["binarised"] = [
            {"min_grade": border, "min_label": self.least_judged, **plain(table)}
            for border, table in zip(self.borders, binarised, strict=True)
        ]
        return plain(shape)


def of_labels(predicted: Labels, judged: Labels, least: int | None, least_judged: int) -> ExamAgreementBoard:
    """Compare labels; without ``least`` every predicted label above the lowest is tried as the border.

    Raises:
        InputError: the labels reach over more steps than any scale has.
    """
    found = label_agreement(predicted, judged)
    borders = [least] if least is not None else sorted(map(int, graded_table(found).rows))[1:]
    return ExamAgreementBoard(found, tuple(borders), least_judged)


def of_grades(first: Study, second: Study, least: int | None) -> ExamAgreementBoard:
    """How far two gradings give the same passage and item the same grade; ``least`` is the lowest that covers."""
    level = least or min(first.usual_level, second.usual_level)
    found = label_agreement(_pair_labels(first), _pair_labels(second))
    return ExamAgreementBoard(found, (level,), level, "pairs of passage and item", "the other grading")


def _pair_labels(study: Study) -> Labels:
    labels: dict[str, dict[str, int]] = {}
    for entry in study.grades:
        if entry.grade is not None:
            labels.setdefault(entry.query_id, {})[f"{entry.passage_id}\n{entry.item_id}"] = entry.grade
    return labels
