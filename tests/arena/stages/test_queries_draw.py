"""The laws of the draw: seeded, without replacement, never above a quota, whatever the order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from arena.stages.queries.candidates import by_quota, drawn, sampled_passages
from judges.types import Document

ids = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), unique=True, max_size=60)
quotas = st.dictionaries(st.sampled_from("abc"), st.integers(1, 20), min_size=1)
Query = tuple[str, int]


def draw(items: list[Query], seed: int, wanted: dict[str, int]) -> list[Query]:
    return by_quota(drawn(items, seed, str), wanted, lambda item: item[0])


@given(ids, st.integers(0, 9), quotas, st.randoms())
def test_a_draw_fills_quotas_without_replacement_and_in_any_order_the_same(
    items: list[Query], seed: int, wanted: dict[str, int], order: object
) -> None:
    chosen = draw(items, seed, wanted)
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(items)
    there, counts = Counter(model for model, _ in items), Counter(model for model, _ in chosen)
    assert counts == {model: min(quota, there[model]) for model, quota in wanted.items() if there[model]}
    shuffled = list(items)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert draw(shuffled, seed, wanted) == chosen


@given(ids, st.integers(0, 9), quotas)
def test_what_is_taken_away_changes_a_draw_only_where_it_stood(
    items: list[Query], seed: int, wanted: dict[str, int]
) -> None:
    chosen = draw(items, seed, wanted)
    for gone in chosen[:3]:
        again = draw([item for item in items if item != gone], seed, wanted)
        assert set(chosen) - {gone} <= set(again)
        assert len(set(again) - set(chosen)) <= 1


def test_another_seed_draws_others_and_every_item_about_as_often() -> None:
    items = [("a", number) for number in range(20)]
    drawn_by_seed = [frozenset(draw(items, seed, {"a": 5})) for seed in range(400)]
    assert len(set(drawn_by_seed)) > 390
    counts = Counter(item for chosen in drawn_by_seed for item in chosen)
    assert all(60 < counts[item] < 145 for item in items)  # 100 expected, five standard deviations of 8.7 around it


def test_without_quotas_all_are_taken() -> None:
    assert by_quota([("a", 1), ("b", 2)], {}, lambda item: item[0]) == [("a", 1), ("b", 2)]


def test_a_sample_of_passages_grows_without_changing_what_it_has() -> None:
    passages = [Document(f"d{number}", "text") for number in range(30)]
    few, more = (sampled_passages(passages, number, 7) for number in (5, 12))
    assert more[:5] == few
    assert sampled_passages(passages[::-1], 5, 7) == few
    assert sampled_passages(passages, 5, 8) != few
