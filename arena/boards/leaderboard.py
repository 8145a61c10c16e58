"""A tournament's leaderboard with conclusion, trust checks and all scores, for terminal, pages, report and JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
    without_judge_json,
)
from arena.boards.repeats import noise_json, noise_section
from arena.boards.scores import ScoreBoard, further_boards
from arena.boards.trust import in_short, judge_section, no_people, still_to_judge, tally, trust_checks
from arena.config.stages import unasked
from arena.present.blocks import Block, Board, Check, Checks, Remarks, Section, Status, VerdictCard
from arena.present.numbers import (
    ALIGNED,
    COUNT,
    FIGURE,
    MONEY,
    PERCENT,
    POINTS,
    SECONDS,
    counted,
    listed,
    told_apart,
)
from arena.present.table import INTERVAL, Column, Table, first, flat, plain, records
from arena.present.terminal import WIDE, fitted, narrowest
from arena.results.costs import front_chart
from arena.results.criteria import COLUMN
from arena.results.outcomes import stage_words
from judges.errors import CAUSES, remedy
from retrieval_eval.stats.estimate import Estimate

if TYPE_CHECKING:
    from arena.calibration.comparison import Comparison
    from arena.calibration.methods import PeopleScores
    from arena.calibration.votes import Level
    from arena.config.settings import StoredSettings
    from arena.ratings.results import Ratings
    from arena.results.outcomes import Coverage
    from arena.results.ratings import Leaderboard
    from arena.store import Store
    from judges.types import Task

DETAILS: Final = frozenset(
    {"conclusion", "leaderboard", "judges", "criteria", "exam", "nuggets", "retrieval", "citations", "costs"}
    | {"coverage", "noise", "retrieval-judges", "retrieval-agreement", "audit", "wordings"}
)
_BELOW: Final = ("criteria", "exam", "nuggets", "citations", "retrieval", "costs")
"""Order of the sections below the ratings; the sections of further stages follow."""
_JUDGED_ALONE: Final = ("criteria", "exam", "nuggets", "retrieval")
"""Sections whose agents the leaderboard lists if there are no ratings; agents of further stages follow."""
_ONE_SCORE: Final = ("cover", "v_strict", "criteria", "citation_precision")
"""Scores shown beside the rating, one for each stage; the retrieval score is the stage's first measure."""
_TAKEN: Final = (
    Column("cost_usd", "Cost", MONEY, "Mean of a query."),
    Column("latency_median_s", "Latency", SECONDS, "Median of its answers."),
)
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
            table = _in_text(table, width)
        if table is not None and agents is not None:
            names = told_apart([row["agent"] for row in table.rows], _NAME)
            rows = [{**row, "agent": name} for row, name in zip(table.rows, names, strict=True)]
            table = first(replace(table, rows=rows), agents, "--details")
        closing = [in_short(checks, named), *self._schedule(self.conclusion), *missing(self.board), *more]
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

    def _group(self) -> list[str]:
        group = self.board.group
        return [] if group is None else [f"Only queries with {'='.join(group)}"]

    def opening(
        self, *, checks: str = "", link: Callable[[str], str] | None = None, reasons: int = _REASONS
    ) -> list[Block]:
        """What every output shows first: page, report, published pages, notebook and terminal.

        ``reasons`` is the largest number of reasons to show, and of next steps but one; ``checks`` and ``link`` are
        addresses of the checks and of an agent's page.
        """
        board, (conclusion, trust) = self.board, self.verdict()
        headline, sentence = conclusion.headline, conclusion.sentence
        table = self._one_screen()
        if board.ratings is None and not board.settings.pairwise:
            headline = "Scores without games"
            sentence = "Nothing compares these agents with each other."
            if unasked(board.further):
                sentence = "--details shows ranks by each score, and the pairs of agents that it tells apart."
            if not table.rows:
                sentence = "No agent has a score."
        rows = [{**row, "address": link(row["agent"]) if link else ""} for row in table.rows]
        columns = [column for column in table.columns if any(column.value(row) is not None for row in rows)]
        columns[:1] = [replace(column, link="address") for column in columns[:1]]
        card = VerdictCard(
            conclusion.standing,
            STANDINGS[conclusion.standing],
            headline,
            sentence,
            self._facts(),
            board.tournament,
            conclusion.why[:reasons],
            conclusion.next[: reasons + 1],
        )
        return [
            card,
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
            *self._group(),
            *([f"Judge: {listed(judges, _NAMED)}"] if judges else []),
            *([f"Judged {self.judged}"] if self.judged else []),
        ]

    def _one_screen(self) -> Table:
        board = self.board
        behind = {} if board.ratings is None else _behind(board.ratings)
        rows = [self._on_one_line(row) | {"behind": behind.get(row["agent"])} for row in self._table().rows]
        scores = [quantity(name).column() for name in _ONE_SCORE]
        for results in board.further.values():
            scores += [quantity(first.name).column(first.column) for first in results.scores[:1]]
        if (retrieval := board.retrieval) is not None:
            measure = retrieval.measures[0]
            scores.append(
                Column(f"retrieval_{measure}", measure, FIGURE, "Of the documents retrieved, by their labels.")
            )
        apart = (
            "Rating minus that of the agent rated highest. Where the interval reaches 0, the two cannot be told apart; "
            "the intervals of all pairs hold at once. An arrow marks what lies beyond the axis."
        )
        columns = [
            Column("agent", "Agent"),
            Column("group", "Group", drawn="bands"),
            Column("behind", "To first", POINTS, apart, INTERVAL, drawn="whiskers"),
            Column("ranks", "Ranks", ALIGNED, "The places that the agent may truly have."),
            quantity(WON).column(),
            *_TAKEN,
            *scores,
            Column("bt", "Rating", POINTS, "Bradley-Terry: 100 points more is 64% of the decided games."),
        ]
        return Table("brief", "", columns, rows)

    def _on_one_line(self, row: Mapping[str, Any]) -> dict[str, Any]:
        grade = self.board.criteria[0].means.get(row["agent"]) if self.board.criteria else None
        return {
            **row,
            "group": row.get("group") or None,
            "ranks": COUNT.between(row["rank_low"], row["rank_high"]) if row.get("rank_low") else None,
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
        sections += [noise_section(board.noise)] if board.noise else []
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


def _behind(ratings: Ratings) -> dict[str, Estimate]:
    """Each agent's rating minus that of the agent rated highest, with its interval."""
    leader = ratings.by_rank[0]
    pairs = {
        (pair.worse if pair.better == leader.agent else pair.better): pair
        for pair in ratings.pairs
        if leader.agent in (pair.better, pair.worse)
    }
    behind = {leader.agent: Estimate(0.0)}
    for row in ratings.by_rank[1:]:
        pair = pairs.get(row.agent)
        ends = () if pair is None else (pair.low, pair.high) if pair.better == row.agent else (-pair.high, -pair.low)
        behind[row.agent] = Estimate(row.bt - leader.bt, *ends)
    return behind


def _in_text(table: Table, width: int) -> Table:
    """The table for text outputs: ranks first, nothing drawn, and the last columns named if there is no room."""
    columns = sorted((replace(column, drawn="") for column in table.columns), key=lambda column: column.key != "ranks")
    fewer = list(columns)
    while len(fewer) > 1 and narrowest(replace(table, columns=fewer)) > width:
        fewer.pop()
    left_out = [column.heading for column in columns[len(fewer) :] if column.key != "bt"]  # said by what is shown
    notes = [f"No room for {listed(left_out)} (--details)."] if left_out else []
    return replace(table, columns=fewer, notes=[*table.notes, *notes])


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
                missing, wanted = scores.missing(agent)
                if graded := wanted - missing:
                    mean = {"mean": scores.means[agent].value, "graded": graded, "wanted": wanted}
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
    people: dict[str, Any] = {}
    if labelled or Annotations(store, board.tournament).counts():
        from arena.results.agreement import compare_with_people

        found = compare_with_people(store, board.tournament, group=board.group)
        people = dict(zip(("comparisons", "apart", "scores"), found, strict=True))
    queries = store.queries(board.tournament)
    column, value = board.group or ("", "")
    asked = sum(not column or query.metadata.get(column) == value for query in queries.values())
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
