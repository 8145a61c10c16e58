"""Answers of the TREC tracks RAG, RAGTIME and DRAGUN, 2024 to 2026."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.data.files import read_answers
from judges.errors import DataError
from retrieval_eval.scores.citations import cited_documents, cited_sentences
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


RAGTIME = {
    "metadata": {"team_id": "t", "run_id": "r1", "topic_id": "301", "task": "multilingual"},
    "responses": [
        {"text": "Cats purr.", "citations": {"d2": 0.4, "d1": 0.9, "d3": 0.4}},
        {"text": "It calms.", "citations": {}},
        {"text": "So they say."},
    ],
}
DRAGUN = {
    "metadata": {"team_id": "t", "run_id": "r1", "topic_id": "301", "type": "automatic", "use_starter_kit": 1},
    "responses": [
        {"text": "Cats purr.", "citations": ["d1", "d2"]},
        {"text": "It calms.", "citations": ["d2", "d3"]},
        {"text": "So they say.", "citations": []},
    ],
}


@pytest.mark.parametrize(
    ("record", "cited"),
    [
        (RAGTIME, [("d1", "d2", "d3"), (), ()]),
        (DRAGUN, [("d1", "d2"), ("d2", "d3"), ()]),
        ({**RAGTIME, "references": ["d3", "d1", "d2", "d9"]}, [("d1", "d2", "d3"), (), ()]),
        (
            {**DRAGUN, "references": None, "answer": DRAGUN["responses"], "responses": None},
            [("d1", "d2"), ("d2", "d3"), ()],
        ),
    ],
    ids=["ragtime", "dragun", "with references", "rag26 without references"],
)
def test_responses_cite_by_id_the_surest_first(tmp_path: Path, record: object, cited: list[tuple[str, ...]]) -> None:
    ((_, answer),) = read_answers(lines(tmp_path, "r1.jsonl", record))
    assert (answer.query_id, answer.agent, answer.text) == ("301", "r1", "Cats purr. It calms. So they say.")
    sentences = cited_sentences([answer], {}, ())[answer.query_id, answer.agent]
    assert sentences is not None
    assert [sentence.citations for sentence in sentences] == cited
    assert cited_documents([answer], {}, {})["301", "r1"].doc_ids == ("d1", "d2", "d3")
    assert "responses" not in answer.metadata


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        (
            {"text": "Purr.", "citations": [0]},
            "sentences cite by number, so 'references' must list the document ids",
        ),
        ({"text": "Purr.", "citations": {"d1": "sure"}}, "sentence 1: the confidence of 'd1' is not a number ('sure')"),
        ({"text": "Purr.", "citations": {"d1": True}}, "sentence 1: the confidence of 'd1' is not a number ('true')"),
        ({"text": "Purr.", "citations": "d1"}, "sentence 1: 'citations' must be a list ('d1')"),
    ],
)
def test_faulty_citations_of_responses_name_their_sentence(tmp_path: Path, sentence: object, said: str) -> None:
    path = lines(tmp_path, "a.jsonl", RAGTIME, {**RAGTIME, "responses": [sentence]})
    with pytest.raises(DataError) as raised:
        list(read_answers(path))
    assert str(raised.value) == f"{path}:2: {said}"


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
        ({"topic_id": None}, "'topic_id' or 'narrative_id' or 'request_id' is missing or empty"),
        ({"metadata": []}, "'metadata' must be an object"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_value(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = lines(tmp_path, "a.jsonl", OF_2024, {**OF_2024, **change})
    with pytest.raises(DataError) as raised:
        list(read_answers(path))
    assert str(raised.value).startswith(f"{path}:2: ")
    assert said in str(raised.value)
