"""Packed files and answers that are made to fill memory: what reading them takes at most, and what it says."""

from __future__ import annotations

import base64
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.support.children import Child, ended, environment

MB = 1 << 20
NOISE = base64.b64encode(os.urandom(3 * MB // 2))
"""Characters that nothing packs: by them a packed file has its size."""

READ = """
import gc, resource, sys
from pathlib import Path
gc.set_threshold(200_000, 50, 50)  # as commands do
import numpy, pyarrow, pyarrow.csv, pyarrow.parquet  # libraries are no part of the figure
from judges.errors import InputError
from retrieval_eval.data.columns import read_text_columns
from retrieval_eval.data.files import read_json
from retrieval_eval.data.tables import read_rows

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def streamed(path):
    return sum(1 for _ in read_rows(path))

before = peak()
try:
    said = {"rows": streamed, "columns": read_text_columns, "json": read_json}[sys.argv[2]](Path(sys.argv[1]))
    said = said if isinstance(said, int) else len(said)
except InputError as error:
    said = error
print(peak() - before, said)
"""
BOUND_MB = 1000
CELLS = 120_000_000


def packed(path: Path, head: bytes, unit: bytes, megabytes: int, tail: bytes = b"") -> Path:
    """A gzip file that repeats a piece: of members, as of files that were joined, so that one is packed once."""
    block = gzip.compress(unit * (MB // len(unit)), 6)
    path.write_bytes(gzip.compress(head, 6) + block * megabytes + gzip.compress(tail, 6))
    return path


def ran(code: str, *arguments: str) -> str:
    """What Python writes in a process of its own."""
    done = ended(Child(code, arguments, ROOT, environment()))
    assert done.status == 0, done.err[-500:]
    return done.out.strip()


def read(path: Path, how: str) -> tuple[int, str]:
    """Megabytes at most that a process of its own takes to read a file, and what it says."""
    taken, _, said = ran(READ, str(path), how).partition(" ")
    assert "\n" not in said
    return int(taken), said


ROW = b'{"qid":"1","query":"'
TOO_MUCH = "unpacks to over"


@pytest.mark.parametrize(
    ("name", "how", "head", "unit", "megabytes", "tail", "problem"),
    [
        (
            "line.jsonl.gz",
            "rows",
            ROW + NOISE,
            b"x",
            300,
            b'"}\n',
            "the line has over 33,554,432 characters; split it into shorter lines",
        ),
        ("line.csv.gz", "columns", b"qid,query\n1,", b"x", 300, b"\n", TOO_MUCH),
        ("cell.csv.gz", "rows", b'qid,query\n1,"' + NOISE, b"xxxxxxxxxx\n", 100, b'"\n', "a cell has over 33,554,432"),
        ("rows.csv.gz", "columns", b"qid,query\n", b"1,a\n", 400, b"", TOO_MUCH),
        ("text.json.gz", "rows", b"[" + ROW, b"x", 300, b'"}]', TOO_MUCH),
        ("lists.json.gz", "json", b"[", b"[],", 300, b"1]", f"{TOO_MUCH} 32 MB; unpack it, write it as JSON lines,"),
        ("lists.jsonl.gz", "rows", ROW + b'","m":[', b"[],", 30, b"1]}\n", "1"),
        ("few_lists.json.gz", "json", b"[", b"[],", 28, b"1]", ""),
        ("packed.parquet.gz", "rows", b"PAR1", b"x", 400, b"PAR1", TOO_MUCH),
    ],
)
def test_a_hostile_packed_file_takes_no_more_memory_than_stated(
    tmp_path: Path, name: str, how: str, head: bytes, unit: bytes, megabytes: int, tail: bytes, problem: str
) -> None:
    taken, said = read(packed(tmp_path / name, head, unit, megabytes, tail), how)
    assert problem in said
    assert taken < BOUND_MB


def test_a_packed_file_that_is_larger_may_unpack_to_more(tmp_path: Path) -> None:
    row = ROW + b"a" * 1000 + b'"}\n'
    noisy = packed(tmp_path / "noisy.jsonl.gz", ROW + NOISE + b'"}\n', row, 90)
    assert noisy.stat().st_size > MB
    _, said = read(noisy, "rows")
    assert int(said) > 90_000
    few = packed(tmp_path / "few.jsonl.gz", b"", row, 90)
    assert TOO_MUCH in read(few, "rows")[1]


def test_a_large_honest_file_of_json_lines_is_read_in_a_stream(tmp_path: Path) -> None:
    words = [base64.b32encode(os.urandom(5)).decode().lower() for _ in range(500)]
    path, number = tmp_path / "answers.jsonl.gz", 80
    with gzip.open(path, "wt", 1) as file:
        for part in range(4):  # members of gzip, as of files that were joined
            text = "".join(
                json.dumps(
                    {"qid": f"{part}-{row}", "query": " ".join(words[(row * 7 + at) % 500] for at in range(400))}
                )
                + "\n"
                for row in range(1200)
            )
            for _ in range(number // 4):
                file.write(text)
    with gzip.open(path) as whole:
        size = sum(len(block) for block in iter(lambda: whole.read(MB), b""))
    assert size > 3 * 10**8
    taken, said = read(path, "rows")
    assert int(said) == 1200 * number
    assert taken < 100


@pytest.fixture(scope="module")
def parquets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that hold little and repeat it, or hold much."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    def repeating(times: int) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array(["x" * 1_000_000]))

    folder = tmp_path_factory.mktemp("parquets")
    large = pa.table({"qid": ["1"], "query": ["x" * 40_000_000]})
    parquet.write_table(large, folder / "large.parquet", compression="zstd")
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(CELLS // 2, np.int32)), pa.array(["a"]))
    parquet.write_table(pa.table({"qid": same, "query": same}), folder / "many.parquet", row_group_size=CELLS // 2)
    ids, passages = [str(at) for at in range(4000)], [["y"], None, [], ["y", None]] * 1000
    repeated = pa.table({"qid": ids, "query": repeating(4000), "passages": passages})
    parquet.write_table(repeated, folder / "repeated.parquet")
    long = pa.ListArray.from_arrays(pa.array([0, 4000], pa.int32()), repeating(4000))
    parquet.write_table(pa.table({"qid": ["1"], "query": ["a"], "passages": long}), folder / "lists.parquet")
    return folder


@pytest.mark.parametrize("how", ["rows", "columns"])
def test_parquet_is_bounded_by_what_it_holds_and_not_by_what_it_repeats(parquets: Path, how: str) -> None:
    said = read(parquets / "large.parquet", how)[1]
    assert said.endswith(": it unpacks to over 32 MB; write it anew without compression")
    assert f"it has {CELLS:,} cells, far more than a file of its size" in read(parquets / "many.parquet", how)[1]
    taken, said = read(parquets / "repeated.parquet", how)
    assert said in {"4000", "1"}
    assert taken < BOUND_MB
    taken, said = read(parquets / "lists.parquet", how)
    assert "the texts in its lists have over 32 MB" in said
    assert taken < BOUND_MB


def test_cells_of_parquet_are_what_arrow_says_they_are(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    from retrieval_eval.data.tables import read_rows

    table = pa.table(
        {
            "qid": ["1", "2", "3", "4"],
            "text": ["a", None, "a", "b"],
            "lists": [["x", None], [], None, ["x"]],
            "objects": [{"t": "x", "n": 1}, {"t": None, "n": None}, None, {"t": "y", "n": 2}],
            "both": [[{"t": "x", "l": ["y", "y"]}], None, [], [{"t": None, "l": None}, {"t": "x", "l": []}]],
            "numbers": [1.5, None, 2.5, 3.5],
        }
    )
    parquet.write_table(table, tmp_path / "table.parquet")
    assert [dict(row.values) for row in read_rows(tmp_path / "table.parquet")] == table.to_pylist()


class _Bomb(BaseHTTPRequestHandler):
    """Answers with half a gigabyte that is sent as half a megabyte."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        encoding = self.path.strip("/").partition("/")[0]
        packer = zlib.compressobj(9, wbits=31 if encoding == "gzip" else 15)
        body = (
            packer.compress(b'{"choices":"') + b"".join(packer.compress(b" " * MB) for _ in range(500)) + packer.flush()
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def bombing() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Bomb) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


ASK = """
import asyncio, resource, sys
from judges.errors import ProviderError
from judges.providers import open_provider
from judges.spec import JudgeSpec
from tests.support.prompts import relevance

async def ask():
    provider = open_provider(JudgeSpec(provider="openai", model="m", base_url=sys.argv[1]))
    try:
        await provider.complete(relevance())
    except ProviderError as error:
        print(error)
    finally:
        await provider.close()

asyncio.run(ask())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_servers_packed_answer_is_read_no_further_than_a_reply_is_long(bombing: str, encoding: str) -> None:
    said, _, taken = ran(ASK, f"{bombing}/{encoding}").rpartition("\n")
    assert said.endswith("the answer is larger than 33554432 bytes")
    assert int(taken) < 400
