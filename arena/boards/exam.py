"""The exam's board: how much of the test bank each agent's passages cover, beside an official leaderboard if given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import field
from msgspec.structs import asdict

from arena.boards.metrics import HEAD_WEIGHTED, coefficients
from arena.boards.quantities import quantity
from arena.boards.scores import ScoreBoard
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, PERCENT, POINTS, WORDS, counted, listed
from arena.present.table import Column, Table, crossed, fields, first, flat, for_programs, plain, records
from arena.ratings.results import UNITS
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
from retrieval_eval.exam.scores import Correlation, ExamMeasure, ExamScores, GradedUnit, correlate, standard_error
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats.agreement import LabelAgreement, LabelTable, binarised_table, graded_table, label_agreement
from retrieval_eval.stats.bootstrap import ALONE, Clusters

if TYPE_CHECKING:
    from arena.results.exam import Study

GRADED_TEXTS: Final[dict[GradedUnit, str]] = {"answers": "passages of an answer", "documents": "documents of an agent"}
_COMPARED: Final[Sequence[ExamMeasure]] = ("cover", "normalised")
_NAMED: Final = 3


class ExamBoard(ScoreBoard, frozen=True, eq=False, kw_only=True):
    """Scores of an EXAM evaluation at every level; tables for people use the usual level.

    A level is the lowest grade that counts as covered.
    """

    exam: ExamScores

    def sections(self) -> list[Section]:
        blocks = [self._scores()]
        if len(self.exam.by_level) > 1:
            blocks.append(self._levels())
        if self.exam.official is not None:
            blocks.append(self._official())
        lead = "How much of the test bank does each agent cover?"
        return [Section("exam", "Exam", lead, blocks)]

    def _scores(self) -> Table:
        k, cover = self.exam.cover.k, self.exam.cover
        rows: list[dict[str, Any]] = [
            {"agent": agent, **scores, "share": scores["graded"] / scores["pairs"] if scores["pairs"] else None}
            for agent, scores in self.exam.agents(self.exam.level).items()
        ]
        columns = [
            Column("agent", "Agent"),
            Column("place", "Place", COUNT, "By cover; ties share the average."),
            quantity("cover").column("cover", interval=True),
            Column("least", "At least", FIGURE, "Cover if no pair without a grade covered its item."),
            Column("possible", "At most", FIGURE, "Cover if every pair without a grade covered its item."),
            Column("normalised", "Normalised", FIGURE, "Share of those items that any passage of the query covers."),
            Column("alpha_ndcg", f"alpha-nDCG@{k}", FIGURE, "Covering an item again, or late, is worth less."),
            Column("queries", "Queries", COUNT, "Queries to which the agent has a response."),
            Column("share", "Graded", PERCENT, "Share of the pairs of its passages and the items that have a grade."),
            Column("missing", "Missing", COUNT, "Grades that failed or were never given; in no score."),
        ]
        if (cover.pairs == cover.graded).all():
            columns = [column for column in columns if column.key not in ("least", "possible", "missing")]
        return Table("exam-cover", "EXAM-Cover", columns, rows, list(self._notes()))

    def _notes(self) -> Iterator[str]:
        exam, cover = self.exam, self.exam.cover
        mean = "the queries it responded to" if exam.workbench else counted(len(cover.queries), "query", "queries")
        yield (
            f"Share of the test bank's items that the first {cover.k} {GRADED_TEXTS[exam.unit]} cover with a grade of "
            f"{self.exam.level} or more, mean over {mean}{'' if exam.workbench else '; no response counts 0'}."
        )
        if exam.workbench:
            yield "The bank is the items with a grade, as the workbench counts."
        elif exam.items is None:
            yield "The bank is the items with a grade, since no --bank was given."
        else:
            yield f"Bank version {exam.version}: {counted(exam.items, 'item')}."
        pairs, graded = int(cover.pairs.sum()), int(cover.graded.sum())
        if missing := int(cover.judgments[1].sum()):
            yield (
                f"{missing:,} of {pairs:,} grades are missing. Scores are over the items that lack none. At least, at "
                "most: the cover if no missing grade was enough, and if all were."
            )
            if unknown := [
                agent for agent, mean in exam.by_level[self.exam.level]["cover"].means.items() if mean.value is None
            ]:
                yield f"Too little is graded for a score of {listed(unknown, _NAMED)}."
        if ungraded := pairs - graded - missing:
            yield f"{ungraded:,} of {pairs:,} pairs are of passages without any grade, which cover nothing."
        if uncovered := cover.uncovered_queries[self.exam.level]:
            yield f"{counted(uncovered, 'query has', 'queries have')} no passage that covers an item."
        if empty := cover.empty_queries:
            yield f"{counted(len(empty), 'query', 'queries')} without items left out: {listed(empty, _NAMED)}."
        if (outside := exam.strange_queries) and not exam.workbench:
            ranked = counted(len(outside), "ranked query is", "ranked queries are")
            yield f"{ranked} not in the bank: {listed(outside, _NAMED)}."
        if exam.unknown and not exam.workbench:
            yield f"{counted(exam.unknown, 'grade')} of items that the bank does not have, or retired, left out."

    def _levels(self) -> Table:
        means = {level: measures["cover"].means for level, measures in self.exam.by_level.items()}
        rows = [
            {"agent": agent, **{str(level): cover[agent].value for level, cover in means.items()}}
            for agent in self.exam.agents(self.exam.level)
        ]
        columns = [Column(str(level), f"Grade {level} or more", FIGURE) for level in means]
        return Table("exam-grades", "EXAM-Cover from each grade on", [Column("agent", "Agent"), *columns], rows)

    def _official(self) -> Table:
        rows = [
            {"score": name.capitalize(), "level": level, **asdict(by_score[name])}
            for name in _COMPARED
            for level, by_score in self._correlations().items()
        ]
        only = {"Only here": rows[0]["only_first"], "Only there": rows[0]["only_second"]}
        columns = [
            Column("score", "Score"),
            Column("level", "Grade", COUNT),
            Column("spearman", "Spearman's rho", FIGURE),
            Column("kendall", "Kendall's tau", FIGURE),
            *(Column(key, name, FIGURE) for key, name in HEAD_WEIGHTED.items()),
            Column("n", "Agents", COUNT),
        ]
        notes = [f"{where}: {listed(agents)}." for where, agents in only.items() if agents]
        return Table("exam-official", "Agreement with the official leaderboard", columns, rows, notes)

    def _correlations(self) -> dict[int, dict[str, Correlation]]:
        exam, official = self.exam, self.exam.official
        return {
            level: {name: correlate(exam.places(level, name), official) for name in _COMPARED}
            for level in exam.by_level
            if official is not None
        }

    def queries(self) -> Table:
        cover = self.exam.cover
        names = ["agent", "qid", "min_grade", "cover", "cover_possible", "normalised"]
        names += ["responded", "pairs", "graded", "missing", "cover_least"]
        counts = (cover.present.astype(int), cover.pairs, cover.graded, cover.judgments[1])
        shown: Sequence[ExamMeasure] = ("cover", "possible", "normalised")
        rows = (
            [
                *(agent, query_id, level),
                *(measures[name].values[row, column].item() for name in shown),
                *(values[row, column].item() for values in counts),
                measures["least"].values[row, column].item(),
            ]
            for row, agent in enumerate(cover.agents)
            for column, query_id in enumerate(cover.queries)
            for level, measures in cover.by_level.items()
        )
        return for_programs("exam-queries", names, rows)

    def json(self) -> Any:
        exam, cover = self.exam, self.exam.cover
        levels = {level: exam.agents(level) for level in exam.by_level}
        shape: dict[str, Any] = {
            "agents": [
                {
                    "agent": agent,
                    "levels": {level: self._level_json(level, agent, rows[agent]) for level, rows in levels.items()},
                    **{name: row[name] for name in ("queries", "pairs", "graded", "missing")},
                }
                for agent, row in levels[exam.level].items()
            ],
            "official": self._correlations(),
            "coverage": {
                "queries": len(cover.queries),
                "queries_without_items": cover.empty_queries,
                "queries_outside_the_bank": exam.strange_queries,
                "queries_that_nobody_covers": cover.uncovered_queries,
                "pairs": cover.pairs.sum(),
                "graded": cover.graded.sum(),
                "missing": cover.judgments[1].sum(),
                "grades_outside_the_bank": exam.unknown,
            },
            "settings": {
                "texts": exam.unit,
                "k": cover.k,
                "levels": tuple(exam.by_level),
                "bank": None if exam.workbench else exam.version,
                "compat": "workbench" if exam.workbench else None,
                "llm": exam.grader.llm,
                "prompt": exam.grader.prompt,
            },
        }
        return plain(shape)

    def _level_json(self, level: int, agent: str, row: Mapping[str, Any]) -> dict[str, Any]:
        compared: Sequence[ExamMeasure] = ("cover", "normalised", "alpha_ndcg")
        return {
            "place": row["place"],
            "cover_possible": row["possible"].value,
            "cover_least": row["least"].value,
            **{
                name: fields(row[name], "low", "high")
                | {"mean": row[name].value, "n": self.exam.by_level[level][name].count(agent)}
                | {"standard_error": standard_error(self.exam.by_level[level][name], agent)}
                for name in compared
            },
        }


def exam_board(exam: ExamScores) -> ExamBoard:
    return ExamBoard("exam", (exam.by_level[exam.level]["cover"],), exam=exam)


_FIRST: Final = 10
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
        level: the lowest grade that counts as covered.
        relevant: the lowest label that counts as relevant.
        k: number of top passages of each response that are scored.
    """

    study: Study
    level: int
    relevant: int = 1
    k: int = 20
    query_id: str | None = None

    def view(self, name: str) -> Table:
        """The table of this name; raises ``InputError`` if the query, rankings or labels that it needs are missing."""
        study = self.study if self.query_id is None else self.study.of_query(self.query_id)
        if name == "grid":
            if self.query_id is None:
                raise InputError("the grid shows the grades of one query; name the query with --query")
            return grid_table(study, self.query_id)
        if name == "answers":
            return answers_table(study)
        if name == "influence":
            if not study.rankings:
                raise InputError(
                    "no rankings of passages, so there is no leaderboard to influence; name the runs with --run"
                )
            return influence_table(study, influences(study.grids, study.rankings, level=self.level, k=self.k))
        if not study.labels:
            raise InputError("no labels by people to compare the grades with; name a file of labels with --qrels")
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
        return {name: records(table) for name, table in self._views().items()}

    def _views(self) -> dict[str, Table]:
        names = (["uncovered", "spurious"] if self.study.labels else []) + ["influence"][: bool(self.study.rankings)]
        return {name: self.view(name) for name in names}


def _rows(study: Study, entries: Iterable[Grade | Uncovered | Spurious | Influence]) -> list[dict[str, Any]]:
    rows = [record._asdict() if isinstance(record, Grade) else asdict(record) for record in entries]
    for row in rows:
        row["qid"], row["did"] = row["query_id"], row.get("passage_id", "")
        row["item"], row["text"] = study.text_of(row.get("item_id", "")), study.text_of_passage(row["qid"], row["did"])
    return rows


def answers_table(study: Study, item_id: str = "") -> Table:
    """Table of grades and extracted answers, highest grade first; for a single item also the passages' texts."""
    entries = graded_answers(study.grids, study.open_answers())
    rows = _rows(study, (entry for entry in entries if item_id in ("", entry.item_id)))
    answer, grade = Column("answer", "Answer or reason"), Column("grade", "Grade", COUNT)
    if item_id:
        return Table("grades-of-the-item", "", [_PASSAGE, grade, answer, _TEXT], rows)
    return Table("answers", "Grades and what they rest on", [_QUERY, _ITEM, _PASSAGE, answer, grade], rows)


def grid_table(study: Study, query_id: str) -> Table:
    """Table of a query's grades: a row for each passage, the highest sum of grades first, and a column for each item.

    The columns have the numbers of the items in ``items_table``.
    """
    items = [study.open_id(item_id) for item_id in study.grids.grids[query_id].items]
    rows = [
        {"did": passage, **dict(zip(items, grades, strict=True))}
        for passage, grades in grid_rows(study.grids, query_id)
    ]
    columns = [Column(item, str(number), COUNT) for number, item in enumerate(items, start=1)]
    return Table("passages-and-items", "Grades of passages by items", [_PASSAGE, *columns], rows)


def items_table(study: Study, query_id: str, level: int) -> Table:
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
    """Table of relevant passages that cover no item: the test bank may lack an item on their content."""
    rows = _rows(study, uncovered_passages(study.grids, study.labels, level=level, relevant=relevant))
    columns = [_QUERY, _PASSAGE, _TEXT, Column("label", "Label", COUNT), *_GRADED]
    note = "The bank may lack what they say." if rows else "None: every relevant passage covers some item."
    return Table("uncovered", f"Relevant passages that no item covers: {len(rows):,}", columns, rows, [note])


def spurious_table(study: Study, level: int, relevant: int) -> Table:
    """Table of items that irrelevant passages cover: these items may need rewording."""
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
    """Table of how the leaderboard changes if one item is left out; the item with the largest change comes first."""
    rows = [row | {"new_leader": WORDS.write(row["new_leader"])} for row in _rows(study, effects)]
    tau, largest = Column("kendall", "Kendall's tau", FIGURE), Column("largest_move", "Largest move", POINTS)
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
        other: source of the other labels, which are in the columns of the confusion tables.
    """

    agreement: LabelAgreement
    borders: tuple[int, ...]
    least_judged: int
    units: str = "passages"
    other: str = "people"
    clusters: Clusters = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, LabelTable]:
        tables = {"graded": graded_table(self.agreement)}
        for border in self.borders:
            binarised = binarised_table(self.agreement, least_first=border, least_second=self.least_judged)
            tables[f"min_grade {border}"] = binarised
        return tables

    def sections(self) -> list[Section]:
        agreement, units = self.agreement, UNITS["conversation" if self.clusters else "query"]
        sentences = [f"{agreement.n:,} {self.units} with both labels, of {counted(agreement.queries, *units)}."]
        lacking = {f"no label by {self.other}": agreement.first_only, "no predicted label": agreement.second_only}
        sentences += [f"{count:,} {self.units} with {what} are left out." for what, count in lacking.items() if count]
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
        kappas = fields(agreement, "kappa", "kappa_linear", "kappa_quadratic")
        shape = flat(kappas | {"alpha": agreement.alpha_ordinal}) | {"alpha_level": "ordinal"}
        shape |= fields(agreement, "n", "queries")
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
    """Compare predicted labels with people's labels; ``least`` is the lowest predicted label that counts as relevant.

    Without ``least``, each predicted label above the lowest is tried.
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
