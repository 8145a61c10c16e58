"""``demo``, ``init``, ``plan``, ``run``, ``failures`` as a user meets them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

TABLES = "data: {queries: queries.csv, documents: documents.csv, answers: answers.csv}\n"


def configured(folder: Path, text: str) -> Path:
    """A configuration of its own beside a copy of the demo's tables."""
    config = folder / "own.yaml"
    config.write_text(f"name: own\nstore: own.db\n{TABLES}{text}", encoding="utf-8")
    return config


@pytest.fixture
def demo(played_demo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played_demo, tmp_path / "demo"))


def test_the_demo_judges_nothing_twice_and_gives_the_same_bytes(cli: Any, demo: Path) -> None:
    first = cli("leaderboard", demo / "tournament.yaml", "--format", "json")
    again = cli("demo", "--out", demo)
    assert again.status == 0
    assert again.err.count(" 0 calls, $0.00") == 7
    lines = again.out.splitlines()
    assert lines[0].startswith("Nothing to conclude yet: No language model judged these games.")
    assert (len(lines) <= 25, [line for line in lines if len(line) > 80 and "/" not in line]) == (True, [])
    assert len(re.findall(r"^\d to \d +(?:(?:rag|fusion)-|weak-baseline)", again.out, re.MULTILINE)) == 7
    assert [line for line in lines if line.startswith("FAILED: ")]
    assert cli("leaderboard", demo / "tournament.yaml", "--format", "json") == first
    assert cli("leaderboard", demo / "rag-handbook.db", "--format", "json") == first


def test_init_writes_a_folder_that_can_be_run_and_leaves_a_used_one_alone(cli: Any, tmp_path: Path) -> None:
    made = cli("init", tmp_path / "new")
    assert made.status == 0
    assert "ragleague plan" in made.out
    before = sorted((tmp_path / "new").iterdir())
    refused = cli("init", tmp_path / "new")
    assert (refused.status, refused.out) == (2, "")
    assert "exists and is not empty" in refused.err
    assert sorted((tmp_path / "new").iterdir()) == before


def test_plan_counts_without_making_a_store_and_run_calls_what_was_planned(cli: Any, demo: Path) -> None:
    (demo / "rag-handbook.db").unlink()
    planned = json.loads(cli("plan", demo / "tournament.yaml", "--format", "json").out)
    assert not (demo / "rag-handbook.db").exists()
    calls = {stage["task"]: stage["calls"] for stage in planned["stages"]}
    assert set(planned["stages"][0]) >= {"judge", "wanted", "known", "identical", "input_tokens", "cost_usd", "seconds"}
    ran = cli("run", demo / "tournament.yaml", "--format", "json")
    assert f"relevance: {calls['relevance']} judged" in ran.err
    assert calls["pairwise"] >= 256  # an upper bound: the plan takes every document as relevant
    after = json.loads(cli("plan", demo / "tournament.yaml", "--format", "json").out)
    assert {stage["calls"] for stage in after["stages"]} == {0}
    assert json.loads(ran.out)["complete"]


def test_a_stage_can_be_done_alone_and_must_be_there(cli: Any, demo: Path) -> None:
    (demo / "rag-handbook.db").unlink()
    alone = cli("run", demo / "tournament.yaml", "--stage", "relevance", "--details")
    assert alone.status == 0
    assert re.search(r"^Documents labelled +100% +132 +132 +0 +0 +0$", alone.out, re.MULTILINE)
    assert re.search(r"^Games judged, each order counted +27% +1,092 +290 +0 +802 +290$", alone.out, re.MULTILINE)
    config = configured(demo, "judges: {lex: {provider: lexical}}\nretrieval: {judge: lex}\n")
    assert "Without games" in cli("run", config).out
    absent = cli("run", config, "--stage", "criteria")
    assert absent.status == 2
    assert "no section 'criteria'" in absent.err


def test_an_incomplete_run_ends_with_three_and_prints_ratings_with_their_coverage(cli: Any, demo: Path) -> None:
    cli("export", demo / "tournament.yaml", demo / "verdicts.csv")
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

    monkeypatch.setattr("arena.run.tournament.run", interrupted)
    stopped = cli("run", demo / "tournament.yaml")
    assert stopped.status == 130
    assert "what was judged is kept" in stopped.err
