"""Voting and labelling in a real Chromium: by keyboard, after a reload, with two clicks, on hostile texts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import ClientSession
from playwright.sync_api import Page

from arena.store import Store
from arena.store.annotations import Annotation, Annotations
from tests.support.browser import INERT, served, settle, show_at
from tests.support.sample_store import write_store
from tests.support.sessions import Viewer

PLANTED = (
    "<script>window.__pwned=1</script>",
    '<img src=x onerror="window.__pwned=2">',
    "![x](http://127.0.0.1:9/leak.png) [link](javascript:window.__pwned=3)",
    "$x^2$ :smile: **bold** :red[red] `code` <b>b</b>",
)
QUERIES, FEW = 6, 2


def hostile(kind: str, text: str) -> str:
    long = "x" * 1_000_000 if kind in {"answer", "document"} else ""
    return "\n".join((*PLANTED, text.replace("secret-", "number "), long))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "s.db"
    write_store(path, name="plain", queries=FEW)
    return write_store(path, queries=QUERIES, agents=("secret-1", "secret-2", "secret-3"), wording=hostile)


@pytest.fixture(scope="module")
def address(store: Path) -> Iterator[str]:
    with served(store) as url:
        yield url


def visit(page: Page, url: str, progress: str) -> None:
    page.goto(url)
    page.wait_for_selector(f"text={progress}")
    settle(page)


def said(store: Path, annotator: str, tournament: str = "sample") -> list[Annotation]:
    with closing(Store.open(str(store))) as opened:
        return Annotations(opened, tournament).history(annotator=annotator)


def press(page: Page, key: str, progress: str) -> None:
    page.wait_for_timeout(550)  # sooner, it is the second press of a double one
    page.keyboard.press(key)
    page.wait_for_selector(f"text={progress}")
    settle(page)


def test_a_person_votes_by_keyboard_and_goes_on_after_a_reload(page: Page, address: str, store: Path) -> None:
    page.goto(f"{address}/vote")
    page.get_by_role("textbox", name="Your name or initials").fill("ann")
    page.keyboard.press("End")
    page.keyboard.type(" s123")  # in the field these are letters and no votes
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text=0 of {QUERIES} queries voted on")
    settle(page)
    page.locator("h2").first.click()
    for place, key in enumerate("123", start=1):
        press(page, key, f"{place} of {QUERIES} queries voted on")
    press(page, "s", "1 skipped")
    page.reload()
    page.wait_for_selector(f"text=3 of {QUERIES} queries voted on, 1 skipped")
    assert [own.value for own in said(store, "ann s123")] == ["A", "B", "TIE", None]


def test_a_double_click_and_a_key_held_down_count_once(page: Page, address: str, store: Path) -> None:
    visit(page, f"{address}/vote?annotator=dora", f"0 of {QUERIES} queries")
    page.get_by_role("button", name="Answer 1 is better").dblclick()
    page.wait_for_selector(f"text=1 of {QUERIES} queries voted on")
    settle(page)
    assert [own.value for own in said(store, "dora")] == ["A"]
    page.locator("h2").first.click()
    page.wait_for_timeout(550)
    for _ in range(30):
        page.keyboard.down("3")
        page.wait_for_timeout(40)
    page.keyboard.up("3")
    page.wait_for_selector(f"text=2 of {QUERIES} queries voted on")
    settle(page)
    assert [own.value for own in said(store, "dora")] == ["A", "TIE"]


@pytest.mark.parametrize("view", ["vote", "label"])
def test_planted_texts_show_as_they_are_and_the_page_fits_its_window(page: Page, address: str, view: str) -> None:
    page.goto(f"{address}/{view}?annotator=%3Cb%3Eeve%3C/b%3E")
    page.wait_for_selector("text=notice period")
    settle(page)
    assert page.locator(f"{INERT} :is(a, img, b, strong, em, code, script, .katex)").count() == 0
    seen = "\n".join(page.locator(INERT).all_inner_texts())
    for planted in PLANTED:
        assert seen.count(planted) == 3  # the query and two answers, or a title and a document
    assert "secret-" not in page.content()
    page.get_by_text("Show all 1,000").first.click()
    page.wait_for_function(
        "[...document.querySelectorAll('[data-testid=stText]')].some(e => e.textContent.length > 1e6)"
    )
    for width in (1280, 400):
        show_at(page, width)
        boxes = page.locator("[class*=st-key-passage-]").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect().height)"
        )
        assert max(boxes) <= 450
    assert page.get_by_role("button", name="Skip").is_visible()


def shown_tournament(page: Page, name: str) -> None:
    """Wait until the page shows a tournament, and its address says so."""
    page.wait_for_function(
        "name => new URLSearchParams(location.search).get('tournament') === name"
        " && document.querySelector('[data-testid=stSelectbox] input')?.value === name",
        arg=name,
    )
    settle(page)


def test_a_person_votes_in_the_tournament_whose_link_they_opened(page: Page, address: str, store: Path) -> None:
    page.goto(f"{address}/?tournament=plain")
    shown_tournament(page, "plain")
    page.get_by_role("button", name="People").click()
    page.get_by_role("menuitem", name="Vote").click()
    shown_tournament(page, "plain")
    page.get_by_role("textbox", name="Your name or initials").fill("pat")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text=0 of {FEW} queries voted on")
    settle(page)
    page.get_by_role("button", name="Answer 1 is better").click()
    page.wait_for_selector(f"text=1 of {FEW} queries voted on")
    assert len(said(store, "pat", "plain")) == 1
    assert not said(store, "pat")


def test_the_tournament_of_a_link_stays_on_every_page_that_the_menu_and_back_lead_to(page: Page, address: str) -> None:
    page.goto(address)
    shown_tournament(page, "sample")
    page.goto(f"{address}/queries?tournament=plain")
    shown_tournament(page, "plain")
    page.get_by_test_id("stTopNav").get_by_role("link", name="Games").click()
    page.wait_for_url("**/games?tournament=plain*")
    shown_tournament(page, "plain")
    page.go_back()
    page.wait_for_url("**/queries?tournament=plain")
    shown_tournament(page, "plain")
    page.go_back()
    page.wait_for_url("**/?tournament=sample")
    shown_tournament(page, "sample")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Matrix").click(button="middle")
    opened.value.wait_for_url("**/matrix?tournament=sample")
    opened.value.close()


async def vote_on_all(client: ClientSession, address: str, name: str) -> None:
    """Every press comes twice, and after every other one the page is loaded anew."""
    viewer = await Viewer.open(client, address, "vote", annotator=name, tournament="plain")
    await viewer.until(f"0 of {FEW} queries voted on")
    for done in range(1, FEW + 1):
        choice = "Answer 1 is better" if done % 2 else "A tie"
        for _ in range(2):
            await viewer.press(choice)
        if done % 2:
            await viewer.until(f"{done} of {FEW} queries voted on")
            await viewer.close()
            viewer = await Viewer.open(client, address, "vote", annotator=name, tournament="plain")
        await viewer.until(f"{done} of {FEW} queries voted on")
    await viewer.close()


async def all_vote(address: str, names: list[str]) -> None:
    async with ClientSession() as client:
        await asyncio.gather(*(vote_on_all(client, address, name) for name in names))


def test_ten_voters_at_once_lose_no_vote_and_have_none_twice(store: Path, address: str) -> None:
    names = [f"voter-{number}" for number in range(10)]
    with ThreadPoolExecutor(1) as thread:  # Playwright has this thread's event loop
        thread.submit(asyncio.run, all_vote(address, names)).result()
    for name in names:
        votes = said(store, name, "plain")
        assert len({vote.query_id for vote in votes}) == FEW
        assert [vote.value for vote in votes] == ["A", "TIE"] * (FEW // 2)
