"""People who vote at once on the pages: ``python -m benchmarks.voters``; ``--postgres`` on a server's database.

Each is a session of a really started server: a websocket that speaks Streamlit's protocol as a browser does, opens the
Review page under a name, and presses "Answer 1 is better" now and then. A vote lasts from the press until everything of
the next task has come. Sessions share the machine with the server, and are told apart in processor time. At the end
the store is asked for every vote that the page called saved.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import psutil
from msgspec import Struct, field
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from arena.results.cache import cached_leaderboard
from arena.store import Store
from arena.store.annotations import Annotations
from benchmarks import page_store
from tests.support.browser import served

MEDIAN_S: Final = 0.3
"""Bar for the median seconds of a vote."""
_LABEL: Final = "Answer 1 is better"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--votes", type=int, default=15, help="of each")
    parser.add_argument("--every", type=float, default=4.0, help="seconds from vote to vote of each, on average")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server started for this")
    parser.add_argument("--store", type=Path, help="a store that an earlier run of this made; made if absent")
    parser.add_argument("--games-per-query", type=int, default=200)
    given = parser.parse_args()
    with _location(given) as location, served(location) as address:
        people = [Voter(f"voter-{time.time_ns()}-{number}") for number in range(given.people)]
        server = _server_of(location)
        began, wall = _cpu(server), time.monotonic()
        asyncio.run(all_vote(people, address, given.votes, given.every))
        took, wall = _cpu(server) - began, time.monotonic() - wall
        _report(people, took, wall)
        _require_kept(location, people)


@contextmanager
def _location(given: argparse.Namespace) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        if given.postgres:
            from tests.support.postgres import postgres_server

            with postgres_server() as server:
                yield _written(server.database(), given)
        else:
            path = given.store or Path(folder) / "store.db"
            yield str(path) if path.exists() else _written(str(path), given)


def _written(location: str, given: argparse.Namespace) -> str:
    page_store.write(location, games_per_query=given.games_per_query)
    with closing(Store.open(location)) as store:
        cached_leaderboard(store, page_store.NAME)  # as the end of a run does
    return location


class Voter(Struct):
    """One simulated voter.

    Attributes:
        opened: seconds until the first task is shown.
        seconds: seconds of each vote.
        saved: number of votes that the page called saved.
        refused: the page's words about the other votes.
    """

    name: str
    opened: float = 0.0
    seconds: list[float] = field(default_factory=list)
    saved: int = 0
    refused: list[str] = field(default_factory=list)


async def all_vote(people: list[Voter], address: str, votes: int, every: float) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as web:
        await asyncio.gather(*(_votes(voter, web, address, votes, every) for voter in people))


async def _votes(voter: Voter, web: aiohttp.ClientSession, address: str, votes: int, every: float) -> None:
    await asyncio.sleep(random.uniform(0, 2 * every))
    headers = {"Cookie": f"ragleague-annotator={quote(voter.name)}"}
    opening = web.ws_connect(f"{address}/_stcore/stream", protocols=("streamlit",), max_msg_size=0, headers=headers)
    async with opening as socket:
        begun = time.monotonic()
        page = Page(socket, "view=vote")
        await page.run()
        voter.opened = time.monotonic() - begun
        for _ in range(votes):
            await asyncio.sleep(random.uniform(0.5, 1.5) * every)
            begun = time.monotonic()
            await page.press(_LABEL)
            voter.seconds.append(time.monotonic() - begun)
            if page.says("✓ Saved"):
                voter.saved += 1
            else:
                voter.refused.append(page.problem())


class Page:
    """A page as a browser holds it: the words and buttons drawn last."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, query: str) -> None:
        self._socket, self._query = socket, query
        self._script = ""
        self._buttons: dict[str, tuple[str, str]] = {}
        self._words: list[str] = []

    async def run(self, fragment: str = "", pressed: str = "") -> None:
        asked = BackMsg()
        state = asked.rerun_script
        state.query_string, state.page_script_hash, state.fragment_id = self._query, self._script, fragment
        state.page_name = "" if self._script else "review"
        if pressed:
            trigger = state.widget_states.widgets.add()
            trigger.id, trigger.trigger_value = pressed, True
        self._words = []
        if not fragment:
            self._buttons = {}
        await self._socket.send_bytes(asked.SerializeToString())
        while not self._take(ForwardMsg.FromString(await self._socket.receive_bytes(timeout=120))):
            pass

    async def press(self, label: str) -> None:
        ident, fragment = self._buttons[label]
        self._buttons = {}
        await self.run(fragment, ident)

    def says(self, words: str) -> bool:
        return any(words in each for each in self._words)

    def problem(self) -> str:
        return " ".join(word for word in self._words if "<" not in word)[:200]

    def _take(self, message: ForwardMsg) -> bool:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._script = message.new_session.page_script_hash
        elif kind == "delta":
            self._draw(message.delta)
        return kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN

    def _draw(self, delta: Any) -> None:
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "button":
            self._buttons[element.button.label] = element.button.id, delta.fragment_id
        elif kind in ("html", "alert", "text"):
            self._words.append(getattr(element, kind).body)
        elif kind == "exception":
            self._words.append(element.exception.message)


def _report(people: list[Voter], cpu: float, wall: float) -> None:
    seconds = sorted(each for voter in people for each in voter.seconds)
    opened = sorted(voter.opened for voter in people)
    saved, refused = sum(voter.saved for voter in people), Counter(one for voter in people for one in voter.refused)
    median, late = statistics.median(seconds), seconds[int(0.95 * len(seconds))]
    bar = "met" if median < MEDIAN_S and not refused else "missed"
    print(f"{len(people)} people, {len(seconds)} votes in {wall:.0f} s: {saved} saved, {refused.total()} refused")
    for words, times in refused.most_common(3):
        print(f"  {times} times: {words}")
    print(
        f"a vote: median {median:.2f} s, 95 % within {late:.2f} s, longest {seconds[-1]:.2f} s  (bar {MEDIAN_S}: {bar})"
    )
    print(f"the first task: median {statistics.median(opened):.2f} s, longest {opened[-1]:.2f} s")
    print(f"the server's processor time: {cpu:.1f} s, {1000 * cpu / len(seconds):.0f} ms a vote with the openings")


def _require_kept(location: str, people: list[Voter]) -> None:
    names = {voter.name: voter.saved for voter in people}
    with closing(Store.open(location)) as store:
        said = Annotations(store, page_store.NAME).latest("verdict")
    kept = Counter(one.annotator for one in said if one.annotator in names)
    lost = sum(saved - kept[name] for name, saved in names.items())
    print(f"kept in the store: {kept.total()}; called saved and not there: {lost}")


def _server_of(location: str) -> psutil.Process:
    return next(own for own in psutil.Process().children(recursive=True) if location in own.cmdline())


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
