"""What one judge decides is said: who leads without it, for other judges, and in a gate."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import pytest

from arena.boards.conclusion import conclude, judge_changes
from arena.boards.left_out_judges import FIXED, family_of, finding, judges_decide
from arena.boards.rated_tables import RatedTable
from arena.boards.ratings import RatedBoard, ratings_json
from arena.boards.trust import rating_checks
from arena.data.verdicts import read_verdicts, write_verdicts
from arena.ratings.games import GameVerdict
from arena.ratings.rate import rate
from arena.ratings.results import Ratings, RatingSettings
from judges.types import Verdict
from retrieval_eval.stats.components import JUDGES, QUERIES
from retrieval_eval.stats.estimate import Estimate
from tests.conftest import CLI
from tests.support.games import in_both_orders

FAST = RatingSettings(bootstrap=100, tournaments=5)
FAIR = {"a": 1.0, "b": 0.0, "c": -1.0}
KIN = {"a": 0.0, "b": 3.0, "c": -1.0}


def games(judges: Mapping[str, Mapping[str, float]], queries: int = 40) -> Iterator[GameVerdict]:
    """Every pair on every query by every judge, whose strengths of the agents are given."""
    noise = random.Random(5)
    for judge, strengths in judges.items():
        for query in range(queries):
            for one, other in combinations(strengths, 2):
                won = strengths[one] - strengths[other] + noise.gauss(0, 1) > 0
                yield from in_both_orders(f"q{query}", one, other, Verdict.A if won else Verdict.B, judge=judge)


def rated(judges: Mapping[str, Mapping[str, float]], queries: int = 40) -> Ratings:
    return rate(list(games(judges, queries)), FAST)


def check(ratings: Ratings, **families: Mapping[str, str]) -> tuple[str, str]:
    conclusion = conclude(ratings)
    found = {own.name: own for own in rating_checks(ratings, conclusion, families=families)}
    return found["Result without any one judge"].status, found["Result without any one judge"].finding


def test_a_judge_that_alone_makes_another_lead_is_named_in_the_conclusion_and_fails() -> None:
    ratings = rated({"one": FAIR, "two": FAIR, "kin": KIN})
    conclusion, (status, said) = conclude(ratings), check(ratings)
    assert "ithout kin (1 of 3 judges), a leads" in conclusion.sentence
    assert status == "failed"
    assert said.startswith("Without ")
    assert ratings_json(ratings)["without_judge"]["kin"]["leads"] == "a leads"


def test_judges_that_agree_decide_nothing_alone() -> None:
    ratings = rated({"one": FAIR, "two": FAIR, "three": FAIR})
    assert check(ratings) == ("passed", "The conclusion stays without any 1 of 3 judges.")
    assert "judges)" not in conclude(ratings).sentence


def test_two_judges_of_which_each_is_needed_are_not_called_a_failure() -> None:
    weak = {"a": 0.35, "b": 0.0}
    ratings = next(
        own
        for queries in range(20, 90)
        if conclude(own := rated({"one": weak, "two": weak}, queries)).kind == "leader"
        and any(change.leads for change in judge_changes(own))
    )
    status, said = check(ratings)
    assert status == "unknown"
    assert "(1 of 2 judges), the conclusion is: not enough signal" in said


def test_one_judge_is_said_to_be_held_fixed_and_voters_are_not_left_out_one_by_one() -> None:
    one = rated({"one": FAIR})
    assert finding(one, judge_changes(one)) == ""
    assert FIXED in str(RatedBoard(RatedTable(one)).sections())
    crowd = rated({f"voter {number}": FAIR for number in range(21)}, 10)
    assert (crowd.without_judge, crowd.other_judges, finding(crowd, [])) == ({}, (), "")


def test_a_judge_of_an_agents_family_is_named_by_declaration_or_by_name() -> None:
    strengths = {"gemma-2-9b-it": 1.0, "hybrid": 0.0}
    ratings = rated({"Gemma-4-12B": strengths, "gpt-4.1": strengths})
    assert check(ratings)[1].endswith(" Of one model family: Gemma-4-12B and gemma-2-9b-it.")
    declared = check(ratings, judges={"gpt-4.1": "openai"}, agents={"hybrid": "openai"})[1]
    assert declared.endswith("Gemma-4-12B and gemma-2-9b-it; gpt-4.1 and hybrid.")
    assert [family_of(name) for name in ("meta-llama/Llama-3.1-8B", "philosophy-rag", "phi3")] == ["llama", "", "phi"]


def test_the_interval_for_other_judges_holds_the_first_and_widens_where_judges_differ() -> None:
    alike, differ = (rated({"one": FAIR, "two": FAIR, "odd": odd}, 60) for odd in (FAIR, {"a": 0.2, "b": 0.9, "c": -1}))
    for ratings in (alike, differ):
        for pair, other in zip(ratings.neighbours, ratings.other_judges, strict=True):
            assert other.interval.low <= pair.low
            assert pair.high <= other.interval.high
    assert (differ.other_judges[0].parts[JUDGES].value or 0) > 0.5 > (alike.other_judges[0].parts[JUDGES].value or 0)
    two = rated({"one": FAIR, "two": FAIR})
    assert [(own.interval.low, own.parts) for own in two.other_judges] == [(None, {})] * 2


def test_more_queries_are_said_not_to_help_only_where_judges_surely_make_more_than_half() -> None:
    part = {QUERIES: Estimate(0.1, 0.0, 0.3)}
    assert judges_decide({**part, JUDGES: Estimate(0.9, 0.51, 1.0)})
    assert not judges_decide({**part, JUDGES: Estimate(0.9, 0.49, 1.0)})
    assert not judges_decide({})


@pytest.fixture
def six_judges(shared: Path, tmp_path: Path, cli: CLI) -> Path:
    store, table = tmp_path / "six.db", tmp_path / "verdicts.csv"
    verdicts = read_verdicts(shared / "data/mtbench_multijudge/verdicts.csv", skip_empty=True).table
    write_verdicts(table, list(verdicts.each()))
    done = cli("import", "verdicts", str(table), "--store", str(store), "--tournament", "six")
    assert done.status == 0, done.err
    return store


def test_six_recorded_judges(six_judges: Path, cli: CLI, shared: Path) -> None:
    """Phi against gemma: 57 % of the variance are judges', and without gemma's kin 59 queries would tell, not 432."""
    pair = ["--new", "Phi-3.5-mini-Instruct", "--old", "gemma-2-9b-it"]
    fixed, other = cli("gate", str(six_judges), *pair), cli("gate", str(six_judges), *pair, "--judges", "random")
    assert (fixed.status, other.status) == (0, 3)
    assert "of its variance, judges make 57% (24 to 90%) and queries 30% (6 to 54%)." in fixed.out
    assert "the interval is 0.436 to 0.607; one more judge alone would say 0.311 to 0.733" in fixed.out
    assert "undecided for other judges of this kind: add judges" in other.out
    said = cli("rate", str(shared / "data/mtbench_multijudge/verdicts.csv"), "--skip-faulty").out
    assert "without Gemma-4-12B, 59 more queries, and not 432, would tell Phi-3.5-mini-Instruct and gemma" in said
    assert "Of one model family: EXAONE-32B and EXAONE-3.5-7.8B-Instruct; Gemma-4-12B and gemma-2-9b-it." in said
    assert "6 judges are worth 2.8 (2.6 to 3.1) independent votes" in said
