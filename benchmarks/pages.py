"""The web leaderboard on a large store: 50 agents, 1000 queries, 200,000 games: ``python -m benchmarks.pages``.

The server's work is measured in a child process that has drawn the pages of a small store before, so that libraries are
loaded: the first drawing of each page (cold) and the second (warm), by Streamlit's own runner, in processor and wall
time. The store is as ``ragleague run`` leaves it, rated; what the first reader of one that nobody rated waits for is
told apart. Calibration keeps its slow figures there too: its cold drawing is that of a store made just now. What a page
has made in the background is told apart too, and made before the page counts as warm. Then Chromium opens warm pages of
a started server, in turns with a page of Streamlit's that holds one heading.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from arena.boards.compare import compare_board
from arena.boards.queries import query_board
from arena.results.cache import cached_leaderboard
from arena.store import Store
from benchmarks import page_store
from tests.support.browser import chromium, reader, say_name, served
from ui.access import EVERYBODY_VARIABLE
from ui.data import LOCATION_VARIABLE, Work

PAGES: Final = ("leaderboard", "compare", "games", "checks", "people", "style", "queries")
BARS_S: Final = {
    **{f"{page}, warm": 0.2 for page in PAGES},
    "leaderboard, cold": 1.5,
    "compare, cold": 1.5,
    **{f"games, {what}": 0.5 for what in ("an agent", "a pair", "orders disagree", "judges disagree", "a query")},
}
"""Bars for processor seconds of the server."""
SEEN_S: Final = 1.0
"""Bar for seconds until a person sees a warm page."""
COLD_S: Final = 3.0
"""Bar for seconds until a person sees the first page of a server that was just started."""
VOTED_S, AFTER_S = 0.5, 1.5
"""Bars for seconds until a vote is called saved, and until the leaderboard after it is shown."""
BACKGROUND_S: Final = 60.0
"""Bar for seconds until what a page computes in the background is there."""
MEMORY_MB: Final = 1000
REPEATS: Final = 11
FILTERS: Final = {
    "an agent": {"agent": "agent-07"},
    "a pair": {"agent": "agent-07", "opponent": "agent-31"},
    "orders disagree": {"apart": "the two orders"},
    "judges disagree": {"apart": "the judges"},
    "a query": {"query": "query-0400"},
}
OTHERS: Final = ("compare", "queries?view=games", "queries", "trust", "workbench")
"""Further pages that have content for this store."""
LEAST: Final = "one heading"
"""Name of the page of Streamlit's that holds one heading, for comparison."""
BACKGROUND: Final = ", in the background"
DRAWN: Final = """
() => {
  return document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
    && document.querySelector('[data-testid=stApp] h1')
    && !document.querySelector('[data-testid=stSkeleton], [data-stale=true]')
    && performance.now() / 1000
}
"""
"""Seconds from the navigation to the first frame with the whole page; evaluated at every frame."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="a store that an earlier run of this made; made if absent")
    parser.add_argument("--games-per-query", type=int, default=200)
    parser.add_argument("--child", nargs=2, metavar=("SMALL", "LARGE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(*given.child)))
        return
    with tempfile.TemporaryDirectory() as folder:
        large = given.store or Path(folder) / "large.db"
        if not large.exists():
            page_store.write(large, games_per_query=given.games_per_query)
        small = page_store.write(Path(folder) / "small.db", agents=4, queries=10, games_per_query=4)
        rate(large)
        work = measured(small, large)
        for name, (wall, cpu) in work["seconds"].items():
            if name.endswith(BACKGROUND):
                print(f"{name:26} {wall:29.2f} s wall{verdict(wall, BACKGROUND_S)}")
                continue
            print(f"{name:26} {cpu:6.2f} s processor {wall:6.2f} s wall{verdict(cpu, BARS_S.get(name))}", flush=True)
        show_memory("one process, all pages", work["memory_mb"])
        in_browser(large)


def rate(store: Path) -> None:
    with closing(Store.open(str(store))) as opened:
        begun = time.process_time()
        cached_leaderboard(opened, page_store.NAME)
        compare_board(opened, page_store.NAME)
        query_board(opened, page_store.NAME)
        print(f"rating and comparing, or reading what was kept of it: {time.process_time() - begun:.2f} s processor")


def measured(small: Path, large: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.pages", "--child", str(small), str(large)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def child(small: str, large: str) -> dict[str, Any]:
    """Draw the pages of both stores; returns wall and processor seconds for the large one."""
    # Else it says at every drawing that no browser asked for it.
    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").disabled = True
    os.environ[EVERYBODY_VARIABLE] = "editor"
    os.environ[LOCATION_VARIABLE] = small
    for page in ("leaderboard", "compare", "games"):
        timed(drawn(page))
    os.environ[LOCATION_VARIABLE] = large
    seconds = {}
    for page in PAGES:
        run = drawn(page)
        seconds[f"{page}, cold"] = timed(run)
        if works := [thread for thread in threading.enumerate() if isinstance(thread, Work)]:
            begun = time.perf_counter()
            for work in works:
                work.join()
            seconds[page + BACKGROUND] = time.perf_counter() - begun, 0.0
            timed(run)
        seconds[f"{page}, warm"] = timed(run)
    for name, fields in FILTERS.items():
        run = drawn("games")
        run.session_state["more"] = True
        run.run(timeout=120)
        for key, value in fields.items():
            if key == "query":
                run.text_input(key=key).input(value)
            else:
                run.selectbox(key=key).select(value)
        seconds[f"games, {name}"] = timed(run)
    return {"seconds": seconds, "memory_mb": peak_mb(os.getpid())}


def drawn(page: str) -> Any:
    from streamlit.testing.v1 import AppTest

    return AppTest.from_function(_draw, kwargs={"page": page})


def _draw(page: str) -> None:
    from ui import data
    from ui.app import PAGES

    shown = {name: show for one in PAGES for name, show in one.views.items()}
    version, names = data.tournaments()
    shown[page](data.Source(data.location(), version, names[-1]))


def timed(run: Any) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    run.run(timeout=120)
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    assert not run.exception, run.exception
    return seconds


def in_browser(store: Path) -> None:
    """Time pages in Chromium: with a new server, and with one that has drawn them before."""
    with chromium() as browser:
        page = reader(browser).new_page()
        page.set_default_timeout(120_000)
        for name in ("leaderboard", *OTHERS):
            with served(store) as ours:
                page.goto(f"{ours}/healthz")  # a browser that has just started takes its time for any first page
                seconds = opened(page, ours if name == "leaderboard" else f"{ours}/{name}")
                print(f"Chromium, cold {name:18} {seconds:6.2f} s{verdict(seconds, COLD_S)}", flush=True)
        with served(store) as ours, one_heading() as least:
            _warm(page, ours, least)
            show_memory("the server", peak_mb(pid_of(store)))


@contextmanager
def one_heading() -> Iterator[str]:
    """Address of a page of Streamlit's that holds one heading: none of our pages can appear sooner."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "least.py")
        script.write_text("import streamlit as st\n\nst.title('One heading')\n")
        options = [f"--server.port={port}", "--server.headless=true", "--browser.gatherUsageStats=false"]
        command = [sys.executable, "-m", "streamlit", "run", str(script), *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                until_listens(port)
                yield f"http://127.0.0.1:{port}"
            finally:
                server.terminate()


def until_listens(port: int) -> None:
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}")


def _warm(page: Page, ours: str, least: str) -> None:
    addresses = {"leaderboard": ours, **{name: f"{ours}/{name}" for name in OTHERS}, LEAST: least}
    for address in addresses.values():
        opened(page, address)
    seconds: dict[str, list[float]] = {name: [] for name in addresses}
    for _ in range(REPEATS):
        for name, address in addresses.items():
            seconds[name].append(opened(page, address))
    for voter in range(REPEATS):
        say_name(page.context, ours, f"v{voter}-{time.time_ns()}")
        opened(page, f"{ours}/review?view=vote")
        begun = time.perf_counter()
        page.keyboard.press("1")
        page.wait_for_selector("p[role=status]:has-text('Saved')")
        seconds.setdefault("a vote", []).append(time.perf_counter() - begun)
        seconds.setdefault("leaderboard after it", []).append(opened(page, ours))
    bars = {"a vote": VOTED_S, "leaderboard after it": AFTER_S}
    bound = statistics.median(seconds[LEAST])
    for name, found in seconds.items():
        median, span = statistics.median(found), f"{min(found):.2f} to {max(found):.2f}"
        beside = "" if name in ("a vote", LEAST) else f", {median / bound:.1f} times one heading"
        held = "" if name == LEAST else verdict(median, bars.get(name, SEEN_S))
        print(f"Chromium, warm {name:20} {median:6.2f} s ({span}){beside}{held}")


def opened(page: Page, address: str) -> float:
    """Seconds until a page is drawn, with its charts and tables."""
    page.goto("about:blank")
    page.wait_for_timeout(300)
    page.goto(address)
    found: float = page.wait_for_function(DRAWN).json_value()
    return found


def pid_of(store: Path) -> int:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        words = entry.read_bytes().split(b"\0")
        if b"ui.serve" in words and str(store).encode() in words:
            return int(entry.parent.name)
    raise RuntimeError("no process serves the store")


def peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def show_memory(what: str, found: float) -> None:
    print(f"memory of {what}: {found:.0f} MB{verdict(found, MEMORY_MB)}")


def verdict(found: float, bar: float | None) -> str:
    return "" if bar is None else f"  (bar {bar:g}: {'met' if found <= bar else 'missed'})"


if __name__ == "__main__":
    main()
