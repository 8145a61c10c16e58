"""``store check`` finds nothing in what any kind of run has written, and whatever changes afterwards."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from sqlalchemy import Float, Integer, LargeBinary, Table

from arena.results.cache import cached_leaderboard
from arena.store import Store
from arena.store.agents import AgentQuery, AgentReplies
from arena.store.annotations import Annotations
from arena.store.check import check
from arena.store.tables import (
    AGENT_REPLY,
    ANNOTATION,
    ANSWER,
    DOCUMENT,
    FIGURES,
    JUDGMENT,
    LABEL,
    QUERY,
    RETRIEVED,
    TOURNAMENT,
    WANTED,
)
from judges.types import Task
from tests.arena.store.test_annotations import SAID
from tests.arena.store.test_replies import REPLY
from tests.conftest import CLI, ROOT
from tests.support.agents import answering, http_agent, write_config
from tests.support.batched import as_yaml, hurry
from tests.support.llm_server import LLMServer
from tests.support.nugget_judge import nugget_judge, nugget_tournament
from tests.support.tournaments import configured, run, usual_documents, write_data


def demo(cli: CLI, folder: Path) -> Path:
    cli("demo", "--out", folder / "demo")
    config = folder / "demo" / "tournament.yaml"
    content = config.read_text().replace("schedule: {kind: all}", "schedule: {kind: adaptive, batch: 60}")
    config.write_text(content + "audit: {judge: lexical}\n")
    assert cli("run", config).status in {0, 3}
    return folder / "demo" / "rag-handbook.db"


def shop(cli: CLI, folder: Path, **synth: object) -> Path:
    page = (ROOT / "docs" / "from-documents.md").read_text()
    for name, content in re.findall(r"```\w+ (\S+)\n(.*?)```", page, re.DOTALL):
        (folder / name).write_text(content)
    config = yaml.safe_load((folder / "shop.yaml").read_text())
    config["synth"] |= synth
    (folder / "shop.yaml").write_text(yaml.safe_dump(config))
    assert cli("run", folder / "shop.yaml").status in {0, 3}
    return folder / "shop.db"


def checked_queries(cli: CLI, folder: Path) -> Path:
    return shop(cli, folder, filters={"answerable": "words"})


def runs_and_labels(_cli: CLI | None, folder: Path) -> Path:
    documents = [row for row in usual_documents(["q1", "q2"]) if row[-1] != "x"]
    write_data(folder, ["q1", "q2"], {("q1", "y"): "It is y [q1-all]. It is not z [q1-y]."}, documents)
    (folder / "qrels.txt").write_text("q1 0 q1-all 2\nq9 0 q9-all 1\nq1 0 elsewhere 1\n")
    (folder / "x.run").write_text("q1 Q0 q1-y 1 2.0 x\nq9 Q0 q9-all 1 2.0 x\nq1 Q0 q1-all 2 1.0 x\n")
    data = {name: str(folder / f"{name}.csv") for name in ("queries", "documents", "answers")}
    data |= {"qrels": str(folder / "qrels.txt"), "runs": [str(folder / "x.run")]}
    config = configured(folder, data=data, support={"judge": "judge"})
    assert run(config).stages[Task("support")].judged
    return folder / "store.db"


def nuggets(_cli: CLI, folder: Path) -> Path:
    write_data(folder)
    with LLMServer(nugget_judge) as server:
        run(nugget_tournament(folder, server.openai_url))
    return folder / "store.db"


def batches(cli: CLI, folder: Path) -> Path:
    with LLMServer() as server, pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        path = as_yaml(folder, server)
        cli("run", path, "--stage", "relevance")
        server.batches.held = True
        cli("run", path, "--no-wait")
    return folder / "store.db"


def agents_alone(cli: CLI, folder: Path) -> Path:
    with LLMServer(answering()) as server:
        config = write_config(folder, {"x": http_agent(f"http://127.0.0.1:{server.port}/x")})
        assert cli("make", "answers", config).status == 0
    return folder / "asked.db"


def imported(cli: CLI, folder: Path) -> Path:
    table, path = folder / "verdicts.csv", folder / "store.db"
    lines = ["qid,agent_a,agent_b,verdict,judge", "q1,x,y,A,ann", "q2,x,y,B,ann", "q2,x,z,TIE,ben"]
    for rows in (lines, lines[:3]):
        table.write_text("\n".join(rows) + "\n")
        ended = cli("import", "verdicts", table, "--store", path, "--tournament", "t")
        assert ended.status == 0, ended.err
    return path


def people(cli: CLI, folder: Path) -> Path:
    write_data(folder)
    config = configured(folder)
    run(config)
    with closing(Store.open(config.store)) as store:
        Annotations(store, config.name).add([SAID])
        Annotations(store, config.name).add([SAID])
    assert cli("store", "copy", config.store, folder / "copy.db").status == 0
    return folder / "copy.db"


def changed(_cli: CLI, folder: Path) -> Path:
    write_data(folder, ["q1", "q2", "q3"])
    run(configured(folder))
    write_data(folder, ["q2"])
    run(configured(folder, criteria=None))
    return folder / "store.db"


KINDS: list[Callable[[CLI, Path], Path]] = [
    demo, shop, checked_queries, runs_and_labels, nuggets, batches, agents_alone, imported, people, changed,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_is_wrong_with_what_a_run_has_written(
    kind: Callable[[CLI, Path], Path], tmp_path: Path, cli: CLI
) -> None:
    path = kind(cli, tmp_path)
    shown = cli("store", "check", path, "--format", "json")
    told = json.loads(shown.out)
    assert (shown.status, told["problems"]) == (0, [])


CHECKED = (
    TOURNAMENT,
    QUERY,
    DOCUMENT,
    ANSWER,
    RETRIEVED,
    LABEL,
    WANTED,
    JUDGMENT,
    ANNOTATION,
    AGENT_REPLY,
    FIGURES,
)


@pytest.fixture(scope="module")
def of_all_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with rows in every table that is checked."""
    folder = tmp_path_factory.mktemp("all")
    path = runs_and_labels(None, folder)
    with closing(Store.open(str(path))) as store:
        Annotations(store, "small").add([SAID])
        AgentReplies(store).save([(AgentQuery("agent", "why?"), REPLY)])
        cached_leaderboard(store, "small")
        assert check(store).problems == ()
    return path


@pytest.mark.parametrize("table", CHECKED, ids=lambda table: table.name)
def test_one_changed_value_is_found_in_whichever_column(table: Table, of_all_tables: Path, tmp_path: Path) -> None:
    whole = of_all_tables.read_bytes()
    for column in table.columns:
        if column.name == "position" and table is not WANTED:
            continue
        path = tmp_path / f"{column.name}.db"
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            row = f'(SELECT max(rowid) FROM {table.name} WHERE "{column.name}" IS NOT NULL)'
            number = isinstance(column.type, Integer | Float)
            changed = f'"{column.name}" + 1' if number else f"'~' || substr(\"{column.name}\", 2)"
            changed = f"CAST({changed} AS BLOB)" if isinstance(column.type, LargeBinary) else changed
            made = connection.execute(f'UPDATE {table.name} SET "{column.name}" = {changed} WHERE rowid = {row}')
            if made.rowcount == 0:
                continue  # no row has anything there
        with closing(Store.open(str(path))) as store:
            assert check(store).problems, column.name


def test_what_discard_cannot_take_out_is_said(of_all_tables: Path, tmp_path: Path, cli: CLI) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(of_all_tables.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE judgment SET outcome = '9' WHERE rowid = 1")
    shown = cli("store", "check", path, "--discard")
    assert "the damaged parts are taken out" in shown.out
    assert "cannot be taken out" not in shown.out
    assert cli("store", "check", path).status == 0

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE further (x)")
        connection.execute("INSERT INTO further VALUES (NULL)")
        connection.execute("PRAGMA writable_schema = ON")  # as if the value had been lost
        connection.execute("UPDATE sqlite_schema SET sql = 'CREATE TABLE further (x NOT NULL)' WHERE name = 'further'")
    shown = cli("store", "check", path, "--discard")
    assert shown.status == 1
    assert "cannot be taken out: the database finds: NULL value in further.x; restore a backup" in shown.out
    assert "the damaged parts are taken out" not in shown.out


def test_rows_of_a_tournament_that_is_gone_are_discarded(of_all_tables: Path, tmp_path: Path, cli: CLI) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(of_all_tables.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM tournament")
        connection.execute("DELETE FROM run")
        connection.execute("DELETE FROM annotation")
        connection.execute("DELETE FROM figures")
    assert "name a tournament that is not there" in cli("store", "check", path, "--discard").out
    assert cli("store", "check", path).status == 0
