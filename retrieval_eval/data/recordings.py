"""Readers of recorded replies, verdicts and labels (tables and TREC qrels) for the ``replay`` provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from judges.providers.replay import VERDICT_WORDS
from retrieval_eval.data.rows import Row, known_format
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.trec import QRELS_FIELDS, read_trec_lines
from retrieval_eval.data.vocabulary import NAMES, names_of

_ALIASES = {
    **names_of("qid", "did"),
    # Without 'model' and 'baseline': here 'model' is the judge, and 'baseline' is ambiguous.
    **{f"agent_{side}": [f"{name}_{side}" for name in NAMES["agent"]] for side in "ab"},
}
_SHOWN_SWAPPED = {"": False, "ab": False, "1": False, "first": False, "ba": True, "2": True, "second": True}


def read_recordings(path: Path) -> Iterator[Row]:
    """Stream the rows of a file, with ``agent_a`` the agent that was shown first.

    The columns ``agent_a`` and ``agent_b`` are swapped if ``order`` is ``ba``; a verdict refers to the columns in any
    order. A file without a table's extension is read as TREC qrels.

    Raises:
        DataError: the file cannot be read, or an ``order`` is unknown.
    """
    return map(_as_shown, _rows(path))


def _rows(path: Path) -> Iterator[Row]:
    if known_format(path) is not None:
        return read_rows(path, aliases=_ALIASES)
    lines = read_trec_lines(path, QRELS_FIELDS)
    return (Row(path, number, {"qid": query, "did": doc, "label": label}) for number, (query, _, doc, label) in lines)


def _as_shown(row: Row) -> Row:
    order = row.text("order").casefold()
    if order not in _SHOWN_SWAPPED:
        raise row.error("'order' must be ab, ba or empty", order)
    if not _SHOWN_SWAPPED[order] or "agent_a" not in row.values or "agent_b" not in row.values:
        return row
    swapped = {"agent_a": row.values["agent_b"], "agent_b": row.values["agent_a"], "order": "ab"}
    if (verdict := VERDICT_WORDS.get(row.text("verdict").strip().casefold())) is not None:
        swapped["verdict"] = verdict.swapped()
    return Row(row.path, row.line, {**row.values, **swapped})
