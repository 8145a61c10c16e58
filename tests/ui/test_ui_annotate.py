"""The pages on which people judge: blind, one task at a time, and what is said is kept as it was meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from arena.people.votes import assignments_of
from arena.stages.nuggets.results import nugget_results
from arena.store import Store
from arena.store.annotations import Annotation, Annotations, Kind, texts_digest
from retrieval_eval.nuggets.types import Support
from tests.support.nugget_store import played_nugget_tournament
from tests.support.pages import page, press, sent, shown
from tests.support.sample_store import AGENTS, SETTINGS, write_store
from tests.support.stores import JUDGMENT, save
from ui import data
from ui.data import LOCATION_VARIABLE
from ui.views.annotate import settled as when_judged

FIRST, SECOND, TIE = "Answer 1 is better", "Answer 2 is better", "A tie"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_store(tmp_path / "s.db", queries=4, details={"note": "the judge's note"})
    monkeypatch.setenv(LOCATION_VARIABLE, str(path))
    return path


def opened(view: str, name: str) -> AppTest:
    return page(view).text_input(key="annotator").set_value(name).run(timeout=20)


def progress(run: AppTest) -> str:
    return str(run.get("progress")[0].proto.text)


def kept(store: Path, *, history: bool = False, tournament: str = "sample") -> list[Annotation]:
    with closing(Store.open(str(store))) as opened:
        annotations = Annotations(opened, tournament)
        return annotations.history() if history else annotations.latest()


def answers(run: AppTest) -> list[str]:
    """Who gave the answers shown, first and second."""
    return [line.split()[3] for line in shown(run).splitlines() if line.startswith("The answer of")]


@pytest.mark.parametrize("view", ["vote", "label", "grade"])
def test_nobody_sees_a_text_before_they_said_who_they_are(store: Path, view: str) -> None:
    assert "Enter your name" in shown(page(view))
    assert "notice period" not in sent(page(view))


@pytest.mark.parametrize(("label", "value"), [(FIRST, "A"), (SECOND, "B"), (TIE, "TIE")])
def test_a_vote_is_for_the_answer_that_was_shown(store: Path, label: str, value: str) -> None:
    run = opened("vote", "ann")
    assert progress(run) == "0 of 4 queries voted on"
    for _ in range(4):
        first, second = answers(run)
        run = press(run, label)
        said = kept(store)[-1]
        if said.query_id != "q00":  # there two agents give one answer
            assert (said.item, said.other) == (first, second)
        assert (said.value, said.annotator) == (value, "ann")
    assert "all 4 queries" in shown(run)
    assert len({said.query_id for said in kept(store)}) == 4


def test_voters_and_labellers_are_shown_no_agent_and_nothing_of_a_judge(tmp_path: Path, store: Path) -> None:
    agents = [f"secret-{number}" for number in range(4)]
    write_store(
        store, name="blind", agents=agents, queries=2, wording=lambda kind, text: kind if kind == "answer" else text
    )
    for view, label in (("vote", TIE), ("label", "Label 0"), ("grade", "Skip")):
        run = opened(view, "ann")
        for _ in range(3):
            seen = sent(run)
            assert "notice period" in seen or "You have been through" in seen
            for hidden in ("secret-", "weighed", "strict", "judge-1", "speaks of the case", "Preferred"):
                assert hidden not in seen
            run = press(run, label) if any(button.label == label for button in run.button) else run


def test_who_comes_back_goes_on_and_sees_the_same_and_others_begin_for_themselves(store: Path) -> None:
    stopped = press(press(opened("vote", "ann"), FIRST), SECOND)
    again = opened("vote", "ann")
    assert progress(again) == "2 of 4 queries voted on"
    assert shown(again) == shown(stopped)
    assert progress(opened("vote", "bob")) == "0 of 4 queries voted on"


def test_a_query_that_was_voted_on_with_another_pair_is_not_voted_on_twice(store: Path) -> None:
    run = opened("vote", "ann")
    (first, second) = answers(run)
    game = next(line for line in shown(run).splitlines() if "notice period" in line)
    query_id = game.rstrip("?").split()[-1]
    with closing(Store.open(str(store))) as opened_store:
        texts = opened_store.dataset("sample")
        others = next(pair for pair in combinations(sorted(AGENTS), 2) if set(pair) != {first, second})
        digest = texts_digest(texts.queries[query_id].text, *(texts.answers[query_id, own].text for own in others))
        said = Annotation(Kind.VERDICT, "ann", query_id, *others, digest, "A")
        Annotations(opened_store, "sample").add([said])
    run = press(run, FIRST)
    assert "two other answers to this query" in shown(run)
    assert [(own.item, own.other) for own in kept(store)] == [others]


def test_skipped_games_are_taken_up_and_a_second_thought_takes_the_place_of_the_first(store: Path) -> None:
    run = press(opened("vote", "ann"), "Skip")
    assert progress(run) == "0 of 4 queries voted on, 1 skipped"
    run = press(press(run, FIRST), "Back to the one before")
    assert "Go on where you stopped" in [button.label for button in run.button]
    run = press(run, TIE)
    for _ in range(2):
        run = press(run, SECOND)
    assert "all 4 queries" in shown(run)
    run = press(press(run, "Take up the 1 skipped"), FIRST)
    assert progress(run) == "4 of 4 queries voted on"
    assert [said.value for said in kept(store)] == ["TIE", "B", "B", "A"]
    assert len(kept(store, history=True)) == 6


def test_labels_are_those_of_the_scale_with_their_words(store: Path) -> None:
    run = opened("label", "ann")
    assert progress(run) == "0 of 20 documents labelled"
    assert [button.label for button in run.button][:3] == ["Label 0", "Label 1", "Label 2"]
    assert "very relevant" in shown(run)
    assert "Document q0" in shown(run)
    run = press(press(run, "Label 2"), "Skip")
    assert progress(run) == "1 of 20 documents labelled, 1 skipped"
    assert [said.value for said in kept(store)] == [2, None]
    assert kept(store)[0].item.startswith(kept(store)[0].query_id)


def grade(run: AppTest, *grades: Any) -> AppTest:
    """Choose a grade by each criterion, and save."""
    for field, chosen in zip(run.radio, grades, strict=True):
        if chosen is not None:
            field.set_value(chosen)
    return press(run, "Save and go on")


def test_grades_are_kept_by_criterion_and_read_by_calibrate(store: Path, cli: Any) -> None:
    run = opened("grade", "ann")
    assert progress(run) == "0 of 15 answers graded"  # of 16 two are one text
    assert "accuracy: what it says is true" in shown(run)
    run = grade(run, 2, None)
    assert "Criteria without a grade: 1" in shown(run)
    assert kept(store) == []
    run = grade(press(grade(run, 2, 0), "Skip"), 1, 1)
    assert progress(run) == "2 of 15 answers graded, 1 skipped"
    first, skipped, last = (said for said in kept(store) if said.query_id != "q00" or said.item != AGENTS[3])
    assert (first.value, skipped.value, last.value) == (
        {"accuracy": 2, "completeness": 0},
        None,
        {"accuracy": 1, "completeness": 1},
    )
    back = press(press(press(run, "Back to the one before"), "Back to the one before"), "Back to the one before")
    assert [field.value for field in back.radio] == [2, 0]
    grade(back, 1, 0)
    assert len(kept(store, history=True)) > len(kept(store))
    found = json.loads(cli("calibrate", store, "--json", "--samples", "50", "--method-samples", "0").out)
    (own,) = found["comparisons"]
    assert (own["level"], own["judges"]["strict"]["n"]) == (
        "criteria",
        2 * sum(said.value is not None for said in kept(store)),
    )


def test_words_of_a_scale_are_no_markup_and_bare_numbers_are_explained(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retrieval = SETTINGS["retrieval"]
    monkeypatch.setitem(SETTINGS, "retrieval", {**retrieval, "scale": {"**no**": 0, ":smile:": 1}})
    write_store(store, name="words", queries=1)
    run = opened("label", "ann")
    assert [button.label for button in run.button][:2] == ["Label 0", "Label 1"]
    assert {"**no**", ":smile:"} <= {text.value for text in run.text}
    monkeypatch.setitem(SETTINGS, "retrieval", {**retrieval, "scale": {"0": 0, "1": 1, "2": 2, "3": 3}})
    write_store(store, name="numbers", queries=1)
    assert "0 is not relevant at all, 3 is all" in shown(opened("label", "ann"))
    monkeypatch.setitem(SETTINGS, "retrieval", {"judge": "strict", "depth": None})
    write_store(store, name="a store from before scales were kept", queries=1)
    assert "0 is not relevant at all, 2 is all" in shown(opened("label", "ann"))


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ("vote", "No game has a verdict"),
        ("label", "No document has a label"),
        ("grade", "No answer has a grade"),
        ("assess", "There are no nuggets yet"),
    ],
)
def test_before_the_first_judgment_it_is_said_what_to_do(tmp_path: Path, store: Path, view: str, said: str) -> None:
    with closing(Store.open(str(store))) as opened_store:
        texts = opened_store.dataset("sample")
    with closing(Store.create(str(store))) as opened_store:
        opened_store.begin("new", SETTINGS | {"retrieval": None}, texts, [])
    assert said in shown(page(view))


def test_answers_of_one_text_are_said_to_be_one(store: Path) -> None:
    write_store(store, name="same", queries=1, wording=lambda kind, text: kind if kind == "answer" else text)
    assert "word for word" in shown(opened("vote", "ann"))


def test_what_others_say_makes_nothing_be_read_anew_and_a_judgment_does(store: Path) -> None:
    def now() -> tuple[data.Source, data.Source]:
        version, (name,) = data.tournaments()
        found = data.Source(str(store), version, name)
        return found, when_judged(found)

    found, settled = now()
    press(opened("vote", "bob"), FIRST)
    later, still = now()
    assert later.version != found.version, "calibration is to look again"
    assert still == settled
    with closing(Store.open(str(store))) as opened_store:
        save(opened_store, JUDGMENT)
    assert now()[1] != settled


FULL, PARTIAL, NONE = Support


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Plays a tournament with nuggets, which the pages then read; returns its store."""

    def play(**sections: Any) -> Path:
        played_nugget_tournament(tmp_path, **sections)
        monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "store.db"))
        return tmp_path / "store.db"

    return play


def test_an_assessor_is_shown_no_agent_no_label_and_no_importance(played: Callable[..., Path]) -> None:
    played(agents=("agent-one", "agent-two", "agent-three"))
    run = opened("assess", "ann")
    for _ in range(6):
        seen = shown(run)
        assert "What of q" in seen
        assert "One says" in seen
        assert "1. it purrs" in seen
        assert not any(hidden in seen for hidden in ("agent-", "vital", "okay"))
        assert [radio.value for radio in run.radio] == [None] * 3
        run = grade(run, FULL, NONE, NONE)
    assert "all 6 answers" in shown(run)


def test_labels_of_nuggets_are_kept_once_all_are_there_and_a_second_thought_takes_their_place(
    played: Callable[..., Path],
) -> None:
    store = played()
    run = grade(opened("assess", "ann"), FULL, None, None)
    assert "Nuggets without a label: 2" in shown(run)
    assert run.radio[0].value == FULL
    assert kept(store, tournament="nuggets") == []
    run = grade(run, FULL, PARTIAL, NONE)
    assert "without a label" not in shown(run)
    assert progress(run) == "1 of 6 answers assessed"
    said = kept(store, tournament="nuggets")
    assert {one.annotator for one in said} == {"ann"}
    assert all(one.seconds is not None and one.seconds >= 0 for one in said)
    with closing(Store.open(str(store))) as read:
        results = nugget_results(read, "nuggets")
        assert results is not None
        (own,) = assignments_of(results.banks, read.dataset("nuggets").answers.values(), said)
    assert own.labels == (FULL, PARTIAL, NONE)
    run = press(run, "Back to the one before")
    assert [radio.value for radio in run.radio] == [FULL, PARTIAL, NONE]
    grade(run, FULL, FULL, NONE)
    assert [one.value for one in kept(store, tournament="nuggets")] == ["support", "not_support", "support"]
    assert len(kept(store, tournament="nuggets", history=True)) == 4


def test_where_the_configuration_has_two_grades_two_are_offered(played: Callable[..., Path]) -> None:
    played(nuggets={"judge": "words", "bank": "bank.jsonl", "assign": {"grades": 2}})
    run = opened("assess", "ann")
    assert [radio.options for radio in run.radio] == [["support", "no support"]] * 3
    assert "partial" not in shown(run)
