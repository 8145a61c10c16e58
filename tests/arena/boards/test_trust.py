"""The trust checks: each fails on what it is there for, and passes where that is absent."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from arena.boards.conclusion import conclude_board
from arena.boards.people import people_checks
from arena.boards.trust import trust_checks
from arena.calibration import Opinion
from arena.calibration.comparison import Settings
from arena.config.ratings import RatingsSection
from arena.config.settings import StoredSettings
from arena.present.blocks import Check
from arena.ratings.games import GameVerdict
from arena.ratings.rate import rate
from arena.ratings.results import RatingSettings
from arena.results.outcomes import Coverage
from arena.results.ratings import Leaderboard
from arena.results.table_agreement import compare_opinions
from arena.store.outcomes import Consistency
from judges.types import Task, Verdict
from tests.support.games import in_both_orders

Says = Callable[[random.Random, str, str], Verdict]
"""A judge: from the agents shown first and second to a verdict."""

STRENGTH = {"strong": 1.2, "middle": 0.6, "weak": 0.0}
LENGTHS = {"strong": 300.0, "middle": 100.0, "weak": 200.0}
SETTINGS = {"ratings": RatingsSection().model_dump(mode="json"), "judges": {}}


def careful(noise: random.Random, first: str, second: str) -> Verdict:
    return Verdict.A if STRENGTH[first] + noise.gauss(0, 0.9) > STRENGTH[second] else Verdict.B


def prefers_first(noise: random.Random, first: str, second: str) -> Verdict:
    return Verdict.A if noise.random() < 0.9 else careful(noise, first, second)


def prefers_longer(noise: random.Random, first: str, second: str) -> Verdict:
    return Verdict.A if (LENGTHS[first] > LENGTHS[second]) != (noise.random() < 0.1) else Verdict.B


def undecided(noise: random.Random, first: str, second: str) -> Verdict:
    return Verdict.TIE if noise.random() < 0.8 else careful(noise, first, second)


def circular(noise: random.Random, first: str, second: str) -> Verdict:
    names = list(STRENGTH)
    beats = (names.index(second) - names.index(first)) % 3 == 1
    return Verdict.A if beats != (noise.random() < 0.1) else Verdict.B


def league(says: Says, queries: int = 60, *, faithful: bool = True, judge: str = "j") -> Iterator[GameVerdict]:
    """Every pair on every query in both orders; a faithful judge's second order mirrors its first."""
    noise = random.Random(f"{queries} {judge}")
    for query in range(queries):
        for a, b in combinations(STRENGTH, 2):
            said = says(noise, a, b)
            yield from in_both_orders(f"q{query}", a, b, said, None if faithful else says(noise, b, a), judge)


def board(verdicts: Iterator[GameVerdict], **parts: Any) -> Leaderboard:
    settings = RatingSettings(bootstrap=100, tournaments=5, reconcile=True)
    usual = {(f"q{query}", agent): length for query in range(200) for agent, length in LENGTHS.items()}
    ratings = rate(list(verdicts), settings, lengths=parts.pop("lengths", usual))
    covered = {Task.PAIRWISE: Coverage(100, 99, 1, 0, 0)}
    return Leaderboard(
        "t", ratings, {}, {}, covered, {}, StoredSettings.model_validate(SETTINGS | parts.pop("settings", {})), **parts
    )


def found(leaderboard: Leaderboard) -> dict[str, Check]:
    return {check.name: check for check in trust_checks(leaderboard, conclude_board(leaderboard))}


def test_a_careful_judge_of_all_games_passes_all_but_what_only_people_know() -> None:
    lengths = {(f"q{q}", agent): (place + q // 2) % 3 for q in range(60) for place, agent in enumerate(STRENGTH)}
    statuses = {name: check.status for name, check in found(board(league(careful), lengths=lengths)).items()}
    assert statuses.pop("Agreement of people with the judge") == "unknown"
    assert set(statuses.values()) == {"passed"}, statuses


@pytest.mark.parametrize(
    ("says", "faithful", "check"),
    [
        (prefers_first, False, "Effect of the place shown"),
        (prefers_first, False, "Agreement of both orders"),
        (undecided, True, "Share of ties"),
        (circular, True, "Share of circles"),
    ],
)
def test_a_judge_fails_the_check_that_is_there_for_its_fault(says: Says, *, faithful: bool, check: str) -> None:
    own = found(board(league(says, faithful=faithful)))[check]
    assert own.status == "failed", own
    assert own.remedy


def test_a_favour_for_length_fails_where_it_can_be_told_from_strength() -> None:
    lengths = {(f"q{q}", agent): 100.0 + (place + q) % 3 for q in range(60) for place, agent in enumerate(STRENGTH)}
    noise = random.Random(4)
    verdicts = [
        GameVerdict(
            own.query_id, own.agent_a, own.agent_b, Verdict.A if longer != (noise.random() < 0.1) else Verdict.B
        )
        for own in league(careful)
        for longer in [lengths[own.query_id or "", own.agent_a] > lengths[own.query_id or "", own.agent_b]]
    ]
    assert found(board(iter(verdicts), lengths=lengths))["Effect of length"].status == "failed"
    stronger_is_longer = found(board(league(careful), lengths={own: STRENGTH[own[1]] for own in lengths}))
    own = stronger_is_longer["Effect of length"]
    assert own.status != "failed", own


def test_a_favour_that_may_be_chance_is_no_failure() -> None:
    few = board(league(prefers_longer, queries=2))
    assert found(few)["Number of queries"].status == "failed"
    own = few.ratings and few.ratings.judge_health
    assert own.first_share.value is not None
    assert found(few)["Effect of the place shown"].status == "unknown"


def test_nobody_is_told_to_judge_both_orders_of_games_that_were() -> None:
    whole, half = (list(league(prefers_first, faithful=False))[::step] for step in (1, 2))
    both, one = (found(board(iter(verdicts))) for verdicts in (whole, half))
    assert both["Effect of the place shown"].remedy.startswith(
        "Read the ratings as they are: every game was judged in both"
    )
    assert one["Effect of the place shown"].remedy.startswith("Judge every game in both orders")
    assert "pairwise.both_orders" not in both["Agreement of both orders"].remedy
    assert one["Agreement of both orders"].remedy.startswith("Set pairwise.both_orders")
    incomplete = found(board(iter(whole[1:]), settings={"pairwise": {"judges": ["judge"], "both_orders": True}}))
    assert incomplete["Effect of the place shown"].remedy.startswith("Run again, with --retry-failed")
    assert one["Result without a few queries"].finding.startswith("Place or strength? The bar")


def test_a_lead_is_not_said_to_survive_the_loss_of_no_queries() -> None:
    one = found(board(league(careful, queries=2)))["Result without a few queries"]
    assert one.status == "unknown"
    assert " 0 queries" not in one.finding


def test_judges_that_contradict_each_other_fail() -> None:
    opposed = [*league(careful, 160, judge="one"), *league(prefers_longer, 160, judge="two")]
    assert found(board(iter(opposed)))["Agreement among judges"].status == "failed"
    alike = [GameVerdict(v.query_id, v.agent_a, v.agent_b, v.verdict, j) for v in league(careful) for j in "ab"]
    assert found(board(iter(alike)))["Agreement among judges"].status == "passed"


def test_one_bad_judge_of_three_is_named_and_the_others_are_not_blamed() -> None:
    good = {judge: list(league(careful, 100)) for judge in ("one", "two")}
    verdicts = [GameVerdict(v.query_id, v.agent_a, v.agent_b, v.verdict, j) for j, own in good.items() for v in own]
    verdicts += league(prefers_first, 100, faithful=False, judge="bad")
    by_judge = {
        judge: rate([own for own in verdicts if own.judge == judge], RatingSettings(bootstrap=50, reconcile=True))
        for judge in ("one", "two", "bad")
    }
    checks = found(replace(board(iter(verdicts)), by_judge=by_judge))
    agree = checks["Agreement among judges"]
    assert agree.status == "failed"
    assert agree.finding.endswith("bad agrees less with each of the others than any two of these agree.")
    assert agree.remedy == "Calibrate bad against people's verdicts, or leave it out."
    assert checks["Agreement of both orders"].finding.endswith("By judge only bad fails.")


def test_no_judge_is_named_where_all_differ_alike() -> None:
    verdicts = [own for judge in ("one", "two", "three") for own in league(undecided, 60, judge=judge)]
    assert "agrees less" not in found(board(iter(verdicts)))["Agreement among judges"].finding


def test_a_judge_that_changes_its_mind_fails() -> None:
    for agreement, status in ((0.5, "failed"), (0.95, "passed")):
        consistency = {Task.PAIRWISE: {"j": Consistency(agreement, 40)}}
        own = found(board(league(careful), consistency=consistency))["Agreement of judge j with itself"]
        assert own.status == status


def test_a_winless_agent_is_said() -> None:
    flagged = board(league(lambda _n, a, b: Verdict.A if STRENGTH[a] > STRENGTH[b] else Verdict.B))
    own = found(flagged)["Fit of the ratings"]
    assert own.status == "failed"
    assert "strong" in own.finding


def test_a_baseline_is_no_language_model() -> None:
    words, model = {"words": {"provider": "lexical"}}, {"model": {"provider": "openai"}}
    for judges in (words, words | model):
        check = found(board(league(careful), settings={"judges": judges}))["Language model as judge"]
        assert check.status == "failed"


def test_a_lead_that_one_query_carries_fails() -> None:
    sides = (("a", "b", Verdict.A, Verdict.B), ("b", "a", Verdict.B, Verdict.A))
    even = [GameVerdict(f"q{q}", a, b, odd if q % 2 else own, "j") for q in range(21) for a, b, own, odd in sides]
    settings = RatingSettings(bootstrap=50, tournaments=5)
    covered = {Task.PAIRWISE: Coverage(21, 21, 0, 0, 0)}
    leaderboard = Leaderboard("t", rate(even, settings), {}, {}, covered, {}, StoredSettings.model_validate(SETTINGS))
    assert found(leaderboard)["Result without a few queries"].status == "failed"


def test_a_judge_beyond_chance_in_values_without_kappa_is_neither_passed_nor_failed() -> None:
    noise = random.Random(1)
    grades = {(f"q{query}", agent): noise.uniform(0, 2) for query in range(40) for agent in STRENGTH}
    said = [Opinion(query, (agent, "clear"), "ann", grade) for (query, agent), grade in grades.items()]
    judge = [one._replace(rater="j", value=one.value + noise.gauss(0, 0.1)) for one in said]
    comparisons = compare_opinions({("criteria", ""): judge}, {("criteria", ""): said}, Settings(samples=50))
    leaderboard = board(league(careful))
    checks = trust_checks(leaderboard, conclude_board(leaderboard, comparisons), people_checks(comparisons))
    (check,) = [own for own in checks if own.name.startswith("Agreement of people")]
    assert (check.status, "more than chance" in check.finding) == ("unknown", True)
    assert check.remedy.startswith("Let several people")


def test_what_failed_comes_first() -> None:
    statuses = [check.status for check in found(board(league(prefers_longer))).values()]
    assert statuses == sorted(statuses, key=["failed", "unknown", "passed"].index)


OF_INTERVALS = (
    "Agreement of both orders",
    "Effect of the place shown",
    "Effect of length",
    "Share of ties",
    "Share of circles",
)
"""Checks whose outcome an interval decides."""


@pytest.mark.parametrize(("queries", "outcomes"), [(4, {"unknown"}), (200, {"passed"})])
def test_the_same_judge_is_not_known_on_few_queries_and_passes_on_many(queries: int, outcomes: set[str]) -> None:
    lengths = {(f"q{q}", agent): (place + q // 2) % 3 for q in range(queries) for place, agent in enumerate(STRENGTH)}
    checks = found(board(league(careful, queries), lengths=lengths))
    assert {checks[name].status for name in OF_INTERVALS} == outcomes, checks


WISHES = ("No ", "Few ", "Enough ", "Robust ", "Even ", "A valid ", "Whole ", "One ")


def test_a_check_is_named_by_what_it_looks_at_and_not_by_how_it_should_end() -> None:
    names = {
        name
        for says in (careful, circular, undecided)
        for judges in ({"model": {"provider": "openai"}}, {"words": {"provider": "lexical"}})
        for name in found(board(league(says), settings={"judges": judges}))
    }
    assert {"Share of judgments made", "Number of queries", "Language model as judge"} <= names
    assert [name for name in names if name.startswith(WISHES) or " no " in name] == []


def test_a_figure_inside_its_bar_whose_interval_is_too_wide_asks_for_queries_and_for_no_other_judge() -> None:
    checks = found(board(league(careful, queries=4)))
    for name in ("Agreement of both orders", "Share of ties", "Share of circles"):
        assert (checks[name].status, checks[name].remedy.split(":")[0]) == ("unknown", "Add queries"), checks[name]
    place = checks["Effect of the place shown"].remedy
    assert place.startswith("Read the ratings as they are"), "in both orders it does no harm"
