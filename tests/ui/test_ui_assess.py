"""The page on which people assign nuggets: blind, one answer at a time, and nothing said is lost."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from arena.people.votes import assignments_of
from arena.stages.nuggets.results import nugget_results
from arena.store import Store
from arena.store.annotations import Annotation, Annotations
from retrieval_eval.nuggets.types import Support
from tests.support.nugget_store import played_nugget_tournament
from tests.support.pages import page as drawn
from tests.support.pages import press, shown
from ui.data import LOCATION_VARIABLE


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the tournament that the page reads."""
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "store.db"))
    return tmp_path


def opened(name: str = "") -> AppTest:
    """The page as somebody of this name comes to it."""
    page = drawn("assess")
    return page.text_input(key="annotator").set_value(name).run(timeout=20) if name else page


def words(page: AppTest) -> str:
    assert not page.exception
    return shown(page)


def progress(page: AppTest) -> str:
    return str(page.get("progress")[0].proto.text)


def label_all(page: AppTest, *labels: Support) -> AppTest:
    for radio, label in zip(page.radio, labels, strict=True):
        radio.set_value(label)
    return press(page, "Save and go on")


def kept(folder: Path, *, history: bool = False) -> list[Annotation]:
    with closing(Store.open(str(folder / "store.db"))) as store:
        annotations = Annotations(store, "nuggets")
        return annotations.history() if history else annotations.latest()


FULL, PARTIAL, NONE = Support


def test_an_assessor_is_shown_no_agent_no_label_and_no_importance(here: Path) -> None:
    played_nugget_tournament(here, agents=("agent-one", "agent-two", "agent-three"))
    page = opened("ann")
    for _ in range(6):
        seen = words(page)
        assert "What of q" in seen
        assert "One says" in seen
        assert "1. it purrs" in seen
        assert "agent-" not in seen
        assert "vital" not in seen
        assert "okay" not in seen
        assert [radio.value for radio in page.radio] == [None] * 3
        page = label_all(page, FULL, NONE, NONE)
    assert "all 6 answers" in words(page)


def test_what_is_saved_is_kept_and_the_next_answer_comes(here: Path) -> None:
    played_nugget_tournament(here)
    page = opened("ann")
    assert progress(page) == "0 of 6 answers assessed"
    page = label_all(page, FULL, PARTIAL, NONE)
    assert progress(page) == "1 of 6 answers assessed"
    assert [radio.value for radio in page.radio] == [None] * 3
    said = kept(here)
    assert [own.value for own in said] == ["support", "partial_support", "not_support"]
    assert {own.annotator for own in said} == {"ann"}
    assert all(own.seconds is not None and own.seconds >= 0 for own in said)
    with closing(Store.open(str(here / "store.db"))) as store:
        results = nugget_results(store, "nuggets")
        assert results is not None
        (own,) = assignments_of(results.banks, store.dataset("nuggets").answers.values(), said)
    assert own.labels == (FULL, PARTIAL, NONE)


def test_an_answer_without_all_its_labels_is_not_saved(here: Path) -> None:
    played_nugget_tournament(here)
    page = opened("ann")
    page.radio[0].set_value(FULL)
    page = press(page, "Save and go on")
    assert "Nuggets without a label: 2" in words(page)
    assert page.radio[0].value == FULL
    assert kept(here) == []
    assert "without a label" not in words(label_all(page, FULL, NONE, NONE))


def test_a_second_thought_takes_the_place_of_the_first(here: Path) -> None:
    played_nugget_tournament(here)
    page = press(label_all(opened("ann"), FULL, NONE, NONE), "Back to the one before")
    assert [radio.value for radio in page.radio] == [FULL, NONE, NONE]
    page = label_all(page, FULL, FULL, NONE)
    assert progress(page) == "1 of 6 answers assessed"
    assert [own.value for own in kept(here)] == ["support", "not_support", "support"]
    assert len(kept(here, history=True)) == 4


def test_where_the_configuration_has_two_grades_two_are_offered(here: Path) -> None:
    played_nugget_tournament(here, nuggets={"judge": "words", "bank": "bank.jsonl", "assign": {"grades": 2}})
    page = opened("ann")
    assert [radio.options for radio in page.radio] == [["support", "no support"]] * 3
    assert "partial" not in words(page)


def test_a_tournament_without_nuggets_says_what_to_do(here: Path) -> None:
    played_nugget_tournament(here, nuggets=None, criteria={"judge": "words"})
    assert "There are no nuggets yet" in words(opened())
