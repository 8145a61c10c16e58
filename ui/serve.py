"""Start the web leaderboard of one store: ``python -m ui.serve LOCATION --port 8501``.

With ``--config FILE``, the YAML file that names the store, the pages can also edit the files that it names.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from judges.errors import InputError, RagleagueError
from ui.access import Role
from ui.entrance import LOOPBACK, Entrance, entrance, sign_in_secrets

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
    "theme.light.primaryColor": "#b02a3b",
    "theme.dark.primaryColor": "#c23b4b",
}
"""Streamlit quiet and offline, whatever the user's own settings say. Other host names and requests that come from other
pages are refused, so no foreign page can read along or edit, and no header says who somebody is; the details of an
unforeseen error, which may quote texts from outside, go to the terminal and not to the page. Python collects garbage in
its own time, not for a tenth of a second after each page. White text can be read on the colours."""


def serve(location: str, way_in: Entrance, *, port: int, open_browser: bool, config: str | None = None) -> None:
    """Serve the pages of a store until interrupted.

    Args:
        location: a path, or a database URL.
        way_in: who can reach the pages, and may do what.
        config: the YAML file whose tournament it is; what that names can then be edited on the pages.
        port: on the address of ``way_in``; 0 picks a free one.
        open_browser: also open the first page in the user's browser, where there is a display.

    Raises:
        InputError: there is no store, or the port is taken.
        StoreError: the store cannot be read.
    """
    from arena.store import Store
    from ui.data import LOCATION_VARIABLE
    from ui.editing import CONFIG_VARIABLE
    from ui.shell import shell

    Store.open(location).close()
    chosen = _free_port(way_in.address, port)
    config = None if config is None else str(Path(config).absolute())
    _tell({LOCATION_VARIABLE: location, CONFIG_VARIABLE: config, **way_in.variables})
    threading.Thread(target=_announce, args=(way_in, chosen), daemon=True).start()
    options = {**_OPTIONS, "server.address": way_in.address, "server.port": chosen}
    # Left alone, Streamlit opens a browser where there is a display to open it on.
    headless = {} if open_browser else {"server.headless": True}
    shell(way_in).run(config={**options, "server.allowedHosts": list(way_in.hosts), **headless})


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
        "--without-sign-in", choices=[role.value for role in Role][1:], help="the role of whoever reaches it"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    given = parser.parse_args(arguments)
    _end_when_told()
    try:
        way_in = entrance(
            sign_in_secrets(),
            address=given.address,
            hosts=given.host,
            roles=given.roles,
            everybody=Role(given.without_sign_in) if given.without_sign_in else None,
        )
        serve(given.location, way_in, port=given.port, open_browser=not given.no_browser, config=given.config)
    except RagleagueError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
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


def _announce(way_in: Entrance, port: int) -> None:
    """Say where the pages are once somebody answers there."""
    there = _reachable(way_in.address)
    while True:
        try:
            socket.create_connection((there, port)).close()
            break
        except OSError:
            time.sleep(0.05)
    url = f"http://{f'[{there}]' if ':' in there else there}:{port}" if way_in.url is None else way_in.url
    print(f"The leaderboard is at {url.replace('{port}', str(port))} (Ctrl-C stops it)", flush=True)  # noqa: T201


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


if __name__ == "__main__":
    sys.exit(main())
