"""A tournament's leaderboard with all that stands beside it, for every form in which it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from arena.boards.costs import CostsBoard
from arena.boards.health import judge_section
from arena.boards.ratings import conclusion_section, controlled_json, rating_table, ratings_json, ratings_section
from arena.boards.trust import in_short, trust_checks
from arena.conclusion import Conclusion, adaptive_line, conclude_board
from arena.coverage import STAGES
from arena.present.blocks import Block, Board, Check, Checks, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, PERCENT_1, SCORE, counted
from arena.present.plain import flat, plain
from arena.present.table import Column, Table, records
from judges.errors import CAUSES, RETRIED_NEXT_RUN

if TYPE_CHECKING:
    from arena.boards.citations import Citations
    from arena.boards.exam import ExamBoard
    from arena.boards.nuggets import Nuggets
    from arena.boards.retrieval import Retrieval
    from arena.calibration.comparison import Comparison
    from arena.calibration.opinions import Level
    from arena.coverage import Coverage
    from arena.leaderboard import Leaderboard
    from arena.ratings.panel import PanelRatings
    from judges.types import Task

TERMINAL: Final = frozenset(
    {"conclusion", "leaderboard", "judges", "criteria", "exam", "nuggets", "retrieval", "citations", "costs"}
    | {"coverage", "retrieval-judges", "retrieval-agreement"}
)
"""Sections that fit a terminal."""
_STAGES: Final = (
    Column("stage", "Stage"),
    Column("share", "Done", PERCENT_1),
    Column("wanted", "Wanted", COUNT),
    Column("judged", "Judged", COUNT),
    Column("failed", "Failed", COUNT),
    Column("left", "Left", COUNT, "Not asked yet, or waiting for what it builds on."),
    Column("identical", "Without a call", COUNT, "Among the judged: ties as both answers are the same text."),
)
_FAILURES: Final = (
    Column("cause", "Cause"),
    Column("stage", "Stage"),
    Column("judge", "Judge"),
    Column("failures", "Failures", COUNT, "Samples are counted one by one."),
    Column("remedy", "What to do"),
)


@dataclass(frozen=True, slots=True)
class TournamentBoard(Board):
    """A leaderboard, and what it takes to say whether to believe it.

    Attributes:
        board: what was computed.
        comparisons: its judges held against people, where people judged games.
        apart: levels on which people judged nothing that a judge judged.
        matrix: of who won how often against whom.
        queries: texts by id.
        failures: how often which cause, by stage and judge; without it the board's causes alone.
        effort: further tables of what was judged.
        calibration: sections on people and on ways of scoring.
    """

    board: Leaderboard
    comparisons: Sequence[Comparison] = ()
    apart: Sequence[Level] = ()
    matrix: Section | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[tuple[Task, str, str], int] = field(default_factory=dict)
    effort: Sequence[Block] = ()
    calibration: Sequence[Section] = ()

    @property
    def conclusion(self) -> Conclusion:
        """What may be said of it."""
        return conclude_board(self.board, self.comparisons)

    @property
    def order(self) -> list[str]:
        """Agents with a rating, best first: the order of all other tables, whose further agents follow by name."""
        return [] if self.board.ratings is None else [row.agent for row in self.board.ratings.agents]

    def checks(self) -> tuple[Check, ...]:
        """Whether it may be believed."""
        return trust_checks(self.board, self.conclusion, self.comparisons, self.apart)

    def sections(self) -> list[Section]:
        """All of it, the conclusion first."""
        board, conclusion, checks = self.board, self.conclusion, self.checks()
        found = [conclusion_section(conclusion, board.ratings, in_short(checks))]
        if board.ratings is not None:
            found.append(
                ratings_section(
                    board.ratings,
                    conclusion,
                    table=self._table(),
                    controlled=board.controlled,
                    queries=self.queries,
                    remarks=[*self._remarks(conclusion)],
                )
            )
        lead = "Each of these must hold before the order above is worth acting on. The bars are rules of thumb."
        found.append(Section("trust", "Can this be trusted?", lead, [Checks(checks)]))
        found += [self.matrix] if self.matrix is not None else []
        if board.ratings is not None:
            found += judge_section(board.ratings, board.by_judge, board.panel, board.consistency)
        found += self.calibration
        if board.criteria:
            found.append(self._criteria())
        found += self._beside_ratings()
        return [*found, *self._coverage()]

    def tables(self) -> list[Table]:
        """All tables; the first has every score of every agent for programs."""
        found = Board.tables(self)
        return found if self.board.ratings is not None else [self._table(), *found]

    def json(self) -> dict[str, Any]:
        """The shape of ``leaderboard --format json`` and ``run --json``."""
        board, ratings = self.board, self.board.ratings
        lacking = board.shortfall
        return {
            "tournament": board.tournament,
            "agents": self._agents(),
            "criteria": board.criteria,
            "conclusion": self.conclusion,
            "judge_health": ratings and ratings.judge_health and flat(ratings.judge_health),
            "judges": ratings and ratings.judges,
            "by_judge": {judge: ratings_json(own, self.comparisons, judge) for judge, own in board.by_judge.items()},
            "pairs": ratings.pairs if ratings else [],
            "fragility": ratings.fragility if ratings else [],
            "nuggets": self._nuggets and self._nuggets.json(),
            "coverage": {task: _stage(own) for task, own in board.coverage.items()},
            "self_consistency": board.consistency,
            "shortfall": lacking
            and {
                **plain(lacking),
                "share": lacking.share,
                "message": lacking.message,
                "withheld": board.withheld,
            },
            "failures": board.causes,
            "complete": board.complete,
            "costs": CostsBoard(board.costs).json(),
            "panel": None if board.panel is None else _panel_json(board.panel),
            "controlled": None if board.controlled is None else controlled_json(board.controlled),
            "position": None
            if ratings is None or ratings.position_effect is None
            else {"effect": ratings.position_effect, "low": ratings.position_low, "high": ratings.position_high},
            "adaptive": board.adaptive,
            "retrieval": self._retrieval and self._retrieval.json(),
            "citations": self._citations and self._citations.json(),
            "notes": ratings.notes if ratings else [],
            "exam": self._exam and self._exam.json(),
            "settings": without_bank(board.settings),
        }

    def _beside_ratings(self) -> Iterator[Section]:
        """Agents judged without an opponent, and what their answers took."""
        for part in (self._exam, self._nuggets, self._citations, self._retrieval, CostsBoard(self.board.costs)):
            if part is not None:
                yield from part.sections()

    # The boards of stages are imported where a tournament has them.

    @property
    def _exam(self) -> ExamBoard | None:
        if self.board.exam is None:
            return None
        from arena.boards.exam import ExamBoard

        return ExamBoard(self.board.exam)

    @property
    def _nuggets(self) -> Nuggets | None:
        if self.board.nuggets is None:
            return None
        from arena.boards.nuggets import Nuggets

        return Nuggets(self.board.nuggets, self.order)

    @property
    def _citations(self) -> Citations | None:
        if self.board.citations is None:
            return None
        from arena.boards.citations import Citations

        return Citations(self.board.citations, self.order)

    @property
    def _retrieval(self) -> Retrieval | None:
        if self.board.retrieval is None:
            return None
        from arena.boards.retrieval import Retrieval

        return Retrieval(self.board.retrieval, self.order)

    def _agents(self) -> list[dict[str, Any]]:
        """Of each agent its rating, its criteria, and scores that are one number."""
        if self.board.ratings is None:
            return []
        table = self._table()
        left_out = {"bt_controlled", *self._criterion_keys(), *(self._retrieval.columns("") if self._retrieval else ())}
        left_out |= CostsBoard(self.board.costs).columns("").keys()
        columns = [column for column in table.columns if column.key not in left_out]
        return [
            {**row, "criteria": self.board.criteria.get(row["agent"], {})}
            for row in records(replace(table, columns=columns))
        ]

    def _table(self) -> Table:
        """The ratings; beside them, for programs, all other scores that are one number for an agent."""
        board, beside = self.board, self._beside
        if board.ratings is None:
            nuggets = [] if self._nuggets is None else self._nuggets.agents()
            retrieving = [] if self._retrieval is None else self._retrieval.scored()
            agents = [*board.criteria, *self._covers(), *nuggets, *retrieving]
            table = Table(
                "scores", "", [Column("agent", "Agent")], [{"agent": agent} for agent in dict.fromkeys(agents)]
            )
        else:
            table = rating_table(board.ratings)
        rows = [{**row, **beside(row["agent"])} for row in table.rows]
        headings = {"exam_cover": "EXAM-Cover"} if board.ratings is not None else dict.fromkeys(beside(""), "")
        return replace(
            table,
            columns=[*table.columns, *(Column(key, headings.get(key, ""), SCORE) for key in beside(""))],
            rows=rows,
        )

    def _beside(self, agent: str) -> dict[str, Any]:
        board = self.board
        found: dict[str, Any] = {}
        if board.controlled is not None:
            controlled = {row.agent: row.rating for row in board.controlled.agents}
            found["bt_controlled"] = controlled.get(agent)
        if self._nuggets is not None:
            found |= self._nuggets.columns(agent)
        if self._citations is not None:
            found |= self._citations.columns(agent)
        if board.exam is not None:
            found["exam_cover"] = self._covers().get(agent)
        grades = board.criteria.get(agent, {})
        for key, name in self._criterion_keys().items():
            found[key] = grades[name].mean if name in grades else None
        retrieved = {} if self._retrieval is None else self._retrieval.columns(agent)
        return found | retrieved | CostsBoard(board.costs).columns(agent)

    def _criterion_keys(self) -> dict[str, str]:
        """Criteria by the keys of their columns."""
        names = dict.fromkeys(name for grades in self.board.criteria.values() for name in grades)
        return {f"criteria_{name}": name for name in names}

    def _covers(self) -> Mapping[str, float]:
        """By agent the mean cover at the grade that counts."""
        return {} if self.board.exam is None else self.board.exam.covers

    def _criteria(self) -> Section:
        given, keys = self.board.criteria, self._criterion_keys()
        rows = []
        for agent in [*(agent for agent in self.order if agent in given), *sorted(set(given) - set(self.order))]:
            one = next(iter(given[agent].values()))
            means = {key: given[agent][name].mean if name in given[agent] else None for key, name in keys.items()}
            rows.append({"agent": agent, **means, "graded": f"{COUNT.write(one.graded)} of {COUNT.write(one.wanted)}"})
        columns = [
            Column("agent", "Agent"),
            *(Column(key, name, FIGURE) for key, name in keys.items()),
            Column("graded", "Answers graded"),
        ]
        low, high = (self.board.settings.get("criteria") or {}).get("scale", ("the lowest", "the highest"))
        lead = f"Each answer is graded on its own, from {low} to {high}, without seeing the others; higher is better."
        table = Table("criteria", "Mean grades by criterion", columns, rows)
        return Section("criteria", "Grades by criterion", lead, [table])

    def _coverage(self) -> Iterator[Section]:
        board = self.board
        if not board.coverage:
            return
        rows = [{"stage": STAGES.get(task, task.value), **_stage(own)} for task, own in board.coverage.items()]
        blocks: list[Block] = [Table("coverage", "By stage", _STAGES, rows)]
        if causes := self.failures or board.causes:
            blocks.append(_failures(causes))
        blocks += self.effort
        said = missing(board)
        if board.shortfall is not None and not board.withheld:
            said.append(f"Below ratings.min_coverage: {board.shortfall.message}.")
        if said:
            blocks.append(Remarks(said))
        lead = "How much of what was planned is behind the figures. A failure is never counted as a verdict."
        yield Section("coverage", "Coverage and failures", lead, blocks)

    def _remarks(self, conclusion: Conclusion) -> Iterator[str]:
        board = self.board
        if board.adaptive is not None:
            yield adaptive_line(board.adaptive, ordered=conclusion.ordered)
        yield from dict.fromkeys(note for agent in board.settings.get("agents", ()) for note in agent["notes"])


def _panel_json(panel: PanelRatings) -> dict[str, Any]:
    return {
        "agents": dict(zip(panel.agents, panel.ratings.tolist(), strict=True)),
        "judges": panel.judges,
        "problems": [problem.message for problem in panel.problems],
        "converged": panel.converged,
    }


def without_bank(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they may be shown: the test bank has a file of its own, and secret items."""
    if not (exam := settings.get("exam")):
        return dict(settings)
    return {**settings, "exam": {name: value for name, value in exam.items() if name != "bank"}}


def missing(board: Leaderboard) -> list[str]:
    """What is not there, a sentence for answers and one for judgments, each with what to do."""
    said, stages = [], board.coverage.values()
    if gaps := [own for own in board.costs.gaps if own.missing]:
        owed = sum(own.queries - own.answered for own in gaps)
        said.append(
            f"Answers are missing, {owed:,} in all, of {counted(len(gaps), 'agent')}. Games are played where both "
            "agents answered. 'ragarena run' asks again."
        )
    wanted, judged, failed = (sum(getattr(own, name) for own in stages) for name in ("wanted", "judged", "failed"))
    if judged < wanted:
        said.append(
            f"{wanted - judged:,} of {wanted:,} judgments are missing: {failed:,} failed, {wanted - judged - failed:,} "
            "not made yet. Figures use what is there. 'ragarena run' makes the missing ones; with --retry-failed it "
            "also asks again where a judge gave an unusable reply."
        )
    return said


def _stage(own: Coverage) -> dict[str, Any]:
    return {**plain(own), "share": own.share}


def _failures(causes: Mapping[Any, int]) -> Table:
    """How often which cause, or which stage, judge and cause, the most frequent first."""
    rows = []
    for key, count in sorted(causes.items(), key=lambda entry: -entry[1]):
        task, judge, cause = key if isinstance(key, tuple) else (None, None, key)
        rows.append(
            {
                "cause": CAUSES.get(cause, cause),
                "stage": task and task.value,
                "judge": judge,
                "failures": count,
                "remedy": "run again" if cause in RETRIED_NEXT_RUN else "run again with --retry-failed",
            }
        )
    notes = ["'ragarena failures' lists them with their replies."]
    return Table("failures", "Why judgments failed", _FAILURES, rows, notes)
