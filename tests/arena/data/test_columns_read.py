"""Which columns of files are read as what, which are refused, and what is said of the others."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ragleague as rl
from arena.data.dataset import Dataset
from arena.data.files import load_dataset
from judges.errors import DataError
from retrieval_eval.data.table_spec import unsaid
from retrieval_eval.data.tables import write_rows

FORMATS = ("jsonl", "json", "csv", "tsv", "parquet", "jsonl.gz", "csv.gz", "parquet.gz")


def table(folder: Path, name: str, *rows: dict[str, Any]) -> Path:
    path = folder / name
    write_rows(path, list(dict.fromkeys(column for row in rows for column in row)), rows)
    return path


def as_read(data: Dataset) -> tuple[object, ...]:
    """All of a dataset but what the files are called."""
    return (
        [(query.text, query.reference, query.messages) for query in data.queries.values()],
        sorted((answer.text, sorted(answer.metadata.items())) for answer in data.answers.values()),
        sorted((document.text, sorted(document.metadata.items())) for document in data.documents.values()),
    )


def only_answer(data: Dataset) -> str:
    (answer,) = data.answers.values()
    return answer.text


@pytest.mark.parametrize(
    "other",
    ["response", "output", "prediction", "generated_answer", "modelAnswer", "RAG answer", "llm_output", "hypothesis"],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet"])
def test_a_gold_answer_beside_the_systems_is_never_judged_unseen(tmp_path: Path, other: str, ending: str) -> None:
    path = table(tmp_path, f"a.{ending}", {"question": "q?", "answer": "gold", other: "said"})
    with pytest.raises(DataError) as refused:
        load_dataset(answers=[path])
    assert f"two columns may be the answer: answer, {other}; say --column answer=NAME" in str(refused.value)
    data = load_dataset(answers=[path], columns={"answer": other, "reference": "answer"})
    assert only_answer(data) == "said"
    assert [query.reference for query in data.queries.values()] == ["gold"]
    alone = load_dataset(answers=[path], columns={"answer": other})
    assert only_answer(alone) == "said"
    assert [query.reference for query in alone.queries.values()] == [None]
    assert only_answer(load_dataset(answers=[path], columns={"answer": "answer"})) == "gold"


def test_rows_in_memory_are_held_to_the_same() -> None:
    rows = [{"question": "q?", "answer": "gold", "prediction": "said"}]
    with pytest.raises(DataError, match="two columns may be the answer: answer, prediction"):
        rl.load(answers={"a": rows})
    with pytest.raises(DataError, match="two columns may be the answer: answer, prediction"):
        rl.load(answers=pd.DataFrame(rows))


@pytest.mark.parametrize(
    ("columns", "meaning"),
    [(("ground_truth", "expected_output"), "the gold answer"), (("contexts", "retrieved_contexts"), "the passages")],
)
def test_two_columns_of_one_meaning_are_refused(tmp_path: Path, columns: tuple[str, str], meaning: str) -> None:
    path = table(tmp_path, "a.csv", {"question": "q?", "answer": "x", **dict.fromkeys(columns, "text")})
    with pytest.raises(DataError, match=f"two columns may be {meaning}: {', '.join(columns)}"):
        load_dataset(answers=[path])


def test_ones_that_differ_in_number_alone_are_of_one_tool(tmp_path: Path) -> None:
    path = table(tmp_path, "a.jsonl", {"question": "q?", "answer": "x", "ground_truth": "g", "ground_truths": ["g"]})
    (query,) = load_dataset(answers=[path]).queries.values()
    assert query.reference == "g"


def test_a_prompt_beside_the_question_is_no_second_question(tmp_path: Path) -> None:
    path = table(tmp_path, "a.csv", {"prompt": "Context: x. q?", "question": "q?", "answer": "x"})
    assert [query.text for query in load_dataset(answers=[path]).queries.values()] == ["q?"]


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_an_object_is_no_answer_where_a_text_is(tmp_path: Path, ending: str) -> None:
    row = {"input": "q?", "response": {"raw": "said"}, "output": "said"}
    assert only_answer(load_dataset(answers=[table(tmp_path, f"a.{ending}", row)])) == "said"
    with pytest.raises(DataError, match="no column 'answer'; found input, raw"):
        load_dataset(answers=[table(tmp_path, f"b.{ending}", {"input": "q?", "response": {"raw": "said"}})])


def test_columns_of_other_tools_are_read_or_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = table(
        tmp_path,
        "a.jsonl",
        {
            "query_id": "1",
            "query": "q?",
            "gt_answer": "gold",
            "response": "said",
            "retrieved_context": [{"doc_id": "d", "text": "passage"}],
            "reference_context": "elsewhere",
            "weight": 2,
        },
    )
    with caplog.at_level(logging.INFO, "ragleague.read"):
        data = load_dataset(answers=[path])
    assert caplog.messages == [
        f"{path}: qid=query_id, query, reference=gt_answer, answer=response, passages=retrieved_context; "
        "not used, kept as metadata: reference_context, weight",
        "1 query, 1 document, 1 answer, 1 gold answer, messages before 0 queries",
    ]
    assert [document.text for document in data.documents.values()] == ["passage"]
    caplog.clear()
    with caplog.at_level(logging.INFO, "ragleague.read"), unsaid():
        load_dataset(answers=[path])
    assert not caplog.messages


def test_several_gold_answers_are_a_note_and_the_first_counts(tmp_path: Path) -> None:
    for ending in ("jsonl", "csv"):
        path = table(tmp_path, f"a.{ending}", {"question": "q?", "answer": "x", "ground_truths": ["g", "h"]})
        data = load_dataset(answers=[path])
        assert [query.reference for query in data.queries.values()] == ["g"]
        assert "1 row with several gold answers: the first of them counts" in data.notes
    queries = table(tmp_path, "q.jsonl", {"qid": "1", "query": "q?", "reference": ["g", "h"]})
    assert load_dataset(queries).queries["1"].reference == "g"


def test_answers_beside_queries_are_not_taken_for_gold_but_named(tmp_path: Path) -> None:
    path = table(tmp_path, "q.csv", {"qid": "1", "query": "q?", "answer": "gold or not"})
    data = load_dataset(path)
    assert data.queries["1"].reference is None
    assert data.notes == ("q.csv: column 'answer' is not used; if these are the gold answers, call it 'reference'",)
    both = table(tmp_path, "r.csv", {"qid": "1", "query": "q?", "answer": "x", "reference": "gold"})
    assert not load_dataset(both).notes


BEFORE = [("user", "What is a cat?"), ("assistant", "An animal.")]


@pytest.mark.parametrize("column", ["conversation_history", "chat_history", "chatHistory", "messages"])
@pytest.mark.parametrize(
    "history",
    [
        [{"role": role, "content": text} for role, text in BEFORE],
        [["What is a cat?", "An animal."]],
        [{"inputs": {"question": "What is a cat?"}, "outputs": {"answer": "An animal."}}],
        [{"question": "What is a cat?", "answer": "An animal."}],
        [{"type": {"user": "human", "assistant": "ai"}[role], "content": text} for role, text in BEFORE],
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_what_was_said_before_a_question(tmp_path: Path, column: str, history: list[Any], ending: str) -> None:
    rows = [
        {"id": "1", "question": "Does it purr?", column: history},
        {"id": "2", "question": "What is a dog?", column: []},
    ]
    data = load_dataset(table(tmp_path, f"q.{ending}", *rows))
    assert [(each.role, each.text) for each in data.queries["1"].messages] == BEFORE
    assert not data.queries["2"].messages


def test_a_history_that_is_no_list_names_its_column(tmp_path: Path) -> None:
    path = table(tmp_path, "q.csv", {"id": "1", "question": "And now?", "chat_history": "User: hello"})
    with pytest.raises(DataError, match="'chat_history' must be a list of objects with role and content"):
        load_dataset(path)
    assert not load_dataset(path, columns={"messages": None}).queries["1"].messages


def test_a_row_for_each_passage_of_an_answer(tmp_path: Path) -> None:
    rows = [
        {"query_id": "1", "query": "q?", "passage_id": "[1]", "passage": "one", "answer": "said [1]"},
        {"query_id": "1", "query": "q?", "passage_id": "[2]", "passage": "two", "answer": ""},
        {"query_id": "2", "query": "r?", "passage_id": "[1]", "passage": "three", "answer": "said"},
        {"query_id": "2", "query": "r?", "passage_id": "[2]", "passage": "four", "answer": "said"},
    ]
    data = load_dataset(answers=[table(tmp_path, "a.csv", *rows)])
    assert [(answer.query_id, answer.text) for answer in data.answers.values()] == [("1", "said [1]"), ("2", "said")]
    shown = [data.documents[entry.doc_id].text for entries in data.retrieved.values() for entry in entries]
    assert shown == ["one", "two", "three", "four"]
    twice = [{**rows[0], "answer": "x"}, {**rows[1], "answer": "y"}]
    with pytest.raises(DataError, match="a second answer by 'twice'"):
        load_dataset(answers=[table(tmp_path, "twice.csv", *twice)])
    same = [rows[0], {**rows[0], "answer": ""}]
    with pytest.raises(DataError, match="a second answer by 'same'"):
        load_dataset(answers=[table(tmp_path, "same.csv", *same)])


def test_the_column_that_tells_agents_apart_is_named(tmp_path: Path) -> None:
    rows = [
        {"record_id": f"{app}{q}", "run": q, "app_version": app, "input": f"q{q}?", "output": app, "latency": 2}
        for app in ("base", "rerank")
        for q in range(4)
    ]
    with pytest.raises(DataError, match="--column agent=app_version"):
        load_dataset(answers=[table(tmp_path, "records.csv", *rows)])
    repeated = [{"question": f"q{q}?", "run": run, "answer": f"{run}"} for q in range(4) for run in range(2)]
    assert load_dataset(answers=[table(tmp_path, "new.csv", *repeated)]).answerers == ("new", "new (repeat 2)")


def test_langfuses_observations_are_read_alike_from_every_format(shared: Path, tmp_path: Path) -> None:
    exported = shared / "data" / "field_cases" / "21-langfuse-v2"
    rows = [json.loads(line) for line in (exported / "july.jsonl").read_text().splitlines()]
    read = {ending: as_read(load_dataset(answers=[table(tmp_path, f"x.{ending}", *rows)])) for ending in FORMATS}
    asked, answers, documents = read["jsonl"]
    assert (len(asked), len(answers), len(documents)) == (5, 5, 5)  # type: ignore[arg-type]
    assert all(own == read["jsonl"] for own in read.values())
    assert as_read(load_dataset(answers=[exported / "july.parquet"])) == read["jsonl"]


def spans() -> pd.DataFrame:
    """What Phoenix's ``get_spans_dataframe`` gives: a column for each attribute, empty where a step has none."""
    rows: list[dict[str, Any]] = []
    for number in range(3):
        own = {"context.trace_id": f"t{number}", "start_time": pd.Timestamp("2026-01-01T10:00:00Z")}
        asked = {"attributes.input.value": f"What is {number}?"}
        documents = [{"document.id": f"d{number}", "document.content": f"{number} is a number."}]
        ended = {"end_time": pd.Timestamp("2026-01-01T10:00:02Z")}
        rows += [
            {
                **({**own, **ended, **asked} | {"context.span_id": f"a{number}", "span_kind": "CHAIN"}),
                "attributes.output.value": f"A number, {number}.",
            },
            {
                **({**own, **ended, **asked} | {"context.span_id": f"b{number}", "span_kind": "RETRIEVER"}),
                "parent_id": f"a{number}",
                "attributes.retrieval.documents": documents,
            },
            {
                **({**own, **ended} | {"context.span_id": f"c{number}", "span_kind": "LLM"}),
                "parent_id": f"a{number}",
                "attributes.llm.token_count.prompt": 100.0,
                "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": "A number."}],
            },
        ]
    return pd.DataFrame(rows)


def test_phoenixs_frames_are_read_alike_from_every_format(tmp_path: Path) -> None:
    frame = spans()
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_csv(tmp_path / "x.csv")
    frame.to_csv(tmp_path / "x.csv.gz")
    frame.to_json(tmp_path / "x.jsonl", orient="records", lines=True, date_format="iso")
    frame.to_json(tmp_path / "x.json", orient="records", date_format="iso")
    read = [as_read(load_dataset(answers=[path])) for path in sorted(tmp_path.glob("x.*"))]
    asked, answers, documents = as_read(rl.load(answers=frame))
    assert [text for text, *_ in asked] == [f"What is {number}?" for number in range(3)]  # type: ignore[attr-defined]
    assert answers[0][0] == "A number, 0."  # type: ignore[index]
    assert ("input_tokens", "100") in answers[0][1]  # type: ignore[index]
    assert len(documents) == 3  # type: ignore[arg-type]
    assert read == [(asked, answers, documents)] * 5


def test_answers_of_the_trec_rag_track_are_read_alike_from_every_format(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "field_cases" / "13-trec-rag-2025" / "uni-a.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    read = [
        as_read(load_dataset(answers=[table(tmp_path, f"x.{ending}", *rows)]))[:1]
        for ending in ("jsonl", "json", "parquet", "json.gz")
    ]
    assert read[0][0]
    assert all(own == read[0] for own in read)
