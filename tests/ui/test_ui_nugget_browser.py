"""The pages of nuggets in a real Chromium, on a store full of hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page

from arena.store import Store
from arena.store.annotations import Annotations
from tests.support.browser import INERT, served, settle, show_at
from tests.support.nugget_store import AGENTS, played_nugget_tournament

PLANTED = (
    "<script>window.__pwned=1</script>",
    '<img src=x onerror="window.__pwned=2">',
    "![x](http://127.0.0.1:9/leak.png) [link](javascript:window.__pwned=3)",
    "$x^2$ :smile: **bold** :red[red] `code` <b>b</b>",
)


def hostile(text: str) -> str:
    return "\n".join((text, *PLANTED))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    played_nugget_tournament(folder, agents=(*AGENTS, "<b>v</b>"), wording=hostile, pairwise={"judges": "words"})
    return folder


@pytest.fixture(scope="module")
def address(played: Path) -> Iterator[str]:
    with served(played / "store.db", played / "t.yaml") as url:
        yield url


def see_planted(page: Page, url: str, times: int) -> None:
    """Open a page with the nuggets of a query, which must fit any window and show every planted text as it is."""
    page.goto(url)
    settle(page)
    page.wait_for_selector("text=1. it purrs")
    for width in (400, 1280):
        show_at(page, width)
    assert page.locator(f"{INERT} :is(a, img, b, strong, em, code, script, .katex)").count() == 0
    seen = "\n".join(page.locator(INERT).all_inner_texts())
    assert [seen.count(planted) for planted in PLANTED] == [times] * len(PLANTED)


def test_planted_texts_show_as_they_are_and_the_page_fits_its_window(page: Page, address: str) -> None:
    url = f"{address}/assess?annotator=%3Cb%3Eann%3C/b%3E"
    see_planted(page, url, 5)  # the query, the answer and three nuggets
    assert page.get_by_role("textbox", name="Your name or initials").input_value() == "<b>ann</b>"


def test_a_reload_goes_on_and_a_double_click_saves_once(page: Page, address: str, played: Path) -> None:
    page.goto(f"{address}/assess")
    page.get_by_role("textbox", name="Your name or initials").fill("dora")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=0 of 8 answers assessed")
    settle(page)
    for group in page.get_by_role("radiogroup").all():
        group.get_by_text("partial support").click()
    page.get_by_role("button", name="Save and go on").dblclick()
    page.wait_for_selector("text=1 of 8 answers assessed")
    settle(page)
    assert page.locator("text=Not saved yet").count() == 0
    with closing(Store.open(str(played / "store.db"))) as store:
        said = Annotations(store, "nuggets").history()
    assert [own.value for own in said if own.annotator == "dora"] == ["partial_support"] * 3
    page.reload()
    page.wait_for_selector("text=1 of 8 answers assessed")
    assert page.get_by_role("textbox", name="Your name or initials").input_value() == "dora"


def test_planted_texts_of_nuggets_show_as_they_are(page: Page, address: str) -> None:
    see_planted(page, f"{address}/nuggets", 4)  # the query and three nuggets in the editor
    main = page.locator("[data-testid=stMain]")
    assert main.locator("[href^='javascript:'], [src*='leak.png'], script, iframe").count() == 0
    page.get_by_role("combobox").last.click()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("[role=option]")
    assert page.locator("[role=option]").count() >= 3
    assert page.locator("[role=option] :is(a, img, b, strong, em, script, .katex)").count() == 0


def test_a_query_s_nuggets_lead_to_its_games(page: Page, address: str) -> None:
    page.goto(f"{address}/nuggets")
    settle(page)
    link = page.get_by_role("link", name="Games on this query")
    page.goto(f"{address}/{link.get_attribute('href')}")
    settle(page)
    page.wait_for_selector("text=6 games; this is number 1")
