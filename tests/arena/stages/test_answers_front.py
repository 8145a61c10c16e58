"""The Pareto front of rating against latency or cost, and what it says in words."""

from __future__ import annotations

import math
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arena.data.dataset import COST, LATENCY, Dataset
from arena.ratings.results import AgentRating
from arena.results.costs import Front, agent_costs, fronts, in_words, lowest_prices, pareto_front
from judges.types import Answer, Query


def rated(agent: str, bt: float, group: str = "A") -> AgentRating:
    return AgentRating(agent, 1, 1, 1, group, bt, 1.0, bt, bt - 9, bt + 9, 10, 5, 0, 5, ())


QUERIES = 12


def asked(prices: dict[str, tuple[float | None, float | None]], *, varies: float = 0.1) -> Dataset:
    draws = np.random.default_rng(1)
    answers = {}
    for agent, known in prices.items():
        for number in range(QUERIES):
            factor = math.exp(varies * draws.normal())
            taken = zip((LATENCY, COST), known, strict=True)
            metadata = {name: str(value * factor) for name, value in taken if value is not None}
            answers[f"q{number}", agent] = Answer(f"q{number}", agent, "so", metadata)
    return Dataset({f"q{number}": Query(f"q{number}", "why?") for number in range(QUERIES)}, {}, answers)


def front_of(rows: list[AgentRating], data: Dataset) -> dict[str, Front]:
    return fronts(rows, agent_costs(data, {}), data)


def said_of(rows: list[AgentRating], data: Dataset) -> list[str]:
    return [re.sub(r" \(([$\d][^)]*)\)", "", line) for line in in_words(rows, front_of(rows, data))]


points = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12
)


@given(points)
def test_the_front_is_what_nobody_dominates(found: dict[str, tuple[float, float]]) -> None:
    def dominated(name: str) -> bool:
        quality, price = found[name]
        others = (point for other, point in found.items() if other != name)
        return any(q >= quality and p <= price and (q, p) != (quality, price) for q, p in others)

    front = pareto_front(found)
    assert set(front) == {name for name in found if not dominated(name)}
    assert [found[name][0] for name in front] == sorted((found[name][0] for name in front), reverse=True)


def test_agents_without_a_figure_or_a_rating_are_on_no_front() -> None:
    rows = [rated("best", 1100), rated("files", 1050), rated("cheap", 900)]
    found = front_of(
        rows, asked({"best": (2.0, 0.02), "files": (None, None), "cheap": (0.5, 0.001), "unrated": (0.1, 0.0)})
    )
    assert found["latency_s"].agents == found["cost_usd"].agents == ("best", "cheap")
    assert set(found["latency_s"].points) == {"best", "cheap"}


def test_one_agent_alone_is_compared_with_nobody() -> None:
    assert front_of([rated("a", 1100), rated("b", 900)], asked({"a": (2.0, None), "b": (None, None)})) == {}


def test_words_say_who_is_on_the_front_and_who_is_cheaper_where_quality_ties() -> None:
    rows = [rated("slow", 1100, "A"), rated("fast", 1090, "A-B"), rated("poor", 900, "B"), rated("bad", 700, "C")]
    prices = {"slow": (2.0, 0.002), "fast": (0.5, 0.02), "poor": (1.0, 0.001), "bad": (3.0, 0.03)}
    assert said_of(rows, asked(prices)) == [
        "Rating against latency: by these figures, on the front are slow and fast; every other agent is rated no "
        "higher and answers no faster than one of them.",
        "Rating against cost: by these figures, on the front are slow and poor; every other agent is rated no higher "
        "and costs no less than one of them.",
        "slow and fast cannot be told apart by rating; of these fast is the fastest and slow is the cheapest.",
        "fast and poor cannot be told apart by rating; of these fast is the fastest and poor is the cheapest.",
    ]


def test_an_agent_that_is_best_and_fastest_stands_alone() -> None:
    rows = [rated("a", 1100, "A"), rated("b", 900, "B")]
    assert said_of(rows, asked({"a": (0.004, None), "b": (2.0, None)})) == [
        "Rating against latency: none is rated higher than a, the fastest."
    ]
    assert said_of(rows, asked({"a": (0.8, None), "b": (1.0, None)}, varies=0.3)) == [
        "Rating against latency: by these figures, on the front is a; every other agent is rated no higher and "
        "answers no faster than a."
    ]


def test_words_do_not_call_an_agent_the_best_where_a_better_one_has_no_figure() -> None:
    rows = [rated("files", 1200, "A"), rated("a", 1100, "A"), rated("b", 900, "A")]
    assert said_of(rows, asked({"files": (None, None), "a": (0.5, None), "b": (2, None)})) == [
        "Rating against latency, of 2 of the 3 agents, whose latency is known: none is rated higher than a, "
        "the fastest.",
        "files, a and b cannot be told apart by rating; of these a is the fastest, as far as that is known.",
    ]


def test_where_chance_explains_who_took_less_the_figures_stand_without_a_winner() -> None:
    rows = [rated("a", 1100, "A"), rated("b", 1090, "A")]
    *_, said = in_words(rows, front_of(rows, asked({"a": (1.0, 0.01), "b": (1.02, 0.03)}, varies=0.5)))
    assert re.fullmatch(
        r"a and b cannot be told apart by rating; of these a is the cheapest \(\$\S+ a query\) and the fastest "
        r"\(\S+ m?s to \S+ m?s\) cannot be told\.",
        said,
    )


def test_the_slower_agent_is_called_the_fastest_in_at_most_one_of_twenty_tournaments() -> None:
    draws = np.random.default_rng(5)
    wrong = right = 0
    for _ in range(300):
        seconds = np.exp(0.6 * draws.normal(size=(2, 25))) * np.array([[1.0], [1.05]])
        medians = np.median(seconds, axis=1).tolist()
        points = {name: (9.0, value) for name, value in zip("ab", medians, strict=True)}
        taken = {name: tuple(own) for name, own in zip("ab", seconds.tolist(), strict=True)}
        said = lowest_prices("ab", {LATENCY: Front(LATENCY, points, ("a",), taken, tuple(range(25)))})
        wrong += "b is the fastest" in said
        right += "a is the fastest" in said
    assert wrong <= 0.05 * 300
    assert 0 < right < 150


def test_turns_of_one_conversation_are_no_independent_evidence() -> None:
    points = {"a": (9.0, 1.0), "b": (9.0, 2.0)}
    taken: dict[str, tuple[float | None, ...]] = {"a": (1.0,) * 20, "b": (2.0,) * 20}
    by_query = Front(COST, points, ("a",), taken, tuple(range(20)))
    by_conversation = Front(COST, points, ("a",), taken, tuple(number // 5 for number in range(20)))
    assert by_query.shows_less(("a",), ("b",))
    assert not by_conversation.shows_less(("a",), ("b",))
