"""Test collections: topics in every form, documents of a pool out of large corpora, ir_datasets as a source."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.errors import DataError, InputError, MissingExtraError
from judges.types import Document, Query
from retrieval_eval.data.collections import fetch_documents, read_topics
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import read_qrels
from tests.support.files import lines, put

WHOLE = {f"d{number}" for number in range(5)}


@pytest.mark.parametrize("extension", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".jsonl.gz", ".parquet.gz"])
def test_only_wanted_documents_are_fetched(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"corpus{extension}"
    write_rows(path, ["did", "document"], [{"did": name, "document": f'"text" of {name}'} for name in sorted(WHOLE)])
    found = fetch_documents([path], {"d3", "d1", "elsewhere"})
    assert found == {name: Document(name, f'"text" of {name}') for name in ("d1", "d3")}
    assert list(found) == ["d1", "d3"]


RECORDS: dict[str, tuple[dict[str, Any], Document]] = {
    "ours": ({"did": "d1", "document": "t", "site": "s"}, Document("d1", "t", {"site": "s"})),
    "beir": ({"_id": "d1", "title": "T", "text": "t", "metadata": {}}, Document("d1", "t", {"title": "T"})),
    "segment": (
        {"docid": "d1", "url": "https://www.a.org:8/b", "title": "T", "headings": "H", "segment": "t", "end_char": 9},
        Document(
            "d1",
            "t",
            {"url": "https://www.a.org:8/b", "title": "T", "headings": "H", "end_char": "9", "website": "www.a.org"},
        ),
    ),
    "passage": ({"pid": "d1", "passage": "t", "docid": "whole"}, Document("d1", "t", {"docid": "whole"})),
    "document": (
        {"url": "http://[", "title": "", "body": "t", "docid": "d1"},
        Document("d1", "t", {"url": "http://["}),
    ),
    "pyserini": ({"id": "d1", "contents": "t"}, Document("d1", "t")),
    "numbers": ({"id": 1, "text": "t"}, Document("1", "t")),
    "empty": ({"docid": "d1", "text": ""}, Document("d1", "")),
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_fields_of_known_corpora_are_understood(tmp_path: Path, name: str) -> None:
    record, document = RECORDS[name]
    others = [dict.fromkeys(record, "x") for _ in range(2)]
    for order in ([record, *others], [*others, record]):
        path = lines(tmp_path, "corpus.jsonl", *order)
        assert fetch_documents([path], {document.doc_id}) == {document.doc_id: document}


@pytest.mark.parametrize("name", ["collection.tsv", "collection.tsv.gz", "passages.txt"])
def test_a_collection_without_a_header_is_an_id_a_tab_and_the_text(tmp_path: Path, name: str) -> None:
    path = lines(tmp_path, name, "0\tfirst", '1\t"open quote', "2\tlast")
    assert fetch_documents([path], {"1", "2"}) == {"1": Document("1", '"open quote'), "2": Document("2", "last")}


def test_reading_stops_when_all_are_found(tmp_path: Path) -> None:
    path = lines(tmp_path, "corpus.jsonl", {"did": "d1", "document": "t"}, {"did": "d2", "document": "u"}, "torn {")
    assert fetch_documents([path, tmp_path / "missing.jsonl"], {"d2"}).keys() == {"d2"}
    with pytest.raises(DataError, match=r"corpus\.jsonl:3: not JSON"):
        fetch_documents([path], {"d2", "d9"})


def test_no_file_is_opened_when_nothing_is_wanted(tmp_path: Path) -> None:
    assert fetch_documents([tmp_path / "missing.jsonl"], set()) == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"did": "d2", "document": "cut off', r":2: not JSON"),
        ('["d2"]', r":2: the line is not a JSON object"),
        ('{"document": "no id"}', r":2: no column 'did'"),
        ('{"did": "d3", "document": "a", "document": "b"}', r":2: not JSON: .*stands twice"),
        ('{"did": "d3"}', r":2: no column 'document'"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = lines(tmp_path, "corpus.jsonl", {"did": "d1", "document": "t"}, line, {"did": "d3", "document": "t"})
    with pytest.raises(DataError, match=said):
        fetch_documents([path], {"d3"})


def test_a_text_cannot_pass_for_the_id(tmp_path: Path) -> None:
    first = {"did": "d1", "document": "t"}
    tricky = {"document": '"did": "d9", and {"did": "d1"}', "inner": {"did": "d8"}, "did": "d3"}
    path = lines(tmp_path, "corpus.jsonl", first, tricky, {"did": "d9", "document": "u"})
    assert fetch_documents([path], {"d3"})["d3"].text == tricky["document"]
    assert fetch_documents([path], {"d8", "d9"}) == {"d9": Document("d9", "u")}


@settings(max_examples=30)
@given(ids=st.lists(st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"]), min_size=1), min_size=1, unique=True))
def test_every_document_is_found_whatever_its_id(tmp_path_factory: pytest.TempPathFactory, ids: list[str]) -> None:
    known = [name for name in ids if name.casefold() not in {"nan", "<na>"}]
    folder = tmp_path_factory.mktemp("corpus")
    for ascii_only in (True, False):
        path = folder / f"corpus{ascii_only}.jsonl"
        records = [{"text": f"of {name}", "id": name} for name in known]
        path.write_text("".join(json.dumps(r, ensure_ascii=ascii_only) + "\n" for r in records), encoding="utf-8")
        for name in known:
            assert fetch_documents([path], {name}) == {name: Document(name, f"of {name}")}


def test_of_two_documents_with_one_id_the_first_counts(tmp_path: Path) -> None:
    first = lines(tmp_path, "a.jsonl", {"did": "d1", "document": "one"}, {"did": "d1", "document": "two"})
    second = lines(tmp_path, "b.jsonl", {"did": "d1", "document": "three"}, {"did": "d2", "document": "four"})
    found = fetch_documents([first, second], {"d1", "d2"})
    assert [document.text for document in found.values()] == ["one", "four"]


def test_a_faulty_row_of_parquet_keeps_its_number(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    texts = [f"text {number}" for number in range(5000)]
    texts[4499] = "nul \0"
    path = tmp_path / "corpus.parquet"
    parquet.write_table(pa.table({"did": [f"d{number}" for number in range(5000)], "document": texts}), path)
    assert fetch_documents([path], {"d4998", "d4100"}).keys() == {"d4998", "d4100"}
    with pytest.raises(DataError, match="row 4500: the text holds a NUL"):
        fetch_documents([path], {"d4499"})


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A dataset of three files that ir_datasets reads, so that nothing is downloaded."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    import ir_datasets

    dataset = ir_datasets.create_dataset(
        docs_tsv=str(lines(tmp_path, "docs.tsv", "d1\tfirst text", "d2\tsecond text")),
        queries_tsv=str(lines(tmp_path, "queries.tsv", "q1\twhat is it")),
        qrels_trec=str(lines(tmp_path, "a.qrels", "q1 0 d1 2", "q1 0 d2 0")),
    )
    ir_datasets.registry.register("ragleague-test", dataset)
    yield "irds:ragleague-test"
    del ir_datasets.registry._registered["ragleague-test"]


def test_ir_datasets_gives_topics_labels_and_documents(registered: str) -> None:
    assert read_topics(registered) == {"q1": Query("q1", "what is it")}
    assert read_qrels(registered).labels == {"q1": {"d1": 2, "d2": 0}}
    assert fetch_documents([registered], {"d2", "d9"}) == {"d2": Document("d2", "second text")}


def test_a_dataset_that_ir_datasets_does_not_know_is_named() -> None:
    with pytest.raises(InputError, match="irds:no-such-dataset: ir_datasets knows no such dataset"):
        read_topics("irds:no-such-dataset")


def test_a_dataset_without_labels_says_so(registered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ir_datasets

    bare = ir_datasets.create_dataset(queries_tsv=str(tmp_path / "queries.tsv"))
    monkeypatch.setitem(ir_datasets.registry._registered, "ragleague-bare", bare)
    with pytest.raises(InputError, match="irds:ragleague-bare: this dataset of ir_datasets has no qrels"):
        read_qrels("irds:ragleague-bare")


def test_without_ir_datasets_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"extra 'ir-datasets', .* install 'ir-datasets"):
        fetch_documents(["irds:cranfield"], {"1"})


SGML = """
<top>
<head> Tipster Topic Description
<num> Number: 301
<title> Topic:  International Organized
 Crime &amp; Law

<desc> Description:
Identify organizations that participate.

<narr> Narrative:
A relevant document must name one.
</top>

<top>
<num> Number: 302 </num>
<title> Poliomyelitis </title>
</top>
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topics>
<topics task="adhoc">
  <topic number="1" type="faceted">
    <query>coronavirus &lt;origin&gt;</query>
    <description>what is the
      <i>origin</i> of it</description>
    <subtopic number="1">first</subtopic>
    <subtopic number="2">second</subtopic>
  </topic>
  <topic number="2">A 58-year-old woman.</topic>
</topics>
"""


def problem(path: Path) -> str:
    with pytest.raises(DataError) as raised:
        read_topics(path)
    return str(raised.value).removeprefix(str(path))


@pytest.mark.parametrize("extension", [".csv", ".tsv.gz", ".jsonl", ".parquet"])
def test_a_table_of_queries_is_read(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"topics{extension}"
    write_rows(path, ["qid", "query", "type"], [{"qid": "q1", "query": " what? ", "type": "easy"}])
    assert read_topics(path) == {"q1": Query("q1", "what?", {"type": "easy"})}


@pytest.mark.parametrize("name", ["queries.tsv", "topics.txt.gz", "topics"])
def test_lines_without_a_header_are_an_id_a_tab_and_the_text(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name, '2024-1\t"quoted" and not\r\n\n7\tsecond\n')
    assert read_topics(path) == {"2024-1": Query("2024-1", '"quoted" and not'), "7": Query("7", "second")}


def test_a_header_over_lines_in_a_file_of_another_name_is_no_topic(tmp_path: Path) -> None:
    assert read_topics(put(tmp_path, "topics.txt", "qid\tquery\n7\twhy\n")) == {"7": Query("7", "why")}


@pytest.mark.parametrize("name", ["topics.301-350", "topics.txt", "topics.sgml.gz"])
def test_sgml_topics_need_no_ends_of_fields(tmp_path: Path, name: str) -> None:
    text = SGML.replace(" </num>", "").replace(" </title>", "")
    first, second = read_topics(put(tmp_path, name, text)).values()
    assert (first.query_id, first.text) == ("301", "International Organized Crime & Law")
    assert first.metadata["description"] == "Identify organizations that participate."
    assert first.metadata["narrative"] == "A relevant document must name one."
    assert second == Query("302", "Poliomyelitis")


def test_xml_topics_have_their_number_in_an_attribute(tmp_path: Path) -> None:
    first, second = read_topics(put(tmp_path, "topics.xml", XML)).values()
    assert (first.query_id, first.text) == ("1", "coronavirus <origin>")
    assert first.metadata == {"type": "faceted", "description": "what is the origin of it", "subtopic": "first\nsecond"}
    assert second == Query("2", "A 58-year-old woman.")


def test_xml_topics_without_a_root_have_their_number_in_a_field(tmp_path: Path) -> None:
    text = "<top><num>Number: 1</num><title>a</title></top>\n<top><num>2</num><title>b</title></top>"
    assert read_topics(put(tmp_path, "topics.xml", text)) == {"1": Query("1", "a"), "2": Query("2", "b")}


def test_records_of_several_runs_repeat_a_query(tmp_path: Path) -> None:
    records = [{"run_id": run, "topic_id": 7, "topic": "why", "track": "rag", "references": [run]} for run in "ab"]
    path = put(tmp_path, "answers.jsonl", "\n".join(map(json.dumps, records)))
    assert read_topics(path) == {"7": Query("7", "why", {"track": "rag"})}


FAULTS = {
    "a.csv": ("qid,query\n1,\n", ":2: the text of query '1' is empty"),
    "b.csv": ("qid,query\n1,a\n1,b\n", ":3: query '1' has another text further up; give one of them another id ('b')"),
    "c.tsv": ("1\t001\twhat\n", ":1: without a header, a line is 'qid<TAB>query'; this one has 3 fields"),
    "k.tsv": ("quid\tquery\n1\ta\n", ":1: no column 'qid'"),
    "d.txt": ("\n", ": contains no query"),
    "e.xml": ("<topics></topics>", ": contains no query"),
    "f.xml": ("<topics>\n<topic>\n</topics>", ":3: neither TREC's SGML topics (<num> without an end) nor XML"),
    "g.xml": ("<topics>\n\n<topic><query>a</query></topic></topics>", ":3: 'qid' is empty"),
    "h.xml": (
        '<!DOCTYPE t [<!ENTITY a "b">]><topic id="1">&a;</topic>',
        ": topics may not declare XML entities; remove the declarations",
    ),
    "i.xml": ('<?xml version="1.0"?>\n\n<topic id="1">a\n</topik>', ":4: neither"),
    "j": ("<top>\n<num> 1\n<title>\n</top>", ":1: the text of query '1' is empty"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_with_topics_is_named(tmp_path: Path, name: str) -> None:
    text, said = FAULTS[name]
    assert problem(put(tmp_path, name, text)).startswith(said)
