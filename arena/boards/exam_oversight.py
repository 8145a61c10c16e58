"""What to look at before trusting grades and a bank, and how grades agree with labels of people or another grading.

Of a secret item neither text nor id is shown.
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
from retrieval_eval.exam.oversight import (
    GradedAnswer,
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
"""Rows of a table among others."""
_QUERY: Final = Column("qid", "Query")
_ITEM: Final = Column("item", "Item")
_PASSAGE: Final = Column("did", "Passage")
_TEXT: Final = Column("text", "Text")
_GRADED: Final = (Column("best_grade", "Highest grade", COUNT), Column("ungraded", "Not graded", COUNT))
_MOVED: Final = Column("moved", "Agents moved", COUNT, "Agents whose place is another one without the item.")
_LEADER: Final = Column("new_leader", "Other leader", meaning="Whether another agent leads without the item.")


class OversightBoard(Board, frozen=True):
    """Where grades and bank may go wrong.

    Attributes:
        study: grades, bank, rankings and labels.
        level: the grade from which an item counts as covered.
        relevant: the label from which a passage is relevant.
        k: passages of a response that count.
        query_id: the only query to look at.
    """

    study: Study
    level: int
    relevant: int = 1
    k: int = 20
    query_id: str | None = None

    def view(self, name: str) -> Table:
        """One table, whole: ``answers``, ``grid``, ``uncovered``, ``spurious`` or ``influence``.

        Raises:
            InputError: what it is made of is not there.
        """
        study = self.study if self.query_id is None else self.study.of_query(self.query_id)
        if name == "grid":
            if self.query_id is None:
                raise InputError("--show grid: name the query with --query")
            return grid_table(study, self.query_id)
        if name == "answers":
            return answers_table(study)
        if name == "influence":
            if not study.rankings:
                raise InputError("--show influence: there are no rankings; give the runs with --run")
            return influence_table(study, influences(study.grids, study.rankings, level=self.level, k=self.k))
        if not study.labels:
            raise InputError("there are no labels by people; name them with --qrels")
        return (uncovered_table if name == "uncovered" else spurious_table)(study, self.level, self.relevant)

    def sections(self) -> list[Section]:
        """What there is to look at, the first rows of each table."""
        grids = self.study.grids
        said = [f"{grids.pairs:,} pairs of passage and item, {grids.ungraded:,} without a grade."]
        if not self.study.labels:
            said.append("No labels by people: --qrels names them, to see uncovered passages and spurious items.")
        if not self.study.rankings:
            said.append("No rankings: --run names them, to see which items the leaderboard hangs on.")
        tables = [first(table, _FIRST, f"--show {name}") for name, table in self._views().items()]
        blocks: list[Block] = [Remarks(said), *tables]
        return [Section("oversight", "Oversight", "Can grades and bank be trusted?", blocks)]

    def json(self) -> dict[str, Any]:
        """The rows of each table."""
        return {name: records(table) for name, table in self._views().items()}

    def _views(self) -> dict[str, Table]:
        names = (["uncovered", "spurious"] if self.study.labels else []) + ["influence"][: bool(self.study.rankings)]
        return {name: self.view(name) for name in names}


def _rows(study: Study, found: Iterable[GradedAnswer | Uncovered | Spurious | Influence]) -> list[dict[str, Any]]:
    """A row of each, with what may be shown of its item and passage."""
    rows = [asdict(one) for one in found]
    for row in rows:
        row["qid"], row["did"] = row["query_id"], row.get("passage_id", "")
        row["item"], row["text"] = study.text_of(row.get("item_id", "")), study.text_of_passage(row["qid"], row["did"])
    return rows


def answers_table(study: Study, item_id: str = "") -> Table:
    """Grades beside extracted answers, the highest first; of one item, with the passages' texts."""
    found = graded_answers(study.grids, study.open_answers())
    rows = _rows(study, (one for one in found if item_id in ("", one.item_id)))
    answer, grade = Column("answer", "Answer or reason"), Column("grade", "Grade", COUNT)
    if item_id:
        return Table("grades-of-the-item", "", [_PASSAGE, grade, answer, _TEXT], rows)
    return Table("answers", "Grades and what they rest on", [_QUERY, _ITEM, _PASSAGE, answer, grade], rows)


def grid_table(study: Study, query_id: str) -> Table:
    """Passages by items, numbered as in ``items_table``, the highest sum of grades first."""
    items = [study.open_id(item_id) for item_id in study.grids.grids[query_id].items]
    rows = [
        {"did": passage, **dict(zip(items, grades, strict=True))}
        for passage, grades in grid_rows(study.grids, query_id)
    ]
    columns = [Column(item, str(number), COUNT) for number, item in enumerate(items, start=1)]
    return Table("passages-and-items", "Grades of passages by items", [_PASSAGE, *columns], rows)


def items_table(study: Study, query_id: str, level: int) -> Table:
    """The items of one query, and how many passages cover them."""
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
    """Relevant passages that cover no item."""
    rows = _rows(study, uncovered_passages(study.grids, study.labels, level=level, relevant=relevant))
    columns = [_QUERY, _PASSAGE, _TEXT, Column("label", "Label", COUNT), *_GRADED]
    note = "The bank may lack what they say." if rows else "None: every relevant passage covers some item."
    return Table("uncovered", f"Relevant passages that no item covers: {len(rows):,}", columns, rows, [note])


def spurious_table(study: Study, level: int, relevant: int) -> Table:
    """Items that passages without relevance cover."""
    rows = _rows(study, spurious_items(study.grids, study.labels, level=level, relevant=relevant))
    columns = [
        *(_QUERY, _ITEM),
        Column("not_relevant", "Not relevant, cover it", COUNT),
        Column("of", "of", COUNT),
        Column("relevant", "Relevant, cover it", COUNT),
        Column("of_relevant", "of those", COUNT),
    ]
    note = "Reword or retire them." if rows else "None: whatever covers an item is relevant."
    return Table("spurious", f"Items that passages without relevance cover: {len(rows):,}", columns, rows, [note])


def influence_table(study: Study, found: Sequence[Influence]) -> Table:
    """The leaderboard without each item, those that move it most first."""
    rows = [row | {"new_leader": WORDS.write(row["new_leader"])} for row in _rows(study, found)]
    tau, largest = Column("kendall", "Kendall's tau-b", FIGURE), Column("largest_move", "Largest move", POINTS)
    moving = sum(one.moved > 0 for one in found)
    note = f"Without any one of the {len(found):,} items all agents keep their places."
    if moving:
        note = f"Without one of the first {moving:,}, agents would change places: look at these first."
    title = f"Items that the leaderboard hangs on: {moving:,} of {len(found):,}"
    return Table("influence", title, [_QUERY, _ITEM, _LEADER, tau, _MOVED, largest], rows, [note])


class ExamAgreementBoard(Board, frozen=True):
    """What ``exam --show agreement`` says.

    Attributes:
        agreement: of the labels as they are, the predicted ones first.
        borders: lowest predicted labels that count as relevant, each by itself.
        least_judged: lowest label of people that does.
        units: what has both labels.
        other: whose labels stand in the columns.
        clusters: the conversations of the queries.
    """

    agreement: LabelAgreement
    borders: tuple[int, ...]
    least_judged: int
    units: str = "passages"
    other: str = "people"
    clusters: Clusters = field(default_factory=dict)

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
        found, units = self.agreement, UNITS["conversation" if self.clusters else "query"]
        said = [f"{found.n:,} {self.units} with both labels, of {counted(found.queries, *units)}."]
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


def of_labels(
    predicted: Labels, judged: Labels, least: int | None, least_judged: int, clusters: Clusters = ALONE
) -> ExamAgreementBoard:
    """Compare labels; without ``least`` every predicted label above the lowest is tried as the border.

    Raises:
        InputError: the labels reach over more steps than any scale has.
    """
    found = label_agreement(predicted, judged, clusters=clusters)
    borders = [least] if least is not None else sorted(map(int, graded_table(found).rows))[1:]
    return ExamAgreementBoard(found, tuple(borders), least_judged, clusters=clusters)


def of_grades(first: Study, second: Study, least: int | None) -> ExamAgreementBoard:
    """How far two gradings give the same passage and item the same grade; ``least`` is the lowest that covers."""
    level = least or min(first.usual_level, second.usual_level)
    found = label_agreement(_pair_labels(first), _pair_labels(second), clusters=first.clusters)
    units = "pairs of passage and item"
    return ExamAgreementBoard(found, (level,), level, units, "the other grading", first.clusters)


def _pair_labels(study: Study) -> Labels:
    labels: dict[str, dict[str, int]] = {}
    for entry in study.grades:
        if entry.grade is not None:
            labels.setdefault(entry.query_id, {})[f"{entry.passage_id}\n{entry.item_id}"] = entry.grade
    return labels
