"""Which queries separate the agents, and where each fails: figures by hand, and the same ones from the command."""

from __future__ import annotations

from contextlib import closing
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.boards.queries import QueryBoard, exam_matrix, label_of_query, query_board
from arena.ratings.games import GameVerdict, tabulate
from arena.ratings.separation import Standings, standings
from arena.results.exam import Study
from arena.store import Store
from judges.types import Verdict
from retrieval_eval.exam.grades import Grade, Graded, Grader, make_grids
from tests.support.games import in_both_orders
from tests.support.sample_store import write_store

AGENTS = ("best", "middle", "last")


def ranked(query: str, order: tuple[str, ...], judge: str = "") -> list[GameVerdict]:
    """Every pair in both orders; who stands earlier in ``order`` wins."""
    pairs = combinations(order, 2)
    return [own for pair in pairs for own in in_both_orders(query, *pair, Verdict.A, judge=judge)]


def found(verdicts: list[GameVerdict], queries: tuple[str, ...]) -> Standings:
    return standings(tabulate(verdicts), queries, AGENTS)


def test_a_query_that_repeats_the_order_separates_and_one_that_reverses_it_does_the_opposite() -> None:
    usual, reverse = AGENTS, AGENTS[::-1]
    said = [*ranked("q1", usual), *ranked("q2", usual), *ranked("q3", usual), *ranked("q4", reverse)]
    figures = found(said, ("q1", "q2", "q3", "q4", "unplayed")).figures
    spread = np.std([1.0, 0.5, 0.0])
    assert [(one.games, one.decided) for one in figures] == [(3, 1.0)] * 4 + [(0, None)]
    assert [one.separation for one in figures[:4]] == pytest.approx([spread, spread, spread, -spread])
    assert figures[4].separation is None


def test_orders_and_judges_that_contradict_each_other_are_counted() -> None:
    swayed = [
        GameVerdict("q", a, b, Verdict.A, "one") for pair in combinations(AGENTS, 2) for a, b in (pair, pair[::-1])
    ]
    (figures,) = found([*swayed, *ranked("q", AGENTS, "two")], ("q",)).figures
    assert (figures.games, figures.decided, figures.both_orders, figures.orders_differ) == (6, 0.5, 6, 0.5)
    assert (figures.by_several, figures.judges_differ) == (3, 1.0)


def test_ties_alone_tell_nobody_apart() -> None:
    ties = [replace(verdict, verdict=Verdict.TIE) for verdict in ranked("q", AGENTS)]
    (figures,) = found(ties, ("q",)).figures
    assert (figures.spread, figures.agreement, figures.separation, figures.decided) == (0.0, None, 0.0, 0.0)


@given(st.lists(st.tuples(st.sampled_from("1234"), st.permutations(AGENTS)), min_size=2, max_size=12))
def test_agreement_is_the_correlation_with_all_other_queries(rounds: list[tuple[str, list[str]]]) -> None:
    queries = tuple(dict.fromkeys(query for query, _ in rounds))
    said = [verdict for at, (query, order) in enumerate(rounds) for verdict in ranked(query, tuple(order), str(at))]
    own = found(said, queries)
    points, played = own.won + own.tied / 2, own.won + own.tied + own.lost
    assert (played.sum(axis=1) == [2 * one.games for one in own.figures]).all()
    for at, one in enumerate(own.figures):
        others = np.delete(points, at, axis=0).sum(axis=0) / np.maximum(1, np.delete(played, at, axis=0).sum(axis=0))
        here = points[at] / played[at]
        if len(queries) > 1 and np.ptp(others) > 1e-9 and np.ptp(here) > 1e-9:
            assert one.agreement == pytest.approx(np.corrcoef(here, others)[0, 1])
        else:
            assert one.agreement is None


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("queries") / "s.db", unasked=10, failed=2)


def read(store: Path) -> QueryBoard:
    with closing(Store.open(str(store))) as opened:
        return query_board(opened, "sample")


def test_an_agent_without_an_answer_fails_there_first(store: Path) -> None:
    board = read(store)
    silent = replace(board, silent=board.silent | {("q07", "dense")})
    assert [own["query_id"] for own in silent.failures("dense") if not own["answered"]] == ["q07"]
    assert silent.failures("dense")[0]["query_id"] == "q07"


def test_the_heat_map_holds_every_agent_s_share_on_each_query_those_that_separate_first(store: Path) -> None:
    board = read(store)
    assert board.kinds == ("won", "criteria")
    in_order = board.separating("won")
    assert in_order == [one.query_id for one in board.by_separation]
    named = next(one.query_id for one in reversed(board.by_separation) if one.agreement is not None and one.spread)
    figures = [
        replace(one, beyond_chance="reversed" if one.query_id == named else None) for one in board.standings.figures
    ]
    reverse = replace(board, standings=replace(board.standings, figures=figures))
    assert reverse.finding.startswith(f"{named} turns the order of the others round")
    assert named != in_order[0]
    assert reverse.separating("won")[0] == named, "what the headline names is seen first"
    assert reverse.separating("criteria") == board.separating("criteria")
    ids = board.separating("won")[:3]
    picture = board.heat_map("won", ["hybrid", "bm25"], ids, lambda query_id, agent: f"queries?{query_id}&{agent}")
    labels = [board.label(query_id) for query_id in ids]
    assert picture.rows == ["All 12 queries", *labels]
    records = dict(zip(board.standings.queries, board.standings.each("hybrid"), strict=True))
    for query_id, label in zip(ids, labels, strict=True):
        share, cell = records[query_id].share, picture.cells[label, "hybrid"]
        assert cell.figure == f"{100 * share:.0f}"
        assert cell.link == f"queries?{query_id}&hybrid"
        assert cell.strength == pytest.approx(2 * (share - 0.5)), "each agent meets each other one"
    assert (picture.links[labels[0]], picture.links["bm25"]) == (f"queries?{ids[0]}&", "queries?&bm25")
    together = board.standings.together("bm25", range(12))
    assert picture.cells["All 12 queries", "bm25"].figure == f"{100 * together.share:.0f}"
    share, grade = board.scores_of("bm25").items
    assert (share.value, share.low, share.high) == pytest.approx((together.share, together.low, together.high))
    assert grade.name == "Mean grade"
    graded = board.heat_map("criteria", ["bm25"], ["q00"]).cells[board.label("q00"), "bm25"]
    assert graded.figure in {"1.00", "1.50", "2.00"}


def test_a_query_whose_text_is_its_id_is_named_once(store: Path) -> None:
    query = read(store).queries["q00"]
    assert label_of_query("q00", query) == f"q00: {query.text}"
    assert label_of_query("q00", replace(query, text="q00")) == "q00"


def test_a_group_of_queries_has_a_heat_map_of_its_own(store: Path) -> None:
    board = read(store)
    kinds = {
        name: replace(query, metadata={"kind": "how" if name < "q04" else "why"})
        for name, query in board.queries.items()
    }
    part = replace(board, queries=kinds).of_group("kind", "how")
    assert sorted(part.separating("won")) == list(part.queries) == ["q00", "q01", "q02", "q03"]
    assert part.heat_map("won", ["bm25"], []).rows == ["All 4 queries"]


def test_the_best_grade_of_an_answer_on_each_item_of_the_exam_is_shown() -> None:
    grades = [Grade("q", "q/x#1", "i", 2), Grade("q", "q/x#2", "i", 5), Grade("q", "q/y#1", "i", 0)]
    graded = Graded({Grader("j"): grades})
    rankings = {("q", "x"): ("q/x#1", "q/x#2"), ("q", "y"): ("q/y#1",)}
    grids, levels = make_grids(grades, None, rankings), (1, 2, 3, 4, 5)
    study = Study(graded, graded, Grader("j"), grades, None, rankings, grids, {}, levels, "answers")
    picture = exam_matrix(study, "q", ["y", "x", "silent"], 2)
    assert {name: cell.figure for name, cell in picture.cells.items()} == {("1. i", "x"): "5", ("1. i", "y"): "0"}
    assert exam_matrix(study, "other", ["x"], 2) is None


def test_where_all_agents_tie_no_query_is_said_to_separate_them(store: Path) -> None:
    board = read(store)
    played = board.standings.won + board.standings.tied + board.standings.lost
    level = tuple(replace(own, spread=0.0, agreement=None, beyond_chance="more") for own in board.standings.figures)
    ties = replace(board.standings, won=0 * played, lost=0 * played, tied=played, figures=level)
    assert replace(board, standings=ties).finding == (
        "On 11 of 11 all agents have the same Win rate: none of these queries tells them apart."
    )
