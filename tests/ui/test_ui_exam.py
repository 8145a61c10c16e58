"""The page "Exam": its figures are the leaderboard's, and what is missing or not known is said."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.config.whole import Config
from arena.data.dataset import Dataset
from arena.stages.exam.stored import stored_scores
from arena.stages.exam.study import ExamScores
from arena.store import Store
from judges.types import Query
from tests.support.exams import LAYERS, ORGAN, PIONEERS, exam_config, graded, write_bank_csv, write_exam
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.pages import page, shown, start_on, table
from tests.support.sample_store import SETTINGS


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-dummy")


def judge(call: Call) -> Reply:
    """By hand: the epidermis covers LAYERS, everything by `one` ORGAN a little, Elvis fails, nothing else covers."""
    asked: str = call.body["messages"][1]["content"]
    if "epidermis" in asked and LAYERS in asked:
        return Reply("5")
    if PIONEERS in asked:
        return Reply("4 out of 5")
    return Reply("2" if "an organ of ours" in asked else "0")


def judged(folder: Path, script: Any = judge, **section: Any) -> Config:
    with LLMServer(script) as server:
        config = exam_config(folder, server.openai_url, **section)
        graded(config)
    return config


def scores_of(config: Config) -> ExamScores:
    with closing(Store.open(config.store)) as store:
        found = stored_scores(store, config.name)
    assert found is not None
    return found


def test_cover_at_every_grade_is_the_leaderboards_and_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_exam(tmp_path)
    config = judged(tmp_path)
    start_on(monkeypatch, config)
    run = page("exam")
    grades, cover = table(run, "Grade 5 or more").set_index("Agent"), table(run, "Cover@20")
    one, two = (cover.set_index("Agent").loc[agent] for agent in ("one", "two"))
    assert list(grades.loc["one"]) == [0.5, 0.5, 0.25, 0.25, 0.25]
    assert (one["Cover@20"], one["95% interval"], one["At most"]) == (0.25, "0.001 to 0.990", 0.75)
    assert (one["Graded"], two["Graded"]) == (80.0, 100.0)
    scores = scores_of(config)
    assert list(cover["Agent"]) == list(scores.places(4))
    assert one["alpha-nDCG@20"] == round(scores.means("alpha_ndcg", 4)["one"].value, 6)
    assert "1 of 7 pairs of passage and item have no grade" in run.warning[0].value


def test_a_query_shows_its_grid_and_the_answers_beside_the_grades(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ("qid", "question", "answers", "secret")
    items = [("skin", LAYERS, "epidermis", None), ("skin", ORGAN, "yes", "true"), ("rock", PIONEERS, "Elvis", None)]
    write_exam(tmp_path, items, columns)

    def script(call: Call) -> Reply:
        asked: str = call.body["messages"][1]["content"]
        return Reply("the **epidermis** $" if "epidermis" in asked else "unanswerable")

    start_on(monkeypatch, judged(tmp_path, script, grading="extraction_words"))
    run = page("exam")
    assert list(table(run, "No.")["Item"]) == [LAYERS, "(secret)"]
    grid = shown(run).split("Grades of passages by items")[-1].split()
    cells = [word for word in grid if word.startswith("skin/") or word in "01-"]
    assert cells[cells.index("skin/one#1") :][:9] == [
        "skin/one#1",
        "1",
        "0",
        "skin/one#2",
        "0",
        "0",
        "skin/two#1",
        "0",
        "0",
    ]
    answers = table(run, "Answer or reason")
    assert list(answers["Answer or reason"].fillna("")) == ["the **epidermis** $", "", ""]
    assert answers["Text"][0] == "The epidermis is outside."
    run.selectbox(key="item-0").select_index(1).run(timeout=20)
    assert "Answer or reason" not in table(run, "Passage", "Text")
    assert "What was answered to a secret item is not shown" in shown(run)
    run.query_params["item-0"] = "3: gone"
    assert "not here, so it was left out: Item" in shown(run.run(timeout=20))
    run.selectbox(key="query").select("rock").run(timeout=20)
    assert PIONEERS in shown(run)
    assert list(table(run, "No.")["Item"]) == [PIONEERS]


@pytest.mark.parametrize("name", ["exam", "bank"])
def test_a_tournament_without_an_exam_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with closing(Store.create(str(tmp_path / "exam.db"))) as store:
        store.begin("empty", SETTINGS, Dataset({"q": Query("q", "why?")}), [])
    start_on(monkeypatch, exam_config(tmp_path))
    assert "Give its YAML file an `exam` section" in shown(page(name))


def test_items_that_nobody_wrote_yet_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_exam(tmp_path)
    config = judged(tmp_path, lambda _: Reply("down", status=401), generate={"per_query": 2})
    start_on(monkeypatch, config, editable=True)
    assert "No item of the test bank is written yet" in shown(page("exam"))
    assert "A judge writes this bank, and has not yet" in shown(page("bank"))


def test_answers_without_passages_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_exam(tmp_path)
    (tmp_path / "answers.csv").write_text("qid,agent,answer\nskin,one,\nrock,one,Elvis.\n")
    write_bank_csv(tmp_path, [("skin", LAYERS), ("rock", PIONEERS)])
    start_on(monkeypatch, judged(tmp_path, steady_judge))
    assert "Nothing was there to be graded for this query" in shown(page("exam"))
