"""Agents that are Python functions, and agents that are files."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from judges.errors import InputError
from judges.types import Query
from tests.support.agent_fixtures import answered, build, failed, only

FUNCTIONS = """
import asyncio, time, sys

def text(query): return f"{query.query_id}: {query.text}"
def whole(query):
    return {"answer": "So [2].", "documents": [{"id": "a", "text": "A."}, "elo"], "cost_usd": 0.5, "input_tokens": 3}
async def later(query):
    await asyncio.sleep(0.01)
    return {"answer": "Later.", "citations": ["a"]}
def wrapped(query): return later(query)
def raises(query): raise LookupError("no such\\nthing")
async def raises_later(query): raise TimeoutError("its own")
def ends(query): sys.exit(3)
def slow(query): time.sleep(5)
async def slow_later(query): await asyncio.sleep(5)
def nothing(query): return None
def number(query): return 7
def empty(query): return " "
value = 7
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FUNCTIONS)
    return path


def python(file: Path, name: str, **settings: Any) -> dict[str, Any]:
    return {"kind": "python", "function": f"{file}:{name}", "timeout_s": 0.3, **settings}


async def test_a_function_gives_a_text_or_a_mapping(file: Path) -> None:
    text = await answered(only(python(file, "text")))
    assert text.answer == "q1: How are Elo ratings updated after a game?"
    assert (text.calls, text.cost_usd) == (0, None)
    whole = await answered(only(python(file, "whole")))
    assert [found.doc_id for found in whole.documents] == ["a", "elo"]
    assert (whole.citations, whole.cost_usd, whole.usage.input_tokens) == (("elo",), 0.5, 3)
    later = await answered(only(python(file, "later")))
    assert (later.answer, later.citations) == ("Later.", ("a",))
    assert later.latency_s
    assert later.latency_s > 0.009
    assert (await answered(only(python(file, "wrapped")))).answer == "Later.", "of a plain function around another"


@pytest.mark.parametrize(
    ("name", "cause", "message"),
    [
        ("raises", "exception", "LookupError: no such thing"),
        ("raises_later", "exception", "TimeoutError: its own"),
        ("ends", "exception", "RuntimeError: SystemExit: 3"),
        ("slow", "timeout", "no reply within 0.3 s"),
        ("slow_later", "timeout", "no reply within 0.3 s"),
        ("nothing", "empty", "the function returned None"),
        ("number", "contract", "the function returned a int, not a text or a mapping"),
        ("empty", "empty", "the agent's reply has no answer at 'answer'"),
    ],
)
async def test_a_function_that_gives_no_answer_is_a_failure(file: Path, name: str, cause: str, message: str) -> None:
    failure = await failed(only(python(file, name)))
    assert (failure.cause, failure.message) == (cause, message)


async def test_functions_that_wait_run_side_by_side_up_to_the_limit(file: Path) -> None:
    file.write_text("import time\ndef ask(query):\n    time.sleep(0.1)\n    return 'a'\n")
    agent = only(python(file, "ask", concurrency=2, timeout_s=5))
    started = time.perf_counter()
    replies = await asyncio.gather(*(agent.reply(Query(str(number), "?")) for number in range(4)))
    assert 0.2 <= time.perf_counter() - started < 0.39
    assert all(0.1 <= (reply.latency_s or 0) < 0.19 for reply in replies)  # without the wait for a turn


async def test_a_file_is_run_as_python_would_with_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "words_of_ours.py").write_text("WORDS = 'Beside.'\n")
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from words_of_ours import WORDS\n"
        "@dataclass\nclass Said:\n    answer: str\n"
        "def ask(query): return Said(WORDS).answer\n"
    )
    assert (await answered(only(python(tmp_path / "mine.py", "ask")))).answer == "Beside."


def test_an_edited_file_is_another_agent(file: Path) -> None:
    before = only(python(file, "text")).identity
    assert only(python(file, "text")).identity == before
    assert only(python(file, "whole")).identity != before
    file.write_text(f"# Another comment, and another function changed.\n{FUNCTIONS.replace('7', '8')}")
    assert only(python(file, "text")).identity == before
    file.write_text(FUNCTIONS.replace("{query.query_id}: ", ""))
    assert only(python(file, "text")).identity != before


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        ("x = 1", "ask", "no function 'ask'; define it there"),
        ("value = 7", "value", "no function 'value'"),
        ("def ask(:", "ask", "cannot be imported: SyntaxError"),
        ("raise ValueError('a\\nb')", "ask", "cannot be imported: ValueError: a b"),
    ],
)
def test_a_file_without_the_function_is_one_line(file: Path, text: str, name: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=problem):
        only(python(file, name))


def asks(depth: int, seen: list[str]) -> Any:
    """A function with a number and a list around it."""

    def ask(query: Query, *, style: str = "short") -> str:
        seen.append(query.query_id)
        return f"{style} {depth}"

    return ask


class Ask:
    def __init__(self, depth: int = 1) -> None:
        self.depth = depth

    def __call__(self, query: Query) -> str:
        return f"{query.text} {self.depth}"


async def test_a_function_is_known_by_its_name_its_code_and_what_is_bound_to_it() -> None:
    def identity(function: Any, name: str = "agent") -> str:
        return build({name: {"kind": "python", "function": function}})[name].identity

    seen: list[str] = []
    same = asks(3, seen)
    before = identity(same)
    agent = only({"kind": "python", "function": same})
    await agent.reply(Query("q1", "Why?"))
    await agent.close()
    assert seen == ["q1"]
    assert identity(same) == identity(asks(3, [])) == before, "what it notes itself makes no other function of it"
    different = [
        asks(3, ["another"]),
        same,
        asks(5, seen),
        partial(same, style="long"),
        partial(same, style="longer"),
        Ask(),
        lambda query: "lambda",
        *(eval(f"lambda query: [{word}(q) for q in (1, 2)]") for word in ("len", "str")),  # typed at a prompt
    ]
    assert len({identity(function) for function in different}) == len(different)
    assert identity(Ask(2)) != identity(Ask(3))
    assert identity(Ask(2)) == identity(Ask(2))
    assert identity(Ask(2), "one") != identity(Ask(2), "two")


def test_a_file_that_is_gone_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"agents.mine: .*gone\.py: no such file"):
        only(python(tmp_path / "gone.py", "ask"))


async def test_files_give_what_was_recorded(tmp_path: Path) -> None:
    answers, documents, run = tmp_path / "answers.csv", tmp_path / "documents.csv", tmp_path / "x.run"
    answers.write_text("qid,agent,answer\nq1,mine,Yes.\nq1,other,No.\nq2,mine,\n")
    documents.write_text(
        "qid,did,document,agent,rank,score,title\nq1,b,B.,mine,2,0.5,T\nq1,a,A.,mine,1,,\nq1,c,C.,other,1,,\n"
    )
    run.write_text("q1 Q0 kappa 1 2.5 x\nq1 Q0 elo 2 1.5 x\n")
    spec = {"kind": "file", "answers": str(answers)}
    reply = await answered(only({**spec, "documents": str(documents)}))
    assert (reply.answer, reply.latency_s, reply.cost_usd) == ("Yes.", None, None)
    assert [(found.doc_id, found.rank, found.score, dict(found.metadata)) for found in reply.documents] == [
        ("a", 1, None, {}),
        ("b", 2, 0.5, {"title": "T"}),
    ]
    ran = await answered(only({**spec, "agent": "other", "run": str(run)}))
    assert (ran.answer, [found.doc_id for found in ran.documents]) == ("No.", ["kappa", "elo"])
    assert ran.documents[0].text == "Kappa corrects agreement for chance."
    assert (await failed(only(spec), Query("q2", "?"))).cause == "empty"
    assert (await failed(only(spec), Query("q3", "?"))).cause == "not_recorded"


@pytest.mark.parametrize(
    ("answers", "documents", "problem"),
    [
        ("qid,agent,answer\nq1,other,No.\n", None, "has no row of agent 'mine', only of 'other'"),
        ("qid,answer\nq1,a\nq1,b\n", None, "answers.csv:3: agent 'mine' has answered query 'q1' further up"),
        ("qid,answer\nq1,a\n", "qid,did,document,rank\nq1,a,A,first\n", "csv:2: 'rank' must be a number"),
        ("qid,answer\nq1,a\n", "qid,did,document,score\nq1,a,A,high\n", "documents.csv:2: 'score' must be a number"),
        ("qid,answer\nq1,a\n", "qid,did,document\nq1,a,A\nq1,a,B\n", "documents.csv:3: the document is listed twice"),
    ],
)
def test_files_that_contradict_themselves_are_one_line(
    tmp_path: Path, answers: str, documents: str | None, problem: str
) -> None:
    (tmp_path / "answers.csv").write_text(answers)
    spec = {"kind": "file", "answers": str(tmp_path / "answers.csv")}
    if documents is not None:
        (tmp_path / "documents.csv").write_text(documents)
        spec["documents"] = str(tmp_path / "documents.csv")
    with pytest.raises(InputError, match=problem):
        only(spec)


def test_a_run_over_documents_that_are_not_there_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("qid,answer\nq1,a\n")
    (tmp_path / "x.run").write_text("q1 Q0 gone 1 2.5 x\n")
    with pytest.raises(InputError, match="the corpus has no document 'gone'"):
        only({"kind": "file", "answers": str(tmp_path / "answers.csv"), "run": str(tmp_path / "x.run")})
