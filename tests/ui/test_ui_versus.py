"""Versus, in a browser: from the leaderboard to both answers to the worst query in five clicks, and on to its games."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import served, settle
from tests.support.sample_store import write_store


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(write_store(tmp_path_factory.mktemp("versus") / "s.db", queries=20)) as url:
        yield url


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def test_five_clicks_lead_to_what_got_worse_and_one_more_to_its_games(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    settle(page)
    page.get_by_role("link", name="Compare", exact=True).click()
    settle(page)
    page.get_by_role("link", name="Versus", exact=True).click()
    settle(page)
    choose(page, "New", "bm25")  # two clicks, and ``dense``, which is second, is the old one already
    page.get_by_text("bm25 is worse than dense").wait_for()
    page.get_by_text("bm25 does worse than dense on").wait_for()
    answers = page.locator("[role=region][aria-label^='Answer of']")
    assert [answers.nth(at).get_attribute("aria-label") for at in range(2)] == ["Answer of bm25", "Answer of dense"]
    assert "/s.db --new bm25 --old dense --margin 0.05" in page.locator("pre").last.inner_text()
    page.get_by_role("link", name="Next", exact=True).click()
    settle(page)
    page.get_by_text("2 of 20").wait_for()
    page.get_by_role("link", name="The games between the two").click()
    settle(page)
    page.wait_for_url("**/queries?*agent=bm25&opponent=dense&query=*")
    page.go_back()
    settle(page)
    page.get_by_text("2 of 20").wait_for()  # back to where the reader was
    page.close()
