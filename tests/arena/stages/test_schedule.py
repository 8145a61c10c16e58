"""Which games are played: every pair as often as it should, reproducibly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.config.judging import PairwiseSection
from arena.stages.pairwise import games
from arena.store import Wanted
from judges.errors import ConfigError

names = st.text(min_size=1, max_size=5)
present = st.dictionaries(names, st.lists(names, max_size=7, unique=True), max_size=6)


def section(*, both_orders: bool = True, **schedule: Any) -> PairwiseSection:
    return PairwiseSection.model_validate({"judges": ["j"], "schedule": schedule, "both_orders": both_orders})


seeds = st.integers(0, 9)
schedules = st.builds(section, both_orders=st.booleans(), seed=seeds) | st.builds(
    section, kind=st.just("random"), games_per_query=st.integers(1, 30), both_orders=st.booleans(), seed=seeds
)

SIX = {f"q{number}": [f"agent {letter}" for letter in "abcdef"] for number in range(50)}


def pairs(played: Sequence[Wanted]) -> Counter[tuple[str, frozenset[str]]]:
    return Counter((game.query_id, frozenset(game.shown)) for game in played)


def all_pairs(agents: Mapping[str, Sequence[str]]) -> set[tuple[str, frozenset[str]]]:
    return {(query, frozenset(pair)) for query, here in agents.items() for pair in combinations(here, 2)}


@given(schedules, present)
def test_a_schedule_is_the_same_every_time(schedule: PairwiseSection, agents: dict[str, list[str]]) -> None:
    played = list(games(schedule, agents))
    shuffled = {query: list(reversed(here)) for query, here in agents.items()}
    assert list(games(schedule, agents)) == list(games(schedule, shuffled)) == played
    assert len(set(played)) == len(played)


@given(schedules, present, names, st.lists(names, max_size=7, unique=True))
def test_another_query_changes_no_other_querys_games(
    schedule: PairwiseSection, agents: dict[str, list[str]], query: str, more: list[str]
) -> None:
    before = [game for game in games(schedule, agents) if game.query_id != query]
    grown = {query: more, **{name: here for name, here in agents.items() if name != query}}
    assert [game for game in games(schedule, grown) if game.query_id != query] == before


@given(present, st.booleans())
def test_all_plays_every_pair_once_in_each_order(agents: dict[str, list[str]], both: bool) -> None:
    played = list(games(section(both_orders=both), agents))
    assert pairs(played) == dict.fromkeys(all_pairs(agents), 2 if both else 1)
    if both:
        assert sum(game.order == "ba" for game in played) * 2 == len(played)


@given(present, st.integers(1, 30), st.integers(0, 9))
def test_random_plays_so_many_different_pairs(agents: dict[str, list[str]], wanted: int, seed: int) -> None:
    played = pairs(list(games(section(kind="random", games_per_query=wanted, seed=seed), agents)))
    assert set(played) <= all_pairs(agents)
    assert set(played.values()) <= {2}
    for query, here in agents.items():
        possible = len(here) * (len(here) - 1) // 2
        assert sum(name == query for name, _ in played) == min(wanted, possible)


@given(present, names)
def test_baseline_meets_everybody_where_it_answered(agents: dict[str, list[str]], baseline: str) -> None:
    schedule = section(kind="baseline", baseline=baseline)
    if not any(baseline in here for here in agents.values()):
        with pytest.raises(ConfigError, match="no agent named"):
            list(games(schedule, agents))
        return
    played = list(games(schedule, agents))
    met = {
        (query, frozenset({baseline, other})) for query, here in agents.items() for other in here if baseline in here
    }
    assert pairs(played) == dict.fromkeys({(query, pair) for query, pair in met if len(pair) == 2}, 2)


def test_fifteen_random_pairs_of_six_agents_are_all_pairs() -> None:
    everything = set(games(section(), SIX))
    assert set(games(section(kind="random", games_per_query=15), SIX)) == everything
    assert len(everything) == 50 * 15 * 2


def test_seeds_and_queries_draw_differently() -> None:
    def drawn(seed: int) -> dict[str, frozenset[frozenset[str]]]:
        played = pairs(list(games(section(kind="random", games_per_query=5, seed=seed), SIX)))
        return {query: frozenset(pair for name, pair in played if name == query) for query in SIX}

    assert drawn(1) != drawn(2)
    assert len(set(drawn(1).values())) > 40


def test_a_single_order_is_drawn_evenly() -> None:
    played = list(games(section(both_orders=False, seed=3), SIX))
    swapped = sum(game.order == "ba" for game in played)
    assert len(played) == 750
    assert abs(swapped - 375) < 4 * (750 / 4) ** 0.5


def test_names_that_could_run_together_stay_apart() -> None:
    played = pairs(list(games(section(), {"q": ["a", "b-c", "a-b", "c"]})))
    assert len(played) == 6
