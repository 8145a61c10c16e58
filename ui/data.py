"""Cached reads of one store for the pages. This module writes nothing and calls no judge.

Cache keys include the store's version, so pages are always current and each version is read once.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import numpy as np
import streamlit as st
from msgspec import Struct
from msgspec.structs import replace

from arena.calibration.comparison import Comparison
from arena.calibration.methods import PeopleScores
from arena.calibration.style import StyleEffect
from arena.calibration.votes import Level
from arena.data.dataset import Group, groupings
from arena.results.agreement import compare_with_people, spending, styles_of
from arena.results.cache import WORTH_KEEPING, cached_games, cached_leaderboard
from arena.results.documents import LabelSource
from arena.results.exam import Study, exam_study
from arena.results.nuggets import nugget_results
from arena.results.outcomes import labels_by_judge as read_labels_by_judge
from arena.results.outcomes import labels_of
from arena.results.ratings import Leaderboard, of_group, queries_of
from arena.store import Store, sqlite_path
from judges.errors import InputError
from judges.types import Judgment, Query, label_of
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats import Floats

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LOCATION_VARIABLE: Final = "RAGLEAGUE_UI_STORE"
"""Environment variable with the path or URL of the store, set by ``ui.serve``."""

_CACHED = 4
"""Number of results that each read function caches: enough for a few tournaments in the store's present version."""
_CACHED_DETAILS: Final = 32
"""Number of results that a read function caches if each is about a single query, game or filter."""
DISAGREEMENTS: Final = 50
"""Maximum number of disagreements between judge and people that are listed per judge."""
_WITHOUT_BAR_S: Final = 0.3
"""Seconds that a page waits for a computation before it draws a progress bar."""
LAST_READ: Final[dict[str, tuple[tuple[int, int, int], list[str]]]] = {}
"""The last result of ``tournaments`` for each store location; pages use it while the store is locked."""


class Source(Struct, frozen=True):
    """One tournament in one version of its store; equal sources have equal data.

    Attributes:
        version: the store's change counters for judgments and for annotations, and its file's inode.
        group: the group of queries that is shown; ``None`` for all queries.
        by: name of the column by whose groups the queries are compared; empty for every column.
    """

    location: str
    version: tuple[int, int, int]
    tournament: str
    group: Group | None = None
    by: str = ""

    @property
    def judged(self) -> Source:
        """The same source without the counter of annotations, so that it stays equal when somebody votes."""
        return replace(self, version=(self.version[0], 0, self.version[2]))


def tournaments() -> tuple[tuple[int, int, int], list[str]]:
    """The store's version and the names of its tournaments, read again at every call.

    Raises:
        InputError: there is no store.
        StoreError: the store cannot be read.
    """
    store_location = location()
    with shared(store_location) as store:
        version, names = store.version(), store.rated_tournaments()
    LAST_READ[store_location] = (*version, _file_number(store_location)), names
    return LAST_READ[store_location]


def location() -> str:
    """The path or URL of the store.

    Raises:
        InputError: the environment variable is not set.
    """
    if LOCATION_VARIABLE not in os.environ:
        raise InputError(f"{LOCATION_VARIABLE} is not set: start the pages with 'ragleague ui'")
    return os.environ[LOCATION_VARIABLE]


def stored(
    read: Callable[Concatenate[Store, str, Arguments], Result], spinner: str = "", cache_size: int = _CACHED
) -> Callable[Concatenate[Source, Arguments], Result]:
    """Turn a function of an open store and a tournament's name into a cached function of ``Source``.

    The store has only the queries of the source's group.

    Args:
        read: function that is called with the open store, the tournament's name and any further arguments.
        spinner: text that the page shows while the function runs.
        cache_size: maximum number of results to cache.
    """

    def opened(source: Source, /, *more: Arguments.args, **named: Arguments.kwargs) -> Result:
        with shared(source.location) as store:
            return read(of_group(store, source.tournament, source.group), source.tournament, *more, **named)

    # The cache identifies functions by name.
    opened.__qualname__ = f"{read.__module__}.{read.__qualname__} {cache_size}"
    return st.cache_resource(max_entries=cache_size, show_spinner=spinner or False)(opened)


def judged(
    read: Callable[Concatenate[Store, str, Arguments], Result],
    spinner: str = "",
    cache_size: int = _CACHED,
    *,
    grouped: bool = False,
) -> Callable[Concatenate[Source, Arguments], Result]:
    """Like ``stored``, for a function that reads no annotations: its cached results stay valid when people vote.

    Unless it is ``grouped``, the function reads all queries, whatever group is selected.
    """
    return _judged(stored(read, spinner, cache_size), grouped=grouped)


def derived(
    spinner: str = "", cache_size: int = _CACHED
) -> Callable[[Callable[Concatenate[Source, Arguments], Result]], Callable[Concatenate[Source, Arguments], Result]]:
    """Decorator that caches a function of ``Source`` which reads no annotations; arguments as for ``stored``."""
    return lambda make: _judged(st.cache_resource(max_entries=cache_size, show_spinner=spinner or False)(make))


def _judged(
    cached: Callable[Concatenate[Source, Arguments], Result], *, grouped: bool = False
) -> Callable[Concatenate[Source, Arguments], Result]:
    def of_judges(source: Source, /, *more: Arguments.args, **named: Arguments.kwargs) -> Result:
        return cached(source.judged if grouped else replace(source.judged, group=None, by=""), *more, **named)

    return wraps(cached)(of_judges)


_board = judged(cached_leaderboard, "Rating the games …", grouped=True)


def board(source: Source) -> Leaderboard:
    """The leaderboard of the selected group of queries, as ``ragleague leaderboard`` computes it."""
    return _board(source, by=source.by)


dataset = judged(Store.dataset, "Reading the data …")
"""The queries, documents and answers of a tournament."""
dataset_of = judged(Store.dataset, "Reading the data …", _CACHED_DETAILS)
"""One query with its answers and documents; takes the query's id as its argument."""
settings = judged(Store.settings, "Reading the settings …")
"""The settings on which a tournament's results depend."""
queries = judged(Store.queries, "Reading the queries …")
"""The queries of a tournament by id, in order."""
games = judged(cached_games, "Reading the games …")
"""All planned games of a tournament, played or not, in the order of the plan, without reasons and answers."""
_labelled = judged(labels_of, "Reading the labels …")
labels_of_query = judged(labels_of, "Reading the labels …", _CACHED_DETAILS)
"""The relevance labels of one query's documents, combined over the judges; takes the query's id."""
labels_by_judge = judged(read_labels_by_judge, "Reading the labels …", _CACHED_DETAILS)
"""Each relevance judge's labels for the documents of one query, samples combined; takes the query's id."""
nuggets = judged(nugget_results, "Reading the nuggets …")
"""The nuggets of each query and their assignments to answers; ``None`` if the tournament has no nuggets."""


@st.cache_resource(max_entries=_CACHED, show_spinner="Holding judges against people …")
def people(
    source: Source, *, boards: bool = False
) -> tuple[tuple[Comparison, ...], tuple[Level, ...], tuple[PeopleScores, ...]]:
    """Comparisons of judges with people, the levels that only people have judged, and people's scores of the agents.

    Args:
        source: the tournament and the group of queries.
        boards: whether to compare the judges' leaderboards with the people's too, which takes longer than the rest.
    """
    with shared(source.location) as store:
        group = of_group(store, source.tournament, source.group)
        return compare_with_people(group, source.tournament, most=DISAGREEMENTS, boards=boards)


spent = judged(spending, "Adding up what judges cost …")
"""Number of games, number of failures and cost of the verdicts, by judge."""


def corrected(source: Source) -> tuple[Comparison, ...] | None:
    """Comparisons of judges with people, in which people's labels correct the judges' figures.

    Returns ``None`` while they are computed.
    """
    comparisons = _background("corrected", source, partial(compare_with_people, label_next=0))
    return None if comparisons is None else comparisons[0]


def styles(source: Source) -> tuple[StyleEffect, ...] | None:
    """Effects on verdicts of anything but quality, such as an answer's length; ``None`` while they are computed."""
    effects: tuple[StyleEffect, ...] | None = _background("styles", source, styles_of)
    return effects


class Work(threading.Thread):
    """A slow computation in a thread, shared by all sessions that need its result."""

    def __init__(self, source: Source, make: Callable[..., Any]) -> None:
        super().__init__(daemon=True)
        self.source, self._make = source, make
        self.share, self.doing = 0.0, ""
        self.value: Any = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with shared(self.source.location) as store:
                self.value = self._make(store, self.source.tournament, tell=self._tell)
        except Exception as error:
            self.error = error

    def _tell(self, share: float, doing: str) -> None:
        self.share, self.doing = share, doing


_WORKS: Final[dict[tuple[str, Source], Work]] = {}
"""Background computations by kind of result and source, the newest last."""


def _background(kind: str, source: Source, make: Callable[..., Any]) -> Any:
    """The result of ``make``, which runs in a background thread.

    While it runs, this function draws a progress bar and returns ``None``; the page is redrawn once the result is
    there.
    """
    key = kind, replace(source, group=None, by="")
    work = _WORKS.get(key)
    if work is None:
        work = _WORKS[key] = Work(source, make)
        for old in [*_WORKS][: -2 * _CACHED]:
            del _WORKS[old]
        work.start()
        work.join(None if len(games(source)) < WORTH_KEEPING else _WITHOUT_BAR_S)
    if work.is_alive():
        _show_progress(work)
    elif work.error is not None:
        _WORKS.pop(key, None)
        raise work.error
    return work.value


@st.fragment(run_every=0.5)
def _show_progress(work: Work) -> None:
    st.progress(work.share, text=f"{work.doing} …")
    if not work.is_alive():
        st.rerun()


@derived()
def labels(source: Source) -> Labels:
    """Combined labels of the relevance judges, by query and document."""
    labels_by_query: dict[str, dict[str, int]] = {}
    for (query_id, doc_id), result in _labelled(source).items():
        if isinstance(result, Judgment):
            labels_by_query.setdefault(query_id, {})[doc_id] = label_of(result.outcome)
    return labels_by_query


@derived()
def scores(source: Source) -> Floats:
    """The score of the first agent in each planned game; NaN for a game without a verdict."""
    return games(source).scores(settings(source).win_and_tie)


@derived()
def played(source: Source) -> frozenset[tuple[str, str, str]]:
    """The query's id and the two agents of each game that has a verdict."""
    table = games(source)
    return frozenset(table.key(row)[:3] for row in np.flatnonzero(table.played).tolist())


def selected(source: Source) -> Mapping[str, Query]:
    """The queries of the selected group."""
    return queries_of(queries(source), source.group)


@derived()
def groups(source: Source) -> dict[str, tuple[Group | None, str]]:
    """What the field for groups of queries offers, as ``group`` and ``by`` of a source: columns, then single groups."""
    columns = groupings(queries(source).values())
    single = [(name, value) for name, values in columns.items() for value in values]
    return {f"by {name}": (None, name) for name in columns} | {": ".join(group): (group, "") for group in single}


class _Use(Struct):
    """A store that is open or being opened, its file's inode, its number of users, and when the last one left."""

    store: Future[Store]
    file: int
    users: int = 0
    left: float = math.inf


_USES: Final[dict[str, _Use]] = {}
_USING: Final = threading.Lock()
_IDLE_S: Final = 5.0
"""Seconds without a user after which the store is reopened, because its database server may have restarted."""


@contextmanager
def shared(location: str) -> Iterator[Store]:
    """The open store that all threads of this process share: the first user opens it, and the last user closes it.

    The threads share its connections, and writers take turns. If each thread opened the store itself, a hundred users
    would lock the file against each other, or open a hundred connections to a database server. An unused SQLite file is
    closed, so that you can copy or replace it; connections to a server stay open for a few seconds.

    Raises:
        InputError: there is no store.
        StoreError: the store cannot be read.
    """
    file = _file_number(location)
    with _USING:
        use = idle = _USES.get(location)
        if is_first := use is None or use.file != file or time.monotonic() - use.left > _IDLE_S:
            use = _USES[location] = _Use(Future(), file)
        use.users, use.left = use.users + 1, math.inf
    try:
        if is_first:
            _open(location, use)
            if idle is not None and not idle.users:
                idle.store.result().close()
        yield use.store.result()
    finally:
        with _USING:
            use.users -= 1
            is_last, is_kept = not use.users, not file and _USES.get(location) is use
            if is_last and is_kept:
                use.left = time.monotonic()
            elif is_last:
                _forget(location, use)
        if is_last and not is_kept and use.store.exception() is None:
            use.store.result().close()


def _open(location: str, use: _Use) -> None:
    """Open a store for all threads that wait for it; after an error the next thread tries again."""
    try:
        use.store.set_result(Store.open(location))
    except BaseException as error:
        with _USING:
            _forget(location, use)
        use.store.set_exception(error)


def _forget(location: str, use: _Use) -> None:
    if _USES.get(location) is use:
        del _USES[location]


_FILES: Final[dict[str, tuple[int, int]]] = {}
"""An open file descriptor and the inode of each SQLite store, by location.

The descriptor stays open: if the file is deleted, no new file can get the same inode.
"""


def _file_number(location: str) -> int:
    """The inode of the store's file, which changes if the file is replaced; 0 for a database server."""
    path = sqlite_path(location)
    if path is None:
        return 0
    with _USING, suppress(OSError):  # errors are reported when the store is opened
        # Each file is opened once: closing a second descriptor would release SQLite's locks on it.
        descriptor, number = _FILES.get(location, (-1, -1))
        if path.stat().st_ino != number:
            new_descriptor = os.open(path, os.O_RDONLY)
            _FILES[location] = new_descriptor, os.fstat(new_descriptor).st_ino
            if descriptor != -1:
                os.close(descriptor)
        return _FILES[location][1]
    return 0


@derived("Reading the grades …")
def study(source: Source) -> Study | None:
    """The exam's test bank, grades and passages; ``None`` if the tournament has no exam."""
    if settings(source).exam is None:
        return None
    with shared(source.location) as store:
        return exam_study(store, source.tournament)


@derived("Reading the labels …")
def exam_labels(source: Source) -> Mapping[LabelSource, Labels]:
    """Relevance labels of the graded passages, by source (people or judge); sources without labels are left out.

    Labels are keyed by the query's id and then the passage's id, for instance ``q1/agent#2``.
    """
    exam = study(source)
    if exam is None:
        return {}
    labels_by_source: Mapping[LabelSource, Labels] = {"people": dataset(source).qrels, "judge": labels(source)}
    passage_labels: dict[LabelSource, Labels] = {
        label_source: {
            query_id: {
                passage: source_labels[query_id][passage]
                for passage in grid.passages
                if passage in source_labels[query_id]
            }
            for query_id, grid in exam.grids.grids.items()
            if query_id in source_labels
        }
        for label_source, source_labels in labels_by_source.items()
    }
    return {
        label_source: source_labels
        for label_source, source_labels in passage_labels.items()
        if any(source_labels.values())
    }


def exam_depth(source: Source) -> int:
    """Number of passages of each answer that the exam scores."""
    exam = settings(source).exam
    assert exam is not None
    return exam.depth
