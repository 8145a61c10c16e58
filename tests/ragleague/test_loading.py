"""What ``load`` takes besides files: data of other tools as they are in memory, told by their shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

import ragleague as rl

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
    """As ragas has it."""

    user_input: str
    response: str | None = None
    retrieved_contexts: list[str] | None = None
    reference: str | None = None
    rubrics: dict[str, str] | None = None


class TestCase(BaseModel):
    """As DeepEval has it."""

    __test__ = False
    input: str
    actual_output: str | None = None
    retrieval_context: list[str] | None = None
    expected_output: str | None = None
    multimodal: bool = False


@dataclass
class Samples:
    """As ragas' and Hugging Face's data sets: what can be gone through, and is neither a list nor a frame."""

    rows: list[Any] = field(default_factory=list)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """By column, unlike a frame's."""
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}


def hugging_face() -> Any:
    """A data set of ``datasets``."""
    import datasets

    return datasets.Dataset.from_list([RECORD])


def ragas() -> Any:
    """A data set of ragas."""
    import ragas

    return ragas.EvaluationDataset(samples=[ragas.SingleTurnSample(**OF_RAGAS)])


def deepeval() -> Any:
    """Test cases of DeepEval."""
    from deepeval.test_case import LLMTestCase

    return [LLMTestCase(**OF_DEEPEVAL)]


def _require_loaded(table: Any) -> None:
    """The table's one answer was read, with all that came along and nothing else."""
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
        ({"mine": "answers.csv"}, "for each agent a table in memory is asked for"),
        ("a\0.csv", "is not the name of a file"),
        ("a" * 300 + ".csv", "is not the name of a file"),
        (pd.DataFrame([["why?", "a", "b"]], columns=["question", "answer", "answer"]), "column 'answer' stands twice"),
        (pd.DataFrame({"id": [pd.NaT], "question": ["why?"], "answer": ["a"]}), "'qid' is empty"),
        (np.array(5), "give files, frames, dictionaries or samples, and not ndarray"),
        (np.array([["a", "b"]]), "and no list of lists"),
        ([[[[RECORD]]]], "and no list of lists"),
        ({" ": [RECORD]}, "a table stands under an empty name"),
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
