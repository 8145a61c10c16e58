"""Collects all scores by which a tournament compares its agents, from its store, each as a ``Method``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from arena.calibration.consensus import games_of, settled
from arena.calibration.methods import Method, PeopleScores, Played, draw
from arena.calibration.votes import Level, Opinions
from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.data.kinds import kind_of
from arena.ratings.bradley_terry import BradleyTerrySettings
from arena.ratings.games import Games, without_preferences
from arena.ratings.rate import games_to_rate
from arena.results.criteria import criteria_scores
from arena.results.documents import retrieval_board
from arena.results.exam import stored_scores
from arena.results.games import GameTable
from arena.results.nuggets import nugget_results
from arena.results.outcomes import further_results, outcomes
from arena.results.ratings import rating_settings
from arena.store import Result, Store, Wanted
from judges.types import Task, conversations
from retrieval_eval.nuggets.scores import score_table
from retrieval_eval.stats.bootstrap import FEW_QUERIES, Clusters, units_of, units_with
from retrieval_eval.stats.repeats import averaged
from retrieval_eval.stats.scores import Scores, scores_of

PEOPLE = "people"
RATING: Final = "bradley_terry"


def stored_methods(store: Store, tournament: str, games: GameTable, data: Callable[[], Dataset]) -> list[Method]:
    """All scores of a tournament's agents.

    These are Elo and Bradley-Terry ratings on all judges' games, mean criteria grades, EXAM-Cover, V_strict, scores of
    further stages, and the first retrieval measure, both with judges' labels and with people's.
    """
    return [*played_methods(games, store.settings(tournament)), *means_of(store, tournament, data)]


def answer_scores(store: Store, tournament: str, *, every: bool = False) -> Iterator[Scores]:
    """Yield scores of answers: mean grade, EXAM-Cover and V_strict; with ``every``, also the grades by criterion."""
    settings = store.settings(tournament)
    if settings.criteria is not None:
        grades = criteria_scores(outcomes(store, tournament, Task.CRITERIA), settings, _clusters(store, tournament))
        yield from (scores for scores in grades[: None if every else 1] if scores.seen().any())
    if (exam := stored_scores(store, tournament)) is not None:
        yield from exam.scores
    if (results := nugget_results(store, tournament)) is not None and results.banks:
        yield score_table(results.assignments, list(results.banks), results.clusters).scores[0]


def _clusters(store: Store, tournament: str) -> Clusters:
    return conversations(store.queries(tournament).values())


def means_of(store: Store, tournament: str, data: Callable[[], Dataset], *, every: bool = False) -> list[Scores]:
    """Scores that are means over queries; with ``every``, also the grades by criterion and all retrieval measures."""
    settings, methods = store.settings(tournament), [*answer_scores(store, tournament, every=every)]
    for stage_results in further_results(store, tournament, settings, scored=True).values():
        methods += stage_results.scores
    labels = store.outcomes(tournament, Task.RELEVANCE)
    if labels or store.is_labelled(tournament):
        methods += _retrieval(labels, settings, data(), every=every)
    return methods


def too_few(people: Opinions) -> dict[tuple[Level, str], int]:
    """Numbers of queries of those opinions that are too few to score agents by: a single vote would be a score."""
    numbers = {key: len({opinion.query_id for opinion in opinions}) for key, opinions in people.items()}
    return {key: number for key, number in numbers.items() if number < 3 or len(people[key]) < FEW_QUERIES}


def enough(people: Opinions) -> Opinions:
    few = too_few(people)
    return {key: opinions for key, opinions in people.items() if key not in few}


def people_methods(people: Opinions) -> list[Method]:
    """Agents' scores from people's opinions: Bradley-Terry ratings on verdicts, and mean grades.

    A tie is half a win for each agent. An answer's grade by a criterion is the mean over people; its overall grade is
    the mean over criteria.
    """
    methods: list[Method] = []
    if verdicts := settled(people.get(("verdicts", ""), ()), verdicts=True):
        games, queries = games_of(verdicts)
        methods.append(Played(PEOPLE, games, queries, BradleyTerrySettings(ties="half")))
    by_criterion: defaultdict[tuple[str, str], defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for opinion in settled(people.get(("criteria", ""), ()), verdicts=False):
        agent, criterion = opinion.item[-2:]
        by_criterion[agent, opinion.query_id][criterion].append(opinion.value)
    graded = {
        key: float(np.mean([np.mean(values) for values in criteria_grades.values()]))
        for key, criteria_grades in by_criterion.items()
    }
    return [*methods, *([averaged(scores_of(f"criteria, {PEOPLE}", graded))] if graded else [])]


def people_scores(
    people: Opinions, queries: Sequence[str], draws: tuple[int, int], clusters: Clusters
) -> tuple[PeopleScores, ...]:
    """Scores of the agents by people's labels, for each level whose items belong to agents.

    ``draws`` has the number of bootstrap samples of ``queries`` and the seed.
    """
    known = set(queries)
    people = {key: [own for own in opinions if own.query_id in known] for key, opinions in people.items()}
    levels: dict[str, Level] = {PEOPLE: "verdicts", f"criteria, {PEOPLE}": "criteria"}
    methods = [(levels[method.name], method) for method in people_methods(people)]
    for (level, _), opinions in people.items():
        if level in levels.values() or not (places := kind_of(level).means.names):
            continue
        values = defaultdict[tuple[str, str], list[float]](list)
        for opinion in opinions:
            values[opinion.item[places[0]], opinion.query_id].append(opinion.value)
        if values:
            means = {key: float(np.mean(labels)) for key, labels in values.items()}
            methods.append((level, averaged(scores_of(f"{level}, {PEOPLE}", means))))
    scores = []
    for level, method in methods:
        seen = units_with(method.seen(), units_of(method.queries, clusters)).tolist()
        drawn = draw(method, queries, *draws, clusters)
        scores.append(PeopleScores(level, drawn, dict(zip(method.agents, seen, strict=True))))
    return tuple(scores)


def played_methods(wanted: GameTable, settings: StoredSettings) -> Iterator[Played]:
    table = wanted.verdicts()
    if not len(table):
        return
    options, queries = rating_settings(settings), table.queries or ()
    games: Games = games_to_rate(table.clustered({}), options)
    yield Played("elo", games, queries, options)
    yield Played(RATING, without_preferences(games, by_query=True)[0], queries, options.bradley_terry)


def _retrieval(
    labels: Sequence[tuple[Wanted, Result | None]], settings: StoredSettings, data: Dataset, *, every: bool
) -> list[Scores]:
    board = retrieval_board(data, labels, settings)
    if board is None:
        return []
    methods = []
    for measure in board.measures if every else board.measures[:1]:
        for source, metrics in board.scores.items():
            name = measure if source == "judge" else f"{measure}, {PEOPLE}"
            methods.append(replace(metrics.scores[measure], name=name))
    return methods
