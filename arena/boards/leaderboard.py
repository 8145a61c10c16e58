"""A tournament's leaderboard with conclusion, trust checks and all scores, for terminal, pages, report and JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import field
from msgspec.structs import replace

from arena.boards.conclusion import STANDINGS, Conclusion, adaptive_line, conclude_board, to_tell_apart
from arena.boards.coverage import coverage_sections, missing, stage_row
from arena.boards.first_table import first_table, in_text
from arena.boards.groups import groups_json, groups_section, one_of_groups, with_group
from arena.boards.quantities import quantity
from arena.boards.ratings import (
    conclusion_section,
    controlled_json,
    rating_table,
    ratings_json,
    ratings_section,
    without_judge_json,
)
from arena.boards.repeats import noise_json, noise_section
from arena.boards.scores import Criteria, further_boards
from arena.boards.trust import in_short, judge_section, no_people, ratings_noun, tally, trust_checks
from arena.config.stages import unasked
from arena.present.blocks import Block, Board, Check, Checks, Remarks, Section, Status, VerdictCard
from arena.present.numbers import (
    FIGURE,
    counted,
    listed,
    told_apart,
)
from arena.present.table import Column, Table, first, flat, plain, records
from arena.present.terminal import WIDE, fitted
from arena.results.costs import front_chart

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison
    from arena.calibration.methods import PeopleScores
    from arena.calibration.votes import Level
    from arena.results.ratings import Leaderboard
    from arena.store import Store
    from judges.types import Task

DETAILS: Final = frozenset(
    {"conclusion", "leaderboard", "groups", "judges", "criteria", "exam", "nuggets", "retrieval", "citations", "costs"}
    | {"coverage", "noise", "retrieval-judges", "retrieval-agreement", "audit", "wordings"}
)
_BELOW: Final = ("criteria", "exam", "nuggets", "citations", "retrieval", "costs")
"""Order of the sections below the ratings; the sections of further stages follow."""
_JUDGED_ALONE: Final = ("criteria", "exam", "nuggets", "retrieval")
"""Sections whose agents the leaderboard lists if there are no ratings; agents of further stages follow."""
_NAMED: Final = 3
_NAME: Final = 20
"""Length to which a terminal shortens agents' names; names stay longer where they would become equal."""
_WIDTH, _LINES = 80, 25
_FULL: Final[Sequence[Status]] = ("failed", "unknown")
_FITTING: Final = (
    *((agents, reasons, _FULL) for agents, reasons in ((100, 3), (50, 2), (50, 1), (15, 1), (10, 1))),
    *((agents, 1, _FULL[:1]) for agents in (15, 10, 8, 6)),
)
"""Numbers of agents and of reasons to show, and the checks to name: tried in this order until the text fits."""
_REASONS: Final = 3
"""Number of reasons that pages and reports show at most; the checks below have all."""


class TournamentBoard(Board, frozen=True):
    """A tournament's leaderboard with the evidence on whether to trust it.

    Attributes:
        apart: kinds of judgment (levels) for which people and judges have no judged item in common.
        scores: the agents' scores by people's labels.
        asked: number of queries.
        judged: day of the last judgments in words; empty if unknown.
        queries: texts of the queries by id; for a conversation, its first question.
        failures: counts of failures by task, judge and cause; if empty, the board's causes are used.
    """

    board: Leaderboard
    comparisons: Sequence[Comparison] = ()
    apart: Sequence[Level] = ()
    scores: Sequence[PeopleScores] = ()
    figure: Section | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[tuple[Task, str, str], int] = field(default_factory=dict)
    effort: Sequence[Block] = ()
    calibration: Sequence[Section] = ()
    asked: int | None = None
    judged: str = ""

    @property
    def conclusion(self) -> Conclusion:
        return self.verdict()[0]

    def verdict(self) -> tuple[Conclusion, tuple[Check, ...]]:
        board = self.board
        conclusion = conclude_board(board, self.comparisons)
        if board.ratings is None and not board.settings.pairwise:
            sentence = "Nothing compares these agents with each other."
            if unasked(board.further):
                sentence = "A section ranks the agents by each score, and says which pairs it tells apart."
            if not self._table().rows:
                sentence = "No agent has a score."
            conclusion = replace(conclusion, headline="Scores without games", sentence=sentence)
        of_people: Sequence[Check] = [no_people(self.apart)]
        if self.comparisons or self.scores:
            from arena.boards.people import evidence_checks, people_checks

            of_people = [
                *people_checks(self.comparisons, self.apart),
                *evidence_checks(board.ratings, conclusion, self.comparisons, self.scores),
            ]
        checks = trust_checks(board, conclusion, of_people)
        more = "" if board.ratings is None else to_tell_apart(board.ratings, conclusion, board.paid_usd)
        return conclusion.weighed(checks, more), checks

    @property
    def order(self) -> list[str]:
        """Rated agents, best first. Other tables use this order, then list unrated agents by name."""
        return [] if self.board.ratings is None else [row.agent for row in self.board.ratings.agents]

    def brief(
        self,
        more: Sequence[str] = (),
        agents: int | None = None,
        reasons: int = _REASONS,
        width: int = WIDE,
        named: Sequence[Status] = _FULL,
    ) -> list[Section]:
        """The opening for text outputs; ``more`` has further sentences, ``agents`` the number of agents to show.

        Columns for which a ``width`` in characters has no room are left out and listed; ``named`` checks are too.
        """
        card, *blocks = self.opening(reasons=reasons)
        table = next((block for block in blocks if isinstance(block, Table)), None)
        _, checks = self.verdict()
        if table is not None:
            table = in_text(table, width)
        if table is not None and agents is not None:
            names = told_apart([row["agent"] for row in table.rows], _NAME)
            rows = [{**row, "agent": name} for row, name in zip(table.rows, names, strict=True)]
            table = first(replace(table, rows=rows), agents, "--details")
        board, groups = self.board, one_of_groups(self.board.group, self.board.groups)
        closing = [in_short(checks, named), *groups, *self._schedule(self.conclusion), *missing(board), *more]
        return [
            Section("conclusion", self.conclusion.headline, "", [card]),
            Section("leaderboard", "Leaderboard", "", [] if table is None else [table]),
            Section("trust", "Can this be trusted?", "", [Remarks(closing)]),
        ]

    def screen(self, more: Sequence[str] = (), width: int = _WIDTH) -> str:
        """``brief`` as text for a terminal of ``width`` characters, at most 80.

        If the screen is too small, some agents and reasons are left out and counted.
        """
        width = min(width, _WIDTH)
        forms = (self.brief(more, agents, reasons, width, named) for agents, reasons, named in _FITTING)
        return fitted(forms, width, _LINES)

    @property
    def title(self) -> str:
        return with_group(self.board.tournament, self.board.group)

    def opening(
        self, *, checks: str = "", link: Callable[[str], str] | None = None, reasons: int = _REASONS
    ) -> list[Block]:
        """What every output shows first: page, report, published pages, notebook and terminal.

        ``reasons`` is the largest number of reasons to show, and of next steps but one; ``checks`` and ``link`` are
        addresses of the checks and of an agent's page.
        """
        board, (conclusion, trust) = self.board, self.verdict()
        table = first_table(board, self._table())
        rows = [{**row, "address": link(row["agent"]) if link else ""} for row in table.rows]
        columns = [column for column in table.columns if any(column.value(row) is not None for row in rows)]
        columns[:1] = [replace(column, link="address") for column in columns[:1]]
        card = VerdictCard(
            conclusion.standing,
            STANDINGS[conclusion.standing],
            conclusion.headline,
            conclusion.sentence,
            self._facts(),
            self.title,
            conclusion.why[:reasons],
            conclusion.next[: reasons + 1],
        )
        groups = one_of_groups(board.group, board.groups)
        return [
            card,
            *([Remarks(groups)] if groups else []),
            *([Table("agents", "", columns, rows)] if rows else []),
            Checks(trust, folded=True, link=checks),
            *(front_chart(front, link) for front in board.costs.fronts.values()),
        ]

    def _facts(self) -> list[str]:
        settings = self.board.settings
        models = {name: judge.model for name, judge in settings.judges.items()}
        judges = [
            name if models.get(name) in (None, "", name) else f"{name} ({models[name]})"
            for name in filter(None, settings.game_judges or self.board.judges or models)
        ]
        agents = len(self.order) or len(self.board.costs.agents)
        return [
            counted(agents, "agent"),
            *([counted(self.asked, "query", "queries")] if self.asked is not None else []),
            *([f"Judge: {listed(judges, _NAMED)}"] if judges else []),
            *([f"Judged {self.judged}"] if self.judged else []),
        ]

    def sections(self) -> list[Section]:
        board, (conclusion, checks) = self.board, self.verdict()
        sections = [conclusion_section(conclusion, board.ratings, in_short(checks))]
        if board.ratings is not None:
            notes = dict.fromkeys(note for agent in board.settings.agents for note in agent.notes)
            sections.append(
                ratings_section(
                    board.ratings,
                    conclusion,
                    table=self._table(),
                    controlled=board.controlled,
                    queries=self.queries,
                    remarks=[*self._schedule(conclusion), *notes],
                )
            )
        lead = "Each of these must hold before the order above is worth acting on. The bars are rules of thumb."
        sections.append(Section("trust", "Can this be trusted?", lead, [Checks(checks)]))
        if board.by_group is not None:
            sections.append(groups_section(board.by_group, ratings_noun(board)))
        sections += [self.figure] if self.figure is not None else []
        if board.ratings is not None:
            sections += judge_section(board.ratings, board.by_judge, board.consistency)
        sections += [noise_section(board.noise)] if board.noise else []
        sections += self.calibration
        parts = self._parts()
        sections += [
            section for name in [*_BELOW, *board.further] if name in parts for section in parts[name].sections()
        ]
        return [*sections, *coverage_sections(board, self.failures, self.effort)]

    def tables(self) -> list[Table]:
        tables = Board.tables(self)
        return tables if self.board.ratings is not None else [self._table(), *tables]

    def json(self) -> dict[str, Any]:
        board, ratings, parts = self.board, self.board.ratings, self._parts()
        conclusion, checks = self.verdict()
        shortfall, word_judges = board.shortfall, [*filter(board.settings.of_words, board.settings.judges)]
        return {
            "tournament": board.tournament,
            "group": board.group and {"column": board.group[0], "value": board.group[1], "of": board.groups},
            "by_group": groups_json(board.by_group),
            "agents": self._agents(),
            **{name: parts[name].json() if name in parts else None for name in _BELOW},
            "criteria": parts["criteria"].json() if "criteria" in parts else {},
            "conclusion": conclusion,
            "trust": {**tally(checks), "by_check": {check.name: check.status for check in checks}},
            "judge_health": ratings and ratings.judge_health and flat(ratings.judge_health),
            "judges": ratings and ratings.judges,
            "by_judge": {
                judge: ratings_json(
                    ratings_of_judge, self.comparisons, judge, scores=self.scores, of_words=judge in word_judges
                )
                for judge, ratings_of_judge in board.by_judge.items()
            },
            **{name: getattr(ratings, name, []) for name in ("pairs", "fragility", "notes", "other_judges")},
            "without_judge": {} if ratings is None else without_judge_json(ratings),
            "coverage": {task: stage_row(coverage) for task, coverage in board.coverage.items()},
            "self_consistency": board.consistency,
            "shortfall": shortfall
            and plain(shortfall) | {"share": shortfall.share, "message": shortfall.message, "withheld": board.withheld},
            "failures": board.causes,
            "complete": board.complete,
            "missing": {
                "scores": {
                    score: {agent: {"missing": missing, "of": of} for agent, (missing, of) in by_agent.items()}
                    for score, by_agent in board.missing.items()
                },
                "shares": [{**plain(share), "uneven": share.uneven} for share in board.uneven],
            },
            "controlled": None if board.controlled is None else controlled_json(board.controlled),
            "position": None
            if ratings is None or ratings.position_effect is None
            else {"effect": ratings.position_effect, "low": ratings.position_low, "high": ratings.position_high},
            "adaptive": board.adaptive,
            "settings": board.settings.shown(),
            **({"noise": noise_json(board.noise)} if board.noise else {}),
            **{key: further.json() for key, further in further_boards(board.further).items()},
        }

    def _parts(self) -> dict[str, Any]:
        """By section, the boards of costs and of scores that do not come from games; imports only needed modules."""
        board, parts = self.board, dict[str, Any]()
        if board.nuggets is not None:
            from arena.boards.nuggets import Nuggets

            parts["nuggets"] = Nuggets(board.nuggets, self.order)
        if board.citations is not None:
            from arena.boards.retrieval import Citations

            parts["citations"] = Citations(board.citations, self.order)
        if board.exam is not None:
            from arena.boards.exam import exam_board

            parts["exam"] = exam_board(board.exam)
        if board.criteria:
            parts["criteria"] = Criteria("criteria", board.criteria[1:], order=self.order, settings=board.settings)
        if board.retrieval is not None:
            from arena.boards.retrieval import Retrieval

            parts["retrieval"] = Retrieval(board.retrieval, self.order)
        return parts | {"costs": board.costs} | further_boards(board.further)

    def _agents(self) -> list[dict[str, Any]]:
        if self.board.ratings is None:
            return []
        rows = records(self._table(("nuggets", "citations", "exam")))
        criteria = self._parts().get("criteria")
        grades = {} if criteria is None else criteria.json()
        return [{**row, "criteria": grades.get(row["agent"], {})} for row in rows]

    def _table(self, beside: Collection[str] = _BELOW) -> Table:
        """Table of ratings; for programs it also has each agent's scores from the sections in ``beside``."""
        board, parts = self.board, self._parts()
        further = [key for key, results in board.further.items() if results.scores]
        chosen = [part for name, part in parts.items() if name in beside or name in further]
        if board.ratings is not None:
            table = rating_table(board.ratings)
        else:
            agents = [agent for name in (*_JUDGED_ALONE, *further) if name in parts for agent in parts[name].scored()]
            rows = [{"agent": agent} for agent in dict.fromkeys(agents)]
            table = Table("scores", "", [Column("agent", "Agent")], rows)
        controlled = {}
        if board.controlled is not None and beside is _BELOW:
            controlled = {row.agent: row.rating for row in board.controlled.agents}

        def scores(agent: str) -> dict[str, Any]:
            row = {"bt_controlled": controlled.get(agent)} if controlled else {}
            return row | {key: score for part in chosen for key, score in part.columns(agent).items()}

        headings = {own.key: own.title for own in [quantity("cover")] if board.ratings is not None}
        columns = [*table.columns, *(Column(key, headings.get(key, ""), FIGURE) for key in scores(""))]
        return replace(table, columns=columns, rows=[{**row, **scores(row["agent"])} for row in table.rows])

    def _schedule(self, conclusion: Conclusion) -> list[str]:
        state = self.board.adaptive
        return [] if state is None else [adaptive_line(state, ordered=conclusion.ordered)]


def with_people(store: Store, board: Leaderboard) -> TournamentBoard:
    """The board of a leaderboard; if people judged anything, it includes the comparison of judges with people."""
    from arena.store.annotations import Annotations

    labelled = board.retrieval is not None and store.is_labelled(board.tournament)
    people: dict[str, Any] = {}
    if labelled or Annotations(store, board.tournament).counts():
        from arena.results.agreement import compare_with_people

        found = compare_with_people(store, board.tournament)
        people = dict(zip(("comparisons", "apart", "scores"), found, strict=True))
    asked = len(store.queries(board.tournament))
    judged = judged_on(store, board.tournament) if any(stage.judged for stage in board.coverage.values()) else ""
    return TournamentBoard(board, **people, asked=asked, judged=judged)


def judged_on(store: Store, tournament: str) -> str:
    """The day of the last run in words; empty if the tournament never ran."""
    from datetime import UTC, datetime

    from arena.store.runs import Runs

    time = Runs(store, tournament).last_end()
    return "" if time is None else f"{datetime.fromtimestamp(time, UTC):%-d %B %Y}"


def keep_boards(location: str, board: Leaderboard) -> None:
    """Cache the figures of slow pages at the end of a large tournament's run, so that the pages open at once."""
    from arena.results.cache import WORTH_KEEPING
    from judges.types import Task

    games = board.coverage.get(Task.PAIRWISE)
    if games is None or games.wanted < WORTH_KEEPING:
        return
    from contextlib import closing

    from arena.boards.compare import compare_board
    from arena.boards.queries import query_board
    from arena.results.agreement import keep_judges_alone
    from arena.store import Store

    with closing(Store.open(location)) as store:
        keep_judges_alone(store, board.tournament)
        compare_board(store, board.tournament)
        query_board(store, board.tournament)
