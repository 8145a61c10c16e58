"""``demo``, ``init``, ``plan``, ``run``, ``failures`` as a user meets them."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judges.errors import CAUSES
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import write_data

TABLES = "data: {queries: queries.csv, documents: documents.csv, answers: answers.csv}\n"


def configured(folder: Path, text: str) -> Path:
    config = folder / "own.yaml"
    config.write_text(f"name: own\nstore: own.db\n{TABLES}{text}", encoding="utf-8")
    return config


@pytest.fixture
def demo(played_demo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played_demo, tmp_path / "demo"))


def test_init_writes_a_folder_that_can_be_run_and_leaves_a_used_one_alone(cli: Any, tmp_path: Path) -> None:
    made = cli("init", tmp_path / "new")
    assert made.status == 0
    assert "ragleague plan" in made.out
    before = sorted((tmp_path / "new").iterdir())
    refused = cli("init", tmp_path / "new")
    assert (refused.status, refused.out) == (2, "")
    assert "exists and is not empty" in refused.err
    assert sorted((tmp_path / "new").iterdir()) == before


def test_an_incomplete_run_ends_with_three_and_prints_ratings_with_their_coverage(cli: Any, demo: Path) -> None:
    cli("export", "verdicts", demo / "tournament.yaml", demo / "verdicts.csv")
    lines = (demo / "verdicts.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (demo / "verdicts.csv").write_text("".join([line for line in lines if not line.startswith("q07,")]), "utf-8")
    config = configured(
        demo,
        "judges: {recorded: {provider: replay, path: verdicts.csv}}\n"
        "pairwise: {judges: recorded, documents: {include: false}}\n",
    )
    ran = cli("run", config, "--details")
    failed = 38  # two of q07's 21 pairs have equal answers
    assert ran.status == 3
    assert "fusion-bm25" in ran.out
    assert re.search(rf"^Games judged, each order counted +97% +1,092 +1,054 +{failed} +0 ", ran.out, re.MULTILINE)
    assert re.search(rf"no reply is recorded for this prompt .* {failed} +run again", ran.out)
    assert "'ragleague failures' lists them" in ran.out
    assert "run again to go on" in ran.err

    listed = cli("failures", config)
    assert listed.status == 0
    assert listed.out.count("not_recorded: verdicts.csv has nothing on query 'q07'") == failed
    assert listed.out.endswith(f"{failed} failed\n")
    board = json.loads(cli("leaderboard", config, "--format", "json").out)
    assert board["complete"] is False
    assert board["failures"] == {"not_recorded": failed}
    assert board["coverage"]["pairwise"]["failed"] == failed
    causes = {entry["cause"] for entry in json.loads(cli("failures", demo / "own.db", "--format", "json").out)}
    assert causes == {"not_recorded"}


def test_stopping_at_once_says_that_nothing_is_lost(cli: Any, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("arena.run.judging.run", interrupted)
    stopped = cli("run", demo / "tournament.yaml")
    assert stopped.status == 130
    assert "what was judged is kept" in stopped.err


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
    return zlib.crc32(json.dumps(call.body["messages"][:2]).encode()) % 3


def oddly(call: Call) -> Reply:
    """The judge "odd" gives unusable replies to a third of the prompts, and refuses another third."""
    if call.body["model"] == "odd" and number(call) == 0:
        return Reply(text="I like \x1b[31mboth, really")
    if call.body["model"] == "odd" and number(call) == 1:
        return Reply(status=400, text="not in that tone")
    return steady_judge(call)


@pytest.fixture
def tournament(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
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
        assert refused.err == f"error: {option} {name}: no such {option.strip('-')}; did you mean {instead!r}?\n"
