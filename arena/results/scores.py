"""What a tournament's store knows of its agents, each way of scoring them as one method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from arena.calibration.consensus import games_of, settled
from arena.calibration.methods import Means, Method, Played
from arena.calibration.votes import Opinions
from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.ratings.bradley_terry import BradleyTerrySettings
from arena.ratings.games import Games, counted
from arena.ratings.rate import games_to_rate
from arena.results.documents import retrieval_board
from arena.results.exam import stored_scores
from arena.results.further import further_results
from arena.results.games import GameTable
from arena.results.nuggets import nugget_results
from arena.results.ratings import graded_by, grades, rating_settings
from arena.results.samples import outcomes
from arena.store import Result, Store, Wanted
from arena.store.subjects import AnswerSubject
from judges.types import Judgment, Task
from retrieval_eval.nuggets.scores import COLUMNS, score_table
from retrieval_eval.stats.missing import Gaps

PEOPLE = "people"
RATING: Final = "bradley_terry"
"""The way of scoring that all others are held against."""


def stored_methods(store: Store, tournament: str, games: GameTable, data: Callable[[], Dataset]) -> list[Method]:
    """Every way in which a tournament, with its games and its data, scores its agents.

    Elo and Bradley-Terry of all judges' games, mean criteria grades, EXAM-Cover, V_strict, and the first measure of the
    documents retrieved, by judges and by people.
    """
    return [*played_methods(games, store.settings(tournament)), *means_of(store, tournament, data)]


def means_of(store: Store, tournament: str, data: Callable[[], Dataset], *, every: bool = False) -> list[Means]:
    """The ways of scoring that average over queries; with ``every`` also each criterion and each measure by itself."""
    settings = store.settings(tournament)
    found = list(_criteria(store, tournament, settings, every=every))
    if (exam := stored_scores(store, tournament)) is not None:
        own, level = exam.cover, exam.cover.levels.index(exam.level)
        ends = np.array([own.least[:, :, level], own.possible[:, :, level]])
        found.append(Means("cover", own.agents, own.queries, own.cover[:, :, level], own.gaps, ends))
    if (results := nugget_results(store, tournament)) is not None and results.banks:
        table, column = score_table(results.assignments, list(results.banks)), COLUMNS.index("v_strict")
        ends = np.array(table.bounds)[..., column]
        found.append(Means("v_strict", table.runs, table.topics, table.values[:, :, column], table.gaps, ends))
    for own in further_results(store, tournament, settings.raw, scored=True).values():
        found += own.means()
    labels = store.outcomes(tournament, Task.RELEVANCE)
    if labels or store.is_labelled(tournament):
        found += _retrieval(labels, settings, data(), every=every)
    return found


def people_methods(people: Opinions) -> list[Method]:
    """People's verdicts as Bradley-Terry ratings, half a win each for a tie, and their mean grades.

    A grade by one criterion is the mean over people, an answer's the mean over criteria.
    """
    found: list[Method] = []
    if verdicts := settled(people.get(("verdicts", ""), ()), verdicts=True):
        games, queries = games_of(verdicts)
        found.append(Played(PEOPLE, games, queries, BradleyTerrySettings(ties="half")))
    by_criterion: defaultdict[tuple[str, str], defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in settled(people.get(("criteria", ""), ()), verdicts=False):
        agent, criterion = one.item[-2:]
        by_criterion[agent, one.query_id][criterion].append(one.value)
    graded = {key: float(np.mean([np.mean(given) for given in own.values()])) for key, own in by_criterion.items()}
    return [*found, *_graded(f"criteria, {PEOPLE}", graded)]


def played_methods(wanted: GameTable, settings: StoredSettings) -> Iterator[Played]:
    """The games rated by Elo, and by Bradley and Terry; nothing without a verdict."""
    table = wanted.verdicts()
    if not len(table):
        return
    how, queries = rating_settings(settings), table.queries or ()
    games: Games = games_to_rate(table.clustered({}), how)
    yield Played("elo", games, queries, how.elo)
    yield Played(RATING, counted(games, by_query=True).games, queries, how.bradley_terry)


def _criteria(store: Store, tournament: str, settings: StoredSettings, *, every: bool) -> Iterator[Means]:
    """Mean over criteria of each answer's grades, and each of several criteria."""
    if settings.criteria is None:
        return
    given: dict[tuple[str, str], Mapping[str, float]] = {}
    wanted: dict[tuple[str, str], Sequence[str]] = {}
    for want, result in outcomes(store, tournament, Task.CRITERIA):
        key = AnswerSubject.of(want).agent, want.query_id
        wanted[key] = graded_by(want, settings)
        if isinstance(result, Judgment):
            given[key] = grades(want, result, settings)
    scale = float(settings.criteria.scale[0]), float(settings.criteria.scale[1])
    means = {key: float(np.mean(list(own.values()))) for key, own in given.items()}
    yield from _graded("criteria", means, wanted, scale)
    for name in dict.fromkeys(name for own in wanted.values() for name in own) if every else ():
        by_name = {key: own[name] for key, own in given.items() if name in own}
        yield from _graded(name, by_name, [key for key, own in wanted.items() if name in own], scale)


def _graded(
    name: str,
    graded: Mapping[tuple[str, str], float],
    wanted: Collection[tuple[str, str]] = (),
    scale: tuple[float, float] | None = None,
) -> Iterator[Means]:
    """Grades by agent and query; those that are wanted and not there may be any of the scale's."""
    keys = {*graded, *wanted}
    if not graded:
        return
    agents, queries = (tuple(sorted({key[place] for key in keys})) for place in (0, 1))
    cells = [[(agent, query_id) for query_id in queries] for agent in agents]
    values = np.array([[graded.get(key, np.nan) for key in row] for row in cells])
    of = np.array([[int(key in keys) for key in row] for row in cells])
    missing = np.where(np.isnan(values), of, 0)
    ends = np.array([np.where(missing > 0, end, values) for end in scale or (0, 1)])
    yield Means(name, agents, queries, values, Gaps(agents, queries, of, missing), ends, scale)


def _retrieval(
    labels: Sequence[tuple[Wanted, Result | None]], settings: StoredSettings, data: Dataset, *, every: bool
) -> list[Means]:
    board = retrieval_board(data, labels, settings)
    if board is None:
        return []
    found = []
    for measure in board.measures if every else board.measures[:1]:
        for source, own in board.scores.items():
            name, metrics = measure if source == "judge" else f"{measure}, {PEOPLE}", own.metrics
            values, ends = metrics.of_measure(measure), metrics.bounds_of(measure)
            found.append(Means(name, metrics.runs, metrics.topics, values, metrics.gaps, ends))
    return found
