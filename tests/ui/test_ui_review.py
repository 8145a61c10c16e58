"""The pages on which people judge: blind, one task at a time, and what is said is kept as it was meant."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from arena.data.kinds import Annotation, texts_digest
from arena.people.votes import assignments_of
from arena.results.agreement import compare_with_people
from arena.results.nuggets import nugget_results
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.nuggets.types import Support
from tests.support.nugget_store import played_nugget_tournament
from tests.support.pages import page, press, sent, shown
from tests.support.sample_store import AGENTS, write_store
from tests.support.tournaments import configured, write_data
from tests.support.tournaments import run as run_tournament
from ui.data import LOCATION_VARIABLE

FIRST, SECOND, TIE = "Answer 1 is better", "Answer 2 is better", "Neither is better"


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
    passages = [re.sub("<[^>]*>", "", own.proto.body) for own in run.get("html") if 'class="passage"' in own.proto.body]
    return [text.split()[3] for text in passages if text.startswith("The answer of")]


@pytest.mark.parametrize(
    ("view", "prompt", "seen"),
    [("vote", "pairwise@2", True), ("vote", "of-my-own@1", False), ("vote", "", False), ("label", "pairwise@2", False)],
)
def test_people_see_a_reference_answer_where_the_judge_saw_it(store: Path, view: str, prompt: str, seen: bool) -> None:
    write_store(store, queries=4, reference="Sixty days.", prompt=prompt)
    assert ("Sixty days." in sent(opened(view, "ana"))) is seen


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
        store, name="blind", agents=agents, queries=4, wording=lambda kind, text: kind if kind == "answer" else text
    )
    for view, label in (("vote", TIE), ("label", "0: not relevant"), ("grade", "Skip")):
        run = opened(view, "ann")
        for _ in range(3):
            seen = sent(run)
            assert "notice period" in seen
            for hidden in ("secret-", "weighed", "strict", "judge-1", "speaks of the case", "Preferred"):
                assert hidden not in seen
            run = press(run, label)


def test_a_query_that_was_voted_on_with_another_pair_is_not_voted_on_twice(store: Path) -> None:
    run = opened("vote", "ann")
    (first, second) = answers(run)
    game = next(line for line in shown(run).splitlines() if "notice period" in line)
    query_id = game.rstrip("?").split()[-1]
    with closing(Store.open(str(store))) as opened_store:
        texts = opened_store.dataset("sample")
        others = next(pair for pair in combinations(sorted(AGENTS), 2) if set(pair) != {first, second})
        digest = texts_digest(texts.queries[query_id].text, *(texts.answers[query_id, own].text for own in others))
        said = Annotation("verdict", "ann", query_id, *others, digest, "A")
        Annotations(opened_store, "sample").add([said])
    run = press(run, FIRST)
    assert "two other answers to this query" in shown(run)
    assert [(own.item, own.other) for own in kept(store)] == [others]


def test_skipped_games_are_taken_up_and_a_second_thought_takes_the_place_of_the_first(store: Path) -> None:
    run = press(opened("vote", "ann"), "Skip")
    assert progress(run) == "0 of 4 queries voted on, 1 skipped"
    run = press(press(press(run, FIRST), "Undo"), TIE)
    for _ in range(2):
        run = press(run, SECOND)
    assert "all 4 queries" in shown(run)
    run = press(press(run, "Take up the 1 skipped"), FIRST)
    assert progress(run) == "4 of 4 queries voted on"
    assert [said.value for said in kept(store)] == ["TIE", "B", "B", "A"]
    assert len(kept(store, history=True)) == 7


def test_labels_are_those_of_the_scale_with_their_words(store: Path) -> None:
    run = opened("label", "ann")
    assert progress(run) == "0 of 20 documents labelled"
    assert [button.label for button in run.button][:3] == [
        "0: not relevant",
        "1: somewhat relevant",
        "2: very relevant",
    ]
    assert "Document q0" in shown(run)
    run = press(press(run, "2: very relevant"), "Skip")
    assert progress(run) == "1 of 20 documents labelled, 1 skipped"
    assert [said.value for said in kept(store)] == [2, None]
    assert kept(store)[0].item.startswith(kept(store)[0].query_id)


def grade(run: AppTest, *grades: Any) -> AppTest:
    """Choose a grade by each criterion, and save."""
    for field, chosen in zip(run.radio, grades, strict=True):
        if chosen is not None:
            field.set_value(chosen)
    return press(run, "Save")


def test_grades_are_kept_by_criterion_and_read_by_calibrate(store: Path, cli: Any) -> None:
    run = opened("grade", "ann")
    assert progress(run) == "0 of 15 answers graded"  # of 16 two are one text
    assert "accuracy: what it says is true" in shown(run)
    run = grade(run, 2, None)
    assert "Without a choice: 1" in shown(run)
    assert kept(store) == []
    run = grade(press(grade(run, 2, 0), "Skip"), 1, 1)
    assert progress(run) == "2 of 15 answers graded, 1 skipped"
    first, skipped, last = (said for said in kept(store) if said.query_id != "q00" or said.item != AGENTS[3])
    assert (first.value, skipped.value, last.value) == (
        {"accuracy": 2, "completeness": 0},
        None,
        {"accuracy": 1, "completeness": 1},
    )
    back = press(press(press(run, "Undo"), "Undo"), "Undo")
    assert [field.value for field in back.radio] == [2, 0]
    grade(back, 1, 0)
    assert len(kept(store, history=True)) > len(kept(store))
    found = json.loads(cli("calibrate", store, "--format", "json", "--samples", "50", "--method-samples", "0").out)
    (own,) = found["comparisons"]
    assert (own["level"], own["judges"]["strict"]["n"]) == (
        "criteria",
        2 * sum(said.value is not None for said in kept(store)),
    )


def test_undo_takes_back_one_after_another_and_goes_on_from_there(store: Path) -> None:
    run = press(press(press(opened("vote", "ann"), FIRST), SECOND), "Undo")
    assert "Taken back" in shown(run)
    assert progress(run) == "1 of 4 queries voted on, 1 skipped"
    run = press(run, "Undo")
    assert [said.value for said in kept(store)] == [None, None]
    run = press(run, TIE)
    assert f"Saved: {TIE}" in shown(run)
    run = press(run, SECOND)
    assert [said.value for said in sorted(kept(store, history=True), key=lambda said: said.at)][-2:] == ["TIE", "B"]
    assert progress(run) == "2 of 4 queries voted on"
    assert progress(press(opened("vote", "ann"), "Undo")) == "1 of 4 queries voted on, 1 skipped", "in a new window too"


def test_agreement_with_the_judge_is_told_at_the_end_and_not_before(store: Path) -> None:
    run = opened("vote", "ann")
    for label in (FIRST, SECOND, TIE, FIRST):
        assert "You agree" not in shown(run)
        run = press(run, label)
    assert f"You agree with strict on {100 * calibrated(store):.0f}% (" in shown(run)
    assert "of its 8 judgments, each order of a game counted." in shown(run)


def calibrated(store: Path) -> float:
    with closing(Store.open(str(store))) as opened_store:
        (found,), *_ = compare_with_people(opened_store, "sample")
    share = found.judges["strict"].votes.share.value
    assert share is not None
    return share


def test_a_vote_is_kept_in_the_tournament_that_was_shown(store: Path) -> None:
    write_store(store, name="other", queries=4)  # the same texts
    run = opened("vote", "ann")
    with closing(Store.open(str(store))) as opened_store:
        shown_first = opened_store.rated_tournaments()[-1]
    assert shown_first == "other"
    press(run, FIRST)
    assert len(kept(store, tournament="other")) == 1
    assert kept(store, tournament="sample") == []


def test_a_statement_is_checked_against_its_document_blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both texts may be the same, and neither is an answer."""
    write_data(tmp_path, ["q1"], answers={("q1", "x"): "About q1, as all tells it. [1]"})
    config = configured(tmp_path, **dict.fromkeys(("retrieval", "pairwise", "criteria")), support={"judge": "judge"})
    run_tournament(config)
    monkeypatch.setenv(LOCATION_VARIABLE, config.store)
    run = opened("check", "ann")
    seen = shown(run)
    assert seen.count("About q1, as all tells it.") == 2
    assert not any(said in seen for said in ("word for word", "answers", "[1]", "x says"))
    assert progress(run) == "0 of 1 statements checked"
    press(run, "It says all")
    (said,) = kept(Path(config.store), tournament="small")
    assert (said.kind, said.value) == ("support", 2)


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
    assert "Without a choice: 2" in shown(run)
    assert run.radio[0].value == FULL
    assert kept(store, tournament="nuggets") == []
    run = grade(run, FULL, PARTIAL, NONE)
    assert "Without a choice" not in shown(run)
    assert progress(run) == "1 of 6 answers assessed"
    said = kept(store, tournament="nuggets")
    assert {one.annotator for one in said} == {"ann"}
    assert all(one.seconds is not None and one.seconds >= 0 for one in said)
    with closing(Store.open(str(store))) as read:
        results = nugget_results(read, "nuggets")
        assert results is not None
        (own,) = assignments_of(results.banks, read.dataset("nuggets").answers.values(), said)
    assert own.labels == (FULL, PARTIAL, NONE)
    run = press(run, "Undo")
    assert [radio.value for radio in run.radio] == [FULL, PARTIAL, NONE]
    grade(run, FULL, FULL, NONE)
    assert [one.value for one in kept(store, tournament="nuggets")] == ["support", "support", "not_support"]
    assert len(kept(store, tournament="nuggets", history=True)) == 9
