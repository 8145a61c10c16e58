"""From a store to a leaderboard: ratings with their coverage, settings and the judges' health."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from arena.config.settings import StoredSettings
from arena.data.dataset import groupings
from arena.present.advice import to_judge_the_rest
from arena.ratings.results import RatingSettings
from arena.results.costs import CostBoard, cost_board
from arena.results.coverage import Coverage, Shortfall, coverage, shortfall
from arena.results.games import WantedGames, read_games
from judges.errors import InputError
from judges.sections import shortened
from judges.types import JudgeFailure, Judgment, Task, conversations
from judges.writing import count_words
from retrieval_eval.stats.missing import MissingShare, gaps_of, shares

if TYPE_CHECKING:
    from arena.data.dataset import Causes, Dataset
    from arena.ratings.covariates import Controlled
    from arena.ratings.games import VerdictTable
    from arena.ratings.health import Lengths
    from arena.ratings.panel import PanelRatings
    from arena.ratings.results import Ratings
    from arena.results.documents import CitationBoard, RetrievalBoard
    from arena.results.exam_evaluation import ExamScores
    from arena.results.games import GameTable
    from arena.results.nuggets import NuggetBoard
    from arena.stages.adaptive import AdaptiveState
    from arena.store.outcomes import Consistency
from arena.config.stages import TASKS
from arena.results.further import further_results
from arena.store import Result, Store, Wanted
from arena.store.rows import IDENTICAL
from arena.store.subjects import AnswerSubject, GradedSubject
from arena.store.subset import StoreSubset

Made = TypeVar("Made")
Group: TypeAlias = tuple[str, str]
"""Queries whose metadata have this value in this column."""


class CriterionMean(Struct, frozen=True):
    """Mean grade over the answers that were graded, and how many those are."""

    mean: float
    graded: int
    wanted: int


class Leaderboard(Struct, frozen=True):
    """What a tournament has shown so far.

    Attributes:
        ratings: over all judges' games; ``None`` where no game has a verdict, or too few have and nobody asked for
            ratings all the same.
        by_judge: each judge's own ratings, where there are several.
        criteria: per agent and criterion.
        ungraded: what criteria leave answers out that lack what they need, a sentence each.
        coverage: per stage.
        causes: how many wants failed for which cause.
        settings: what decided the results, as stored with the tournament.
        adaptive: how far an adaptive schedule has come, ``None`` with any other.
        panel: ratings that weigh each judge by how well it tells agents apart, ``None`` for one judge.
        shortfall: what is too little judged to rate on, ``None`` where there is enough.
        consistency: per stage and judge that was asked several times, how far its samples agree.
        exam: what each agent's answers cover of the test bank, ``None`` without an exam or a grade.
        nuggets: each agent's nugget scores, ``None`` where the tournament asks for none.
        retrieval: what the agents' documents are worth, ``None`` where no document is to be labelled.
        citations: how many of the documents cited are relevant, ``None`` where no answer cites one with a label.
        costs: what the answers took, and which agents owe some.
        controlled: ratings controlled for qualities of answers, ``None`` where none are asked for, or can be had.
        further: results of the stages that bring their section along, by section.
        group: column and value of the queries' metadata, where only such queries are counted.
        judges: of the games, also of those that were judged elsewhere.
        missing: by score and agent, judgments that failed or were never made, and of how many.
        uneven: each agent's share of these beside all others', of the scores of which anything is missing.
        models: by judge of a server, the models that gave its judgments, and how many each.
        complete: whether every want has a judgment, and every agent that is asked here has answered every query.
    """

    tournament: str
    ratings: Ratings | None
    by_judge: Mapping[str, Ratings]
    criteria: Mapping[str, Mapping[str, CriterionMean]]
    coverage: Mapping[Task, Coverage]
    causes: Mapping[str, int]
    settings: StoredSettings
    adaptive: AdaptiveState | None = None
    panel: PanelRatings | None = None
    shortfall: Shortfall | None = None
    consistency: Mapping[Task, Mapping[str, Consistency]] = field(default_factory=dict)
    exam: ExamScores | None = None
    nuggets: NuggetBoard | None = None
    retrieval: RetrievalBoard | None = None
    citations: CitationBoard | None = None
    costs: CostBoard = field(default_factory=CostBoard)
    controlled: Controlled | None = None
    further: Mapping[str, Any] = field(default_factory=dict)
    group: Group | None = None
    judges: tuple[str, ...] = ()
    ungraded: Sequence[str] = ()
    missing: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    uneven: tuple[MissingShare, ...] = ()
    models: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every want has a judgment, and every agent that is asked here has answered every query."""
        judged = all(stage.judged == stage.wanted for stage in self.coverage.values())
        return judged and self.costs.complete

    @property
    def withheld(self) -> bool:
        """Whether there are no ratings because too little is judged."""
        return self.shortfall is not None and self.ratings is None


_LISTED: Final = 120
_NO_COLUMN: Final = "the queries' table has no column that makes groups"


def of_group(store: Store, tournament: str, group: Group) -> StoreSubset:
    """The store, of which only a group of queries is read.

    Raises:
        InputError: no query belongs to it.
    """
    (column, value), queries = group, store.queries(tournament)
    chosen = [query_id for query_id, query in queries.items() if query.metadata.get(column) == value]
    if not chosen:
        values = dict.fromkeys(query.metadata[column] for query in queries.values() if column in query.metadata)
        columns = dict.fromkeys(name for query in queries.values() for name in query.metadata)
        found = groupings(queries.values())
        known = [f"{name}={each}" for name, own in found.items() for each in own]
        if values and column not in found:
            there = f"its values are {shortened(sorted(values), _LISTED)}"
        elif known:
            there = f"groups are {', '.join(known)}"
        else:
            there = f"the queries' columns are {shortened(columns, _LISTED)}" if columns else _NO_COLUMN
        raise InputError(f"no query has {column}={value}; {there}")
    return StoreSubset(store, chosen)


def verified(store: Store, tournament: str, make: Callable[[Dataset, WantedGames], Made]) -> Made:
    """What is made of a tournament's data and games, once all of these have been seen to be what was written.

    Raises:
        StoreError: something is damaged.
    """
    data = store.dataset(tournament)
    return read_games(store, tournament, partial(make, data), data)


def leaderboard(
    store: Store,
    tournament: str | None = None,
    *,
    below_coverage: bool = False,
    group: Group | None = None,
) -> Leaderboard:
    """Rate what a tournament has judged so far; equal stores give equal results.

    Args:
        store: where the judgments are.
        tournament: its name; may be left out where the store has just one.
        below_coverage: rate also where less is judged than ``ratings.min_coverage`` asks for.
        group: count these queries alone, in everything.

    Raises:
        InputError: no such tournament, several and none named, one that only has synthetic queries, or no such query.
    """
    name = tournament or store.only_tournament()
    if group is not None:
        part = of_group(store, name, group)
        board = leaderboard(part, name, below_coverage=below_coverage)
        return replace(board, group=group, adaptive=None)
    return verified(store, name, partial(leaderboard_of, store, name, below_coverage=below_coverage))


def leaderboard_of(
    store: Store, name: str, data: Dataset, wanted: WantedGames, *, below_coverage: bool = False
) -> Leaderboard:
    """The same, of a tournament whose data and games have been read."""
    settings = store.settings(name)
    if name not in store.rated_tournaments():
        raise InputError(f"{name!r} keeps how synthetic queries were made; there is nothing to rate in it")
    how = rating_settings(settings)
    lengths = {key: count_words(answer.text) for key, answer in data.answers.items()}
    board, verdicts = _of_games(name, settings, wanted, how, lengths, below_coverage=below_coverage)
    others: list[Task] = [task for task in TASKS if task is not Task.PAIRWISE]
    samples = {task: found for task in others if (found := store.outcomes(name, task))}
    outcomes, agreeing = _of_stages(samples, settings) if samples else ({}, {})
    stages = {task: coverage(found) for task, found in outcomes.items()} | dict(board.coverage)
    agreeing |= board.consistency
    ratings, controlled = board.ratings, None
    if ratings is not None:
        ratings = replace(ratings, unjudged=_unjudged(store, data, wanted, settings))
    covariates = settings.ratings.bradley_terry.covariates
    if ratings is not None and verdicts is not None and covariates:
        controlled, why_not = _controlled(covariates, verdicts, data, ratings.settings)
        ratings = replace(ratings, notes=(*ratings.notes, *why_not))
    several = verdicts if verdicts is not None and len(verdicts.judges) > 1 else None
    retrieval, citations = _documents(data, samples.get(Task.RELEVANCE, ()), settings)
    exam, nuggets = _exam(store, name, settings, samples), _nuggets(store, name, settings)
    further = further_results(store, name, settings.raw)
    gaps = {"pairwise": wanted.table.gaps()} if len(wanted.table) else {}
    if Task.CRITERIA in outcomes:
        gaps["criteria"] = gaps_of(
            (AnswerSubject.of(want).agent, want.query_id, isinstance(result, Judgment))
            for want, result in outcomes[Task.CRITERIA]
        )
    if exam is not None:
        gaps["exam"] = exam.cover.gaps
    if nuggets is not None:
        gaps |= {"nuggets": nuggets.answers.gaps, "nuggets_documents": nuggets.documents.gaps}
    if retrieval is not None and "judge" in retrieval.scores:
        gaps["retrieval"] = retrieval.scores["judge"].metrics.gaps
    gaps |= {key: own.gaps for key, own in further.items() if getattr(own, "gaps", None) is not None}
    return replace(
        board,
        ratings=ratings,
        by_judge=_by_judge(several, how, lengths) if several else {},
        criteria=_criteria(outcomes.get(Task.CRITERIA, ()), settings),
        ungraded=_ungraded(outcomes.get(Task.CRITERIA, ()), settings, len(data.answers)),
        coverage={task: stages[task] for task in TASKS if task in stages},
        causes=_causes(outcomes.values(), wanted.causes),
        adaptive=_adaptive(settings, data, wanted.table),
        panel=_panel(several) if several else None,
        consistency={task: agreeing[task] for task in TASKS if agreeing.get(task)},
        exam=exam,
        nuggets=nuggets,
        retrieval=retrieval,
        citations=citations,
        costs=cost_board(data, ratings.agents if ratings else (), _owed(store, data, settings)),
        controlled=controlled,
        further=further,
        missing={key: {agent: own.of(agent) for agent in own.agents} for key, own in gaps.items() if own.agents},
        uneven=shares(gaps, conversations(data.queries.values())),
        models=_models(samples.values(), wanted.models, settings),
    )


def _of_games(
    tournament: str,
    settings: StoredSettings,
    wanted: WantedGames,
    how: RatingSettings,
    lengths: Lengths,
    *,
    below_coverage: bool,
) -> tuple[Leaderboard, VerdictTable | None]:
    """The leaderboard of the games alone, and the verdicts that it rates."""
    least = settings.ratings.min_coverage
    lacking = shortfall(wanted.table.coverage_by_name(), least)
    if lacking is not None:
        again = to_judge_the_rest(wanted.causes, wanted.table.coverage().left, imported=settings.imported)
        lacking = replace(lacking, again=again)
    rated = wanted.table.played.any() and (lacking is None or below_coverage)
    verdicts = wanted.table.verdicts() if rated else None
    ratings = None
    if verdicts is not None:
        from arena.ratings.rate import anchored, rate

        around, said = anchored(how, verdicts.agents)
        ratings = rate(verdicts, around, lengths=lengths)
        ratings = replace(ratings, notes=(*ratings.notes, *said))
    board = Leaderboard(
        tournament,
        ratings,
        {},
        {},
        {Task.PAIRWISE: wanted.table.coverage()} if len(wanted.table) else {},
        _causes((), wanted.causes),
        settings,
        shortfall=lacking,
        consistency={Task.PAIRWISE: wanted.consistency} if wanted.consistency else {},
        judges=wanted.table.judges,
    )
    return board, verdicts


# Whatever a tournament has no stage for is not imported either.


def _by_judge(verdicts: VerdictTable, how: RatingSettings, lengths: Lengths) -> dict[str, Ratings]:
    from arena.ratings.rate import rate_by_judge

    return rate_by_judge(verdicts, how, lengths=lengths)


def _panel(verdicts: VerdictTable) -> PanelRatings:
    from arena.ratings.panel import panel_ratings

    return panel_ratings(verdicts)


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
    names: Sequence[str], verdicts: VerdictTable, data: Dataset, how: RatingSettings
) -> tuple[Controlled | None, Sequence[str]]:
    from arena.results.controlled import controlled_for

    try:
        return controlled_for(names, verdicts, data, how), []
    except ValueError as error:  # of the verdicts so far: plan looked at all games to come
        return None, [f"No controlled ratings: {error}."]


def _documents(
    data: Dataset, labelled: Sequence[tuple[Wanted, Result | None]], settings: StoredSettings
) -> tuple[RetrievalBoard | None, CitationBoard | None]:
    if not labelled and not data.qrels:
        return None, None
    from arena.results.documents import citation_board, retrieval_board

    return retrieval_board(data, labelled, settings), citation_board(data, labelled, settings)


def _unjudged(store: Store, data: Dataset, wanted: WantedGames, settings: StoredSettings) -> int:
    """Queries that two agents have answered, or are to answer, on which no game is judged; and those left out."""
    table = wanted.table
    judged = {table.queries[place] for place in set(table.query[table.played].tolist())}
    answering: dict[str, set[str]] = {query_id: {own.name for own in settings.agents} for query_id in data.queries}
    for query_id, agent in data.answers:
        answering[query_id].add(agent)
    there = sum(len(agents) > 1 and query_id not in judged for query_id, agents in answering.items())
    return there + (settings.left_out if store.only is None else 0)


def _owed(store: Store, data: Dataset, settings: StoredSettings) -> Mapping[str, Causes]:
    """By agent that the tournament asks itself, why it has no answer to how many queries."""
    if not settings.agents:
        return {}
    from arena.results.replies import owed

    return owed(store, data, settings)


def _adaptive(settings: StoredSettings, data: Dataset, table: GameTable) -> AdaptiveState | None:
    if not settings.adaptive or settings.pairwise is None:
        return None
    from arena.ratings.adaptive import Meeting
    from arena.stages.adaptive import AdaptiveGames

    asked = dict.fromkeys(Meeting(*table.key(row)[:3]) for row in range(len(table)))
    games = AdaptiveGames(settings.pairwise, data, list(asked))
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
    found = {judge: Counter(own) for judge, own in of_games.items()}
    for want, result in (one for stage in stages for one in stage):
        if isinstance(result, Judgment) and want.judge in settings.hosted and result.judgment_id != IDENTICAL:
            found.setdefault(want.judge, Counter())[result.model] += 1
    return {judge: dict(sorted(own.items())) for judge, own in sorted(found.items())}


def graded_by(want: Wanted, settings: StoredSettings) -> Sequence[str]:
    """The criteria that an answer is graded by."""
    assert settings.criteria is not None
    return GradedSubject.of(want).criteria or tuple(settings.criteria.names)


def grades(want: Wanted, judgment: Judgment, settings: StoredSettings) -> dict[str, float]:
    """The grades of a criteria judgment by criterion; a single criterion's outcome comes without its name."""
    if isinstance(judgment.outcome, Mapping):
        return {name: grade for name, grade in judgment.outcome.items() if not isinstance(grade, str)}
    (name,) = graded_by(want, settings)
    assert isinstance(judgment.outcome, int | str)
    return {name: float(judgment.outcome)}


def _of_stages(
    samples: Mapping[Task, Sequence[tuple[Wanted, Result | None]]], settings: StoredSettings
) -> tuple[dict[Task, list[tuple[Wanted, Result | None]]], dict[Task, Mapping[str, Consistency]]]:
    """By stage, each judge's samples as one result, and how far they agree."""
    from arena.store.outcomes import combined, consistency

    how = settings.combinations
    return (
        {task: combined(found, how) for task, found in samples.items()},
        {task: consistency(found) for task, found in samples.items()},
    )


def _ungraded(
    outcomes: Iterable[tuple[Wanted, Result | None]], settings: StoredSettings, answers: int
) -> tuple[str, ...]:
    graded = Counter(name for want, _ in outcomes for name in graded_by(want, settings))
    criteria = settings.criteria.listed() if settings.criteria is not None else ()
    return tuple(filter(None, (each.left_out(graded[each.name], answers) for each in criteria)))


def _criteria(
    outcomes: Iterable[tuple[Wanted, Result | None]], settings: StoredSettings
) -> dict[str, dict[str, CriterionMean]]:
    given: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    wanted: Counter[tuple[str, str]] = Counter()
    for want, result in outcomes:
        agent = AnswerSubject.of(want).agent
        wanted.update((agent, name) for name in graded_by(want, settings))
        if isinstance(result, Judgment):
            for name, grade in grades(want, result, settings).items():
                given[agent, name].append(grade)
    found: dict[str, dict[str, CriterionMean]] = {agent: {} for agent in sorted({agent for agent, _ in given})}
    for (agent, name), values in given.items():
        found[agent][name] = CriterionMean(sum(values) / len(values), len(values), wanted[agent, name])
    return found
