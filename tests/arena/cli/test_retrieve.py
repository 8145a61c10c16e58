"""``agents retrieve``: a run file out of a corpus and queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.llm_server import LLMServer, Reply

CORPUS = "did\tdocument\na\tElo ratings of games\nb\tkappa of judges\nc\t \n"
QUERIES = "q1\tratings of a game\nq2\tkappa\nq3\tzebra\n"


@pytest.fixture
def options(tmp_path: Path) -> list[object]:
    (tmp_path / "corpus.tsv").write_text(CORPUS)
    (tmp_path / "queries.tsv").write_text(QUERIES)
    return ["--corpus", tmp_path / "corpus.tsv", "--queries", tmp_path / "queries.tsv", "--out", tmp_path / "x.run"]


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
