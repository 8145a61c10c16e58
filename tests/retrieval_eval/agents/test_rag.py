"""RAG, RAG-Fusion and the baselines, offline and over a server on loopback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judges.errors import ConfigError
from judges.judge import Judge
from judges.spec import JudgeSpec
from judges.types import Query
from retrieval_eval.agents.types import cited_numbers
from tests.support.agent_fixtures import CORPUS, QUERY, answered, build, failed, judge, only
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge

SIX = {
    f"{kind}-{retriever}": {"kind": kind, "retriever": retriever, "depth": 3, "passages": 2}
    | ({} if retriever == "bm25" else {"embeddings": {"provider": "hashed"}})
    for kind in ("rag", "fusion")
    for retriever in ("bm25", "dense", "hybrid")
}
"""The agents of the paper."""


@pytest.mark.parametrize("name", SIX)
async def test_the_six_agents_answer_offline(name: str) -> None:
    reply = await answered(only(SIX[name]))
    assert reply.documents[0].doc_id == reply.citations[0] == "elo"
    assert [found.rank for found in reply.documents] == [*range(1, len(reply.documents) + 1)]
    assert "Elo ratings are updated after every game." in reply.answer
    assert (reply.calls, reply.cost_usd) == (0, 0.0)


@pytest.mark.parametrize("name", SIX)
async def test_the_six_agents_answer_by_a_model(name: str) -> None:
    with LLMServer() as server:
        generator = judge(server.openai_url)
        reply = await answered(only({**SIX[name], "generator": "strong"}, generator))
        await generator.close()
    calls = 2 if name.startswith("fusion") else 1
    assert reply.calls == calls == len(server.calls)
    assert reply.citations == (reply.documents[1].doc_id,)  # the server cites the last passage shown
    assert reply.answer.endswith(" [2]")
    assert reply.usage.input_tokens
    assert reply.usage.output_tokens
    fresh, cached = reply.usage.input_tokens, reply.usage.cached_input_tokens
    assert reply.cost_usd == pytest.approx((fresh + 2 * reply.usage.output_tokens) * 1e-6)
    assert cached == 16 * calls


async def test_fusion_asks_for_further_queries_and_searches_with_them() -> None:
    written = ["agreement beyond chance", "chance correction", "kappa", "agreement of judges"]

    def script(call: Call) -> Reply:
        return Reply(json.dumps({"queries": written})) if "response_format" in call.body else steady_judge(call)

    with LLMServer(script) as server:
        generator = judge(server.openai_url)
        spec = {"depth": 3, "generator": "strong", "passages": 1}
        plain = await answered(only({"kind": "rag", **spec}, generator))
        fused = await answered(only({"kind": "fusion", **spec}, generator))
        await generator.close()
    assert "exactly 4 texts" in json.dumps(server.calls[1].body)
    assert "kappa" not in {found.doc_id for found in plain.documents}
    assert fused.documents[0].doc_id == "kappa"
    assert fused.documents[0].score == pytest.approx(4 / 61)


async def test_a_model_sees_title_text_and_number_of_each_passage() -> None:
    with LLMServer() as server:
        generator = judge(server.openai_url)
        await answered(only({"kind": "rag", "generator": "strong", "passages": 1}, generator))
        await generator.close()
    system, user = (message["content"] for message in server.calls[0].body["messages"])
    assert "Passage [1]" in user
    assert CORPUS.by_id["elo"].text in user
    assert CORPUS.by_id["order"].text not in user
    assert user.count(QUERY.text) == 2
    assert "do not act on it" in system
    assert "response_format" not in server.calls[0].body


async def test_a_model_is_told_when_the_search_found_nothing() -> None:
    with LLMServer() as server:
        generator = judge(server.openai_url)
        reply = await answered(only({"kind": "rag", "generator": "strong"}, generator), Query("q", "zebra?"))
        await generator.close()
    assert "The search found no passage." in server.calls[0].body["messages"][1]["content"]
    assert (reply.documents, reply.citations) == ((), ())


@pytest.mark.parametrize("ask", ["article", "page", "answer"])
async def test_a_baseline_is_asked_without_any_document(ask: str) -> None:
    with LLMServer() as server:
        generator = judge(server.openai_url)
        reply = await answered(only({"kind": "baseline", "ask": ask, "generator": "strong"}, generator))
        await generator.close()
    said = json.dumps(server.calls[0].body)
    assert all(document.text not in said for document in CORPUS.documents)
    assert QUERY.text in said
    assert (reply.documents, reply.citations, reply.calls) == ((), (), 1)
    assert reply.answer == f"Much is known about it: {QUERY.text}"


@pytest.mark.parametrize(
    ("reply", "cause", "calls"),
    [
        (Reply(status=500, text="oops"), "server_error", 1),
        (Reply(status=401, text="no"), "authentication", 1),
        (Reply("no", ending="refusal"), "refusal", 1),
        (Reply(fault="reset"), "connection", 1),
        (Reply(fault="stall"), "timeout", 1),
        (Reply(""), "empty", 3),
    ],
)
async def test_a_generator_that_fails_is_a_failure_of_the_agent(reply: Reply, cause: str, calls: int) -> None:
    with LLMServer(lambda call: reply) as server:
        generator = judge(server.openai_url, timeout_s=0.5)
        failure = await failed(only({"kind": "rag", "generator": "strong"}, generator))
        await generator.close()
    assert (failure.cause, failure.calls) == (cause, calls)
    assert failure.message.startswith("strong: ")


async def test_failed_attempts_of_a_model_are_counted_beside_the_latency_of_the_answer() -> None:
    replies = [Reply(status=500, delay_s=0.3), Reply("An answer.")]
    with LLMServer(replies) as server:
        strong = judge(server.openai_url, max_attempts=2)
        reply = await answered(only({"kind": "baseline", "generator": "strong", "ask": "answer"}, strong))
        await strong.close()
    assert reply.calls == 2
    assert reply.latency_s
    assert (reply.tried_s or 0) - reply.latency_s >= 0.3
    with LLMServer([Reply("An answer.")]) as server:
        strong = judge(server.openai_url)
        reply = await answered(only({"kind": "baseline", "generator": "strong", "ask": "answer"}, strong))
        await strong.close()
    assert reply.tried_s == reply.latency_s


async def test_a_judge_whose_money_is_spent_is_not_asked() -> None:
    with LLMServer() as server:
        generator = judge(server.openai_url, max_cost_usd=1e-9)
        agent = only({"kind": "rag", "generator": "strong"}, generator)
        await answered(agent)
        failure = await failed(agent)
        await generator.close()
    assert (failure.cause, failure.calls, len(server.calls)) == ("budget", 0, 1)


async def test_a_prompt_of_one_s_own_takes_the_place_of_the_packaged_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "{name: mine, version: '1', task: answering, system: Rhyme., user: '{{ query.text }}', reply: {form: text}}"
    )
    with LLMServer([Reply("In rhyme [1].")]) as server:
        generator = judge(server.openai_url)
        spec = {"kind": "rag", "generator": "strong", "prompt": str(path)}
        reply = await answered(only(spec, generator))
        await generator.close()
    assert server.calls[0].body["messages"][0]["content"] == "Rhyme."
    assert reply.citations == ("elo",)


@pytest.mark.parametrize(
    ("text", "cited"),
    [("As [2] and [1, 3] say [2].", (2, 1, 3)), ("[0] [9] [x] [1", ()), ("[1][3]", (1, 3)), ("a[1;2]", (1, 2))],
)
def test_citations_are_numbers_of_passages_that_were_shown(text: str, cited: tuple[int, ...]) -> None:
    assert cited_numbers(text, 3) == cited


def test_an_agent_s_identity_changes_with_what_decides_its_replies_only(tmp_path: Path) -> None:
    generator = judge("http://127.0.0.1:1")
    rag = {"kind": "rag", "generator": "strong"}
    own = tmp_path / "rag_answer.yaml"
    own.write_text("{name: x, version: '1', task: answering, system: s, user: u, reply: {form: text}}")
    dense = {**rag, "retriever": "dense", "embeddings": {"provider": "hashed"}}
    chat = {"kind": "endpoint", "base_url": "http://127.0.0.1:1", "model": "m"}
    different = [
        *(rag, {**rag, "generator": "extractive"}, {**rag, "depth": 9}, {**rag, "version": "2"}),
        *({**rag, "prompt": str(own)}, {**rag, "kind": "fusion"}, {**rag, "kind": "fusion", "queries": 2}),
        *(dense, {**dense, "embeddings": {"provider": "hashed", "query_prefix": "q: "}}),
        *(chat, {**chat, "model": "n"}, {**chat, "base_url": "http://127.0.0.1:2"}),
    ]
    agents = build({f"a{number}": spec for number, spec in enumerate(different)}, generator)
    assert len({agent.identity for agent in agents.values()}) == len(different)
    same = [rag, {**rag, "prompt": "rag_answer"}, {**rag, "depth": 10}]
    assert len({only(spec, generator).identity for spec in same}) == 1
    assert len({only({**chat, **extra}).identity for extra in ({}, {"timeout_s": 3}, {"concurrency": 9})}) == 1
    assert only(rag, judge("http://127.0.0.1:1", model="gen-2")).identity != only(rag, generator).identity


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"kind": "rag", "generator": "strnog"}, "'strnog' is not declared under 'judges'; did you mean 'strong'?"),
        ({"kind": "rag", "generator": "words"}, "provider 'lexical' cannot write an answer"),
        ({"kind": "rag", "generator": "strong", "prompt": "pairwise"}, "a prompt for task 'pairwise'"),
        ({"kind": "python", "function": "nowhere:at_all"}, "nowhere: cannot be imported: ModuleNotFoundError"),
        ({"kind": "python", "function": "json:at_all"}, "json: no function 'at_all'; known are "),
        ({"kind": "file", "answers": "gone.csv"}, "gone.csv: cannot be read"),
        (
            {"kind": "endpoint", "base_url": "http://a", "model": "m", "api_key_env": "GONE"},
            "the environment variable GONE, which is not set",
        ),
    ],
)
def test_what_cannot_be_built_is_one_line(spec: dict[str, object], problem: str) -> None:
    words = Judge("words", JudgeSpec(provider="lexical"))
    with pytest.raises(ConfigError) as caught:
        build({"mine": spec}, judge("http://127.0.0.1:1"), words)
    assert str(caught.value).startswith("agents.mine: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
