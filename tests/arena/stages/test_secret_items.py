"""No command and no page shows a secret item: neither its text nor its id, its gold answers, nor a reply about it."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.results.exam import stored_bank
from arena.store import Store
from retrieval_eval.exam.items import item_id_of
from tests.conftest import CLI
from tests.support.exams import LAYERS, PIONEERS, exam_config, write_bank_csv, write_exam
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.pages import config_file, page, sent
from ui.access import EVERYBODY_VARIABLE
from ui.data import LOCATION_VARIABLE
from ui.editing import CONFIG_VARIABLE

QUESTION, GOLD, CHOICE = "What is the PLANTED-QUESTION?", "PLANTED-GOLD", "PLANTED-CHOICE"
PLANTED = ("PLANTED", item_id_of("skin", QUESTION).rpartition("/")[2])
COLUMNS = ("qid", "question", "answers", "choices", "secret")
ITEMS = (
    ("skin", LAYERS, "epidermis", None, None),
    ("skin", QUESTION, GOLD, None, "true"),
    ("rock", "PLANTED-TOO: which?", CHOICE, f"{CHOICE}|Elvis", "true"),
    ("rock", PIONEERS, "Elvis", None, None),
)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-dummy")
    monkeypatch.setenv(EVERYBODY_VARIABLE, "editor")


def repeating(call: Call) -> Reply:
    asked: str = call.body["messages"][1]["content"]
    if "response_format" in call.body:
        return steady_judge(call)
    if "<<<right answer" in asked and "Elvis" in asked:
        return Reply("yes")
    return Reply(asked if "soft" in asked else f"5, since you asked: {asked}")


def write_config(folder: Path, url: str, **section: Any) -> Path:
    return config_file(exam_config(folder, url, **section))


@pytest.mark.parametrize("section", [{}, {"grading": "extraction_words"}, {"grading": "extraction_llm"}])
def test_of_a_bank_file_nothing_secret_is_shown(
    tmp_path: Path, cli: CLI, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any]
) -> None:
    write_exam(tmp_path, ITEMS, COLUMNS)
    with LLMServer(repeating) as server:
        config = write_config(tmp_path, server.openai_url, **section)
        outputs = every_output(cli, config, tmp_path)
        assert any("PLANTED" in call.content.decode() for call in server.calls), "it is graded with"
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "exam.db"))
    for started_with in (None, config):
        if started_with is not None:
            monkeypatch.setenv(CONFIG_VARIABLE, str(started_with))
        for name in ("leaderboard", "compare", "bank", "games"):
            outputs[f"page {name} {started_with}"] = sent(page(name))
    for name, said in outputs.items():
        assert [word for word in PLANTED if word in said] == [], name
    if not section:
        assert "(secret)" in outputs[f"failures {config}"], "a reply that repeats the item is no rating"
    assert LAYERS in outputs["page bank None"]
    assert LAYERS in outputs[f"page bank {config}"]
    with closing(Store.open(str(tmp_path / "exam.db"))) as store:
        assert not any(item.text in (QUESTION, "PLANTED-TOO: which?") for item in stored_bank(store, "exam").items)


def every_output(cli: CLI, config: Path, folder: Path) -> dict[str, str]:
    store, bank, grades = folder / "exam.db", folder / "bank.csv", folder / "g.csv"
    commands: list[tuple[Any, ...]] = [
        ("plan", config),
        ("doctor", config),
        ("run", config, "--log-json", folder / "log.jsonl"),
        ("run", config, "--format", "json"),
        ("make", "grades", config, "--out", grades, "--log-json", folder / "log.jsonl"),
        ("make", "grades", config, "--format", "json", "--out", folder / "g.jsonl.gz"),
        *[("leaderboard", store, "--format", form) for form in ("table", "json", "csv", "md", "html")],
        ("failures", config),
        ("failures", store, "--format", "json"),
        ("bank", "show", bank),
        ("bank", "show", bank, "--format", "json"),
        ("convert", "bank", bank, folder / "open.csv"),
        ("exam", "score", grades, "--bank", bank, "--format", "json"),
        ("make", "grades", config, "--secret", "--out", folder / "all.jsonl.gz"),
        ("convert", "workbench", folder / "all.jsonl.gz", folder / "w.jsonl.gz", "--bank", bank),
        *[
            ("exam", view, folder / "all.jsonl.gz", "--bank", bank, "--query", "skin", *form)
            for view in ("summary", "answers", "grid", "influence")
            for form in (
                (),
                (
                    "--format",
                    "json",
                ),
            )
        ],
    ]
    said = {}
    for command in commands:
        ended = cli(*command)
        assert ended.status in {0, 3}, (command, ended.err)
        said[" ".join(map(str, command))] = ended.out + ended.err
    for name in ("log.jsonl", "g.csv", "open.csv", "g.jsonl.gz", "w.jsonl.gz"):
        file = folder / name
        said[name] = gzip.decompress(file.read_bytes()).decode() if name.endswith(".gz") else file.read_text()
    assert "exam" in json.loads(said[f"leaderboard {store} --format json"])["settings"]
    assert LAYERS in said[f"bank show {bank}"]
    return said


def test_of_a_bank_that_a_judge_writes_nothing_secret_is_shown(
    tmp_path: Path, cli: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_exam(tmp_path)
    with LLMServer() as server:
        config = write_config(tmp_path, server.openai_url, generate={"per_query": 6, "secret": 0.5})
        assert cli("run", config, "--format", "json").status == 0
        said = {name: cli(name, config).out for name in ("leaderboard", "failures", "plan")}
        said["json"] = cli("leaderboard", config, "--format", "json").out
    with closing(Store.open(str(tmp_path / "exam.db"))) as store:
        items = stored_bank(store, "exam").items
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "exam.db"))
    said |= {name: sent(page(name)) for name in ("leaderboard", "compare", "bank")}
    monkeypatch.setenv(CONFIG_VARIABLE, str(config))
    said["edits"] = sent(page("bank"))
    secret = [item for item in items if item.secret]
    assert len(secret) == 6
    for name, output in said.items():
        assert not [item for item in secret if item.text in output or item.item_id in output], name
    assert any(item.text in said["bank"] for item in items if not item.secret)


@pytest.mark.parametrize(
    ("grading", "kept"), [("self_rating", False), ("extraction_llm", False), ("extraction_words", True)]
)
def test_a_store_keeps_gold_answers_of_secret_items_only_where_scores_are_made_with_them(
    tmp_path: Path, cli: CLI, grading: str, kept: bool
) -> None:
    write_exam(tmp_path, ITEMS, COLUMNS)
    with LLMServer() as server:
        assert cli("run", write_config(tmp_path, server.openai_url, grading=grading)).status == 0
    settings = json.dumps(settings_of(tmp_path))
    assert "epidermis" in settings
    assert (GOLD in settings, CHOICE in settings) == (kept, kept)


def test_an_item_that_became_secret_is_secret_at_once(tmp_path: Path, cli: CLI) -> None:
    columns = ("qid", "question", "secret")
    write_exam(tmp_path, [("skin", "PLANTED?", None), ("rock", PIONEERS, None)], columns)
    with LLMServer() as server:
        config = write_config(tmp_path, server.openai_url)
        assert cli("run", config).status == 0
        write_bank_csv(tmp_path, [("skin", "PLANTED?", "true"), ("rock", PIONEERS, None)], columns)
        assert cli("run", config).status == 0
    assert b"PLANTED" not in json.dumps(settings_of(tmp_path)).encode()


def settings_of(folder: Path) -> dict[str, Any]:
    with closing(Store.open(str(folder / "exam.db"))) as store:
        return dict(store.settings("exam").raw)
