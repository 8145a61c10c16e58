"""Cached reads of one store. Nothing is written and no judge is asked.

Every read is cached under the store's number of changes, so a page is as fresh as the store and reads it once.
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
from arena.calibration.style import StyleEffect
from arena.calibration.votes import Level
from arena.data.dataset import groupings
from arena.results import samples
from arena.results.agreement import compare_with_people, styles_of
from arena.results.cache import WORTH_KEEPING, cached_games, cached_leaderboard
from arena.results.documents import LabelSource as Whose
from arena.results.exam import exam_study
from arena.results.exam_evaluation import Study
from arena.results.nuggets import nugget_results
from arena.results.opinions import spending
from arena.results.ratings import Leaderboard
from arena.results.samples import labels_of
from arena.store import Store, sqlite_path
from judges.errors import InputError
from judges.types import Judgment, label_of
from retrieval_eval.scores.metrics import Labels
from retrieval_eval.stats.arrays import Floats

Further = ParamSpec("Further")
Found = TypeVar("Found")

LOCATION_VARIABLE: Final = "RAGLEAGUE_UI_STORE"
"""Environment variable through which ``ui.serve`` tells the pages which store to read."""

_KEPT = 4
"""Versions of one read that are kept: a few tournaments side by side, not the history of a growing store."""
_ONE_BY_ONE: Final = 32
"""The same for reads of one query, game or filter."""
DISAGREEMENTS: Final = 50
"""Of each judge and people that are kept for the list."""
_AT_ONCE_S: Final = 0.3
"""What takes no longer is drawn without a bar."""
LAST: Final[dict[str, tuple[tuple[int, int, int], list[str]]]] = {}
"""By place, what ``tournaments`` read last, for pages that are drawn while the store is locked."""


class Source(Struct, frozen=True):
    """One tournament as of one version of its store; equal sources hold equal data.

    Attributes:
        version: the store's two numbers, and the number of its file.
        group: column and value of the queries' metadata where only such queries are shown.
    """

    location: str
    version: tuple[int, int, int]
    tournament: str
    group: tuple[str, str] | None = None

    @property
    def judged(self) -> Source:
        """The same without what people said; equal while people only vote."""
        return replace(self, version=(self.version[0], 0, self.version[2]))


def tournaments() -> tuple[tuple[int, int, int], list[str]]:
    """The store's version and the names of its tournaments, read anew at every call.

    Raises:
        InputError: there is no store.
        StoreError: it cannot be read.
    """
    place = location()
    with shared(place) as store:
        version, names = store.version(), store.rated_tournaments()
    LAST[place] = (*version, _file_number(place)), names
    return LAST[place]


def location() -> str:
    """Where the store is.

    Raises:
        InputError: nobody said.
    """
    if LOCATION_VARIABLE not in os.environ:
        raise InputError(f"{LOCATION_VARIABLE} names no store: start the pages with 'ragleague ui'")
    return os.environ[LOCATION_VARIABLE]


def stored(
    read: Callable[Concatenate[Store, str, Further], Found], spinner: str = "", kept: int = _KEPT
) -> Callable[Concatenate[Source, Further], Found]:
    """A read of one tournament of a store, as a page asks for it.

    Args:
        read: called with the opened store, the tournament's name and what else it takes.
        spinner: said while somebody waits for it.
        kept: so many results at most.
    """

    def opened(source: Source, /, *more: Further.args, **named: Further.kwargs) -> Found:
        with shared(source.location) as store:
            return read(store, source.tournament, *more, **named)

    opened.__qualname__ = f"{read.__module__}.{read.__qualname__} {kept}"  # the cache tells functions by their names
    return st.cache_resource(max_entries=kept, show_spinner=spinner or False)(opened)


def judged(
    read: Callable[Concatenate[Store, str, Further], Found], spinner: str = "", kept: int = _KEPT
) -> Callable[Concatenate[Source, Further], Found]:
    """The same of a read that nothing depends on that people say on the pages: a vote leaves it as it is."""
    return _judged(stored(read, spinner, kept))


def derived(
    spinner: str = "", kept: int = _KEPT
) -> Callable[[Callable[Concatenate[Source, Further], Found]], Callable[Concatenate[Source, Further], Found]]:
    """Keep what is made of such reads; arguments as for ``stored``."""
    return lambda make: _judged(st.cache_resource(max_entries=kept, show_spinner=spinner or False)(make))


def _judged(
    cached: Callable[Concatenate[Source, Further], Found],
) -> Callable[Concatenate[Source, Further], Found]:
    def of_judges(source: Source, /, *more: Further.args, **named: Further.kwargs) -> Found:
        return cached(replace(source.judged, group=None), *more, **named)

    return wraps(cached)(of_judges)


_board = judged(cached_leaderboard, "Rating the games …")


def board(source: Source) -> Leaderboard:
    """The leaderboard, as ``ragleague leaderboard`` computes it, of the group of queries that is chosen."""
    return _board(source) if source.group is None else _board(source, source.group)


dataset = judged(Store.dataset, "Reading the data …")
"""Queries, documents and answers."""
dataset_of = judged(Store.dataset, "Reading the data …", _ONE_BY_ONE)
"""One query, by its id, with its answers and documents."""
settings = judged(Store.settings, "Reading the settings …")
"""What decided the results."""
queries = judged(Store.queries, "Reading the queries …")
"""The queries alone, in their order."""
games = judged(cached_games, "Reading the games …")
"""All games wanted, played or not, in the order of the plan, without their texts."""
_labelled = judged(labels_of, "Reading the labels …")
labels_of_query = judged(labels_of, "Reading the labels …", _ONE_BY_ONE)
"""The same of one query, by its id."""
labels_by_judge = judged(samples.labels_by_judge, "Reading the labels …", _ONE_BY_ONE)
"""What each relevance judge said of one query's documents, by its id, samples combined."""
nuggets = judged(nugget_results, "Reading the nuggets …")
"""Nuggets and what every answer states of them; ``None`` where the tournament has none."""


@st.cache_resource(max_entries=_KEPT, show_spinner="Holding judges against people …")
def people(source: Source, *, boards: bool = False) -> tuple[tuple[Comparison, ...], tuple[Level, ...]]:
    """Judges held against people, and the levels on which people judged what no judge did.

    Args:
        source: which tournament, and which group of its queries.
        boards: also their leaderboards, which takes longer than all else.
    """
    with shared(source.location) as store:
        return compare_with_people(
            store,
            source.tournament,
            group=source.group,
            most=DISAGREEMENTS,
            boards=boards,
        )


spent = judged(spending, "Adding up what judges cost …")
"""What each answer judge's games took, by judge."""


def corrected(source: Source) -> tuple[Comparison, ...] | None:
    """The same with each judge's figures corrected by people; ``None`` while it is made, with its progress drawn."""
    found = _worked("corrected", source, partial(compare_with_people, label_next=0))
    return None if found is None else found[0]


def styles(source: Source) -> tuple[StyleEffect, ...] | None:
    """What answer judges like besides quality; ``None`` as above."""
    found: tuple[StyleEffect, ...] | None = _worked("styles", source, styles_of)
    return found


class Work(threading.Thread):
    """Something that takes long, made once for all who wait for it."""

    def __init__(self, source: Source, make: Callable[..., Any]) -> None:
        super().__init__(daemon=True)
        self.source, self._make = source, make
        self.share, self.doing = 0.0, ""
        self.found: Any = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with shared(self.source.location) as store:
                self.found = self._make(store, self.source.tournament, tell=self._tell)
        except Exception as error:
            self.error = error

    def _tell(self, share: float, doing: str) -> None:
        self.share, self.doing = share, doing


_WORKS: Final[dict[tuple[str, Source], Work]] = {}
"""By what is made and of what; the newest last."""


def _worked(kind: str, source: Source, make: Callable[..., Any]) -> Any:
    """What this makes; ``None`` while a thread is still at it, with a bar on the page that ends with a new drawing."""
    key = kind, replace(source, group=None)
    work = _WORKS.get(key)
    if work is None:
        work = _WORKS[key] = Work(source, make)
        for old in [*_WORKS][: -2 * _KEPT]:
            del _WORKS[old]
        work.start()
        work.join(None if len(games(source)) < WORTH_KEEPING else _AT_ONCE_S)
    if work.is_alive():
        _show_progress(work)
    elif work.error is not None:
        _WORKS.pop(key, None)
        raise work.error
    return work.found


@st.fragment(run_every=0.5)
def _show_progress(work: Work) -> None:
    st.progress(work.share, text=f"{work.doing} …")
    if not work.is_alive():
        st.rerun()


@derived()
def labels(source: Source) -> Labels:
    """What the relevance judges together called each retrieved document, by query and document."""
    found: dict[str, dict[str, int]] = {}
    for (query_id, doc_id), result in _labelled(source).items():
        if isinstance(result, Judgment):
            found.setdefault(query_id, {})[doc_id] = label_of(result.outcome)
    return found


@derived()
def scores(source: Source) -> Floats:
    """The score of each game's first agent, NaN without a verdict."""
    return games(source).scores(settings(source).win_and_tie)


@derived()
def met(source: Source) -> frozenset[tuple[str, str, str]]:
    """Query and agents, by name, of all games with a verdict."""
    table = games(source)
    return frozenset(table.key(row)[:3] for row in np.flatnonzero(table.played).tolist())


@derived()
def groups(source: Source) -> tuple[tuple[str, str], ...]:
    """Groups of queries: what their metadata has few values of, as name and value."""
    found = groupings(queries(source).values())
    return tuple((name, value) for name, own in found.items() for value in own)


class _Use(Struct):
    """A store that is open, or is being opened, how many use it now, and when the last of them left."""

    store: Future[Store]
    file: int
    users: int = 0
    left: float = math.inf


_USES: Final[dict[str, _Use]] = {}
_USING: Final = threading.Lock()
_IDLE_S: Final = 5.0
"""A server may have been started anew while nobody used its store for so long."""


@contextmanager
def shared(location: str) -> Iterator[Store]:
    """The one open store of this process: whoever comes first opens it, and the last to leave closes it.

    All threads share its connections, and those that write take turns. With a store each, a hundred people at once
    would be as many writers that find a file locked, and as many connections to a server. While nobody uses it, a
    file is at rest and can be copied or replaced; a server's connections are kept for the next, if that comes soon.

    Raises:
        InputError: there is no store.
        StoreError: it cannot be read.
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
    """Open a store for all who wait for it; where that fails, the next to come tries anew."""
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
"""By place, a file that is kept open, and its number: no other file gets that number, should this one be deleted."""


def _file_number(location: str) -> int:
    """Which file a store is now: one deleted and made anew may have as many changes as the old; 0 of a server."""
    path = sqlite_path(location)
    if path is None:
        return 0
    with _USING, suppress(OSError):  # what is wrong with it shows when it is opened
        # The file that is there is opened once: closing it a second time would take SQLite's locks from it.
        kept, number = _FILES.get(location, (-1, -1))
        if path.stat().st_ino != number:
            opened = os.open(path, os.O_RDONLY)
            _FILES[location] = opened, os.fstat(opened).st_ino
            if kept != -1:
                os.close(kept)
        return _FILES[location][1]
    return 0


@derived("Reading the grades …")
def study(source: Source) -> Study | None:
    """Bank, grades and passages; ``None`` where the tournament has no exam."""
    if settings(source).exam is None:
        return None
    scores = board(source).exam
    if scores is not None:
        return scores.study
    with shared(source.location) as store:
        return exam_study(store, source.tournament)


@derived("Reading the labels …")
def exam_labels(source: Source) -> Mapping[Whose, Labels]:
    """Relevance labels of the graded passages, by whose they are; only those who labelled any.

    A label goes to the passage whose id it names, for instance ``q1/agent#2``.
    """
    found = study(source)
    if found is None:
        return {}
    given: Mapping[Whose, Labels] = {"people": dataset(source).qrels, "judge": labels(source)}
    own: dict[Whose, Labels] = {
        whose: {
            query_id: {passage: some[query_id][passage] for passage in grid.passages if passage in some[query_id]}
            for query_id, grid in found.grids.grids.items()
            if query_id in some
        }
        for whose, some in given.items()
    }
    return {whose: some for whose, some in own.items() if any(some.values())}


def exam_depth(source: Source) -> int:
    """Passages of an answer that count."""
    exam = settings(source).exam
    assert exam is not None
    return exam.depth
