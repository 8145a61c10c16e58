"""The web server around the pages: what it tells browsers to refuse, where it is, and whether it is well."""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from arena.present.markup import STYLE
from arena.store import Store
from judges.errors import RagleagueError
from ui.data import location
from ui.entrance import Entrance
from ui.pages import PAGES
from ui.way_back import WayBack

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from streamlit.starlette import App

HEALTH: Final = "/healthz"
"""Answers 200 where the store can be read, 503 where it cannot, and says nothing else to whoever asks by any name."""
_METRICS: Final = "/_stcore/metrics"
"""Streamlit's figures on its own work. They say how many people are here and what is read, so nobody is told."""
_BACKEND: Final = 'window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href};'
"""Told where the server is, which is where the page has its scripts from, a browser need not try ``/games/_stcore`` in
vain and wait a tenth of a second before it asks the right one."""
_SCRIPT: Final = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
_STYLE: Final = Path(__file__).with_name("page.css").read_text(encoding="utf-8") + STYLE


def shell(way_in: Entrance) -> App:
    """The server's application: the pages, their health and the way back from a sign-in, with headers on all of it."""
    from starlette.middleware import Middleware
    from starlette.routing import Route
    from streamlit.starlette import App

    pages = addresses()
    secure = (way_in.url or "").startswith("https:")
    way_back = [] if way_in.roles is None else [Middleware(WayBack, pages=pages, secure=secure)]
    return App(
        Path(__file__).with_name("app.py"),
        routes=[
            Route(HEALTH, health, methods=["GET"]),
            *(Route(page, document, methods=["GET"]) for page in pages),
        ],
        middleware=[
            Middleware(Headers, policy=_policy(_BACKEND, _SCRIPT)),
            Middleware(Gate),
            *way_back,
        ],
    )


def addresses() -> list[str]:
    """Where each page is; the first one is at the root."""
    names = [title.lower() for own in PAGES.values() for title, _, _ in own]
    return ["/", *(f"/{name}" for name in names[1:])]


def document(_request: Request) -> Response:
    """Streamlit's document, the same for all pages, told where the server is, with our script and style sheet."""
    from starlette.responses import HTMLResponse

    ours = "".join(f"<script>{script}</script>" for script in (_BACKEND, _SCRIPT))
    told = _index().replace("<script>", f"{ours}<script>", 1)
    styled = told.replace("</body>", f"<style>{_STYLE}</style></body>", 1)  # behind all others, which it overrides
    return HTMLResponse(styled, headers={"cache-control": "no-cache"})


def health(_request: Request) -> Response:
    """Open the store as a page does; run by the server in a thread of its own."""
    from starlette.responses import PlainTextResponse

    try:
        with closing(Store.open(location())) as store:
            store.changes()
    except RagleagueError:
        return PlainTextResponse("the store cannot be read\n", 503)
    return PlainTextResponse("ok\n")


class Gate:
    """Refuses what Streamlit would answer: requests under a name that the server was not given, and its metrics.

    Streamlit looks at the name for the pages' connection alone. A page elsewhere whose name leads to this address (DNS
    rebinding) could read the rest.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse
        from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

        path = scope["path"].rstrip("/") if scope["type"] == "http" else None
        app = self._app
        if path == _METRICS:
            app = PlainTextResponse("not found\n", 404)
        elif path not in (None, HEALTH) and not is_host_allowed(Headers(scope=scope).get("host")):
            app = PlainTextResponse("This server does not go by that name; '--host NAME' adds one.\n", 421)
        await app(scope, receive, send)


class Headers:
    """Adds to every response what browsers are to refuse: other people's scripts, frames and addresses."""

    def __init__(self, app: ASGIApp, policy: str) -> None:
        self._app = app
        self._headers = [
            (name.encode(), value.encode())
            for name, value in {
                "content-security-policy": policy,
                "x-content-type-options": "nosniff",
                "referrer-policy": "same-origin",
                "cross-origin-opener-policy": "same-origin",
            }.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                new = {name for name, _ in self._headers}
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in new]
                message = {**message, "headers": [*kept, *self._headers]}
            await send(message)

        await self._app(scope, receive, send_on)


def _index() -> str:
    import streamlit

    return (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")


def _policy(*own: str) -> str:
    """Content Security Policy Level 3: all from this server, no script in a page but ours and Streamlit's own."""
    scripts = [*re.findall(r"<script>(.*?)</script>", _index(), re.DOTALL), *own]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return "; ".join(
        [
            "default-src 'self'",
            f"script-src 'self' {hashes}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ]
    )
