"""Cached reads of one store. Nothing is written and no judge is asked.

Every read is cached under the store's number of changes, so a page is as fresh as the store and reads it once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import streamlit as st

from arena import samples
from arena.dataset import Dataset
from arena.games.pairs import PairResults, pair_results
from arena.games.table import GameKey, GameTable
from arena.kept import kept_games, kept_leaderboard
from arena.leaderboard import Leaderboard, rating_settings, win_and_tie
from arena.nuggets.results import NuggetResults, nugget_results
from arena.prompting import Labels
from arena.queries.groups import groupings
from arena.ratings.games import Floats
from arena.samples import labels_of, outcomes
from arena.store import Store, sqlite_path
from arena.which import rated_tournaments
from judges.errors import InputError
from judges.types import Query, Task
from ui.records import GameRecord, game_records

LOCATION_VARIABLE: Final = "RAGARENA_UI_STORE"
"""Environment variable through which ``ui.serve`` tells the pages which store to read."""

_KEPT = 4
"""Versions of one read that are kept: a few tournaments side by side, not the history of a growing store."""
_ONE_BY_ONE: Final = 32
"""The same for reads of one query, game or filter."""


@dataclass(frozen=True, slots=True)
class Source:
    """One tournament as of one version of its store; equal sources hold equal data."""

    location: str
    version: tuple[int, int]
    tournament: str


def tournaments() -> tuple[tuple[int, int], list[str]]:
    """The store's version and the names of its tournaments, read anew at every call.

    Raises:
        InputError: there is no store.
        StoreError: it cannot be read.
    """
    with closing(Store.open(location())) as store:
        return (store.changes(), _written(location())), rated_tournaments(store)


def location() -> str:
    """Where the store is.

    Raises:
        InputError: nobody said.
    """
    if LOCATION_VARIABLE not in os.environ:
        raise InputError(f"{LOCATION_VARIABLE} names no store: start the pages with 'ragarena ui'")
    return os.environ[LOCATION_VARIABLE]


@st.cache_resource(max_entries=_KEPT, show_spinner="Rating the games …")
def board(source: Source) -> Leaderboard:
    """The leaderboard, as ``ragarena leaderboard`` computes it."""
    with closing(Store.open(source.location)) as store:
        return kept_leaderboard(store, source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the data …")
def dataset(source: Source) -> Dataset:
    """Queries, documents and answers."""
    with closing(Store.open(source.location)) as store:
        return store.dataset(source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the settings …")
def settings(source: Source) -> Mapping[str, Any]:
    """What decided the results."""
    with closing(Store.open(source.location)) as store:
        return store.settings(source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the queries …")
def queries(source: Source) -> Mapping[str, Query]:
    """The queries alone, in their order."""
    with closing(Store.open(source.location)) as store:
        return store.queries(source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the games …")
def games(source: Source) -> GameTable:
    """All games wanted, played or not, in the order of the plan, without their texts."""
    with closing(Store.open(source.location)) as store:
        return kept_games(store, source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def scores(source: Source) -> Floats:
    """The score of each game's first agent, NaN without a verdict."""
    return games(source).scores(win_and_tie(settings(source)))


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def met(source: Source) -> frozenset[tuple[str, str, str]]:
    """Query and agents, by name, of all games with a verdict."""
    table = games(source)
    return frozenset(table.key(row)[:3] for row in np.flatnonzero(table.played).tolist())


@st.cache_resource(max_entries=_ONE_BY_ONE, show_spinner="Reading the game …")
def game(source: Source, key: GameKey) -> GameRecord:
    """One game with what its judge said, word for word."""
    with closing(Store.open(source.location)) as store:
        of_query = outcomes(store, source.tournament, Task.PAIRWISE, key.query_id)
    names = {key.agent_a, key.agent_b}
    of_game = [(want, own) for want, own in of_query if want.judge == key.judge and {want.item, want.other} == names]
    (found,) = game_records(of_game, win_and_tie(settings(source)))
    return found


@st.cache_resource(max_entries=_ONE_BY_ONE, show_spinner="Reading the data …")
def dataset_of(source: Source, query_id: str) -> Dataset:
    """One query with its answers and documents."""
    with closing(Store.open(source.location)) as store:
        return store.dataset(source.tournament, query_id)


@st.cache_resource(max_entries=_ONE_BY_ONE, show_spinner="Reading the labels …")
def labels_of_query(source: Source, query_id: str) -> Labels:
    """What the relevance judges together said about each document retrieved for one query."""
    with closing(Store.open(source.location)) as store:
        return labels_of(store, source.tournament, query_id)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the labels …")
def labels(source: Source) -> Labels:
    """What the relevance judges together said about each retrieved document."""
    with closing(Store.open(source.location)) as store:
        return labels_of(store, source.tournament)


@st.cache_resource(max_entries=_ONE_BY_ONE, show_spinner="Reading the labels …")
def labels_by_judge(source: Source, query_id: str) -> Mapping[str, Labels]:
    """What each relevance judge said of one query's documents, its samples combined."""
    with closing(Store.open(source.location)) as store:
        return samples.labels_by_judge(store, source.tournament, query_id)


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def queries_with_documents(source: Source) -> Sequence[str]:
    """Ids of the queries for which anything was retrieved."""
    with closing(Store.open(source.location)) as store:
        return store.queries_with_documents(source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the nuggets …")
def nuggets(source: Source) -> NuggetResults | None:
    """Nuggets and what every answer states of them; ``None`` where the tournament has none."""
    with closing(Store.open(source.location)) as store:
        return nugget_results(store, source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def groups(source: Source) -> tuple[tuple[str, str], ...]:
    """Groups of queries: what their metadata has few values of, as name and value."""
    found = groupings(queries(source).values())
    return tuple((name, value) for name, own in found.items() for value in own)


@st.cache_resource(max_entries=_ONE_BY_ONE, show_spinner="Counting wins …")
def pairs(source: Source, judge: str | None = None, group: tuple[str, str] | None = None) -> PairResults | None:
    """Who beats whom over the games that are rated; ``None`` before the first verdict.

    Args:
        source: of which tournament.
        judge: only games that this one judged.
        group: name and value of the queries' metadata, for games on such queries only.
    """
    table = games(source)
    chosen = np.ones(len(table), np.bool_)
    if judge is not None:
        chosen &= table.of_judge(judge)
    if group is not None:
        name, value = group
        chosen &= table.of_query(*(own.query_id for own in queries(source).values() if own.metadata.get(name) == value))
    rated = table.rated(rating_settings(settings(source)), chosen)
    return None if rated is None else pair_results(rated)


def _written(location: str) -> int:
    """When the file was last written, in ns: a store deleted and made anew may have as many changes as the old one."""
    path = sqlite_path(location)
    return path.stat().st_mtime_ns if path is not None else 0
