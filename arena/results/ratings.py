"""Computes the leaderboard of a tournament from its store: ratings, coverage, settings and the judges' health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.settings import StoredSettings
from arena.data.dataset import Group, group_values, groupings
from arena.present.blocks import to_judge_the_rest
from arena.ratings.results import RatingSettings
from arena.results.costs import CostBoard, cost_board
from arena.results.criteria import criteria_scores, ungraded
from arena.results.games import GameTable, read_games
from arena.results.outcomes import Coverage, Shortfall, coverage, shortfall
from judges.errors import InputError
from judges.sections import shortened
from judges.types import JudgeFailure, Judgment, Query, Task, conversations, repeat_of
from judges.writing import count_words
from retrieval_eval.stats.repeats import Noise, noises
from retrieval_eval.stats.scores import Judged, MissingShare, Scores, missing_of, shares

if TYPE_CHECKING:
    from arena.data.dataset import Causes, Dataset
    from arena.ratings.covariates import Controlled
    from arena.ratings.games import VerdictTable
    from arena.ratings.results import Ratings
    from arena.results.documents import CitationBoard, RetrievalBoard
    from arena.results.groups import LeaderByGroup
    from arena.stages.adaptive import AdaptiveState
    from arena.store.outcomes import Consistency
    from retrieval_eval.exam.scores import ExamScores
    from retrieval_eval.nuggets.scores import NuggetBoard
from arena.config.stages import all_tasks
from arena.results.outcomes import OutcomesOf, StageResults, further_results
from arena.store import Result, Store, Wanted
from arena.store.rows import IDENTICAL
from arena.store.store import StoreSubset
from arena.store.wants import paid

Made = TypeVar("Made")


class Leaderboard(Struct, frozen=True):
    """Results of a tournament so far.

    Attributes:
        ratings: ratings over all judges' games; ``None`` if no game has a verdict, or if coverage is too low and
            ``below_coverage`` was not set.
        by_judge: ratings by each judge's games, if there are several judges.
        criteria: the agents' mean grades over all criteria, then those by each criterion; empty without grades.
        ungraded: a sentence for each criterion that skips answers without the documents or reference it needs.
        adaptive: progress of an adaptive schedule, ``None`` with another schedule.
        shortfall: the judge or agent with too few verdicts to rate on, ``None`` if there is none.
        consistency: agreement between samples, by task and judge; only for judges that were asked several times.
        exam: exam scores of the agents, ``None`` without an exam or a grade.
        nuggets: nugget scores of the agents, ``None`` if the tournament has no section ``nuggets``.
        retrieval: scores of the documents that agents retrieved, ``None`` without labels.
        citations: share of relevant documents among those cited, ``None`` if no answer cites a labelled document.
        costs: costs of answers, and which agents have not answered every query.
        controlled: ratings adjusted for properties of the answers, such as length; ``None`` if the configuration does
            not ask for them or they cannot be computed.
        further: results of the stages that define their configuration section themselves, by section name.
        group: the group of queries to which the results are restricted; ``None`` for all queries.
        judges: judges of the games, including those of imported verdicts.
        missing: number of missing judgments and of all planned judgments, by score and agent.
        uneven: for scores with missing judgments, each agent's share of them and the share of all other agents.
        models: number of judgments by judge and by the model that replied, for judges on a provider's server.
        drifts: the last finding on each judge that was asked again since its card, see ``arena.run.drift``.
        paid_usd: cost in dollars of all judgments; ``None`` if unknown, for a group of queries, and where no further
            queries are called for.
        by_group: the leader on each group of queries; ``None`` if no column groups them, or there are no ratings.
        groups: number of groups of all queries, of which ``group`` is one; 0 without a group.
        noise: how much each score changes when a system is asked again; empty if no agent answered a query twice.
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
    drifts: Sequence[Mapping[str, float | int | str]] = ()
    paid_usd: float | None = None
    by_group: LeaderByGroup | None = None
    groups: int = 0
    noise: tuple[Noise, ...] = ()

    @property
    def complete(self) -> bool:
        judged = all(stage.judged == stage.wanted for stage in self.coverage.values())
        return judged and self.costs.complete

    @property
    def withheld(self) -> bool:
        return self.shortfall is not None and self.ratings is None


_LISTED: Final = 120
_NO_COLUMN: Final = "the queries' table has no column that makes groups"


def of_group(store: Store, tournament: str, group: Group | None) -> Store:
    """A view of the store with only the queries of a group; the store itself if ``group`` is ``None``.

    Raises:
        InputError: no query belongs to the group.
    """
    return store if group is None else StoreSubset(store, queries_of(store.queries(tournament), group), group)


def queries_of(queries: Mapping[str, Query], group: Group | None) -> Mapping[str, Query]:
    """The queries of a group, by id; all if ``group`` is ``None``.

    Raises:
        InputError: no query belongs to the group.
    """
    if group is None:
        return queries
    column, value = group
    values_of = {query_id: group_values(query) for query_id, query in queries.items()}
    chosen = {query_id: queries[query_id] for query_id, values in values_of.items() if values.get(column) == value}
    if not chosen:
        columns = dict.fromkeys(name for values in values_of.values() for name in values)
        values = {values[column] for values in values_of.values() if column in values}
        groups = groupings(queries.values())
        group_names = [f"{name}={group_value}" for name, group_values in groups.items() for group_value in group_values]
        if values and column not in groups:
            hint = f"its values are {shortened(sorted(values), _LISTED)}"
        elif group_names:
            hint = f"groups are {', '.join(group_names)}"
        else:
            hint = f"the queries' columns are {shortened(columns, _LISTED)}" if columns else _NO_COLUMN
        raise InputError(f"no query has {column}={value}; {hint}")
    return chosen


def number_of_groups(store: Store, tournament: str) -> int:
    """Number of groups of all queries, from which the group of a store of one group was chosen; 0 if it has all."""
    return 0 if store.group is None else sum(map(len, groupings(Store.queries(store, tournament).values()).values()))


def leaderboard(
    store: Store,
    tournament: str | None = None,
    *,
    below_coverage: bool = False,
) -> Leaderboard:
    """Compute the leaderboard from the judgments that a tournament has so far; equal stores give equal results.

    Args:
        tournament: the tournament's name; optional if the store has only one tournament.
        below_coverage: whether to compute ratings even from fewer verdicts than ``ratings.min_coverage`` requires.

    Raises:
        InputError: there is no such tournament, the store has several tournaments and none is named, or the tournament
            only has synthetic queries.
    """
    name = tournament or store.only_tournament()
    data = store.dataset(name)
    return leaderboard_of(store, name, data, read_games(store, name, data), below_coverage=below_coverage)


def leaderboard_of(
    store: Store, name: str, data: Dataset, games: GameTable, *, below_coverage: bool = False
) -> Leaderboard:
    """Compute the leaderboard from a dataset and games that the caller has read already; see ``leaderboard``."""
    settings = store.settings(name)
    if name not in store.rated_tournaments():
        raise InputError(
            f"tournament {name!r} only has synthetic queries; there is nothing to rate, name another tournament"
        )
    shortage = _shortage(games, settings)
    rated = games.played.any() and (shortage is None or below_coverage)
    ratings, by_judge, controlled = _rated(store, data, games, settings) if rated else (None, {}, None)
    tasks: list[Task] = [task for task in all_tasks() if task is not Task.PAIRWISE]
    samples = {task: results for task in tasks if (results := store.outcomes(name, task))}
    outcomes, consistencies = _of_stages(samples, settings) if samples else ({}, {})
    stages = {task: coverage(results) for task, results in outcomes.items()}
    clusters = conversations(data.queries.values())
    judged: dict[str, Judged] = {}
    if len(games):
        stages[Task.PAIRWISE], judged["pairwise"] = games.coverage(), games
        consistencies[Task.PAIRWISE] = games.consistency
    retrieval, citations = _documents(data, samples.get(Task.RELEVANCE, ()), settings)
    exam = _exam(store, name, settings, lambda task: samples.get(task, ()))
    nuggets = _nuggets(store, name, settings, lambda task: samples.get(task, ()))
    further = further_results(store, name, settings)
    criteria = criteria_scores(outcomes.get(Task.CRITERIA, ()), settings, clusters)
    judged |= _counted("criteria", criteria)
    if exam is not None:
        judged |= _counted("exam", exam.scores)
    if nuggets is not None:
        judged |= _counted("nuggets", nuggets.answers.scores) | _counted("nuggets_documents", nuggets.documents.scores)
    if retrieval is not None and "judge" in retrieval.scores:
        judged |= _counted("retrieval", [*retrieval.scores["judge"].scores.values()])
    for key, stage_results in further.items():
        judged |= _counted(key, stage_results.scores)
    return Leaderboard(
        name,
        ratings,
        by_judge,
        criteria,
        {task: stages[task] for task in all_tasks() if task in stages},
        _causes(outcomes.values(), games.causes),
        settings,
        adaptive=None if store.group is not None else _adaptive(settings, data, games),
        group=store.group,
        groups=number_of_groups(store, name),
        shortfall=shortage,
        consistency={task: consistencies[task] for task in all_tasks() if consistencies.get(task)},
        exam=exam,
        nuggets=nuggets,
        retrieval=retrieval,
        citations=citations,
        costs=cost_board(data, ratings.agents if ratings else (), _owed(store, data, settings)),
        controlled=controlled,
        further=further,
        judges=games.judges,
        ungraded=ungraded(outcomes.get(Task.CRITERIA, ()), settings, len(data.answers)),
        missing={key: missing_of(scores) for key, scores in judged.items() if scores.agents},
        uneven=shares(judged, clusters),
        models=_models(samples.values(), games.models, settings),
        drifts=_drifts(store, name),
        paid_usd=_paid(store, name, ratings),
        by_group=None if ratings is None else _by_group(games, data, ratings),
        noise=noises(
            [
                *filter(None, [games.points(settings.win_and_tie)]),
                *criteria[:1],
                *(() if exam is None else exam.scores),
                *(() if nuggets is None else nuggets.answers.scores[:1]),
                *(scores for results in further.values() for scores in results.scores[:1]),
            ]
        ),
    )


def _paid(store: Store, name: str, ratings: Ratings | None) -> float | None:
    pair = None if ratings is None else ratings.first_pair
    return paid(store, name) if pair is not None and pair.queries_needed and store.only is None else None


def _shortage(games: GameTable, settings: StoredSettings) -> Shortfall | None:
    shortage = shortfall(games.coverage_by_name(), settings.ratings.min_coverage)
    again = to_judge_the_rest(games.causes, games.coverage().left, imported=settings.imported)
    return None if shortage is None else replace(shortage, again=again)


# These functions import late: a tournament imports only the code of its own stages.


def _rated(
    store: Store, data: Dataset, games: GameTable, settings: StoredSettings
) -> tuple[Ratings, dict[str, Ratings], Controlled | None]:
    from arena.ratings.rate import anchored, rate, rate_by_judge

    verdicts, options = games.verdicts(), rating_settings(settings)
    lengths = {key: count_words(answer.text) for key, answer in data.answers.items()}
    anchored_options, anchor_notes = anchored(options, verdicts.agents)
    ratings = rate(verdicts, anchored_options, lengths=lengths)
    controlled, problems = _controlled(settings.ratings.bradley_terry.covariates, verdicts, data, ratings.settings)
    ratings = replace(
        ratings,
        notes=(*ratings.notes, *anchor_notes, *problems),
        unjudged=_unjudged(store, data, games, settings),
    )
    by_judge = rate_by_judge(verdicts, options, lengths=lengths) if len(verdicts.judges) > 1 else {}
    return ratings, by_judge, controlled


def _by_group(games: GameTable, data: Dataset, ratings: Ratings) -> LeaderByGroup | None:
    if not groupings(data.queries.values()):
        return None
    from arena.results.groups import leader_by_group

    return leader_by_group(games, data.queries, ratings.agents[0].agent, ratings.settings.win_and_tie)


def _exam(store: Store, tournament: str, settings: StoredSettings, outcomes: OutcomesOf) -> ExamScores | None:
    if settings.exam is None:
        return None
    from arena.results.exam import stored_scores

    return stored_scores(store, tournament, outcomes)


def _nuggets(store: Store, tournament: str, settings: StoredSettings, outcomes: OutcomesOf) -> NuggetBoard | None:
    if settings.nuggets is None:
        return None
    from arena.results.nuggets import nugget_board, nugget_results

    results = nugget_results(store, tournament, outcomes)
    return None if results is None else nugget_board(results)


def _controlled(
    names: Sequence[str], verdicts: VerdictTable, data: Dataset, options: RatingSettings
) -> tuple[Controlled | None, Sequence[str]]:
    """Ratings adjusted for the named ``QUALITIES`` of answers; if there are none, a note that says why.

    Every verdict counts as a game.
    """
    if not names:
        return None, []
    from arena.ratings.covariates import controlled_ratings
    from arena.ratings.games import as_games
    from arena.stages.ratable import answer_differences

    games = as_games(verdicts, soft=options.preferences == "soft")
    by_query = games if verdicts.clusters is None else replace(games, cluster=verdicts.query)
    try:
        differences = answer_differences(names, by_query, verdicts.queries or (), data)
        return controlled_ratings(games, differences, options.bradley_terry, by_query=options.cluster), []
    except ValueError as error:  # plan checked all games to come, but too few of them have verdicts so far
        return None, [f"No controlled ratings: {error}."]


def _documents(
    data: Dataset, labelled: Sequence[tuple[Wanted, Result | None]], settings: StoredSettings
) -> tuple[RetrievalBoard | None, CitationBoard | None]:
    if not labelled and not data.qrels:
        return None, None
    from arena.results.documents import citation_board, retrieval_board

    return retrieval_board(data, labelled, settings), citation_board(data, labelled, settings)


def _unjudged(store: Store, data: Dataset, games: GameTable, settings: StoredSettings) -> int:
    """Number of queries without a judged game although two agents answer them, plus those that ``data.limit`` cut."""
    judged = {games.queries[place] for place in set(games.query[games.played].tolist())}
    answering: dict[str, set[str]] = {
        query_id: {repeat_of(agent.name)[0] for agent in settings.agents} for query_id in data.queries
    }
    for query_id, agent in data.answers:
        answering[query_id].add(repeat_of(agent)[0])
    count = sum(len(agents) > 1 and query_id not in judged for query_id, agents in answering.items())
    return count + (settings.left_out if store.only is None else 0)


def _owed(store: Store, data: Dataset, settings: StoredSettings) -> Mapping[str, Causes]:
    if not settings.agents:
        return {}
    from arena.results.replies import owed

    return owed(store, data, settings)


def _counted(key: str, scores: Sequence[Scores]) -> dict[str, Judged]:
    """The missing judgments of a stage's first score, under the given key; empty if the stage does not count them."""
    return {key: scores[0]} if scores and scores[0].judgments is not None else {}


def _adaptive(settings: StoredSettings, data: Dataset, games: GameTable) -> AdaptiveState | None:
    if not settings.adaptive or settings.pairwise is None:
        return None
    from arena.stages.adaptive import AdaptiveGames, meeting_of

    meetings = dict.fromkeys(meeting_of(*games.key(row)[:3]) for row in range(len(games)))
    schedule = AdaptiveGames(settings.pairwise, data, list(meetings))
    schedule.learn(games.verdicts().each())
    return schedule.state()


def rating_settings(settings: StoredSettings) -> RatingSettings:
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


def _drifts(store: Store, tournament: str) -> list[Mapping[str, float | int | str]]:
    """The last finding on each judge and level."""
    results = store.results_named(f"drift-{tournament}-").values()
    outcomes = [each.outcome for each in results if isinstance(each, Judgment) and isinstance(each.outcome, Mapping)]
    outcomes = [each for each in outcomes if each["tournament"] == tournament]  # "a-b" begins as "a" does
    outcomes.sort(key=lambda each: (each["day"], each["labels"]))
    return [*{(each["judge"], each["level"]): each for each in outcomes}.values()]


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
    from arena.store.outcomes import combined, consistency

    combinations = settings.combinations
    return (
        {task: combined(task_samples, combinations) for task, task_samples in samples.items()},
        {task: consistency(task_samples) for task, task_samples in samples.items()},
    )
