"""``docs/ask-the-store.md``: five questions by SQL and by SQLModel, on both databases, with the same answers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pandas as pd
import pytest
import sqlmodel
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine, inspect, text

from arena.data.kinds import Annotation
from arena.store import Store, models, tables
from arena.store.annotations import Annotations
from arena.store.copying import copy
from judges.types import JudgeFailure, Task
from tests.conftest import ROOT
from tests.support.sample_store import write_store

PAGE = (ROOT / "docs" / "ask-the-store.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sql|python)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SETUP, *ANSWERS = [code for language, code in BLOCKS if language == "python"]
QUESTIONS = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
SQL = [code for language, code in BLOCKS if language == "sql"]


@pytest.fixture
def engine(store_location: str) -> Iterator[Engine]:
    write_store(store_location, queries=4, failed=3, priced=True, qrels={"q00": {"q00-d0": 2}})
    write_store(store_location, name="detailed", queries=2, details={"M": 1})
    with closing(Store.create(store_location)) as store:
        games = store.outcomes("sample", Task.PAIRWISE)
        priced = [(want.task, "p", replace(result, cost_usd=0.5)) for want, result in games[-5:] if result]
        store.save([(task, prompt, result) for task, prompt, result in priced if isinstance(result, JudgeFailure)])
        query_id, a, b = games[0][0].query_id, games[0][0].item, games[0][0].other
        vote = Annotation("verdict", "ann", query_id, a, b, "0" * 32, "A")
        said = Annotations(store, "sample")
        said.add([vote, replace(vote, annotator="ben", item=b, other=a), replace(vote, annotator="cid", value=None)])
        said.add([replace(vote, value="TIE")])
    address = store_location.replace("postgresql:", "postgresql+psycopg:")
    made = create_engine(address if "://" in address else f"sqlite:///{address}")
    yield made
    made.dispose()


def rounded(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr([round(each, 9) if isinstance(each, float) else each for each in row]) for row in rows)


def test_sql_and_sqlmodel_answer_alike(engine: Engine) -> None:
    assert len(QUESTIONS) == len(SQL) == len(ANSWERS) == 5
    names: dict[str, object] = {}
    exec(compile(SETUP, "page", "exec"), names)
    names["session"].bind.dispose()  # type: ignore[attr-defined]
    with engine.connect() as connection, sqlmodel.Session(engine) as session:
        for question, statement, code in zip(QUESTIONS, SQL, ANSWERS, strict=True):
            by_sql = [tuple(row) for row in connection.execute(text(statement))]
            names |= {"session": session}
            exec(compile(code, "page", "exec"), names)
            by_model = [tuple(row) for row in names["answer"]]  # type: ignore[attr-defined]
            assert by_sql, question
            assert rounded(by_sql) == rounded(by_model), question


def test_views_come_along_with_a_copy_and_are_frames_of_pandas(engine: Engine, tmp_path: object) -> None:
    copied = f"{tmp_path}/copied.db"
    copy(engine.url.render_as_string(hide_password=False).replace("+psycopg", ""), copied)
    there = create_engine(f"sqlite:///{copied}")
    assert set(inspect(there).get_view_names()) == set(tables.VIEWS)
    for name in tables.VIEWS:
        here, also = (pd.read_sql(text(f"SELECT * FROM {name}"), each) for each in (engine, there))
        assert len(here)
        assert rounded(list(here.itertuples(index=False))) == rounded(list(also.itertuples(index=False))), name
        assert list(here.columns) == list(also.columns)
        assert here.columns[0] == "tournament"
    there.dispose()


def test_each_column_of_each_table_is_an_attribute_of_its_python_type() -> None:
    classes = {
        each.__table__.name: each  # type: ignore[attr-defined]
        for each in vars(models).values()
        if isinstance(each, type) and hasattr(each, "__table__")
    }
    assert set(classes) == set(tables.METADATA.tables)
    for name, table in tables.METADATA.tables.items():
        fields = classes[name].model_fields
        types = {
            each.name: each.type.python_type | None if each.nullable else each.type.python_type for each in table.c
        }
        assert {field: info.annotation for field, info in fields.items()} == types, name
        assert list(fields) == [each.name for each in table.columns]


def test_commands_do_not_import_sqlmodel(tmp_path: object) -> None:
    code = (
        "import sys, arena.store.check, arena.store.copying, arena.results.cache, arena.run.pipeline, arena.cli.main\n"
        "print('sqlmodel' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
