"""Cover, labels, alpha-nDCG and leaderboards, by hand and by laws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.stats import kendalltau, spearmanr

from judges.errors import InputError
from retrieval_eval.exam.grades import UNGRADED, Grade, Graded, Grader, Grid, Grids, Rankings, make_grids
from retrieval_eval.exam.items import Bank, Item, QueryInfo
from retrieval_eval.exam.scores import (
    CoverScores,
    ExamMeasure,
    alpha_ndcg,
    correlate,
    cover_scores,
    exam_labels,
    places,
    read_grade_map,
    standard_error,
)
from retrieval_eval.stats import Floats

Rating = Mapping[str, Mapping[str, int]]

# The passages of two agents, graded against the four items of one query and the two of another.
SKIN: Rating = {
    "p1": {"a": 5, "b": 0, "c": 4, "d": 0},
    "p2": {"a": 4, "b": 3, "c": 0, "d": 0},
    "p3": dict.fromkeys("abcd", 0),
}
ROCK: Rating = {"p4": {"e": 4, "f": 0}, "p5": {"e": 0, "f": 5}}
BANK = Bank(
    (*(Item("skin", f"{i}?", item_id=i) for i in "abcd"), *(Item("rock", f"{i}?", item_id=i) for i in "ef")),
    {("wind", None): QueryInfo("no items yet")},
)
RANKED: Rankings = {("skin", "one"): ("p1", "p2"), ("skin", "two"): ("p3", "p2"), ("rock", "one"): ("p4", "p5")}


def grades_of(**queries: Rating) -> list[Grade]:
    return [
        Grade(query_id, passage, item, grade)
        for query_id, own in queries.items()
        for passage, row in own.items()
        for item, grade in row.items()
    ]


def mean_cover(scores: CoverScores, level: int, measure: ExamMeasure = "cover") -> dict[str, float | None]:
    return {agent: mean.value for agent, mean in scores.by_level[level][measure].means.items()}


def table(scores: CoverScores, measure: ExamMeasure) -> Floats:
    """Shape (agents, queries, levels)."""
    return np.stack([measures[measure].values for measures in scores.by_level.values()], axis=2)


def test_cover_by_hand() -> None:
    grids = make_grids(grades_of(skin=SKIN, rock=ROCK), BANK, RANKED)
    scores = cover_scores(grids, RANKED, levels=(1, 3, 4, 5), k=20)
    assert scores.empty_queries == ("wind",)
    # "one" covers a, b, c of skin at 3, a and c at 4, a at 5; e and f of rock, at 5 only f. "two" covers a and b.
    assert mean_cover(scores, 3) == {"one": (3 / 4 + 1) / 2, "two": (2 / 4 + 0) / 2}
    assert mean_cover(scores, 4) == {"one": (2 / 4 + 1) / 2, "two": (1 / 4 + 0) / 2}
    assert mean_cover(scores, 5) == {"one": (1 / 4 + 1 / 2) / 2, "two": 0.0}
    # Anybody covers three items of skin at 3, and two at 4.
    assert mean_cover(scores, 3, "normalised") == {"one": 1.0, "two": pytest.approx((2 / 3 + 0) / 2)}
    error = standard_error(scores.by_level[4]["cover"], "one")
    assert error == pytest.approx(np.std([1 / 2, 1], ddof=1) / math.sqrt(2))


def test_only_the_first_k_passages_count() -> None:
    grids = make_grids(grades_of(skin=SKIN, rock=ROCK), BANK, RANKED)
    scores = cover_scores(grids, RANKED, levels=(4,), k=1)
    assert mean_cover(scores, 4) == {"one": (2 / 4 + 1 / 2) / 2, "two": 0.0}


def test_without_a_bank_the_graded_items_are_counted_as_the_workbench_does() -> None:
    ranked = {("skin", "one"): ("p1",)}
    scores = cover_scores(make_grids(grades_of(skin=SKIN), None, ranked), ranked, levels=(4,))
    assert mean_cover(scores, 4) == {"one": 2 / 4}


def test_an_item_that_nothing_was_graded_on_is_missing_and_not_uncovered() -> None:
    bank, ranked = Bank((*BANK.items, Item("skin", "nobody was graded on this?"))), {("skin", "one"): ("p1",)}
    scores = cover_scores(make_grids(grades_of(skin=SKIN), bank, ranked), ranked, levels=(4,))
    assert [table(scores, measure)[0, 0, 0] for measure in ENDS] == [2 / 5, 2 / 4, 3 / 5]
    assert scores.judgments[1, 0, 0] == 1


MISSING = None
ENDS: Sequence[ExamMeasure] = ("least", "cover", "possible")


@pytest.mark.parametrize(
    ("grades", "ends"),
    [
        ({"a": (5, MISSING)}, (1, 1, 1)),  # covered whatever the other grade would have been
        ({"a": (0, MISSING)}, (0, math.nan, 1)),
        ({"a": (MISSING, MISSING)}, (0, math.nan, 1)),
        ({"a": (0, MISSING), "b": (0, 0)}, (0, 0, 1 / 2)),
        ({"a": (5, MISSING), "b": (0, MISSING), "c": (0, 0)}, (1 / 3, 0, 2 / 3)),  # only c lacks no grade
        ({"a": (5, MISSING), "b": (5, MISSING), "c": (0, 0)}, (2 / 3, 2 / 3, 2 / 3)),
        ({"a": (5, 0), "b": (0, MISSING), "c": (0, 0)}, (1 / 3, 1 / 2, 2 / 3)),
    ],
)
def test_a_query_with_missing_grades_has_its_cover_where_it_is_known(
    grades: dict[str, tuple[int | None, ...]], ends: tuple[float, ...]
) -> None:
    bank = Bank(tuple(Item("q", f"{name}?", item_id=name) for name in grades))
    ranked = {("q", "one"): ("p1", "p2")}
    entries = [
        Grade("q", passage, name, grade)
        for name, own in grades.items()
        for passage, grade in zip(("p1", "p2"), own, strict=True)
    ]
    scores = cover_scores(make_grids(entries, bank, ranked), ranked, levels=(4,))
    found = [float(table(scores, measure)[0, 0, 0]) for measure in ENDS]
    assert found == pytest.approx(ends, nan_ok=True)
    assert scores.judgments[1, 0, 0] == sum(own.count(None) for own in grades.values())
    mean = scores.by_level[4]["cover"].means["one"]
    assert (mean.value, mean.n) == ((None, 0) if math.isnan(ends[1]) else (pytest.approx(ends[1]), 1))


def test_an_agent_without_a_grade_has_no_score_and_no_place() -> None:
    ranked = {("q", "one"): ("p1",), ("q", "two"): ("p2",)}
    grids = make_grids([Grade("q", "p1", "a", 0), Grade("q", "p2", "a", None)], None, ranked)
    assert mean_cover(cover_scores(grids, ranked, levels=(4,)), 4) == {"one": 0.0, "two": None}
    assert alpha_ndcg(grids.grids["q"], [("p1",), ("p2",)], level=4, k=20) == pytest.approx([0, math.nan], nan_ok=True)


def test_weights_count_and_retired_items_do_not() -> None:
    bank = Bank(
        (
            Item("skin", "a?", item_id="a", weight=3.0),
            Item("skin", "b?", item_id="b"),
            Item("skin", "c", item_id="c", retired=True),
        )
    )
    grids = make_grids(grades_of(skin=SKIN), bank, {("skin", "one"): ("p1",)})
    assert grids.unknown == 6
    assert mean_cover(cover_scores(grids, {("skin", "one"): ("p1",)}, levels=(4,)), 4) == {"one": 3 / 4}


def test_an_ungraded_pair_is_no_grade_of_0() -> None:
    grades = [
        entry for entry in grades_of(skin=SKIN) if (entry.passage_id, entry.item_id) not in {("p1", "b"), ("p2", "a")}
    ]
    ranked = {("skin", "one"): ("p1", "unseen"), ("skin", "two"): ("p2",)}
    grids = make_grids(grades, BANK, ranked)
    scores = cover_scores(grids, ranked, levels=(4,))
    at = scores.queries.index("skin")
    assert scores.pairs[:, at].tolist() == [8, 4]
    assert scores.graded[:, at].tolist() == [3, 3]
    assert scores.judgments[1][:, at].tolist() == [1, 1]  # nobody asked for grades of the unseen passage
    assert table(scores, "cover")[:, at, 0].tolist() == [2 / 3, 0.0]
    assert table(scores, "least")[:, at, 0].tolist() == [2 / 4, 0.0]
    assert table(scores, "possible")[:, at, 0].tolist() == [1.0, 1 / 4]
    labels = exam_labels(grids)
    assert (labels.labels["skin"], labels.partly, labels.ungraded) == ({"p1": 5, "p3": 0}, 1, 1)
    labels = exam_labels(grids, grade_to_label={0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1})
    assert labels.labels["skin"] == {"p1": 1, "p2": 1, "p3": 0}  # both 3 and 5 are label 1


def test_two_grades_of_one_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="two grades"):
        make_grids([Grade("q", "p", "a", 1), Grade("q", "p", "a", 2)])


@st.composite
def graded(draw: st.DrawFn) -> tuple[Grids, Rankings]:
    passages, items = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    table = draw(st.lists(st.integers(UNGRADED, 5), min_size=passages * items, max_size=passages * items))
    bank = Bank(
        tuple(
            Item("q", f"{item}?", item_id=str(item), weight=draw(st.sampled_from([1.0, 2.5]))) for item in range(items)
        )
    )
    entries = [
        Grade("q", str(at // items), str(at % items), grade) for at, grade in enumerate(table) if grade != UNGRADED
    ]
    rankings = {
        ("q", agent): tuple(map(str, draw(st.permutations(range(passages)))[: draw(st.integers(0, passages))]))
        for agent in "xy"
    }
    pool = {**rankings, ("q", "everything"): tuple(map(str, range(passages)))}
    return make_grids(entries, bank, pool), pool


@given(graded(), st.integers(1, 5))
def test_laws_of_cover(case: tuple[Grids, Rankings], k: int) -> None:
    grids, rankings = case
    fewer, more = (cover_scores(grids, rankings, levels=(1, 2, 3, 4, 5), k=depth) for depth in (k, k + 1))
    for scores in (fewer, more):
        cover, least, possible = (table(scores, measure) for measure in ("cover", "least", "possible"))
        normalised = table(scores, "normalised")
        whole = scores.judgments[1] == 0
        for ends in (least, possible):
            assert (np.diff(ends, axis=2) <= 0).all(), "a higher level covers no more"
            assert ((ends >= 0) & (ends <= 1 + 1e-12)).all()
        assert (least <= possible).all()
        assert (~np.isnan(cover))[whole].all()
        assert (normalised >= cover)[whole].all()
        assert (normalised <= 1 + 1e-12)[~np.isnan(normalised)].all()
        assert (least == cover)[whole].all()
        assert (possible == cover)[scores.graded == scores.pairs].all()
    assert (table(more, "least") >= table(fewer, "least")).all(), "more passages cover no less"
    assert (table(more, "normalised") >= table(fewer, "normalised"))[more.judgments[1] == 0].all()


@pytest.mark.parametrize(("share", "passages"), [(0.3, 4), (0.6, 1), (0.6, 2)])
def test_the_mean_cover_does_not_depend_on_how_many_grades_fail(share: float, passages: int) -> None:
    rng, queries, items = np.random.default_rng(7), 400, tuple(map(str, range(10)))
    names = tuple(f"p{number}" for number in range(passages))
    ranked = {(f"q{number}", "one"): names for number in range(queries)}
    chance = 1 - (1 - rng.beta(1.2, 2.8, queries)) ** (1 / passages)
    hits = rng.random((queries, passages, 10)) < chance[:, np.newaxis, np.newaxis]
    fails = rng.random(hits.shape) < share
    weights, asked = np.ones(10), np.ones(passages, np.bool_)

    def mean(lost: bool) -> float:
        grades = np.where(fails & lost, UNGRADED, 5 * hits).astype(np.int8)
        grids = Grids({f"q{at}": Grid(f"q{at}", names, items, own, weights, asked) for at, own in enumerate(grades)})
        value = mean_cover(cover_scores(grids, ranked, levels=(4,)), 4)["one"]
        assert value is not None
        return value

    assert mean(lost=True) == pytest.approx(mean(lost=False), abs=0.03)


@given(graded(), st.integers(1, 5), st.lists(st.integers(0, 5), min_size=25, max_size=25))
def test_whatever_the_missing_grades_were_the_bounds_hold_it(
    case: tuple[Grids, Rankings], k: int, replies: list[int]
) -> None:
    grids, rankings = case
    grid = grids.grids["q"]
    filled = np.where(grid.missing, np.resize(replies, grid.grades.shape), grid.grades).astype(np.int8)
    whole = replace(grids, grids={"q": replace(grid, grades=filled)})
    before, after = (cover_scores(own, rankings, k=k) for own in (grids, whole))
    for level, measures in before.by_level.items():
        (low, high), values = measures["cover"].bounds, after.by_level[level]["cover"].values
        assert ((low <= values + 1e-12) & (values <= high + 1e-12)).all()
        exact = low == high
        assert np.allclose(measures["cover"].values[exact], values[exact])


def test_labels_by_highest_grade_by_count_and_through_a_map() -> None:
    grids = make_grids(grades_of(skin=SKIN))
    assert exam_labels(grids).labels == {"skin": {"p1": 5, "p2": 4, "p3": 0}}
    assert exam_labels(grids, by="count", level=3).labels == {"skin": {"p1": 2, "p2": 2, "p3": 0}}
    steps = read_grade_map("0:0, 1-3:1,4:2,5:3")
    assert exam_labels(grids, grade_to_label=steps).labels == {"skin": {"p1": 3, "p2": 2, "p3": 0}}


@pytest.mark.parametrize("text", ["", "4", "4:x", "3-1:2", "1:1,1:2", "-1:0"])
def test_a_map_of_grades_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_grade_map(text)


def test_a_grade_that_the_map_forgets_is_refused() -> None:
    with pytest.raises(InputError, match="no label for 5"):
        exam_labels(make_grids(grades_of(skin=SKIN)), grade_to_label={0: 0, 4: 1})


def test_alpha_ndcg_by_hand() -> None:
    (grid,) = make_grids(
        grades_of(q={"p": {"a": 4, "b": 4}, "r": {"a": 4, "b": 0}, "s": {"a": 0, "b": 0}})
    ).grids.values()
    ideal = 2 + 0.5 / math.log2(3)
    assert alpha_ndcg(grid, [["p", "r", "s"]], level=4, k=3) == [pytest.approx(1.0)]
    assert alpha_ndcg(grid, [["r", "p"]], level=4, k=3) == [pytest.approx((1 + (0.5 + 1) / math.log2(3)) / ideal)]
    assert alpha_ndcg(grid, [["s", "p"], ["p"]], level=4, k=1) == [0.0, 1.0]
    assert alpha_ndcg(grid, [["r"], []], level=5, k=3) == [0.0, 0.0]


NDEVAL = [
    (0, 5, 0.382805),
    (0, 10, 0.459682),
    (1, 5, 0.652807),
    (1, 10, 0.640248),
    (2, 5, 0.857203),
    (2, 10, 0.910363),
    (3, 5, 0.692115),
    (3, 10, 0.673530),
    (4, 5, 0.614004),
    (4, 10, 0.686908),
]


def test_alpha_ndcg_gives_the_figures_of_ndeval() -> None:
    # pyndeval 0.0.8, alpha 0.5, on eight passages and four subtopics drawn with numpy's default_rng(seed).
    for seed, depth, figure in NDEVAL:
        covers = np.random.default_rng(seed).random((8, 4)) < 0.3
        table = {f"d{row}": {str(item): int(covers[row, item]) for item in range(4)} for row in range(8)}
        (grid,) = make_grids(grades_of(q=table)).grids.values()
        order = [f"d{row}" for row in np.random.default_rng(seed + 100).permutation(8)[:6]]
        assert alpha_ndcg(grid, [order], level=1, k=depth) == [pytest.approx(figure, abs=1e-6)]


@given(graded())
def test_alpha_ndcg_lies_between_0_and_1_but_for_the_greedy_ideal(case: tuple[Grids, Rankings]) -> None:
    grids, rankings = case
    for (query_id, _), ranking in rankings.items():
        (found,) = alpha_ndcg(grids.grids[query_id], [ranking], level=3, k=5)
        # How far the greedy order can be from the best; NaN where a grade is missing of every item that counts.
        assert 0 <= found <= 1 / (1 - 1 / math.e) or (math.isnan(found) and grids.grids[query_id].missing.any())


def test_tied_agents_share_the_average_place() -> None:
    assert places({"a": 0.5, "b": 0.1 + 0.2, "c": 0.3, "d": 0.1}) == {"a": 1, "b": 2.5, "c": 2.5, "d": 4}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_correlations_are_scipys(pairs: list[tuple[int, int]]) -> None:
    ours, theirs = ({str(at): float(pair[side]) for at, pair in enumerate(pairs)} for side in (0, 1))
    found = correlate(places(ours), places(theirs))
    if len(set(ours.values())) < 2 or len(set(theirs.values())) < 2:
        assert found.spearman is None
        assert found.kendall is None
    else:
        assert found.spearman == pytest.approx(spearmanr(*zip(*pairs, strict=True)).statistic)
        assert found.kendall == pytest.approx(kendalltau(*zip(*pairs, strict=True)).statistic)


def test_only_agents_on_both_leaderboards_are_compared_and_the_others_named() -> None:
    found = correlate({"a": 1, "b": 2, "x": 3}, {"b": 1, "a": 2, "y": 3})
    assert (found.n, found.kendall, found.only_first, found.only_second) == (2, -1.0, ("x",), ("y",))


def test_the_only_grader_that_rates_is_chosen_and_otherwise_the_user_must() -> None:
    rating, other, checks = Grader("t5", "rate"), Grader("gpt", "rate"), Grader("t5", "extract")
    entry = [Grade("q", "p", "a", 1)]
    assert Graded({rating: entry, checks: entry}, frozenset({rating})).chosen() == rating
    assert Graded({rating: entry, checks: entry}, frozenset({rating})).chosen(prompt="extract") == checks
    several = Graded({rating: entry, other: entry}, frozenset({rating, other}))
    assert several.chosen(llm="gpt") == other
    with pytest.raises(InputError, match="several graders match"):
        several.chosen()
    with pytest.raises(InputError, match="no grader has this model and prompt"):
        several.chosen(llm="llama")
