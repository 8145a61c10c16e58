"""What all tests of the pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import chromium, watched
from ui.roles import EVERYBODY_VARIABLE


@pytest.fixture(autouse=True)
def everybody_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that are drawn in this process are as ``ragarena ui`` starts them on this machine, without a sign-in."""
    monkeypatch.setenv(EVERYBODY_VARIABLE, "editor")


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Browser]:
    """Chromium, after the module's own ``address`` is served: nothing can be judged in this thread while it runs."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A new page of the browser, see ``watched``."""
    with watched(browser, address) as opened:
        yield opened
