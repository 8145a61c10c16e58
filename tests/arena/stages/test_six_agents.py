"""The six agents of Rackauckas et al. (2024), from documents to a leaderboard laid out as their Tables 4 and 5."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from arena.data.win_matrix import read_win_matrix
from tests.conftest import CLI, ROOT
from tests.support.llm_server import LLMServer

AGENTS = ["RAG BM25", "RAGF BM25", "RAG KNN", "RAGF KNN", "RAG Hybrid", "RAGF Hybrid"]


def six_agents(folder: Path, **sections: Any) -> Path:
    """``configs/six-agents.yaml`` with other sections, its files where they are and its store in a folder."""
    content = yaml.safe_load((ROOT / "configs/six-agents.yaml").read_text(encoding="utf-8"))
    content["data"] = {kind: str(ROOT / "configs" / file) for kind, file in content["data"].items()}
    content |= {"ratings": {"bootstrap": {"samples": 100}, "elo": {"tournaments": 100}}, **sections}
    path = folder / "six.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def assert_laid_out_as_published(cli: CLI, config: Path, folder: Path, queries: int) -> dict[str, Any]:
    """The two tables stand on the leaderboard, and the win percentages are those of the verdicts."""
    board = json.loads(cli("leaderboard", config, "--format", "json").out)
    assert board["complete"]
    scores = board["retrieval"]["scores"]["judge"]["agents"]
    assert set(scores) == set(AGENTS)
    for agent in AGENTS:  # Table 4: MRR@5 of very and of somewhat relevant documents
        strict, lenient = (scores[agent]["measures"][f"RR(rel={label})@5"]["value"] for label in (2, 1))
        assert 0 <= strict <= lenient <= 1

    matrix = json.loads(cli("leaderboard", config, "--matrix", "--format", "json").out)
    percent = {row["agent"]: row for row in matrix["percent"]}
    assert list(percent) == AGENTS, "rows as declared, and so are columns"
    cli("export", config, folder / "verdicts.csv")
    verdicts = list(csv.DictReader(io.StringIO((folder / "verdicts.csv").read_text(encoding="utf-8"))))
    for agent in AGENTS:
        own = [percent[agent][other] for other in AGENTS if other != agent]
        assert percent[agent][agent] is None
        assert percent[agent]["average"] == pytest.approx(sum(own) / len(own), abs=1e-5)
    for row, column in ((AGENTS[0], AGENTS[5]), (AGENTS[3], AGENTS[2])):
        assert percent[row][column] == pytest.approx(100 * won_twice(verdicts, row, column) / queries, abs=1e-5)

    table = cli("leaderboard", config, "--matrix", "--format", "csv").out
    assert next(csv.reader(io.StringIO(table))) == ["agent", *AGENTS, "average"]
    (folder / "matrix.csv").write_text(table, encoding="utf-8")
    assert read_win_matrix(folder / "matrix.csv")[0] == AGENTS, "what 'ragleague rate' reads"
    return dict(board)


def won_twice(verdicts: list[dict[str, str]], agent: str, opponent: str) -> int:
    """Queries on which an agent's answer was preferred in both orders."""
    winners: dict[str, list[str]] = {}
    for row in verdicts:
        if {row["agent_a"], row["agent_b"]} == {agent, opponent}:
            winner = {"A": row["agent_a"], "B": row["agent_b"]}.get(row["verdict"], "")
            winners.setdefault(row["qid"], []).append(winner)
    return sum(won == [agent, agent] for won in winners.values())


def test_on_the_handbook_offline(cli: CLI, tmp_path: Path) -> None:
    config = six_agents(tmp_path)
    ended = cli("run", config)
    assert ended.status == 0, ended.err
    for line in ("RAG BM25: 26 answered", "RAGF Hybrid: 26 answered", "note: vectors of hashed words stand in"):
        assert line in ended.err
    board = assert_laid_out_as_published(cli, config, tmp_path, queries=26)
    costs = board["costs"]["agents"]["RAGF Hybrid"]
    assert (costs["answered"], costs["latency_s"]["known"]) == (26, 26)
    assert "latency_s" in board["costs"]["fronts"]
    again = cli("run", config)
    assert (again.status, again.out) == (0, ended.out)
    assert "RAG KNN: 0 answered, 26 known" in again.err


def test_on_the_pages_of_a_real_product(cli: CLI, shared: Path, tmp_path: Path) -> None:
    """The documentation of Qdrant, which comes with RAGElo; a model on the loopback server writes and judges."""
    recorded = shared / "data/ragelo_qdrant"
    data = {"queries": str(recorded / "queries.csv"), "corpus": str(recorded / "documents.csv")}
    with LLMServer() as server:
        config = six_agents(tmp_path, data=data, **over(server))
        ended = cli("run", config)
        assert ended.status == 0, ended.err
        asked = len(server.calls)
        assert cli("run", config).out == ended.out
        assert len(server.calls) == asked
    board = assert_laid_out_as_published(cli, config, tmp_path, queries=10)
    assert all(own["answered"] == 10 for own in board["costs"]["agents"].values())
    for agent in AGENTS:
        calls = 20 if agent.startswith("RAGF") else 10
        assert f"agent {agent}: 10 answered, 0 known, 0 failed, 0 left of 10; {calls} calls" in ended.err
        assert board["costs"]["agents"][agent]["cost_usd"]["known"] == 10
    costs = board["costs"]["agents"]
    assert costs["RAGF BM25"]["cost_usd"]["mean"] > costs["RAG BM25"]["cost_usd"]["mean"] > 0
    assert costs["RAGF BM25"]["input_tokens"]["known"] == 10


def over(server: LLMServer) -> dict[str, Any]:
    """One model on the loopback server for everything."""
    judge = {"provider": "openai", "model": "m", "base_url": server.openai_url, "price": {"input": 1, "output": 4}}
    kinds = {"RAG": "rag", "RAGF": "fusion"}
    retrievers = {"BM25": "bm25", "KNN": "dense", "Hybrid": "hybrid"}
    agents: dict[str, Any] = {}
    for name in AGENTS:
        kind, retriever = name.split()
        agents[name] = {"kind": kinds[kind], "retriever": retrievers[retriever], "generator": "gpt"}
        if retriever != "BM25":
            agents[name]["embeddings"] = {"provider": "hashed"}
    measures = ["RR(rel=2)@5", "RR(rel=1)@5"]
    return {
        "agents": agents,
        "judges": {"gpt": judge},
        "retrieval": {"judge": "gpt", "measures": measures},
        "pairwise": {"judges": ["gpt"], "documents": {"threshold": 1}},
    }
