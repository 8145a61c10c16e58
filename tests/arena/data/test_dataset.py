import csv
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.data.dataset import SHARED, Dataset
from arena.data.files import load_dataset, save_dataset
from judges.errors import DataError
from judges.types import Answer, Document, Query, Retrieved

QUERIES = "qid,query\nq1,why?\nq2,how?\n"
DOCUMENTS = "qid,did,document,agent,title\nq1,d1,one,x,T\nq1,d2,two,x,\nq1,d1,one,y,T\nq2,d2,two,x,\n"
ANSWERS = "qid,agent,answer,model\nq1,x,because,m\nq1,y,,m\nq2,x,so,m\nq2,y,thus,m\n"


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def loaded(folder: Path, queries: str = QUERIES, documents: str = DOCUMENTS, answers: str = ANSWERS) -> Dataset:
    return load_dataset(
        put(folder, "queries.csv", queries),
        put(folder, "documents.csv", documents),
        put(folder, "answers.csv", answers),
    )


def reloaded(files: list[Path]) -> Dataset:
    paths = {file.name: file for file in files}
    return load_dataset(*(paths.get(f"{name}.csv", ()) for name in ("queries", "documents", "answers")))


def test_the_triple_becomes_records(tmp_path: Path) -> None:
    dataset = loaded(tmp_path)
    assert dataset.queries == {"q1": Query("q1", "why?"), "q2": Query("q2", "how?")}
    assert dataset.documents == {"d1": Document("d1", "one", {"title": "T"}), "d2": Document("d2", "two")}
    assert dataset.answers["q1", "x"] == Answer("q1", "x", "because", {"model": "m"})
    assert dataset.agents == ("x", "y")
    assert dataset.retrieved == {
        "q1": (Retrieved("q1", "d1", "x", 1), Retrieved("q1", "d2", "x", 2), Retrieved("q1", "d1", "y", 1)),
        "q2": (Retrieved("q2", "d2", "x", 1),),
    }


def test_a_reference_is_a_field_of_its_query_and_an_empty_one_is_none(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, "qid,query,reference,kind\nq1,why?,Because.,a\nq2,how?,,b\n")
    assert dataset.queries["q1"] == Query("q1", "why?", {"kind": "a"}, "Because.")
    assert dataset.queries["q2"] == Query("q2", "how?", {"kind": "b"})
    assert reloaded(save_dataset(dataset, tmp_path / "again")) == dataset


def test_a_reference_keeps_the_digest_that_it_had_as_metadata() -> None:
    before = Query("q1", "why?", {"kind": "a", "reference": "Because.", "zone": "b"})
    now = Query.of("q1", "why?", before.metadata)
    assert now.reference == "Because."
    assert Dataset({"q1": now}).digest() == Dataset({"q1": before}).digest()
    assert str(now.columns) == str(before.metadata)  # checksums of earlier stores hold the columns in this order


def test_an_empty_answer_counts_as_an_answer(tmp_path: Path) -> None:
    dataset = loaded(tmp_path)
    assert dataset.answers["q1", "y"].text == ""
    assert dataset.missing_answers == ()


def test_missing_answers_and_unanswered_queries_are_findings(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, QUERIES + "q3,who?\n", answers="qid,agent,answer\nq1,x,a\nq1,y,a\nq2,x,a\n")
    assert dataset.missing_answers == (("q2", "y"),)
    assert dataset.unanswered_queries == ("q3",)


def test_given_ranks_and_scores_decide_the_order(tmp_path: Path) -> None:
    documents = "qid,did,document,agent,rank,score\nq1,d2,two,x,2,0.25\nq1,d1,one,x,1,\n"
    assert loaded(tmp_path, documents=documents).retrieved["q1"] == (
        Retrieved("q1", "d1", "x", 1),
        Retrieved("q1", "d2", "x", 2, 0.25),
    )


def test_documents_without_an_agent_are_shared(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, documents="qid,did,document\nq1,d1,one\nq1,d2,two\n")
    assert [entry.agent for entry in dataset.retrieved["q1"]] == [SHARED, SHARED]
    assert dataset.agents == ("x", "y")


def test_other_spellings_jsonl_numbers_and_several_files_are_read(tmp_path: Path) -> None:
    queries = put(tmp_path, "q.jsonl", '{"query_id": 1, "question": "why?", "year": 2024}\n')
    more = put(tmp_path, "q.tsv.gz", gzip.compress(b"question_id\tquery_text\n2\thow?\n"))
    documents = put(tmp_path, "d.jsonl", '{"query_id": 1, "doc_id": 7, "text": "one", "system": "x"}\n')
    answers = put(tmp_path, "a.csv", "query_id,system,response\n1,x,because\n2,x,so\n")
    dataset = load_dataset([queries, more], documents, [answers])
    assert dataset.queries == {"1": Query("1", "why?", {"year": "2024"}), "2": Query("2", "how?")}
    assert dataset.retrieved == {"1": (Retrieved("1", "7", "x", 1),)}
    assert dataset.answers["2", "x"].text == "so"


def test_queries_alone_are_a_dataset(tmp_path: Path) -> None:
    dataset = load_dataset(put(tmp_path, "queries.csv", QUERIES))
    assert dataset.agents == ()
    assert dataset.unanswered_queries == ("q1", "q2")


@pytest.mark.parametrize(
    ("table", "content", "expected"),
    [
        ("queries", "qid,query\nq1,a\nq2,b\nq1,c\n", ":4: this query id stands in {}queries.csv:2 already ('q1')"),
        ("queries", "qid,query\n,a\n", ":2: 'qid' is empty"),
        ("queries", "qid,query\n  ,a\n", ":2: 'qid' is empty"),
        ("queries", "qid,query\nq1, \n", ":2: the text of query 'q1' is empty"),
        ("queries", "qid,wording\nq1,a\n", ":1: column 'query' is missing"),
        ("queries", "", "the file is empty"),
        ("answers", "qid,agent,answer\nq9,x,a\n", ":2: no query has this id ('q9')"),
        ("answers", "qid,agent,answer\nq1,,a\n", ":2: 'agent' is empty"),
        ("answers", "qid,agent,answer\nq1,nan,a\n", ":2: 'agent' is a missing value"),
        (
            "answers",
            'qid,agent,answer\nq1,x,"a\nb"\nq1,x,c\n',
            ":4: agent 'x' answered query 'q1' in {}answers.csv:2 already",
        ),
        ("answers", "qid,agent,answer\nq1,x,a\n", "documents.csv:4: this agent retrieved documents but answered"),
        ("documents", "qid,did,document\nq9,d1,one\n", ":2: no query has this id ('q9')"),
        ("documents", "qid,did,document\nq1,,one\n", ":2: 'did' is empty"),
        (
            "documents",
            "qid,did,document\nq1,d1,one\nq2,d1,uno\n",
            ":3: document 'd1' has another text in {}documents.csv:2",
        ),
        ("documents", "qid,did,document,title\nq1,d1,one,T\nq2,d1,one,U\n", ":3: document 'd1' has another 'title'"),
        (
            "documents",
            "qid,did,document,agent\nq1,d1,one,x\nq1,d1,one,x\n",
            ":3: document 'd1' was retrieved twice for query 'q1' by 'x', see {}documents.csv:2",
        ),
        ("documents", "qid,did,document,rank\nq1,d1,one,1\nq1,d2,two,1\n", ":3: two documents have rank 1 for query"),
        ("documents", "qid,did,document,rank\nq1,d1,one,0\n", ":2: 'rank' must be a whole number that counts from 1"),
        ("documents", "qid,did,document,rank\nq1,d1,one,1.5\n", "counts from 1 ('1.5')"),
        ("documents", "qid,did,document,rank\nq1,d1,one,\n", ":2: 'rank' must be"),
        ("documents", "qid,did,document,rank\nq1,d1,one,inf\n", ":2: 'rank' must be"),
        ("documents", "qid,did,document,score\nq1,d1,one,high\n", ":2: 'score' must be a number ('high')"),
        ("documents", "qid,did,document,agent\nq1,d1,one,z\n", ":2: this agent retrieved documents but answered no"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_value(
    tmp_path: Path, table: str, content: str, expected: str
) -> None:
    with pytest.raises(DataError) as raised:
        loaded(tmp_path, **{table: content})
    assert expected.format(f"{tmp_path}{os.sep}") in str(raised.value)


def test_bytes_that_are_not_utf8_are_located(tmp_path: Path) -> None:
    queries = put(tmp_path, "queries.csv", QUERIES)
    answers = put(tmp_path, "answers.csv", b"qid,agent,answer\nq1,x,caf\xe9\n")
    with pytest.raises(DataError, match=r"answers\.csv:2: not UTF-8"):
        load_dataset(queries, answers=answers)


def test_documents_either_all_name_their_agent_or_none_does(tmp_path: Path) -> None:
    lines = [{"qid": "q1", "did": "d1", "document": "one", "agent": "x"}, {"qid": "q1", "did": "d2", "document": "two"}]
    queries = put(tmp_path, "queries.csv", QUERIES)
    for order in (lines, lines[::-1]):
        documents = put(tmp_path, "documents.jsonl", "".join(json.dumps(line) + "\n" for line in order))
        with pytest.raises(DataError, match=r":2: either all documents name their agent or none does"):
            load_dataset(queries, documents)


def test_the_digest_follows_content_not_the_order_of_rows(tmp_path: Path) -> None:
    dataset = loaded(tmp_path)
    header, *rows = ANSWERS.splitlines()
    shuffled = loaded(tmp_path, answers="\n".join([header, *rows[::-1]]) + "\n")
    edited = loaded(tmp_path, answers=ANSWERS.replace("because", "because!"))
    titled = loaded(tmp_path, documents=DOCUMENTS.replace(",T\n", ",U\n"))
    assert shuffled.digest() == dataset.digest()
    assert len({dataset.digest(), edited.digest(), titled.digest()}) == 3


storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
names = storable_text.filter(lambda name: name.strip() and name.casefold() not in {"nan", "<na>"})
metadata = st.dictionaries(st.sampled_from(["title", "année", "a,b", 'say "x"']), storable_text.filter(bool))


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    query_ids = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    agents = draw(st.lists(names, min_size=1, max_size=3, unique_by=lambda name: " ".join(name.split()).casefold()))
    doc_ids = draw(st.lists(names, max_size=3, unique=True))
    texts = storable_text.filter(lambda text: bool(text.strip()))
    documents = {doc_id: Document(doc_id, draw(storable_text), draw(metadata)) for doc_id in doc_ids}
    retrievers = draw(st.sampled_from([[SHARED], sorted(agents)]))
    scores = st.none() | st.floats(allow_nan=False, allow_infinity=False)
    retrieved = {
        query_id: tuple(
            Retrieved(query_id, doc_id, agent, rank, draw(scores))
            for agent in retrievers
            for rank, doc_id in enumerate(doc_ids, start=1)
        )
        for query_id in query_ids
        if doc_ids
    }
    answers = {
        (query_id, agent): Answer(query_id, agent, draw(storable_text), draw(metadata))
        for query_id in query_ids
        for agent in agents
    }
    return Dataset(
        {name: Query(name, draw(texts), draw(metadata), draw(st.none() | texts)) for name in query_ids},
        documents,
        answers,
        retrieved,
    )


@settings(max_examples=60, deadline=None)
@given(dataset=datasets())
def test_any_dataset_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, dataset: Dataset) -> None:
    again = reloaded(save_dataset(dataset, tmp_path_factory.mktemp("datasets") / "new"))
    assert again == dataset
    assert again.digest() == dataset.digest()


def test_very_long_texts_come_back_equal(tmp_path: Path) -> None:
    dataset = loaded(tmp_path)
    long = replace(dataset, answers={("q1", "x"): Answer("q1", "x", '🎉"\r\n=,' * 300_000)}, documents={}, retrieved={})
    assert reloaded(save_dataset(long, tmp_path / "out")) == long


def test_a_document_of_no_query_is_not_dropped_silently(tmp_path: Path) -> None:
    dataset = loaded(tmp_path)
    stray = replace(dataset, documents={**dataset.documents, "d9": Document("d9", "nine")})
    with pytest.raises(ValueError, match="d9"):
        save_dataset(stray, tmp_path / "out")


def test_the_recorded_qdrant_tournament_loads_as_a_triple(tmp_path: Path, shared: Path) -> None:
    folder = shared / "data" / "ragelo_qdrant"
    dataset = load_dataset(folder / "queries.csv", folder / "documents.csv", folder / "answers.csv")
    assert (len(dataset.queries), len(dataset.agents), len(dataset.answers)) == (10, 6, 60)
    assert len(dataset.documents) == 43
    assert sum(map(len, dataset.retrieved.values())) == 200
    assert dataset.missing_answers == dataset.unanswered_queries == ()
    with (folder / "documents.csv").open(newline="") as file:
        in_file_order = [row["did"] for row in csv.DictReader(file) if (row["qid"], row["agent"]) == ("q_3", "agent_2")]
    assert [entry.doc_id for entry in dataset.retrieved["q_3"] if entry.agent == "agent_2"] == in_file_order
    assert reloaded(save_dataset(dataset, tmp_path)) == dataset


def test_recorded_answers_in_packed_jsonl_load(tmp_path: Path, shared: Path) -> None:
    lines = (shared / "data" / "crowdrag25" / "queries.tsv").read_text(encoding="utf-8")
    queries = put(tmp_path, "queries.tsv", "qid\tquery\n" + lines)
    dataset = load_dataset(queries, answers=shared / "data" / "crowdrag25" / "answers.jsonl.gz")
    assert (len(dataset.queries), len(dataset.answers), len(dataset.agents)) == (33, 198, 6)
    assert dataset.missing_answers == ()
