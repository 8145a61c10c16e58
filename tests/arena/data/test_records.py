"""Answers in the forms that systems and other tools write, read without a mapping, and what is said of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.data.corpus import with_runs
from arena.data.dataset import Dataset, notes_of
from arena.data.files import load_dataset
from judges.errors import DataError, InputError
from retrieval_eval.data.rows import Rows
from retrieval_eval.data.tables import write_rows
from tests.support.files import lines, put


def texts(data: Dataset) -> dict[str, dict[str, str]]:
    """By agent the answers by the query's text."""
    found: dict[str, dict[str, str]] = {}
    for (query_id, agent), answer in data.answers.items():
        found.setdefault(agent, {})[data.queries[query_id].text] = answer.text
    return found


def passages(data: Dataset, agent: str) -> list[str]:
    return [
        data.documents[entry.doc_id].text
        for entries in data.retrieved.values()
        for entry in entries
        if entry.agent == agent
    ]


RAGAS = {
    "user_input": "When was the first super bowl?",
    "retrieved_contexts": ["It was held on January 15, 1967.", "At the Coliseum."],
    "response": "On January 15, 1967",
    "reference": "January 15, 1967",
}


def test_ragas_jsonl_one_file_for_each_system(tmp_path: Path) -> None:
    a = lines(tmp_path, "a.jsonl", RAGAS)
    b = lines(tmp_path, "b.jsonl", RAGAS | {"response": "In 1967", "retrieved_contexts": ["At the Coliseum."]})
    data = load_dataset(answers=[a, b])
    (query,) = data.queries.values()
    assert (query.text, query.reference) == (RAGAS["user_input"], "January 15, 1967")
    assert texts(data) == {"a": {query.text: "On January 15, 1967"}, "b": {query.text: "In 1967"}}
    assert passages(data, "a") == RAGAS["retrieved_contexts"]
    assert passages(data, "b") == ["At the Coliseum."]
    assert len(data.documents) == 2, "a text that both retrieved is one document"


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("['its one' 'two']", ["its one", "two"]),
        ("['its one', \"two's\"]", ["its one", "two's"]),
        ("array(['its one', 'two'], dtype=object)", ["its one", "two"]),
        ("[Document(page_content='its one', metadata={}), Document(page_content='two')]", ["its one", "two"]),
        ("[(Document(metadata={}, page_content='its one'), 0.5)]", ["its one"]),
        ("[NodeWithScore(node=TextNode(id_='1', text='its one'), score=0.5)]", ["its one"]),
        ("{'text': 'its one'}", ["its one"]),
        ("[1] its one", ["[1] its one"]),
        ("one|two", ["one|two"]),
        ("[]", []),
    ],
)
def test_passages_in_a_cell(tmp_path: Path, cell: str, found: list[str]) -> None:
    path = tmp_path / "mine.csv"
    write_rows(path, ("query", "answer", "contexts"), [{"query": "why?", "answer": "so", "contexts": cell}])
    assert passages(load_dataset(answers=path), "mine") == found


@pytest.mark.parametrize("cell", ["['a' ... 'z']", "['a', 'b", "['a', '\\ud800']"])
def test_a_cell_that_is_no_list_is_named(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "mine.csv"
    write_rows(path, ("query", "answer", "contexts"), [{"query": "why?", "answer": "so", "contexts": cell}])
    with pytest.raises(DataError, match=r"mine\.csv:2: 'passages'"):
        load_dataset(answers=path)


def test_deepeval_joins_passages_by_bars(tmp_path: Path) -> None:
    row = {
        "input": "fee?",
        "actual_output": "5",
        "expected_output": "5",
        "retrieval_context": "Fee: 5|Students | pupils: 2",
    }
    assert passages(load_dataset(answers=lines(tmp_path, "a.jsonl", row)), "a") == ["Fee: 5", "Students | pupils: 2"]
    table = row | {"retrieval_context": "|a|b|\n|---|---|\n|1|2|"}
    assert len(passages(load_dataset(answers=lines(tmp_path, "b.jsonl", table)), "b")) == 1
    said = load_dataset(answers=lines(tmp_path, "c.jsonl", row), columns={"passages": "retrieval_context"})
    assert passages(said, "c") == ["Fee: 5|Students | pupils: 2"]


def test_deepeval_json(tmp_path: Path) -> None:
    cases = [
        {
            "input": "Why did the chicken cross the road?",
            "actual_output": "Quite frankly, I don't want to know.",
            "retrieval_context": ["To get to the other side."],
            "context": ["The chicken wanted to cross the road."],
            "expected_output": "To get to the other side.",
            "name": None,
        },
        {"input": "How are you?", "actualOutput": "Fine", "retrievalContext": [], "expectedOutput": None},
    ]
    data = load_dataset(answers=put(tmp_path, "bot.json", json.dumps(cases, indent=2)))
    assert texts(data) == {"bot": {case["input"]: case.get("actual_output", "Fine") for case in cases}}
    assert passages(data, "bot") == ["To get to the other side."]
    assert [query.reference for query in data.queries.values()] == ["To get to the other side.", None]


def promptfoo(*results: dict[str, Any]) -> str:
    whole = {"version": 3, "prompts": [{"raw": "{{question}}"}], "results": list(results), "stats": {"successes": 2}}
    config = {"prompts": ["{{question}}"], "tests": [{"vars": {"question": "why?"}}], "providers": [{"id": "x"}]}
    return json.dumps({"evalId": "eval-x", "results": whole, "config": config, "shareableUrl": None}, indent=2)


def result(provider: str, output: Any, prompt: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "id": f"{provider}-{prompt}-{output}",
        "promptIdx": prompt,
        "testIdx": 0,
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": "Answer: why?", "label": "Answer: {{question}}"},
        "vars": {"question": "why?", "expected": "so"},
        "response": {"output": output, "tokenUsage": {"total": 3}},
        "latencyMs": 1500,
        "cost": 0.25,
        "success": True,
        **more,
    }


def test_the_results_of_promptfoo(tmp_path: Path) -> None:
    file = put(tmp_path, "out.json", promptfoo(result("openai:x", "because"), result("file://rag.py", "so")))
    data = load_dataset(answers=file)
    assert texts(data) == {"openai:x": {"why?": "because"}, "file://rag.py": {"why?": "so"}}
    answer = next(iter(data.answers.values()))
    assert (answer.metadata["latency_s"], answer.metadata["cost_usd"]) == ("1.5", "0.25")


def test_promptfoo_with_two_prompts_and_an_output_that_is_an_object(tmp_path: Path) -> None:
    of_rag = {"output": "because", "retrieved_contexts": ["one"]}
    data = load_dataset(answers=put(tmp_path, "out.json", promptfoo(result("x", of_rag), result("x", "so", prompt=1))))
    assert texts(data) == {"x prompt 0": {"why?": "because"}, "x prompt 1": {"why?": "so"}}
    assert passages(data, "x prompt 0") == ["one"]


def test_ragelo_files_as_they_are(tmp_path: Path, shared: Path) -> None:
    folder = shared / "data" / "ragelo_qdrant"
    data = load_dataset(folder / "queries.csv", folder / "documents.csv", folder / "answers.csv")
    assert (len(data.queries), len(data.agents), len(data.documents)) == (10, 6, 43)


def test_a_pattern_is_every_file_that_it_matches_and_the_folder_names_files_of_one_name(tmp_path: Path) -> None:
    for agent in ("bm25", "dense"):
        (tmp_path / agent).mkdir()
        lines(tmp_path / agent, "answers.jsonl", {"question": "why?", "answer": agent})
    assert load_dataset(answers=f"{tmp_path}/*/answers.jsonl").agents == ("bm25", "dense")
    with pytest.raises(DataError, match="no file matches this pattern"):
        load_dataset(answers=f"{tmp_path}/*.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_divides_a_csv_is_seen(tmp_path: Path, delimiter: str) -> None:
    rows = [["id", "question", "prediction"], ["1", '"why, then; how?"', "so"]]
    file = put(tmp_path, "a.csv", "\ufeff" + "\r\n".join(delimiter.join(row) for row in rows))
    assert texts(load_dataset(answers=file)) == {"a": {"why, then; how?": "so"}}


def test_a_mapping_names_other_columns_and_none_at_all(tmp_path: Path) -> None:
    file = put(tmp_path, "x.csv", "nr,frage,text2,id,answer\n7,why?,so,row1,no\n8,how?,thus,row2,no\n")
    data = load_dataset(answers=file, columns={"qid": "nr", "query": "frage", "answer": "text2"})
    assert list(data.queries) == ["7", "8"]
    assert texts(data) == {"x": {"why?": "so", "how?": "thus"}}
    none = load_dataset(answers=file, columns={"qid": None, "query": "frage"})
    assert all(query_id.startswith("q-") for query_id in none.queries)


def test_a_mapping_holds_in_queries_and_documents_too(tmp_path: Path) -> None:
    queries = put(tmp_path, "q.csv", "nr;frage\n1;why?\n")
    documents = put(tmp_path, "d.json", json.dumps([{"nr": 1, "stelle": "one"}]))
    answers = put(tmp_path, "a.csv", "nr,answer\n1,so\n")
    columns = {"qid": "nr", "query": "frage", "document": "stelle"}
    data = load_dataset(queries, documents, answers, columns=columns)
    assert [document.text for document in data.documents.values()] == ["one"]
    assert next(iter(data.documents)).startswith("d-"), "called by its text"


def test_answers_find_their_query_by_its_text(tmp_path: Path) -> None:
    queries = put(tmp_path, "q.csv", "qid,query\nq1,why?\nq2,how?\n")
    data = load_dataset(queries, answers=put(tmp_path, "a.csv", "question,answer\n how? ,so\n"))
    assert set(data.answers) == {("q2", "a")}


def test_a_limit_takes_the_first_queries_with_what_belongs_to_them(tmp_path: Path) -> None:
    file = lines(tmp_path, "a.jsonl", *({"question": f"q{n}", "answer": "x", "contexts": [f"d{n}"]} for n in range(5)))
    data = load_dataset(answers=file, limit=2)
    assert [query.text for query in data.queries.values()] == ["q0", "q1"]
    assert (len(data.answers), len(data.documents), len(data.retrieved)) == (2, 2, 2)


def test_one_run_may_be_of_all_agents(tmp_path: Path) -> None:
    answers = put(tmp_path, "a.csv", "qid,question,agent,answer\n1,why?,x,so\n1,why?,y,no\n")
    corpus = lines(tmp_path, "corpus.jsonl", {"id": "d1", "text": "one"})
    run = put(tmp_path, "all.run", "1 Q0 d1 1 3.5 recorded\n")
    data = with_runs(load_dataset(answers=answers), [run], [corpus], None)
    assert [entry.agent for entry in data.retrieved["1"]] == [""]
    assert notes_of(data) == [f"{run}: no agent is called 'recorded', so every agent was given its documents"]
    put(tmp_path, "all.run", "1 Q0 d1 1 3.5 X\n")
    with pytest.raises(DataError, match="did you mean 'x'"):
        with_runs(load_dataset(answers=answers), [run], [corpus], None)


@pytest.mark.parametrize(
    ("given", "known", "near"),
    [
        ("1.5", "1.50", "; did you mean '1.50'?"),
        ("001", "1", "; did you mean '1'?"),
        ("Q1 ", "q1", "'q1'?"),
        ("zz", "1", "; add the query, or remove the row ("),
    ],
)
def test_an_unknown_id_is_answered_with_the_nearest(tmp_path: Path, given: str, known: str, near: str) -> None:
    queries = put(tmp_path, "q.csv", f"qid,query\n{known},why?\n")
    with pytest.raises(DataError, match="no query has this id") as raised:
        load_dataset(queries, answers=put(tmp_path, "a.csv", f"qid,agent,answer\n{given},x,so\n"))
    assert near in str(raised.value)


def test_ids_that_each_file_counts_for_itself_are_found(tmp_path: Path) -> None:
    a = put(tmp_path, "a.csv", "id,question,answer\na1,why?,so\n")
    b = put(tmp_path, "b.csv", "id,question,answer\nb1,why?,so\n")
    with pytest.raises(DataError, match=r"the same query is 'a1' in .*: columns: \{qid: null\}"):
        load_dataset(answers=[a, b])
    assert len(load_dataset(answers=[a, b], columns={"qid": None}).queries) == 1


def test_one_model_in_every_file_is_no_agent(tmp_path: Path) -> None:
    files = [put(tmp_path, name, "question,model,answer\nwhy?,gpt,so\n") for name in ("a.csv", "b.csv")]
    with pytest.raises(DataError, match=r"each file is one agent: columns: \{agent: null\}, or --column agent="):
        load_dataset(answers=files)
    assert load_dataset(answers=files, columns={"agent": None}).agents == ("a", "b")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"answr": "x"}, "columns: unknown name 'answr'; did you mean 'answer'?"),
        ({"answer": "responce"}, "columns: answer: no table has a column 'responce'; is it 'response'?"),
    ],
)
def test_a_mapping_that_fits_nothing_is_refused(tmp_path: Path, columns: dict[str, str | None], said: str) -> None:
    with pytest.raises(InputError) as raised:
        load_dataset(answers=put(tmp_path, "a.csv", "question,response\nwhy?,so\n"), columns=columns)
    assert str(raised.value) == said


def test_what_would_go_in_silence_is_noted(tmp_path: Path) -> None:
    rows = [
        {"qid": "1", "question": "why?", "agent": "x", "answer": None},
        {"qid": "1", "question": "why?", "agent": "y", "answer": " "},
        {"qid": "2", "question": "how?", "agent": "x", "answer": "so"},
        {"qid": "3", "question": "who?", "agent": "z", "answer": "me"},
    ]
    assert notes_of(load_dataset(answers=lines(tmp_path, "a.jsonl", *rows))) == [
        "2 empty answers, judged like any other: x on 1 and y on 1",
        "no answer by z on 1, y on 2, z on 2, x on 3 and y on 3",
        "agents without a query in common never meet: x and z; y and z",
    ]
    alone = notes_of(load_dataset(answers=lines(tmp_path, "b.jsonl", rows[2])))
    assert [note.partition(";")[0] for note in alone] == ["'x' is the only agent"]


def test_passages_beside_documents_are_not_used_and_that_is_noted(tmp_path: Path) -> None:
    a = lines(tmp_path, "a.jsonl", RAGAS | {"id": 1})
    documents = put(tmp_path, "d.csv", "qid,did,document\n1,d1,one\n")
    data = load_dataset(documents=documents, answers=a)
    assert list(data.documents) == ["d1"]
    assert data.notes == ("the passages in the answers' files are not used: data names other documents",)


@pytest.mark.parametrize(
    "whole",
    [{"question": ["why?", "how?"], "answer": ["so", "thus"]}, {"question": {"0": "why?"}, "answer": {"0": "so"}}],
)
def test_json_of_columns_as_pandas_and_datasets_write_it(tmp_path: Path, whole: dict[str, Any]) -> None:
    found = texts(load_dataset(answers=put(tmp_path, "x.json", json.dumps(whole))))
    assert found["x"]["why?"] == "so"


def test_a_row_with_an_error_and_no_answer_is_no_answer(tmp_path: Path) -> None:
    rows = [
        {"query": "one?", "agent": "a", "error": "429 Too Many Requests"},
        {"query": "two?", "agent": "a", "answer": None, "error": {"message": "no connection"}},
        {"query": "two?", "agent": "a", "answer": "two", "error": None},
        {"query": "three?", "agent": "a", "answer": "", "error": "none"},
        {"query": "four?", "agent": "a", "answer": "four", "error": "assertion failed"},
        {"query": "one?", "agent": "b", "answer": "1"},
        {"query": "five?", "agent": "b", "answer": "", "exception": "ReadTimeout"},
        {"query": "five?", "agent": "a", "answer": "", "status_code": 503},
        {"query": "six?", "agent": "b", "answer": "", "status": "ok"},
    ]
    for given in (lines(tmp_path, "a.jsonl", *rows), Rows("a", rows)):
        data = load_dataset(answers=given)
        assert texts(data) == {"a": {"two?": "two", "three?": "", "four?": "four"}, "b": {"one?": "1", "six?": ""}}
        notes = notes_of(data)
        assert notes[0].startswith("3 rows with an error and no answer, counted as missing answers: ")
        assert notes[0].endswith("('429 Too Many Requests') and 2 more")
        assert notes[1].startswith("2 empty answers, judged like any other: a on 'three?'")
        assert any(note.startswith("no answer by a on 'one?'") for note in notes)
    table = tmp_path / "t.csv"
    failed = "one?,a,,timeout\nthree?,a,None,timeout\nfour?,a,HTTP 429,HTTP 429\n"
    table.write_text(f"query,agent,answer,error\n{failed}two?,a,two,\n", encoding="utf-8")
    assert texts(load_dataset(answers=table)) == {"a": {"two?": "two"}}


def test_an_error_column_stands_for_no_answers(tmp_path: Path) -> None:
    table = put(tmp_path, "t.csv", "query,reply,error\none?,1,\n")
    with pytest.raises(DataError, match="no column 'answer'"):
        load_dataset(answers=table)
    with pytest.raises(DataError, match="no column 'answer'"):
        load_dataset(answers=lines(tmp_path, "a.jsonl", {"query": "one?", "reply": "1", "error": None}))


def test_promptfoo_tells_errors_from_assertions(tmp_path: Path) -> None:
    def result(number: int, response: dict[str, Any], reason: int) -> dict[str, Any]:
        said = {"response": response, "error": "Error", "failureReason": reason}
        return {"promptIdx": 0, "provider": "m", "vars": {"question": f"q{number}?"}, **said}

    path = lines(
        tmp_path, "p.jsonl", result(1, {"output": ""}, 1), result(2, {"error": "429"}, 2), result(3, {"output": "x"}, 1)
    )
    assert texts(load_dataset(answers=path)) == {"m": {"q1?": "", "q3?": "x"}}


ODD = {
    "nan": "a missing value",
    " None ": "a missing value",
    "N/A": "a missing value",
    "<NA>": "a missing value",
    "429 Too Many Requests": "an error",
    "ERROR: timeout": "an error",
    "Request timed out.": "an error",
    "Error code: 429 - {'error': {'message': 'Rate limit'}}": "an error",
    "openai.RateLimitError: limit": "an error",
    "HTTP 502": "an error",
    "503 Service Unavailable": "an error",
    '{"error": {"code": 500}}': "an error",
    "Traceback (most recent call last):\n  File": "an error",
    "An error occurred while processing your request.": "an error",
    "<think>Hm.</think> North.": "a model's thinking",
    "Hm.\n</think>\nNorth.": "a model's thinking",
}


def test_answers_that_are_hardly_meant_are_named_and_judged(tmp_path: Path) -> None:
    for text, look in ODD.items():
        data = load_dataset(answers=lines(tmp_path, "a.jsonl", {"query": "q?", "answer": text}))
        (note,) = (note for note in notes_of(data) if "judged like any other" in note)
        assert look in note, text
        assert texts(data) == {"a": {"q?": text}}
    for text in (
        "None of them.",
        "429 people came.",
        "Error bars show intervals.",
        "The request is free.",
        "I think so.",
        "0",
    ):
        data = load_dataset(answers=lines(tmp_path, "a.jsonl", {"query": "q?", "answer": text}))
        assert not [note for note in notes_of(data) if "judged like any other" in note], text


@pytest.mark.parametrize(
    "answer",
    [
        {"model": "m", "choices": [{"message": {"content": "x"}}], "completion": "x"},
        {"status_code": 200, "body": {"choices": [{"message": {"content": "x"}}]}},
        {"body": {"output": [{"content": [{"text": "x"}]}]}},
        {"content": "x", "type": "ai"},
        {"answer": "x", "contexts": ["p"]},
    ],
)
def test_the_text_of_an_answer_that_is_an_object_is_read(tmp_path: Path, answer: Any) -> None:
    assert texts(load_dataset(answers=lines(tmp_path, "a.jsonl", {"query": "q?", "output": answer}))) == {
        "a": {"q?": "x"}
    }


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([{"role": "assistant", "content": "x"}], "the answer is a list; a judge reads one text: join it"),
        ({"answer": "x", "response": "y"}, "two columns may be the answer: answer, response"),
        ({"raw": "x"}, "no column 'answer'; found query, raw"),
    ],
)
def test_an_answer_without_one_text_is_refused(tmp_path: Path, answer: Any, says: str) -> None:
    with pytest.raises(DataError) as raised:
        load_dataset(answers=lines(tmp_path, "a.jsonl", {"query": "q?", "output": answer}))
    assert says in str(raised.value)


def test_a_query_without_an_id_is_named_by_its_beginning(tmp_path: Path) -> None:
    data = load_dataset(answers=lines(tmp_path, "x.jsonl", {"question": "why? " * 20, "answer": ""}))
    assert notes_of(data)[0] == "1 empty answer, judged like any other: x on 'why? why? why? why? why? why? why?...'"
    text = "图书馆由镇政府管理，" * 10
    rows = [{"query": text, "agent": "a", "answer": ""}, {"query": "q?", "agent": "b", "answer": "<think>" + text}]
    empty, thinking = notes_of(load_dataset(answers=lines(tmp_path, "a.jsonl", *rows)))[:2]
    assert "a on '图书馆由镇政府管理，图书馆" in empty
    assert "('<think>图书馆由镇政府管理，" in thinking


class Passage:
    """As LangChain's documents are."""

    def __init__(self, text: str) -> None:
        self.page_content, self.metadata = text, {"source": "a.pdf"}


def test_rows_in_memory_hold_arrays_and_documents() -> None:
    given = [{"query": "q?", "answer": "x", "contexts": [Passage("its one"), Passage("two")], "n": np.int64(3)}]
    arrays = [{**given[0], "contexts": np.array(["one", "two"])}]
    data = load_dataset(answers=[Rows("mine", given), Rows("other", arrays)])
    assert (passages(data, "mine"), passages(data, "other")) == (["its one", "two"], ["one", "two"])
    assert data.documents[next(entry.doc_id for entry in data.retrieved[next(iter(data.queries))])].metadata == {
        "source": "a.pdf"
    }
    assert {answer.metadata["n"] for answer in data.answers.values()} == {"3"}
    with pytest.raises(DataError, match="passage 1 is neither a text"):
        load_dataset(answers=Rows("mine", [{"query": "q?", "answer": "x", "contexts": [1]}]))


@pytest.mark.parametrize("cell", ["['d1' 'd2']", "('d1', 'd2')", '["d1", "d2"]', "array(['d1', 'd2'], dtype=object)"])
def test_citations_in_a_cell_are_a_list(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "mine.csv"
    write_rows(path, ("query", "answer", "citations"), [{"query": "why?", "answer": "so", "citations": cell}])
    (answer,) = load_dataset(answers=path).answers.values()
    assert json.loads(answer.metadata["citations"]) == ["d1", "d2"]


def test_a_spreadsheet_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not a table but a spreadsheet; save it as CSV"):
        load_dataset(answers=put(tmp_path, "a.xlsx", "x"))
