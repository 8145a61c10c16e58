"""Fragility: the games and queries that carry an order are found, counted, and confirmed by fitting the rest."""

import gc
import weakref
from itertools import combinations, pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from arena.ratings.bradley_terry import BradleyTerry, BradleyTerrySettings, bradley_terry
from arena.ratings.fragility import GroupedGames, fragilities
from arena.ratings.games import Games, Unit
from arena.ratings.likelihood import TieModel
from arena.ratings.results import Fragility, RatingSettings

Row = tuple[int, int, float, int]


def games_of(rows: list[Row], agents: int, *, shown: bool = False) -> Games:
    """Games from (a, b, score of a, query)."""
    a, b, score, query = (np.array(column) for column in zip(*rows, strict=True))
    names = tuple("abcdefgh"[:agents])
    columns = (a.astype(np.int32), b.astype(np.int32), score.astype(float), query.astype(np.int32))
    return Games(names, *columns, a_shown_first=shown)


def without(games: Games, rows: tuple[int, ...], **settings: object) -> BradleyTerry:
    keep = np.ones(len(games), np.bool_)
    keep[list(rows)] = False
    cluster = None if games.cluster is None else games.cluster[keep]
    left = Games(games.agents, games.a[keep], games.b[keep], games.score[keep], cluster, games.a_shown_first)
    return bradley_terry(left, BradleyTerrySettings(**settings))


def planted() -> tuple[Games, tuple[int, int]]:
    """Against d agent b has a slightly better record than a, but a has beaten the far stronger c twice.

    In units of a score's residual the two surprising wins are worth nearly 1 each, b's better record 0.3, and any
    other win of a 0.3: two games can turn the order only if they are these two.
    """
    rows: list[Row] = []

    def series(first: int, second: int, wins: int, losses: int) -> None:
        rows.extend((first, second, 1.0 if i < wins else 0.0, len(rows) % 50) for i in range(wins + losses))

    series(0, 3, 70, 30)
    series(1, 3, 71, 30)
    series(2, 3, 980, 20)
    rows += [(0, 2, 1.0, 77), (0, 2, 1.0, 78)]
    return games_of(rows, 4), (len(rows) - 2, len(rows) - 1)


def test_two_planted_games_that_hold_an_order_are_found_exactly() -> None:
    games, decisive = planted()
    fitted = bradley_terry(games)
    ratings = dict(zip(fitted.agents, fitted.ratings, strict=True))
    assert ratings["a"] > ratings["b"]
    assert (without(games, decisive).ratings[[0, 1]] @ [1, -1]) < 0
    flip = pair_flip(games, fitted, "b", "a", "game")
    assert (flip.ahead, flip.behind, flip.count) == ("a", "b", 2)
    single = pair_flip(of_their_own_queries(games), fitted, "b", "a", "query")
    assert (single.count, set(single.queries)) == (2, set(map(str, decisive)))
    of_queries = pair_flip(games, fitted, "a", "b", "query")
    assert (of_queries.count, set(of_queries.queries)) == (2, {"77", "78"})


def grouped_by(unit: Unit, games: Games, fitted: BradleyTerry) -> GroupedGames:
    """The games to be removed singly, or by query; the names of queries are their numbers."""
    if unit == "game":
        return GroupedGames(games, fitted)
    return GroupedGames(games, fitted, games.cluster, [str(number) for number in range(games.cluster.max() + 1)], unit)


def leader_flip(games: Games, fitted: BradleyTerry, unit: Unit, **how: float) -> Fragility | None:
    return grouped_by(unit, games, fitted).leader_flip(GroupedGames(games, fitted).challengers(), **how)


def pair_flip(games: Games, fitted: BradleyTerry, one: str, other: str, unit: Unit) -> Fragility:
    return grouped_by(unit, games, fitted).pair_flip(games.agents.index(one), games.agents.index(other))


def of_their_own_queries(games: Games) -> Games:
    """The same games, each on another query: which queries go says which games go."""
    return replace(games, cluster=np.arange(len(games), dtype=np.int32))


def random_games(seed: int, size: int = 40, agents: int = 3, *, shown: bool = False) -> Games:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, agents, size)
    b = (a + rng.integers(1, agents, size)) % agents
    chance = 1 / (1 + np.exp(0.4 * (a - b)))
    score = np.where(rng.random(size) < 0.2, 0.5, (rng.random(size) < chance) * 1.0)
    query = rng.integers(0, 12, size)
    return games_of(list(zip(a.tolist(), b.tolist(), score.tolist(), query.tolist(), strict=True)), agents, shown=shown)


def checked(flip: Fragility, games: Games, **settings: object) -> int | None:
    """The count, after it is confirmed by an independent fit of what remains."""
    removed = [int(query) for query in flip.queries]
    if flip.count is not None:
        rows = tuple(np.flatnonzero(np.isin(games.cluster, removed)).tolist())
        assert len(set(removed)) == flip.count
        ratings = dict(zip(games.agents, without(games, rows, **settings).ratings, strict=True))
        assert ratings[flip.behind] > ratings[flip.ahead]
    return flip.count


@pytest.mark.parametrize("ties", ["davidson", "half"])
@pytest.mark.parametrize("position", [False, True])
def test_what_is_reported_does_turn_the_order(ties: TieModel, position: bool) -> None:
    counts = []
    for seed in range(3):
        games = random_games(seed, 200, 4, shown=True)
        fitted = bradley_terry(games, BradleyTerrySettings(ties=ties, position=position))
        for clustered in (games, of_their_own_queries(games)):
            counts.append(checked(leader_flip(clustered, fitted, "query"), clustered, ties=ties, position=position))
            order = [games.agents[i] for i in np.argsort(-fitted.ratings)]
            for one, other in pairwise(order):
                checked(pair_flip(clustered, fitted, one, other, "query"), clustered, ties=ties, position=position)
        assert leader_flip(games, fitted, "game").count == counts[-1], "games go as queries of one game do"
    assert sum(count is not None for count in counts) >= 3


@pytest.mark.parametrize("seed", range(2))
def test_no_fewer_games_would_do_where_all_sets_can_be_tried(seed: int) -> None:
    games = random_games(seed, 24)
    fitted = bradley_terry(games)
    games = of_their_own_queries(games)
    found = checked(leader_flip(games, fitted, "query", largest_share=0.15), games)
    assert leader_flip(games, fitted, "game", largest_share=0.15).count == found
    leader = fitted.ratings.argmax()

    def turns(rows: tuple[int, ...]) -> bool:
        ratings = without(games, rows).ratings
        return bool(ratings.max() > ratings[leader] + 1e-6)

    for size in (1, 2) if found is None else range(1, min(found, 3)):
        kinds = {
            tuple(sorted((games.a[i], games.b[i], games.score[i]) for i in rows)): rows
            for rows in combinations(range(24), size)
        }
        assert not any(turns(rows) for rows in kinds.values())


def test_a_clear_lead_takes_more_than_was_tried() -> None:
    rows = [(0, 1, float(i % 10 > 0), i) for i in range(100)]
    games = games_of(rows, 2)
    flip = leader_flip(games, bradley_terry(games), "game")
    assert (flip.count, flip.tried, flip.behind) == (None, 25, "b")


def test_sixty_to_forty_turns_without_twenty_one_games() -> None:
    games = games_of([(0, 1, float(i % 5 < 3), i) for i in range(100)], 2)
    assert checked(leader_flip(games, bradley_terry(games), "query"), games) == 21
    assert leader_flip(games, bradley_terry(games), "game").count == 21


def test_equal_leaders_need_nothing_to_go() -> None:
    games = games_of([(0, 1, float(i % 2), i) for i in range(10)], 2)
    flip = leader_flip(games, bradley_terry(games), "game")
    assert (flip.count, flip.share, flip.tried) == (0, 0, 0)


def test_weights_are_single_games() -> None:
    rows = games_of([(0, 1, 1.0, 0), (0, 1, 0.0, 1)], 2)
    games = Games(rows.agents, rows.a, rows.b, rows.score, weight=np.array([12.0, 10.0]))
    flip = leader_flip(games, bradley_terry(games), "game")
    assert (flip.units, flip.count) == (22, 3)


def test_games_without_queries_and_fractions_of_games_have_no_such_count() -> None:
    rows = games_of([(0, 1, 1.0, 0), (0, 1, 0.0, 1)], 2)
    fractions = replace(rows, weight=np.array([1.5, 1.0]))
    for games, units in ((rows, ["game", "query"]), (replace(rows, cluster=None), ["game"]), (fractions, [])):
        flips = fragilities(games, bradley_terry(games), rows.agents, RatingSettings(fragility="leader"), None)
        assert [flip.unit for flip in flips] == units


def test_cutting_the_only_games_between_two_camps_is_no_change_of_order() -> None:
    # Only the bridge a-c says that camp a, b is ahead of camp c, d; without it the camps do not compare.
    rows: list[Row] = [(0, 1, float(i % 2), i) for i in range(40)] + [(2, 3, float(i % 2), i) for i in range(40)]
    rows += [(0, 2, 1.0, 100), (0, 2, 1.0, 101), (0, 2, 0.0, 102)]
    games = games_of(rows, 4)
    flip = pair_flip(games, bradley_terry(games), "a", "c", "query")
    assert flip.count == 2
    assert "102" not in flip.queries


def test_games_go_as_soon_as_nobody_needs_them() -> None:
    """Ten million games are 300 MB: they must not wait for the garbage collector."""
    games, _ = planted()
    grouped = GroupedGames(games, bradley_terry(games))
    gc.disable()
    try:
        grouped.pair_flip(0, 1)
        gone = weakref.ref(grouped)
        del grouped
        assert gone() is None
    finally:
        gc.enable()
