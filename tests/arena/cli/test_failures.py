"""``failures`` and ``run --retry-failed`` as a user meets them: what failed, why, and asking only that again."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judges.errors import CAUSES
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import write_data

FILE = """
name: {name}
store: shared.db
data: {{queries: queries.csv, documents: documents.csv, answers: answers.csv}}
judges:
  good: {{provider: openai, model: good, base_url: '{url}', api_key_env: A_KEY}}
  odd: {{provider: openai, model: odd, base_url: '{url}', api_key_env: A_KEY, max_attempts: 1}}
pairwise: {{judges: [good, odd], documents: {{include: false}}}}
ratings: {{min_coverage: 0}}
"""


def number(call: Call) -> int:
    """The same for all turns about one prompt."""
    return zlib.crc32(json.dumps(call.body["messages"][:2]).encode()) % 3


def oddly(call: Call) -> Reply:
    """The judge called odd breaks its contract on a third of the prompts and is refused another third."""
    if call.body["model"] == "odd" and number(call) == 0:
        return Reply(text="I like \x1b[31mboth, really")
    if call.body["model"] == "odd" and number(call) == 1:
        return Reply(status=400, text="not in that tone")
    return steady_judge(call)


@pytest.fixture
def tournament(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a configuration for a server; of 36 prompts odd meets all three cases."""
    monkeypatch.setenv("A_KEY", "none")
    write_data(tmp_path, [f"q{place}" for place in range(6)])

    def configured(url: str, name: str = "one") -> Path:
        config = tmp_path / f"{name}.yaml"
        config.write_text(FILE.format(url=url, name=name))
        return config

    return configured


def test_failures_are_counted_by_cause_and_judge_before_they_are_listed(cli: Any, tournament: Any) -> None:
    with LLMServer(oddly) as server:
        config = tournament(server.openai_url)
        assert cli("run", config).status == 3
    found = json.loads(cli("failures", config, "--format", "json").out)
    counts = Counter(entry["cause"] for entry in found)
    assert set(counts) == {"contract", "bad_request"}
    assert {entry["judge"] for entry in found} == {"odd"}
    assert all(entry["meaning"] == CAUSES[entry["cause"]] for entry in found)
    assert {entry["calls"] for entry in found if entry["cause"] == "contract"} == {3}
    assert {entry["reply"] for entry in found if entry["cause"] == "bad_request"} == {None}

    listed = cli("failures", config)
    assert listed.status == 0
    head, rest = listed.out.split("\n\n", 1)
    rows = [line.split() for line in head.splitlines()[1:]]
    assert {(row[0], row[1], row[-1]) for row in rows} == {(cause, "odd", str(n)) for cause, n in counts.items()}
    assert all(CAUSES[cause] in head for cause in counts)
    assert rest.count(": contract: ") == rest.count("reply: 'I like \\x1b[31mboth, really'") == counts["contract"]
    assert rest.endswith(f"{len(found)} failed\n")
    assert "\x1b" not in listed.out


def test_failures_can_be_chosen_by_cause_and_judge(cli: Any, tournament: Any) -> None:
    with LLMServer(oddly) as server:
        config = tournament(server.openai_url)
        cli("run", config)
    every = json.loads(cli("failures", config, "--format", "json").out)
    some = json.loads(cli("failures", config, "--format", "json", "--cause", "contract", "--judge", "odd").out)
    assert some == [entry for entry in every if entry["cause"] == "contract"] != []
    both = json.loads(cli("failures", config, "--format", "json", "--cause", "contract", "--cause", "bad_request").out)
    assert both == every
    assert cli("failures", config, "--judge", "good").out == "0 failed\n"
    for option, name, instead in (("--cause", "contrakt", "contract"), ("--judge", "od", "odd")):
        refused = cli("failures", config, option, name)
        assert (refused.status, refused.out) == (2, "")
        assert refused.err == f"error: {option} {name}: there is none; did you mean {instead!r}?\n"


def test_all_tournaments_of_a_store_are_listed_unless_one_is_named(cli: Any, tournament: Any, tmp_path: Path) -> None:
    with LLMServer(oddly) as server:
        for name in ("one", "two"):
            cli("run", tournament(server.openai_url, name))
    store = tmp_path / "shared.db"
    own = json.loads(cli("failures", tmp_path / "one.yaml", "--format", "json").out)
    every = json.loads(cli("failures", store, "--format", "json").out)
    assert Counter(entry["tournament"] for entry in every) == {"one": len(own), "two": len(own)}
    assert json.loads(cli("failures", store, "--tournament", "two", "--format", "json").out) == every[len(own) :]
    assert cli("failures", store).out.count("two: pairwise odd ") == len(own)


def test_retrying_asks_again_only_what_failed(cli: Any, tournament: Any) -> None:
    with LLMServer(oddly) as server:
        config = tournament(server.openai_url)
        assert cli("run", config).status == 3
        failed = json.loads(cli("failures", config, "--format", "json").out)
        asked = {call.sha256 for call in server.calls}

        before = len(server.calls)
        idle = cli("run", config)
        assert (idle.status, "run again with --retry-failed to ask for it anew" in idle.err) == (3, True), idle.err
        assert len(server.calls) == before, "what a judge said of the texts is not asked again by itself"

        server.script = steady_judge
        mended = cli("run", config, "--retry-failed")
        again = server.calls[before:]
        assert mended.status == 0
        assert f"pairwise: {len(failed)} judged, " in mended.err
        assert f" 0 failed, 0 left of 72; {len(failed)} calls" in mended.err
        assert len(again) == len(failed)
        assert {call.sha256 for call in again} <= asked
        assert {call.body["model"] for call in again} == {"odd"}
        assert all(number(call) < 2 for call in again)
        assert cli("failures", config).out == "0 failed\n"

        assert cli("run", config, "--retry-failed").status == 0
        assert len(server.calls) == before + len(failed)


def test_a_stage_that_waits_for_another_says_which(cli: Any, tmp_path: Path) -> None:
    assert cli("init", tmp_path / "mine").status == 0
    config = tmp_path / "mine/tournament.yaml"
    for _ in range(2):
        waiting = cli("run", config, "--stage", "criteria")
        assert waiting.status == 3
        assert "what is left waits for relevance: run '--stage relevance' first, or run without --stage" in waiting.err
    assert cli("run", config, "--stage", "relevance").status == 0
    assert cli("run", config, "--stage", "criteria").status == 0
