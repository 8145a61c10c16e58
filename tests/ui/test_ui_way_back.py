"""Where the browser is sent once a sign-in has ended; Streamlit's own routes, without a provider."""

from __future__ import annotations

from http.cookies import SimpleCookie

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.testclient import TestClient
from streamlit.web.server.starlette.starlette_auth_routes import create_auth_routes

from ui.serve import addresses
from ui.sign_in import COOKIE, SignInReturn

HERE = "https://arena.example.org"


def browser(*, secure: bool = True, cookie: str | None = None) -> TestClient:
    """A browser before the routes of a sign-in, with a cookie that somebody planted."""
    around = [
        Middleware(SignInReturn, pages=addresses(), secure=secure),
        Middleware(SessionMiddleware, secret_key="any"),
    ]
    app = Starlette(routes=create_auth_routes(""), middleware=around)
    planted = {} if cookie is None else {"cookie": f"{COOKIE}={cookie}"}
    return TestClient(app, base_url=HERE, follow_redirects=False, headers=planted)


def sent_to(client: TestClient) -> str:
    """Where the browser is sent by what the provider sends it to."""
    return client.get("/oauth2callback").headers["location"]


def begin(client: TestClient, referer: str | None) -> SimpleCookie:
    """Press the button on a page; the cookie set."""
    answer = client.get("/auth/login", headers={} if referer is None else {"referer": referer})
    return SimpleCookie(answer.headers["set-cookie"])


@pytest.mark.parametrize("page", ["/", "/games", "/?tournament=a", '/games?agent=a,b;"c"&query=%22%C3%A9%0d%0a+x//\\'])
def test_a_sign_in_ends_on_the_page_where_it_began(page: str) -> None:
    client = browser()
    begin(client, HERE + page)
    assert sent_to(client) == page
    assert sent_to(client) == "/", "once"


def test_the_last_sign_in_counts_also_where_the_browser_does_not_say_from_where_it_comes() -> None:
    client = browser()
    begin(client, f"{HERE}/games?agent=a")
    begin(client, f"{HERE}/matrix")
    assert sent_to(client) == "/matrix"
    begin(client, f"{HERE}/games?agent=a")
    begin(client, None)
    assert sent_to(client) == "/"


def test_a_link_too_long_for_a_cookie_is_left_out_and_no_older_one_followed_in_its_place() -> None:
    client = browser()
    begin(client, f"{HERE}/matrix")
    begin(client, f"{HERE}/games?agent={',' * 1100}")
    assert sent_to(client) == "/"


def test_signing_out_forgets_a_sign_in_that_was_given_up() -> None:
    client = browser()
    begin(client, f"{HERE}/games?agent=a")
    client.get("/auth/logout")
    assert sent_to(client) == "/"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "//evil.example/games",
        "/\\evil.example",
        "/%2fevil.example",
        "/games/../..//evil.example",
        "/games//evil.example",
        "https://evil.example/games",
        "javascript:alert(1)",
        "/games@evil.example",
        "/auth/logout",
        "/oauth2callback?code=1",
        "/nowhere",
        "/games?a=\\015\\012set-cookie:x=y",
        "/games?a=\\351",
        "",
    ],
)
def test_nothing_but_a_page_of_ours_is_followed_whoever_wrote_the_cookie(elsewhere: str) -> None:
    assert sent_to(browser(cookie=f'"{elsewhere}"')) == "/"


@pytest.mark.parametrize(
    "referer",
    ["https://evil.example", f"{HERE}//evil.example/games", f"{HERE}/nowhere", "http://[", "games", "//games"],
)
def test_a_sign_in_that_began_on_no_page_of_ours_ends_on_the_first(referer: str) -> None:
    client = browser()
    begin(client, referer)
    assert sent_to(client) == "/"


@pytest.mark.parametrize("secure", [True, False])
def test_the_cookie_is_kept_from_scripts_and_other_sites_and_for_minutes(secure: bool) -> None:
    kept = begin(browser(secure=secure), f"{HERE}/games")[COOKIE]
    assert (kept["httponly"], kept["samesite"], kept["path"]) == (True, "lax", "/")
    assert bool(kept["secure"]) is secure
    assert 0 < int(kept["max-age"]) <= 3600
