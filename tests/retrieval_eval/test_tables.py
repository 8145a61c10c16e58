from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from judges.errors import DataError
from retrieval_eval.data.columns import Frame, Texts, in_order, read_text_columns, row_at
from retrieval_eval.data.files import open_replacing, read_lines
from retrieval_eval.data.rows import Rows
from retrieval_eval.data.table_spec import TableSpec
from retrieval_eval.data.tables import read_columns, read_rows, write_rows
from tests.support.files import put

EXTENSIONS = [f"{kind}{packed}" for kind in (".csv", ".tsv", ".jsonl", ".parquet") for packed in ("", ".gz")]
storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def problem(path: Path, *needed: str) -> str:
    with pytest.raises(DataError) as raised:
        list(TableSpec(needed=needed).rows(path))
    message = str(raised.value)
    assert str(path) in message
    assert "\n" not in message
    return message.removeprefix(str(path))


AWKWARD = [
    "=1+1",
    "-x",
    "@a",
    "+1",
    'say "hi"',
    '"',
    "a,b\tc",
    "two\nlines\r\nand\rmore",
    "",
    " p ",
    "日本 🎉",
    "\ufeffx",
]
TWO_TEXTS = st.tuples(storable_text, storable_text).filter(lambda row: any(map(str.strip, row)))


@pytest.mark.parametrize("extension", EXTENSIONS)
@settings(max_examples=15)
@given(texts=st.lists(TWO_TEXTS, min_size=1))
@example(texts=[("x", text) for text in AWKWARD])
def test_any_storable_text_makes_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]], extension: str
) -> None:
    path = tmp_path_factory.mktemp("tables") / f"table{extension}"
    write_rows(path, ["left", "right"], [{"left": left, "right": right} for left, right in texts])
    assert [(row.values["left"], row.values["right"]) for row in read_rows(path)] == texts
    assert read_columns(path) == ["left", "right"]


@settings(max_examples=30)
@given(texts=st.lists(storable_text, min_size=1))
def test_a_table_of_one_column_keeps_its_empty_cells(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    write_rows(path, ["only"], [{"only": text} for text in texts])
    assert [row.values["only"] for row in read_rows(path)] == texts


@pytest.mark.parametrize("extension", [".jsonl", ".parquet"])
def test_typed_formats_keep_types(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"table{extension}"
    cells = {"text": "a", "whole": 3, "real": 0.5, "nothing": None, "list": [1, 2]}
    write_rows(path, list(cells), [cells])
    (row,) = read_rows(path)
    assert row.values == cells
    assert [row.text(name) for name in cells] == ["a", "3", "0.5", "", "[1, 2]"]


def test_rows_know_the_line_they_start_on(tmp_path: Path) -> None:
    path = put(tmp_path, "t.csv", 'qid,query\nq1,"two\nlines"\n\nq2,one\r\nq3,last')
    assert [(row.line, row.text("qid")) for row in read_rows(path)] == [(2, "q1"), (5, "q2"), (6, "q3")]


def test_bom_padded_header_and_index_column_are_accepted(tmp_path: Path) -> None:
    path = put(tmp_path, "t.csv", b"\xef\xbb\xbf,qid, query\n0,q1,why\n")
    (row,) = TableSpec(needed=("qid", "query")).rows(path)
    assert row.values == {"qid": "q1", "query": "why"}


def test_an_alias_is_renamed_only_where_the_canonical_column_is_absent(tmp_path: Path) -> None:
    spec = TableSpec(("qid",), ("qid",))
    renamed = put(tmp_path, "a.csv", "id,query_id\n1,2\n")
    assert next(spec.rows(renamed)).values == {"id": "1", "qid": "2"}
    kept = put(tmp_path, "b.jsonl", '{"qid": 1, "query_id": 2}\n')
    assert next(spec.rows(kept)).values == {"qid": 1, "query_id": 2}


def test_a_field_of_many_megabytes_is_read(tmp_path: Path) -> None:
    path = put(tmp_path, "t.csv", "did,document\nd1," + "x" * 3_000_000 + "\n")
    assert len(next(read_rows(path)).text("document")) == 3_000_000
    assert csv.field_size_limit() > 3_000_000


def test_a_missing_file_a_folder_and_a_foreign_extension_are_named(tmp_path: Path) -> None:
    assert "no such file" in problem(tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in problem(tmp_path / "folder.csv")
    assert ".csv, .tsv, .jsonl" in problem(put(tmp_path, "t.doc", "x"))
    assert "save it as CSV" in problem(put(tmp_path, "t.xlsx", "x"))
    assert "no such file" in problem(tmp_path / "absent.parquet.gz")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.csv", "", "the file is empty"),
        ("t.csv", "\n\n", "the file is empty"),
        ("t.csv", "qid,query\n", "the table has no rows"),
        ("t.jsonl", "", "the table has no rows"),
        ("t.csv", "qid,query\nq1\n", ":2: 1 fields, and the header has 2"),
        ("t.csv", "qid,query\nq1,a\nq2,a, b\n", ":3: 3 fields, and the header has 2"),
        ("t.csv", 'qid,query\nq1,"a\nb\n', ":2: a quote is not closed"),
        ("t.csv", 'qid,query\nq1,"a"b\n', ":2: text follows a closing quote"),
        ("t.csv", "qid,qid\nq1,a\n", ":1: the header names a column twice; rename one ('qid')"),
        ("t.csv", "qid,querry\nq1,a\n", ":1: no column 'query'; found qid, querry"),
        ("t.csv", b"qid,query\nq1,caf\xe9 au lait\n", r":2: not UTF-8; save the file as UTF-8 ('q1,caf\xe9 au lait')"),
        ("t.csv", "qid,query\nq1,a\0b\n", ":2: the line holds a NUL byte"),
        (
            "t.jsonl",
            '{"qid": 1, "query": "a"}\n[1]\n',
            ":2: the line is not a JSON object; write one object per line ('[1]')",
        ),
        ("t.jsonl", '{"qid": 1, "query": "a"}\n{"qid": 2, "qu', ":2: not JSON"),
        ("t.jsonl", '{"qid": 1, "qid": 2}\n', "the key 'qid' stands twice"),
        ("t.jsonl", '{"qid": 1, "query": NaN}\n', "NaN is no value of JSON"),
        ("t.jsonl", '{"qid": 1, "query": "a"}\n{"qid": 2}\n', ":2: no column 'query'"),
        ("t.jsonl", '{"qid": 1, "query": "\\ud800"}\n', ":1: the text is not UTF-8, or holds half a surrogate pair"),
        ("t.jsonl", '{"qid": 1, "query": ["\\u0000"]}\n', ":1: the text holds a NUL character"),
        ("t.jsonl", "[" * 100_000 + "\n", ":1: not JSON"),
        ("t.csv.gz", gzip.compress(b"qid,query\n" + b"q1,a\n" * 9, mtime=0)[:-9], "gzip data is cut off or damaged"),
        ("t.csv.gz", b"qid,query\nq1,a\n", "the gzip data is cut off or damaged"),
        ("t.parquet", b"PAR1 and no more", "not a Parquet file, or cut off"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, name: str, content: str | bytes, expected: str) -> None:
    assert expected in problem(put(tmp_path, name, content), "qid", "query")


def test_a_torn_last_line_is_called_torn(tmp_path: Path) -> None:
    assert "cut off here" in problem(put(tmp_path, "t.jsonl", '{"qid": 1}\n{"qid": "unfin'))
    assert "cut off here" not in problem(put(tmp_path, "t.jsonl", '{"qid": \n{"qid": 2}\n'))


def test_a_literal_backslash_is_not_taken_for_nul(tmp_path: Path) -> None:
    path = put(tmp_path, "t.jsonl", json.dumps({"text": "\\u0000 é"}) + "\n")
    assert next(read_rows(path)).text("text") == "\\u0000 é"


def test_parquet_errors_count_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_rows(path, ["agent"], [{"agent": 1.0}, {"agent": math.nan}])
    first, second = read_rows(path)
    assert first.identifier("agent") == "1.0"
    with pytest.raises(DataError, match=r"t\.parquet: row 2: 'agent' is empty"):
        second.identifier("agent")


@pytest.mark.parametrize("name", ["", "  ", "\t", "nan", "NaN"])
def test_what_names_something_must_be_a_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.csv"
    write_rows(path, ["qid", "agent"], [{"qid": "q1", "agent": name}])
    (row,) = read_rows(path)
    with pytest.raises(DataError, match=r"t\.csv:2: 'agent' is"):
        row.identifier("agent")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"table{extension}"
    write_rows(path, ["text"], [{"text": "old"}])
    before = path.read_bytes()
    for bad in ("a\0b", "\ud800"):
        with pytest.raises(DataError, match="row 2, column 'text'"):
            write_rows(path, ["text"], [{"text": "new"}, {"text": bad}])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_the_same_rows_give_the_same_bytes(tmp_path: Path, extension: str) -> None:
    for name in ("a", "b"):
        write_rows(tmp_path / f"{name}{extension}", ["text"], [{"text": "same"}])
    assert (tmp_path / f"a{extension}").read_bytes() == (tmp_path / f"b{extension}").read_bytes()
    if extension.endswith(".gz"):
        assert (tmp_path / f"a{extension}").read_bytes()[4:8] == bytes(4), "the gzip header holds the time of writing"


def test_parquet_written_in_parts_has_the_types_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval_eval.data.tables._PART_ROWS", 2)
    rows = [{"a": None, "b": 1, "c": ["x"]}, {"a": None, "b": 2, "c": None}, {"a": "x", "b": 0.5, "c": ["y", "z"]}]
    write_rows(tmp_path / "t.parquet", ["a", "b", "c"], rows)
    assert [row.values for row in read_rows(tmp_path / "t.parquet")] == rows
    with pytest.raises(DataError, match="column 'b' fits no single Parquet type"):
        write_rows(tmp_path / "u.parquet", ["b"], [{"b": 1}, {"b": 2}, {"b": "three"}])


def test_writing_refuses_what_would_be_lost(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="row 1 has columns that are not written"):
        write_rows(tmp_path / "t.csv", ["a"], [{"a": "1", "b": "2"}])
    for columns in (["a", "a"], [""], [" a"]):
        with pytest.raises(DataError, match="column name"):
            write_rows(tmp_path / "t.csv", columns, [])
    with pytest.raises(DataError, match="column 'a' fits no single Parquet type"):
        write_rows(tmp_path / "t.parquet", ["a"], [{"a": "1"}, {"a": 2}])
    with pytest.raises(DataError, match="cannot be written"):
        write_rows(tmp_path / "absent" / "t.csv", ["a"], [{"a": "1"}])
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_replacement_changes_nothing(tmp_path: Path) -> None:
    path = put(tmp_path, "t.txt", "old")
    replacing = open_replacing(path)
    replacing.__enter__().write(b"half")
    assert not replacing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_lines_keep_unicode_separators_inside(tmp_path: Path) -> None:
    path = put(tmp_path, "t.txt", "a\u2028b\x0cc\nd\n")
    assert list(read_lines(path)) == [(1, "a\u2028b\x0cc\n"), (2, "d\n")]


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
        "large": pa.array(["a", None, "b"], pa.large_string()),
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


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["qid", "query", "query"], "two columns have the same name; rename one ('query')"),
        (["qid", "query", " query"], "two columns have the same name; rename one ('query')"),
        (["qid", "query", "Query"], "columns 'query' and 'Query' differ in case or spaces only"),
        (["qid", "query", "n\0m"], "a column's name cannot be used: the text holds a NUL character"),
    ],
)
def test_columns_alike_in_parquet_are_one_line(tmp_path: Path, names: list[str], problem: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table([["1"], ["a"], ["b"]], names=names), path)
    with pytest.raises(DataError) as caught:
        list(TableSpec(needed=("qid", "query")).rows(path))
    assert problem in str(caught.value)


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "\ufeffsep=;\r\n", "SEP=;\n"])
def test_the_line_that_tells_excel_the_separator_is_no_header(tmp_path: Path, first: str) -> None:
    path = put(tmp_path, "a.csv", f"{first}a;b\n1,5;2\n")
    (row,) = read_rows(path)
    assert (row.values, row.line) == ({"a": "1,5", "b": "2"}, 3)
    (table,) = read_text_columns(path)
    assert {name: column.each() for name, column in table.columns.items()} == {"a": ["1,5"], "b": ["2"]}


def test_rows_without_any_text_are_passed_over(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", ";;\r\na;b;\r\n1;2;\r\n ;;\r\n;;\r\n  \r\n;3;\r\n;;\r\n")
    found = [(row.line, row.text("a"), row.text("b")) for row in read_rows(path)]
    assert found == [(3, "1", "2"), (7, "", "3")]
    (table,) = read_text_columns(path)
    assert {name: column.each() for name, column in table.columns.items()} == {"a": ["1", ""], "b": ["2", "3"]}
    assert row_at(path, 1).line == 7
    assert "no rows" in problem(put(tmp_path, "b.csv", "a,b\n,\n,\n"))


def test_promptfoos_csv_has_a_row_for_each_output(tmp_path: Path) -> None:
    header = "q,[openai:x] Say {{q}},Status,Score,[openai:y] Say,Status,Score"
    rows = [*read_rows(put(tmp_path, "a.csv", f"{header}\nwhy?,[PASS] so,PASS,1,[ERROR] 429,ERROR,0\n"))]
    assert [row.values for row in rows] == [
        {"query": "why?", "agent": "openai:x Say {{q}}", "answer": "so", "score": "1"},
        {"query": "why?", "agent": "openai:y Say", "error": "429", "answer": "", "score": "0"},
    ]
    assert {row.form for row in rows} == {"promptfoo's CSV"}


def test_a_frame_is_read_as_the_parquet_file_that_it_would_make(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "text": ["a", None, "é"],
            "gaps": pd.array([1, None, 3], "Int64"),
            "float": [0.5, float("nan"), 2.0],
            "bool": [True, False, True],
            "list": [["x"], [], ["y", "z"]],
            "day": pd.to_datetime(["2026-01-01", "2026-01-02", None]),
            "kind": pd.Categorical(["b", "a", "b"]),
        },
        index=[7, 8, 9],
    )
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    tables = [read_text_columns(source)[0].columns for source in (Frame.of("t", frame), tmp_path / "t.parquet")]
    ours, theirs = ({name: column.each() for name, column in columns.items()} for columns in tables)
    assert ours == theirs
    assert (ours["gaps"], ours["list"], ours["kind"]) == (
        ["1", "", "3"],
        ['["x"]', "[]", '["y", "z"]'],
        ["b", "a", "b"],
    )
    assert Frame.of("t", pd.DataFrame({"n": [1.0, None]})).columns["n"].each() == ["1", ""]
    assert Frame.of("t", pd.DataFrame({"n": ["a", 1]})).columns["n"].each() == ["a", "1"]
    rows = Rows("t", [{"a": 1, "b": None}, {"a": "x"}])
    assert [{name: column.each() for name, column in table.columns.items()} for table in read_text_columns(rows)] == [
        {"a": ["1"], "b": [""]},
        {"a": ["x"]},
    ]
