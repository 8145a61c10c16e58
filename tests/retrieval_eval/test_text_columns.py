"""Tables read in columns: the texts and the faults of reading row by row."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from judges.errors import DataError
from retrieval_eval.data.columns import Texts, in_order, read_text_columns, row_at
from retrieval_eval.data.tables import read_rows


def by_columns(path: Path) -> list[tuple[int, dict[str, str]]] | str:
    try:
        tables = read_text_columns(path)
    except DataError as error:
        return str(error)
    found = []
    for table in tables:
        cells = zip(*(column.each() for column in table.columns.values()), strict=True)
        found += [
            (place, dict(zip(table.columns, row, strict=True)))
            for place, row in zip(table.places.tolist(), cells, strict=True)
        ]
    return sorted(found, key=lambda one: one[0])


def by_rows(path: Path) -> list[tuple[int, dict[str, str]]] | str:
    try:
        return [(at, {name: row.text(name) for name in row.values}) for at, row in enumerate(read_rows(path))]
    except DataError as error:
        return str(error)


cells = st.text(st.sampled_from('ab ,;"\t\n\r\u00e9\0'), max_size=4)


@settings(max_examples=200, deadline=None)
@given(body=st.lists(st.lists(cells, min_size=1, max_size=3).map(",".join), max_size=5).map("\n".join))
def test_any_csv_reads_the_same_in_columns_and_in_rows(tmp_path_factory: pytest.TempPathFactory, body: str) -> None:
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_text(f"x,y\n{body}", encoding="utf-8", newline="")
    assert by_columns(path) == by_rows(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf\n\nx,y\r\n1,2\r\n\r\n3,4\r\n",
        b'"x","y, z"\n"a\nb","c ""d"""\n',
        b",x\n0,1\n1,\n",
        b"x;y\n1;2\n",
        b"x,y\n1,2\n\xff,3\n",
        b"x,y\n1,2\n3\n",
        b'x,y\n1,"2\n',
        b"x,x\n1,2\n",
        b"x,y\n",
        b"",
    ],
)
def test_headers_ends_of_lines_and_faults_are_those_of_rows(tmp_path: Path, content: bytes) -> None:
    path, packed = tmp_path / "table.csv", tmp_path / "table.csv.gz"
    path.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    assert by_columns(path) == by_rows(path)
    assert by_columns(packed) == by_rows(packed)


def test_cells_of_any_type_are_the_texts_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    columns = {
        "text": ["a", None, "a"],
        "number": [1, None, 3],
        "share": [0.5, float("nan"), None],
        "sure": [True, False, None],
        "list": [[1], None, [2, 3]],
        "named": pa.array(["x", "y", "x"]).dictionary_encode(),
        "none": pa.nulls(3),
    }
    parquet.write_table(pa.table(columns), path)
    assert by_columns(path) == by_rows(path)
    parquet.write_table(pa.table({"text": ["a", "b\0", "b\0"]}), path)
    assert by_columns(path) == by_rows(path)
    assert "row 2: the text holds a NUL character" in str(by_rows(path))


def test_lines_of_json_make_a_table_for_each_set_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    lines = [{"x": "a"}, {"x": "b", "y": 1.5}, {"x": "a"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert by_columns(path) == by_rows(path)
    assert [table.line for table in read_text_columns(path)] == [1, 2]
    assert row_at(path, 1).line == 2


def test_texts_in_order_are_those_that_rows_have() -> None:
    one = Texts(["z", "unused", "a"], np.array([0, 2, 0], np.int32))
    other = Texts(["m"], np.array([0, 0, 0], np.int32))
    names, (of_one, of_other) = in_order(one, other)
    assert names == ("a", "m", "z")
    assert (of_one.tolist(), of_other.tolist()) == ([2, 0, 2], [1, 1, 1])
