"""A leaderboard of ten million recorded verdicts: ``python -m benchmarks.volume --verdicts 10000000 --store FILE``.

The store is filled in bulk with what ``import verdicts`` keeps of a table of verdicts, from agents whose strengths are
known; then the command is run in a process of its own and its time and memory are printed beside the bar, those of a
PostgreSQL server on this machine included. A store that is there is used as it is. ``--files`` adds what it takes to
export, import and copy all of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arena.config.ratings import RatingsSection
from arena.data.dataset import Dataset
from arena.store import Store, missing
from arena.store.bulk import load
from arena.store.rows import checksum
from arena.store.tables import JUDGMENT, WANTED
from benchmarks.used import run, server_used
from judges.types import Query, Task
from tests.support.postgres import postgres_server

BAR_S, BAR_MB = 60, 2000
AGENTS = [f"agent-{number}" for number in range(10)]
JUDGES = ["second", "strong"]
STEP = 40.0
"""Points between neighbouring agents; the first is the weakest."""
OF_A_QUERY = len(JUDGES) * len(AGENTS) * (len(AGENTS) - 1)
_OUTCOMES = ['"A"', '"B"', '"TIE"']
NAME = "volume"


def fill(location: str, verdicts: int) -> None:
    """Fill a store with verdicts of every judge on every pair in both orders."""
    queries = -(-verdicts // OF_A_QUERY)
    store = Store.create(location, to_fill=True)
    settings = {"ratings": RatingsSection().model_dump(mode="json"), "judges": {}}
    store.begin(NAME, settings, Dataset({f"q{number}": Query(f"q{number}", "?") for number in range(queries)}), [])
    rng = np.random.default_rng(0)
    idents = rng.permutation(queries * OF_A_QUERY)
    outcomes = np.concatenate([_outcomes(rng) for _ in range(queries)])
    with store.writing(alone=True) as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA cache_size = -400000")
        connection.exec_driver_sql("DROP INDEX ix_wanted_judgment_id")
        load(connection, WANTED, _wants(queries, idents))
        connection.exec_driver_sql("CREATE INDEX ix_wanted_judgment_id ON wanted (judgment_id)")
        load(connection, JUDGMENT, _judgments(idents, outcomes))
        if connection.dialect.name != "sqlite":
            connection.exec_driver_sql("ANALYZE")
    store.close()


def forget(location: str) -> None:
    with closing(Store.create(location)) as store, store.writing(alone=True):
        pass


def _outcomes(rng: np.random.Generator) -> NDArray[np.int8]:
    """Outcomes on one query: a fifth are ties, the rest follow strengths that differ from query to query."""
    strength = STEP * np.arange(len(AGENTS)) + rng.normal(0, 100, len(AGENTS))
    first, second = np.array([two for a, b in combinations(range(len(AGENTS)), 2) for two in ((a, b), (b, a))]).T
    wins = 1 / (1 + 10 ** ((strength[second] - strength[first]) / 400))
    drawn = rng.random((len(JUDGES), wins.size))
    return np.where(drawn < 0.2, 2, np.where((drawn - 0.2) / 0.8 < wins, 0, 1)).astype(np.int8).ravel()


def _wants(queries: int, idents: NDArray[np.int64]) -> Iterator[tuple[object, ...]]:
    """Rows in the order of their key, in which a database inserts them fastest."""
    games = [(a, b, order) for a, b in combinations(AGENTS, 2) for order in ("ab", "ba")]
    for place, judge in enumerate(JUDGES):
        for number in range(queries):
            start = number * OF_A_QUERY + place * len(games)
            for position, (a, b, order) in enumerate(games, start):
                ident = f"{idents[position]:032x}"
                key = (1, Task.PAIRWISE.value, judge, f"q{number}", a, b, order, 0)
                yield *key, position, ident, checksum((*key, ident)) + position


def _judgments(idents: NDArray[np.int64], outcomes: NDArray[np.int8]) -> Iterator[tuple[object, ...]]:
    for ident, outcome in enumerate(outcomes[np.argsort(idents)].tolist()):
        nothing = (None, None, None, 0, 0.0, None)
        said = ("imported", "m", _OUTCOMES[outcome], None, "", "", "[]", *nothing)
        row = (f"{ident:032x}", Task.PAIRWISE.value, *said)
        yield *row, checksum(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=1_000_000)
    parser.add_argument("--store", help="a file or the address of an empty database; a file for the while when absent")
    parser.add_argument("--postgres", action="store_true", help="on a server that is started for the while")
    parser.add_argument("--files", action="store_true", help="also export, import and copy all of it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, postgres_server() if given.postgres else nullcontext() as server:
        location = given.store or (server.database() if server else str(Path(folder) / "volume.db"))
        if missing(location):
            started = time.perf_counter()
            fill(location, given.verdicts)
            print(f"filled in {time.perf_counter() - started:.0f} s")
        report(location)
        if given.files:
            report_files(location, Path(folder))


def report(location: str) -> None:
    """Print the leaderboard's time and memory, the server's included, and whether it is right."""
    with server_used(location) as server:
        took = run("leaderboard", location, "--format", "json")
    agents = sorted(json.loads(took.output)["agents"], key=lambda row: row["agent"])
    games = sum(row["games"] for row in agents) // 2
    in_order = all(weaker["bt"] < stronger["bt"] for weaker, stronger in pairwise(agents))
    half = max(row["bt_high"] - row["bt_low"] for row in agents) / 2
    cpu_s, memory_mb = took.cpu_s + server.cpu_s, took.peak_mb + server.peak_mb
    print(f"{games} games: {took.seconds:.1f} s, {cpu_s:.1f} s of CPU, {memory_mb:.0f} MB (bar {BAR_S} s, {BAR_MB} MB)")
    if server.peak_mb:
        print(f"of which the database server: {server.cpu_s:.1f} s of CPU, {server.peak_mb:.0f} MB")
    print(f"in the order of the strengths drawn: {in_order}; intervals of up to {half:.1f} points either way")


def report_files(location: str, folder: Path) -> None:
    """Print the time of exporting all verdicts, importing them again, and copying the store."""
    table, parts, again, copied = (str(folder / name) for name in ("verdicts.csv", "parts", "again.db", "copied.db"))
    for words in (
        ("export", "verdicts", location, table),
        ("export", "verdicts", location, parts, "--parts", "4"),
        ("import", "verdicts", table, "--store", again),
        ("store", "copy", location, copied),
    ):
        took = run(*words)
        shown = " ".join("STORE" if word == location else Path(word).name for word in words)
        print(f"{shown}: {took.seconds:.0f} s, {took.cpu_s:.0f} s of CPU, {took.peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
