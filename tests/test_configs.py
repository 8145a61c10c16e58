"""The configurations to start from work as they stand; those for hosted models against a server of ours."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from arena.config.schema import load_config
from arena.run.plan import plan
from tests.support.llm_server import LLMServer

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
QUERIES = "q06"
"""The last query that hosted configurations are run on."""
HOSTED = ["anthropic.yaml", "batch.yaml", "compatible-server.yaml", "openai.yaml", "two-judges.yaml"]


@pytest.fixture(autouse=True)
def dummy_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-dummy")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_configuration_loads_and_can_be_planned(path: Path) -> None:
    planned = plan(load_config(path))
    assert planned.rows or planned.agents
    assert all(row.wanted and row.calls for row in planned.rows)
    assert all(row.wanted and not row.known for row in planned.agents)
    assert planned.cost_usd is not None, "the price of every judge is known"
    assert not any("cannot be opened" in note for note in planned.notes) or path.name == "local-model.yaml"


def shortened(table: Path, folder: Path) -> Path:
    """The rows of a table of the demo on its first queries."""
    with table.open(newline="", encoding="utf-8") as whole, (folder / table.name).open("w", newline="") as part:
        rows = csv.reader(whole)
        csv.writer(part).writerows([next(rows), *(row for row in rows if row[0] <= QUERIES)])
    return folder / table.name


@pytest.mark.parametrize("name", HOSTED)
def test_a_configuration_for_hosted_models_runs_to_its_end(cli: Any, tmp_path: Path, name: str) -> None:
    content = yaml.safe_load((ROOT / "configs" / name).read_text(encoding="utf-8"))
    content["data"] = {
        kind: str(shortened(ROOT / "configs" / file, tmp_path)) for kind, file in content["data"].items()
    }
    with LLMServer() as server:
        for judge in content["judges"].values():
            judge["base_url"] = server.anthropic_url if judge["provider"] == "anthropic" else server.openai_url
            judge.setdefault("price", {"input": 1, "output": 1})  # packaged prices are not another server's
        copy = tmp_path / name
        copy.write_text(yaml.safe_dump(content), encoding="utf-8")
        ended = cli("run", copy, "--format", "json")
        calls = len(server.calls)
        again = cli("run", copy, "--format", "json")
        assert len(server.calls) == calls
    assert (ended.status, again.status) == (0, 0), ended.err
    board = json.loads(ended.out)
    assert board["complete"]
    assert [row["agent"] for row in board["agents"]]
    assert set(board["by_judge"]) == (
        set(content["pairwise"]["judges"]) if len(content["pairwise"]["judges"]) > 1 else set()
    )
    assert again.out == ended.out


def test_the_offline_configuration_runs_to_its_end(cli: Any, tmp_path: Path) -> None:
    content = yaml.safe_load((ROOT / "configs/offline.yaml").read_text(encoding="utf-8"))
    content["data"] = {kind: str(ROOT / "configs" / file) for kind, file in content["data"].items()}
    (tmp_path / "offline.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    ended = cli("run", tmp_path / "offline.yaml")
    assert ended.status == 0, ended.err


def test_every_configuration_is_in_the_list() -> None:
    listed = (ROOT / "configs/README.md").read_text(encoding="utf-8")
    assert all(f"[{path.name}]({path.name})" in listed for path in CONFIGS)
