"""The web server around the pages: what it tells browsers to refuse, and whether it is well."""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from arena.store import Store
from judges.errors import RagarenaError
from ui import once
from ui.data import location

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from streamlit.starlette import App

HEALTH: Final = "/healthz"
"""Answers 200 where the store can be read, 503 where it cannot, and says nothing else to whoever asks."""


def shell() -> App:
    """The server's application: the pages and their health, with headers on all of it."""
    from starlette.middleware import Middleware
    from starlette.routing import Route
    from streamlit.starlette import App

    return App(
        Path(__file__).with_name("app.py"),
        routes=[Route(HEALTH, health, methods=["GET"])],
        middleware=[Middleware(Headers, policy=_policy(once.SCRIPT))],
    )


def health(_request: Request) -> Response:
    """Open the store as a page does; run by the server in a thread of its own."""
    from starlette.responses import PlainTextResponse

    try:
        with closing(Store.open(location())) as store:
            store.changes()
    except RagarenaError:
        return PlainTextResponse("the store cannot be read\n", 503)
    return PlainTextResponse("ok\n")


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


def _policy(own_script: str) -> str:
    """Content Security Policy Level 3: all from this server, no script in a page but ours and Streamlit's own."""
    import streamlit

    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    scripts = [*re.findall(r"<script>(.*?)</script>", page, re.DOTALL), own_script]
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
