"""The exam: what each agent's passages cover of the test bank, at every grade, beside another leaderboard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT, FIGURE, PERCENT, counted, listed
from arena.present.table import Column, Table, for_programs, plain
from retrieval_eval.exam.scores import Correlation, correlate

if TYPE_CHECKING:
    from arena.results.exam_evaluation import ExamMeasure, ExamScores, GradedUnit
    from retrieval_eval.stats.estimate import Estimate

UNITS: Final[dict[GradedUnit, str]] = {"answers": "passages of an answer", "documents": "documents of an agent"}
"""What an exam grades, in words."""
_COMPARED: Final[Sequence[ExamMeasure]] = ("cover", "normalised")
"""What is held against an official leaderboard."""
_NAMED: Final = 3
"""Queries that a note names."""


class ExamBoard(Board, frozen=True):
    """The leaderboard of an exam.

    Attributes:
        chosen: the grade from which an item counts as covered, for people; the usual one where nobody chose.
    """

    exam: ExamScores
    chosen: int | None = None

    @property
    def level(self) -> int:
        """The grade from which an item counts as covered, for people."""
        return self.chosen or self.exam.level

    def sections(self) -> list[Section]:
        """The leaderboard, the cover at the other grades, and the official leaderboard's."""
        blocks = [self._scores()]
        if len(self.exam.cover.levels) > 1:
            blocks.append(self._levels())
        if self.exam.official is not None:
            blocks.append(self._official())
        lead = "How much of the test bank does each agent cover?"
        return [Section("exam", "Exam", lead, blocks)]

    def scored(self) -> Iterable[str]:
        """All agents, once one has a cover."""
        return self.exam.agents(self.exam.level) if self.exam.covers else ()

    def columns(self, agent: str) -> dict[str, Estimate | int | None]:
        """An agent's mean cover at the grade that counts, beside its rating, and how many grades are missing."""
        missing, of = self.exam.cover.gaps.of(agent)
        cover = self.exam.means[self.exam.level]["cover"].get(agent)
        return {"exam_cover": cover, "exam_missing": missing if of else None}

    def _scores(self) -> Table:
        k, cover = self.exam.cover.k, self.exam.cover
        rows: list[dict[str, Any]] = [
            {"agent": agent, **own, "share": own["graded"] / own["pairs"] if own["pairs"] else None}
            for agent, own in self.exam.agents(self.level).items()
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
        mean = "the queries it responded to" if exam.workbench else counted(len(cover.queries), "query", "queries")
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
        if missing := int(cover.missing.sum()):
            yield (
                f"{missing:,} of {pairs:,} grades are missing. Scores are over the items that lack none. At least, at "
                "most: the cover if no missing grade was enough, and if all were."
            )
            if unknown := [agent for agent in cover.agents if exam.means[self.level]["cover"][agent].value is None]:
                yield f"Too little is graded for a score of {listed(unknown, _NAMED)}."
        if unasked := pairs - graded - missing:
            yield f"{unasked:,} of {pairs:,} pairs are of passages without any grade, which cover nothing."
        if nobody := int(cover.uncovered_queries[cover.levels.index(self.level)]):
            yield f"{counted(nobody, 'query has', 'queries have')} no passage that covers an item."
        if empty := cover.empty_queries:
            yield f"{counted(len(empty), 'query', 'queries')} without items left out: {listed(empty, _NAMED)}."
        if (strange := study.strange_queries) and not exam.workbench:
            ranked = counted(len(strange), "ranked query is", "ranked queries are")
            yield f"{ranked} not in the bank: {listed(strange, _NAMED)}."
        if exam.grids.unknown:
            yield f"{counted(exam.grids.unknown, 'grade')} of items that the bank does not have, or retired, left out."

    def _levels(self) -> Table:
        means = {level: own["cover"] for level, own in self.exam.means.items()}
        rows = [
            {"agent": agent, **{str(level): own[agent].value for level, own in means.items()}}
            for agent in self.exam.agents(self.level)
        ]
        columns = [Column(str(level), f"Grade {level} or more", FIGURE) for level in means]
        return Table("exam-grades", "Cover from each grade", [Column("agent", "Agent"), *columns], rows)

    def _official(self) -> Table:
        rows = [
            {"score": name.capitalize(), "level": level, **asdict(own)}
            for name in _COMPARED
            for level, both in self._correlations().items()
            for own in [both[name]]
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
            for level in exam.cover.levels
            if official is not None
        }

    def queries(self) -> Table:
        """A row for each agent, query and level, for programs."""
        own = self.exam.cover
        scores = ("cover", "cover_possible", "normalised")
        names = ("agent", "qid", "min_grade", *scores, "responded", "pairs", "graded", "missing", "cover_least")
        counts = (own.present.astype(int), own.pairs, own.graded, own.missing)
        rows = (
            [
                *(agent, query_id, level),
                *(of[number, at, place].item() for of in (own.cover, own.possible, own.normalised)),
                *(of[number, at].item() for of in counts),
                own.least[number, at, place].item(),
            ]
            for number, agent in enumerate(own.agents)
            for at, query_id in enumerate(own.queries)
            for place, level in enumerate(own.levels)
        )
        return for_programs("exam-queries", names, rows)

    def json(self) -> Any:
        """The scores of every agent at every level, what they rest on, and how they were made."""
        exam, cover, study = self.exam, self.exam.cover, self.exam.study
        levels = {level: exam.agents(level) for level in cover.levels}
        found: dict[str, Any] = {
            "agents": [
                {
                    "agent": agent,
                    "levels": {level: _level_json(own[agent]) for level, own in levels.items()},
                    **{name: row[name] for name in ("queries", "pairs", "graded", "missing")},
                }
                for agent, row in levels[exam.level].items()
            ],
            "official": self._correlations(),
            "coverage": {
                "queries": len(cover.queries),
                "queries_without_items": cover.empty_queries,
                "queries_outside_the_bank": study.strange_queries,
                "queries_that_nobody_covers": dict(zip(cover.levels, cover.uncovered_queries.tolist(), strict=True)),
                "pairs": cover.pairs.sum(),
                "graded": cover.graded.sum(),
                "missing": cover.missing.sum(),
                "grades_outside_the_bank": study.grids.unknown,
            },
            "settings": {
                "texts": study.unit,
                "k": cover.k,
                "levels": cover.levels,
                "bank": None if exam.workbench else study.version,
                "compat": "workbench" if exam.workbench else None,
                "llm": study.grader.llm,
                "prompt": study.grader.prompt,
            },
        }
        return plain(found)


def _level_json(own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "place": own["place"],
        "cover_possible": own["possible"].value,
        "cover_least": own["least"].value,
        **{
            name: {
                "mean": own[name].value,
                "low": own[name].low,
                "high": own[name].high,
                "standard_error": own[name].error,
                "n": own[name].n,
            }
            for name in ("cover", "normalised", "alpha_ndcg")
        },
    }
