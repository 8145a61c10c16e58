"""The server of the pages: ``python -m ui.serve LOCATION --port 8501``.

With ``--config FILE``, the YAML file that names the store, the pages can also edit the files that it names. What the
server tells browsers to refuse, where the pages are, and whether it is well, stands here too.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.client
import ipaddress
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode

from arena.present.markup import STYLE
from arena.present.numbers import printable
from arena.store import Store, engine
from judges.errors import InputError, RagleagueError
from ui.access import ViewerRole
from ui.app import PAGES
from ui.data import LOCATION_VARIABLE, location, shared
from ui.editing import CONFIG_VARIABLE
from ui.sign_in import LOOPBACK, ServerAccess, server_access, sign_in_secrets

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from streamlit.starlette import App


_OPTIONS: Final[Mapping[str, object]] = {
    "server.enableCORS": True,
    "server.enableXsrfProtection": True,
    "server.enableAgentApi": False,
    "server.trustedUserHeaders": {},
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "server.showEmailPrompt": False,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.disableDataExport": True,
    "client.showErrorDetails": "type",
    "client.showErrorLinks": False,
    "runner.magicEnabled": False,
    "runner.postScriptGC": False,
    "logger.hideWelcomeMessage": True,
    "logger.level": "error",
    "theme.primaryColor": "#0072b2",
    "theme.dark.backgroundColor": "#121212",
    "theme.light.linkColor": "#005a8e",
    "theme.dark.linkColor": "#7cc5ef",
    "theme.headingFontSizes": ["1.5rem", "1.3rem", "1.1rem", "1rem", "1rem", "1rem"],
    "theme.metricValueFontSize": "1.5rem",
    "theme.baseRadius": "0.4rem",
}
"""Streamlit quiet and offline, whatever the user's own settings say. Other host names and requests that come from other
pages are refused, so no foreign page can read along or edit, and no header says who somebody is; the details of an
unforeseen error, which may quote texts from outside, go to the terminal and not to the page. Python collects garbage in
its own time, not for a tenth of a second after each page. White text can be read on
the first colour; the dark ground is the browser's own, on which our tables and pictures draw."""


_PATIENCE_S: Final = 2.0
"""How long a page waits for a store that another program keeps locked, before it says so."""


def serve(location: str, access: ServerAccess, *, port: int, open_browser: bool, config: str | None = None) -> None:
    """Serve the pages of a store until interrupted.

    Args:
        location: a path, or a database URL.
        access: who can reach the pages, and may do what.
        config: the YAML file whose tournament it is; what that names can then be edited on the pages.
        port: on the address of ``access``; 0 picks a free one.
        open_browser: also open the first page in the user's browser, where there is a display.

    Raises:
        InputError: there is no store, or the port is taken.
        StoreError: the store cannot be read.
    """
    engine.PATIENCE_S = _PATIENCE_S
    Store.open(location).close()
    chosen = _free_port(access.address, port)
    config = None if config is None else str(Path(config).absolute())
    _tell({LOCATION_VARIABLE: location, CONFIG_VARIABLE: config, **access.variables})
    threading.Thread(target=_announce, args=(access, chosen), daemon=True).start()
    options = {**_OPTIONS, "server.address": access.address, "server.port": chosen}
    # Left alone, Streamlit opens a browser where there is a display to open it on.
    headless = {} if open_browser else {"server.headless": True}
    web_app().run(config={**options, "server.allowedHosts": list(access.hosts), **headless})


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve what the command line names; errors are one line, exit status 2 if the user's, 1 else."""
    parser = argparse.ArgumentParser(prog="python -m ui.serve", description="Serve the web leaderboard of a store.")
    parser.add_argument("location", help="a store: path or database URL")
    parser.add_argument("--port", type=int, default=8501, help="0 picks a free one")
    parser.add_argument("--config", help="the YAML file that names the store, to edit what it names")
    parser.add_argument("--address", default=LOOPBACK, help="to listen on")
    parser.add_argument("--host", action="append", default=[], help="a name by which browsers call the server")
    parser.add_argument("--roles", type=Path, help="the file that says who may do what, for people who sign in")
    parser.add_argument(
        "--without-sign-in", choices=[role.value for role in ViewerRole][1:], help="the role of whoever reaches it"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    given = parser.parse_args(arguments)
    _end_when_told()
    try:
        access = server_access(
            sign_in_secrets(),
            address=given.address,
            hosts=given.host,
            roles=given.roles,
            everybody=ViewerRole(given.without_sign_in) if given.without_sign_in else None,
        )
        serve(given.location, access, port=given.port, open_browser=not given.no_browser, config=given.config)
    except RagleagueError as error:
        print(printable(f"error: {error}"), file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, InputError) else 1
    return 0


def _end_when_told() -> None:
    """End with status 0 at Ctrl-C, SIGTERM and SIGHUP, also as process 1 of a container, which ignores them otherwise.

    While uvicorn serves, SIGINT and SIGTERM are its own: it says goodbye to browsers, then raises them once more.
    """

    def end(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else nohup started it
        signal.signal(signal.SIGHUP, lambda _number, _frame: signal.raise_signal(signal.SIGTERM))


def _tell(variables: Mapping[str, str | None]) -> None:
    """Set the environment by which the pages know what they are to show."""
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _announce(access: ServerAccess, port: int) -> None:
    """Say where the pages are once somebody answers there."""
    there = _reachable(access.address)
    while not _answers(there, port):
        time.sleep(0.05)
    url = f"http://{f'[{there}]' if ':' in there else there}:{port}" if access.url is None else access.url
    print(f"The leaderboard is at {url.replace('{port}', str(port))} (Ctrl-C stops it)", flush=True)  # noqa: T201
    import scipy.special  # noqa: F401 - the first page takes it, while the browser is still at its own scripts


def _answers(address: str, port: int) -> bool:
    """Whether the server answers, and not only listens: from then on it ends in order when a signal comes."""
    connection = http.client.HTTPConnection(address, port)
    try:
        connection.request("GET", HEALTH)
        return connection.getresponse().status > 0
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _reachable(address: str) -> str:
    """Where this machine reaches a server that listens on an address, which may stand for all of its own."""
    try:
        given = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if not given.is_unspecified else "127.0.0.1" if given.version == 4 else "::1"


def _free_port(address: str, port: int) -> int:
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As the server will: a port whose last connections are still closing is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            return int(probe.getsockname()[1])
    except (OSError, OverflowError) as error:
        raise InputError(f"port {port} on {address} cannot be used: choose another with --port") from error


HEALTH: Final = "/healthz"
"""Answers 200 where the store can be read, 503 where it cannot, and says nothing else to whoever asks by any name."""
_METRICS: Final = "/_stcore/metrics"
"""Streamlit's figures on its own work. They say how many people are here and what is read, so nobody is told."""
_BACKEND: Final = 'window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href};'
"""Told where the server is, which is where the page has its scripts from, a browser need not try ``/games/_stcore`` in
vain and wait a tenth of a second before it asks the right one."""
_ADDRESSES: Final = ("/", *(f"/{page.address}" for page in PAGES[1:]))
"""Where each page is."""
_SCRIPT: Final = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
_STYLE: Final = Path(__file__).with_name("page.css").read_text(encoding="utf-8") + STYLE


def web_app() -> App:
    """The server's application: the pages and their health, with headers on all of it."""
    from starlette.middleware import Middleware
    from starlette.routing import Route
    from streamlit.starlette import App

    return App(
        Path(__file__).with_name("app.py"),
        routes=[
            Route(HEALTH, health, methods=["GET"]),
            *(Route(address, document, methods=["GET"]) for address in _ADDRESSES),
        ],
        middleware=[Middleware(Guard, policy=_policy(_BACKEND, _SCRIPT))],
    )


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
        with shared(location()) as store:
            store.changes()
    except RagleagueError:
        return PlainTextResponse("the store cannot be read\n", 503)
    return PlainTextResponse("ok\n")


class Guard:
    """Refuses what Streamlit would answer, and adds to every response what browsers are to refuse.

    What would be a page and is none leads to the first, which says so. Refused are metrics, and requests under a name
    that the server was not given. Streamlit looks at the name for the pages' connection alone. A page elsewhere whose
    name leads to this address (DNS rebinding) could read the rest. Browsers are to refuse other people's scripts,
    frames and addresses.
    """

    def __init__(self, app: ASGIApp, policy: str) -> None:
        self._app = app
        self._headers = {
            b"content-security-policy": policy.encode(),
            b"x-content-type-options": b"nosniff",
            b"referrer-policy": b"same-origin",
            b"cross-origin-opener-policy": b"same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse, RedirectResponse
        from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in self._headers]
                message = {**message, "headers": [*kept, *self._headers.items()]}
            await send(message)

        path = scope["path"].rstrip("/") if scope["type"] == "http" else None
        app = self._app
        if path == _METRICS:
            app = PlainTextResponse("not found\n", 404)
        elif path not in (None, HEALTH) and not is_host_allowed(Headers(scope=scope).get("host")):
            app = PlainTextResponse("This server does not go by that name; '--host NAME' adds one.\n", 421)
        elif re.fullmatch(r"/[a-z]+", path or "") and path not in (HEALTH, *_ADDRESSES):
            asked = dict(parse_qsl(scope["query_string"].decode("latin-1"))) | {"view": scope["path"].strip("/")}
            app = RedirectResponse(f"./?{urlencode(asked)}")
        await app(scope, receive, send_on)


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


if __name__ == "__main__":
    sys.exit(main())
