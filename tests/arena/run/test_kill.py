"""Runs that are killed or interrupted: nothing stored is lost, and only calls in flight are asked twice."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import Config, load_config
from arena.store import Store
from judges.errors import CAUSES, RETRIED_NEXT_RUN
from judges.types import JudgeFailure, Judgment, Task
from tests.conftest import ROOT
from tests.support.children import Child, begin, ended
from tests.support.postgres import PostgresServer
from tests.support.tournaments import configured, outcomes, results, run, write_data

QUERIES = [f"q{number}" for number in range(8)]
ALL = len(QUERIES) * (4 + 6 + 3)
CONCURRENCY = 6

CHILD = """
import sys
from pathlib import Path
from arena.config.schema import Config, load_config
from arena.run.judging import run
from tests.support.tournaments import Quiet
print("complete" if run(load_config(Path(sys.argv[1])), Quiet()).complete else "incomplete")
"""

FILE = """
name: small
store: '{store}'
data: {{queries: queries.csv, documents: documents.csv, answers: answers.csv}}
judges: {{judge: {{provider: openai, model: gpt-x, base_url: '{url}', concurrency: {concurrency}{limits}}}}}
retrieval: {{judge: judge}}
pairwise: {{judges: [judge], documents: {{threshold: 1}}}}
criteria: {{judge: judge, documents: {{threshold: 1}}}}
"""


@contextmanager
def slow_server(delay_ms: int, hostile: float = 0) -> Iterator[str]:
    declared = ["--delay-ms", str(delay_ms), "--hostile", str(hostile)]
    server = Child("from tests.support.llm_server import main; main()", declared, ROOT, os.environ)
    try:
        while not (port := server.out()).endswith("\n"):
            assert server.poll() is None, server.communicate()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{int(port)}"
    finally:
        server.kill()
        server.communicate()


def log(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/log", timeout=60) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


def unbroken(folder: Path) -> Config:
    (folder / "unbroken").mkdir()
    with slow_server(0) as url:
        whole = load_config(written(folder / "unbroken", url))
        assert run(whole).complete
    return whole


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    children: list[Child] = []

    def start(config: Path) -> Child:
        children.append(Child(CHILD, [str(config)], tmp_path, os.environ))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()


def written(
    folder: Path,
    url: str,
    concurrency: int = CONCURRENCY,
    limits: str = "",
    file: str = FILE,
    store: str = "store.db",
) -> Path:
    write_data(folder, QUERIES)
    config = folder / "tournament.yaml"
    config.write_text(file.format(url=f"{url}/v1", concurrency=concurrency, limits=limits, store=store))
    return config


def wait_for(url: str, asked: int, child: Child | None = None) -> None:
    deadline = time.monotonic() + 120
    while log(url)["count"] < asked:
        assert child is None or child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def judged(config: Path) -> dict[str, Judgment]:
    loaded = load_config(config)
    return {result.judgment_id: result for result in results(loaded).values() if isinstance(result, Judgment)}


def stored(config: Path, known: dict[str, Judgment]) -> dict[str, Any]:
    store = Store.open(load_config(config).store)
    found = store.results(list(known))
    store.close()
    return found


def test_a_run_killed_three_times_judges_everything_once(tmp_path: Path, started: Any) -> None:
    with slow_server(150) as url:  # a wave of calls takes longer than a commit, even on a busy machine
        config = written(tmp_path, url)
        kept: dict[str, Judgment] = {}
        for moment in (ALL // 8, ALL // 3, ALL // 3 * 2):
            child = started(config)
            wait_for(url, moment, child)
            child.send_signal(signal.SIGKILL)
            child.communicate()
            assert stored(config, kept) == kept, "what was stored before is there still"
            kept |= judged(config)
            assert len(kept) >= log(url)["count"] - 3 * 2 * CONCURRENCY
        assert run(load_config(config)).complete
        told = log(url)
    asked = Counter(call["sha256"] for call in told["calls"])
    assert len(asked) == ALL
    assert sum(asked.values()) - ALL <= 3 * 2 * CONCURRENCY, "in flight, and as many on their way into the store"
    assert stored(config, kept) == kept
    assert len(judged(config)) == ALL

    assert outcomes(load_config(config)) == outcomes(unbroken(tmp_path))


SAYS_WHEN_ASKED_TO_STOP = """
import asyncio
from judges.judge import Stop
request = Stop.request
def said(stop):
    request(stop)
    asyncio.get_running_loop().call_soon(lambda: print("asked to stop", flush=True))  # once the signal is dealt with
Stop.request = said
"""


def test_a_second_interrupt_stops_at_once_with_a_whole_store(tmp_path: Path) -> None:
    with slow_server(600_000) as url:
        config = written(tmp_path, url)
        child = Child(SAYS_WHEN_ASKED_TO_STOP + CHILD, [str(config)], tmp_path, os.environ)
        wait_for(url, 1, child)  # a judge is asked more at once when it has replied
        child.send_signal(signal.SIGINT)
        while child.poll() is None and not child.out():
            time.sleep(0.01)
        assert child.poll() is None, "the first one waits for what is in flight"
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate()
    assert out == "asked to stop\n"
    assert child.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert judged(config) == {}
    with slow_server(0) as url:
        assert run(configured(tmp_path, f"{url}/v1")).complete


def test_two_runs_on_one_store_share_the_work(tmp_path: Path, started: Any, store_location: str) -> None:
    with slow_server(50) as url:
        config = written(tmp_path, url, store=store_location)
        children = [started(config), started(config)]
        for child in children:
            assert child.communicate(timeout=300) == ("complete\n", "")
        told = log(url)
    assert told["count"] == ALL
    assert len({call["sha256"] for call in told["calls"]}) == ALL
    assert len(judged(config)) == ALL


def test_a_server_that_stays_away_ends_a_run_with_one_line_and_status_3(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    impatient = "from arena.store import engine; engine.PATIENCE_S = 0.6"
    with slow_server(50) as url:
        config = written(tmp_path, url, store=postgres.database())
        child = begin("run", config, folder=tmp_path, keys={"OPENAI_API_KEY": "none"}, before=impatient)
        wait_for(url, ALL // 3, child)
        with postgres.away():
            done = ended(child)
        assert (done.status, done.out) == (3, "")
        (line,) = done.err.splitlines()
        assert re.search(r"went away and was not back .* run again to continue; .* not be stored: [1-9]\d*$", line), (
            line
        )
        lost, asked = int(line.rpartition(" ")[2]), log(url)["count"]
        assert run(load_config(config)).complete
        assert log(url)["count"] <= ALL + lost + CONCURRENCY < ALL + asked


def test_a_run_takes_over_what_a_killed_one_was_about_to_ask(tmp_path: Path, started: Any, store_location: str) -> None:
    with slow_server(300) as url:  # replies are stored before the next ones come, on a busy machine too
        config = written(tmp_path, url, store=store_location)
        killed, other = started(config), started(config)
        wait_for(url, ALL // 4, killed)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert other.communicate(timeout=300) == ("complete\n", "")
        told = log(url)
    assert len({call["sha256"] for call in told["calls"]}) == ALL
    assert told["count"] - ALL <= 2 * CONCURRENCY
    assert len(judged(config)) == ALL


def test_against_a_hostile_server_and_kills_every_judgment_is_right_or_a_listed_failure(
    tmp_path: Path, started: Any
) -> None:
    """Three in ten requests go wrong in ten ways, and three runs are killed: what is judged is never asked again."""
    with slow_server(10, hostile=0.3) as url:
        config = written(tmp_path, url, limits=", timeout_s: 1, max_attempts: 4")
        loaded = load_config(config)
        settled: set[str] = set()
        for moment in (ALL // 6, ALL // 6, ALL // 6):
            already = log(url)["count"]
            child = started(config)
            wait_for(url, already + moment, child)
            child.send_signal(signal.SIGKILL)
            child.communicate()
            settled |= set(judged(config))
        before = log(url)["count"]
        summary = run(loaded)
        after_kills = log(url)["calls"][before:]
    kept = results(loaded)
    wrong = [result for result in kept.values() if isinstance(result, JudgeFailure)]
    assert all(result.cause in CAUSES for result in wrong)
    labels = {want: result for want, result in kept.items() if want.task is Task.RELEVANCE}
    unlabelled = {want.query_id for want, result in labels.items() if result in wrong}
    to_retry = {want.query_id for want, result in labels.items() if getattr(result, "cause", "") in RETRIED_NEXT_RUN}
    left = [want for want, result in kept.items() if result is None]
    assert {want.query_id for want in left} <= to_retry, "what waits for a label that the next run asks for again"
    stages = summary.stages.values()
    assert sum(stage.judged + stage.known for stage in stages) == ALL - len(wrong) - len(left)
    assert (sum(stage.failed for stage in stages), sum(stage.left for stage in stages)) == (len(wrong), len(left))
    assert sum(stage.calls for stage in stages) == len(after_kills), "the log has the calls that are counted"
    assert sum(stage.known for stage in stages) >= len(settled), "what was judged before a kill is not asked again"
    assert settled <= set(judged(config))

    right = outcomes(unbroken(tmp_path))
    comparable = {want: result for want, result in kept.items() if want.query_id not in unlabelled}
    assert len(comparable) > ALL / 2, "where a document has no label, answer judges read something else"
    judged_right = {want: result.outcome for want, result in comparable.items() if isinstance(result, Judgment)}
    assert judged_right == {want: right[want] for want in judged_right}


FORGETFUL = """
from arena.store import runners
from judges import pace
runners.SILENT_S, runners.BEAT_S = 3.0, 0.5
pace.MINUTE_S = 6.0
"""
"""A runner that is silent for three seconds is taken for dead, and a minute of a judge's limits takes six seconds."""
LIMIT = ", requests_per_minute: 20"
ANSWERED = """
name: answered
store: store.db
data: {{queries: queries.csv, corpus: corpus.csv}}
agents: {{writer: {{kind: rag, generator: judge}}}}
judges: {{judge: {{provider: openai, model: gpt-x, base_url: '{url}', concurrency: {concurrency}{limits}}}}}
"""


def requests_while_one_sleeps(
    folder: Path, slow: Path, url: str, *, awake_at: int, command: Sequence[str] = ("run",)
) -> Counter[str]:
    """How often each request came: one runner is stopped between calls, another goes on, and the first wakes up."""
    keys = {"OPENAI_API_KEY": "none"}
    quick = folder / "quick.yaml"
    quick.write_text(slow.read_text().replace(LIMIT, ""))
    asleep = begin(*command, slow, folder=folder, keys=keys, before=FORGETFUL)
    try:
        wait_for(url, 20, asleep)  # until its minute ends it waits with nothing in flight
        time.sleep(0.5)
        asleep.send_signal(signal.SIGSTOP)
        other = begin(*command, quick, folder=folder, keys=keys, before=FORGETFUL)
        wait_for(url, awake_at, None)
    finally:
        asleep.send_signal(signal.SIGCONT)
    for child in (other, asleep):
        done = ended(child)
        assert done.status == 0, done.err
    return Counter(call["sha256"] for call in log(url)["calls"])


@pytest.mark.parametrize("awake_at", [ALL, 21], ids=["all is asked", "the other has just begun to ask"])
def test_a_runner_that_slept_beyond_its_claim_asks_nothing_that_another_has_asked(
    tmp_path: Path, store_location: str, awake_at: int
) -> None:
    """Such as a laptop that was closed: what it had claimed is another's by the time it goes on."""
    with slow_server(30) as url:
        slow = written(tmp_path, url, limits=LIMIT, store=store_location)
        asked = requests_while_one_sleeps(tmp_path, slow, url, awake_at=awake_at)
    assert len(asked) == sum(asked.values()) == ALL


def test_a_runner_that_slept_asks_no_agent_for_an_answer_that_another_has(tmp_path: Path) -> None:
    """Its calls wait within the agent, whose model has a limit."""
    queries = [f"q{number}" for number in range(40)]
    with slow_server(30) as url:
        slow = written(tmp_path, url, limits=LIMIT, file=ANSWERED)
        write_data(tmp_path, queries)
        (tmp_path / "corpus.csv").write_text("did,document\nd1,What q1 asks is answered here.\n")
        asked = requests_while_one_sleeps(tmp_path, slow, url, awake_at=len(queries), command=("make", "answers"))
    assert len(asked) == sum(asked.values()) == len(queries)
