"""Computes the leaderboard of a tournament from its store: ratings, coverage, settings and the judges' health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.settings import StoredSettings
from arena.data.dataset import groupings
from arena.present.blocks import to_judge_the_rest
from arena.ratings.results import RatingSettings
from arena.results.costs import CostBoard, cost_board
from arena.results.coverage import Coverage, Shortfall, coverage, shortfall
from arena.results.criteria import criteria_scores, ungraded
from arena.results.games import WantedGames, read_games
from judges.errors import InputError
from judges.sections import shortened
from judges.types import JudgeFailure, Judgment, Task, conversations
from judges.writing import count_words
from retrieval_eval.stats.scores import Gaps, MissingShare, Scores, shares

if TYPE_CHECKING:
    from arena.data.dataset import Causes, Dataset
    from arena.ratings.covariates import Controlled
    from arena.ratings.games import VerdictTable
    from arena.ratings.health import Lengths
    from arena.ratings.results import Ratings
    from arena.results.documents import CitationBoard, RetrievalBoard
    from arena.results.exam_evaluation import ExamScores
    from arena.results.games import GameTable
    from arena.results.nuggets import NuggetBoard
    from arena.stages.adaptive import AdaptiveState
    from arena.store.outcomes import Consistency
from arena.config.stages import all_tasks
from arena.results.further import StageResults, further_results
from arena.store import Result, Store, Wanted
from arena.store.rows import IDENTICAL
from arena.store.subset import StoreSubset

Made = TypeVar("Made")
Group: TypeAlias = tuple[str, str]
"""A column and a value of the queries' metadata; selects the queries that have this value."""


class Leaderboard(Struct, frozen=True):
    """Results of a tournament so far.

    Attributes:
        ratings: ratings over all judges' games; ``None`` if no game has a verdict, or if coverage is too low and
            ``below_coverage`` was not set.
        by_judge: ratings by each judge's games, if there are several judges.
        criteria: the mean of each answer's grades, then its grade by each criterion; empty without any.
        ungraded: a sentence for each criterion that skips answers without the documents or reference it needs.
        coverage: coverage by stage.
        causes: number of failed judgments by cause.
        settings: settings stored with the tournament.
        adaptive: progress of an adaptive schedule, ``None`` with another schedule.
        shortfall: the judge or agent with too few verdicts to rate on, ``None`` if there is none.
        consistency: agreement between samples, by stage and judge that was asked several times.
        exam: cover of the test bank by agent, ``None`` without an exam or a grade.
        nuggets: nugget scores by agent, ``None`` if the tournament has no section ``nuggets``.
        retrieval: scores of the documents that agents retrieved, ``None`` without labels.
        citations: share of cited documents that are relevant, ``None`` if no answer cites a labelled document.
        costs: costs of answers, and which agents have not answered every query.
        controlled: ratings controlled for qualities of answers, ``None`` if not configured or not computable.
        further: results of the stages with a separate configuration section, by section.
        group: the group of queries to which the results are restricted; ``None`` for all queries.
        judges: judges of the games, including those of imported verdicts.
        missing: number of missing judgments and of judgments to make, by score and agent.
        uneven: for scores with missing judgments, each agent's share of them and the share of all other agents.
        models: number of judgments by judge and model, for judges that servers run.
        complete: whether every judgment to make exists, and every agent that the tournament asks has answered every
            query.
    """

    tournament: str
    ratings: Ratings | None
    by_judge: Mapping[str, Ratings]
    criteria: tuple[Scores, ...]
    coverage: Mapping[Task, Coverage]
    causes: Mapping[str, int]
    settings: StoredSettings
    adaptive: AdaptiveState | None = None
    shortfall: Shortfall | None = None
    consistency: Mapping[Task, Mapping[str, Consistency]] = field(default_factory=dict)
    exam: ExamScores | None = None
    nuggets: NuggetBoard | None = None
    retrieval: RetrievalBoard | None = None
    citations: CitationBoard | None = None
    costs: CostBoard = field(default_factory=CostBoard)
    controlled: Controlled | None = None
    further: Mapping[str, StageResults] = field(default_factory=dict)
    group: Group | None = None
    judges: tuple[str, ...] = ()
    ungraded: Sequence[str] = ()
    missing: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    uneven: tuple[MissingShare, ...] = ()
    models: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every judgment to make exists, and every agent that the tournament asks has answered every query."""
        judged = all(stage.judged == stage.wanted for stage in self.coverage.values())
        return judged and self.costs.complete

    @property
    def withheld(self) -> bool:
        """Whether ratings are missing because coverage is too low."""
        return self.shortfall is not None and self.ratings is None


_LISTED: Final = 120
_NO_COLUMN: Final = "the queries' table has no column that makes groups"


def of_group(store: Store, tournament: str, group: Group) -> StoreSubset:
    """The store restricted to a group of queries.

    Raises:
        InputError: no query belongs to the group.
    """
    (column, value), queries = group, store.queries(tournament)
    chosen = [query_id for query_id, query in queries.items() if query.metadata.get(column) == value]
    if not chosen:
        values = dict.fromkeys(query.metadata[column] for query in queries.values() if column in query.metadata)
        columns = dict.fromkeys(name for query in queries.values() for name in query.metadata)
        groups = groupings(queries.values())
        group_names = [f"{name}={group_value}" for name, group_values in groups.items() for group_value in group_values]
        if values and column not in groups:
            hint = f"its values are {shortened(sorted(values), _LISTED)}"
        elif group_names:
            hint = f"groups are {', '.join(group_names)}"
        else:
            hint = f"the queries' columns are {shortened(columns, _LISTED)}" if columns else _NO_COLUMN
        raise InputError(f"no query has {column}={value}; {hint}")
    return StoreSubset(store, chosen)


def leaderboard(
    store: Store,
    tournament: str | None = None,
    *,
    below_coverage: bool = False,
    group: Group | None = None,
) -> Leaderboard:
    """Compute the leaderboard from the judgments that a tournament has so far; equal stores give equal results.

    Args:
        store: the store that holds the judgments.
        tournament: the tournament's name; optional if the store has only one tournament.
        below_coverage: also rate if fewer verdicts exist than ``ratings.min_coverage`` requires.
        group: restrict everything to this group of queries.

    Raises:
        InputError: there is no such tournament or group, the store has several tournaments and none is named, or the
            tournament only has synthetic queries.
    """
    name = tournament or store.only_tournament()
    if group is not None:
        part = of_group(store, name, group)
        board = leaderboard(part, name, below_coverage=below_coverage)
        return replace(board, group=group, adaptive=None)
    data = store.dataset(name)
    return leaderboard_of(store, name, data, read_games(store, name, data), below_coverage=below_coverage)


def leaderboard_of(
    store: Store, name: str, data: Dataset, wanted: WantedGames, *, below_coverage: bool = False
) -> Leaderboard:
    """Compute the leaderboard from data and games that have been read already; see ``leaderboard``."""
    settings = store.settings(name)
    if name not in store.rated_tournaments():
        raise InputError(f"{name!r} only has synthetic queries; there is nothing to rate")
    options = rating_settings(settings)
    lengths = {key: count_words(answer.text) for key, answer in data.answers.items()}
    board, verdicts = _of_games(name, settings, wanted, options, lengths, below_coverage=below_coverage)
    others: list[Task] = [task for task in all_tasks() if task is not Task.PAIRWISE]
    samples = {task: task_outcomes for task in others if (task_outcomes := store.outcomes(name, task))}
    outcomes, consistencies = _of_stages(samples, settings) if samples else ({}, {})
    stages = {task: coverage(task_outcomes) for task, task_outcomes in outcomes.items()} | dict(board.coverage)
    consistencies |= board.consistency
    ratings, controlled = board.ratings, None
    if ratings is not None:
        ratings = replace(ratings, unjudged=_unjudged(store, data, wanted, settings))
    covariates = settings.ratings.bradley_terry.covariates
    if ratings is not None and verdicts is not None and covariates:
        controlled, problems = _controlled(covariates, verdicts, data, ratings.settings)
        ratings = replace(ratings, notes=(*ratings.notes, *problems))
    judged_by_several = verdicts if verdicts is not None and len(verdicts.judges) > 1 else None
    retrieval, citations = _documents(data, samples.get(Task.RELEVANCE, ()), settings)
    exam, nuggets = _exam(store, name, settings, samples), _nuggets(store, name, settings)
    further = further_results(store, name, settings)
    gaps: dict[str, Gaps] = {"pairwise": wanted.table.gaps()} if len(wanted.table) else {}
    criteria = criteria_scores(outcomes.get(Task.CRITERIA, ()), settings, conversations(data.queries.values()))
    gaps |= _gaps("criteria", criteria)
    if exam is not None:
        gaps |= _gaps("exam", exam.scores)
    if nuggets is not None:
        gaps |= _gaps("nuggets", nuggets.answers.scores) | _gaps("nuggets_documents", nuggets.documents.scores)
    if retrieval is not None and "judge" in retrieval.scores:
        gaps |= _gaps("retrieval", [*retrieval.scores["judge"].scores.values()])
    for key, stage_results in further.items():
        gaps |= _gaps(key, stage_results.scores)
    return replace(
        board,
        ratings=ratings,
        by_judge=_by_judge(judged_by_several, options, lengths) if judged_by_several else {},
        criteria=criteria,
        ungraded=ungraded(outcomes.get(Task.CRITERIA, ()), settings, len(data.answers)),
        coverage={task: stages[task] for task in all_tasks() if task in stages},
        causes=_causes(outcomes.values(), wanted.causes),
        adaptive=_adaptive(settings, data, wanted.table),
        consistency={task: consistencies[task] for task in all_tasks() if consistencies.get(task)},
        exam=exam,
        nuggets=nuggets,
        retrieval=retrieval,
        citations=citations,
        costs=cost_board(data, ratings.agents if ratings else (), _owed(store, data, settings)),
        controlled=controlled,
        further=further,
        missing={
            key: {agent: score_gaps.of(agent) for agent in score_gaps.agents}
            for key, score_gaps in gaps.items()
            if score_gaps.agents
        },
        uneven=shares(gaps, conversations(data.queries.values())),
        models=_models(samples.values(), wanted.models, settings),
    )


def _of_games(
    tournament: str,
    settings: StoredSettings,
    wanted: WantedGames,
    options: RatingSettings,
    lengths: Lengths,
    *,
    below_coverage: bool,
) -> tuple[Leaderboard, VerdictTable | None]:
    """The leaderboard computed from the games only, and the verdicts that it rates."""
    min_coverage = settings.ratings.min_coverage
    shortage = shortfall(wanted.table.coverage_by_name(), min_coverage)
    if shortage is not None:
        again = to_judge_the_rest(wanted.causes, wanted.table.coverage().left, imported=settings.imported)
        shortage = replace(shortage, again=again)
    rated = wanted.table.played.any() and (shortage is None or below_coverage)
    verdicts = wanted.table.verdicts() if rated else None
    ratings = None
    if verdicts is not None:
        from arena.ratings.rate import anchored, rate

        anchored_options, anchor_notes = anchored(options, verdicts.agents)
        ratings = rate(verdicts, anchored_options, lengths=lengths)
        ratings = replace(ratings, notes=(*ratings.notes, *anchor_notes))
    board = Leaderboard(
        tournament,
        ratings,
        {},
        (),
        {Task.PAIRWISE: wanted.table.coverage()} if len(wanted.table) else {},
        _causes((), wanted.causes),
        settings,
        shortfall=shortage,
        consistency={Task.PAIRWISE: wanted.consistency} if wanted.consistency else {},
        judges=wanted.table.judges,
    )
    return board, verdicts


# These functions import late: a tournament imports only the code of its own stages.


def _by_judge(verdicts: VerdictTable, options: RatingSettings, lengths: Lengths) -> dict[str, Ratings]:
    from arena.ratings.rate import rate_by_judge

    return rate_by_judge(verdicts, options, lengths=lengths)


def _exam(
    store: Store,
    tournament: str,
    settings: StoredSettings,
    samples: Mapping[Task, Sequence[tuple[Wanted, Result | None]]],
) -> ExamScores | None:
    if settings.exam is None:
        return None
    from arena.results.exam import stored_scores

    return stored_scores(store, tournament, lambda task: samples.get(task, ()))


def _nuggets(store: Store, tournament: str, settings: StoredSettings) -> NuggetBoard | None:
    if settings.nuggets is None:
        return None
    from arena.results.nuggets import nugget_board, nugget_results

    results = nugget_results(store, tournament)
    return None if results is None else nugget_board(results)


def _controlled(
    names: Sequence[str], verdicts: VerdictTable, data: Dataset, options: RatingSettings
) -> tuple[Controlled | None, Sequence[str]]:
    from arena.results.controlled import controlled_for

    try:
        return controlled_for(names, verdicts, data, options), []
    except ValueError as error:  # plan checked all games to come, but too few of them have verdicts so far
        return None, [f"No controlled ratings: {error}."]


def _documents(
    data: Dataset, labelled: Sequence[tuple[Wanted, Result | None]], settings: StoredSettings
) -> tuple[RetrievalBoard | None, CitationBoard | None]:
    if not labelled and not data.qrels:
        return None, None
    from arena.results.documents import citation_board, retrieval_board

    return retrieval_board(data, labelled, settings), citation_board(data, labelled, settings)


def _unjudged(store: Store, data: Dataset, wanted: WantedGames, settings: StoredSettings) -> int:
    """Number of queries with two or more agents and no judged game, plus the queries that ``data.limit`` left out."""
    table = wanted.table
    judged = {table.queries[place] for place in set(table.query[table.played].tolist())}
    answering: dict[str, set[str]] = {query_id: {agent.name for agent in settings.agents} for query_id in data.queries}
    for query_id, agent in data.answers:
        answering[query_id].add(agent)
    count = sum(len(agents) > 1 and query_id not in judged for query_id, agents in answering.items())
    return count + (settings.left_out if store.only is None else 0)


def _owed(store: Store, data: Dataset, settings: StoredSettings) -> Mapping[str, Causes]:
    if not settings.agents:
        return {}
    from arena.results.replies import owed

    return owed(store, data, settings)


def _gaps(key: str, scores: Sequence[Scores]) -> dict[str, Gaps]:
    """Missing judgments of a stage's scores, under the stage's name ``key``; empty if the stage does not count them."""
    return {key: scores[0].gaps} if scores and scores[0].gaps is not None else {}


def _adaptive(settings: StoredSettings, data: Dataset, table: GameTable) -> AdaptiveState | None:
    if not settings.adaptive or settings.pairwise is None:
        return None
    from arena.ratings.adaptive import Meeting
    from arena.stages.adaptive import AdaptiveGames

    meetings = dict.fromkeys(Meeting(*table.key(row)[:3]) for row in range(len(table)))
    games = AdaptiveGames(settings.pairwise, data, list(meetings))
    games.learn(table.each_verdict())
    return games.state()


def rating_settings(settings: StoredSettings) -> RatingSettings:
    """How a tournament is rated, from its stored settings."""
    section = settings.ratings
    return RatingSettings(
        k=section.elo.k,
        initial=section.elo.initial,
        centre=section.elo.initial,
        reconcile=not section.bradley_terry.position,
        tournaments=section.elo.tournaments,
        ties=section.bradley_terry.ties,
        position=section.bradley_terry.position,
        anchor=section.bradley_terry.anchor,
        intervals=section.intervals,
        preferences=section.preferences,
        bootstrap=section.bootstrap.samples,
        cluster=section.bootstrap.by == "query",
        win_and_tie=settings.win_and_tie,
        seed=section.seed,
    )


def _causes(stages: Iterable[Sequence[tuple[Wanted, Result | None]]], of_games: Mapping[str, int]) -> dict[str, int]:
    causes = Counter(result.cause for stage in stages for _, result in stage if isinstance(result, JudgeFailure))
    return dict(sorted((causes + Counter(of_games)).items()))


def _models(
    stages: Iterable[Sequence[tuple[Wanted, Result | None]]],
    of_games: Mapping[str, Mapping[str, int]],
    settings: StoredSettings,
) -> dict[str, dict[str, int]]:
    counts = {judge: Counter(model_counts) for judge, model_counts in of_games.items()}
    for want, result in (entry for stage in stages for entry in stage):
        if isinstance(result, Judgment) and want.judge in settings.hosted and result.judgment_id != IDENTICAL:
            counts.setdefault(want.judge, Counter())[result.model] += 1
    return {judge: dict(sorted(model_counts.items())) for judge, model_counts in sorted(counts.items())}


def _of_stages(
    samples: Mapping[Task, Sequence[tuple[Wanted, Result | None]]], settings: StoredSettings
) -> tuple[dict[Task, list[tuple[Wanted, Result | None]]], dict[Task, Mapping[str, Consistency]]]:
    """By task, the results with each judge's samples combined, and the agreement between samples."""
    from arena.store.outcomes import combined, consistency

    combinations = settings.combinations
    return (
        {task: combined(task_samples, combinations) for task, task_samples in samples.items()},
        {task: consistency(task_samples) for task, task_samples in samples.items()},
    )
