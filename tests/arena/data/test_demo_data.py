"""The packaged demo data: really produced, complete, and sensible; and how Markdown becomes passages."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from docs.make_demo import DECLINED, DEMO, HANDBOOK, LatentIndex, build, markdown_passages, read_folder, read_questions
from judges.errors import DataError
from judges.providers.lexical import item_share
from judges.types import Document
from retrieval_eval.agents.ranking import InverseDocumentFrequency
from retrieval_eval.documents.passages import sentences
from retrieval_eval.nuggets.files import read_banks
from tests.support.children import files_at_most, ragleague

FILES = ("queries.csv", "documents.csv", "answers.csv")
Rows = list[dict[str, str]]


def _rows(name: str) -> Rows:
    with (DEMO / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def tables() -> dict[str, Rows]:
    return {name: _rows(name) for name in FILES}


def test_the_command_reproduces_the_committed_files_byte_for_byte(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "docs.make_demo", "--out", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=DEMO.parents[1],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (DEMO / name).read_bytes(), f"{name}: run python -m docs.make_demo"


def test_a_full_disk_leaves_no_half_file_that_would_stay(tmp_path: Path) -> None:
    size = (DEMO / "documents.csv").stat().st_size
    done = ragleague(tmp_path, "demo", "--out", "d", hardship=files_at_most(size // 2))
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: d/documents.csv: cannot be written: File too large")
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["queries.csv"]


def test_every_sentence_of_an_answer_stands_in_a_passage_its_agent_retrieved(tables: dict[str, Rows]) -> None:
    retrieved: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in tables["documents.csv"]:
        retrieved[row["qid"], row["agent"]].append(" ".join(row["document"].split()))
    for row in tables["answers.csv"]:
        passages = retrieved[row["qid"], row["agent"]]
        for sentence in sentences(row["answer"]) if row["answer"] != DECLINED else ():
            assert any(sentence in passage for passage in passages), (row["qid"], row["agent"], sentence)


def test_the_agents_differ_as_they_should(tables: dict[str, Rows]) -> None:
    """The baseline finds the right chapter least often; answers are not all the same."""
    wanted = {question.query.query_id: set(question.chapters) for question in read_questions() if question.chapters}
    hits: defaultdict[str, set[str]] = defaultdict(set)
    for row in tables["documents.csv"]:
        if row["did"].split("#")[0] in wanted.get(row["qid"], set()):
            hits[row["agent"]].add(row["qid"])
    counts = {agent: len(found) for agent, found in hits.items()}
    weakest = counts.pop("weak-baseline")
    assert weakest < min(counts.values()) >= 0.8 * len(wanted)
    answers: defaultdict[str, set[str]] = defaultdict(set)
    for row in tables["answers.csv"]:
        answers[row["qid"]].add(row["answer"])
    assert sum(len(texts) >= 3 for texts in answers.values()) >= 0.75 * len(answers)


def test_dense_retrieval_finds_a_passage_without_the_words_of_the_question() -> None:
    texts = ["cats purr", "cats and kittens purr", "kittens play", "ships sail", "ships and boats sail"]
    passages = [Document(str(place), text, {}) for place, text in enumerate(texts)]
    index = LatentIndex(passages, InverseDocumentFrequency(passages), dimensions=2)
    assert {hit.document.text for hit in index.find("purr", 3)} == set(texts[:3])


def test_building_without_the_handbook_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing"):
        build(tmp_path, handbook=tmp_path / "missing")


def test_exam_questions_and_nuggets_are_about_what_the_handbook_answers() -> None:
    """Each answerable question has both; a nugget's words stand in the chapters that hold the answer."""
    chapters = {question.query.query_id: question.chapters for question in read_questions() if question.chapters}
    assert Counter(row["qid"] for row in _rows("exam.csv")).keys() == chapters.keys()
    banks = read_banks(DEMO / "nuggets.jsonl")
    assert {bank.query_id for bank in banks} == chapters.keys()
    for bank in banks:
        pages = " ".join((HANDBOOK / f"{name}.md").read_text(encoding="utf-8") for name in chapters[bank.query_id])
        assert any(nugget.importance == "vital" for nugget in bank.nuggets)
        for nugget in bank.nuggets:
            assert item_share(nugget.text, pages) >= 0.8, (bank.query_id, nugget.text)


PAGE = """# Pairwise *judging*

Before any section,
on two lines.

## Both orders

Play [both](orders.md) with `seed` 7.

Second paragraph.

## Rules

These hold:

- one
- two
  on two lines

| agent | wins |
|---|---|
| a | 3 |

```yaml
k: 32
```
"""


def test_each_paragraph_is_a_passage_with_id_and_title() -> None:
    first, second, third, *_ = markdown_passages(PAGE, "pairwise")
    assert (first.doc_id, first.text) == ("pairwise#1", "Before any section, on two lines.")
    assert first.metadata == {"title": "Pairwise judging"}
    assert (second.doc_id, second.text) == ("pairwise#both-orders-1", "Play both with seed 7.")
    assert (third.doc_id, third.metadata["title"]) == ("pairwise#both-orders-2", "Pairwise judging: Both orders")


def test_a_list_stays_with_the_sentence_that_introduces_it() -> None:
    listed = markdown_passages(PAGE, "pairwise")[3]
    assert listed.text == "These hold:\none\ntwo on two lines"


def test_tables_and_code_keep_their_content() -> None:
    *_, table, code = markdown_passages(PAGE, "pairwise")
    assert table.text == "agent | wins\na | 3"
    assert code.text == "k: 32"


def test_ids_are_unique_and_without_white_space() -> None:
    text = "# T\n\n## Ties\n\na\n\n## Ties\n\nb\n\n## Ties 1\n\nc\n\n## Ties!\n\nd"
    ids = [passage.doc_id for passage in markdown_passages(text, "my page#1")]
    assert ids == ["my%20page%231#ties-1", "my%20page%231#ties-2", "my%20page%231#ties-1-1", "my%20page%231#ties-3"]


def test_folders_are_read_in_path_order_without_the_excluded_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.md", "sub/a.md", "README.md", "notes.txt"):
        (tmp_path / name).write_text(f"# {name}\n\ntext of {name}", encoding="utf-8")
    assert [passage.doc_id for passage in read_folder(tmp_path, exclude={"README.md"})] == ["b#1", "sub/a#1"]


def test_an_empty_folder_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no Markdown file with text"):
        read_folder(tmp_path)


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.md").write_bytes(b"# caf\xe9\n\ntext")
    with pytest.raises(DataError, match=r"latin\.md: is not UTF-8 text \(byte 5\)"):
        read_folder(tmp_path)
