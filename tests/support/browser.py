"""A really started web leaderboard and the system's Chromium, for tests of the pages and for pictures of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from urllib.parse import quote, urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
INERT = ":is([data-testid=stText], p.said)"
"""Where texts from outside are on a page, shown as they are."""
PASSAGE = ".passage"
"""Where they are read as Markdown."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--process-per-site",
)


@contextmanager
def served(
    store: Path | str, config: Path | None = None, *options: str, home: Path | None = None, port: int = 0
) -> Iterator[str]:
    """The address of a server on a store, or on a configuration with its store; the server ends with the block.

    Args:
        store: path or address.
        config: the YAML file that names it.
        options: of ``ui.serve``.
        port: 0 picks a free one.
        home: the folder with Streamlit's ``.streamlit/secrets.toml``, in place of the user's own.
    """
    named = [] if config is None else ["--config", str(config)]
    with _started(["-m", "ui.serve", str(store), "--no-browser", *named, *options], home, port) as address:
        yield address


@contextmanager
def opened_with(config: Path) -> Iterator[str]:
    """The same as ``ragleague ui CONFIG`` opens it, on a machine without a display."""
    with _started(["-c", "from arena.cli.main import main; main()", "ui", str(config)]) as address:
        yield address


@contextmanager
def _started(arguments: list[str], home: Path | None = None, port: int = 0) -> Iterator[str]:
    headless = {name: value for name, value in os.environ.items() if name not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    headless |= {} if home is None else {"HOME": str(home)}
    command = [sys.executable, *arguments, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=headless, start_new_session=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            if "http://" not in line:
                raise RuntimeError(f"the server did not start: {line or 'see its errors above'}")
            yield next(word for word in line.split() if word.startswith("http://"))
        finally:
            os.killpg(server.pid, signal.SIGTERM)  # the server may be a child of the command
            server.communicate()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, headless.

    Raises:
        RuntimeError: there is none; says what to install.
    """
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        raise RuntimeError(f"no browser: install Chromium, for instance Debian's 'chromium' (tried {BROWSERS})")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


def answered(address: str, path: str) -> tuple[HTTPMessage, bytes]:
    """What a server answers to a path asked for on one of its pages, no redirection followed: headers and body."""
    with closing(HTTPConnection(urlsplit(address).netloc, timeout=10)) as connection:
        connection.request("GET", path, headers={"Referer": f"{address}/games"})
        answer = connection.getresponse()
        return answer.headers, answer.read()


def settle(page: Page) -> None:
    """Wait until a page is drawn: its script has ended, and no element is a placeholder or left from before."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_selector(f"{INERT}, .stHtml, [data-testid=stAlert]")
    page.locator("[data-testid=stSkeleton], [data-stale=true]").first.wait_for(state="detached")


def visit(page: Page, url: str) -> None:
    """Open a page that has no error to show."""
    page.goto(url)
    settle(page)
    assert page.locator("[data-testid=stException]").count() == 0


def show_at(page: Page, width: int) -> None:
    """Make the window so wide, and wait until the page fits it.

    Raises:
        AssertionError: it never does.
    """
    page.set_viewport_size({"width": width, "height": 844})
    until(page, lambda: page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width)


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Wait at most ten seconds for a condition; Playwright's own way to do so needs a page that lets it run scripts."""
    for _ in range(100):
        if holds():
            return
        page.wait_for_timeout(100)
    assert holds()


def reader(browser: Browser) -> BrowserContext:
    """Somebody whose pages share what the browser keeps of the server's scripts: reading those takes longest.

    The pages' own policy, under which no planted script could run anyway, is off, as it refuses Playwright's polls too.
    """
    return browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce", bypass_csp=True)


def say_name(context: BrowserContext, address: str, name: str) -> None:
    """Let a browser know who judges in it, as it does once a name was entered."""
    context.add_cookies([{"name": "ragleague-annotator", "value": quote(name), "url": address}])


@contextmanager
def watched(context: BrowserContext, address: str) -> Iterator[Page]:
    """A new page that must ask nothing of anyone but the server, open no dialog, and run no planted script."""
    asked: list[str] = []
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (asked.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    yield page
    assert page.evaluate("typeof window.__pwned") == "undefined"
    assert (
        page.locator(
            "main [href^='javascript:'], main [src*='leak.png'], main script:not([data-own]), main iframe"
        ).count()
        == 0
    )
    own = (address, address.replace("http", "ws"), "data:", f"blob:{address}")
    assert [url for url in asked if not url.startswith(own)] == []
    page.close()
