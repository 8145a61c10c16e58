"""The way back from a sign-in, to the page on which somebody pressed the button: a shared link is opened only once.

Streamlit opens the first page, whatever comes of a sign-in. Where one begins, the browser says from which page
(``Referer``), and a cookie keeps that until the provider sends the browser back. Every sign-in sets the cookie anew and
its end takes it away, as signing out does, so that none but the last is ever followed.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from streamlit.user_info import AUTH_LOGIN_ENDPOINT, AUTH_LOGOUT_ENDPOINT

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "ragleague_way_back"

_CALLBACK: Final = "/oauth2callback"
_FIRST: Final = "/"
_SECONDS: Final = 15 * 60
"""Enough to sign in at the provider; one given up is forgotten after it."""
_LONGEST: Final = 4096
"""Bytes of a cookie that every browser keeps (RFC 6265, section 6.1). Past it, the one before would stay."""


class WayBack:
    """Sends the browser back to where it came from once a sign-in has ended, well or not.

    The cookie is neither secret nor trusted: it leads to a page of ours, in a state that anybody can link to, or to the
    first page.
    """

    def __init__(self, app: ASGIApp, pages: Collection[str], *, secure: bool) -> None:
        self._app = app
        self._pages = frozenset(pages)
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        from starlette.datastructures import MutableHeaders
        from starlette.requests import Request

        path = scope["path"] if scope["type"] == "http" else None
        if path not in (AUTH_LOGIN_ENDPOINT, _CALLBACK, AUTH_LOGOUT_ENDPOINT):
            await self._app(scope, receive, send)
            return
        request = Request(scope)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if path == AUTH_LOGIN_ENDPOINT:
                    headers.append("set-cookie", self._kept(_origin_left_out(request.headers.get("referer", ""))))
                elif COOKIE in request.cookies:
                    headers.append("set-cookie", self._cookie("", 0))
                    if path == _CALLBACK and "location" in headers:
                        headers["location"] = self._page(request.cookies[COOKIE])
            await send(message)

        await self._app(scope, receive, send_on)

    def _page(self, said: str) -> str:
        """A page of ours and its query, as a header can hold it; the first page in the place of all else."""
        page = re.fullmatch(r"(/[a-z]*)(\?[!-~]*)?", said)
        return said if page is not None and page[1] in self._pages else _FIRST

    def _kept(self, said: str) -> str:
        cookie = self._cookie(self._page(said), _SECONDS)
        return cookie if len(cookie) <= _LONGEST else self._cookie(_FIRST, _SECONDS)

    def _cookie(self, value: str, seconds: int) -> str:
        from starlette.responses import Response

        response = Response()
        response.set_cookie(COOKIE, value, seconds, httponly=True, samesite="lax", secure=self._secure)
        return response.headers["set-cookie"]


def _origin_left_out(url: str) -> str:
    return re.sub(r"^https?://[^/?#]*", "", url)
