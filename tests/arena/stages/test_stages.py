"""Which judgments a tournament wants, and what each judge is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from arena.run.judging import load_data
from arena.stages.together import TournamentStages
from arena.store import IDENTICAL, Wanted
from judges.types import JudgeFailure, Judgment, Prompt, Task
from tests.support.tournaments import AGENTS, configured, write_data

GAME = Wanted(Task.PAIRWISE, "judge", "q1", "x", "y", "ab")
GAME_XZ = Wanted(Task.PAIRWISE, "judge", "q1", "x", "z", "ab")
GRADES = Wanted(Task.CRITERIA, "judge", "q1", "x")
LABELLED = {("q1", f"q1-{name}"): label for name, label in (("all", 2), ("x", 1), ("y", 0), ("z", 2))}


def opened(folder: Path, labels: dict[tuple[str, str], Any] | None = None, **sections: Any) -> TournamentStages:
    config = configured(folder, **sections)
    stages = TournamentStages(config, load_data(config))
    stages.labels.results.update({key: judged(value) for key, value in (labels or {}).items()})
    return stages


def judged(value: Any) -> Judgment | JudgeFailure | None:
    if isinstance(value, int):
        return Judgment("", value, f"labelled {value}", "", "m")
    return value if value is None else JudgeFailure("", value, "failed")


def shown(prompt: Prompt | None) -> list[str]:
    assert prompt is not None
    return [entry.document.doc_id for entry in prompt.inputs.documents]


@pytest.fixture(autouse=True)
def data(tmp_path: Path) -> None:
    write_data(tmp_path)


def test_wants_come_stage_by_stage_and_query_by_query(tmp_path: Path) -> None:
    wants = list(opened(tmp_path).wants())
    assert [want.task for want in wants] == [Task.RELEVANCE] * 8 + [Task.PAIRWISE] * 12 + [Task.CRITERIA] * 6
    assert [want.item for want in wants[:4]] == ["q1-all", "q1-x", "q1-y", "q1-z"]
    assert wants[8:11] == [GAME, Wanted(Task.PAIRWISE, "judge", "q1", "x", "y", "ba"), GAME_XZ]
    assert wants[20] == GRADES
    assert len(set(wants)) == len(wants)


def test_a_stage_that_is_left_out_wants_nothing(tmp_path: Path) -> None:
    alone = opened(tmp_path, retrieval=None, criteria=None)
    assert alone.tasks == [Task.PAIRWISE]
    assert {want.task for want in alone.wants()} == {Task.PAIRWISE}
    assert list(opened(tmp_path, retrieval=None, criteria=None, pairwise=None).wants()) == []


def test_every_judge_is_wanted_for_every_game(tmp_path: Path) -> None:
    judges = {"judge": {"provider": "lexical"}, "other": {"provider": "lexical"}}
    wants = list(opened(tmp_path, judges=judges, pairwise={"judges": ["judge", "other"]}).wants())
    assert [want.judge for want in wants if want.task is Task.PAIRWISE] == ["judge", "other"] * 12


def test_an_agent_without_an_answer_plays_and_is_graded_only_where_it_answered(tmp_path: Path) -> None:
    write_data(tmp_path, answers={})
    lines = (tmp_path / "answers.csv").read_text().splitlines()
    (tmp_path / "answers.csv").write_text("\n".join(line for line in lines if not line.startswith("q1,z")) + "\n")
    wants = list(opened(tmp_path).wants())
    assert [want.item for want in wants if want.task is Task.CRITERIA and want.query_id == "q1"] == ["x", "y"]
    assert sum(want.task is Task.PAIRWISE and want.query_id == "q1" for want in wants) == 2
    assert Wanted(Task.RELEVANCE, "judge", "q1", "q1-z") in wants


def test_a_game_shows_its_answers_in_its_order(tmp_path: Path) -> None:
    ready = opened(tmp_path, retrieval=None)
    for order, agents in (("ab", ["x", "y"]), ("ba", ["y", "x"])):
        prompt = ready.prompt(Wanted(Task.PAIRWISE, "judge", "q1", "x", "y", order))
        assert prompt is not None
        assert [answer.agent for answer in prompt.inputs.answers] == agents
        assert prompt.user.index(prompt.inputs.answers[0].text) < prompt.user.index(prompt.inputs.answers[1].text)


def test_a_game_shows_what_its_two_agents_retrieved_and_grades_what_anybody_did(tmp_path: Path) -> None:
    ready = opened(tmp_path, dict.fromkeys(LABELLED, 2))
    assert shown(ready.prompt(GAME)) == ["q1-all", "q1-x", "q1-y"]
    assert shown(ready.prompt(GRADES)) == ["q1-all", "q1-x", "q1-y", "q1-z"]


@pytest.mark.parametrize(
    ("threshold", "game", "grades"),
    [
        (0, ["q1-all", "q1-x", "q1-y"], ["q1-all", "q1-z", "q1-x", "q1-y"]),
        (1, ["q1-all", "q1-x"], ["q1-all", "q1-z", "q1-x"]),
        (2, ["q1-all"], ["q1-all", "q1-z"]),
        (3, [], []),
    ],
)
def test_only_documents_at_the_threshold_are_shown(
    tmp_path: Path, threshold: int, game: list[str], grades: list[str]
) -> None:
    documents = {"documents": {"threshold": threshold}}
    ready = opened(
        tmp_path, LABELLED, pairwise={"judges": "judge", **documents}, criteria={"judge": "judge", **documents}
    )
    assert shown(ready.prompt(GAME)) == game
    assert shown(ready.prompt(GRADES)) == grades


def test_the_relevance_judges_reasons_are_shown_on_request(tmp_path: Path) -> None:
    def user(annotations: bool) -> str:
        documents = {"threshold": 1, "annotations": annotations}
        prompt = opened(tmp_path, LABELLED, pairwise={"judges": "judge", "documents": documents}).prompt(GAME)
        assert prompt is not None
        return prompt.user

    assert ("labelled 2" in user(True), "labelled 2" in user(False)) == (True, False)
    assert "labelled 0" not in user(True)


def test_no_document_is_waited_for_where_none_is_shown(tmp_path: Path) -> None:
    ready = opened(tmp_path, pairwise={"judges": "judge", "documents": {"include": False}})
    assert shown(ready.prompt(GAME)) == []
    assert ready.prompt(GRADES) is None


def test_without_a_relevance_judge_every_document_is_shown(tmp_path: Path) -> None:
    ready = opened(tmp_path, retrieval=None, pairwise={"judges": "judge", "documents": {"threshold": 9}})
    assert shown(ready.prompt(GAME)) == ["q1-all", "q1-x", "q1-y"]


@pytest.mark.parametrize("missing", [None, "timeout", "budget", "authentication", "stopped"])
def test_a_want_waits_for_its_documents_labels(tmp_path: Path, missing: str | None) -> None:
    ready = opened(tmp_path, LABELLED | {("q1", "q1-y"): missing})
    assert ready.prompt(GAME) is None
    assert ready.prompt(GRADES) is None
    assert shown(ready.prompt(GAME_XZ)) == ["q1-all", "q1-z", "q1-x"]
    unlabelled = opened(tmp_path)
    assert unlabelled.prompt(GAME) is None
    assert unlabelled.prompt(Wanted(Task.RELEVANCE, "judge", "q1", "q1-y")) is not None


@pytest.mark.parametrize("cause", ["contract", "refusal", "content_filter", "truncated", "empty", "bad_request"])
def test_a_document_that_cannot_be_labelled_is_left_out(tmp_path: Path, cause: str) -> None:
    ready = opened(tmp_path, LABELLED | {("q1", "q1-x"): cause})
    assert shown(ready.prompt(GAME)) == ["q1-all"]
    ready.labels.assume = True
    assert shown(ready.prompt(GAME)) == ["q1-all"]


def test_for_an_estimate_unknown_documents_count_as_relevant(tmp_path: Path) -> None:
    ready = opened(tmp_path, {("q1", "q1-all"): 0, ("q1", "q1-x"): "timeout"})
    ready.labels.assume = True
    assert shown(ready.prompt(GAME)) == ["q1-x", "q1-y"]


def test_documents_below_the_depth_are_neither_labelled_nor_shown(tmp_path: Path) -> None:
    ready = opened(tmp_path, LABELLED, retrieval={"judge": "judge", "depth": 1})
    assert [want.item for want in ready.wants() if want.task is Task.RELEVANCE] == ["q1-all", "q2-all"]
    assert shown(ready.prompt(GAME)) == ["q1-all"]


def test_documents_that_name_no_agent_were_given_to_all(tmp_path: Path) -> None:
    (tmp_path / "documents.csv").write_text("qid,did,document\nq1,one,First.\nq1,two,Second.\nq2,three,Third.\n")
    ready = opened(tmp_path, {("q1", "one"): 2, ("q1", "two"): 1})
    assert [want.item for want in ready.wants() if want.task is Task.RELEVANCE] == ["one", "two", "three"]
    assert shown(ready.prompt(GAME)) == shown(ready.prompt(GRADES)) == ["one", "two"]
    assert [want.item for want in ready.wants() if want.task is Task.CRITERIA] == [*AGENTS, *AGENTS]


def test_only_the_same_text_is_the_same_answer(tmp_path: Path) -> None:
    write_data(tmp_path, answers={("q1", "x"): "Same.", ("q1", "y"): "Same.", ("q1", "z"): "Same. "})
    ready = opened(tmp_path)
    assert ready.free(GAME) == IDENTICAL
    assert ready.free(GAME_XZ) is None
