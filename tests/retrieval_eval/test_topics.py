"""Topics in every form that collections come in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from judges.errors import DataError
from judges.types import Query
from retrieval_eval.data.collections import read_topics
from retrieval_eval.data.tables import write_rows

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


def put(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


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
    assert first.metadata == {
        "type": "faceted",
        "description": "what is the origin of it",
        "subtopic": "first\nsecond",
    }
    assert second == Query("2", "A 58-year-old woman.")


def test_xml_topics_without_a_root_have_their_number_in_a_field(tmp_path: Path) -> None:
    text = "<top><num>Number: 1</num><title>a</title></top>\n<top><num>2</num><title>b</title></top>"
    assert read_topics(put(tmp_path, "topics.xml", text)) == {"1": Query("1", "a"), "2": Query("2", "b")}


def test_records_of_several_runs_repeat_a_query(tmp_path: Path) -> None:
    lines = [{"run_id": run, "topic_id": 7, "topic": "why", "track": "rag", "references": [run]} for run in "ab"]
    path = put(tmp_path, "answers.jsonl", "\n".join(map(json.dumps, lines)))
    assert read_topics(path) == {"7": Query("7", "why", {"track": "rag"})}


FAULTS = {
    "a.csv": ("qid,query\n1,\n", ":2: the text of query '1' is empty"),
    "b.csv": ("qid,query\n1,a\n1,b\n", ":3: query '1' has another text further up ('b')"),
    "c.tsv": ("1\t001\twhat\n", ":1: without a header, a line is 'qid<TAB>query'; this one has 3 fields"),
    "k.tsv": ("quid\tquery\n1\ta\n", ":1: column 'qid' is missing (is it 'quid'?)"),
    "d.txt": ("\n", ": holds no topic"),
    "e.xml": ("<topics></topics>", ": holds no topic"),
    "f.xml": ("<topics>\n<topic>\n</topics>", ":3: neither TREC's SGML topics (<num> without an end) nor XML"),
    "g.xml": ("<topics>\n\n<topic><query>a</query></topic></topics>", ":3: 'qid' is empty"),
    "h.xml": ('<!DOCTYPE t [<!ENTITY a "b">]><topic id="1">&a;</topic>', ": topics that declare entities are not read"),
    "i.xml": ('<?xml version="1.0"?>\n\n<topic id="1">a\n</topik>', ":4: neither"),
    "j": ("<top>\n<num> 1\n<title>\n</top>", ":1: the text of query '1' is empty"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_with_topics_is_named(tmp_path: Path, name: str) -> None:
    text, said = FAULTS[name]
    assert problem(put(tmp_path, name, text)).startswith(said)


def test_recorded_topics_are_read(shared: Path) -> None:
    folder = shared / "data"
    nuggets = folder / "trec_rag24_nuggets"
    topics = read_topics(nuggets / "topics.tsv")
    assert len(topics) == 21
    assert read_topics(nuggets / "nugget_assignment.jsonl.gz") == topics
    assert len(read_topics(folder / "crowdrag25/queries.tsv")) == 33
    assert len(read_topics(folder / "llmjudge24/queries.tsv")) == 50
