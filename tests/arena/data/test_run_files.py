"""TREC runs and a corpus in place of a table of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import load_config
from arena.data.corpus import with_runs
from arena.data.dataset import Dataset
from arena.data.files import load_dataset
from arena.run.judging import load_data
from arena.store import Store
from judges.errors import ConfigError, DataError
from judges.types import Document, Retrieved, Task
from tests.support.files import lines, put

TOPICS = "<top>\n<num> Number: 1\n<title> first\n</top>\n<top>\n<num> Number: 2\n<title> second\n</top>\n"
RUN = "1 Q0 b 1 9.5 {0}\n1 Q0 a 2 8 {0}\n1 Q0 c 3 7 {0}\n2 Q0 a 1 3 {0}\n77 Q0 z 1 1 {0}\n"
CORPUS = [{"docid": name, "segment": f"text {name}", "title": name.upper()} for name in "abc"]
CONFIG = """
name: runs
store: runs.db
data: {queries: topics.txt, runs: [x.run, y.run.txt], corpus: corpus.jsonl}
judges: {word: {provider: lexical}}
retrieval: {judge: word, depth: 2}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path, "topics.txt", TOPICS)
    put(tmp_path, "x.run", RUN.format("x"))
    put(tmp_path, "y.run.txt", "1 Q0 c 1 2 y\n")
    lines(tmp_path, "corpus.jsonl", *CORPUS)
    put(tmp_path, "tournament.yaml", CONFIG)
    return tmp_path


def answered(folder: Path, *agents: str) -> Dataset:
    lines = "".join(f"1,{agent},an answer\n" for agent in agents)
    return load_dataset(folder / "topics.txt", answers=put(folder, "answers.csv", f"qid,agent,answer\n{lines}"))


def problem(data: Dataset, folder: Path, *runs: str) -> str:
    with pytest.raises(DataError) as raised:
        with_runs(data, [folder / run for run in runs], [folder / "corpus.jsonl"], 2)
    return str(raised.value).replace(f"{folder}/", "")


def test_each_run_is_what_the_agent_of_its_name_retrieved(folder: Path) -> None:
    data = load_data(load_config(folder / "tournament.yaml"))
    assert data.agents == ("x", "y")
    assert data.retrieved == {
        "1": (Retrieved("1", "b", "x", 1, 9.5), Retrieved("1", "a", "x", 2, 8.0), Retrieved("1", "c", "y", 1, 2.0)),
        "2": (Retrieved("2", "a", "x", 1, 3.0),),
    }
    assert data.documents["a"] == Document("a", "text a", {"title": "A"})
    assert data.documents.keys() == {"a", "b", "c"}


def test_runs_and_tables_that_say_the_same_are_the_same_data(folder: Path) -> None:
    runs = with_runs(load_dataset(folder / "topics.txt"), [folder / "x.run"], [folder / "corpus.jsonl"], None)
    rows = [("1", "b", 1, 9.5), ("1", "a", 2, 8), ("1", "c", 3, 7), ("2", "a", 1, 3)]
    lines = "".join(f"{query},{doc},text {doc},{doc.upper()},x,{rank},{score}\n" for query, doc, rank, score in rows)
    table = put(folder, "documents.csv", f"qid,did,document,title,agent,rank,score\n{lines}")
    assert runs.digest() == load_dataset(folder / "topics.txt", table).digest()


def test_runs_stand_beside_a_table_of_documents(folder: Path) -> None:
    table = put(folder, "documents.csv", "qid,did,document,agent\n1,z,own text,w\n1,a,other a,w\n")
    data = load_dataset(folder / "topics.txt", table)
    both = with_runs(data, [folder / "x.run"], [folder / "corpus.jsonl"], 2)
    assert both.agents == ("w", "x")
    assert [entry.agent for entry in both.retrieved["1"]] == ["w", "w", "x", "x"]
    assert both.documents["a"].text == "other a"


def test_a_document_that_no_corpus_has_is_named(folder: Path) -> None:
    put(folder, "y.run.txt", "1 Q0 z 1 3 y\n1 Q0 nowhere 2 2 y\n")
    said = problem(load_dataset(folder / "topics.txt"), folder, "y.run.txt")
    assert said.startswith("corpus.jsonl: documents of runs that are not in the corpus: 2, such as one that 'y'")
    assert said.endswith("retrieved for query '1'; add them to 'corpus' ('z')")


def test_a_run_for_other_queries_is_refused(folder: Path) -> None:
    put(folder, "x.run", "77 Q0 a 1 3 x\n")
    said = problem(load_dataset(folder / "topics.txt"), folder, "x.run")
    assert said == "x.run: no query id of this run is in the data; check that both belong together ('77')"


def test_a_run_of_nobody_who_answered_is_refused(folder: Path) -> None:
    said = problem(answered(folder, "y"), folder, "y.run.txt", "x.run")
    assert said == "x.run: this run's tag names no agent with answers; change the tag to an agent's name ('x')"
    assert with_runs(answered(folder, "y"), [folder / "y.run.txt"], [folder / "corpus.jsonl"], 2).agents == ("y",)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "qid,did,document,agent\n1,a,text a,x\n",
            "x.run: the table of documents has documents of the agent in this run's tag; remove them or the run",
        ),
        (
            "qid,did,document\n1,a,text a\n",
            "x.run: the table of documents must name the agents if there are runs; add a column 'agent' to it",
        ),
    ],
)
def test_a_run_that_the_table_of_documents_contradicts_is_refused(folder: Path, table: str, said: str) -> None:
    data = load_dataset(folder / "topics.txt", put(folder, "documents.csv", table))
    assert problem(data, folder, "x.run").startswith(said)


def test_a_corpus_without_runs_is_refused(folder: Path) -> None:
    config = put(folder, "tournament.yaml", CONFIG.replace("runs: [x.run, y.run.txt], ", ""))
    with pytest.raises(
        ConfigError, match="'corpus' is only used by 'runs', 'answers' or agents that search; leave it out"
    ):
        load_config(config)


def test_names_of_ir_datasets_are_no_paths(folder: Path) -> None:
    config = load_config(put(folder, "tournament.yaml", CONFIG.replace("corpus.jsonl", "[irds:cranfield, more.tsv]")))
    assert config.data.corpus == [Path("irds:cranfield"), folder / "more.tsv"]


def test_a_tournament_labels_the_documents_of_runs(cli: Any, folder: Path) -> None:
    ended = cli("run", folder / "tournament.yaml")
    assert ended.status == 0, ended
    store = Store.open(str(folder / "runs.db"))
    labelled = {(want.query_id, want.item) for want, _ in store.outcomes("runs", Task.RELEVANCE)}
    store.close()
    assert labelled == {("1", "a"), ("1", "b"), ("1", "c"), ("2", "a")}
    put(folder, "corpus.jsonl", "")
    assert cli("plan", folder / "tournament.yaml").status == 2


@pytest.mark.parametrize(
    ("section", "depth"),
    [
        ("", 1),
        ("nuggets: {judge: word, bank: n.jsonl}", 1),
        ("nuggets: {judge: word, bank: n.jsonl, assign: {texts: documents}}", 3),
        ("nuggets: {judge: word, bank: n.jsonl, assign: {texts: documents, depth: 2}}", 2),
        ("exam: {judge: word, bank: b.csv, texts: documents, depth: 2}", 2),
    ],
)
def test_of_a_run_as_many_documents_are_read_as_the_stage_that_looks_furthest_needs(
    folder: Path, section: str, depth: int
) -> None:
    config = load_config(put(folder, "t.yaml", CONFIG.replace("depth: 2", "depth: 1") + section))
    assert max(entry.rank for entry in load_data(config).retrieved["1"]) == depth


def test_doctor_says_what_is_odd_about_a_run(cli: Any, folder: Path) -> None:
    put(folder, "y.run.txt", "1 Q0 c 1 2 y\n1 Q0 a 2 2 y\n")
    out = cli("doctor", folder / "tournament.yaml").out
    assert "config data: run y: 2 documents tie" in out
