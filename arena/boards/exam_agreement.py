"""How labels made from grades agree with people's, or one grading with another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arena.exam.study import Study
from arena.present.blocks import Block, Board, Figure, Figures, Remarks, Section
from arena.present.glossary import TERMS
from arena.present.numbers import COUNT, SCORE, counted
from arena.present.plain import plain
from arena.present.table import Column, Table
from retrieval_eval.label_tables import LabelTable, binarised_table, graded_table
from retrieval_eval.metrics import Labels
from retrieval_eval.stats.agreement import LabelAgreement, label_agreement


@dataclass(frozen=True)
class ExamAgreementBoard(Board):
    """What ``exam agreement`` says.

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

    def counts(self) -> Iterator[tuple[str, LabelTable]]:
        """The tables of counts by name: of all labels, then with each border."""
        yield "graded", graded_table(self.agreement)
        for border in self.borders:
            yield (
                f"min_grade {border}",
                binarised_table(self.agreement, least_first=border, least_second=self.least_judged),
            )

    def sections(self) -> list[Section]:
        """The counts, how far they agree, and the same of what counts as relevant."""
        found = self.agreement
        named = {
            "Kappa": found.kappa,
            "Kappa, linear": found.kappa_linear,
            "Kappa, quadratic": found.kappa_quadratic,
            "Alpha, ordinal": found.alpha_ordinal,
        }
        figures = [Figure(name, own.value, SCORE, TERMS[name], own.low, own.high) for name, own in named.items()]
        said = [f"{found.n:,} {self.units} with both labels, of {counted(found.queries, 'query', 'queries')}."]
        for count, what in ((found.first_only, f"no label by {self.other}"), (found.second_only, "no predicted label")):
            if count:
                said.append(f"{count:,} {self.units} with {what} are left out.")
        graded, *binarised = (self._table(name, own) for name, own in self.counts())
        blocks: list[Block] = [Remarks(said), graded, Figures(figures), *binarised]
        return [Section("agreement", "Agreement", f"Do the grades say what {self.other} said?", blocks)]

    def _table(self, name: str, table: LabelTable) -> Table:
        rows = [
            {"predicted": row, "Total": sum(counts), **dict(zip(table.columns, counts, strict=True))}
            for row, counts in zip(table.rows, table.counts.tolist(), strict=True)
        ]
        columns = [Column(own, own, COUNT) for own in (*table.columns, "Total")]
        title = f"Labels: predicted in rows, {self.other} in columns"
        if name != "graded":
            title = f"Relevant from {name.removeprefix('min_grade ')}: predicted in rows, {self.other} in columns"
        note = f"Cohen's kappa {SCORE.write(table.kappa)}."
        return Table(
            name, title, [Column("predicted", "Predicted"), *columns, Column("total", "Total", COUNT)], rows, [note]
        )

    def tables(self) -> list[Table]:
        """All counts in one, for programs; then those for people."""
        names = ("table", "predicted", "judged", "count", "total", "kappa")
        rows = [
            dict(zip(names, (name, row, column, count, sum(counts), own.kappa), strict=True))
            for name, own in self.counts()
            for row, counts in zip(own.rows, own.counts.tolist(), strict=True)
            for column, count in zip(own.columns, counts, strict=True)
        ]
        return [Table("counts", "", [Column(name, "") for name in names], rows), *super().tables()]

    def json(self) -> Any:
        """Coefficients with their intervals, and the counts."""
        found = self.agreement
        named = {
            "kappa": found.kappa,
            "kappa_linear": found.kappa_linear,
            "kappa_quadratic": found.kappa_quadratic,
            "alpha": found.alpha_ordinal,
        }
        bounds = {
            f"{name}{end}": value
            for name, own in named.items()
            for end, value in (("", own.value), ("_low", own.low), ("_high", own.high))
        }
        shape: dict[str, Any] = {
            "n": found.n,
            "queries": found.queries,
            **bounds,
            "alpha_level": "ordinal",
            "confusion": {"labels": found.scale, "counts": found.confusion},
            "binarised": [
                {
                    "min_grade": border,
                    "min_label": self.least_judged,
                    "kappa": own.kappa,
                    "rows": own.rows,
                    "columns": own.columns,
                    "counts": own.counts,
                }
                for border, (_, own) in zip(self.borders, list(self.counts())[1:], strict=True)
            ],
            "only_predicted": found.first_only,
            "only_judged": found.second_only,
        }
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
