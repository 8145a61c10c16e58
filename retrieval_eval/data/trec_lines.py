"""Lines of trec_eval's files: fields between white space, as many as the form says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from judges.errors import DataError
from retrieval_eval.data.files import read_lines

QRELS_FIELDS = ("query", "0", "document", "label")
RUN_FIELDS = ("query", "Q0", "document", "rank", "score", "tag")


def refuse(error: DataError) -> None:
    """Let no faulty line pass."""
    raise error


def read_trec_lines(
    path: Path | str, form: Sequence[str], on_fault: Callable[[DataError], None] = refuse
) -> Iterator[tuple[int, list[str]]]:
    """Stream the lines of qrels or of a run, plain or ``.gz``, with their numbers from 1; blank lines are passed over.

    Fields are separated by ASCII white space alone, as in C, so that an id may hold any other character.

    Args:
        path: the file.
        form: names of the fields, ``QRELS_FIELDS`` or ``RUN_FIELDS``.
        on_fault: told of a line with too few or too many fields, which is then passed over.

    Raises:
        DataError: the file cannot be read as text, see ``retrieval_eval.data.files.read_lines``.
    """
    for number, line in read_lines(path):
        fields = line.split() if line.isascii() else [field.decode() for field in line.encode().split()]
        if len(fields) == len(form):
            yield number, fields
        elif fields:
            problem = f"a line must have {len(form)} fields, '{' '.join(form)}', and has {len(fields)}"
            on_fault(DataError(path, problem, line=number, value=line.strip()))
