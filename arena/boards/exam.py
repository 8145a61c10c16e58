"""The exam's board: how much of the test bank each agent's passages cover, beside an official leaderboard if given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from arena.boards.scores import ScoreBoard
from arena.present.blocks import Section
from arena.present.numbers import COUNT, FIGURE, PERCENT, counted, listed
from arena.present.table import Column, Table, for_programs, plain
from retrieval_eval.exam.scores import Correlation, ExamMeasure, correlate, standard_error

if TYPE_CHECKING:
    from arena.results.exam_evaluation import ExamScores, GradedUnit

UNITS: Final[dict[GradedUnit, str]] = {"answers": "passages of an answer", "documents": "documents of an agent"}
"""Name of the graded texts, by the kind of unit that an exam grades."""
_COMPARED: Final[Sequence[ExamMeasure]] = ("cover", "normalised")
"""Measures to compare with an official leaderboard."""
_NAMED: Final = 3
"""Largest number of queries that a note names."""


class ExamBoard(ScoreBoard, frozen=True, eq=False, kw_only=True):
    """Scores of an exam.

    Attributes:
        exam: the scores at every level.
        chosen: the lowest grade that counts as covered in the tables for people; ``None`` for the exam's usual grade.
    """

    exam: ExamScores
    chosen: int | None = None

    @property
    def level(self) -> int:
        """The lowest grade that counts as covered in the tables for people."""
        return self.chosen or self.exam.level

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
            for agent, scores in self.exam.agents(self.level).items()
        ]
        columns = [
            Column("agent", "Agent"),
            Column("place", "Place", COUNT, "By cover; ties share the average."),
            Column("cover", f"Cover@{k}", FIGURE, "Share of the test bank's items that are covered.", "95% interval"),
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
        exam, cover, study = self.exam, self.exam.cover, self.exam.study
        mean = "the queries it responded to" if exam.workbench else counted(len(cover.gaps.queries), "query", "queries")
        yield (
            f"Share of the test bank's items that the first {cover.k} {UNITS[study.unit]} cover with a grade of "
            f"{self.level} or more, mean over {mean}{'' if exam.workbench else '; no response counts 0'}."
        )
        if exam.workbench:
            yield "The bank is the items with a grade, as the workbench counts."
        elif study.bank is None:
            yield "The bank is the items with a grade, since no --bank was given."
        else:
            yield f"Bank version {study.version}: {counted(sum(map(len, study.bank.active.values())), 'item')}."
        pairs, graded = int(cover.pairs.sum()), int(cover.graded.sum())
        if missing := int(cover.gaps.missing.sum()):
            yield (
                f"{missing:,} of {pairs:,} grades are missing. Scores are over the items that lack none. At least, at "
                "most: the cover if no missing grade was enough, and if all were."
            )
            if unknown := [
                agent for agent, mean in exam.by_level[self.level]["cover"].means.items() if mean.value is None
            ]:
                yield f"Too little is graded for a score of {listed(unknown, _NAMED)}."
        if ungraded := pairs - graded - missing:
            yield f"{ungraded:,} of {pairs:,} pairs are of passages without any grade, which cover nothing."
        if uncovered := cover.uncovered_queries[self.level]:
            yield f"{counted(uncovered, 'query has', 'queries have')} no passage that covers an item."
        if empty := cover.empty_queries:
            yield f"{counted(len(empty), 'query', 'queries')} without items left out: {listed(empty, _NAMED)}."
        if (outside := study.strange_queries) and not exam.workbench:
            ranked = counted(len(outside), "ranked query is", "ranked queries are")
            yield f"{ranked} not in the bank: {listed(outside, _NAMED)}."
        if exam.grids.unknown:
            yield f"{counted(exam.grids.unknown, 'grade')} of items that the bank does not have, or retired, left out."

    def _levels(self) -> Table:
        means = {level: measures["cover"].means for level, measures in self.exam.by_level.items()}
        rows = [
            {"agent": agent, **{str(level): cover[agent].value for level, cover in means.items()}}
            for agent in self.exam.agents(self.level)
        ]
        columns = [Column(str(level), f"Grade {level} or more", FIGURE) for level in means]
        return Table("exam-grades", "Cover from each grade", [Column("agent", "Agent"), *columns], rows)

    def _official(self) -> Table:
        rows = [
            {"score": name.capitalize(), "level": level, **asdict(correlation)}
            for name in _COMPARED
            for level, by_score in self._correlations().items()
            for correlation in [by_score[name]]
        ]
        only = {"Only here": rows[0]["only_first"], "Only there": rows[0]["only_second"]}
        columns = [
            Column("score", "Score"),
            Column("level", "Grade", COUNT),
            Column("spearman", "Spearman", FIGURE),
            Column("kendall", "Kendall's tau-b", FIGURE),
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
        """A row for each agent, query and grade, for programs."""
        cover = self.exam.cover
        scores = ("cover", "cover_possible", "normalised")
        names = ("agent", "qid", "min_grade", *scores, "responded", "pairs", "graded", "missing", "cover_least")
        counts = (cover.present.astype(int), cover.pairs, cover.graded, cover.gaps.missing)
        shown: Sequence[ExamMeasure] = ("cover", "possible", "normalised")
        rows = (
            [
                *(agent, query_id, level),
                *(measures[name].values[row, column].item() for name in shown),
                *(values[row, column].item() for values in counts),
                measures["least"].values[row, column].item(),
            ]
            for row, agent in enumerate(cover.gaps.agents)
            for column, query_id in enumerate(cover.gaps.queries)
            for level, measures in cover.by_level.items()
        )
        return for_programs("exam-queries", names, rows)

    def json(self) -> Any:
        exam, cover, study = self.exam, self.exam.cover, self.exam.study
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
                "queries": len(cover.gaps.queries),
                "queries_without_items": cover.empty_queries,
                "queries_outside_the_bank": study.strange_queries,
                "queries_that_nobody_covers": cover.uncovered_queries,
                "pairs": cover.pairs.sum(),
                "graded": cover.graded.sum(),
                "missing": cover.gaps.missing.sum(),
                "grades_outside_the_bank": study.grids.unknown,
            },
            "settings": {
                "texts": study.unit,
                "k": cover.k,
                "levels": tuple(exam.by_level),
                "bank": None if exam.workbench else study.version,
                "compat": "workbench" if exam.workbench else None,
                "llm": study.grader.llm,
                "prompt": study.grader.prompt,
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
                name: {
                    "mean": row[name].value,
                    "low": row[name].low,
                    "high": row[name].high,
                    "standard_error": standard_error(self.exam.by_level[level][name], agent),
                    "n": self.exam.by_level[level][name].count(agent),
                }
                for name in compared
            },
        }


def exam_board(exam: ExamScores, chosen: int | None = None) -> ExamBoard:
    """The board of an exam's scores; ``chosen`` is as in ``ExamBoard``."""
    return ExamBoard("exam", (exam.by_level[exam.level]["cover"],), exam=exam, chosen=chosen)
