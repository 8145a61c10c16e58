"""Agents behind real HTTP: every reply is kept once, what is missing is said, asked again and left out of games."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import load_config
from arena.results.ratings import leaderboard
from arena.run.answers import run_agents
from arena.run.judging import load_data
from arena.store import Store
from judges.errors import InputError
from tests.support.agents import QUERIES, answering, asked, http_agent, write_config
from tests.support.llm_server import LLMServer, Reply
from tests.support.tournaments import Quiet

EMPTY = Reply(body={"answer": "   ", "found": []})
ELSEWHERE = Reply(body={"text": "not where the mapping says"})


def url_of(server: LLMServer, agent: str) -> str:
    return f"http://127.0.0.1:{server.port}/{agent}"


def two_agents(server: LLMServer, **changed: Any) -> dict[str, Any]:
    return {name: http_agent(url_of(server, name), **changed) for name in ("x", "y")}


def test_documents_to_leaderboard_in_one_run_and_nothing_is_asked_twice(cli: Any, tmp_path: Path) -> None:
    with LLMServer(answering()) as server:
        config = write_config(tmp_path, two_agents(server), retrieval={"judge": "words"})
        first = cli("run", config, "--format", "json")
        assert (first.status, len(server.calls)) == (0, 16)
        again = cli("run", config, "--format", "json")
        assert (again.status, again.out, len(server.calls)) == (0, first.out, 16)
    assert "agent x: 8 answered, 0 needed no call, 0 failed, 0 left of 8; 8 calls, $0.016" in first.err
    assert "agent x: 0 answered, 8 needed no call, 0 failed, 0 left of 8" in again.err
    board = json.loads(first.out)
    assert board["complete"]
    own = board["costs"]["agents"]["x"]
    assert (own["answered"], own["queries"], own["missing"]) == (8, 8, {})
    assert own["latency_s"]["known"] == 8
    assert own["latency_s"]["median"] > 0
    assert own["cost_usd"] == {"mean": 0.002, "known": 8}
    assert own["output_tokens"] == {"mean": 40, "known": 8}
    assert own["input_tokens"] == {"mean": None, "known": 0}
    assert board["coverage"]["relevance"]["wanted"] == 16, "two documents a query, which both agents retrieved"


def test_a_slow_a_failing_and_an_empty_reply_are_missing_and_asked_again(cli: Any, tmp_path: Path) -> None:
    faults = {
        "q0": Reply(fault="stall"),
        "q1": Reply(status=500),
        "q2": EMPTY,
        "q3": ELSEWHERE,
        "q4": Reply(fault="garbage"),
        "q5": Reply(fault="reset"),
    }
    script = {"y": faults}
    with LLMServer(lambda call: answering(faults=script.get(call.path.strip("/")))(call)) as server:
        config = write_config(tmp_path, two_agents(server, timeout_s=0.5))
        ended = cli("run", config, "--format", "json")
        assert ended.status == 3
        line = next(line for line in ended.err.splitlines() if line.startswith("agent y:"))
        assert "2 answered, 0 needed no call, 6 failed (" in line
        board = json.loads(ended.out)
        assert not board["complete"]
        assert board["costs"]["agents"]["y"]["answered"] == 2
        missing = board["costs"]["agents"]["y"]["missing"]
        assert sum(missing.values()) == 6
        assert {"timeout", "server_error", "empty", "connection"} <= missing.keys()
        assert board["coverage"]["pairwise"]["wanted"] == 2 * 2, "games are played where both have answered"
        assert board["costs"]["agents"]["x"]["missing"] == {}
        table = cli("leaderboard", config, "--details")
        assert re.search(r"y +2 +8 .*timeout", table.out)
        listed = json.loads(cli("failures", config, "--format", "json").out)
        assert {(entry["task"], entry["item"]) for entry in listed} == {("agents", "y")}
        assert {entry["qid"] for entry in listed} == faults.keys()

        script.clear()  # the agent is mended
        before = Counter(asked(call) for call in server.calls)
        mended = cli("run", config, "--format", "json")
        after = Counter(asked(call) for call in server.calls) - before
    assert mended.status == 0, mended.err
    assert after == Counter(faults.keys()), "only what was missing is asked again"
    board = json.loads(mended.out)
    assert board["complete"]
    assert board["coverage"]["pairwise"]["wanted"] == 8 * 2


def test_what_an_agent_refuses_is_asked_again_on_request_only(tmp_path: Path) -> None:
    refusing = {"q1": Reply(status=400)}
    with LLMServer(answering(faults=refusing)) as server:
        config = load_config(write_config(tmp_path, {"x": http_agent(url_of(server, "x"))}))
        first = run_agents(config, Quiet())
        assert first.agents["x"].causes == {"bad_request": 1}
        second = run_agents(config, Quiet())
        assert (second.agents["x"].causes, second.agents["x"].calls) == ({"bad_request": 1}, 0)
        refusing.clear()
        third = run_agents(config, Quiet(), retry_failed=True)
        assert (third.agents["x"].answered, third.agents["x"].known, third.complete) == (1, 7, True)


def test_an_agent_that_is_locked_out_is_not_asked_every_query(cli: Any, tmp_path: Path) -> None:
    with LLMServer(lambda call: Reply(status=401)) as server:
        config = write_config(tmp_path, {"x": http_agent(url_of(server, "x"), concurrency=1)})
        ended = cli("make", "answers", config)
        assert len(server.calls) == 1
    assert ended.status == 3
    assert "agent x: 0 answered, 0 needed no call, 1 failed (authentication 1), 7 left of 8" in ended.err
    assert "agent 'x' stopped: " in ended.err


def test_equal_agents_and_equal_queries_are_asked_once(tmp_path: Path) -> None:
    with LLMServer(answering()) as server:
        same = http_agent(url_of(server, "same"))
        path = write_config(tmp_path, {"x": same, "y": same})
        table = tmp_path / "queries.csv"
        table.write_text(table.read_text() + "q0-again,What is q0?\n")
        ran = run_agents(load_config(path), Quiet())
        assert len(server.calls) == 8
    assert ran.complete
    assert (ran.agents["x"].answered, ran.agents["x"].known) == (8, 1)
    assert (ran.agents["y"].answered, ran.agents["y"].known) == (0, 9)


def test_a_changed_declaration_is_another_agent_and_another_limit_is_not(tmp_path: Path) -> None:
    with LLMServer(answering()) as server:
        for changed, calls in (({}, 8), ({"timeout_s": 7, "concurrency": 2}, 8), ({"version": "2"}, 16)):
            config = load_config(write_config(tmp_path, {"x": http_agent(url_of(server, "x"), **changed)}))
            assert run_agents(config, Quiet()).complete
            assert len(server.calls) == calls


def test_stages_can_be_done_one_by_one(cli: Any, tmp_path: Path) -> None:
    with LLMServer(answering()) as server:
        config = write_config(tmp_path, two_agents(server))
        planned = cli("plan", config)
        assert planned.status == 0
        assert "16 answers are still to come" in planned.out
        assert "the calls that these agents make in their own code or server are not known: x, y" in planned.out
        asked_only = cli("run", config, "--stage", "agents")
        assert (asked_only.status, asked_only.out) == (0, "")
        shown = cli("make", "answers", config, "--out", tmp_path / "looked-at")
        assert shown.status == 0
        assert "It is q0, says x." in (tmp_path / "looked-at/answers.csv").read_text()
        judged = cli("run", config, "--stage", "pairwise", "--format", "json")
        assert len(server.calls) == 16
    assert judged.status == 0
    assert json.loads(judged.out)["coverage"]["pairwise"] == {
        "wanted": 16, "judged": 16, "failed": 0, "left": 0, "identical": 0, "share": 1.0,
    }  # fmt: skip


def test_answers_of_files_and_agents_meet(cli: Any, tmp_path: Path) -> None:
    with LLMServer(answering()) as server:
        (tmp_path / "answers.csv").write_text(
            "qid,agent,answer,latency_s\n"
            + "".join(f"{q},old,An old answer to {q}.,{n}\n" for n, q in enumerate(QUERIES))
        )
        data = {"queries": "queries.csv", "answers": "answers.csv"}
        ended = cli(
            "run", write_config(tmp_path, {"x": http_agent(url_of(server, "x"))}, data=data), "--format", "json"
        )
    assert ended.status == 0, ended.err
    costs = json.loads(ended.out)["costs"]["agents"]
    assert costs["old"]["latency_s"] == {"median": 3.5, "p95": pytest.approx(6.65), "known": 8}
    assert costs["old"]["cost_usd"] == {"mean": None, "known": 0}, "a file that does not say is not free of charge"


def test_an_agent_of_the_files_cannot_be_declared_as_well(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("qid,agent,answer\nq0,x,Yes.\n")
    with LLMServer(answering()) as server:
        data = {"queries": "queries.csv", "answers": "answers.csv"}
        ended = cli("run", write_config(tmp_path, {"x": http_agent(url_of(server, "x"))}, data=data))
        assert not server.calls
    assert ended.status == 2
    assert "asked.yaml:2: agents.x: the data already has answers or documents of an agent with this name;" in ended.err


def test_documents_of_two_agents_with_one_id_stay_apart(tmp_path: Path) -> None:
    def script(call: Any) -> Reply:
        agent = call.path.strip("/")
        return Reply(body={"answer": f"So says {agent}.", "found": [{"id": "1", "text": f"{agent}'s own page"}] * 2})

    with LLMServer(script) as server:
        config = load_config(write_config(tmp_path, two_agents(server), queries=["q0"]))
        assert run_agents(config, Quiet()).complete
    data = load_data(config)
    assert sorted(document.text for document in data.documents.values()) == ["x's own page", "y's own page"]
    assert [(entry.agent, entry.rank) for entry in data.retrieved["q0"]] == [("x", 1), ("y", 1)], "repeated ones once"


def test_what_agents_say_that_they_cite_is_scored_by_the_labels_of_those_documents(cli: Any, tmp_path: Path) -> None:
    def script(call: Any) -> Reply:
        own = call.path.strip("/")
        pages = [{"id": "1", "text": "So says a page on q0."}, {"id": "2", "text": f"{own} on cats."}]
        return Reply(body={"answer": "It is so.", "found": pages, "cites": ["2"] if own == "y" else ["1", "2"]})

    mapping = {"answer": "answer", "documents": "found", "citations": "cites"}
    with LLMServer(script) as server:
        agents = two_agents(server, mapping=mapping)
        config = write_config(tmp_path, agents, queries=["q0"])
        assert run_agents(load_config(config), Quiet()).complete
        theirs = next(doc_id for doc_id, one in load_data(load_config(config)).documents.items() if "y on" in one.text)
        (tmp_path / "labels.qrels").write_text(f"q0 0 1 0\nq0 0 2 0\nq0 0 {theirs} 1\n")
        config = write_config(tmp_path, agents, ["q0"], data={"queries": "queries.csv", "qrels": "labels.qrels"})
        found = json.loads(cli("run", config, "--format", "json").out)["citations"]["people"]
    assert theirs.startswith("2~")
    assert {agent: (own["precision"], own["cited"], own["uncited"]) for agent, own in found.items()} == {
        "x": (0, 2, 0),
        "y": (1, 1, 0),
    }


def test_a_leaderboard_knows_what_came_after_the_tournament(tmp_path: Path) -> None:
    faults = {"q0": EMPTY}
    with LLMServer(answering(faults=faults)) as server:
        path = write_config(tmp_path, two_agents(server))
        from arena.run import judging
        from tests.support.tournaments import Quiet

        config = load_config(path)
        run_agents(config, Quiet())
        judging.run(config, Quiet())
        faults.clear()
        assert run_agents(config, Quiet()).complete
    store = Store.open(config.store)
    board = leaderboard(store)
    store.close()
    assert [own.missing for own in board.costs.agents] == [{"not asked": 1}, {"not asked": 1}]
    assert not board.complete


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ({"x": {"kind": "rag"}}, "data: agents search documents; say where they are with 'corpus'"),
        ({"x": {"kind": "rag", "generator": "gpt"}}, "judge 'gpt' is not declared under 'judges'"),
        ({" ": {"kind": "rag"}}, "agents"),
        ({"x": {"kind": "rug"}}, "agents.x.kind"),
    ],
)
def test_a_wrong_declaration_is_one_line(tmp_path: Path, agents: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as raised:
        load_config(write_config(tmp_path, agents))
    assert "\n" not in str(raised.value)


def test_an_agent_that_is_told_ids_answers_each_of_two_queries_of_one_text(tmp_path: Path) -> None:
    (tmp_path / "recorded.csv").write_text("qid,answer\na,First.\nb,Second.\n")
    (tmp_path / "mine.py").write_text("def ask(query): return f'Of {query.query_id}.'\n")
    agents: dict[str, Any] = {
        "recorded": {"kind": "file", "answers": "recorded.csv"},
        "mine": {"kind": "python", "function": "mine.py:ask"},
    }
    with LLMServer(lambda call: Reply(body={"answer": f"To {call.body['id']}."})) as server:
        told = {"request": {"question": "{query}", "id": "{query_id}"}, "mapping": {"answer": "answer"}}
        path = write_config(tmp_path, {**agents, "x": http_agent(url_of(server, "x"), **told)})
        (tmp_path / "queries.csv").write_text("qid,query\na,The same?\nb,The same?\n")
        ran = run_agents(load_config(path), Quiet())
    assert ran.complete
    answers = load_data(load_config(path), ran.declared).answers
    assert {key: answer.text for key, answer in answers.items()} == {
        ("a", "recorded"): "First.", ("b", "recorded"): "Second.",
        ("a", "mine"): "Of a.", ("b", "mine"): "Of b.",
        ("a", "x"): "To a.", ("b", "x"): "To b.",
    }  # fmt: skip


def test_two_queries_of_one_text_that_fail_are_both_counted_as_failed(tmp_path: Path) -> None:
    with LLMServer(lambda call: EMPTY) as server:
        path = write_config(tmp_path, {"x": http_agent(url_of(server, "x"))})
        (tmp_path / "queries.csv").write_text("qid,query\na,The same?\nb,The same?\n")
        summary = run_agents(load_config(path), Quiet()).agents["x"]
        assert len(server.calls) == 1
    assert (summary.causes, summary.left) == ({"empty": 2}, 0)


def test_documents_that_are_only_named_are_looked_up_in_the_corpus_and_never_labelled_as_blank(tmp_path: Path) -> None:
    named = Reply(body={"answer": "Because [1].", "found": [{"id": "d1"}, {"id": "d2"}]})
    (tmp_path / "corpus.csv").write_text("did,document\nd1,One.\nd2,Two.\n")
    for data, texts in (({}, []), ({"corpus": "corpus.csv"}, ["One.", "Two."])):
        with LLMServer(lambda call: named) as server:
            agents = {"x": http_agent(url_of(server, "x"))}
            path = write_config(tmp_path, agents, ["q0"], data={"queries": "queries.csv", **data})
            ran = run_agents(load_config(path), Quiet())
        loaded = load_data(load_config(path), ran.declared)
        entries = loaded.retrieved.get("q0", ())
        assert [loaded.documents[entry.doc_id].text for entry in entries] == texts
        assert json.loads(loaded.answers["q0", "x"].metadata["citations"]) == ["d1"]
