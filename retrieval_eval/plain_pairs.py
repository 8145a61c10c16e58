"""Two columns without a header, as MS MARCO and TREC give topics and passages: an id, a tab, the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from judges.errors import DataError
from retrieval_eval.data.files import read_lines
from retrieval_eval.data.rows import Row


def has_header(path: Path, aliases: Mapping[str, Sequence[str]]) -> bool:
    """Whether the first line of a tab-separated file holds the name of a column, in any spelling of it."""
    names = {name for canonical, spellings in aliases.items() for name in (canonical, *spellings)}
    first = next((line for _, line in read_lines(path)), "")
    return any(field.strip() in names for field in first.split("\t"))


def read_pairs(path: Path, id_column: str, text_column: str) -> Iterator[Row]:
    """Stream the lines, each as a row of two cells. The text stands as it is: quotes mean nothing.

    Raises:
        DataError: a line has not exactly one tab.
    """
    for number, line in read_lines(path):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) == 2:
            yield Row(path, number, {id_column: fields[0], text_column: fields[1]})
        elif not line.isspace():
            problem = f"without a header, a line is '{id_column}<TAB>{text_column}'; this one has {len(fields)} fields"
            raise DataError(path, problem, line=number, value=line.strip())
