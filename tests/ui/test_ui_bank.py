"""The exam bank: items beside what they do to the scores; saving edits is safe, and grades only what is new."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from playwright.sync_api import BrowserContext, Page, expect
from streamlit.testing.v1 import AppTest

from arena.config.schema import Config, load_config
from arena.data.safe_files import history, history_folder
from retrieval_eval.exam.bank_files import read_bank
from tests.support.browser import chromium, reader, served, settle, until
from tests.support.exams import (
    ITEMS,
    LAYERS,
    ORGAN,
    PASSAGES,
    PIONEERS,
    exam_config,
    graded,
    write_bank_csv,
    write_exam,
)
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.pages import config_file, page, press, sent, shown, start_on, table, unfolded

NEW = "Which layer is the <b>outermost</b>?"


def judge(call: Call) -> Reply:
    asked: str = call.body["messages"][-1]["content"]
    if "response_format" in call.body:
        return Reply(json.dumps({"questions": ["First written?", "Second written?"]}))
    return Reply("5" if "epidermis" in asked and LAYERS in asked else "4" if "Elvis" in asked else "1")


class Here(Struct):
    """A graded tournament whose bank can be edited, and its judge."""

    folder: Path
    config: Config
    server: LLMServer

    @property
    def bank(self) -> Path:
        return self.folder / "bank.csv"

    def run(self) -> list[str]:
        """Grade again; what was asked."""
        self.server.calls.clear()
        graded(self.config)
        return [call.body["messages"][-1]["content"] for call in self.server.calls]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.setenv("KEY", "sk-dummy")
    write_exam(tmp_path)
    with LLMServer(judge) as server:
        config = exam_config(tmp_path, server.openai_url)
        graded(config)
        start_on(monkeypatch, config, editable=True)
        yield Here(tmp_path, config, server)


def field(kind: Any, label: str) -> Any:
    return next(element for element in kind if element.label == label)


def change(run: AppTest, place: int, text: str | None = None, **fields: Any) -> AppTest:
    """Fill in the form of an item and keep the change."""
    run = run.selectbox(key="item").set_value(place).run(timeout=20)
    if text is not None:
        field(run.text_area, "Text").input(text)
    if "weight" in fields:
        field(run.number_input, "Weight").set_value(fields["weight"])
    if "retired" in fields:
        field(run.checkbox, "Retired: kept, but not counted").set_value(fields["retired"])
    return press(run, "Keep this change")


def add(run: AppTest, text: str, answers: str = "", *, secret: bool = False) -> AppTest:
    run.text_area[1].input(text)
    field(run.text_area, "Gold answers, one a line; may stay empty").input(answers)
    field(run.checkbox, "Secret: graded with, but shown nowhere").set_value(secret)
    return press(run, "Add it")


def test_items_that_a_run_adds_for_unanswerable_queries_make_no_other_version(
    played_demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_on(monkeypatch, load_config(played_demo / "tournament.yaml"))
    assert "not the version that was graded last" not in shown(page("bank"))


def test_an_edit_is_saved_with_the_earlier_version_kept_and_only_what_is_new_is_graded(here: Here) -> None:
    before = here.bank.read_bytes()
    run = change(page("bank"), 0, NEW)
    run = change(run, 1, retired=True)
    run = change(run, 2, weight=2.5)
    run = add(run, "How does skin heal?", "slowly\nby itself")
    assert here.bank.read_bytes() == before, "an edit is kept in the page until it is saved"
    assert re.search(rf"Pairs to grade\s+{2 * PASSAGES['skin']}\b", shown(run))
    field(run.text_input, "Your name, for the history").input("Ann <b>")
    run = press(run, "Save")
    assert "Saved" in shown(run)
    assert run.code[0].value == f"ragleague run {here.folder / 't.yaml'}"
    assert "added" in list(table(run, "Change")["Change"]), "what the save changed stays in sight"

    bank = read_bank(here.bank)
    texts = {item.text: item for item in bank.items}
    assert set(texts) == {LAYERS, NEW, ORGAN, PIONEERS, "How does skin heal?"}
    assert {text for text, item in texts.items() if item.retired} == {LAYERS, ORGAN}
    assert (texts[NEW].replaces, texts[PIONEERS].weight) == (texts[LAYERS].item_id, 2.5)
    assert texts["How does skin heal?"].answers == ("slowly", "by itself")
    (entry,) = history(here.bank)
    assert (entry.by, entry.what) == ("Ann <b>", "1 edited, 1 added, 1 retired, 1 reweighted")
    assert (history_folder(here.bank) / entry.earlier).read_bytes() == before
    assert table(unfolded(page("bank"), "earlier-versions"), "Who")["What"].tolist() == [entry.what]

    asked = here.run()
    assert len(asked) == 2 * PASSAGES["skin"]
    assert all(NEW in text or "How does skin heal?" in text for text in asked)
    assert here.run() == []
    assert "not the version that was graded last" not in shown(page("bank"))


@pytest.mark.parametrize("text", [LAYERS + " anew", None])
def test_an_edit_can_be_taken_back(here: Here, text: str | None) -> None:
    run = add(change(page("bank"), 0, text, retired=text is None), "Another?")
    run = press(run, "Take back the last edit")
    assert list(table(run, "Change")["Change"]) == ["retired" if text is None else "edited"]
    run = press(run, "Drop my changes")
    assert "Take back the last edit" not in shown(run)


def test_edits_outlast_a_reload_and_a_new_server_in_the_same_browser_until_they_are_dropped(here: Here) -> None:
    changes = "h3:has-text('What your edits change')"

    def opened(context: BrowserContext, address: str) -> Page:
        page = context.new_page()
        page.goto(f"{address}/workbench?view=bank")
        settle(page)
        return page

    with chromium() as browser:
        mine, other = reader(browser), reader(browser)
        with served(here.config.store, here.folder / "t.yaml") as address:
            page = opened(mine, address)
            page.locator("textarea").first.fill(NEW)
            page.get_by_role("button", name="Keep this change").click()
            page.wait_for_selector(changes)
            page.reload()
            page.wait_for_selector(changes)
            assert opened(other, address).locator(changes).count() == 0
        with served(here.config.store, here.folder / "t.yaml") as address:
            page = opened(mine, address)
            page.wait_for_selector(changes)
            page.get_by_role("button", name="Drop my changes").click()
            page.wait_for_selector(changes, state="detached")
            page.reload()
            settle(page)
            assert page.locator(changes).count() == 0


def test_what_is_typed_or_picked_and_not_taken_over_yet_stays_on_other_pages_and_after_a_reload(here: Here) -> None:
    with chromium() as browser, served(here.config.store, here.folder / "t.yaml") as address:
        page, asked = reader(browser).new_page(), list[str]()
        page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
        page.goto(f"{address}/workbench?view=bank")
        settle(page)
        field, picked = page.locator("textarea").first, page.get_by_role("checkbox", name="Retired: kept")
        field.fill(NEW)
        page.evaluate("setTimeout(() => location.reload())")
        until(page, lambda: asked == ["beforeunload"])
        page.get_by_text("Retired: kept").click()
        until(page, lambda: any(history_folder(here.bank).glob("draft-*")))
        settle(page)
        for leave in (lambda: page.get_by_role("link", name="Leaderboard").click(), page.reload):
            leave()
            page.wait_for_selector("h1")
            page.goto(f"{address}/workbench?view=bank")
            settle(page)
            expect(field).to_have_value(NEW)
            expect(picked).to_be_checked()
        assert asked == ["beforeunload"], "what a field held when it was left is kept"


def test_a_file_that_somebody_else_changed_is_not_overwritten(here: Here) -> None:
    run = change(page("bank"), 0, NEW)
    write_bank_csv(here.folder, [*ITEMS, ("rock", "Theirs?")])
    theirs = here.bank.read_bytes()
    run = press(run, "Save")
    assert "the file was changed since you opened it, and nothing was saved" in shown(run)
    assert here.bank.read_bytes() == theirs
    assert "changed by somebody else" in shown(run)
    run = press(press(run, "Put my edits on their version"), "Save")
    assert {item.text for item in read_bank(here.bank).items} == {LAYERS, NEW, ORGAN, PIONEERS, "Theirs?"}
    (entry,) = history(here.bank)
    assert (history_folder(here.bank) / entry.earlier).read_bytes() == theirs


def test_a_bank_with_which_nothing_can_be_graded_is_not_saved(here: Here) -> None:
    before = here.bank.read_bytes()
    run = page("bank")
    for place in range(3):
        run = change(run, place, retired=True)
    run = press(run, "Save")
    assert "has no item for any of the queries" in shown(run)
    assert here.bank.read_bytes() == before


def test_a_secret_item_keeps_its_text_and_can_be_weighed_and_retired(here: Here) -> None:
    columns = ("qid", "question", "secret")
    write_bank_csv(here.folder, [("skin", "PLANTED?", "true"), ("rock", PIONEERS, None)], columns)
    run = page("bank")
    assert field(run.text_area, "Text").disabled
    run = press(change(run, 0, weight=2.0), "Save")
    run = press(add(run, "PLANTED too?", "PLANTED gold", secret=True), "Save")
    bank = read_bank(here.bank)
    assert [(item.text, item.secret, item.weight) for item in bank.items if item.secret] == [
        ("PLANTED?", True, 2.0),
        ("PLANTED too?", True, 1.0),
    ]
    assert "PLANTED" not in sent(page("bank"))


def test_a_page_started_on_a_store_is_to_read_and_says_how_to_edit(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    start_on(monkeypatch, here.config)
    run = page("bank")
    assert "`ragleague ui CONFIG` opens them for edits" in shown(run)
    assert list(table(run, "Item", "Weight")["Item"]) == [LAYERS, ORGAN, PIONEERS]
    assert not run.button


def test_a_configuration_or_bank_that_broke_is_said_in_one_line(here: Here) -> None:
    here.bank.write_text("qid,question\nskin,\n", encoding="utf-8")
    assert "bank.csv:2: the item has no text" in shown(page("bank"))
    (here.folder / "t.yaml").write_text("name: [", encoding="utf-8")
    assert "t.yaml" in shown(page("bank"))


def test_a_bank_that_a_judge_wrote_can_be_made_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-dummy")
    write_exam(tmp_path)
    (tmp_path / "bank.csv").unlink()
    with LLMServer(judge) as server:
        config = exam_config(tmp_path, server.openai_url, generate={"per_query": 2, "secret": 0.5})
        graded(config)
        start_on(monkeypatch, config, editable=True)
        run = page("bank")
        assert sorted(table(run, "Item", "Weight")["Item"])[:2] == ["(secret)"] * 2
        for wrong in ("../mine.jsonl", "/tmp/mine.jsonl", ".mine", "mine.txt", "t.yaml"):
            run = page("bank")
            field(run.text_input, "File name").input(wrong)
            run = press(run, "Save as a file")
            assert [error.value for error in run.error] == ["Nothing was changed."]
            assert wrong in shown(run)
            assert not run.success
        run = press(page("bank"), "Save as a file")
        assert run.code[0].value == 'exam:\n  bank: "bank.jsonl"'
        bank = read_bank(tmp_path / "bank.jsonl")
        assert {item.text for item in bank.items} == {"First written?", "Second written?"}
        assert sum(item.secret for item in bank.items) == 2
        named = exam_config(tmp_path, server.openai_url, bank=tmp_path / "bank.jsonl")
        server.calls.clear()
        graded(named)
        assert server.calls == []
        start_on(monkeypatch, named, editable=True)
        assert "Keep this change" in [button.label for button in page("bank").button]
        assert config_file(named).is_file()
    assert {path.name for path in tmp_path.iterdir() if "mine" in path.name} == set()


@pytest.mark.parametrize("query", [{"item": "1", "retired": "true", "save": "1"}, {"action": "save", "by": "me"}])
def test_no_address_writes_anything(here: Here, query: dict[str, str]) -> None:
    before = here.bank.read_bytes()
    page("bank", **query)
    assert here.bank.read_bytes() == before
    assert history(here.bank) == []


def test_a_secret_item_and_what_was_answered_to_it_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ("qid", "question", "answers", "secret")
    write_exam(tmp_path, [("skin", LAYERS, "epidermis", None), ("skin", ORGAN, "yes", "true")], columns)

    def script(call: Call) -> Reply:
        asked: str = call.body["messages"][1]["content"]
        return Reply("the **epidermis** $" if "epidermis" in asked else "unanswerable")

    monkeypatch.setenv("KEY", "sk-dummy")
    with LLMServer(script) as server:
        config = exam_config(tmp_path, server.openai_url, grading="extraction_words")
        graded(config)
    start_on(monkeypatch, config)
    run = page("bank")
    assert list(table(run, "Item", "Covered by")["Item"]) == [LAYERS, "(secret)"]
    answers = table(run, "Answer or reason")
    assert list(answers["Answer or reason"].fillna("")) == ["the **epidermis** $", "", ""]
    assert answers["Text"][0] == "The epidermis is outside."
    run.selectbox(key="item").select_index(1).run(timeout=20)
    assert "Answer or reason" not in table(run, "Passage", "Text")
    assert "What was answered to a secret item is not shown" in shown(run)
    run.query_params["item"] = "3. gone"
    assert "not here, so it was left out: Item" in shown(run.run(timeout=20))
