"""Readers of recorded replies, verdicts and labels (tables and TREC qrels) for the ``replay`` provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from judges.providers.replay import VERDICT_WORDS
from retrieval_eval.data.rows import Row, known_format
from retrieval_eval.data.table_spec import TableSpec
from retrieval_eval.data.trec import QRELS_FIELDS, read_trec_lines
from retrieval_eval.data.vocabulary import SHOWN_SWAPPED

RECORDINGS: Final = TableSpec(("qid", "did", "agent_a", "agent_b", "model", "agent", "verdict", "order"))
"""``model`` names the judge. A column of labels or grades has the same name as in the judge's reply."""


def read_recordings(path: Path) -> Iterator[Row]:
    """Stream the rows of a file, rearranged so that ``agent_a`` is the agent whose answer was shown first.

    The columns ``agent_a`` and ``agent_b`` are swapped if ``order`` is ``ba``, and the verdict with them, since in
    the file it always refers to the columns. A file without a table's extension is read as TREC qrels.

    Raises:
        DataError: the file cannot be read, or an ``order`` is unknown.
    """
    return map(_as_shown, _rows(path))


def _rows(path: Path) -> Iterator[Row]:
    if known_format(path) is not None:
        return RECORDINGS.rows(path)
    lines = read_trec_lines(path, QRELS_FIELDS)
    return (Row(path, number, {"qid": query, "did": doc, "label": label}) for number, (query, _, doc, label) in lines)


def _as_shown(row: Row) -> Row:
    order = row.text("order").strip().casefold()
    if order and order not in SHOWN_SWAPPED:
        raise row.error(f"{row.theirs('order')!r} must be one of {', '.join(SHOWN_SWAPPED)}", order)
    if not SHOWN_SWAPPED.get(order) or "agent_a" not in row.values or "agent_b" not in row.values:
        return row
    swapped = {"agent_a": row.values["agent_b"], "agent_b": row.values["agent_a"], "order": "ab"}
    if (verdict := VERDICT_WORDS.get(row.text("verdict").strip().casefold())) is not None:
        swapped["verdict"] = verdict.swapped()
    return Row(row.path, row.line, {**row.values, **swapped})
