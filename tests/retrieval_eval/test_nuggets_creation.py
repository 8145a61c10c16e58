"""Windows, the list, what is kept, and batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.nuggets.types import Importance, batches, kept_nuggets, updated_list, windows

VITAL, OKAY = Importance
IDS = st.lists(st.integers(0, 60).map(str), max_size=80)


@given(IDS, st.dictionaries(st.integers(0, 60).map(str), st.integers(0, 3)), st.integers(0, 3))
def test_windows_hold_every_relevant_document_once_in_the_order_of_ranks(
    ranked: list[str], labels: dict[str, int], least: int
) -> None:
    found = windows(ranked, labels, from_label=least)
    assert all(len(window) == 10 for window in found[:-1])
    assert all(1 <= len(window) <= 10 for window in found)
    read = [doc_id for window in found for doc_id in window]
    assert read == [doc_id for doc_id in dict.fromkeys(ranked) if labels.get(doc_id, -1) >= least]


def test_windows_begin_at_related_documents() -> None:
    assert windows(["a", "b", "c", "d"], {"a": 0, "b": 1, "d": 3}) == [("b", "d")]


@given(st.lists(st.text("aB \n", max_size=4), max_size=60), st.integers(1, 30))
def test_a_list_is_short_without_repetition_and_in_the_judges_order(reply: list[str], most: int) -> None:
    found = updated_list(reply, most=most)
    assert len(found) <= most
    assert len({text.casefold() for text in found}) == len(found)
    assert all(text and text == " ".join(text.split()) for text in found)
    places = [next(at for at, text in enumerate(reply) if " ".join(text.split()) == own) for own in found]
    assert places == sorted(places)
    assert updated_list(found, most=most) == found


def test_a_list_holds_at_most_thirty() -> None:
    assert updated_list(f"fact {place}" for place in range(40)) == tuple(f"fact {place}" for place in range(30))


@given(st.lists(st.tuples(st.text(min_size=1), st.sampled_from(Importance)), max_size=30), st.integers(0, 30))
def test_vital_nuggets_are_kept_first_and_each_in_order(nuggets: list[tuple[str, Importance]], keep: int) -> None:
    found = kept_nuggets([text for text, _ in nuggets], [own for _, own in nuggets], keep=keep)
    whole = [entry for own in (VITAL, OKAY) for entry in nuggets if entry[1] is own]
    assert found == whole[:keep]


def test_twenty_are_kept() -> None:
    texts = [str(place) for place in range(30)]
    found = kept_nuggets(texts, [OKAY] * 15 + [VITAL] * 15)
    assert [text for text, _ in found] == [*texts[15:], *texts[:5]]


def test_labels_that_do_not_match_the_nuggets_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        kept_nuggets(["a", "b"], [VITAL])


@given(st.lists(st.integers(), max_size=45), st.integers(1, 12))
def test_batches_are_full_but_for_the_last_and_lose_nothing(items: list[int], size: int) -> None:
    found = batches(items, size)
    assert [item for batch in found for item in batch] == items
    assert all(len(batch) == size for batch in found[:-1])
    assert all(found)


def test_a_batch_holds_ten_and_at_least_one() -> None:
    assert [len(batch) for batch in batches(range(25))] == [10, 10, 5]
    with pytest.raises(ValueError, match="at least one"):
        batches([1], 0)
