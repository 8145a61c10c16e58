"""The one sentence on top of the page: it must never say more than the numbers do."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from arena.boards.conclusion import Conclusion, adaptive_line, conclude, conclude_board, expectation
from arena.boards.ratings import ratings_json
from arena.calibration.comparison import Comparison, Settings, compare
from arena.calibration.votes import Opinion
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


def concluded(verdicts: Sequence[GameVerdict], **settings: int) -> Conclusion:
    ratings = rate(verdicts, RatingSettings(bootstrap=100, tournaments=5, **settings)) if verdicts else None
    return conclude(ratings)


def league(strengths: dict[str, float], queries: int) -> list[GameVerdict]:
    """Every pair on every query in both orders; the stronger wins more often the wider the gap."""
    noise = random.Random(1)
    verdicts = []
    for query in range(queries):
        for a, b in combinations(strengths, 2):
            won = strengths[a] - strengths[b] + noise.gauss(0, 1) > 0
            verdicts.append(GameVerdict(f"q{query}", a, b, Verdict.A if won else Verdict.B))
            verdicts.append(GameVerdict(f"q{query}", b, a, Verdict.B if won else Verdict.A))
    return verdicts


def test_standing_follows_from_what_may_be_said_and_from_the_checks() -> None:
    even = rate(league({"one": 1.5, "two": 1.5, "last": -1.5}, 30), RatingSettings(bootstrap=100, tournaments=5))
    found = conclude(even)
    (failed, held) = (Check("c", status, "", "") for status in ("failed", "passed"))
    assert found.weighed([held]).standing == "decided"
    assert found.weighed([held, failed]).standing == "care"
    assert conclude(None).weighed([held]).standing == "none"
    assert found.weighed([held]).line.startswith("Conclusion: Tie at the top. ")
    assert concluded(league({"one": 0.1, "two": 0.0}, 12)).standing == "none"


def test_judges_that_only_compare_words_take_the_headline_and_nobody_leads() -> None:
    ratings = rate(league({"best": 1.2, "last": -1.2}, 40), RatingSettings(bootstrap=100, tournaments=5))
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


def test_an_agent_ahead_of_all_others_is_a_clear_leader() -> None:
    found = concluded(league({"best": 1.2, "middle": 0.0, "last": -1.2}, 40))
    assert (found.kind, found.headline) == ("leader", "Clear leader")
    assert found.sentence.startswith("best leads, ")
    assert "above middle" in found.sentence
    assert "120 games on 40 queries" in found.sentence


def test_equals_above_a_weaker_one_are_a_tie_at_the_top() -> None:
    found = concluded(league({"one": 1.5, "two": 1.5, "last": -1.5}, 30))
    assert found.kind == "tie"
    assert "one" in found.sentence
    assert "two" in found.sentence
    assert "last" not in found.sentence


def test_where_nobody_can_be_told_apart_there_is_not_enough_signal() -> None:
    found = concluded(league({"one": 0.1, "two": 0.0, "three": 0.0}, 12))
    assert (found.kind, found.headline) == ("unclear", "Not enough signal")


def test_who_lost_every_game_is_not_tied_for_first() -> None:
    games = []
    for at, other in itertools.product(range(26), ("poor", "x", "y")):
        lost = other == "poor" and at == 5
        games.append(GameVerdict(f"q{at}", "best", other, Verdict.B if lost else Verdict.A))
        games.append(GameVerdict(f"q{at}", other, "best", Verdict.A if lost else Verdict.B))
    found = concluded(games)
    assert (found.kind, found.headline, found.top) == ("unclear", "Not enough signal", ())
    assert found.sentence.startswith("x and y won or tied no game: these games do not say how far behind they are.")


def test_a_missing_interval_never_makes_a_winner() -> None:
    on_one_query = [GameVerdict("q", "best", other, Verdict.A) for other in ("x", "y", "z")]
    assert concluded(on_one_query).kind == "unclear"
    many = league({"best": 3.0, "last": -3.0}, 40)
    settings = RatingSettings(bootstrap=0, tournaments=5)
    assert conclude(rate(many, settings)).kind == "unclear"


def test_agents_that_never_met_are_not_compared() -> None:
    apart = league({"a": 2.0, "b": 0.0}, 30) + league({"c": 0.5, "d": 0.0}, 30)
    found = concluded(apart)
    assert found.kind == "unclear"
    assert "never met" in found.sentence


def test_no_verdict_is_no_conclusion() -> None:
    assert concluded([]).kind == "empty"


@pytest.mark.parametrize("size", [7, 12])
def test_many_tied_agents_are_counted_not_listed(size: int) -> None:
    found = concluded(league({**{f"agent{i:02}": 1.0 for i in range(size)}, "last": -0.8}, 40))
    assert found.kind == "tie"
    assert f"{size - 5} more" in found.sentence


def test_where_quality_ties_the_cheaper_and_the_faster_are_named() -> None:
    verdicts = league({"one": 1.5, "two": 1.5, "last": -1.5}, 30)
    ratings = rate(verdicts, RatingSettings(bootstrap=100, tournaments=5))
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


A, B, TIE = Verdict.A, Verdict.B, Verdict.TIE


def both(query: int, first: str, second: str, verdict: Verdict, back: Verdict | None = None) -> list[GameVerdict]:
    """A game in both orders; ``back`` is the verdict of the second, by default the same winner."""
    mirrored = {A: B, B: A, TIE: TIE}[verdict]
    return [
        GameVerdict(f"q{query}", first, second, verdict),
        GameVerdict(f"q{query}", second, first, back or mirrored),
    ]


def cycle(queries: int = 30, upsets: int = 3) -> list[GameVerdict]:
    pairs = (("x", "y"), ("y", "z"), ("z", "x"))
    return [own for a, b in pairs for q in range(queries) for own in both(q, a, b, B if q < upsets else A)]


def test_where_place_cannot_be_told_from_strength_nobody_leads() -> None:
    found = concluded([GameVerdict(f"q{query}", "x", "y", A) for query in range(60)])
    assert (found.kind, found.top, found.ordered) == ("unclear", (), False)
    assert found.sentence.startswith(
        "No two agents were shown in both orders, and the answer shown first won 60 of 60 verdicts with a winner."
    )


def test_a_lead_that_being_shown_first_explains_is_none() -> None:
    """The first shown always wins; x is shown first on all queries but three."""
    games = [GameVerdict(f"q{query}", *(("y", "x") if query < 3 else ("x", "y")), A) for query in range(60)]
    ratings = rate(games, RatingSettings(bootstrap=100, tournaments=5))
    found = conclude(ratings)
    assert (found.kind, found.top, found.ordered) == ("unclear", (), False)
    assert "its lead may be chance" in found.sentence
    assert any("only if being shown first counts for nothing" in note for note in ratings.notes)


def test_a_winner_in_either_place_leads_without_games_in_both_orders() -> None:
    games = [GameVerdict(f"q{q}", *(("y", "x", B) if q % 2 else ("x", "y", A))) for q in range(40)]
    found = concluded(games)
    assert (found.kind, found.top) == ("leader", ("x",))
    assert "points" not in found.sentence, "an undefeated agent's distance is the prior's"


def test_a_circle_has_no_leader_and_no_expectation() -> None:
    ratings = rate(cycle(), RatingSettings(bootstrap=100, tournaments=5))
    found = conclude(ratings)
    assert found.sentence.startswith(
        "One rating for each agent cannot describe these games: x, y and z beat each other"
    )
    assert list(expectation(ratings, found)) == ["x and y met in 30 games: x won 27, y won 3, 0 tied."]


def test_an_agent_above_a_circle_of_others_is_described_by_no_rating_either() -> None:
    """z wins all against w, and y beats z although it is rated below: their games contradict the order."""
    games = cycle() + [own for q in range(30) for own in both(q, "w", "xyz"[q % 3], B)]
    assert concluded(games).headline == "No one order fits"


@pytest.mark.parametrize(
    ("verdict", "back", "said"),
    [
        (TIE, TIE, "Every game is a tie: all 2 agents have the same rating"),
        (A, A, "In 60 of the 60 games judged in both"),
    ],
)
def test_equal_ratings_have_no_highest(verdict: Verdict, back: Verdict, said: str) -> None:
    found = concluded([own for q in range(60) for own in both(q, "x", "y", verdict, back)])
    assert found.sentence.startswith(said)
    assert (found.top, found.ordered) == ((), False)


def test_half_of_the_orders_contradicting_each_other_closes_the_gate() -> None:
    won = [own for q in range(40) for own in both(q, "x", "y", A)]
    assert concluded(won).kind == "leader"
    swayed = [own for q in range(40, 80) for own in both(q, "x", "y", A, A)]
    assert concluded(won + swayed).headline == "The orders contradict each other"
    assert concluded(won + swayed[2:]).kind == "leader"


def test_too_few_queries_name_no_leader() -> None:
    fewest = FEWEST_QUERIES
    won = [own for q in range(fewest) for own in both(q, "x", "y", A)]
    assert concluded(won[:-2]).headline == "Too few queries"
    assert f"Only {fewest - 1} queries" in concluded(won[:-2]).sentence
    assert concluded(won).headline != "Too few queries"


def test_a_judge_that_agrees_with_people_no_more_than_chance_names_no_leader() -> None:
    noise = random.Random(2)
    ratings = rate(
        [own for q in range(40) for own in both(q, "x", "y", A)], RatingSettings(bootstrap=100, tournaments=5)
    )
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
    ratings = rate(league({"best": 1.2, "last": -1.2}, 40), RatingSettings(bootstrap=100, tournaments=5))
    assert conclude(replace(ratings, agents=ratings.agents[::-1])).top == ("best",)


def test_ratings_without_their_judges_health_lead_only_where_orders_are_reconciled() -> None:
    """From games alone, with how verdicts became games."""
    won = [own for q in range(40) for own in both(q, "x", "y", A)]
    settings = RatingSettings(bootstrap=0, intervals="sandwich", tournaments=0, fragility="none")
    assert conclude(rate_games(reconcile(won), settings)).top == ("x",)
    assert conclude(rate_games(reconcile(won[::2]), settings)).headline == "Place or strength?"
    swayed = [own for q in range(40) for own in both(q, "x", "y", A, A)]
    assert conclude(rate_games(reconcile(swayed), settings)).headline == "The orders contradict each other"


def test_games_are_counted_to_the_last_one_however_many() -> None:
    won = [GameVerdict(f"q{q}", *(("y", "x", B) if q % 2 else ("x", "y", A))) for q in range(12_345)]
    lost = [GameVerdict("again", "x", "y", B)]
    ratings = rate(won + lost, RatingSettings(bootstrap=0, tournaments=0, fragility="none"))
    (met, *_) = expectation(ratings, conclude(ratings))
    assert met == "x and y met in 12,346 games: x won 12,345, y won 1, 0 tied."


def test_an_adaptive_schedule_names_no_places_of_an_order_that_means_nothing() -> None:
    state = AdaptiveState("top", 0.95, decided=True, places=("x",), games=60, possible=90, ended=True)
    assert "decided from the first place down: x" in adaptive_line(state, ordered=True)
    assert adaptive_line(state, ordered=False).endswith("the conclusion says why their order means nothing.")
    begun = replace(state, decided=False, places=(), ended=False)
    assert adaptive_line(begun, ordered=False) == adaptive_line(begun, ordered=True)
