"""The quick leaderboard says what the whole one says; verdicts in bulk."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from pyarrow import dataset

from arena.boards.conclusion import STANDINGS
from arena.boards.results import LEFT_OUT, game_verdicts, leaderboard
from arena.config.ratings import RatingsSection
from arena.data.dataset import Dataset
from arena.data.games import read_games
from arena.stages.samples import Combine, combined, consistency
from arena.store import IDENTICAL, Store, Wanted
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


def test_ratings_and_coverage_are_those_of_the_whole_leaderboard(store_location: str) -> None:
    store = played(store_location)
    whole, quick = leaderboard(store, "t"), leaderboard(store, "t", quick=True)
    assert whole.ratings is not None
    assert quick.ratings is not None
    kept = ("agent", "rank", "games", "wins", "ties", "losses")
    for one, other in zip(quick.ratings.agents, whole.ratings.agents, strict=True):
        assert [getattr(one, name) for name in kept] == [getattr(other, name) for name in kept]
        assert one.bt == pytest.approx(other.bt, abs=1e-6)
        assert one.bt_low is not None
        assert one.bt_high is not None
        assert one.bt_low < one.bt < one.bt_high
    assert quick.ratings.tally == whole.ratings.tally
    assert (quick.coverage, quick.causes) == (whole.coverage, whole.causes)
    # Ten bootstrap samples are too few: both compare agents by the sandwich covariance.
    assert [pair.se for pair in quick.ratings.pairs] == pytest.approx(
        [pair.se for pair in whole.ratings.pairs], rel=0.1
    )
    store.close()


@pytest.mark.parametrize("how", ["majority", "median", "mean"])
def test_samples_become_the_verdict_that_single_results_become(how: Combine, tmp_path: Path) -> None:
    store = played(str(tmp_path / "s.db"), samples=4, combine=how)
    read, samples = read_games(store, "t"), store.outcomes("t", Task.PAIRWISE)
    results = combined(samples, {"one": how})
    again = game_table(results)
    for name in ("agents", "queries", "judges", "a", "b", "query", "judge", "said", "identical"):
        np.testing.assert_array_equal(getattr(read.table, name), getattr(again, name))
    assert read.causes == Counter(result.cause for _, result in results if isinstance(result, JudgeFailure))
    assert len(read.causes) == 2
    assert read.consistency == consistency(samples)
    store.close()


def test_too_little_judged_is_too_little_here_too(store_location: str) -> None:
    store = played(store_location, min_coverage=0.95)
    whole, quick = leaderboard(store, "t"), leaderboard(store, "t", quick=True)
    assert quick.shortfall == whole.shortfall is not None
    assert quick.ratings is None
    assert leaderboard(store, "t", quick=True, below_coverage=True).ratings is not None
    store.close()


def test_a_tournament_without_a_verdict_has_no_ratings(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = Store.create(str(tmp_path_factory.mktemp("s") / "s.db"))
    store.begin("t", settings(0.5), Dataset({"q": Query("q", "?")}), [])
    quick = leaderboard(store, "t", quick=True)
    assert (quick.ratings, quick.coverage) == (None, {})
    assert leaderboard(store, "t").coverage == {}
    store.close()


def test_the_command_prints_it(cli: CLI, tmp_path_factory: pytest.TempPathFactory) -> None:
    location = str(tmp_path_factory.mktemp("s") / "s.db")
    played(location).close()
    told = cli("leaderboard", location, "--quick", "--details")
    assert told.status == 0
    assert told.out.startswith(tuple(STANDINGS.values()))
    assert "Games judged, each order counted" in told.out
    assert "Not computed: Elo, bootstrap" in told.out
    assert LEFT_OUT in json.loads(cli("leaderboard", location, "--quick", "--format", "json").out)["notes"]
    refused = cli("leaderboard", location, "--quick", "--matrix")
    assert (refused.status, refused.err) == (2, "error: --matrix: it needs every verdict; leave --quick out\n")


def test_verdicts_go_to_parquet_in_parts_by_query(cli: CLI, store_location: str, tmp_path: Path) -> None:
    store = played(store_location)
    told = cli("export", store_location, tmp_path / "parts", "--parts", 3)
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
    told = cli("export", location, out, "--parts", 3)
    assert (told.status, told.out, list(out.iterdir())) == (0, f"0 rows written to {out}\n", [])


def test_a_folder_that_holds_something_is_not_written_to(cli: CLI, tmp_path: Path) -> None:
    location, taken = str(tmp_path / "s.db"), tmp_path / "taken"
    played(location).close()
    taken.mkdir()
    (taken / "notes").touch()
    told = cli("export", location, taken, "--parts", 3)
    assert (told.status, told.err) == (2, f"error: {taken}: there is something already; name a new folder\n")
    assert [path.name for path in taken.iterdir()] == ["notes"]
    assert cli("export", location, tmp_path / "x", "--parts", 3, "--what", "labels").status == 2
