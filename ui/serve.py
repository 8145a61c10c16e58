"""Start the web leaderboard of one store on this machine: ``python -m ui.serve LOCATION --port 8501``.

With ``--config FILE``, the YAML file that names the store, the pages can also edit the files that it names.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Final

from judges.errors import InputError, RagarenaError

ADDRESS: Final = "127.0.0.1"
"""The pages show whatever the store holds to whoever asks, so they are for this machine only."""

_OPTIONS: Final = (
    f"--server.address={ADDRESS}",
    f"--server.allowedHosts={ADDRESS}",
    "--server.allowedHosts=localhost",
    "--server.enableCORS=true",
    "--server.enableXsrfProtection=true",
    "--server.fileWatcherType=none",
    "--server.runOnSave=false",
    "--server.showEmailPrompt=false",
    "--browser.gatherUsageStats=false",
    "--client.toolbarMode=minimal",
    "--client.showErrorDetails=type",
    "--client.showErrorLinks=false",
    "--runner.magicEnabled=false",
    "--logger.hideWelcomeMessage=true",
    "--logger.level=error",
)
"""Streamlit on loopback, quiet, offline. Other host names and requests that come from other pages are refused, so no
foreign page can read along or edit, whatever the user's own Streamlit settings say; the details of an unforeseen error,
which may quote texts from outside, go to the terminal and not to the page."""


def serve(location: str, *, port: int, open_browser: bool, config: str | None = None) -> int:
    """Serve the pages of a store until interrupted.

    Args:
        location: a path, or a database URL.
        config: the YAML file whose tournament it is; what that names can then be edited on the pages.
        port: on 127.0.0.1; 0 picks a free one.
        open_browser: also open the first page in the user's browser, where there is a display.

    Returns:
        Exit status of the server.

    Raises:
        InputError: there is no store, or the port is taken.
        StoreError: the store cannot be read.
    """
    from streamlit.web import cli

    from arena.store import Store
    from ui.data import LOCATION_VARIABLE
    from ui.editing import CONFIG_VARIABLE
    from ui.roles import EVERYBODY_VARIABLE

    Store.open(location).close()
    chosen = _free_port(port)
    os.environ[LOCATION_VARIABLE] = location
    os.environ[EVERYBODY_VARIABLE] = "editor"
    os.environ.pop(CONFIG_VARIABLE, None)
    if config is not None:
        os.environ[CONFIG_VARIABLE] = str(Path(config).absolute())
    threading.Thread(target=_announce, args=(chosen,), daemon=True).start()
    # Left alone, Streamlit opens a browser where there is a display to open it on.
    headless = () if open_browser else ("--server.headless=true",)
    app = Path(__file__).with_name("app.py")
    cli.main(["run", str(app), f"--server.port={chosen}", *headless, *_OPTIONS], standalone_mode=False)
    return 0


def main() -> int:
    """Serve what the command line names; errors are one line, exit status 2 if the user's, 1 else."""
    parser = argparse.ArgumentParser(prog="python -m ui.serve", description="Serve the web leaderboard of a store.")
    parser.add_argument("location", help="a store: path or database URL")
    parser.add_argument("--port", type=int, default=8501, help="on 127.0.0.1; 0 picks a free one")
    parser.add_argument("--config", help="the YAML file that names the store, to edit what it names")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    given = parser.parse_args()
    try:
        return serve(given.location, port=given.port, open_browser=not given.no_browser, config=given.config)
    except RagarenaError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, InputError) else 1


def _announce(port: int) -> None:
    """Say where the pages are once somebody answers there."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((ADDRESS, port)) == 0:
                break
        time.sleep(0.05)
    print(f"The leaderboard is at http://{ADDRESS}:{port} (Ctrl-C stops it)", flush=True)  # noqa: T201


def _free_port(port: int) -> int:
    with socket.socket() as probe:
        # As the server will: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except (OSError, OverflowError) as error:
            raise InputError(f"port {port} on {ADDRESS} cannot be used: choose another with --port") from error
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
