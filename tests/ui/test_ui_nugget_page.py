"""The page of nuggets: what the scores say, and edits that go to the file and nowhere else."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from arena.config.schema import load_config
from arena.data.safe_files import history
from arena.results.nuggets import nugget_results
from arena.store import Store
from judges.types import Task
from retrieval_eval.nuggets.files import read_banks
from tests.support.llm_server import LLMServer
from tests.support.nugget_judge import nugget_judge, shown_nuggets
from tests.support.nugget_store import played_nugget_tournament, write_nugget_tournament
from tests.support.pages import page as drawn
from tests.support.pages import press, shown, table, unfolded
from tests.support.tournaments import calls, run, write_data
from ui.data import LOCATION_VARIABLE
from ui.editing import CONFIG_VARIABLE


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the tournament that the page reads and may edit."""
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "store.db"))
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "t.yaml"))
    return tmp_path


def opened(query: str = "q1: What of q1?") -> AppTest:
    return drawn("nuggets", query=query)


def words(page: AppTest) -> str:
    assert not page.exception
    return shown(page)


def choose(page: AppTest, *places: int) -> AppTest:
    return page.multiselect[0].set_value(list(places)).run(timeout=20)


def drafted(page: AppTest) -> list[tuple[str, str]]:
    """The nuggets in the editor, each with its importance."""
    own = table(page, "Nugget", "Importance")
    return list(zip(own["Nugget"], own["Importance"], strict=True))


def test_a_query_that_the_file_leaves_out_can_be_given_nuggets(here: Path) -> None:
    config = write_nugget_tournament(here)
    (here / "bank.jsonl").write_text((here / "bank.jsonl").read_text().splitlines()[0] + "\n")
    run(load_config(config))
    page = opened()
    page = page.selectbox(key="query").select("q2").run(timeout=20)
    assert "No nuggets for this query: no nuggets in the bank" in words(page)
    page.text_area[0].set_value("cats are cats")
    page = press(press(page, "Add"), "Save")
    assert table(page, "Change", "After")["After"].tolist() == ["cats are cats"]
    assert [bank.query_id for bank in read_banks(here / "bank.jsonl")] == ["q1", "q2"]


def test_edits_are_a_draft_with_its_scores_until_they_are_saved(here: Path) -> None:
    played_nugget_tournament(here)
    before = (here / "bank.jsonl").read_bytes()
    page = choose(opened(), 0)
    page.radio[0].set_value("okay")
    page = press(page, "Change")
    assert drafted(page) == [("it purrs", "okay"), ("it sleeps all day", "vital"), ("it has nine lives", "okay")]
    assert table(page, "Change", "Before").values.tolist() == [["importance", "it purrs", "it purrs", "vital to okay"]]
    scores = table(page, "Nuggets V strict before", "Nuggets V strict after").set_index("Agent")
    assert scores.loc["y"].tolist() == ["0.50", "0.25", "0.33", "0.33", 0]
    page = choose(page, 1, 2)
    assert page.text_area[0].value == "it sleeps all day; it has nine lives"
    page = press(page, "Merge")
    scores = table(page, "Nuggets V strict before", "Nuggets V strict after").set_index("Agent")
    assert scores.loc["z", "Nuggets V strict after"] == "0.50 to 1.00"
    assert scores["To be assigned"].tolist() == [1, 1, 1]
    assert (here / "bank.jsonl").read_bytes() == before
    page = press(page, "Drop my changes")
    assert drafted(page)[0] == ("it purrs", "vital")


def test_a_saved_edit_is_in_the_file_with_its_history_and_leaves_other_queries_alone(here: Path) -> None:
    played_nugget_tournament(here)
    before = (here / "bank.jsonl").read_text().splitlines()
    page = choose(opened(), 1)
    page.text_area[0].set_value("it sleeps\nall day")
    page = choose(press(page, "Change"), 0)
    page = choose(press(page, "Remove"), 1)
    page = press(page, "Move down")
    page.text_input(key="nugget-draft-q1-by").set_value("ann")
    page = press(page, "Save")
    assert page.code[0].value == f"ragleague run {here / 't.yaml'}"
    assert table(page, "Change", "Before")["Change"].tolist() == ["split", "split", "removed"]
    first, second = (here / "bank.jsonl").read_text().splitlines()
    assert json.loads(second) == json.loads(before[1])
    edit = json.loads(first)
    assert [(own["text"], own["importance"]) for own in edit["nuggets"]] == [
        ("it sleeps", "vital"),
        ("it has nine lives", "okay"),
        ("all day", "vital"),
    ]
    assert [own["kind"] for own in edit["history"][0]["changes"]] == ["split", "split", "removed"]
    assert (edit["history"][0]["by"], edit["history"][0]["reordered"]) == ("ann", True)
    (saved,) = history(here / "bank.jsonl")
    assert (saved.by, saved.what) == ("ann", "q1: 2 split, 1 removed")
    assert "The file has changed since the last run" in words(page)
    page = page.run(timeout=20)
    assert set(table(page, "Nuggets V strict before")["To be assigned"]) == {2}
    assert table(unfolded(page, "earlier-versions"), "When", "Who")["What"].tolist() == [saved.what]


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(here: Path) -> None:
    played_nugget_tournament(here)
    page = press(choose(opened(), 0), "Remove")
    theirs = (here / "bank.jsonl").read_text().replace("it purrs", "it purrs loudly")
    (here / "bank.jsonl").write_text(theirs)
    page = press(page, "Save")
    assert "the file was changed since you opened it, and nothing was saved" in words(page)
    assert (here / "bank.jsonl").read_text() == theirs
    assert drafted(page)[0] == ("it sleeps all day", "vital"), "the draft is still there to be saved elsewhere"


def test_nuggets_of_a_judge_become_a_file_that_can_be_edited_and_only_what_is_new_is_assigned(here: Path) -> None:
    def settings(server: LLMServer, nuggets: str) -> Path:
        content = (
            "name: small\nstore: store.db\n"
            "data: {queries: queries.csv, documents: documents.csv, answers: answers.csv}\n"
            f"judges: {{judge: {{provider: openai, model: gpt-x, base_url: '{server.openai_url}'}}}}\n"
            f"retrieval: {{judge: judge}}\nnuggets: {{judge: judge{nuggets}}}\n"
        )
        (here / "t.yaml").write_text(content)
        return here / "t.yaml"

    write_data(here)
    with LLMServer(nugget_judge) as server:
        run(load_config(settings(server, ", create: {window: 2}")))
        page = opened()
        assert "A judge wrote these" in words(page)
        page.text_input(key="nuggets-file").set_value("../x.jsonl")
        assert "without a folder" in words(press(page, "Save as a file"))
        page.text_input(key="nuggets-file").set_value("nuggets.jsonl")
        page = press(page, "Save as a file")
        assert page.code[0].value == 'nuggets:\n  bank: "nuggets.jsonl"'
        assert "the file exists already and may have been edited" in words(press(opened(), "Save as a file"))
        config = settings(server, ", bank: nuggets.jsonl")
        assert calls(run(load_config(config))) == {}, "the same nuggets are assigned already"
        page = opened("q1: What is q1?")
        page.text_area[0].set_value("a new fact")
        page = press(press(page, "Add"), "Save")
        asked = len(server.calls)
        assert calls(run(load_config(config))) == {Task.ASSIGNMENT: 3}
        assert {tuple(shown_nuggets(call))[-1] for call in server.calls[asked:]} == {"a new fact"}
        page = choose(opened("q1: What is q1?"), 4)
        page.radio[0].set_value("okay")
        press(press(page, "Change"), "Save")
        assert calls(run(load_config(config))) == {}, "an importance is nobody's to assign"
    with closing(Store.open(str(here / "store.db"))) as store:
        results = nugget_results(store, "small")
    assert results is not None
    assert [own.importance for own in results.banks["q1"].nuggets][-1] == "okay"
