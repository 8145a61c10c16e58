"""Answers of the TREC RAG track, 2024 and 2025."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.data.files import read_answers
from judges.errors import DataError
from tests.support.files import lines

SENTENCES = [{"text": "Cats purr.", "citations": [0, 1]}, {"text": "It calms.", "citations": []}]
OF_2024 = {
    "run_id": "r1",
    "topic_id": "2024-1",
    "topic": "why do cats purr",
    "references": ["d1", "d2"],
    "response_length": 4,
    "answer": SENTENCES,
}
OF_2025 = {
    "metadata": {"team_id": "t", "run_id": "r1", "type": "automatic", "narrative_id": 14, "narrative": "I wonder"},
    "references": ["d1", "d2"],
    "answer": SENTENCES,
}


@pytest.mark.parametrize(
    ("record", "query_id", "query", "others"),
    [
        (OF_2024, "2024-1", "why do cats purr", {"response_length": "4"}),
        (OF_2025, "14", "I wonder", {"team_id": "t", "type": "automatic"}),
    ],
    ids=["2024", "2025"],
)
def test_sentences_become_an_answer_and_everything_else_is_kept(
    tmp_path: Path, record: object, query_id: str, query: str, others: dict[str, str]
) -> None:
    ((_, answer),) = read_answers(lines(tmp_path, "r1.jsonl", record))
    assert (answer.query_id, answer.agent, answer.text) == (query_id, "r1", "Cats purr. It calms.")
    kept = dict(answer.metadata)
    assert json.loads(kept.pop("references")) == ["d1", "d2"]
    assert json.loads(kept.pop("sentences")) == SENTENCES
    assert kept == {"query": query, **others}


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    ((_, answer),) = read_answers(lines(tmp_path, "a.jsonl", {**OF_2024, "answer": []}))
    assert answer.text == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": "Cats purr."}, "'answer' must be a list of sentences ('Cats purr.')"),
        ({"answer": [{"citations": []}]}, "sentence 1 has no text"),
        ({"answer": [{"text": "a", "citations": 1}]}, "sentence 1: 'citations' must be a list ('1')"),
        ({"references": "d1"}, "'references' must be a list of document ids ('d1')"),
        ({"run_id": ""}, "'run_id' is missing or empty"),
        ({"topic_id": None}, "'topic_id' or 'narrative_id' is missing or empty"),
        ({"metadata": []}, "'metadata' must be an object"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_value(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = lines(tmp_path, "a.jsonl", OF_2024, {**OF_2024, **change})
    with pytest.raises(DataError) as raised:
        list(read_answers(path))
    assert str(raised.value).startswith(f"{path}:2: ")
    assert said in str(raised.value)
