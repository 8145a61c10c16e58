"""Answers of one agent to one query, several times: which tables have repeats, and which have a mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.data.dataset import Dataset, notes_of
from arena.data.files import load_dataset, save_dataset
from arena.data.verdicts import read_verdicts
from arena.ratings.games import reconcile
from judges.errors import DataError, InputError
from retrieval_eval.data.rows import Rows
from retrieval_eval.data.tables import write_rows


def loaded(*rows: dict[str, Any], **others: Any) -> Dataset:
    return load_dataset(answers=Rows("answers", list(rows)), **others)


def texts(data: Dataset) -> dict[str, str]:
    """Texts of the answers to the first query, by name."""
    first = next(iter(data.queries))
    return {agent: answer.text for (query_id, agent), answer in sorted(data.answers.items()) if query_id == first}


def rows_of(column: str, values: list[Any], agents: str = "xy") -> list[dict[str, Any]]:
    return [
        {"qid": f"q{number}", "query": f"q{number}?", "agent": agent, column: value, "answer": f"{agent}{value}"}
        for number in range(2)
        for agent in agents
        for value in values
    ]


@pytest.mark.parametrize("column", ["repeat", "epoch", "Trial", "repetition", "replicate_id"])
@pytest.mark.parametrize("values", [[1, 2, 3], [0, 1, 2], [10, 9, 30], ["a", "b", "c"], ["2", "10", "1.5"]])
def test_a_column_numbers_the_repeats_by_its_values(column: str, values: list[Any]) -> None:
    data = loaded(*rows_of(column, values))
    ordered = sorted(values, key=lambda value: float(value) if str(value)[0].isdigit() else value)
    assert data.agents == ("x", "y")
    assert texts(data) == {
        name: f"{name[0]}{value}"
        for agent in "xy"
        for name, value in zip((agent, f"{agent} (repeat 2)", f"{agent} (repeat 3)"), ordered, strict=True)
    }
    assert "x and y answered up to 3 times per query: read as repeats 1 to 3, by column 'repeat'" in notes_of(data)


def test_an_epoch_that_one_agent_lacks_is_not_renumbered_and_its_pair_is_said_to_be_missing() -> None:
    rows = [row for row in rows_of("epoch", [1, 2, 3]) if (row["agent"], row["epoch"]) != ("y", 2)]
    data = loaded(*rows)
    assert texts(data).keys() == {"x", "x (repeat 2)", "x (repeat 3)", "y", "y (repeat 3)"}
    alone = "2 answers of x in no game: games pair repeats 1-1, 2-2 and so on, and no other agent has that repeat"
    assert alone in notes_of(data)


def test_one_answer_each_has_no_repeats_whatever_the_column_says() -> None:
    data = loaded(*rows_of("epoch", [7]))
    assert texts(data) == {"x": "x7", "y": "y7"}
    assert data.answerers == data.agents


def test_several_answers_without_a_column_are_repeats_in_their_order() -> None:
    rows = [{"question": "q?", "system": "x", "answer": text} for text in ("one", "two", "three")]
    data = loaded(*rows, {"question": "q?", "system": "y", "answer": "other"})
    assert texts(data) == {"x": "one", "x (repeat 2)": "two", "x (repeat 3)": "three", "y": "other"}
    assert "x answered up to 3 times per query: read as repeats 1 to 3, in the order of the rows" in notes_of(data)


def test_traces_of_a_question_that_was_asked_again_are_repeats(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    spans = [
        {
            "name": "rag",
            "context": {"trace_id": f"t{number}", "span_id": f"s{number}"},
            "parent_id": None,
            "attributes": {
                "openinference.span.kind": "CHAIN",
                "input.value": "How late is it?",
                "output.value": f"It is {number}.",
            },
        }
        for number in (1, 2)
    ]
    path.write_text("".join(json.dumps(span) + "\n" for span in spans))
    data = load_dataset(answers=path)
    assert texts(data) == {"traces": "It is 1.", "traces (repeat 2)": "It is 2."}


def test_equal_texts_are_said_to_be_no_evidence() -> None:
    rows = rows_of("repeat", [1, 2])
    for row in rows:
        row["answer"] = row["agent"] if row["agent"] == "x" or row["qid"] == "q0" else row["answer"]
    notes = notes_of(loaded(*rows))
    assert any(note.startswith("x gave one text in all repeats of 2 of 2 queries: equal texts") for note in notes)
    assert any(note.startswith("y gave one text in all repeats of 1 of 2 queries") for note in notes)


@pytest.mark.parametrize(
    "rows",
    [
        [{"agent": "x", "answer": "same"}, {"agent": "x", "answer": "same"}],
        [{"agent": "x", "answer": "one", "repeat": 1}, {"agent": "x", "answer": "two", "repeat": 1}],
        [{"answer": "one", "chunk": "p"}, {"answer": "two", "chunk": "q"}],
        [{"agent": "x (repeat 2)", "answer": "one"}] + [{"agent": "x", "answer": a, "repeat": a} for a in "12"],
    ],
)
def test_what_is_more_likely_a_mistake_is_refused(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(DataError, match="a second answer by"):
        loaded(*({"qid": "q", "query": "q?", **row} for row in rows))


def test_one_agent_in_two_files_is_refused_with_the_way_out(tmp_path: Path) -> None:
    paths = [tmp_path / f"run{number}.csv" for number in (1, 2)]
    for number, path in enumerate(paths):
        write_rows(
            path,
            ["qid", "query", "agent", "answer"],
            [{"qid": "q", "query": "q?", "agent": "x", "answer": str(number)}],
        )
    with pytest.raises(DataError, match="or number repeats by a column 'repeat'"):
        load_dataset(answers=paths)


def test_documents_of_a_repeat_are_its_own_or_those_of_the_first() -> None:
    answers = rows_of("repeat", [1, 2], "x")
    documents = [
        {"qid": "q0", "did": "d1", "document": "one", "agent": "x", "repeat": 1},
        {"qid": "q0", "did": "d2", "document": "two", "agent": "x", "repeat": 2},
        {"qid": "q1", "did": "d3", "document": "three", "agent": "x"},
    ]
    data = loaded(*answers, documents=Rows("documents", documents))
    assert {key: list(found) for key, found in data.given.items()} == {
        ("q0", "x"): ["d1"],
        ("q0", "x (repeat 2)"): ["d2"],
        ("q1", "x"): ["d3"],
        ("q1", "x (repeat 2)"): ["d3"],
    }


def test_passages_of_one_answer_in_rows_of_their_own_have_repeats_too() -> None:
    rows = [
        {"qid": "q", "query": "q?", "agent": "x", "epoch": epoch, "passage": passage, "answer": f"a{epoch}"}
        for epoch in (1, 2)
        for passage in ("one", "two")
    ]
    data = loaded(*rows)
    assert texts(data) == {"x": "a1", "x (repeat 2)": "a2"}
    assert [len(found) for found in data.given.values()] == [2, 2]


def test_a_dataset_with_repeats_comes_back_from_its_files(tmp_path: Path) -> None:
    data = loaded(*rows_of("repeat", [1, 2, 3]))
    save_dataset(data, tmp_path)
    again = load_dataset(tmp_path / "queries.csv", answers=tmp_path / "answers.csv")
    assert again.digest() == data.digest()


def test_verdicts_on_repeats_are_games_of_their_own_on_one_query(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "verdicts.csv"
    path.write_text(
        "qid,agent_a,agent_b,verdict,order\nq,x,y,A,ab\nq,y,x,B,ab\n"
        "q,x (repeat 2),y (repeat 2),B,ab\nq,y (repeat 2),x (repeat 2),A,ab\n"
    )
    imported = read_verdicts(path)
    assert (imported.duplicates, imported.conflicts) == (0, 0)
    games = reconcile(imported.table)
    assert games.agents == ("x", "y")
    assert games.score.tolist() == [1.0, 0.0]
    assert games.cluster is not None
    assert games.cluster.tolist() == [0, 0]
    assert games.repeat is not None
    assert games.repeat.tolist() == [1, 2]
    assert [each.agent_a for each in imported.table.each()] == ["x", "y", "x (repeat 2)", "y (repeat 2)"]
    path.write_text("qid,agent_a,agent_b,verdict,repeat\nq,x,y,A,1\nq,x,y,B,2\nq,x,y,A,3\n")
    imported = read_verdicts(path)
    assert reconcile(imported.table).score.tolist() == [1.0, 0.0, 1.0]
    with caplog.at_level("INFO", logger="ragleague.read"):
        imported.say()
    assert "not used" not in caplog.text
    path.write_text("qid,agent_a,agent_b,verdict\nq,x,x (repeat 2),A\n")
    with pytest.raises(InputError, match="games pair the same repeat of two agents"):
        read_verdicts(path)
