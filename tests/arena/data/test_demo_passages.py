"""Markdown to passages."""

from pathlib import Path

import pytest

from arena.demo.build import markdown_passages, read_folder
from judges.errors import DataError

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
