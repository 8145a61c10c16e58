"""The page of calibration in a real Chromium: every chart is drawn, hostile names and texts are shown as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support.browser import INERT, chromium, reader, served, settle, show_at, watched
from tests.support.peoples_words import add_people
from tests.support.sample_store import write_store

AGENTS = (
    "**x** <b>b</b>",
    "![x](http://127.0.0.1:9/leak.png)",
    ":smile: $x$",
    '<img src=x onerror="window.__pwned=5">',
)
PLANTED = "<script>window.__pwned=1</script> [l](javascript:window.__pwned=2) **b**"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page on a store full of hostile texts that two people have judged."""
    store: Path = tmp_path_factory.mktemp("calibration") / "s.db"
    write_store(store, agents=AGENTS, wording=lambda _kind, text: f"{text}\n{PLANTED}", failed=3)
    add_people(store, "sample")
    with served(store) as address, chromium() as browser, watched(reader(browser), address) as page:
        page.goto(f"{address}/calibration")
        page.wait_for_selector("text=Where they disagree most")
        settle(page)
        yield page


def test_all_charts_are_drawn_and_no_error_is_shown(page: Page) -> None:
    charts = "[data-testid=stVegaLiteChart] :is(canvas, svg)"
    counted = "([charts, count]) => document.querySelectorAll(charts).length == count"
    page.wait_for_function(counted, arg=[charts, 3])
    page.get_by_text("Two ways of scoring against each other").click()
    page.wait_for_function(counted, arg=[charts, 4])
    page.wait_for_url(re.compile(r"/calibration\?(.*&)?two-methods=true"))
    assert page.locator("[data-testid=stException]").count() == 0
    pictures = page.locator("figure.picture").all()
    assert len(pictures) >= 5
    for drawn in [*page.locator(charts).all(), *pictures]:
        box = drawn.bounding_box()
        assert box is not None
        assert box["height"] > 60


def test_hostile_texts_and_names_show_as_they_are(page: Page) -> None:
    texts = page.locator(INERT)
    assert page.locator(f"{INERT} :is(a, img, b, strong, em, code, script)").count() == 0
    seen = "\n".join(texts.all_inner_texts())
    assert seen.count(PLANTED) >= 15  # of five disagreements the query and two answers
    assert any(agent in seen for agent in AGENTS)


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_fits_its_window(page: Page, width: int) -> None:
    show_at(page, width)


def test_a_disagreement_leads_to_its_game(page: Page) -> None:
    with page.expect_popup() as opened:
        page.get_by_role("link", name="The game", exact=True).first.click()
    game = opened.value
    game.wait_for_selector("text=What the judge said")
    assert "/games?tournament=sample&game=" in game.url
    assert game.get_by_text("not in the store").count() == 0
