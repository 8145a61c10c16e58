"""The server of the pages: ``python -m ui.serve LOCATION --port 8501``.

With ``--config FILE``, a YAML file that names the store, editors can also edit the files that this YAML file names. The
module also sets security headers, adds the project's script and styles to the HTML document, and answers health checks.
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
"""Streamlit settings, which override the user's settings and keep Streamlit quiet and offline.

The server refuses requests for other host names or from other sites, so that no foreign page can read or edit anything;
it identifies no user by a request header. Details of unexpected errors, which may quote answers or documents, go to the
terminal and not to the page. Garbage collection stays automatic, because forced collection takes a tenth of a second
after each page. White text is readable on the primary colour; the dark background is the browser's default, as in the
tables and charts.
"""


_LOCK_TIMEOUT_S: Final = 2.0
"""Seconds that a page waits for a locked store before it reports an error."""


def serve(location: str, access: ServerAccess, *, port: int, open_browser: bool, config: str | None = None) -> None:
    """Serve the pages of a store until interrupted.

    Args:
        location: path or database URL of the store.
        access: who can reach the pages, and with which roles.
        config: the tournament's YAML file; files that it names can then be edited on the pages.
        port: the port to listen on, at the address in ``access``; 0 picks a free port.
        open_browser: also open the first page in a browser, if there is a display.

    Raises:
        InputError: there is no store, or the port is in use.
        StoreError: the store cannot be read.
    """
    engine.PATIENCE_S = _LOCK_TIMEOUT_S
    Store.open(location).close()
    bound_port = _free_port(access.address, port)
    config = None if config is None else str(Path(config).absolute())
    _set_environment({LOCATION_VARIABLE: location, CONFIG_VARIABLE: config, **access.variables})
    threading.Thread(target=_announce, args=(access, bound_port), daemon=True).start()
    options = {**_OPTIONS, "server.address": access.address, "server.port": bound_port}
    # By default Streamlit opens a browser if there is a display.
    headless = {} if open_browser else {"server.headless": True}
    web_app().run(config={**options, "server.allowedHosts": list(access.hosts), **headless})


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the store that the command line names; prints errors in one line.

    Returns the exit status: 0 without an error, 2 for user errors, 1 for other errors.
    """
    parser = argparse.ArgumentParser(prog="python -m ui.serve", description="Serve the web leaderboard of a store.")
    parser.add_argument("location", help="a store: path or database URL")
    parser.add_argument("--port", type=int, default=8501, help="port to listen on; 0 picks a free one")
    parser.add_argument("--config", help="the tournament's YAML file; editors can then edit the files that it names")
    parser.add_argument("--address", default=LOOPBACK, help="address to listen on")
    parser.add_argument(
        "--host", action="append", default=[], help="a further host name under which browsers may reach the server"
    )
    parser.add_argument("--roles", type=Path, help="file with the roles of people who sign in")
    parser.add_argument(
        "--without-sign-in",
        choices=[role.value for role in ViewerRole][1:],
        help="do without a sign-in and give everyone who can reach the pages this role",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    options = parser.parse_args(arguments)
    _exit_on_signals()
    try:
        access = server_access(
            sign_in_secrets(),
            address=options.address,
            hosts=options.host,
            roles=options.roles,
            everybody=ViewerRole(options.without_sign_in) if options.without_sign_in else None,
        )
        serve(options.location, access, port=options.port, open_browser=not options.no_browser, config=options.config)
    except RagleagueError as error:
        print(printable(f"error: {error}"), file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, InputError) else 1
    return 0


def _exit_on_signals() -> None:
    """Exit with status 0 at Ctrl-C, SIGTERM and SIGHUP, also as process 1 of a container, which otherwise ignores them.

    While uvicorn serves, it handles SIGINT and SIGTERM itself: it closes connections, then raises the signal again.
    """

    def end(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # otherwise nohup started it
        signal.signal(signal.SIGHUP, lambda _number, _frame: signal.raise_signal(signal.SIGTERM))


def _set_environment(variables: Mapping[str, str | None]) -> None:
    """Set the environment variables that the pages read; unset those with the value ``None``."""
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _announce(access: ServerAccess, port: int) -> None:
    """Print the address of the pages once the server answers."""
    host = _reachable(access.address)
    while not _answers(host, port):
        time.sleep(0.05)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}" if access.url is None else access.url
    print(f"The leaderboard is at {url.replace('{port}', str(port))} (Ctrl-C stops it)", flush=True)  # noqa: T201
    import scipy.special  # noqa: F401 - preloaded for the first page while the browser loads its scripts


def _answers(address: str, port: int) -> bool:
    """Whether the server answers requests; once it does, its own signal handlers are in place."""
    connection = http.client.HTTPConnection(address, port)
    try:
        connection.request("GET", HEALTH)
        return connection.getresponse().status > 0
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _reachable(address: str) -> str:
    """The address at which this machine reaches the server; loopback if the server listens on all addresses."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if not ip.is_unspecified else "127.0.0.1" if ip.version == 4 else "::1"


def _free_port(address: str, port: int) -> int:
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As the server does: a port whose last connections are still closing counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            return int(probe.getsockname()[1])
    except (OSError, OverflowError) as error:
        raise InputError(f"port {port} on {address} cannot be used: choose another with --port") from error


HEALTH: Final = "/healthz"
"""Path of the health check: 200 if the store can be read, else 503, under any host name and without details."""
_METRICS: Final = "/_stcore/metrics"
"""Path of Streamlit's metrics; blocked, as they reveal how many people use the pages and what they read."""
_BACKEND: Final = 'window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href};'
"""JavaScript that tells the browser the server's root URL.

Otherwise the browser first tries ``/games/_stcore`` and loses a tenth of a second.
"""
_ADDRESSES: Final = ("/", *(f"/{page.address}" for page in PAGES[1:]))
"""URL path of each page."""
_SCRIPT: Final = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
_STYLE: Final = Path(__file__).with_name("page.css").read_text(encoding="utf-8") + STYLE


def web_app() -> App:
    """The ASGI application: the pages and the health check, with security headers on every response."""
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
    """Respond with Streamlit's HTML document, with the server's URL, our script and styles; all pages share it."""
    from starlette.responses import HTMLResponse

    script_tags = "".join(f"<script>{script}</script>" for script in (_BACKEND, _SCRIPT))
    html = _index().replace("<script>", f"{script_tags}<script>", 1)
    styled = html.replace("</body>", f"<style>{_STYLE}</style></body>", 1)  # last, so that it overrides the others
    return HTMLResponse(styled, headers={"cache-control": "no-cache"})


def health(_request: Request) -> Response:
    """Answer a health check by opening the store in the way that a page does; the server calls this in a thread."""
    from starlette.responses import PlainTextResponse

    try:
        with shared(location()) as store:
            store.changes()
    except RagleagueError:
        return PlainTextResponse("the store cannot be read\n", 503)
    return PlainTextResponse("ok\n")


class Guard:
    """Middleware that blocks some requests and adds security headers to every response.

    It blocks Streamlit's metrics and requests for unknown host names. Streamlit itself checks host names only for the
    pages' connection, so a foreign page whose name resolves to this address (DNS rebinding) could read everything else.

    A URL that names no page is redirected to the first page, which reports the unknown name. The headers tell browsers
    to load nothing from other sites, and not to show the pages inside frames.
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
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse, RedirectResponse
        from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name, value) for name, value in message["headers"] if name.lower() not in self._headers]
                message = {**message, "headers": [*headers, *self._headers.items()]}
            await send(message)

        path = scope["path"].rstrip("/") if scope["type"] == "http" else None
        app = self._app
        if path == _METRICS:
            app = PlainTextResponse("not found\n", 404)
        elif path not in (None, HEALTH) and not is_host_allowed(Headers(scope=scope).get("host")):
            app = PlainTextResponse("This server does not go by that name; '--host NAME' adds one.\n", 421)
        elif re.fullmatch(r"/[a-z]+", path or "") and path not in (HEALTH, *_ADDRESSES):
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"))) | {"view": scope["path"].strip("/")}
            app = RedirectResponse(f"./?{urlencode(query)}")
        await app(scope, receive, send_on)


def _index() -> str:
    import streamlit

    return (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")


def _policy(*inline_scripts: str) -> str:
    """Content Security Policy (Level 3): load only from this server; run only Streamlit's and the given scripts."""
    scripts = [*re.findall(r"<script>(.*?)</script>", _index(), re.DOTALL), *inline_scripts]
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
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
