"""Agents that are asked each query several times, over real HTTP, by a server that never answers the same way twice."""

from __future__ import annotations

import itertools
import json
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import load_config
from arena.results.cache import cached_games
from arena.run.judging import load_data
from arena.store import Store
from judges.types import Answer, repeat_of
from tests.support.agents import answering, asked, http_agent, write_config
from tests.support.children import begin, ended
from tests.support.llm_server import Call, LLMServer, Reply

QUERIES = [f"q{number}" for number in range(12)]


def moody() -> Callable[[Call], Reply]:
    """A script for the server: each reply uses other words of a query, and says how many came before it."""
    number, draws = itertools.count(1), random.Random(3)

    def script(call: Call) -> Reply:
        words = " ".join(word for word in ("What", "is", asked(call)) if draws.random() < 0.7)
        body = {"answer": f"{words} ({next(number)})", "found": [], "tokens": 40, "dollars": 0.001}
        return Reply(body=body, delay_s=0.02)

    return script


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(moody()) as running:
        yield running


def declared(server: LLMServer, **repeats: int) -> dict[str, Any]:
    """Agents behind the same address, so that all are one system."""
    url = f"http://127.0.0.1:{server.port}/x"
    return {name: http_agent(url, **({"repeats": number} if number > 1 else {})) for name, number in repeats.items()}


def configured(folder: Path, server: LLMServer, **repeats: int) -> Path:
    return write_config(folder, declared(server, **repeats), QUERIES, criteria={"judge": "words"})


def answers(path: Path) -> dict[tuple[str, str], Answer]:
    config = load_config(path)
    with closing(Store.open(config.store)) as store:
        return dict(store.dataset(config.name).answers)


def test_every_repeat_is_asked_anew_kept_and_asked_once(cli: Any, tmp_path: Path, server: LLMServer) -> None:
    config = configured(tmp_path, server, x=3, twin=3, plain=1, copy=1)
    assert re.search(r"Agents asked +x +36 +0 +36 ", cli("plan", config).out)
    ran = cli("run", config, "--format", "json")
    assert ran.status == 0, ran.err
    assert len(server.calls) == (3 + 3) * 12, "names without repeats share the first answers of the system"
    assert "agent x: 36 answered, 0 needed no call, 0 failed, 0 left of 36" in ran.err
    assert "agent plain: 0 answered, 12 needed no call" in ran.err
    texts = Counter(answer.text for (_, name), answer in answers(config).items() if repeat_of(name)[0] in ("x", "twin"))
    assert len(texts) == 72, "two names for one system with repeats have texts of their own"
    again = cli("run", config, "--format", "json")
    assert (again.out, len(server.calls)) == (ran.out, 72)
    more = configured(tmp_path, server, x=4, twin=3, plain=1, copy=1)
    assert cli("run", more).status == 0
    assert len(server.calls) == 72 + 12, "one more repeat asks that alone"


def test_a_killed_run_goes_on_with_the_repeats_that_are_missing(tmp_path: Path, server: LLMServer) -> None:
    config = configured(tmp_path, server, x=3, y=2)
    child = begin("make", "answers", config, folder=tmp_path)
    while len(server.calls) < 20:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    kept, before = len(load_data(load_config(config)).answers), len(server.calls)
    assert ended(begin("make", "answers", config, folder=tmp_path)).status == 0
    assert len(server.calls) - before == 60 - kept, "what was in flight is asked again, and nothing that is kept"
    replies = load_data(load_config(config)).answers.values()
    assert len({reply.text for reply in replies}) == len(replies) == 12 * (3 + 2)


def test_repeats_play_with_their_like_and_scores_are_means_within_the_query(
    cli: Any, tmp_path: Path, server: LLMServer
) -> None:
    config = configured(tmp_path, server, x=3, twin=3, other=2)
    board = json.loads(cli("run", config, "--format", "json").out)
    games = {(2, "other"): 2 * 12 * 2, (3, "twin"): 3 * 12}
    assert board["coverage"]["pairwise"]["wanted"] == 2 * sum(games.values())
    assert board["coverage"]["criteria"]["wanted"] == (3 + 3 + 2) * 12
    assert [row["agent"] for row in sorted(board["agents"], key=lambda row: row["agent"])] == ["other", "twin", "x"]
    assert board["agents"][0]["criteria"]["relevance"]["graded"] in (24, 36)
    assert board["costs"]["agents"]["x"]["answered"] == 36
    assert board["noise"].keys() == {"pairwise", "criteria"}
    floor = board["noise"]["pairwise"]
    assert (floor["queries"], floor["repeats"]) == (12, 3)
    assert 0 < floor["floor_low"] < floor["floor"] < floor["floor_high"]
    with closing(Store.open(load_config(config).store)) as store:
        table = cached_games(store, "asked")
    assert table.repeat is not None
    assert Counter(table.repeat.tolist()) == {1: 36, 2: 36, 3: 12}
    key = next(table.key(row) for row in range(len(table)) if table.repeat[row] == 3)
    assert (key.agent_a, key.agent_b) == ("twin (repeat 3)", "x (repeat 3)")
    assert table.key(table.find(key) or 0) == key
    assert table.of_pairs([key[:3]]).sum() == 1


def test_compare_of_an_agent_with_itself_and_the_noise_floor_everywhere(
    cli: Any, tmp_path: Path, server: LLMServer
) -> None:
    config = configured(tmp_path, server, x=2, y=3)
    assert cli("run", config).status == 0
    itself = cli("compare", config, "x", "x")
    assert "x (repeat 1) is worse than x (repeat 2)" in itself.out or "than x (repeat 2)." in itself.out
    assert "Win rate: two runs of one system on 12 queries differ by up to 0." in itself.out
    assert "x (repeat 1) scores 0." in itself.out, "no win rate against itself: its repeats never met"
    parsed = json.loads(cli("compare", config, "y", "y", "--format", "json").out)
    assert (parsed["new"], parsed["old"]) == ("y (repeat 1)", "y (repeats 2 to 3)")
    assert "0.5 is even" not in itself.out, "its difference is new minus old"
    assert {score["on"] for score in parsed["scores"]} == {"pairwise", "criteria"}
    assert {score["on"]: score["noise"]["repeats"] for score in parsed["scores"]} == {"pairwise": 2, "criteria": 3}
    other = cli("compare", config, "x", "y")
    assert "12 answers of y in no game, since x has no such repeat." in other.out
    assert "of its variance, answers make " in other.out
    assert "Two runs differ by up to" in cli("leaderboard", config, "--details").out
    assert cli("report", config, "--out", tmp_path / "report.html").status == 0
    assert "Noise floor" in (tmp_path / "report.html").read_text()
    planned = cli("plan", config).out
    assert "Twice the repeats" in planned
    assert "2 answers to each query: at equal numbers of games new queries tell more" in planned
    assert "two repeats on 20 to 30 queries suffice" in planned


def test_without_repeats_nothing_speaks_of_them(cli: Any, tmp_path: Path) -> None:
    with LLMServer(answering()) as server:
        config = configured(tmp_path, server, x=1, y=1)
        ran = cli("run", config, "--format", "json")
        outputs = [ran.out, ran.err, *(cli(*words).out for words in (("plan", config), ("compare", config, "x", "y")))]
        refused = cli("compare", config, "x", "x")
    assert not [output for output in outputs if "noise" in output.lower() or "repeat" in output]
    assert refused.status == 2
    assert "'x' answered each query once, so it cannot be compared with itself" in refused.err


def test_a_file_of_answers_is_not_asked_several_times(cli: Any, tmp_path: Path) -> None:
    agents = {"x": {"kind": "file", "answers": "x.csv", "repeats": 2}}
    refused = cli("plan", write_config(tmp_path, agents))
    assert refused.status == 2
    assert "'repeats' asks a system anew; the answers of a file have a column 'repeat' instead" in refused.err


def test_an_adaptive_schedule_plays_repeats_and_chooses_the_same_again(
    cli: Any, tmp_path: Path, server: LLMServer
) -> None:
    schedule = {"kind": "adaptive", "batch": 10, "max_games": 30, "decide": "order"}
    pairwise = {"judges": "words", "documents": {"include": False}, "schedule": schedule}
    config = write_config(tmp_path, declared(server, x=3, y=3), QUERIES, pairwise=pairwise)
    board = json.loads(cli("run", config, "--format", "json").out)
    assert board["adaptive"]["possible"] == 3 * 12
    assert board["adaptive"]["games"] <= 30
    again = cli("run", config, "--format", "json")
    assert "pairwise: 0 judged, " in again.err
    assert json.loads(again.out)["adaptive"] == board["adaptive"]
