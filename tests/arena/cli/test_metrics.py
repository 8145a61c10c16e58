"""``ragleague metrics`` and ``ragleague qrels``: output for people and programs, and what is wrong with the input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.data.dataset import Dataset
from arena.present.table import ORDERS
from arena.store import Store, Wanted
from judges.types import JudgeFailure, Judgment, Query, Task
from tests.support.llm_server import LLMServer, Reply

HUMAN = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\nq3 0 d9 1\n"
LLM = "q1 0 d1 1\nq1 0 d2 1\nq2 0 d1 1.\nq2 0 d7 2\n"
GOOD = "q1 Q0 d1 1 2.0 good\nq1 Q0 d2 2 1.0 good\nq2 Q0 d1 1 1.0 good\nq8 Q0 d1 1 1.0 good\n"
BAD = "q1 Q0 d2 1 2.0 bad\nq1 Q0 d1 2 1.0 bad\nq2 Q0 d7 1 1.0 bad\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"human.qrels": HUMAN, "llm.qrels": LLM, "good.run": GOOD, "bad.run": BAD}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


RUNS = ("--run", "good.run", "bad.run")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--measure", "ndcg@10"), "error: ndcg@10: no such measure; is it nDCG@10 or"),
        (("--qrels", "llm.qrels"), "error: llm.qrels:3: the label is not a whole number ('1.')"),
        (("--qrels", "human.qrels"), "error: human.qrels: this file of labels is given twice; give it once"),
        (("--qrels", "no.qrels"), "error: no.qrels: no such file"),
        (("--baseline", "best"), "error: no run is called 'best'; the runs are good, bad"),
        (("--run", "human.qrels"), "error: human.qrels:1: "),
    ],
)
def test_wrong_input_is_one_line(cli: Any, files: Path, arguments: tuple[str, ...], said: str) -> None:
    ended = cli("metrics", "--qrels", "human.qrels", *RUNS, *arguments)
    assert ended.status == 2
    assert ended.err.startswith(said)
    assert ended.err.count("\n") == 1
    assert ended.out == ""


def test_labels_on_no_scale_name_their_file(cli: Any, files: Path) -> None:
    (files / "ids.qrels").write_text("q1 0 d1 4711\nq1 0 d2 0\n", encoding="utf-8")
    ended = cli("agreement", "ids.qrels", "--people", "human.qrels")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("error: human and ids: the labels range from 0 to 4711, but a scale has at most")


@pytest.mark.usefixtures("files")
def test_labels_outside_the_scale_are_named_and_counted(cli: Any) -> None:
    odd = "q1 0 d1 4\nq1 0 d2 -1\nq2 0 d1 -1\nq3 0 d9 2\n"
    Path("odd.qrels").write_text(odd, encoding="utf-8")
    said = "odd: labels outside the 0 to 2 of human: -1 (2), 4 (1); each counts as it is"
    scored = cli("metrics", "--qrels", "human.qrels", "odd.qrels", *RUNS, "--measure", "nDCG@3")
    assert said in scored.out.splitlines()
    compared = ("agreement", "odd.qrels", "--people", "human.qrels")
    assert said in cli(*compared).out.splitlines()
    sets = json.loads(cli(*compared, "--format", "json").out)
    (own,) = [found for found in _with_key(sets, "outside_scale") if found["outside_scale"]]
    assert own["outside_scale"] == [{"n": 2, "value": -1}, {"n": 1, "value": 4}]
    alone = cli("metrics", "--qrels", "odd.qrels", *RUNS, "--measure", "nDCG@3").out
    assert (
        "odd: 2 labels below 0: -1 (2); measures take them for not relevant, kappa for labels of their own"
        in alone.splitlines()
    )
    assert "labels outside" not in cli("metrics", "--qrels", "human.qrels", *RUNS, "--measure", "nDCG@3").out


def _with_key(found: Any, key: str) -> Iterator[Any]:
    for inner in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from _with_key(inner, key)
    if isinstance(found, dict) and key in found:
        yield found


def test_the_interval_of_two_orders_says_what_it_is_for(cli: Any, tmp_path: Path) -> None:
    lines: dict[str, list[str]] = {name: [] for name in ("human", "judge", "one", "two", "three")}
    for query in range(12):
        for rank in range(4):
            lines["human"].append(f"q{query} 0 d{rank} {int(rank < 2)}")
            lines["judge"].append(f"q{query} 0 d{rank} {int(rank < 2 or (query + rank) % 4 == 0)}")
            for place, run in enumerate(("one", "two", "three")):
                at = (rank + place * (query % (place + 2))) % 4
                lines[run].append(f"q{query} Q0 d{at} {rank + 1} {4 - rank} {run}")
    files = {name: tmp_path / f"{name}.{'qrels' if name in ('human', 'judge') else 'run'}" for name in lines}
    for name, own in lines.items():
        files[name].write_text("\n".join(own) + "\n", encoding="utf-8")
    labels, runs = (files["human"], files["judge"]), (files["one"], files["two"], files["three"])
    shown = cli("metrics", "--qrels", *labels, "--run", *runs, "--measure", "P@1").out
    table = shown.partition("Runs ranked as by human?")[2]
    assert "95% interval" in table
    assert ORDERS in table


def store_with(path: Path, wants: list[tuple[str, str, str, int | str | None]]) -> Path:
    """A store that wants labels: judge, query, document, and the label, a cause of failure, or ``None``."""
    store = Store.create(str(path))
    entries = [Wanted(Task.RELEVANCE, judge, query_id, doc_id) for judge, query_id, doc_id, _ in wants]
    queries = {query_id: Query(query_id, query_id) for _, query_id, _, _ in wants}
    store.begin("labels", {}, Dataset(queries, {}, {}, {}), entries)
    for number, (want, (*_, said)) in enumerate(zip(entries, wants, strict=True)):
        if said is not None:
            result = (
                JudgeFailure(f"j{number}", said, "it failed")
                if isinstance(said, str)
                else Judgment(f"j{number}", said, "so", "so", "model")
            )
            store.save([(Task.RELEVANCE, "reasoner@1", result)])
            store.assign("labels", [(want, result.judgment_id)])
    store.close()
    return path


def test_what_failed_or_is_left_is_no_label_and_makes_the_export_incomplete(cli: Any, tmp_path: Path) -> None:
    wants = [("one", "q1", "a", 2), ("one", "q1", "b", "timeout"), ("one", "q1", "c", None), ("one", "q2", "a", 0)]
    path = store_with(tmp_path / "s.db", wants)
    ended = cli("export", "qrels", path, tmp_path / "out.qrels")
    assert ended.status == 3
    assert (tmp_path / "out.qrels").read_text(encoding="utf-8") == "q1 0 a 2\nq2 0 a 0\n"
    assert "1 failed: timeout" in ended.out
    assert "1 not judged yet" in ended.out


def test_labels_of_several_judges_are_combined_unless_one_is_named(cli: Any, tmp_path: Path) -> None:
    path = store_with(tmp_path / "s.db", [("one", "q1", "a", 2), ("two", "q1", "a", 0), ("two", "q1", "b", 1)])
    out = tmp_path / "out.qrels"
    assert cli("export", "qrels", path, out).status == 0
    assert out.read_text(encoding="utf-8") == "q1 0 a 0\nq1 0 b 1\n"
    assert cli("export", "qrels", path, out, "--judge", "one").err == (
        f"error: {out}: exists already; name another file, or add --force\n"
    )
    assert cli("export", "qrels", path, out, "--judge", "one", "--force").status == 0
    assert out.read_text(encoding="utf-8") == "q1 0 a 2\n"
    assert cli("export", "qrels", path, out, "--judge", "two", "--force").status == 0
    assert out.read_text(encoding="utf-8") == "q1 0 a 0\nq1 0 b 1\n"
    assert (
        "judge 'three' gave no labels; judges with labels: one, two"
        in cli("export", "qrels", path, out, "--judge", "three", "--force").err
    )


@pytest.mark.parametrize(
    ("wants", "said"),
    [
        ([("one", "q1", "a", None)], "no document has a label yet"),
        ([("one", "q1", "a b", 1)], "name that is empty or has white space"),
    ],
)
def test_an_export_that_cannot_be_is_one_line(cli: Any, tmp_path: Path, wants: Any, said: str) -> None:
    ended = cli("export", "qrels", store_with(tmp_path / "s.db", wants), tmp_path / "out.qrels")
    assert ended.status == 2
    assert said in ended.err
    assert not (tmp_path / "out.qrels").exists()


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
