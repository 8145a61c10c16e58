"""Conversations in the queries' table, in any form that says what was said before a question."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ragleague as rl
from arena.data.dataset import Dataset
from arena.data.files import load_dataset, save_dataset
from judges.errors import InputError
from judges.types import Message, Query
from retrieval_eval.data.collections import read_topics
from retrieval_eval.data.tables import write_rows
from tests.conftest import CLI

FIRST, SECOND, THIRD = "What is BM25?", "And its parameters?", "Which of them matters more?"
SAID, MORE = "A ranking function.", "k1 and b."
BEFORE = (Message("user", FIRST), Message("assistant", SAID))
THREAD = [{"role": "user", "content": FIRST}, {"role": "assistant", "content": SAID}]
ASKED = {"role": "user", "content": SECOND}
MTRAG = [{"speaker": "user", "text": FIRST}, {"speaker": "agent", "text": SAID}, {"speaker": "user", "text": SECOND}]
LANGCHAIN = [{"type": "human", "content": FIRST}, {"type": "ai", "content": SAID}, {"type": "human", "content": SECOND}]
TURNS = [
    {"qid": "c", "query": THIRD, "conversation": "one", "turn": "3"},
    {"qid": "a", "query": FIRST, "conversation": "one", "turn": "1", "reference": SAID},
    {"qid": "b", "query": SECOND, "conversation": "one", "turn": "2", "reference": MORE},
    {"qid": "d", "query": "Something else?", "conversation": "two", "turn": "1"},
]


def loaded(*rows: dict[str, Any], **more: Any) -> Dataset:
    return rl.load(queries=list(rows), **more)


@pytest.mark.parametrize(
    "row",
    [
        {"query": SECOND, "messages": THREAD},
        {"query": SECOND, "messages": [*THREAD, ASKED]},
        {"messages": [*THREAD, ASKED]},
        {"messages": MTRAG},
        {"messages": json.dumps(MTRAG)},
        {"messages": repr(MTRAG)},
        {"user_input": LANGCHAIN},
        {"messages": MTRAG, "title": "a title is no question"},
    ],
    ids=["beside", "beside and last", "last", "MTRAG", "JSON in a cell", "a cell of pandas", "ragas", "title"],
)
def test_the_question_stands_beside_the_messages_or_is_the_last_of_them(row: dict[str, Any]) -> None:
    (query,) = loaded({"qid": "q", **row}).queries.values()
    assert (query.text, query.messages) == (SECOND, BEFORE)
    assert "messages" not in query.metadata


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_files_and_frames_say_the_same(tmp_path: Path, kind: str) -> None:
    path, rows = tmp_path / f"queries.{kind}", [{"qid": "q", "messages": MTRAG}, {"qid": "p", "messages": MTRAG[:1]}]
    if kind == "csv":
        write_rows(path, ["qid", "messages"], [{**row, "messages": json.dumps(row["messages"])} for row in rows])
    else:
        frame = pd.DataFrame(rows)
        frame.to_parquet(path) if kind == "parquet" else frame.to_json(path, orient="records", lines=True)
    data = load_dataset(path)
    assert data == rl.load(queries=pd.DataFrame(rows))
    assert {key: own.messages for key, own in data.queries.items()} == {"q": BEFORE, "p": ()}
    assert read_topics(path)["q"].messages == BEFORE


def test_earlier_turns_are_the_messages_of_later_ones_with_the_references_as_answers(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TURNS))
    queries = load_dataset(path).queries
    assert queries["b"].messages == BEFORE
    assert queries["c"].messages == (*BEFORE, Message("user", SECOND), Message("assistant", MORE))
    assert queries["a"].messages == queries["d"].messages == ()
    assert [queries[name].cluster for name in "abcd"] == ["one", "one", "one", "two"]
    assert read_topics(path)["c"].messages == queries["c"].messages


def test_references_that_come_with_answers_are_the_assistants_words_too() -> None:
    rows = [{k: v for k, v in row.items() if k != "reference"} for row in TURNS]
    answers = [{"qid": "a", "agent": "x", "answer": "so", "reference": SAID}]
    assert loaded(*rows, answers=answers).queries["b"].messages == BEFORE


def test_messages_say_more_than_turns() -> None:
    query = loaded({"qid": "q", "messages": MTRAG, "conversation": "one", "turn": "7"}).queries["q"]
    assert (query.messages, query.metadata) == (BEFORE, {"conversation": "one", "turn": "7"})


def test_queries_that_begin_with_the_same_message_are_one_conversation_and_a_note_says_so() -> None:
    other = {"qid": "other", "messages": [{"role": "user", "content": "Who?"}]}
    data = loaded({"qid": "first", "messages": MTRAG[:1]}, {"qid": "second", "messages": MTRAG}, other)
    first, second, third = (query.cluster for query in data.queries.values())
    assert first == second != third
    assert "3 queries count as turns of 2 conversations" in data.notes[0]


def test_data_without_messages_stay_as_they_were() -> None:
    data = loaded({"qid": "q", "query": FIRST, "conversation": "one"})
    assert data.queries["q"] == Query("q", FIRST, {"conversation": "one"})
    assert not data.notes


def test_answers_bring_their_conversations_along() -> None:
    rows = [{"agent": agent, "answer": agent, "messages": MTRAG} for agent in "xy"]
    first = [{"agent": agent, "answer": agent, "question": SECOND} for agent in "xy"]
    data = rl.load([*rows, *first])
    alone, within = sorted(data.queries.values(), key=lambda query: len(query.messages))
    assert (alone.text, within.text) == (SECOND, SECOND)
    assert (alone.messages, within.messages) == ((), BEFORE)
    assert set(data.answers) == {(q.query_id, agent) for q in (alone, within) for agent in "xy"}
    assert all("messages" not in answer.metadata for answer in data.answers.values())


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    data = loaded(*TURNS)
    save_dataset(data, tmp_path)
    assert load_dataset(tmp_path / "queries.csv") == data


@pytest.mark.parametrize(
    "text", ["hello there", "[1, 2]", '[{"role": "system", "content": "s"}]', '{"role": 1}', "[[[["]
)
def test_a_store_in_which_messages_were_any_text_opens(text: str) -> None:
    query = Query.of("q", "why?", {"messages": text})
    assert (query.messages, query.metadata) == ((), {"messages": text})
    assert Query.of("q", "why?", query.columns) == query


def test_the_conversations_of_mtrag_are_read_as_they_are(shared: Path) -> None:
    folder = shared / "data" / "mtrag_human"
    data = load_dataset(folder / "conversations.jsonl.gz", (), folder / "answers.jsonl.gz")
    with gzip.open(folder / "conversations.jsonl.gz", "rt") as lines:
        given = {own["qid"]: own["messages"] for own in map(json.loads, lines)}
    assert {key: len(query.messages) + 1 for key, query in data.queries.items()} == {
        k: len(v) for k, v in given.items()
    }
    assert all(query.text == given[key][-1]["text"].strip() for key, query in data.queries.items())
    assert len({query.cluster for query in data.queries.values()}) == 10


CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "search"}}]}
UNSAID = [{"role": "system", "content": "Be kind."}, {"role": "developer", "content": "Be brief."}]
TOOLS = [CALL, {"role": "tool", "content": "42", "tool_call_id": "1"}]


@pytest.mark.parametrize("agents", [False, True], ids=["queries", "answers"])
def test_messages_of_systems_and_tools_are_left_out_and_a_note_counts_them(agents: bool) -> None:
    messages = [*UNSAID, THREAD[0], *TOOLS, THREAD[1], ASKED]
    rows = [{"messages": messages, "agent": agent, "answer": agent} for agent in "xy"]
    data = rl.load(rows) if agents else loaded({"qid": "q", "messages": messages})
    (query,) = data.queries.values()
    assert (query.text, query.messages) == (SECOND, BEFORE)
    assert data.notes[0] == "messages of systems and tools are left out (4): judges, agents and people do not see them"


def test_a_system_message_alone_is_no_conversation() -> None:
    data = loaded({"qid": "q", "query": FIRST, "messages": UNSAID}, {"qid": "p", "query": FIRST, "messages": ""})
    assert [query.messages for query in data.queries.values()] == [(), ()]
    assert data.notes == ("messages of systems and tools are left out (2): judges, agents and people do not see them",)


PICTURE = {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}


def test_the_parts_of_a_message_are_its_text_and_a_picture_is_refused() -> None:
    parts = [{"type": "text", "text": "What is"}, {"type": "text", "text": "BM25?"}]
    (query,) = loaded({"qid": "q", "query": SECOND, "messages": [{"role": "user", "content": parts}]}).queries.values()
    assert query.messages == (Message("user", "What is\nBM25?"),)
    with pytest.raises(InputError, match=r"message 1 of 'messages' holds more than text.*image_url"):
        loaded({"qid": "q", "messages": [{"role": "user", "content": [*parts, PICTURE]}]})


def test_one_conversation_in_two_spellings_is_refused() -> None:
    rows = [{"qid": name, "query": name, "conversation": said} for name, said in (("a", "c1"), ("b", "C1 "))]
    with pytest.raises(InputError, match=r"conversations 'c1' and 'C1 ' differ in case or spaces only"):
        loaded(*rows)


@pytest.mark.parametrize(
    "row",
    [
        {"turns": [{"role": "user", "content": FIRST}, {"role": "assistant", "content": SAID}]},
        {"user_input": [{"type": "human", "content": FIRST}, {"type": "ai", "content": SAID}]},
    ],
    ids=["DeepEval", "ragas"],
)
def test_a_whole_conversation_is_refused_with_what_to_write_instead(row: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is a whole conversation; write a row for each turn to judge"):
        rl.load(answers=[{"agent": "x", **row}])


def test_a_conversation_of_two_hundred_messages_is_read_whole() -> None:
    thread = [{"role": ("user", "assistant")[at % 2], "content": f"said {at}"} for at in range(200)]
    (query,) = loaded({"qid": "q", "query": SECOND, "messages": thread}).queries.values()
    assert [own.text for own in query.messages] == [f"said {at}" for at in range(200)]


QUERIES, COPIES = 12, 4
LABELS = [1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1]


def of_turns(folder: Path, turns: int) -> None:
    """Files of two conditions in which all turns of a conversation repeat each other, and the queries' own."""
    names = [(at, f"q{at}-{turn}") for at in range(QUERIES) for turn in range(turns)]

    def lines(name: str, of: Any) -> None:
        (folder / name).write_text("".join(f"{line}\n" for at, query_id in names for line in of(at, query_id)))

    write_rows(
        folder / "queries.csv",
        ["qid", "query", "conversation"],
        [{"qid": query_id, "query": query_id, "conversation": f"c{at}"} for at, query_id in names],
    )
    lines("people.qrels", lambda at, qid: [f"{qid} 0 d0 {LABELS[at]}", f"{qid} 0 d1 {1 - LABELS[at]}"])
    lines("model.qrels", lambda at, qid: [f"{qid} 0 d0 {int(at % 3 > 0)}", f"{qid} 0 d1 {int(at % 3 == 0)}"])
    for run in range(3):
        lines(
            f"r{run}.run",
            lambda at, qid, run=run: [
                f"{qid} Q0 d{(at // (run + 1) + rank) % 2} {rank + 1} {9 - rank} r{run}" for rank in range(2)
            ],
        )
    scores = [
        "run,qid,v,length",
        *(f"r{run},{qid},{(at * (run + 1)) % 5 / 4},9" for at, qid in names for run in range(3)),
    ]
    (folder / "one.csv").write_text("\n".join(scores) + "\n")
    scores = [
        "run,qid,v,length",
        *(f"r{run},{qid},{(at * (run + 2)) % 7 / 6},9" for at, qid in names for run in range(3)),
    ]
    (folder / "other.csv").write_text("\n".join(scores) + "\n")


COMMANDS: list[tuple[list[str], str]] = [
    (["metrics", "--run", "r0.run", "r1.run", "r2.run", "--qrels", "people.qrels", "model.qrels"], "--queries"),
    (["exam", "agreement", "model.qrels", "--qrels", "people.qrels"], "--queries"),
    (["agreement", "model.qrels", "--people", "people.qrels"], "--queries"),
    (["nuggets", "correlate", "one.csv", "other.csv", "--score", "v"], "--topics"),
]


def ends(found: Any) -> list[float]:
    """All ends of intervals, and p-values, in a command's JSON."""
    if isinstance(found, list):
        return [end for own in found for end in ends(own)]
    if not isinstance(found, dict):
        return []
    mine = [own for name, own in found.items() if name.endswith(("low", "high", "p_t", "p_value")) and own is not None]
    pairs = [end for own in found.values() if isinstance(own, list) and len(own) == 2 for end in own]
    return [
        *mine,
        *(end for end in pairs if isinstance(end, float)),
        *(end for own in found.values() for end in ends(own)),
    ]


@pytest.mark.parametrize(("arguments", "option"), COMMANDS, ids=[own[0][0] for own in COMMANDS])
def test_files_with_queries_beside_them_are_taken_by_conversation(
    cli: CLI, tmp_path: Path, arguments: list[str], option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = {}
    for turns in (1, COPIES):
        of_turns(tmp_path, turns)
        for given in ([option, "queries.csv"], []):
            done = cli(*arguments, *given, "--format", "json")
            assert done.status == 0, done.err
            found[turns, bool(given)] = ends(json.loads(done.out))
    assert found[1, True] == found[1, False]
    assert found[COPIES, True] == pytest.approx(found[1, True], abs=0.03)  # alpha corrects for the number of labels
    assert found[COPIES, True] != pytest.approx(found[COPIES, False], abs=0.1)
