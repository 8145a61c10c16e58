"""What all tests of the pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.browser import chromium, reader, watched
from ui.access import EVERYBODY_VARIABLE


@pytest.fixture(autouse=True)
def everybody_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that are drawn in this process are as ``ragleague ui`` starts them on this machine, without a sign-in."""
    monkeypatch.setenv(EVERYBODY_VARIABLE, "editor")


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Browser]:
    """Chromium, after the module's own ``address`` is served: nothing can be judged in this thread while it runs."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def context(browser: Browser, address: str) -> BrowserContext:
    """The one who reads the pages of a module.

    A page that stays open keeps the process that draws the others, and with it Streamlit's scripts as it compiled them.
    """
    opened = reader(browser)
    opened.new_page().goto(f"{address}/healthz")
    return opened


@pytest.fixture
def page(context: BrowserContext, address: str) -> Iterator[Page]:
    """A new page, see ``watched``; nobody has signed in or said a name yet."""
    context.clear_cookies()
    with watched(context, address) as opened:
        yield opened
