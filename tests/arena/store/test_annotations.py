"""What people say is kept as they said it: each by themselves, nothing lost, nothing twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.data.dataset import Dataset
from arena.data.kinds import Annotation, texts_digest
from arena.store import Store
from arena.store.annotations import Annotations, annotator_name
from judges.errors import InputError, StoreError
from judges.types import Query

DATA = Dataset({"q1": Query("q1", "why?")})
SAID = Annotation("nuggets", "ann", "q1", "x", "q1/abc", "texts-1", "support", 2.5, "2025-01-01T00:00:00.000+00:00")

SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    SCALARS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def store(store_location: str) -> Iterator[Store]:
    opened = Store.create(store_location)
    opened.begin("one", {}, DATA, [])
    yield opened
    opened.close()


@pytest.fixture
def kept(store: Store) -> Annotations:
    return Annotations(store, "one")


def test_what_is_said_comes_back_equal(kept: Annotations) -> None:
    grades = replace(SAID, kind="criteria", other="", value={"tone": 2, "depth": 0}, seconds=None)
    skipped = replace(SAID, item="y", value=None)
    assert kept.add([SAID, grades, skipped]) == 3
    assert kept.latest() == kept.history() == [SAID, grades, skipped]


def test_a_kind_that_nobody_knows_is_named_in_one_line(kept: Annotations) -> None:
    kept.add([replace(SAID, kind="mood")])
    with pytest.raises(StoreError, match="annotation 1 in the store is of the kind 'mood'; known are verdict, "):
        kept.latest()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(JSON_VALUES, min_size=1, max_size=5))
def test_the_latest_word_is_in_the_view_and_every_change_in_the_history(kept: Annotations, values: list[Any]) -> None:
    thing = replace(SAID, item=f"agent {len(kept.history())}")
    kept.add(replace(thing, value=value) for value in values)
    assert [said.value for said in kept.latest() if said.item == thing.item] == [values[-1]]
    history = [spelled(said.value) for said in kept.history() if said.item == thing.item]
    assert history == [word for word, _ in groupby(map(spelled, values))]


def spelled(value: Any) -> str:
    """A value so that True and 1 differ."""
    return json.dumps(value, sort_keys=True)


def test_a_double_click_is_kept_once_and_a_change_of_mind_back_is_not_lost(kept: Annotations) -> None:
    assert [kept.add([replace(SAID, seconds=seconds)]) for seconds in (1.0, 1.5)] == [1, 0]
    assert kept.add([replace(SAID, value="not_support")]) == 1
    assert kept.add([SAID]) == 1
    assert [said.value for said in kept.history()] == ["support", "not_support", "support"]


def test_annotators_kinds_and_texts_are_kept_apart(kept: Annotations, store: Store) -> None:
    others = [
        replace(SAID, annotator="bob", value="not_support"),
        replace(SAID, kind="relevance", value=1),
        replace(SAID, texts=texts_digest("the answer changed"), value="partial_support"),
        replace(SAID, other="q1/def", value=None),
    ]
    kept.add([SAID, *others])
    assert kept.latest() == [SAID, *others]
    assert kept.latest(annotator="bob") == others[:1]
    assert kept.latest("relevance", "ann") == [others[1]]
    assert kept.counts() == {("nuggets", "ann"): 2, ("nuggets", "bob"): 1, ("relevance", "ann"): 1}
    store.begin("two", {}, DATA, [])
    assert Annotations(store, "two").latest() == []


def test_the_same_word_of_the_same_thing_stands_in_each_tournament(kept: Annotations, store: Store) -> None:
    store.begin("two", {}, DATA, [])
    other = Annotations(store, "two")
    kept.add([SAID])
    other.add([replace(SAID, value="no_support")])
    assert kept.latest() == [SAID]
    assert [said.value for said in other.latest()] == ["no_support"]


def test_what_was_said_outlives_another_run(kept: Annotations, store: Store) -> None:
    kept.add([SAID])
    store.begin("one", {"k": 2}, Dataset({"q2": Query("q2", "how?")}), [])
    assert kept.latest() == [SAID]


def test_an_unknown_tournament_is_said(store: Store) -> None:
    with pytest.raises(InputError, match="no tournament named 'none'"):
        Annotations(store, "none").add([SAID])
    with pytest.raises(InputError, match="no tournament named 'none'"):
        Annotations(store, "none").latest()


@pytest.mark.parametrize("name", ["", " \n", "x" * 81])
def test_nobody_says_nothing(kept: Annotations, name: str) -> None:
    with pytest.raises(InputError, match="1 to 80 characters"):
        kept.add([replace(SAID, annotator=name)])
    assert kept.history() == []


def test_a_name_is_one_line_that_a_database_can_hold() -> None:
    assert annotator_name(" Ann \n O'Hara\0 \ud800 ") == "Ann O'Hara\ufffd \ufffd"


def test_the_digest_depends_on_every_text_and_where_it_ends() -> None:
    assert (
        len({texts_digest(*texts) for texts in (("ab", "c"), ("a", "bc"), ("abc",), ("c", "ab"), ("ab", "c", ""))}) == 5
    )


def test_the_time_is_the_store_s_where_none_is_given(kept: Annotations) -> None:
    kept.add([replace(SAID, at="")])
    (said,) = kept.latest()
    assert said.at.startswith("20")
    assert said.at.endswith("+00:00")


def test_of_two_windows_that_answer_at_once_one_is_refused(kept: Annotations, store_location: str) -> None:
    queries, both = [f"q{number}" for number in range(10)], threading.Barrier(2)

    def answered(window: str) -> list[bool]:
        with closing(Store.open(store_location)) as own:
            return [
                one_answer(Annotations(own, "one"), replace(SAID, query_id=asked, item=window)) for asked in queries
            ]

    def one_answer(annotations: Annotations, answer: Annotation) -> bool:
        def unless_said(said: list[Annotation]) -> None:
            if any(one.query_id == answer.query_id for one in said):
                raise InputError("answered in another window")

        both.wait()
        try:
            return annotations.add([answer], unless_said) == 1
        except InputError:
            return False

    with ThreadPoolExecutor(2) as windows:
        left, right = windows.map(answered, ("left", "right"))
    assert [one != other for one, other in zip(left, right, strict=True)] == [True] * len(queries)
    assert len(kept.history()) == len(queries)
