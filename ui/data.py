"""Cached reads of one store. Nothing is written and no judge is asked.

Every read is cached under the store's number of changes, so a page is as fresh as the store and reads it once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from arena import samples
from arena.dataset import Dataset
from arena.kept import kept_leaderboard
from arena.leaderboard import Leaderboard, rated_tournaments
from arena.matrix import tournament_wins
from arena.nuggets.results import NuggetResults, nugget_results
from arena.prompting import Labels
from arena.ratings.counts import WinMatrix
from arena.samples import labels_of, outcomes
from arena.store import Store, sqlite_path
from judges.errors import InputError
from judges.types import Task
from ui.records import GameRecord, game_records, win_and_tie

LOCATION_VARIABLE: Final = "RAGARENA_UI_STORE"
"""Environment variable through which ``ui.serve`` tells the pages which store to read."""

_KEPT = 4
"""Versions of one read that are kept: a few tournaments side by side, not the history of a growing store."""


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


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the games …")
def games(source: Source) -> Sequence[GameRecord]:
    """All games wanted, played or not, in the order of the plan."""
    with closing(Store.open(source.location)) as store:
        games = outcomes(store, source.tournament, Task.PAIRWISE)
    return game_records(games, win_and_tie(settings(source)))


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the labels …")
def labels(source: Source) -> Labels:
    """What the relevance judges together said about each retrieved document."""
    with closing(Store.open(source.location)) as store:
        return labels_of(store, source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the labels …")
def labels_by_judge(source: Source) -> Mapping[str, Labels]:
    """What each relevance judge said, its samples combined."""
    with closing(Store.open(source.location)) as store:
        return samples.labels_by_judge(store, source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Reading the nuggets …")
def nuggets(source: Source) -> NuggetResults | None:
    """Nuggets and what every answer states of them; ``None`` where the tournament has none."""
    with closing(Store.open(source.location)) as store:
        return nugget_results(store, source.tournament)


@st.cache_resource(max_entries=_KEPT, show_spinner="Counting wins …")
def wins(source: Source) -> WinMatrix | None:
    """Wins, ties and games of each pair over the games that are rated; ``None`` before the first verdict."""
    with closing(Store.open(source.location)) as store:
        return tournament_wins(store, source.tournament)


def _written(location: str) -> int:
    """When the file was last written, in ns: a store deleted and made anew may have as many changes as the old one."""
    path = sqlite_path(location)
    return path.stat().st_mtime_ns if path is not None else 0
