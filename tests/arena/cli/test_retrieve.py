"""``agents retrieve``: a run file out of a corpus and queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.data.runs import read_run
from tests.support.llm_server import LLMServer, Reply

CORPUS = "did\tdocument\na\tElo ratings of games\nb\tkappa of judges\nc\t \n"
QUERIES = "q1\tratings of a game\nq2\tkappa\nq3\tzebra\n"


@pytest.fixture
def options(tmp_path: Path) -> list[object]:
    (tmp_path / "corpus.tsv").write_text(CORPUS)
    (tmp_path / "queries.tsv").write_text(QUERIES)
    return ["--corpus", tmp_path / "corpus.tsv", "--queries", tmp_path / "queries.tsv", "--out", tmp_path / "x.run"]


def test_bm25_writes_a_run_and_says_what_it_left_out(cli: Any, options: list[object], tmp_path: Path) -> None:
    ended = cli("retrieve", *options)
    assert ended.status == 0
    assert "2 documents for 2 queries, run bm25" in ended.out
    assert "1 queries find nothing" in ended.err
    assert "1 documents have no text" in ended.err
    run = read_run(tmp_path / "x.run")
    assert (run.name, {query: ranking.doc_ids for query, ranking in run.rankings.items()}) == (
        "bm25",
        {"q1": ("a",), "q2": ("b",)},
    )


def test_a_server_s_embeddings_make_a_run(cli: Any, options: list[object], tmp_path: Path) -> None:
    with LLMServer() as server:
        hosted = [
            "--retriever",
            "dense",
            "--embeddings",
            "openai",
            "--set",
            "model=vec 1",
            "--set",
            f"base_url={server.openai_url}",
        ]
        assert cli("retrieve", *options, *hosted).status == 0
    assert read_run(tmp_path / "x.run").name == "dense-vec-1"


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--embeddings", "openai"], "error: --set: provider 'openai' needs a 'model'"),
        (
            ["--embeddings", "hashed", "--set", "model=m"],
            "error: --set: provider 'hashed' has no use for 'model'",
        ),
        (["--embeddings", "openai", "--set", "model=m"], "error: no key for model 'm'"),
        (["--embeddings", "transformers", "--set", "path=gone"], "error: gone: is not a folder"),
    ],
)
def test_embeddings_that_cannot_be_made_are_one_line(
    cli: Any, options: list[object], extra: list[str], said: str
) -> None:
    ended = cli("retrieve", *options, "--retriever", "dense", *extra)
    assert ended.status == 2
    assert ended.err.splitlines()[-1].startswith(said)


def test_a_server_that_fails_is_one_line_and_leaves_no_run(cli: Any, options: list[object], tmp_path: Path) -> None:
    with LLMServer(lambda call: Reply(status=401, text="no")) as server:
        hosted = [
            "--retriever",
            "dense",
            "--embeddings",
            "openai",
            "--set",
            "model=v",
            "--set",
            f"base_url={server.openai_url}",
        ]
        ended = cli("retrieve", *options, *hosted)
    assert (ended.status, ended.err.splitlines()[-1]) == (1, f"error: v at {server.openai_url}: HTTP 401: no")
    assert not (tmp_path / "x.run").exists()
