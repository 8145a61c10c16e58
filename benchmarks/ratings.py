"""Ratings: seconds, memory and agreement beside evalica and choix, measured in one process.

Each job and its peer take turns, so that a busy machine slows both; the table gives medians of wall time, and of the
processor time of all threads, which says more where other work runs. 100 agents, a fifth of the games tied:
``python -m benchmarks.ratings``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import choix
import evalica
import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray

from arena.ratings.bootstrap import bootstrap
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry, sandwich
from arena.ratings.covariates import controlled_ratings
from arena.ratings.elo import elo
from arena.ratings.games import Games, VerdictTable, as_games
from arena.ratings.pairs import win_matrix
from tests.support.elo import elo_online

AGENTS = 100
QUERIES = 1000
ORDERS = 500
HALF = BradleyTerrySettings(ties="half")
Job = Callable[[], object]


class Measured(Struct, frozen=True):
    """Medians in seconds, and the largest memory above that in use before, in MB."""

    wall: float
    cpu: float
    memory: float


def simulated(games: int, seed: int) -> pd.DataFrame:
    """Verdicts between agents whose strengths spread by 140 points, as a table of names."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.8, AGENTS)
    a = rng.integers(0, AGENTS, games)
    b = (a + rng.integers(1, AGENTS, games)) % AGENTS
    wins = rng.random(games) < 1 / (1 + np.exp(strength[b] - strength[a]))
    verdict = np.where(rng.random(games) < 0.2, 2, np.where(wins, 0, 1))
    agents = np.array([f"agent_{number:03d}" for number in range(AGENTS)], object)
    queries = np.array([f"query_{number:04d}" for number in range(QUERIES)], object)
    columns = {
        "agent_a": agents[a],
        "agent_b": agents[b],
        "verdict": np.array(["A", "B", "TIE"], object)[verdict],
        "query_id": queries[rng.integers(0, QUERIES, games)],
    }
    return pd.DataFrame({name: pd.Series(values, dtype="str") for name, values in columns.items()})


def games_of(table: pd.DataFrame) -> Games:
    sides, agents = pd.factorize(pd.concat([table.agent_a, table.agent_b]), sort=True)
    query, queries = pd.factorize(table.query_id, sort=True)
    outcome = np.asarray(table.verdict.map({"A": 1, "TIE": 0, "B": -1}), np.int8)
    a, b = np.split(sides.astype(np.int32), 2)
    judge = np.zeros(len(table), np.int32)
    columns = VerdictTable(tuple(agents), a, b, outcome, tuple(queries), query.astype(np.int32), ("",), judge)
    return as_games(columns)


def peak() -> float:
    """Memory in use at its highest since ``forget_peak``, in MB; Linux only."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1000


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def take_turns(jobs: dict[str, Job], repeats: int) -> dict[str, Measured]:
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            forget_peak()
            before, wall, cpu = peak(), time.perf_counter(), time.process_time()
            job()
            found[name].append((time.perf_counter() - wall, time.process_time() - cpu, peak() - before))
    return {
        name: Measured(
            statistics.median(run[0] for run in runs),
            statistics.median(run[1] for run in runs),
            max(run[2] for run in runs),
        )
        for name, runs in found.items()
    }


def show(what: str, ours: Measured, bar: str, peer: Measured | None = None, peers_work: float = 1.0) -> None:
    """One line of the table; ``peers_work`` says how much of our job the peer's is."""
    beside = ""
    if peer is not None:
        beside = f"{peer.wall / peers_work:9.2f} {peer.wall / peers_work / ours.wall:7.1f}x"
    print(f"{what:52} {ours.wall:8.3f} {ours.cpu:8.3f} {ours.memory:6.0f}  {beside:18}  {bar}", flush=True)


def evalica_columns(games: Games, *, names: bool = False) -> dict[str, NDArray[Any]]:
    """Games as columns for evalica; numbers in place of names are faster."""
    winners = np.array([evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.X], object)
    agents = np.array(games.agents, object) if names else np.arange(len(games.agents))
    return {"xs": agents[games.a], "ys": agents[games.b], "winners": winners[(2 * games.score).astype(int)]}


def as_lists(columns: dict[str, NDArray[Any]]) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in columns.items()}


def orders_by_evalica(columns: dict[str, NDArray[Any]], orders: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(orders):
        order = rng.permutation(columns["xs"].size)
        evalica.elo(**as_lists({name: column[order] for name, column in columns.items()}), k=32.0)


def compare_elo(small: pd.DataFrame, large: pd.DataFrame, repeats: int) -> None:
    for table, orders, times, bar in ((small, 3, repeats, "<= 3 s, >= 5x"), (large, 1, 1, "<= 4 s, <= 300 MB")):
        games = games_of(table)
        named, numbered = evalica_columns(games, names=True), evalica_columns(games)
        jobs: dict[str, Job] = {
            "ours": partial(elo, games),
            "named": partial(orders_by_evalica, named, orders),
            "numbered": partial(orders_by_evalica, numbered, orders),
        }
        found = take_turns(jobs, times)
        name = f"Elo, {ORDERS} orders of {len(games):,} games"
        show(name, found["ours"], bar, found["named"], orders / ORDERS)
        show("  (peer given numbers instead of names)", found["ours"], "", found["numbered"], orders / ORDERS)


def compare_bradley_terry(table: pd.DataFrame, small: Games, repeats: int) -> None:
    games = games_of(table)
    rng = np.random.default_rng(1)
    covariates = {name: rng.normal(size=len(games)) for name in ("length", "citations", "lists", "bold")}
    numbered = as_lists(evalica_columns(games))

    def with_bootstrap() -> None:
        fitted = bradley_terry(games)
        sandwich(games, fitted)
        bootstrap(games, fitted, 1000)

    jobs: dict[str, Job] = {
        "sandwich": lambda: sandwich(games, bradley_terry(games)),
        "evalica": lambda: evalica.bradley_terry(**numbered),
        "bootstrap": with_bootstrap,
        "covariates": lambda: controlled_ratings(games, covariates),
    }
    found = take_turns(jobs, repeats)
    size = f"{len(games):,} games"
    show(f"BT and sandwich, {size}", found["sandwich"], "<= 0.6 s (peer: no interval)", found["evalica"])
    show(f"BT, sandwich, 1000 bootstraps, {size}", found["bootstrap"], "<= 3 s, <= 400 MB")
    show(f"BT with 4 covariates, raw and controlled, {size}", found["covariates"], "<= 1.5 s")
    dense: dict[str, Job] = {"ours": lambda: bradley_terry(small, HALF), "choix": lambda: by_choix(small)}
    found = take_turns(dense, repeats)
    show(f"BT, half-win ties, {len(small):,} games (peer: choix)", found["ours"], "", found["choix"])


def by_choix(games: Games) -> Any:
    matrix = win_matrix(games)
    strengths = choix.ilsr_pairwise_dense(2 * matrix.wins + matrix.ties, max_iter=1000, tol=1e-11)
    return 1000 + HALF.points * (strengths - strengths.mean())


def by_evalica(games: Games) -> Any:
    fitted = evalica.bradley_terry(**as_lists(evalica_columns(games)), tolerance=1e-14, limit=100_000)
    strengths = np.log(fitted.scores.sort_index().to_numpy())
    return 1000 + HALF.points * (strengths - strengths.mean())


def report_agreement(games: Games) -> None:
    """Largest differences in points between our figures and those of others, or of our own other paths."""
    ours = bradley_terry(games, HALF).ratings
    passed = evalica.elo(**as_lists(evalica_columns(games)), k=32.0).scores.sort_index().to_numpy()
    print("\nlargest difference in points")
    for what, difference in (
        ("Elo, one pass in the given order, and evalica", elo_online(games) - passed),
        ("Bradley-Terry, half-win ties, and choix", ours - by_choix(games)),
        ("Bradley-Terry, half-win ties, and evalica", ours - by_evalica(games)),
    ):
        print(f"{what:52} {np.abs(difference).max():.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=2_000_000, help="of the large jobs")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    table, few = simulated(given.games, 0), simulated(100_000, 1)
    small = games_of(few)
    print(f"{'job':52} {'seconds':>8} {'CPU s':>8} {'MB':>6}  {'peer s':>9} {'ratio':>8}  bar")
    compare_bradley_terry(table, small, given.repeats)
    compare_elo(few, table, given.repeats)
    report_agreement(small)


if __name__ == "__main__":
    main()
