"""Games scored by how sure a judge is of them: in ``rate``, from label probabilities in a store, in every rating."""

from __future__ import annotations

import json
import math
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from arena.boards.games import tournament_pairs
from arena.boards.rated_tables import TableOptions, rate_table
from arena.ratings.covariates import controlled_ratings
from arena.ratings.elo import elo
from arena.ratings.games import Games, GameVerdict, as_games, average, tabulate, without_preferences
from arena.ratings.rate import rate
from arena.ratings.results import Ratings, RatingSettings
from arena.results.cache import cached_games, cached_leaderboard
from arena.results.games import preference, read_games
from arena.results.ratings import leaderboard
from arena.results.scores import stored_methods
from arena.store import Store
from judges.errors import InputError
from judges.types import Judgment, Verdict
from tests.conftest import CLI
from tests.support.elo import elo_online
from tests.support.tiny_models import save_random_chat_model
from tests.support.tournaments import write_data


def quick(**settings: Any) -> RatingSettings:
    return RatingSettings(**{"tournaments": 3, "bootstrap": 20, "fragility": "none", **settings})


def verdict(query: int, a: str, b: str, preferred: float | None, said: str = "") -> GameVerdict:
    by_preference = "TIE" if preferred is None or preferred == 0.5 else "A" if preferred > 0.5 else "B"
    return GameVerdict(f"q{query}", a, b, Verdict(said or by_preference), "judge", preferred)


def won(ratings: Ratings) -> dict[str, float]:
    return {row.agent: 100 * (row.wins + row.ties / 2) / row.games for row in ratings.agents}


def test_two_agents_are_as_far_apart_as_the_mean_preference_says() -> None:
    preferred = [0.9, 0.55, 0.7, 0.2, 0.8]
    ratings = rate([verdict(n, "x", "y", p) for n, p in enumerate(preferred)], quick(preferences="soft"))
    mean = float(np.mean(preferred))
    x, y = ratings.agents
    assert x.bt - y.bt == pytest.approx(400 * math.log10(mean / (1 - mean)))
    assert (x.wins, x.losses, x.games) == pytest.approx((sum(preferred), 5 - sum(preferred), 5))
    hard = rate([verdict(n, "x", "y", p) for n, p in enumerate(preferred)], quick(ties="half"))
    assert hard.agents[0].bt - hard.agents[1].bt == pytest.approx(400 * math.log10(4))


@pytest.mark.parametrize("position", [False, True])
def test_whole_preferences_are_verdicts_with_ties_as_half_wins(position: bool) -> None:
    rng = np.random.default_rng(1)
    pairs = [("x", "y"), ("z", "y"), ("x", "z"), *([("y", "x")] if position else [])]
    rows = [verdict(query, *pair, float(rng.choice([0.0, 0.5, 1.0]))) for query in range(12) for pair in pairs]
    soft = rate(rows, quick(preferences="soft", position=position, reconcile=not position))
    hard = rate(rows, quick(ties="half", position=position, reconcile=not position))
    assert soft.agents == hard.agents
    assert soft.pairs == hard.pairs
    assert soft.position_effect == hard.position_effect


def test_both_orders_of_a_game_are_averaged_and_repeats_within_an_order() -> None:
    rows = [verdict(1, "x", "y", 0.9), verdict(1, "y", "x", 0.3), verdict(2, "y", "x", 0.4), verdict(2, "y", "x", 0.2)]
    games = average(tabulate(rows))
    assert games.score.tolist() == pytest.approx([(0.9 + 0.7) / 2, 1 - 0.3])
    assert (games.tally.games, games.tally.both_orders, games.tally.repeated) == (2, 1, 1)


def test_elo_takes_the_preference_as_the_score_and_conserves_the_sum() -> None:
    def played(*scores: float) -> Games:
        n = len(scores)
        sides = np.zeros(n, np.int32), np.ones(n, np.int32)
        return Games(("x", "y"), *sides, np.array(scores), soft=True)

    first, then = 1000 + 32 * (0.7 - 0.5), 0.25
    gap = 2 * (first - 1000)
    expected = 1 / (1 + 10 ** (-gap / 400))
    assert elo_online(played(0.7, then)).tolist() == pytest.approx(
        [first + 32 * (then - expected), 2000 - first - 32 * (then - expected)]
    )
    rng = np.random.default_rng(0)
    a = rng.integers(0, 5, 400)
    b = (a + rng.integers(1, 5, 400)) % 5
    many = Games(tuple("abcde"), a.astype(np.int32), b.astype(np.int32), rng.random(400), soft=True)
    rated = elo(many, RatingSettings(tournaments=40))
    assert rated.sum(axis=1) == pytest.approx(5000, abs=1e-6)
    shuffled = rng.permutation(400)
    again = Games(many.agents, many.b[shuffled], many.a[shuffled], 1 - many.score[shuffled], soft=True)
    np.testing.assert_allclose(elo(again, RatingSettings(tournaments=40)), rated, atol=1e-6)


@pytest.mark.parametrize("named", [True, False])
def test_games_that_never_vary_have_narrow_intervals_by_query_and_by_game(named: bool) -> None:
    rows = [verdict(n, "x", "y", 0.6 + 0.001 * (n % 3)) for n in range(60)]
    rows = rows if named else [GameVerdict(None, "x", "y", row.verdict, "", row.preference) for row in rows]
    ratings = rate(rows, quick(preferences="soft", bootstrap=200))
    (pair,) = ratings.pairs
    assert pair.separable
    assert pair.se < 1
    low, high = ratings.agents[0].bt_low, ratings.agents[0].bt_high
    assert 0 < high - low < 1
    assert ratings.convergence.resampled == ("query" if named else "game")
    assert ratings.convergence.units == 60
    direct = ratings.direct
    assert direct.wins + direct.losses == pytest.approx(60)
    assert direct.wins == pytest.approx(36, abs=0.1)


def test_covariates_control_preferences_too() -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=300)
    chance = 1 / (1 + np.exp(-(0.5 + 0.8 * z)))
    rows = [verdict(n, "x", "y", float(p)) for n, p in enumerate(chance)]
    board = controlled_ratings(as_games(rows, soft=True), {"z": z})
    assert board.agents[0].rating - board.agents[1].rating == pytest.approx(0.5 * 400 / math.log(10), abs=0.01)
    assert board.effects[0].points == pytest.approx(0.8 * 400 / math.log(10), abs=0.01)
    games, rows_of, _ = without_preferences(as_games(rows, soft=True), by_query=True)
    assert len(games) == 600
    assert games.weights.sum() == pytest.approx(300)
    assert rows_of is not None
    with pytest.raises(ValueError, match="preferences"):
        as_games(rows, soft=True).twice()


def test_probabilities_of_a_table_stand_beside_a_verdict_or_in_its_place(tmp_path: Path) -> None:
    beside = tmp_path / "beside.csv"
    beside.write_text("qid,agent_a,agent_b,verdict,order,p_a,p_tie\n1,x,y,A,ab,0.6,0.2\n2,x,y,B,ba,,\n")
    alone = tmp_path / "alone.csv"
    alone.write_text("qid,agent_a,agent_b,p_a\n1,x,y,0.7\n2,y,x,1\n")
    rounded = tmp_path / "rounded.csv"
    rounded.write_text("qid,agent_a,agent_b,p_a,p_b,p_tie\n1,x,y,0.495,0.099,0.396\n2,y,x,1,0,0\n")
    for table in (beside, alone, rounded):
        ratings = rate_table(table, quick(preferences="soft"), TableOptions()).ratings
        assert won(ratings) == pytest.approx({"x": 35, "y": 65})
    assert "1 of 2 verdicts have no probability" in " ".join(
        rate_table(beside, quick(preferences="soft"), TableOptions()).ratings.notes
    )
    assert rate_table(beside, quick(), TableOptions()).ratings.agents[0].wins == 1


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("agent_a,agent_b,verdict\nx,y,A", "p_a"),
        ("agent_a,agent_b,p_a\nx,y,1.2", ":2: 'p_a' must be a probability from 0 to 1"),
        ("agent_a,agent_b,p_a,p_b\nx,y,0.6,0.6", ":2: the probabilities of a verdict must sum to 1"),
        ("agent_a,agent_b,p_a,p_b\nx,y,0.3,0.3", ":2: the probabilities of a verdict must sum to 1"),
        ("agent_a,agent_b,p_a\nx,y,", ":2: no verdict in 'p_a'"),
    ],
)
def test_what_is_no_probability_is_refused_with_its_line(tmp_path: Path, rows: str, problem: str) -> None:
    table = tmp_path / "v.csv"
    table.write_text(rows + "\n")
    with pytest.raises(InputError) as raised:
        rate_table(table, quick(preferences="soft"), TableOptions())
    assert problem in str(raised.value)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a tournament that a real, untaught model has judged by the labels it finds likeliest."""
    folder = tmp_path_factory.mktemp("local")
    save_random_chat_model(folder / "model", width=64, layers=1, context=8192)
    write_data(folder, ["q1", "q2", "q3"], documents=[])
    content = {
        "name": "local",
        "store": "store.db",
        "data": {"queries": "queries.csv", "answers": "answers.csv"},
        "judges": {"judge": {"provider": "transformers", "path": "model", "labels": "likeliest", "max_tokens": 8}},
        "pairwise": {"judges": ["judge"], "documents": {"include": False}},
        "ratings": {"elo": {"tournaments": 5}, "bootstrap": {"samples": 20}, "preferences": "soft"},
    }
    (folder / "t.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder / "t.yaml"


def test_a_tournament_is_rated_by_what_its_local_judge_finds_likely(cli: CLI, judged: Path, tmp_path: Path) -> None:
    soft = json.loads(cli("run", judged, "--format", "json").out)
    assert soft["coverage"]["pairwise"]["judged"] == 18
    assert cli("export", "verdicts", judged, tmp_path / "v.csv").status == 0
    quick_options = ["--set", "tournaments=5", "--samples", "20", "--format", "json"]
    rated = json.loads(cli("rate", tmp_path / "v.csv", "--set", "preferences=soft", *quick_options).out)
    names = ("agent", "bt", "bt_low", "elo", "wins", "losses", "games")
    assert [[row[name] for name in names] for row in soft["agents"]] == [
        pytest.approx([row[name] for name in names], abs=0.01) for row in rated["agents"]
    ]
    assert any(row["wins"] % 1 > 0 for row in soft["agents"])

    with closing(Store.open(str(judged.with_name("store.db")))) as store:
        table = read_games(store, "local")
        np.testing.assert_array_equal(cached_games(store, "local").preference, table.preference)
        assert repr(cached_leaderboard(store, "local")) == repr(leaderboard(store, "local"))
        assert not np.isnan(table.preference).any()
        wins = tournament_pairs(store, "local")
        assert dict(zip(wins.agents, wins.wins.sum(axis=1), strict=True)) == pytest.approx(
            {row["agent"]: row["wins"] for row in soft["agents"]}, abs=1e-5
        )
        methods = {one.name: one for one in stored_methods(store, "local", table, lambda: store.dataset("local"))}
        for name, field in (("elo", "elo"), ("bradley_terry", "bt")):
            points = dict(zip(methods[name].agents, methods[name].points(), strict=True))
            assert points == pytest.approx({row["agent"]: row[field] for row in soft["agents"]}, abs=0.01)
            assert np.isfinite(methods[name].drawn(np.array([[2.0, 1.0, 0.0]]))).all()

    judged.write_text(judged.read_text().replace("soft", "hard"))
    ended = cli("run", judged, "--format", "json")
    assert "0 calls" in ended.err
    hard = json.loads(ended.out)
    by_verdict = json.loads(cli("rate", tmp_path / "v.csv", "--reconcile", *quick_options).out)
    assert [(row["agent"], row["bt"], row["elo"]) for row in hard["agents"]] == [
        (row["agent"], row["bt"], row["elo"]) for row in by_verdict["agents"]
    ]


def test_only_an_explanation_that_fits_its_verdict_says_how_sure_the_judge_is() -> None:
    def said(reason: str, outcome: str = "A") -> float | None:
        return preference(Judgment("id", outcome, reason, "", "m"))

    whole = "likeliest of 3 replies, with probability 0.600 (A 0.600000, B 0.300000, TIE 0.100000)"
    assert said(whole) == pytest.approx(0.65)
    assert said(whole, "B") is None, "the verdict is another"
    assert said("likeliest of 3 replies, with probability 0.600") is None, "as earlier versions wrote it"
    assert said(f"{whole} and more") is None
