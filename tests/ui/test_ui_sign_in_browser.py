"""Signing in, in a real Chromium at a real OpenID Connect provider, and what each role may do then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.nuggets.files import read_banks
from tests.support.browser import served, settle
from tests.support.nugget_store import played_nugget_tournament
from tests.support.oidc import provider, secrets_toml

pytestmark = pytest.mark.nightly

PEOPLE = {
    "ann": {"email": "Ann@example.org", "email_verified": True},
    "bob": {"email": "bob@example.org", "email_verified": True},
    "eve": {"email": "ann@example.org", "email_verified": False},
    "old": {"email": "ann@example.org", "email_verified": True, "iat": int(time.time()) - 13 * 3600},
}
ROLES = "default: viewer\nvoter: ['@example.org']\neditor: [ann@example.org]\n"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("team")
    played_nugget_tournament(folder, pairwise={"judges": "words"})
    (folder / "roles.yaml").write_text(ROLES, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(played: Path) -> Iterator[str]:
    with provider(PEOPLE) as issuer:
        (played / ".streamlit").mkdir()
        (played / ".streamlit" / "secrets.toml").write_text(secrets_toml(issuer), encoding="utf-8")
        options = ("--roles", str(played / "roles.yaml"))
        with served(played / "store.db", played / "t.yaml", *options, home=played) as url:
            yield url


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    page = browser.new_context(reduced_motion="reduce").new_page()
    page.set_default_timeout(20_000)
    return page


def sign_in(page: Page, address: str, name: str, link: str = "/review") -> None:
    """Open a link before a sign-in, and be where it leads after it."""
    page.context.clear_cookies()
    page.goto(f"{address}{link}")
    press_sign_in(page, name)
    page.wait_for_url(lambda url: url.startswith(f"{address}{link}"))


def press_sign_in(page: Page, name: str) -> None:
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name=name).click()


def go(page: Page, url: str) -> None:
    page.goto(url)
    settle(page)


def test_nothing_is_shown_before_a_sign_in_nor_after_one_that_is_too_old(page: Page, address: str) -> None:
    sign_in(page, address, "old")
    page.get_by_role("button", name="Sign in").wait_for()
    assert "What of q1" not in page.content()


def test_an_address_that_is_not_verified_reads_what_a_link_shows_and_does_no_more(page: Page, address: str) -> None:
    sign_in(page, address, "eve", "/queries?view=games&agent=y&opponent=z")
    page.get_by_text("sub:eve, viewer").wait_for()
    page.get_by_text("2 games", exact=True).wait_for()
    go(page, f"{address}/review?view=vote&annotator=ann@example.org")
    page.get_by_text("make you a voter").wait_for()
    go(page, f"{address}/workbench?view=nuggets")
    assert page.get_by_text("your role does not include edits").is_visible()
    assert page.get_by_role("button", name="Save").count() == 0


def test_a_voter_votes_under_the_name_they_signed_in_with(page: Page, address: str, played: Path) -> None:
    sign_in(page, address, "bob")
    page.get_by_text("bob@example.org, voter").wait_for()
    go(page, f"{address}/review?view=vote&annotator=ann")
    page.keyboard.press("1")
    page.wait_for_selector("text=1 of 2 queries voted on")
    with closing(Store.open(str(played / "store.db"))) as store:
        assert [own.annotator for own in Annotations(store, "nuggets").history()] == ["bob@example.org"]
    kept = page.context.cookies()
    other = page.context.new_page()
    go(other, f"{address}/compare")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{address}/")
    other.get_by_role("link", name="Queries").click()
    other.get_by_role("button", name="Sign in").wait_for()
    page.context.add_cookies(kept)
    other.goto(f"{address}/compare")
    other.get_by_role("button", name="Sign in").wait_for()
    other.close()
    page.context.clear_cookies()
    press_sign_in(page, "bob")
    page.get_by_text("bob@example.org, voter").wait_for()
    assert urlsplit(page.url).path == "/"


def test_an_editor_edits_until_the_role_is_taken_away(page: Page, address: str, played: Path) -> None:
    sign_in(page, address, "ann")
    page.get_by_text("ann@example.org, editor").wait_for()
    go(page, f"{address}/workbench?view=nuggets&query={quote('q1: What of q1?')}")
    page.get_by_role("textbox", name="Text").fill("it hunts")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("cell", name="it hunts").first.wait_for()
    settle(page)
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_selector("text=the earlier version is kept")
    (first, *_) = read_banks(played / "bank.jsonl")
    assert first.nuggets[-1].text == "it hunts"
    assert [edit["by"] for edit in first.details["history"]] == ["ann@example.org"]
    settle(page)
    page.get_by_role("textbox", name="Text").fill("it scratches")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("cell", name="it scratches").first.wait_for()
    settle(page)
    (played / "roles.yaml").write_text("default: viewer\n", encoding="utf-8")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_selector("text=ann@example.org, viewer")
    assert len(read_banks(played / "bank.jsonl")[0].nuggets) == 4
    (played / "roles.yaml").write_text("default: nobody\n", encoding="utf-8")
    page.reload()
    page.wait_for_selector("text=Nobody can be let in")
    assert "roles.yaml" not in page.content()
