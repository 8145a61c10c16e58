"""Answers as participants of the TREC RAG track hand them in, in the forms of 2024 and 2025.

Both are JSON lines with ``references`` (document ids) and ``answer``, a list of sentences ``{text, citations}``. Beside
them stand in 2024 ``run_id, topic_id, topic, response_length``, in 2025 ``metadata`` with ``team_id, run_id,
narrative_id, narrative``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judges.errors import DataError
from judges.types import Answer
from retrieval_eval.data.rows import Row, cell_text, table_format
from retrieval_eval.data.tables import read_rows

_NAMES = frozenset({"run_id", "topic_id", "narrative_id", "topic", "narrative", "references", "answer", "metadata"})


def trec_answer_rows(path: Path | str) -> Iterator[tuple[Row, Answer]]:
    """The answers of a file, each with its row; the run is the agent, sentences are joined by a space.

    ``metadata`` of an answer holds ``query`` (the topic's text), ``references`` and ``sentences`` (both as JSON, where
    citations are kept as they stand there), and every other field as text. A run may answer a topic twice.

    Raises:
        DataError: the file cannot be read, or an answer is malformed; names file, line, value.
    """
    if table_format(path) != "jsonl":
        raise DataError(path, "answers of the TREC RAG track are JSON lines: the name must end in .jsonl")
    for row in read_rows(path, ("references", "answer")):
        yield row, _answer(row)


def is_trec_answers(path: Path | str) -> bool:
    """Whether a file holds answers of the track, by its first line."""
    if table_format(path) != "jsonl":
        return False
    first = next(read_rows(path)).values
    return "references" in first and isinstance(first.get("answer"), list)


def _answer(row: Row) -> Answer:
    metadata = row.values.get("metadata", {})
    if not isinstance(metadata, dict):
        raise row.error("'metadata' must be an object", row.text("metadata"))
    fields = {**row.values, **metadata}
    sentences = _sentences(row, fields["answer"])
    if not isinstance(fields["references"], list):
        raise row.error("'references' must be a list of document ids", row.text("references"))
    kept = {name: text for name, value in fields.items() if name not in _NAMES and (text := cell_text(value))}
    kept["query"] = _first(fields, "topic", "narrative")
    kept["references"] = json.dumps(fields["references"], ensure_ascii=False)
    kept["sentences"] = json.dumps(sentences, ensure_ascii=False)
    text = " ".join(own["text"] for own in sentences)
    return Answer(_named(row, fields, "topic_id", "narrative_id"), _named(row, fields, "run_id"), text, kept)


def _sentences(row: Row, given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list):
        raise row.error("'answer' must be a list of sentences", cell_text(given))
    for number, own in enumerate(given, start=1):
        if not isinstance(own, dict) or not isinstance(own.get("text"), str):
            raise row.error(f"sentence {number} has no text", cell_text(own))
        if not isinstance(own.get("citations", []), list):
            raise row.error(f"sentence {number}: 'citations' must be a list", cell_text(own["citations"]))
    return given


def _named(row: Row, fields: Mapping[str, Any], *names: str) -> str:
    name = _first(fields, *names).strip()
    if not name:
        raise row.error(f"{' or '.join(map(repr, names))} is missing or empty")
    return name


def _first(fields: Mapping[str, Any], *names: str) -> str:
    return next((cell_text(fields[name]) for name in names if fields.get(name) is not None), "")
