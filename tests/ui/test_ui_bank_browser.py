"""Exam and bank in a real Chromium, on items full of hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from arena.data.safe_files import history
from retrieval_eval.exam.bank_files import read_bank
from tests.support.browser import INERT, opened_with, settle, show_at, visit
from tests.support.exams import LAYERS, PIONEERS, exam_config, graded, write_exam
from tests.support.pages import config_file

PLANTED = (
    '<script>window.__pwned=1</script> <img src=x onerror="window.__pwned=2"> ![x](http://127.0.0.1:9/leak.png) '
    "[link](javascript:window.__pwned=3) $x^2$ :smile: **bold** :red[red] `code` www.example.com"
)
LONG = "Which of the layers, " * 300 + "is outside?"
ITEMS = [("skin", LAYERS, None), ("skin", PLANTED, None), ("skin", LONG, None), ("skin", "HIDDEN?", "true")]
MANY = [("rock", f"Item {number}?", None) for number in range(500)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exam")
    write_exam(path, [*ITEMS, ("rock", PIONEERS, None), *MANY], ("qid", "question", "secret"))
    config = exam_config(path)
    graded(config)
    config_file(config)
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with opened_with(folder / "t.yaml") as url:
        yield url


@pytest.mark.parametrize("name", ["exam", "bank"])
def test_the_pages_open_and_fit_their_window(page: Page, address: str, name: str) -> None:
    visit(page, f"{address}/{name}")
    for width in (1280, 390):
        show_at(page, width)
    assert "HIDDEN" not in page.content()


def test_a_planted_item_shows_as_it_is_and_its_address_leads_to_it(page: Page, address: str) -> None:
    visit(page, f"{address}/exam?query=skin")
    page.get_by_label("Item", exact=True).click()
    page.keyboard.type("__pwned")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('main').innerText.includes('onerror=\"window.__pwned=2\"')")
    settle(page)
    texts = page.locator(INERT)
    assert PLANTED in texts.all_inner_texts()
    assert texts.locator("a, img, b, strong, em, code, script, .katex").count() == 0
    visit(page, page.url)
    assert PLANTED in texts.all_inner_texts()


def test_no_address_writes_anything(page: Page, address: str, folder: Path) -> None:
    before = (folder / "bank.csv").read_bytes()
    for query in ("bank-item=1&retired=true&save=1&text=mine", "action=save&weight=3", "bank-query=skin&by=me"):
        visit(page, f"{address}/bank?{query}")
    assert (folder / "bank.csv").read_bytes() == before
    assert history(folder / "bank.csv") == []


def test_an_item_is_edited_looked_at_and_saved(page: Page, address: str, folder: Path) -> None:
    new = f"Which is outermost? {PLANTED}"
    visit(page, f"{address}/bank")
    page.get_by_label("Text", exact=True).first.fill(new)
    page.get_by_role("button", name="Keep this change").click()
    page.wait_for_selector("text=What your edits change")
    settle(page)
    assert page.locator(".figures > div", has_text="Pairs to grade").locator(".value").inner_text() == "3"
    assert new not in {item.text for item in read_bank(folder / "bank.csv").items}
    page.get_by_label("Your name, for the history").fill("<b>Ann</b>")
    page.get_by_role("button", name="Save the bank").click()
    page.wait_for_selector("text=What is new is graded by the next run")
    settle(page)
    texts = {item.text: item for item in read_bank(folder / "bank.csv").items}
    assert texts[new].replaces == texts[LAYERS].item_id
    assert texts[LAYERS].retired
    assert [entry.by for entry in history(folder / "bank.csv")] == ["<b>Ann</b>"]
    page.get_by_text("Earlier versions").click()
    settle(page)
