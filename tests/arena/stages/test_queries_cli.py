"""The commands ``documents`` and ``synth`` as their user sees them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.support.children import ragleague
from tests.support.llm_server import LLMServer
from tests.support.query_writers import ten_each, write_documents

FILE = """
name: t
store: synth.db
judges:
  gpt: {{provider: openai, model: gpt, base_url: '{url}', concurrency: 4}}
  opus: {{provider: openai, model: opus, base_url: '{url}', concurrency: 4}}
synth: {{documents: documents, models: [gpt, opus], quotas: {{gpt: 20, opus: 10}}, out: out/queries.csv}}
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "error: nowhere: no such file or folder; check its name and folder\n"),
        ((".", "--overlap", "2"), "error: 'overlap' goes with 'tokens' and 'sentences' only\n"),
        ((".", "--out", "x.txt"), "error: x.txt: not a table: the name must end in .csv"),
    ],
)
def test_what_documents_cannot_do_is_said_in_a_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "a.md").write_text("Text.")
    done = ragleague(tmp_path, "documents", *arguments)
    assert (done.status, done.err[: len(said)], done.err.count("\n")) == (2, said, 1)


def test_a_quota_that_is_not_filled_is_one_line_and_exit_status_3(tmp_path: Path, cli: Any) -> None:
    write_documents(tmp_path, 1)
    with LLMServer(ten_each) as server:
        (tmp_path / "s.yaml").write_text(FILE.format(url=server.openai_url))
        done = cli("make", "queries", tmp_path / "s.yaml")
        assert done.status == 3
        assert f"20 queries written to {tmp_path}/out/queries.csv" in done.out
        line = "gpt: 10 queries of the 20 of its quota; sample more passages, or lower the quota"
        assert done.err.splitlines()[-1] == line
        shown = json.loads(cli("make", "queries", tmp_path / "s.yaml", "--format", "json").out)
    assert shown["short"] == {"gpt": {"kept": 10, "quota": 20}}
    assert (shown["complete"], shown["generated"], shown["kept"]) == (
        False,
        {"gpt": 10, "opus": 10},
        {"gpt": 10, "opus": 10},
    )
    assert shown["lengths"] == {"n": 20, "mean": 9.0, "least": 9, "median": 9.0, "greatest": 9}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("quotas: {gpt: 20, opus: 10}", "quotas: {gpt: 20}"), "synth: 'quotas' has none for 'opus', so its queries"),
        (("gpt: 20,", "gpt4: 20,"), "synth: 'quotas' names 'gpt4', which is none of 'models'; did you mean 'gpt'?"),
        (("models: [gpt, opus]", "models: [gpt, opsu]"), "synth: 'quotas' names 'opus', which is none of 'models'"),
        (("documents: documents", "documents: []"), "synth.documents: is empty; name at least one"),
        (("documents: documents", "document: documents"), "synth: unknown key 'document'; did you mean 'documents'?"),
        (("store: synth.db", "store: synth.db\ndate: {}"), "unknown key 'date'"),
    ],
)
def test_a_wrong_file_is_refused_in_a_line_that_says_where(
    tmp_path: Path, cli: Any, change: tuple[str, str], said: str
) -> None:
    (tmp_path / "s.yaml").write_text(FILE.format(url="http://127.0.0.1:9/v1").replace(*change))
    done = cli("make", "queries", tmp_path / "s.yaml")
    assert done.status == 2
    assert re.match(rf"error: {re.escape(str(tmp_path))}/s\.yaml:\d+: {re.escape(said)}", done.err), done.err


def test_documents_without_any_text_are_refused_before_anything_is_asked(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.txt").touch()
    (tmp_path / "s.yaml").write_text(FILE.format(url="http://127.0.0.1:9/v1"))
    done = cli("make", "queries", tmp_path / "s.yaml")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "no document has any text" in done.err


def test_a_store_with_synthetic_queries_has_only_its_tournament_to_rate(
    tmp_path: Path, cli: Any, played_demo: Path
) -> None:
    shutil.copytree(played_demo, tmp_path / "demo")
    (tmp_path / "s.yaml").write_text(
        "name: rag-handbook\nstore: demo/rag-handbook.db\njudges: {baseline: {provider: lexical}}\n"
        f"synth: {{documents: '{ROOT}/arena/demo/handbook/nuggets.md', models: baseline, out: q.csv}}\n"
    )
    store = tmp_path / "demo" / "rag-handbook.db"
    before = cli("leaderboard", store).out
    assert cli("make", "queries", tmp_path / "s.yaml").status == 0
    assert cli("leaderboard", store).out == before
    done = cli("leaderboard", store, "--tournament", "rag-handbook synth")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "only has synthetic queries; there is nothing to rate" in done.err
    assert cli("failures", tmp_path / "s.yaml").out == "0 failed\n"
