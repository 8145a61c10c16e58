"""The Pareto front of rating against latency or cost, and what it says in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arena.boards.costs import AgentCosts, Latency, Mean, fronts, in_words, pareto_front
from arena.ratings.results import AgentRating


def rated(agent: str, bt: float, group: str = "A") -> AgentRating:
    return AgentRating(agent, 1, 1, 1, group, bt, 1.0, bt, bt - 9, bt + 9, 10, 5, 0, 5, ())


def took(agent: str, latency_s: float | None, cost_usd: float | None) -> AgentCosts:
    latency = Latency() if latency_s is None else Latency(latency_s, 5, latency_s)
    cost = Mean() if cost_usd is None else Mean(cost_usd, 5)
    return AgentCosts(agent, 5, 5, latency, cost, tried_s=latency)


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
    costs = [took("best", 2.0, 0.02), took("files", None, None), took("cheap", 0.5, 0.001), took("unrated", 0.1, 0.0)]
    found = fronts(rows, costs)
    assert found["latency_s"].agents == found["cost_usd"].agents == ("best", "cheap")
    assert set(found["latency_s"].points) == {"best", "cheap"}


def test_one_agent_alone_is_compared_with_nobody() -> None:
    assert fronts([rated("a", 1100), rated("b", 900)], [took("a", 2.0, None), took("b", None, None)]) == {}


def test_words_say_who_is_on_the_front_and_who_is_cheaper_where_quality_ties() -> None:
    rows = [rated("slow", 1100, "A"), rated("fast", 1090, "A-B"), rated("poor", 900, "B"), rated("bad", 700, "C")]
    costs = [took("slow", 2.0, 0.002), took("fast", 0.5, 0.02), took("poor", 1.0, 0.001), took("bad", 3.0, 0.03)]
    assert in_words(rows, fronts(rows, costs)) == (
        "Rating against latency: on the front are slow (2.00 s) and fast (500 ms); every other agent is rated no "
        "higher and answers no faster than one of them.",
        "Rating against cost: on the front are slow ($0.0020 a query) and poor ($0.0010 a query); every other "
        "agent is rated no higher and costs no less than one of them.",
        "slow and fast cannot be told apart by rating; of these fast is the fastest (500 ms) and slow is the cheapest "
        "($0.0020 a query).",
        "fast and poor cannot be told apart by rating; of these fast is the fastest (500 ms) and poor is the cheapest "
        "($0.0010 a query).",
    )


def test_an_agent_that_is_best_and_fastest_stands_alone() -> None:
    rows = [rated("a", 1100, "A"), rated("b", 900, "B")]
    (said,) = in_words(rows, fronts(rows, [took("a", 0.004, None), took("b", 2.0, None)]))
    assert said == "Rating against latency: none is rated higher than a, the fastest."


def test_words_do_not_call_an_agent_the_best_where_a_better_one_has_no_figure() -> None:
    rows = [rated("files", 1200, "A"), rated("a", 1100, "A"), rated("b", 900, "A")]
    first, second = in_words(rows, fronts(rows, [took("files", None, None), took("a", 0.5, None), took("b", 2, None)]))
    assert first == (
        "Rating against latency, of 2 of the 3 agents, whose latency is known: none is rated higher than a, "
        "the fastest."
    )
    assert second == (
        "files, a and b cannot be told apart by rating; of these a is the fastest (500 ms), as far as that is known."
    )
