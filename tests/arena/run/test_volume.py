"""Samples in bulk become what single results become; verdicts in bulk."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from pyarrow import dataset

from arena.config.ratings import RatingsSection
from arena.data.dataset import Dataset
from arena.results.games import read_games
from arena.results.ratings import leaderboard
from arena.store import IDENTICAL, Store, Wanted
from arena.store.outcomes import Combine, combined, consistency, game_verdicts
from judges.types import Answer, JudgeFailure, Judgment, Query, Task
from tests.conftest import CLI
from tests.support.games import game_table

AGENTS = ("b", "a", "d", "c")
QUERIES = [f"q{number}" for number in range(12)]


def settings(min_coverage: float, **judge: object) -> dict[str, object]:
    ratings = RatingsSection(min_coverage=min_coverage).model_dump(mode="json")
    ratings |= {"bootstrap": {"samples": 10, "by": "query"}}
    ratings["elo"]["tournaments"] = 5
    return {"ratings": ratings, "judges": {"one": {"provider": "openai", **judge}}}


def played(location: str, min_coverage: float = 0.3, samples: int = 1, **judge: object) -> Store:
    """Two judges, of which one skips orders; failures, wants without a result, ties without a call, an agent unread.

    The first is asked ``samples`` times.
    """
    rng = random.Random(3)
    store = Store.create(location)
    wants = [
        Wanted(Task.PAIRWISE, judge_, query, *pair, order, sample)
        for judge_ in ("one", "two")
        for query in QUERIES
        for pair in combinations(AGENTS, 2)
        for order in (("ab", "ba") if judge_ == "one" else ("ba",))
        for sample in range(samples if judge_ == "one" else 1)
    ]
    answers = {(query, agent): Answer(query, agent, "so") for query in QUERIES for agent in AGENTS}
    data = Dataset({query: Query(query, "?") for query in QUERIES}, answers=answers)
    store.begin("t", settings(min_coverage, **judge), data, wants)
    results = [Judgment(IDENTICAL, "TIE", "", "", "")]
    links = []
    for number, want in enumerate(wants):
        kind = "identical" if want.query_id == "q3" else rng.choice(["judged"] * 7 + ["failed", "open"])
        if kind == "judged":
            results.append(Judgment(f"id-{number}", rng.choice(["A", "A", "B", "TIE"]), "", "", "m"))
        elif kind == "failed":
            results.append(JudgeFailure(f"id-{number}", rng.choice(["contract", "timeout"]), "no"))
        if kind != "open":
            links.append((want, IDENTICAL if kind == "identical" else f"id-{number}"))
    store.save([(Task.PAIRWISE, "p@1", result) for result in results])
    store.assign("t", links)
    return store


@pytest.mark.parametrize("how", ["majority", "median", "mean"])
def test_samples_become_the_verdict_that_single_results_become(how: Combine, tmp_path: Path) -> None:
    store = played(str(tmp_path / "s.db"), samples=4, combine=how)
    read, samples = read_games(store, "t"), store.outcomes("t", Task.PAIRWISE)
    results = combined(samples, {"one": how})
    again = game_table(results)
    for name in ("agents", "queries", "judges", "a", "b", "query", "judge", "outcome", "identical"):
        np.testing.assert_array_equal(getattr(read, name), getattr(again, name))
    assert read.causes == Counter(result.cause for _, result in results if isinstance(result, JudgeFailure))
    assert len(read.causes) == 2
    assert read.consistency == consistency(samples)
    store.close()


def test_a_tournament_without_a_verdict_has_no_ratings(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "s.db"))
    store.begin("t", settings(0.5), Dataset({"q": Query("q", "?")}), [])
    board = leaderboard(store, "t")
    assert (board.ratings, board.coverage) == (None, {})
    store.close()


def test_verdicts_go_to_parquet_in_parts_by_query(cli: CLI, store_location: str, tmp_path: Path) -> None:
    store = played(store_location)
    told = cli("export", "verdicts", store_location, tmp_path / "parts", "--parts", 3)
    assert (told.status, told.err) == (0, "")
    written = dataset.dataset(tmp_path / "parts", partitioning="hive").to_table().to_pylist()
    judged = [(want, result) for want, result in store.outcomes("t", Task.PAIRWISE) if isinstance(result, Judgment)]
    assert told.out == f"{len(judged)} rows written to {tmp_path / 'parts'}\n"
    assert sorted(
        (row["qid"], row["judge"], row["agent_a"], row["agent_b"], row["verdict"]) for row in written
    ) == sorted((game.query_id, game.judge, game.agent_a, game.agent_b, game.verdict) for game in game_verdicts(judged))
    assert len({row["part"] for row in written}) == 3
    assert len({(row["qid"], row["part"]) for row in written}) == len(QUERIES)
    store.close()


def test_a_tournament_without_a_verdict_is_no_parts(cli: CLI, tmp_path: Path) -> None:
    location, out = str(tmp_path / "s.db"), tmp_path / "parts"
    store = Store.create(location)
    store.begin("t", settings(0.5), Dataset({"q": Query("q", "?")}), [])
    store.close()
    told = cli("export", "verdicts", location, out, "--parts", 3)
    assert (told.status, told.out, list(out.iterdir())) == (0, f"0 rows written to {out}\n", [])


def test_a_folder_that_holds_something_is_not_written_to(cli: CLI, tmp_path: Path) -> None:
    location, taken = str(tmp_path / "s.db"), tmp_path / "taken"
    played(location).close()
    taken.mkdir()
    (taken / "notes").touch()
    told = cli("export", "verdicts", location, taken, "--parts", 3)
    assert (told.status, told.err) == (2, f"error: {taken}: exists already; name a new folder\n")
    assert [path.name for path in taken.iterdir()] == ["notes"]
    assert cli("export", "labels", location, tmp_path / "x", "--parts", 3).status == 2
