"""Labels and rankings in trec_eval's files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from judges.errors import DataError
from judges.files import open_replacing, read_lines
from retrieval_eval.exam.grades import Labels, Rankings

_WHOLE = re.compile(r"[+-]?[0-9]{1,9}")


def read_labels(path: Path | str) -> dict[str, dict[str, int]]:
    """Qrels, ``query 0 document label``, by query_id and doc_id.

    Raises:
        DataError: the file cannot be read, a line has another form, or two labels of a pair differ.
    """
    found: dict[str, dict[str, int]] = {}
    for line, (query_id, _, doc_id, label) in _fields(path, "query 0 document label"):
        if not _WHOLE.fullmatch(label):
            raise DataError(path, "the label is not a whole number", line=line, value=label)
        if found.setdefault(query_id, {}).setdefault(doc_id, int(label)) != int(label):
            raise DataError(path, f"query {query_id!r}, document {doc_id!r} has another label already", line=line)
    return found


def write_labels(path: Path | str, labels: Labels) -> None:
    """Qrels by query_id and doc_id.

    Raises:
        DataError: the file cannot be written, or a name has white space.
    """
    with open_replacing(path) as file:
        for query_id, known in labels.items():
            for doc_id, label in known.items():
                for name in (query_id, doc_id):
                    if name.split() != [name]:
                        raise DataError(path, "qrels have no place for a name with white space", value=name)
                file.write(f"{query_id} 0 {doc_id} {label}\n".encode())


def read_rankings(paths: Iterable[Path | str]) -> Rankings:
    """Runs, ``query Q0 document rank score agent``, ordered as trec_eval does: by score, then by doc_id, descending.

    Raises:
        DataError: a file cannot be read, a line has another form, or an agent has a document twice for one query.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    for path in paths:
        for line, (query_id, _, doc_id, _rank, given, agent) in _fields(path, "query Q0 document rank score agent"):
            known = found.setdefault((query_id, agent), {})
            if doc_id in known:
                raise DataError(
                    path, f"{agent!r} has this document twice for query {query_id!r}", line=line, value=doc_id
                )
            known[doc_id] = _finite(path, line, given)
    return {
        key: tuple(sorted(scores, key=lambda doc_id: (scores[doc_id], doc_id), reverse=True))
        for key, scores in found.items()
    }


def _finite(path: Path | str, line: int, given: str) -> float:
    try:
        score = float(given)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise DataError(path, "the score is not a number", line=line, value=given)
    return score


def _fields(path: Path | str, form: str) -> Iterator[tuple[int, list[str]]]:
    empty = True
    for number, line in read_lines(path):
        fields = line.split()
        if fields and len(fields) != len(form.split()):
            raise DataError(path, f"a line must be '{form}'", line=number, value=line.strip())
        if fields:
            empty = False
            yield number, fields
    if empty:
        raise DataError(path, "the file is empty")
