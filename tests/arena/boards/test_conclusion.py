"""The one sentence on top of the page: it must never say more than the numbers do."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from arena.boards.conclusion import BY_PEOPLE, MODEL, Conclusion, adaptive_line, conclude, conclude_board, expectation
from arena.boards.ratings import ratings_json
from arena.calibration import Opinion
from arena.calibration.comparison import Comparison, Settings, compare
from arena.config.settings import StoredSettings
from arena.data.dataset import COST, LATENCY, Dataset
from arena.present.blocks import Check
from arena.ratings.games import GameVerdict, reconcile
from arena.ratings.rate import rate, rate_games
from arena.ratings.results import FEWEST_QUERIES, RatingSettings
from arena.results.costs import Front, cost_board, lowest_prices
from arena.results.ratings import Leaderboard
from arena.stages.adaptive import AdaptiveState
from judges.types import Answer, Query, Verdict
from tests.support.games import in_both_orders

A, B, TIE = Verdict.A, Verdict.B, Verdict.TIE
FAST = RatingSettings(bootstrap=100, tournaments=5)


def concluded(verdicts: Sequence[GameVerdict]) -> Conclusion:
    return conclude(rate(verdicts, FAST) if verdicts else None)


def league(strengths: dict[str, float], queries: int) -> list[GameVerdict]:
    """Every pair on every query in both orders; the stronger wins more often the wider the gap."""
    noise = random.Random(1)
    return [
        own
        for query in range(queries)
        for a, b in combinations(strengths, 2)
        for own in both(query, a, b, A if strengths[a] - strengths[b] + noise.gauss(0, 1) > 0 else B)
    ]


def both(query: int, first: str, second: str, verdict: Verdict, back: Verdict | None = None) -> list[GameVerdict]:
    return in_both_orders(f"q{query}", first, second, verdict, back)


def won(queries: range, verdict: Verdict = A, back: Verdict | None = None) -> list[GameVerdict]:
    return [own for query in queries for own in both(query, "x", "y", verdict, back)]


def cycle(queries: int = 30, upsets: int = 3) -> list[GameVerdict]:
    pairs = (("x", "y"), ("y", "z"), ("z", "x"))
    return [own for a, b in pairs for q in range(queries) for own in both(q, a, b, B if q < upsets else A)]


BEST, EQUAL, LEVEL = {"best": 1.2, "last": -1.2}, {"one": 1.5, "two": 1.5, "last": -1.5}, {"one": 0.1, "two": 0.0}
IN_TURN = [GameVerdict(f"q{q}", *(("y", "x", B) if q % 2 else ("x", "y", A))) for q in range(40)]
"""x wins every game, shown first and second in turn, each game in one order."""
ALL_BUT_ONE = [
    own
    for q, other in itertools.product(range(26), ("poor", "x", "y"))
    for own in both(q, "best", other, B if (q, other) == (5, "poor") else A)
]
"""Nobody but "poor" ever wins against "best", and it once."""


@pytest.mark.parametrize(
    ("verdicts", "headline", "top", "said"),
    [
        ([], "No verdicts yet", "", "nothing to rate"),
        (league({"best": 1.2, "middle": 0.0, "last": -1.2}, 40), "Clear leader", "best", "best leads, "),
        (league({"best": 1.2, "middle": 0.0, "last": -1.2}, 40), "Clear leader", "best", "points above middle, at 95%"),
        (league({"best": 1.2, "middle": 0.0, "last": -1.2}, 40), "Clear leader", "best", "120 games on 40 queries"),
        (league(EQUAL, 30), "Tie at the top", "one two", "are tied for first"),
        (league({**LEVEL, "three": 0.0}, 12), "Not enough signal", "", "No two of the 3 agents"),
        (
            ALL_BUT_ONE,
            "Not enough signal",
            "",
            "x and y won or tied no game: these games do not say",
        ),
        ([GameVerdict("q", "best", other, A) for other in "xyz"], "Place or strength?", "", "in both orders"),
        (league({"a": 2.0, "b": 0.0}, 30) + league({"c": 0.5, "d": 0.0}, 30), "Not all agents met", "", "never met"),
        (
            [GameVerdict(f"q{query}", "x", "y", A) for query in range(60)],
            "Place or strength?",
            "",
            "No two agents were shown in both orders, and the answer shown first won 60 of 60 verdicts with a winner.",
        ),
        (IN_TURN, "Clear leader", "x", "how far ahead it is, these games cannot say"),
        (cycle(), "No one order fits", "", "cannot describe these games: x, y and z beat each other"),
        # z wins all against w, and y beats z although it is rated below: their games contradict the order.
        (
            cycle() + [own for q in range(30) for own in both(q, "w", "xyz"[q % 3], B)],
            "No one order fits",
            "",
            "circle",
        ),
        (won(range(60), TIE, TIE), "All rated equal", "", "Every game is a tie: all 2 agents have the same rating"),
        (won(range(60), A, A), "The orders contradict each other", "", "In 60 of the 60 games judged in both"),
        (won(range(40)) + won(range(40, 80), A, A), "The orders contradict each other", "", "40 of the 80 games"),
        (won(range(41)) + won(range(41, 80), A, A), "Clear leader", "x", "x leads"),
        (won(range(FEWEST_QUERIES - 1)), "Too few queries", "", f"Only {FEWEST_QUERIES - 1} queries"),
        (won(range(FEWEST_QUERIES)), "Not enough signal", "", "x and y cannot be told apart, at 95%"),
    ],
)
def test_the_headline_names_a_leader_a_tie_or_why_there_is_neither(
    verdicts: Sequence[GameVerdict], headline: str, top: str, said: str
) -> None:
    found = concluded(verdicts)
    assert (found.headline, " ".join(found.top)) == (headline, top)
    assert said in found.sentence
    kinds = {"Clear leader": "leader", "Tie at the top": "tie", "No verdicts yet": "empty"}
    assert found.kind == kinds.get(headline, "unclear")


def test_standing_follows_from_what_may_be_said_and_from_the_checks() -> None:
    even = rate(league({"one": 1.5, "two": 1.5, "last": -1.5}, 30), FAST)
    found = conclude(even)
    (failed, held) = (Check("c", status, "", "") for status in ("failed", "passed"))
    assert found.weighed([held]).standing == "decided"
    assert found.weighed([held, failed]).standing == "care"
    assert conclude(None).weighed([held]).standing == "none"
    assert found.weighed([held]).line.startswith("Conclusion: Tie at the top. ")
    assert concluded(league({"one": 0.1, "two": 0.0}, 12)).standing == "none"


def test_the_first_step_answers_the_headline_or_the_first_reason_and_no_advice_stands_twice() -> None:
    ratings = rate(league({"one": 1.5, "two": 1.5, "last": -1.5}, 30), FAST)
    model, people, queries, again = (
        Check(name, "failed", f"{name} failed.", remedy)
        for name, remedy in ((MODEL, "Name a model."), (BY_PEOPLE, "Ask people."), ("c", "Add."), ("d", "Ask people."))
    )
    found = conclude(ratings).weighed([queries, model, people, again], "More.")
    assert found.why == ("Results by people's labels failed.", "c failed.", f"{MODEL} failed.", "d failed.")
    assert found.next == ("Ask people.", "More.", "Add.", "Name a model.")
    of_words = conclude(ratings, of_words=["lexical"]).weighed([queries, people, model], "More.")
    assert of_words.next == ("Name a model.", "More.", "Ask people.", "Add.")
    assert of_words.why == ("Results by people's labels failed.", "c failed."), "the headline says it already"


def test_judges_that_only_compare_words_take_the_headline_and_nobody_leads() -> None:
    ratings = rate(league({"best": 1.2, "last": -1.2}, 40), FAST)
    words, model = {"words": {"provider": "lexical"}}, {"model": {"provider": "openai"}}
    games = {"pairwise": {"judges": ["words"]}}

    def of(settings: dict[str, Any]) -> Conclusion:
        return conclude_board(Leaderboard("t", ratings, {}, {}, {}, {}, StoredSettings.model_validate(settings)))

    found = of({"judges": words})
    assert (found.headline, found.standing, found.top) == ("No language model judged these games", "none", ())
    assert found.ordered, "the table still shows who is ahead"
    assert of({"judges": words | model} | games).headline == found.headline
    assert of({"judges": words | model}).kind == "leader"
    assert ratings_json(ratings, (), "words", of_words=True)["conclusion"].headline == found.headline


def test_a_missing_interval_never_makes_a_winner() -> None:
    many = league({"best": 3.0, "last": -3.0}, 40)
    assert conclude(rate(many, RatingSettings(bootstrap=0, tournaments=5))).kind == "unclear"


@pytest.mark.parametrize("size", [7, 12])
def test_many_tied_agents_are_counted_not_listed(size: int) -> None:
    found = concluded(league({**{f"agent{i:02}": 1.0 for i in range(size)}, "last": -0.8}, 40))
    assert found.kind == "tie"
    assert f"{size - 5} more" in found.sentence


def test_where_quality_ties_the_cheaper_and_the_faster_are_named() -> None:
    verdicts = league({"one": 1.5, "two": 1.5, "last": -1.5}, 30)
    ratings = rate(verdicts, FAST)
    took = {"one": ("2.5", "0.01"), "two": ("0.5", "0.03"), "last": ("0.1", "0.001")}
    queries = {f"q{number}": Query(f"q{number}", "why?") for number in range(8)}
    answers = {
        (query_id, agent): Answer(query_id, agent, "so", {"latency_s": latency, "cost_usd": cost})
        for query_id in queries
        for agent, (latency, cost) in took.items()
    }
    costs = cost_board(Dataset(queries, {}, answers), ratings.agents, {})
    sentence = conclude_board(
        Leaderboard("t", ratings, {}, {}, {}, {}, StoredSettings.model_validate({}), costs=costs)
    ).sentence
    assert sentence.endswith("; of these two is the fastest (500 ms) and one is the cheapest ($0.010 a query).")
    points, taken = {"one": (9.0, 2.0), "two": (9.0, 3.0)}, {"one": (2.0,) * 8, "two": (3.0,) * 8}
    prices = {price: Front(price, points, ("one",), taken, tuple(range(8))) for price in (LATENCY, COST)}
    assert lowest_prices(("one", "two"), prices) == "one is the fastest (2.00 s) and the cheapest ($2.00 a query)"


def test_a_column_of_costs_that_holds_no_costs_is_none() -> None:
    written = {"q0": "1e308", "q1": "1e308", "q2": "-1", "q3": "dear", "q4": "0.5"}
    answers = {(query, "one"): Answer(query, "one", "so", {"cost_usd": cost}) for query, cost in written.items()}
    (found,) = cost_board(Dataset({query: Query(query, "why?") for query in written}, {}, answers), (), {}).agents
    assert (found.cost_usd.mean, found.cost_usd.known) == (0.5, 1)


def test_a_lead_that_being_shown_first_explains_is_none() -> None:
    """The first shown always wins; x is shown first on all queries but three."""
    games = [GameVerdict(f"q{query}", *(("y", "x") if query < 3 else ("x", "y")), A) for query in range(60)]
    ratings = rate(games, FAST)
    found = conclude(ratings)
    assert (found.kind, found.top, found.ordered) == ("unclear", (), False)
    assert "its lead may be chance" in found.sentence
    assert any("only if being shown first counts for nothing" in note for note in ratings.notes)


def test_a_circle_has_no_leader_and_no_expectation() -> None:
    ratings = rate(cycle(), FAST)
    found = conclude(ratings)
    assert found.sentence.startswith(
        "One rating for each agent cannot describe these games: x, y and z beat each other"
    )
    assert list(expectation(ratings, found)) == ["x and y met in 30 games: x won 27, y won 3, 0 tied."]


def test_a_judge_that_agrees_with_people_no_more_than_chance_names_no_leader() -> None:
    noise = random.Random(2)
    ratings = rate(won(range(40)), FAST)
    judged = [Opinion(f"q{q}", ("x", "y"), "j", 1.0 if q % 4 else -1.0) for q in range(40)]

    def compared(share: float) -> Comparison:
        said = [one._replace(rater="ann", value=one.value if noise.random() < share else -one.value) for one in judged]
        return compare("verdicts", {"j": judged}, said, Settings(samples=50))

    assert conclude(ratings, comparisons=[compared(0.95)]).kind == "leader"
    coin, headline = compared(0.5), "The judge is not shown to agree with people"
    assert conclude(ratings, comparisons=[coin]).headline == headline
    assert ratings_json(ratings, [coin], "j")["conclusion"].headline == headline, "nor does the judge alone"
    assert ratings_json(ratings, [coin], "another")["conclusion"].kind == "leader"


def test_the_leader_is_the_highest_rated_whatever_orders_the_table() -> None:
    ratings = rate(league({"best": 1.2, "last": -1.2}, 40), FAST)
    assert conclude(replace(ratings, agents=ratings.agents[::-1])).top == ("best",)


def test_ratings_without_their_judges_health_lead_only_where_orders_are_reconciled() -> None:
    """From games alone, with how verdicts became games."""
    settings = RatingSettings(bootstrap=0, intervals="sandwich", tournaments=0, fragility="none")
    assert conclude(rate_games(reconcile(won(range(40))), settings)).top == ("x",)
    assert conclude(rate_games(reconcile(won(range(40))[::2]), settings)).headline == "Place or strength?"
    assert (
        conclude(rate_games(reconcile(won(range(40), A, A)), settings)).headline == "The orders contradict each other"
    )


def test_games_are_counted_to_the_last_one_however_many() -> None:
    many = [GameVerdict(f"q{q}", *(("y", "x", B) if q % 2 else ("x", "y", A))) for q in range(12_345)]
    lost = [GameVerdict("again", "x", "y", B)]
    ratings = rate(many + lost, RatingSettings(bootstrap=0, tournaments=0, fragility="none"))
    (met, *_) = expectation(ratings, conclude(ratings))
    assert met == "x and y met in 12,346 games: x won 12,345, y won 1, 0 tied."


def test_an_adaptive_schedule_names_no_places_of_an_order_that_means_nothing() -> None:
    state = AdaptiveState("top", 0.95, decided=True, places=("x",), games=60, possible=90, ended=True)
    assert "decided from the first place down: x" in adaptive_line(state, ordered=True)
    assert adaptive_line(state, ordered=False).endswith("the conclusion says why their order means nothing.")
    begun = replace(state, decided=False, places=(), ended=False)
    assert adaptive_line(begun, ordered=False) == adaptive_line(begun, ordered=True)
