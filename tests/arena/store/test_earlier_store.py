"""A store of an earlier version (commit 8f82e69, all stages, a lexical judge) opens, and nothing is asked again."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import CLI

EARLIER = Path(__file__).with_name("earlier_store")
STAGES = {"relevance": 9, "pairwise": 18, "criteria": 9, "grading": 27, "nuggets": 3, "importance": 3, "assignment": 9}
RATINGS = {  # as that version printed them
    "bm25-3": (1082.361695, 1357.907),
    "bm25-1-prf": (999.616001, 1000.0),
    "overlap-lead": (918.022304, 642.093),
}


@pytest.fixture
def tournament(tmp_path: Path) -> Path:
    shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "whole.db").write_bytes(gzip.decompress((tmp_path / "whole.db.gz").read_bytes()))
    return tmp_path / "whole.yaml"


def test_a_run_on_an_earlier_store_makes_no_calls(cli: CLI, tournament: Path) -> None:
    before = json.loads(cli("leaderboard", tournament, "--format", "json").out)
    ended = cli("run", tournament)
    assert ended.status == 0, ended.err
    for stage, number in STAGES.items():
        assert f"{stage}: 0 judged, {number} known, 0 failed, 0 left of {number}; 0 calls" in ended.err
    after = json.loads(cli("leaderboard", tournament, "--format", "json").out)
    assert after["agents"] == before["agents"]
    assert {row["agent"]: (row["elo"], row["bt"]) for row in after["agents"]} == RATINGS
