"""A tournament's leaderboard with conclusion, trust checks and all scores, for terminal, pages, report and JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import field
from msgspec.structs import replace

from arena.boards.conclusion import STANDINGS, Conclusion, adaptive_line, conclude_board, to_tell_apart
from arena.boards.quantities import WON, quantity
from arena.boards.ratings import (
    conclusion_section,
    controlled_json,
    rating_table,
    ratings_json,
    ratings_section,
)
from arena.boards.scores import ScoreBoard, further_boards
from arena.boards.trust import in_short, judge_section, no_people, still_to_judge, tally, trust_checks
from arena.config.stages import further_stages
from arena.present.blocks import Block, Board, Check, Checks, Remarks, Section, VerdictCard
from arena.present.numbers import ALIGNED, COUNT, FIGURE, MONEY, PERCENT, SECONDS, counted, listed, told_apart
from arena.present.table import Column, Table, first, flat, plain, records
from arena.present.terminal import fitted
from arena.results.costs import front_chart
from arena.results.criteria import COLUMN
from arena.results.outcomes import stage_words
from judges.errors import CAUSES, remedy

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison
    from arena.calibration.votes import Level
    from arena.config.settings import StoredSettings
    from arena.results.outcomes import Coverage
    from arena.results.ratings import Leaderboard
    from arena.store import Store
    from judges.types import Task

DETAILS: Final = frozenset(
    {"conclusion", "leaderboard", "judges", "criteria", "exam", "nuggets", "retrieval", "citations", "costs"}
    | {"coverage", "retrieval-judges", "retrieval-agreement"}
)
_BELOW: Final = ("criteria", "exam", "nuggets", "citations", "retrieval", "costs")
"""Order of the sections below the ratings; the sections of further stages follow."""
_JUDGED_ALONE: Final = ("criteria", "exam", "nuggets", "retrieval")
"""Sections whose agents the leaderboard lists if there are no ratings; agents of further stages follow."""
_ONE_SCORE: Final = ("cover", "v_strict", "criteria", "citation_precision")
"""Scores shown beside the rating, one for each stage; the retrieval score is the stage's first measure."""
_MOST_COLUMNS: Final = 7
_LESS: Final = ("grade", "citation_precision", "cost_usd", "latency_median_s")
"""Columns of the leaderboard that the first screen drops first if there are too many."""
_TAKEN: Final = (
    Column("cost_usd", "Cost", MONEY, "Mean of a query."),
    Column("latency_median_s", "Latency", SECONDS, "Median of its answers."),
)
_NAMED: Final = 3
_NAME: Final = 20
"""Length to which a terminal shortens agents' names; names stay longer where they would become equal."""
_WIDTH, _LINES = 80, 25
_FITTING: Final = ((100, 9), (50, 2), (50, 1), (15, 2), (15, 1), (10, 1), (8, 1), (6, 0))
"""Numbers of agents and remedies to show: each pair is tried in this order until the text fits the screen."""
_STAGES: Final = (
    Column("stage", "Stage"),
    Column("share", "Done", PERCENT),
    Column("wanted", "Wanted", COUNT),
    Column("judged", "Judged", COUNT),
    Column("failed", "Failed", COUNT),
    Column("left", "Left", COUNT, "Not asked yet, or waiting for an earlier stage."),
    Column("identical", "Without a call", COUNT, "Among the judged: ties as both answers are the same text."),
)
_FAILURES: Final = (
    Column("cause", "Cause"),
    Column("stage", "Stage"),
    Column("judge", "Judge"),
    Column("failures", "Failures", COUNT, "Samples are counted one by one."),
    Column("remedy", "What to do"),
)


class TournamentBoard(Board, frozen=True):
    """A tournament's leaderboard with the evidence on whether to trust it.

    Attributes:
        apart: kinds of judgment (levels) for which people and judges have no judged item in common.
        queries: texts of the queries by id; for a conversation, its first question.
        failures: counts of failures by task, judge and cause; if empty, the board's causes are used.
    """

    board: Leaderboard
    comparisons: Sequence[Comparison] = ()
    apart: Sequence[Level] = ()
    figure: Section | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[tuple[Task, str, str], int] = field(default_factory=dict)
    effort: Sequence[Block] = ()
    calibration: Sequence[Section] = ()

    @property
    def conclusion(self) -> Conclusion:
        return self.verdict()[0]

    def verdict(self) -> tuple[Conclusion, tuple[Check, ...]]:
        conclusion = conclude_board(self.board, self.comparisons)
        of_people: Sequence[Check] = [no_people(self.apart)]
        if self.comparisons:
            from arena.boards.people import people_checks

            of_people = people_checks(self.comparisons, self.apart)
        checks = trust_checks(self.board, conclusion, of_people)
        return conclusion.weighed(checks), checks

    @property
    def order(self) -> list[str]:
        """Rated agents, best first. Other tables use this order, then list unrated agents by name."""
        return [] if self.board.ratings is None else [row.agent for row in self.board.ratings.agents]

    def brief(self, more: Sequence[str] = (), agents: int | None = None, remedies: int | None = None) -> list[Section]:
        """The conclusion, the leaderboard and the failed checks, to fit one screen.

        ``agents`` is the number of agents to show, and ``remedies`` the number of failed checks to show with what to
        do. By default all are shown.
        """
        ratings, (conclusion, checks) = self.board.ratings, self.verdict()
        table = self._one_screen()
        if agents is not None:
            names = told_apart([row["agent"] for row in table.rows], _NAME)
            rows = [{**row, "agent": name} for row, name in zip(table.rows, names, strict=True)]
            table = first(replace(table, rows=rows), agents, "--details")
        sentences = [*self._group(), conclusion.line]
        if ratings is not None:
            sentences += [to_tell_apart(ratings, conclusion), *self._schedule(conclusion)]
        elif not self.board.settings.pairwise:
            sentences = [
                *self._group(),
                "Without games, agents are compared by the scores below." if table.rows else "No agent has a score.",
            ]
        all_failed = [check for check in checks if check.status == "failed"]
        failed = [check for check in all_failed if check.name != conclusion.headline][:remedies]
        others = [check.name for check in all_failed if check not in failed]  # the headline's check is named here too
        also = "Also failed" if failed else "Failed"
        closing = [f"{also}: {'; '.join(others)}."] if others else []
        closing += [in_short(checks, named=("unknown",)), *missing(self.board), *more]
        return [
            Section("conclusion", conclusion.headline, "", [Remarks([line for line in sentences if line])]),
            Section("leaderboard", "Leaderboard", "", [table] if table.rows else []),
            Section("trust", "Checks that failed", "", [*([Checks(failed)] if failed else []), Remarks(closing)]),
        ]

    def screen(self, more: Sequence[str] = (), width: int = _WIDTH) -> str:
        """``brief`` as text for a terminal of ``width`` characters, at most 80.

        If the screen is too small, some agents and remedies are left out, and counted or named.
        """
        forms = (self.brief(more, agents, remedies) for agents, remedies in _FITTING)
        return fitted(forms, min(width, _WIDTH), _LINES)

    def _group(self) -> list[str]:
        group = self.board.group
        return [] if group is None else [f"Only queries with {'='.join(group)}."]

    def opening(
        self, queries: int, judged: str = "", *, checks: str = "", link: Callable[[str], str] | None = None
    ) -> list[Block]:
        """What a tournament's page and report show first; ``judged`` is the day of the last judgments in words."""
        board, (conclusion, trust) = self.board, self.verdict()
        headline, sentence = conclusion.headline, conclusion.sentence
        if board.ratings is None and not board.settings.pairwise:
            headline, sentence = "Scores without games", "Nothing compares these agents with each other."
        table = self._one_screen()
        rows = [{**row, "address": link(row["agent"]) if link else ""} for row in table.rows]
        filled = [column for column in (*table.columns, *_TAKEN) if any(column.value(row) is not None for row in rows)]
        filled.sort(key=lambda column: (column.key != "agent", column.key in _LESS))
        columns = [replace(column, drawn=column.key == "bt") for column in filled[:_MOST_COLUMNS]]
        columns[:1] = [replace(column, link="address") for column in columns[:1]]
        label, facts = STANDINGS[conclusion.standing], self._facts(queries, judged)
        return [
            VerdictCard(conclusion.standing, label, headline, sentence, facts),
            *([Table("agents", "", columns, rows)] if rows else []),
            Checks(trust, folded=True, link=checks),
            *(front_chart(front, link) for front in board.costs.fronts.values()),
        ]

    def _facts(self, queries: int, judged: str) -> list[str]:
        settings = self.board.settings
        models = {name: judge.model for name, judge in settings.judges.items()}
        judges = [
            name if models.get(name) in (None, "", name) else f"{name} ({models[name]})"
            for name in filter(None, settings.game_judges or self.board.judges or models)
        ]
        agents = len(self.order) or len(self.board.costs.agents)
        return [
            *([f"Judge: {listed(judges, _NAMED)}"] if judges else []),
            counted(agents, "agent"),
            counted(queries, "query", "queries"),
            *self._group(),
            *([f"Judged {judged}"] if judged else []),
        ]

    def _one_screen(self) -> Table:
        board = self.board
        rows = [self._on_one_line(row) for row in self._table().rows]
        scores = [quantity(name).column() for name in _ONE_SCORE]
        for key in board.further:
            scores += [quantity(name).column() for name in islice(further_stages()[key].scores, 1)]
        if (retrieval := board.retrieval) is not None:
            measure = retrieval.measures[0]
            scores.append(
                Column(f"retrieval_{measure}", measure, FIGURE, "Of the documents retrieved, by their labels.")
            )
        ranks = Column("ranks", "Ranks", ALIGNED, "The places that the agent may truly have.")
        columns = [
            *([ranks] if board.ratings is not None else []),
            Column("agent", "Agent"),
            quantity("bradley_terry").column(interval=True),
            quantity(WON).column(),
            *scores,
        ]
        return Table("brief", "", columns, rows)

    def _on_one_line(self, row: Mapping[str, Any]) -> dict[str, Any]:
        grade = self.board.criteria[0].means.get(row["agent"]) if self.board.criteria else None
        return {
            **row,
            "ranks": COUNT.between(row.get("rank_low"), row.get("rank_high")),
            "share": (row["wins"] + row["ties"] / 2) / row["games"] if row.get("games") else None,
            "grade": grade,
        }

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
        sections += [self.figure] if self.figure is not None else []
        if board.ratings is not None:
            sections += judge_section(board.ratings, board.by_judge, board.consistency)
        sections += self.calibration
        parts = self._parts()
        sections += [
            section for name in [*_BELOW, *board.further] if name in parts for section in parts[name].sections()
        ]
        return [*sections, *self._coverage()]

    def tables(self) -> list[Table]:
        tables = Board.tables(self)
        return tables if self.board.ratings is not None else [self._table(), *tables]

    def json(self) -> dict[str, Any]:
        board, ratings, parts = self.board, self.board.ratings, self._parts()
        conclusion, checks = self.verdict()
        shortfall, word_judges = board.shortfall, [*filter(board.settings.of_words, board.settings.judges)]
        return {
            "tournament": board.tournament,
            "group": board.group and dict(zip(("column", "value"), board.group, strict=True)),
            "agents": self._agents(),
            **{name: parts[name].json() if name in parts else None for name in _BELOW},
            "conclusion": conclusion,
            "trust": {**tally(checks), "by_check": {check.name: check.status for check in checks}},
            "judge_health": ratings and ratings.judge_health and flat(ratings.judge_health),
            "judges": ratings and ratings.judges,
            "by_judge": {
                judge: ratings_json(ratings_of_judge, self.comparisons, judge, of_words=judge in word_judges)
                for judge, ratings_of_judge in board.by_judge.items()
            },
            **{name: getattr(ratings, name, []) for name in ("pairs", "fragility", "notes")},
            "coverage": {task: _stage(coverage) for task, coverage in board.coverage.items()},
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
        parts["criteria"] = Criteria("criteria", board.criteria[1:], order=self.order, settings=board.settings)
        if board.retrieval is not None:
            from arena.boards.retrieval import Retrieval

            parts["retrieval"] = Retrieval(board.retrieval, self.order)
        return parts | {"costs": board.costs} | further_boards(board.further)

    def _agents(self) -> list[dict[str, Any]]:
        if self.board.ratings is None:
            return []
        rows = records(self._table(("nuggets", "citations", "exam")))
        criteria = self._parts()["criteria"].json()
        return [{**row, "criteria": criteria.get(row["agent"], {})} for row in rows]

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

    def _coverage(self) -> Iterator[Section]:
        board = self.board
        if not board.coverage:
            return
        words = stage_words()
        rows = [{"stage": words.get(task, task.value), **_stage(coverage)} for task, coverage in board.coverage.items()]
        blocks: list[Block] = [Table("coverage", "By stage", _STAGES, rows)]
        if causes := self.failures or board.causes:
            blocks.append(_failures(causes))
        blocks += self.effort
        remarks = missing(board)
        if board.shortfall is not None and not board.withheld:
            remarks.append(f"Below ratings.min_coverage: {board.shortfall.message}.")
        if remarks:
            blocks.append(Remarks(remarks))
        lead = "How much of what was planned is behind the figures. A failure is never counted as a verdict."
        yield Section("coverage", "Coverage and failures", lead, blocks)

    def _schedule(self, conclusion: Conclusion) -> list[str]:
        state = self.board.adaptive
        return [] if state is None else [adaptive_line(state, ordered=conclusion.ordered)]


class Criteria(ScoreBoard, frozen=True, eq=False, kw_only=True):
    """Mean grades of answers by agent and criterion."""

    settings: StoredSettings

    def sections(self) -> list[Section]:
        means = self.json()
        if not means:
            return []
        rows = []
        for agent in [*(agent for agent in self.order if agent in means), *sorted({*means} - {*self.order})]:
            fullest = max(means[agent].values(), key=lambda mean: mean["wanted"])
            graded = f"{COUNT.write(fullest['graded'])} of {COUNT.write(fullest['wanted'])}"
            rows.append({"agent": agent, **self.columns(agent), "graded": graded})
        named = (Column(key, key.removeprefix(COLUMN), FIGURE) for key in self.columns(""))
        columns = [Column("agent", "Agent"), *named, Column("graded", "Answers graded")]
        criteria = self.settings.criteria
        low, high = ("the lowest", "the highest") if criteria is None else criteria.scale
        lead = f"Each answer is graded on its own, from {low} to {high}, without seeing the others; higher is better."
        table = Table("criteria", "Mean grades by criterion", columns, rows)
        return [Section("criteria", "Grades by criterion", lead, [table])]

    def scored(self) -> Collection[str]:
        return self.json()

    def columns(self, agent: str) -> dict[str, float | None]:
        graded = (scores for scores in self.scores if scores.seen().any())
        return {scores.column: scores.means[agent].value if agent in scores.means else None for scores in graded}

    def json(self) -> dict[str, dict[str, Any]]:
        """By agent and criterion: mean grade, number of graded answers, and number of answers to grade.

        A criterion without a graded answer of the agent is left out.
        """
        means: dict[str, dict[str, Any]] = {}
        for agent in sorted({agent for scores in self.scores for agent in scores.agents}):
            for scores in self.scores:
                if graded := scores.count(agent):
                    mean = {"mean": scores.means[agent].value, "graded": graded, "wanted": scores.missing(agent)[1]}
                    means.setdefault(agent, {})[scores.name] = mean
        return means


def missing(board: Leaderboard) -> list[str]:
    """Sentences on missing answers and judgments, with what to do, and on answers that a criterion skips."""
    sentences, stages = [], board.coverage.values()
    if gaps := [gap for gap in board.costs.gaps if gap.missing]:
        owed = sum(gap.queries - gap.answered for gap in gaps)
        sentences.append(
            f"Answers are missing, {owed:,} in all, of {counted(len(gaps), 'agent')}. Games are played where both "
            "agents answered. 'ragleague run' asks again; 'ragleague failures' says why, and what only --retry-failed "
            "asks again."
        )
    wanted, judged, failed = (sum(getattr(stage, name) for stage in stages) for name in ("wanted", "judged", "failed"))
    if judged < wanted:
        left = wanted - judged - failed
        sentences.append(
            f"{wanted - judged:,} of {wanted:,} judgments are missing: {failed:,} failed, {left:,} "
            f"not made yet. Figures use what is there. {still_to_judge(board)}"
        )
    return [*sentences, *(f"{left_out}." for left_out in board.ungraded)]


def _stage(coverage: Coverage) -> dict[str, Any]:
    return {**plain(coverage), "share": coverage.share}


def _failures(causes: Mapping[Any, int]) -> Table:
    rows = []
    for key, count in sorted(causes.items(), key=lambda entry: -entry[1]):
        task, judge, cause = key if isinstance(key, tuple) else (None, None, key)
        words, help_words = CAUSES.get(cause, cause), remedy(cause)
        rows.append({"cause": words, "stage": task, "judge": judge, "failures": count, "remedy": help_words})
    notes = ["'ragleague failures' lists them with their replies."]
    return Table("failures", "Why judgments failed", _FAILURES, rows, notes)


def with_people(store: Store, board: Leaderboard) -> TournamentBoard:
    """The board of a leaderboard; if people judged anything, it includes the comparison of judges with people."""
    from arena.store.annotations import Annotations

    labelled = board.retrieval is not None and store.is_labelled(board.tournament)
    if labelled or Annotations(store, board.tournament).counts():
        from arena.results.agreement import compare_with_people

        return TournamentBoard(board, *compare_with_people(store, board.tournament, group=board.group))
    return TournamentBoard(board)


def judged_on(store: Store, tournament: str) -> str:
    """The day of the last run in words; empty if the tournament never ran."""
    from datetime import UTC, datetime

    from arena.store.runs import Runs

    runs = Runs(store, tournament).all(1)
    return "" if not runs else f"{datetime.fromtimestamp(runs[0].ended or runs[0].begun, UTC):%-d %B %Y}"


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
