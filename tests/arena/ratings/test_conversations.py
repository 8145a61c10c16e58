"""Verdicts of one conversation depend on each other: it is what intervals and tests take as independent."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.ratings.adaptive import AdaptiveSettings, Fixtures, next_games, outcomes_of
from arena.ratings.games import GameVerdict, VerdictTable, reconcile, tabulate
from arena.ratings.rate import rate
from arena.ratings.results import Ratings, RatingSettings
from arena.ratings.separation import standings
from judges.types import Verdict

AGENTS = "abcd"
QUICK = RatingSettings(bootstrap=50, tournaments=5, fragility="leader")


def verdicts(seed: int, queries: int, copies: int = 1, judges: str = "xy") -> VerdictTable:
    """Of two judges on all pairs, the strong first; each query so many times over, as the turns of a conversation."""
    rng = np.random.default_rng(seed)
    found = []
    for query in range(queries):
        leaning = rng.normal(0, 0.8)
        for one, other in [(a, b) for a in range(len(AGENTS)) for b in range(a)]:
            for judge in judges:
                p = 1 / (1 + math.exp(-0.3 * (other - one) - leaning))
                said = rng.choice(["A", "B", "TIE"], p=[0.9 * p, 0.9 * (1 - p), 0.1])
                shown = AGENTS[one], AGENTS[other], Verdict(said), judge
                found += [GameVerdict(f"{query:03}-{turn}", *shown) for turn in range(copies)]
    return tabulate(found)


def conversations(table: VerdictTable) -> Mapping[str, str]:
    return {name: name.split("-")[0] for name in table.queries or ()}


def widths(ratings: Ratings) -> dict[str, float]:
    return {row.agent: (row.bt_high or math.nan) - (row.bt_low or math.nan) for row in ratings.agents}


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 15))
def test_a_conversation_for_each_query_changes_nothing(seed: int, queries: int) -> None:
    table = verdicts(seed, queries)
    alone = table.clustered(conversations(table))
    assert alone.unit == "conversation"
    by_turn, by_conversation = rate(table, QUICK), rate(alone, QUICK)
    assert by_conversation.agents == by_turn.agents
    assert by_conversation.pairs == by_turn.pairs
    assert by_conversation.judge_health == by_turn.judge_health
    assert by_conversation.judges == by_turn.judges
    assert by_conversation.direct == by_turn.direct
    assert rate(table.clustered({name: name for name in table.queries or ()}), QUICK) == by_turn


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 5), st.sampled_from(["sandwich", "bootstrap"]))
def test_turns_that_only_repeat_each_other_tell_no_more_than_one(seed: int, copies: int, intervals: str) -> None:
    how = replace(QUICK, intervals=intervals, bootstrap=400, fragility="none")
    once, table = rate(verdicts(seed, 30), how), verdicts(seed, 30, copies)
    again, by_turn = rate(table.clustered(conversations(table)), how), rate(table, how)
    assert widths(again) == pytest.approx(widths(once), rel=1e-4)
    shrunk = [widths(once)[name] / width for name, width in widths(by_turn).items()]
    assert np.mean(shrunk) == pytest.approx(math.sqrt(copies), rel=0.15)
    assert once.judge_health is not None
    assert again.judge_health is not None
    assert again.judge_health.first_effect.low == pytest.approx(once.judge_health.first_effect.low, rel=1e-4)
    shares = [own.judge_health.first_share for own in (once, again, by_turn) if own.judge_health is not None]
    assert shares[1].low == pytest.approx(shares[0].low, abs=0.01)
    assert (shares[2].low or 0) > (shares[1].low or 0) + 0.01
    assert again.judges is not None
    assert once.judges is not None
    assert again.judges.alpha.low == pytest.approx(once.judges.alpha.low, abs=0.02)


def test_queries_stay_queries_in_tables_by_query_and_intervals_over_them_are_by_conversation() -> None:
    once, table = verdicts(1, 20, judges="x"), verdicts(1, 20, 3, judges="x")
    by_turn, whole, single = (
        standings(own, own.queries or (), AGENTS) for own in (table, table.clustered(conversations(table)), once)
    )
    assert whole.figures == by_turn.figures
    assert (whole.won == by_turn.won).all()
    records = [own.together("a", range(len(own.queries))) for own in (by_turn, whole, single)]
    assert (records[1].low, records[1].high) == pytest.approx((records[2].low, records[2].high), abs=0.01)
    assert (records[0].low or 0) > (records[1].low or 0)
    part = whole.of(range(6))
    assert part.together("a", range(6)).low == pytest.approx(single.of(range(2)).together("a", range(2)).low, abs=0.05)


def test_what_is_said_of_queries_is_said_of_conversations() -> None:
    table = verdicts(3, 12, 2)
    rated = rate(table.clustered(conversations(table)), replace(QUICK, fragility="leader"))
    assert (rated.unit, rated.units, rated.noun) == ("conversation", 12, ("conversation", "conversations"))
    assert rated.convergence.resampled == "conversation"
    carried = [one for one in rated.fragility if one.unit == "conversation"]
    assert carried
    assert all(name in {f"{at:03}" for at in range(12)} for one in carried for name in one.queries)
    assert rated.judge_health is not None
    assert rated.judge_health.queries == 24
    few = rate(verdicts(3, 3, 4).clustered(conversations(verdicts(3, 3, 4))), QUICK)
    assert any(note.startswith("Too few conversations (3)") for note in few.notes)


def test_an_adaptive_schedule_plays_whole_conversations_and_counts_each_once() -> None:
    queries = {f"{at:02}-{turn}": list(AGENTS) for at in range(20) for turn in range(1 + at % 3)}
    clusters = {name: name.split("-")[0] for name in queries}
    fixtures = Fixtures(queries, 1, clusters)
    assert len(fixtures) == 6 * len(queries)
    assert fixtures.available.tolist() == [20] * 6
    met = [fixtures.meetings(0, nth) for nth in range(20)]
    assert [len({clusters[own.query_id] for own in turns}) for turns in met] == [1] * 20
    assert sorted(own.query_id for turns in met for own in turns) == sorted(queries)
    none = verdicts(0, 1, judges="x")
    nothing = outcomes_of(reconcile(replace(none, query=np.zeros(len(none), np.int32))), AGENTS)
    batch = next_games(fixtures, [], nothing, AdaptiveSettings(batch=10, max_games=11))
    assert len(batch) <= 11
    for pair in {(own.agent_a, own.agent_b) for own in batch}:
        turns = [own.query_id for own in batch if (own.agent_a, own.agent_b) == pair]
        assert all(name in turns for name in queries if clusters[name] in {clusters[own] for own in turns})
    table = tabulate(
        [
            GameVerdict("1-a", "a", "b", Verdict.A),
            GameVerdict("1-b", "a", "b", Verdict.A),
            GameVerdict("1-c", "a", "b", Verdict.B),
            GameVerdict("2-a", "b", "a", Verdict.TIE),
        ]
    )
    found = outcomes_of(reconcile(table.clustered(conversations(table))), "ab")
    assert found.score.tolist() == pytest.approx([2 / 3, 1 / 2])
