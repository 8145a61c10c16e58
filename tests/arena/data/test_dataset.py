import gzip
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.data.dataset import SHARED, Dataset
from arena.data.files import load_dataset, save_dataset
from judges.errors import DataError
from judges.types import Answer, Document, Query, Retrieved
from tests.support.files import put

QUERIES = "qid,query\nq1,why?\nq2,how?\n"
DOCUMENTS = "qid,did,document,agent,title\nq1,d1,one,x,T\nq1,d2,two,x,\nq1,d1,one,y,T\nq2,d2,two,x,\n"
ANSWERS = "qid,agent,answer,model\nq1,x,because,m\nq1,y,,m\nq2,x,so,m\nq2,y,thus,m\n"


def loaded(folder: Path, queries: str = QUERIES, documents: str = DOCUMENTS, answers: str = ANSWERS) -> Dataset:
    return load_dataset(
        put(folder, "queries.csv", queries),
        put(folder, "documents.csv", documents),
        put(folder, "answers.csv", answers),
    )


def reloaded(files: list[Path]) -> Dataset:
    paths = {file.name: file for file in files}
    return load_dataset(*(paths.get(f"{name}.csv", ()) for name in ("queries", "documents", "answers")))


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


def test_a_document_of_no_query_is_not_dropped_silently(tmp_path: Path) -> None:
    dataset = loaded(tmp_path)
    stray = replace(dataset, documents={**dataset.documents, "d9": Document("d9", "nine")})
    with pytest.raises(ValueError, match="d9"):
        save_dataset(stray, tmp_path / "out")


def test_ids_that_pandas_made_floats_are_those_of_the_other_table(tmp_path: Path) -> None:
    queries = put(tmp_path, "q.csv", "qid,query\n1,why?\n2,how?\n")
    floats = put(tmp_path, "a.csv", "qid,agent,answer\n1.0,a,x\n2.0,a,y\n")
    documents = put(tmp_path, "d.csv", "qid,did,document\n1.0,d,text\n")
    data = load_dataset(queries, documents, floats)
    assert list(data.answers) == [("1", "a"), ("2", "a")]
    assert list(data.retrieved) == ["1"]
    queries = put(tmp_path, "f.csv", "qid,query\n1.0,why?\n2.0,how?\n")
    turned = load_dataset(queries, (), put(tmp_path, "i.csv", "qid,agent,answer\n1,a,x\n"))
    assert list(turned.answers) == [("1.0", "a")]
    both = {"x.csv": "1.0", "y.csv": "1"}
    files = [put(tmp_path, name, f"qid,query,answer\n{number},why?,x\n") for name, number in both.items()]
    assert list(load_dataset(answers=files).answers) == [("1", "x"), ("1", "y")]


def test_ids_in_both_forms_are_not_taken_for_each_other(tmp_path: Path) -> None:
    queries = put(tmp_path, "q.csv", "qid,query\n1,why?\n2,how?\n")
    with pytest.raises(DataError, match=r"a.csv:3: no query has this id; did you mean '2'"):
        load_dataset(queries, (), put(tmp_path, "a.csv", "qid,agent,answer\n1,a,x\n2.0,a,y\n"))
    versions = put(tmp_path, "v.csv", "qid,query\n1.0,why?\n1,how?\n")
    data = load_dataset(versions, (), put(tmp_path, "b.csv", "qid,agent,answer\n1.0,a,x\n1,a,y\n"))
    assert list(data.answers) == [("1.0", "a"), ("1", "a")]


def test_a_float_of_a_typed_table_is_a_whole_id(tmp_path: Path) -> None:
    for number in ("1", "1.0"):
        put(tmp_path, f"{number}.jsonl", f'{{"id": {number}, "question": "why?", "model": "a", "answer": "x"}}\n')
        assert list(load_dataset(answers=tmp_path / f"{number}.jsonl").answers) == [("1", "a")]


def test_one_question_in_two_codings_is_one(tmp_path: Path) -> None:
    forms = [unicodedata.normalize(form, "Où est  la caisse\u0301?") for form in ("NFC", "NFD")]
    forms[0] = "\ufeff" + forms[0]
    assert forms[0] != forms[1]
    files = [
        put(tmp_path, f"{number}.jsonl", json.dumps({"question": text, "answer": "là", "contexts": [text]}) + "\n")
        for number, text in enumerate(forms)
    ]
    data = load_dataset(answers=files)
    assert (len(data.queries), len(data.answers), len(data.documents)) == (1, 2, 1)
    queries = put(tmp_path, "q.csv", f"qid,query\nq1,{forms[1]}\n")
    assert list(load_dataset(queries, (), files[0]).answers) == [("q1", "0")]
