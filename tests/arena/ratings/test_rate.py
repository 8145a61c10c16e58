"""The leaderboard as a whole: published numbers, honest flags, and the same result for the same verdicts."""

import csv
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs, to_builtins

from arena.config.ratings import RatingOptions
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.elo import elo
from arena.ratings.games import GameVerdict, as_games
from arena.ratings.pairs import from_win_matrix
from arena.ratings.rate import notes, rate, rate_games
from arena.ratings.results import Ratings, RatingSettings
from judges.errors import InputError
from judges.sections import argument
from judges.types import Verdict

DATA = Path(os.environ.get("RAGLEAGUE_SHARED", Path(__file__).parents[3] / ".." / "shared")) / "data"
needs_data = pytest.mark.usefixtures("shared")
QUICK = RatingSettings(bootstrap=200, tournaments=20)
A, B, TIE = Verdict


def table(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def published() -> tuple[list[str], np.ndarray]:
    rows = table("papers/ragelo_win_percentages.csv")
    names = [row["agent"] for row in rows]
    return names, np.array([[float(row[name] or math.nan) for name in names] for row in rows])


def recorded() -> list[GameVerdict]:
    verdicts = {"A": Verdict.A, "B": Verdict.B, "C": Verdict.TIE}
    return [
        GameVerdict(row["qid"], row["agent_a"], row["agent_b"], verdicts[row["verdict"]])
        for row in table("ragelo_qdrant/pairwise_verdicts.csv")
    ]


def simulated(seed: int = 0, queries: int = 20) -> list[GameVerdict]:
    """Both orders of all pairs of four agents, the later in the alphabet the better."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(queries):
        for i, first in enumerate("wxyz"):
            for j, second in enumerate("wxyz"):
                if i != j:
                    draw = rng.random() - 0.5 + 0.15 * (i - j)
                    verdict = Verdict.TIE if abs(draw) < 0.1 else Verdict.A if draw > 0 else Verdict.B
                    rows.append(GameVerdict(f"q{query}", first, second, verdict))
    return rows


def row(ratings: Ratings, agent: str) -> dict[str, object]:
    return next(structs.asdict(line) for line in ratings.agents if line.agent == agent)


@needs_data
def test_the_published_win_percentages_give_the_ratings_known_for_them() -> None:
    names, percentages = published()
    games = from_win_matrix(names, percentages, 200)
    fitted = bradley_terry(games, BradleyTerrySettings(ties="half", centre=500))
    expected = [568.8, 545.2, 499.9, 482.3, 468.4, 435.4]
    np.testing.assert_allclose(np.sort(fitted.ratings)[::-1], expected, atol=0.1)


@needs_data
def test_the_recorded_tournament_gives_its_recorded_elo_ranking() -> None:
    games = as_games(recorded())
    rated = elo(games).mean(axis=0)
    np.testing.assert_allclose(rated, [951, 954, 1047, 976, 1029, 1044], atol=4)
    names = {line["agent"]: line["name"] for line in table("ragelo_qdrant/agents.csv")}
    scores = {line["agent"]: float(line["score"]) for line in table("ragelo_qdrant/recorded_elo_ranking.csv")}
    record = np.array([scores[names[agent]] for agent in games.agents])
    np.testing.assert_allclose(rated - rated.mean(), record - record.mean(), atol=5)


@needs_data
def test_the_recorded_tournament_is_reconciled_as_its_source_says() -> None:
    rated = rate(recorded(), QUICK)
    assert (rated.tally.games, rated.tally.both_orders, rated.tally.single_order) == (132, 68, 64)
    assert rate(recorded(), structs.replace(QUICK, reconcile=False)).agents[0].agent == "agent_2"


def test_the_leaderboard_orders_agents_and_accounts_for_their_games() -> None:
    rated = rate(simulated(), QUICK)
    assert [line.agent for line in rated.agents] == ["z", "y", "x", "w"]
    assert [line.rank for line in rated.agents] == [1, 2, 3, 4]
    one_order = rate(simulated(), structs.replace(QUICK, tournaments=1)).agents
    assert {line.elo_order_sd for line in one_order} == {None}, "one order says nothing of others"
    for line in rated.agents:
        assert line.games == line.wins + line.ties + line.losses == 60
        assert isinstance(line.games, int)
        assert line.bt_high is not None
        assert line.bt_low <= line.bt <= line.bt_high
        assert line.rank_high is not None
        assert line.rank_low <= line.rank <= line.rank_high
        assert line.flags == ()
    assert sum(line.bt for line in rated.agents) == pytest.approx(4000)
    assert sum(line.elo or 0 for line in rated.agents) == pytest.approx(4000)
    assert rated.agents[0].group == "A"
    assert "A" not in rated.agents[-1].group
    assert len(rated.pairs) == 6


def test_a_leaderboard_is_json_without_nan() -> None:
    for verdicts in (simulated(), [GameVerdict(None, "x", "y", Verdict.A)]):
        json.dumps(to_builtins(rate(verdicts, QUICK)), allow_nan=False)


def test_an_agent_that_no_query_moves_has_an_interval_without_width() -> None:
    """On each query one agent beats the middle one as the middle one beats the other: its variance is 0, give or take
    rounding."""
    outcomes = [Verdict.A if query < 15 else Verdict.B for query in range(20)]
    verdicts = [GameVerdict(f"q{q}", *pair, won) for q, won in enumerate(outcomes) for pair in ("xy", "xz", "yz")]
    settings = RatingSettings(bootstrap=0, intervals="sandwich", tournaments=0, fragility="none")
    middle = row(rate(verdicts, settings), "y")
    assert (middle["bt_low"], middle["bt_high"]) == (pytest.approx(1000, abs=1e-3), pytest.approx(1000, abs=1e-3))


def test_equal_sets_of_verdicts_give_equal_results_whatever_the_order_of_rows() -> None:
    verdicts = simulated()
    mixed = [verdicts[i] for i in np.random.default_rng(1).permutation(len(verdicts))]
    for reconcile in (True, False):
        settings = structs.replace(QUICK, reconcile=reconcile)
        assert repr(rate(mixed, settings)) == repr(rate(verdicts, settings))


def test_single_verdicts_may_be_rated_with_an_order_effect() -> None:
    rated = rate(simulated(), structs.replace(QUICK, position=True))
    assert rated.tally.games == rated.tally.verdicts == 240
    assert rated.position_effect == pytest.approx(rated.judge_health.first_effect.value if rated.judge_health else None)


def test_a_single_game_is_rated_with_every_reservation() -> None:
    rated = rate([GameVerdict("q", "x", "y", Verdict.A)], QUICK)
    winner, loser = row(rated, "x"), row(rated, "y")
    assert winner["flags"] == ("undefeated", "single_game")
    assert loser["flags"] == ("winless", "single_game")
    assert (winner["bt_low"], winner["rank_low"], winner["group"]) == (None, None, loser["group"])
    assert 1000 < winner["bt"] < 1300
    assert rated.pairs == ()
    assert any("no intervals" in note for note in rated.notes)
    assert any("weak prior" in note for note in rated.notes)


def test_two_agents_at_60_to_40_are_apart_and_the_interval_says_how_surely() -> None:
    verdicts = [GameVerdict(f"q{i}", "x", "y", Verdict.A if i % 5 < 3 else Verdict.B) for i in range(100)]
    rated = rate(verdicts, QUICK)
    assert rated.agents[0].bt - rated.agents[1].bt == pytest.approx(400 * np.log10(1.5))
    assert rated.pairs[0].p_holm == pytest.approx(0.045, abs=0.02)


def test_verdicts_without_queries_are_rated_with_a_warning() -> None:
    rated = rate([structs.replace(verdict, query_id=None) for verdict in simulated()], QUICK)
    assert rated.convergence.resampled == "game"
    assert any("name no query" in note for note in rated.notes)


def test_without_a_bootstrap_there_are_no_intervals_but_still_tests() -> None:
    rated = rate(simulated(), structs.replace(QUICK, bootstrap=0))
    assert rated.agents[0].bt_low is None
    assert rated.agents[0].rank_high is None
    assert rated.pairs
    assert not any("no intervals" in note for note in rated.notes)


@pytest.mark.parametrize("games", range(1, 51))
def test_shares_that_were_rounded_to_one_decimal_are_games(games: int) -> None:
    for won in range(games + 1):
        shares = np.array([[math.nan, round(100 * won / games, 1)], [round(100 - 100 * won / games, 1), math.nan]])
        read = from_win_matrix(("x", "y"), shares, games)
        assert read.weights.sum() == pytest.approx(games)
        assert read.weights[read.score == 1].sum() == pytest.approx(won, abs=0.03)
        assert read.weights[read.score == 0.5].sum() == pytest.approx(0, abs=0.06)


def test_fractions_of_games_have_no_elo_rating() -> None:
    games = from_win_matrix(("x", "y"), np.array([[math.nan, 33.3], [50.1, math.nan]]), 30)
    rated = rate_games(games, QUICK)
    assert [line.elo for line in rated.agents] == [None, None]
    assert rated.agents[0].agent == "y"
    assert rated.agents[0].wins == pytest.approx(15.03)
    assert any("no Elo" in note for note in rated.notes)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"k": 0.0}, "k: must be more than 0, not 0.0"),
        ({"bootstrap": -1}, "bootstrap"),
        ({"ties": "ignore"}, "ties"),
        ({"win_and_tie": "loss"}, "win_and_tie"),
        ({"reconcile": True, "position": True}, "position"),
        ({"level": 95.0}, "level"),
        ({"fragility": "all"}, "fragility"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        argument("rate", RatingOptions, setting)


def test_an_unknown_anchor_is_refused_with_the_names_to_choose_from() -> None:
    with pytest.raises(InputError, match="w, x, y, z"):
        rate(simulated(), RatingSettings(anchor="nobody"))


def test_the_leaderboard_says_how_few_games_and_queries_its_lead_hangs_on() -> None:
    rated = rate(simulated(seed=6, queries=40), structs.replace(QUICK, fragility="neighbours"))
    leads = [part for part in rated.fragility if part.change == "leader"]
    assert [(part.unit, part.units, part.ahead) for part in leads] == [("game", 240, "z"), ("query", 40, "z")]
    pairs = [(part.ahead, part.behind) for part in rated.fragility if part.change == "neighbours"]
    assert pairs == [("z", "y")] * 2 + [("y", "x")] * 2 + [("x", "w")] * 2
    _, of_queries = leads
    assert 1 < of_queries.count < 10
    assert len(of_queries.queries) == of_queries.count
    kept = [row for row in simulated(seed=6, queries=40) if row.query_id not in of_queries.queries]
    assert rate(kept, QUICK).agents[0].agent == of_queries.behind != "z"
    assert rate(simulated(), structs.replace(QUICK, fragility="none")).fragility == ()


def test_who_has_no_game_on_many_of_the_queries_is_named() -> None:
    rows = simulated(queries=30)
    half = [row for row in rows if "x" not in (row.agent_a, row.agent_b) or int((row.query_id or "")[1:]) < 15]
    said = [note for note in rate(half, QUICK).notes if "has games on" in note]
    assert len(said) == 1
    assert said[0].startswith("x has games on 15 of 30 queries: ratings compare agents that met on different queries")
    assert not any("games on" in note for note in rate(rows, QUICK).notes)


def test_where_all_agents_are_absent_from_some_queries_one_note_counts_them() -> None:
    pairs = ("wx", "wy", "wz", "xy", "xz", "yz")
    rows = [
        GameVerdict(f"q{n}", *pairs[n % 6], Verdict.A if n % 4 else Verdict.B)  # type: ignore[arg-type]
        for n in range(60)
    ]
    said = [note for note in rate(rows, QUICK).notes if "games on" in note]
    assert len(said) == 1
    assert said[0].startswith("Each agent has games on 30 of 60 queries: ")


def cycle(queries: int = 30) -> list[GameVerdict]:
    """Three agents, each of which has beaten each, the first in the alphabet most often."""
    rows = []
    for q in range(queries):
        for first, second in (("x", "y"), ("y", "z"), ("x", "z")):
            rows.append(GameVerdict(f"q{q}", first, second, B if q % 3 == 0 else TIE if q % 5 == 0 else A))
    return rows


def flags(rated: Ratings) -> dict[str, tuple[str, ...]]:
    return {line.agent: line.flags for line in rated.agents}


def noted(rated: Ratings, *words: str) -> bool:
    return any(all(word in note for word in words) for note in rated.notes)


def test_a_disconnected_graph_is_named_and_no_order_across_it_is_claimed() -> None:
    island = [GameVerdict(f"q{q}", "p", "r", A if q % 3 else B) for q in range(30)]
    rated = rate([*cycle(), *island], QUICK)
    assert flags(rated) == {"x": (), "y": (), "z": (), "p": ("disconnected",), "r": ("disconnected",)}
    assert noted(rated, "no games link", "p, r")
    across = [pair for pair in rated.pairs if (pair.better in "pr") != (pair.worse in "pr")]
    assert len(across) == 6
    assert not any(pair.separable for pair in across)


@pytest.mark.parametrize(("verdict", "cause"), [(A, "undefeated"), (B, "winless")])
def test_an_agent_without_a_loss_or_a_win_is_flagged_with_a_finite_rating_and_a_wide_interval(
    verdict: Verdict, cause: str
) -> None:
    rated = rate([*cycle(), *(GameVerdict(f"q{q}", "new", "y", verdict) for q in range(20))], QUICK)
    assert flags(rated)["new"] == (cause,)
    assert noted(rated, "new", "no upper limit" if verdict is A else "no lower limit")
    assert noted(rated, "weak prior")
    line = next(line for line in rated.agents if line.agent == "new")
    assert abs(line.bt - 1000) < 1500
    assert (line.bt_high or 0) - (line.bt_low or 0) > 400


@pytest.mark.parametrize("reconcile", [True, False])
def test_duplicate_rows_are_counted_and_noted_and_narrow_nothing(reconcile: bool) -> None:
    settings = structs.replace(QUICK, reconcile=reconcile)
    once, often = rate(cycle(), settings), rate(cycle() * 100, settings)
    assert often.tally is not None
    assert often.tally.repeated == 99 * 90
    assert noted(often, "8910 verdicts repeat")
    for one, other in zip(once.agents, often.agents, strict=True):
        assert other.agent == one.agent
        assert other.bt == pytest.approx(one.bt, abs=1e-6)
        assert (other.bt_low, other.bt_high) == pytest.approx((one.bt_low, one.bt_high), abs=1e-6)
        assert (other.rank_low, other.rank_high, other.group) == (one.rank_low, one.rank_high, one.group)
    for pair, same in zip(once.pairs, often.pairs, strict=True):
        assert same.p_holm == pytest.approx(pair.p_holm)
        assert same.queries_needed == pair.queries_needed


def test_duplicate_rows_that_contradict_the_wish_for_clusters_are_still_noted() -> None:
    rated = rate(cycle() * 2, structs.replace(QUICK, cluster=False))
    assert noted(rated, "verdicts repeat")
    assert noted(rated, "treat games as independent")


def test_too_few_iterations_are_not_passed_off_as_a_result() -> None:
    games = as_games(cycle())
    stopped = bradley_terry(games, BradleyTerrySettings(max_iterations=1))
    assert not stopped.converged
    (said,) = notes(games, stopped, None, None, asked_for_samples=False, by_query=True)
    assert "did not converge in 1 iterations" in said
    assert "do not use these ratings" in said
