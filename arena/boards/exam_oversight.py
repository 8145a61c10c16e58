"""Boards for checking an exam: suspicious grades and items, and agreement with human labels or another grading.

The text and id of a secret item are never shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import field
from msgspec.structs import asdict

from arena.boards.agreement import coefficients
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, POINTS, WORDS, counted
from arena.present.table import Column, Table, crossed, first, flat, for_programs, plain, records
from arena.ratings.results import UNITS
from arena.results.exam_evaluation import Study
from judges.errors import InputError
from retrieval_eval.exam.grades import Grade
from retrieval_eval.exam.oversight import (
    Influence,
    Spurious,
    Uncovered,
    graded_answers,
    grid_rows,
    influences,
    spurious_items,
    uncovered_passages,
)
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats.agreement import LabelAgreement, LabelTable, binarised_table, graded_table, label_agreement
from retrieval_eval.stats.bootstrap import ALONE, Clusters

_FIRST: Final = 10
"""Number of rows of each table if several tables are shown together."""
_QUERY: Final = Column("qid", "Query")
_ITEM: Final = Column("item", "Item")
_PASSAGE: Final = Column("did", "Passage")
_TEXT: Final = Column("text", "Text")
_GRADED: Final = (Column("best_grade", "Highest grade", COUNT), Column("ungraded", "Not graded", COUNT))
_MOVED: Final = Column("moved", "Agents moved", COUNT, "Agents whose place is another one without the item.")
_LEADER: Final = Column("new_leader", "Other leader", meaning="Whether another agent leads without the item.")


class OversightBoard(Board, frozen=True):
    """Tables for finding faults in grades and in the test bank.

    Attributes:
        study: grades, bank, rankings and labels.
        level: the lowest grade that counts as covered.
        relevant: the lowest label that counts as relevant.
        k: number of top passages of each response that are scored.
        query_id: the query to show; ``None`` for all queries.
    """

    study: Study
    level: int
    relevant: int = 1
    k: int = 20
    query_id: str | None = None

    def view(self, name: str) -> Table:
        """One complete table: ``answers``, ``grid``, ``uncovered``, ``spurious`` or ``influence``.

        Raises:
            InputError: the query, rankings or labels that the table needs are missing.
        """
        study = self.study if self.query_id is None else self.study.of_query(self.query_id)
        if name == "grid":
            if self.query_id is None:
                raise InputError("the grid shows one query; name it with --query")
            return grid_table(study, self.query_id)
        if name == "answers":
            return answers_table(study)
        if name == "influence":
            if not study.rankings:
                raise InputError("there are no rankings; give the runs with --run")
            return influence_table(study, influences(study.grids, study.rankings, level=self.level, k=self.k))
        if not study.labels:
            raise InputError("there are no labels by people; name them with --qrels")
        return (uncovered_table if name == "uncovered" else spurious_table)(study, self.level, self.relevant)

    def sections(self) -> list[Section]:
        grids = self.study.grids
        sentences = [f"{grids.pairs:,} pairs of passage and item, {grids.ungraded:,} without a grade."]
        if not self.study.labels:
            sentences.append("No labels by people: --qrels names them, to see uncovered passages and spurious items.")
        if not self.study.rankings:
            sentences.append("No rankings: --run names them, to see which items the leaderboard hangs on.")
        tables = [first(table, _FIRST, f"'exam {name}'") for name, table in self._views().items()]
        blocks: list[Block] = [Remarks(sentences), *tables]
        return [Section("oversight", "Oversight", "Can grades and bank be trusted?", blocks)]

    def json(self) -> dict[str, Any]:
        """The rows of each table, by the name of the table."""
        return {name: records(table) for name, table in self._views().items()}

    def _views(self) -> dict[str, Table]:
        names = (["uncovered", "spurious"] if self.study.labels else []) + ["influence"][: bool(self.study.rankings)]
        return {name: self.view(name) for name in names}


def _rows(study: Study, entries: Iterable[Grade | Uncovered | Spurious | Influence]) -> list[dict[str, Any]]:
    """Rows of the records, with the text of each item and passage unless it is secret."""
    rows = [record._asdict() if isinstance(record, Grade) else asdict(record) for record in entries]
    for row in rows:
        row["qid"], row["did"] = row["query_id"], row.get("passage_id", "")
        row["item"], row["text"] = study.text_of(row.get("item_id", "")), study.text_of_passage(row["qid"], row["did"])
    return rows


def answers_table(study: Study, item_id: str = "") -> Table:
    """Grades beside the extracted answers, highest grade first; for one item, the passages' texts as well."""
    entries = graded_answers(study.grids, study.open_answers())
    rows = _rows(study, (entry for entry in entries if item_id in ("", entry.item_id)))
    answer, grade = Column("answer", "Answer or reason"), Column("grade", "Grade", COUNT)
    if item_id:
        return Table("grades-of-the-item", "", [_PASSAGE, grade, answer, _TEXT], rows)
    return Table("answers", "Grades and what they rest on", [_QUERY, _ITEM, _PASSAGE, answer, grade], rows)


def grid_table(study: Study, query_id: str) -> Table:
    """Grades of a query: passages in rows, items in columns numbered as in ``items_table``; highest sum first."""
    items = [study.open_id(item_id) for item_id in study.grids.grids[query_id].items]
    rows = [
        {"did": passage, **dict(zip(items, grades, strict=True))}
        for passage, grades in grid_rows(study.grids, query_id)
    ]
    columns = [Column(item, str(number), COUNT) for number, item in enumerate(items, start=1)]
    return Table("passages-and-items", "Grades of passages by items", [_PASSAGE, *columns], rows)


def items_table(study: Study, query_id: str, level: int) -> Table:
    """The items of one query, each with the number of passages that cover it."""
    grid = study.grids.grids[query_id]
    rows = [
        {
            "number": column + 1,
            "item": study.text_of(item_id),
            "weight": float(grid.weights[column]),
            "covered": int((grades >= level).sum()),
            "best_grade": int(grades.max()) if (grades >= 0).any() else None,
            "ungraded": int((grades < 0).sum()),
        }
        for column, item_id in enumerate(grid.items)
        for grades in [grid.grades[:, column]]
    ]
    columns = [
        Column("number", "No.", COUNT),
        _ITEM,
        Column("weight", "Weight", FIGURE),
        Column("covered", "Covered by", COUNT, "Passages with a grade that counts as covered."),
        *_GRADED,
    ]
    return Table("items", "Items of the query", columns, rows)


def uncovered_table(study: Study, level: int, relevant: int) -> Table:
    """Relevant passages that cover no item; the bank may lack an item on their content."""
    rows = _rows(study, uncovered_passages(study.grids, study.labels, level=level, relevant=relevant))
    columns = [_QUERY, _PASSAGE, _TEXT, Column("label", "Label", COUNT), *_GRADED]
    note = "The bank may lack what they say." if rows else "None: every relevant passage covers some item."
    return Table("uncovered", f"Relevant passages that no item covers: {len(rows):,}", columns, rows, [note])


def spurious_table(study: Study, level: int, relevant: int) -> Table:
    """Items that irrelevant passages cover; these items may need rewording."""
    rows = _rows(study, spurious_items(study.grids, study.labels, level=level, relevant=relevant))
    columns = [
        *(_QUERY, _ITEM),
        Column("not_relevant", "Not relevant, cover it", COUNT),
        Column("of", "of", COUNT),
        Column("relevant", "Relevant, cover it", COUNT),
        Column("of_relevant", "of those", COUNT),
    ]
    note = "Reword or retire them." if rows else "None: every passage that covers an item is relevant."
    return Table("spurious", f"Items that passages without relevance cover: {len(rows):,}", columns, rows, [note])


def influence_table(study: Study, effects: Sequence[Influence]) -> Table:
    """The effect on the leaderboard of leaving out each item, largest effect first."""
    rows = [row | {"new_leader": WORDS.write(row["new_leader"])} for row in _rows(study, effects)]
    tau, largest = Column("kendall", "Kendall's tau-b", FIGURE), Column("largest_move", "Largest move", POINTS)
    moving = sum(effect.moved > 0 for effect in effects)
    note = f"Without any one of the {len(effects):,} items all agents keep their places."
    if moving:
        note = f"Without one of the first {moving:,}, agents would change places: look at these first."
    title = f"Items that the leaderboard hangs on: {moving:,} of {len(effects):,}"
    return Table("influence", title, [_QUERY, _ITEM, _LEADER, tau, _MOVED, largest], rows, [note])


class ExamAgreementBoard(Board, frozen=True):
    """Agreement of predicted labels with human labels or another grading, as ``exam agreement`` shows it.

    Attributes:
        agreement: agreement of the two sets of labels; the predicted labels come first.
        borders: thresholds tried on the predicted labels: labels from the threshold up count as relevant.
        least_judged: the threshold on the other labels.
        units: name of the labelled units.
        other: source of the other labels, which are in the columns of the confusion tables.
        clusters: the conversation that each query belongs to.
    """

    agreement: LabelAgreement
    borders: tuple[int, ...]
    least_judged: int
    units: str = "passages"
    other: str = "people"
    clusters: Clusters = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, LabelTable]:
        """Confusion tables by name: one of all labels, then one for each threshold."""
        tables = {"graded": graded_table(self.agreement)}
        for border in self.borders:
            binarised = binarised_table(self.agreement, least_first=border, least_second=self.least_judged)
            tables[f"min_grade {border}"] = binarised
        return tables

    def sections(self) -> list[Section]:
        agreement, units = self.agreement, UNITS["conversation" if self.clusters else "query"]
        sentences = [f"{agreement.n:,} {self.units} with both labels, of {counted(agreement.queries, *units)}."]
        for count, description in (
            (agreement.first_only, f"no label by {self.other}"),
            (agreement.second_only, "no predicted label"),
        ):
            if count:
                sentences.append(f"{count:,} {self.units} with {description} are left out.")
        graded, *binarised = (self._table(name, table) for name, table in self.counts.items())
        blocks: list[Block] = [Remarks(sentences), graded, coefficients(agreement), *binarised]
        return [Section("agreement", "Agreement", f"Do the grades say what {self.other} said?", blocks)]

    def _table(self, name: str, table: LabelTable) -> Table:
        title = "Labels" if name == "graded" else f"Relevant from {name.removeprefix('min_grade ')}"
        names = table.rows, (*table.columns, "Total")
        counts = [[*row, sum(row)] for row in table.counts.tolist()]
        note = f"Cohen's kappa {FIGURE.write(table.kappa)}."
        title = f"{title}: predicted in rows, {self.other} in columns"
        return crossed(name, title, "Predicted", names, counts, notes=[note])

    def tables(self) -> list[Table]:
        """One table with all counts for programs, then the tables for people."""
        rows = (
            (name, row, column, count, sum(counts), table.kappa)
            for name, table in self.counts.items()
            for row, counts in zip(table.rows, table.counts.tolist(), strict=True)
            for column, count in zip(table.columns, counts, strict=True)
        )
        names = ("table", "predicted", "judged", "count", "total", "kappa")
        return [for_programs("counts", names, rows), *super().tables()]

    def json(self) -> Any:
        agreement = self.agreement
        _, *binarised = self.counts.values()
        kappas = {name: getattr(agreement, name) for name in ("kappa", "kappa_linear", "kappa_quadratic")}
        shape = flat(kappas | {"alpha": agreement.alpha_ordinal}) | {"alpha_level": "ordinal"}
        shape |= {"n": agreement.n, "queries": agreement.queries}
        shape |= {"only_predicted": agreement.first_only, "only_judged": agreement.second_only}
        shape["confusion"] = {"labels": agreement.scale, "counts": agreement.confusion}
        shape["binarised"] = [
            {"min_grade": border, "min_label": self.least_judged, **plain(table)}
            for border, table in zip(self.borders, binarised, strict=True)
        ]
        return plain(shape)


def of_labels(
    predicted: Labels, judged: Labels, least: int | None, least_judged: int, clusters: Clusters = ALONE
) -> ExamAgreementBoard:
    """Compare predicted labels with human labels.

    ``least`` is the threshold on the predicted labels; by default every label above the lowest is tried.

    Raises:
        InputError: the labels span more values than a scale can have.
    """
    agreement = label_agreement(predicted, judged, clusters=clusters)
    borders = [least] if least is not None else sorted(map(int, graded_table(agreement).rows))[1:]
    return ExamAgreementBoard(agreement, tuple(borders), least_judged, clusters=clusters)


def of_grades(first: Study, second: Study, least: int | None) -> ExamAgreementBoard:
    """Compare two gradings of the same passages and items; ``least`` is the lowest grade that counts as covered."""
    level = least or min(first.usual_level, second.usual_level)
    agreement = label_agreement(_pair_labels(first), _pair_labels(second), clusters=first.clusters)
    units = "pairs of passage and item"
    return ExamAgreementBoard(agreement, (level,), level, units, "the other grading", first.clusters)


def _pair_labels(study: Study) -> Labels:
    labels: dict[str, dict[str, int]] = {}
    for entry in study.grades:
        if entry.grade is not None:
            labels.setdefault(entry.query_id, {})[f"{entry.passage_id}\n{entry.item_id}"] = entry.grade
    return labels
