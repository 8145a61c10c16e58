"""What ``load`` takes besides files: data of other tools as they are in memory, told by their shape."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

import ragleague as rl
from judges.errors import InputError

QUERY: Final = "Why do cats purr?"
TEXT, REFERENCE, PASSAGES = (
    "To calm themselves.",
    "Nobody is sure.",
    ["Cats purr to calm down.", "Kittens purr for food."],
)
RECORD: Final = {"question": QUERY, "answer": TEXT, "contexts": PASSAGES, "reference": REFERENCE}
OF_RAGAS: Final = {"user_input": QUERY, "response": TEXT, "retrieved_contexts": PASSAGES, "reference": REFERENCE}
OF_DEEPEVAL: Final = {
    "input": QUERY,
    "actual_output": TEXT,
    "retrieval_context": PASSAGES,
    "expected_output": REFERENCE,
}


class Sample(BaseModel):
    user_input: str
    response: str | None = None
    retrieved_contexts: list[str] | None = None
    reference: str | None = None
    rubrics: dict[str, str] | None = None


class TestCase(BaseModel):
    __test__ = False
    input: str
    actual_output: str | None = None
    retrieval_context: list[str] | None = None
    expected_output: str | None = None
    multimodal: bool = False


@dataclass
class Samples:
    """Like the data sets of ragas and Hugging Face: iterable, but neither a list nor a frame."""

    rows: list[Any] = field(default_factory=list)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}


def hugging_face() -> Any:
    import datasets

    return datasets.Dataset.from_list([RECORD])


def ragas() -> Any:
    import ragas

    return ragas.EvaluationDataset(samples=[ragas.SingleTurnSample(**OF_RAGAS)])


def deepeval() -> Any:
    from deepeval.test_case import LLMTestCase

    return [LLMTestCase(**OF_DEEPEVAL)]


def _require_loaded(table: Any) -> None:
    data = rl.load({"mine": table})
    ((query_id, query),) = data.queries.items()
    assert (query.text, query.reference) == (QUERY, REFERENCE)
    (answer,) = data.answers.values()
    assert (answer.agent, answer.text, dict(answer.metadata)) == ("mine", TEXT, {})
    assert [data.documents[entry.doc_id].text for entry in data.retrieved[query_id]] == PASSAGES
    assert rl.load(table).agents == ("answers",)


@pytest.mark.filterwarnings("ignore")  # of the packages' own imports
@pytest.mark.parametrize(("package", "made"), [("datasets", hugging_face), ("ragas", ragas), ("deepeval", deepeval)])
def test_data_of_other_packages_load_as_they_are(
    package: str, made: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "true")
    pytest.importorskip(package, reason=f"{package} is not installed: 'make frameworks'")
    print(package, version(package))  # noqa: T201 - which one this was, for the reader of 'make frameworks'
    _require_loaded(made())


@pytest.mark.parametrize(
    "table",
    [
        pytest.param([RECORD], id="dictionaries"),
        pytest.param(pd.DataFrame([RECORD]), id="frame"),
        pytest.param(Samples([RECORD]), id="as Hugging Face's Dataset"),
        pytest.param(Samples([Sample(**OF_RAGAS)]), id="as ragas' EvaluationDataset"),
        pytest.param([Sample(**OF_RAGAS)], id="as ragas' samples"),
        pytest.param([TestCase(**OF_DEEPEVAL)], id="as DeepEval's test cases"),
        pytest.param([SimpleNamespace(**OF_DEEPEVAL, _of_the_tool=1)], id="plain objects"),
        pytest.param(Sample(**OF_RAGAS), id="one alone"),
    ],
)
def test_rows_of_any_shape_load(table: Any) -> None:
    _require_loaded(table)


def test_several_tables_are_read_as_one() -> None:
    data = rl.load([Samples([RECORD]), [TestCase(**OF_DEEPEVAL)]])
    assert data.agents == ("answers 1", "answers 2")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([Sample(user_input=QUERY)], "no column 'answer'; found user_input"),
        ({"mine": "answers.csv"}, "give each agent a table in memory"),
        ("a\0.csv", "is not a valid name of a file"),
        ("a" * 300 + ".csv", "is not a valid name of a file"),
        (pd.DataFrame([["why?", "a", "b"]], columns=["question", "answer", "answer"]), "column 'answer' occurs twice"),
        (pd.DataFrame({"id": [pd.NaT], "question": ["why?"], "answer": ["a"]}), "'id' is empty"),
        (np.array(5), "give files, frames, dictionaries or samples, and not ndarray"),
        (np.array([["a", "b"]]), "and no list of lists"),
        ([[[[RECORD]]]], "and no list of lists"),
        ({" ": [RECORD]}, "a table has an empty name"),
    ],
)
def test_what_is_no_table_of_answers_is_refused(table: Any, message: str) -> None:
    with pytest.raises(rl.InputError, match=message):
        rl.load(table)


def test_a_frame_whose_contexts_are_missing_in_a_row_loads() -> None:
    rows = [{"question": "why?", "agent": "one", "answer": "a", "contexts": ["p"]}]
    rows.append({"question": "why?", "agent": "two", "answer": "b"})
    found = rl.load(pd.DataFrame(rows)).retrieved
    assert [own.agent for of_query in found.values() for own in of_query] == ["one"]


ANSWER = {"qid": "q1", "query": "a?", "agent": "x", "answer": "b"}
HALF, NOT_UTF_8 = "a\ud800", "holds half a surrogate pair; write it as UTF-8"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([{**ANSWER, "query": HALF}], f"answers:1: the text is not UTF-8, or {NOT_UTF_8}"),
        ([ANSWER, {**ANSWER, "qid": "q2", "answer": HALF}], f"answers:2: the text is not UTF-8, or {NOT_UTF_8}"),
        ([{**ANSWER, "contexts": ("a", HALF)}], NOT_UTF_8),
        ([{**ANSWER, "meta": {"a": [HALF]}}], NOT_UTF_8),
        ([{**ANSWER, HALF: "a"}], NOT_UTF_8),
        ([{**ANSWER, "answer": "a\0"}], "answers:1: the text holds a NUL character; remove it"),
        ({"x\ud800": [ANSWER]}, r"x\ud800: this name cannot be used"),
        ({"x\0": [ANSWER]}, r"x\x00: this name cannot be used"),
        ([{**ANSWER, 1: "a", "1": "b"}], "two columns have the same name; rename one ('1')"),
        ([{**ANSWER, "Query": "b"}], "answers:1: columns 'query' and 'Query' differ in case or spaces only"),
        ([{**ANSWER, "query ": "b"}], "columns 'query' and 'query ' differ in case or spaces only"),
        ([{**ANSWER, "note": "b", "note ": "c"}], "columns 'note' and 'note ' differ in case or spaces only"),
        (pd.DataFrame([{**ANSWER, "query": HALF}], dtype=object), NOT_UTF_8),
        (pd.DataFrame([{**ANSWER, " QUERY": "b"}]), "columns 'query' and ' QUERY' differ in case or spaces only"),
        ("no\ud800.csv", r"no\ud800.csv: is not a valid name of a file; name a file"),
    ],
)
def test_what_no_store_can_hold_and_columns_alike_are_one_line(given: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        rl.load(given)
    assert problem in str(caught.value)
    str(caught.value).encode()


def test_columns_that_mean_nothing_to_us_may_differ_in_case_and_nameless_ones_are_passed_over() -> None:
    data = rl.load([{**ANSWER, "Note": "1", "note": "2", "": "3", "  ": "4"}])
    assert data.answers["q1", "x"].metadata == {"Note": "1", "note": "2"}
    named = rl.load([{**ANSWER, "Query": "b?"}], columns={"query": "Query"})
    assert named.queries["q1"].text == "b?", "the user says which"


def test_queries_and_documents_are_checked_alike() -> None:
    with pytest.raises(InputError, match="queries:1: the text is not UTF-8"):
        rl.load(queries=[{"qid": "q1", "query": HALF}])
    with pytest.raises(InputError, match="documents:1: the text is not UTF-8"):
        rl.load([ANSWER], documents=[{"qid": "q1", "did": HALF, "document": "a"}])


def test_a_file_whose_name_is_not_utf_8_names_no_agent(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.csv"))
    path.write_text("qid,query,answer\nq1,a?,b\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\\udcff.csv: this name cannot be used"):
        rl.load(path)


@pytest.mark.parametrize("store", [":memory:", "sqlite:///:memory:", "file::memory:?cache=shared", "x\ud800.db"])
def test_a_store_that_is_no_file_is_refused_before_anything_is_asked(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[Any] = []
    data = rl.load([ANSWER, {**ANSWER, "agent": "y"}])
    with pytest.raises(InputError, match=r"^store: "):
        rl.run(data, judge=asked.append, store=store, progress=False)
    assert not asked
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError):
        rl.open(store)


@pytest.mark.parametrize("name", ["x\ud800", "x\0y"])
def test_an_agent_to_ask_has_a_name_that_a_store_can_hold(name: str) -> None:
    with pytest.raises(InputError, match="an agent's name must hold no NUL and no half of a surrogate pair"):
        rl.run(rl.load([ANSWER]), judge=lambda _: "A", agents={name: lambda _: "x"}, progress=False)
