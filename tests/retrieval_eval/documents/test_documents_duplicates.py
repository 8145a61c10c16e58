"""Near-duplicates: found, reported with the text they repeat, and never where texts are not as alike as asked."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_eval.documents.passages import NearDuplicates, Twin

LONG = " ".join(f"word{number}" for number in range(100))


def twins(texts: list[str], threshold: float, shingle: int = 5, *, same_numbers: bool = False) -> list[Twin]:
    alike = NearDuplicates(threshold, shingle, same_numbers=same_numbers)
    found = (alike.twin(str(place), text) for place, text in enumerate(texts))
    return [twin for twin in found if twin is not None]


def test_a_text_that_differs_in_a_word_is_a_twin_of_the_first() -> None:
    (twin,) = twins([LONG, "something else", LONG.replace("word99", "other")], 0.8)
    assert (twin.ident, twin.kept) == ("2", "0")
    assert twin.similarity == 95 / 97  # 96 shingles of five words each, of which the last one differs


def test_case_and_punctuation_make_no_difference() -> None:
    assert twins(["Ask, and wait for it to end!", "ask and WAIT for it: to end"], 1.0) == [Twin("1", "0", 1.0)]


def test_texts_below_the_threshold_are_kept() -> None:
    half = " ".join(LONG.split()[:50])
    assert twins([LONG, half], 0.6) == []
    (twin,) = twins([LONG, half], 0.4)
    assert twin.similarity == 46 / 96


def test_short_texts_are_compared_whole_and_empty_ones_not_at_all() -> None:
    assert twins(["two words", "two words", "two", "", "?!", ""], 0.9) == [Twin("1", "0", 1.0)]


def test_numbers_may_tell_texts_apart() -> None:
    questions = [f"Which package does the current sensor {name} come in?" for name in ("TLE4971", "TLE4972", "tle4971")]
    assert [twin.ident for twin in twins(questions, 0.7, 1)] == ["1", "2"]
    assert [twin.ident for twin in twins(questions, 0.7, 1, same_numbers=True)] == ["2"]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.text(alphabet="ab ", max_size=12), max_size=12), st.sampled_from([0.5, 0.8, 1.0]))
def test_what_is_reported_is_as_alike_as_asked_and_no_kept_text_repeats_another(
    texts: list[str], threshold: float
) -> None:
    found = twins(texts, threshold, 1)
    assert all(twin.similarity >= threshold and int(twin.kept) < int(twin.ident) for twin in found)
    kept = [text.split() for place, text in enumerate(texts) if str(place) not in {twin.ident for twin in found}]
    distinct = [frozenset(text) for text in kept if text]
    assert len(distinct) == len(set(distinct))
