"""Embeddings: hosted, local, hashed, and kept so that none is made twice."""

from __future__ import annotations

import asyncio
import json
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from judges.errors import InputError, MissingExtraError, ProviderError
from judges.types import Query
from retrieval_eval.agents.embeddings import MINILM_PACKAGE, CachedVector, VectorCache, open_embedder
from retrieval_eval.agents.retrieval import Library, seconds_together
from retrieval_eval.agents.spec import EmbeddingsSpec
from retrieval_eval.agents.types import Meter
from tests.support.agent_fixtures import CORPUS, QUERY, answered, build, failed
from tests.support.llm_server import LLMServer, Reply, steady_judge

TEXTS = [document.text for document in CORPUS.documents]


def hosted(server: LLMServer, **settings: object) -> EmbeddingsSpec:
    given = {"provider": "openai", "model": "vec-1", "base_url": server.openai_url, "max_attempts": 1}
    return EmbeddingsSpec.model_validate({**given, **settings})


def dense(spec: EmbeddingsSpec) -> dict[str, object]:
    return {"kind": "rag", "retriever": "dense", "embeddings": spec.model_dump(exclude_unset=True)}


async def test_hosted_vectors_come_in_the_order_of_the_texts_and_are_paid_for() -> None:
    with LLMServer() as server:
        embedder = open_embedder(hosted(server, usd_per_million_tokens=20.0, dimensions=8))
        meter = Meter()
        vectors = await embedder.embed(["aab", "b"], meter)
        await embedder.close()
    assert server.calls[0].body == {
        "model": "vec-1",
        "input": ["aab", "b"],
        "encoding_format": "float",
        "dimensions": 8,
    }
    assert server.calls[0].path == "/v1/embeddings"
    assert vectors[:, 0] == pytest.approx([2.01 / np.hypot(2.01, 1.01), 0.01 / 1.01], abs=0.01)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])
    assert (meter.calls, meter.usage.input_tokens) == (1, 0)
    assert meter.cost_usd == 0.0


async def test_a_corpus_is_embedded_once_in_batches_and_never_again(tmp_path: Path) -> None:
    with LLMServer() as server:
        spec = hosted(server, batch=3, usd_per_million_tokens=1.0, query_prefix="query: ", document_prefix="text: ")
        agents = build({"a": dense(spec), "b": dense(spec)}, cache=tmp_path)
        first, second = [await answered(agent) for agent in agents.values()]
        sent = [text for call in server.calls for text in call.body["input"]]
        again = await answered(build({"a": dense(spec)}, cache=tmp_path)["a"])
        other = await answered(build({"a": dense(spec)}, cache=tmp_path)["a"], Query("q2", "Another?"))
    assert sorted(len(call.body["input"]) for call in server.calls) == [1, 1, 1, 3]
    assert sorted(sent) == sorted([*(f"text: {text}" for text in _searched()), f"query: {QUERY.text}"])
    assert first.documents == second.documents == again.documents
    # What a kept query took is counted for everybody who uses it, so that agents can be compared.
    tokens = len(f"query: {QUERY.text}") // 4
    for reply in (first, second, again):
        assert (reply.calls, reply.usage.input_tokens) == (1, tokens)
        assert reply.cost_usd == pytest.approx(tokens * 1e-6)
    assert other.calls == 1


def _searched() -> list[str]:
    titles = [document.metadata.get("title") for document in CORPUS.documents]
    return [f"{title}\n{text}" if title else text for title, text in zip(titles, TEXTS, strict=True)]


async def test_what_was_embedded_before_a_failure_is_kept(tmp_path: Path) -> None:
    replies = iter([True, False])
    spec: EmbeddingsSpec
    with LLMServer(
        lambda call: steady_judge(call) if next(replies, True) else Reply(status=500, text="busy")
    ) as server:
        spec = hosted(server, batch=2, concurrency=1)
        agents = build({"a": dense(spec)}, cache=tmp_path)
        failure = await failed(agents["a"])
        assert (failure.cause, failure.calls) == ("server_error", 0)
        reply = await answered(build({"a": dense(spec)}, cache=tmp_path)["a"])
    inputs = [tuple(call.body["input"]) for call in server.calls]
    assert inputs[1] == inputs[2]  # only what failed is asked again
    assert len(inputs) == 4
    assert reply.documents


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": [float("nan")]}]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
        {"data": "vectors"},
    ],
)
async def test_what_is_no_vector_for_each_text_is_refused(body: dict[str, object]) -> None:
    with LLMServer(lambda call: Reply(body=body)) as server:
        embedder = open_embedder(hosted(server))
        with pytest.raises(ProviderError, match="vec-1 at "):
            await embedder.embed(["text"], Meter())
        await embedder.close()


async def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Reply(status=429, text="slower", headers={"Retry-After": "0.01"})
    replies = iter([busy])
    with LLMServer(lambda call: next(replies, None) or steady_judge(call)) as server:
        embedder, meter = open_embedder(hosted(server, max_attempts=3)), Meter()
        await embedder.embed(["text"], meter)
        await embedder.close()
    assert (meter.calls, len(server.calls)) == (2, 2)


async def test_hashed_vectors_match_words_and_say_what_they_are() -> None:
    embedder = open_embedder(EmbeddingsSpec(provider="hashed"))
    same, near, far, nothing = await embedder.embed(
        ["the games", "game of chess", "kappa statistic", "of the"], Meter()
    )
    assert same @ near > 0.3
    assert abs(same @ far) < 0.1
    assert not nothing.any()
    assert "know no meaning" in embedder.note
    agent = build({"a": {"kind": "rag", "retriever": "hybrid", "embeddings": {"provider": "hashed"}}})["a"]
    assert agent.notes == (embedder.note,)


async def test_a_question_without_words_finds_nothing_by_hashed_vectors() -> None:
    retriever = Library(CORPUS).retriever("dense", EmbeddingsSpec(provider="hashed"))
    assert await retriever.retrieve(["of the"], 5, Meter()) == [[]]


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.support.tiny_models import save_tiny_encoder

    return save_tiny_encoder(tmp_path_factory.mktemp("encoder"))


async def test_a_local_model_s_vector_is_the_mean_of_its_tokens_whatever_stands_beside_it(tiny_bert: Path) -> None:
    import torch
    import transformers

    embedder = open_embedder(EmbeddingsSpec(provider="transformers", path=tiny_bert, device="cpu"))
    texts = ["short", "a much longer text than the other one", "x" * 900]
    together = await embedder.embed(texts, Meter())
    await embedder.close()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    model = transformers.AutoModel.from_pretrained(tiny_bert).eval()
    for text, vector in zip(texts, together, strict=True):
        with torch.inference_mode():
            ids = torch.tensor([tokenizer(text)["input_ids"][:64]])
            mean = model(ids).last_hidden_state[0].mean(0)
        assert vector == pytest.approx((mean / mean.norm()).numpy(), abs=1e-5)
    assert embedder.identity["weights"]


async def test_seconds_leave_out_the_wait_for_a_turn(tiny_bert: Path) -> None:
    reply = Reply(body={"data": [{"index": 0, "embedding": [1.0]}]}, delay_s=0.1)
    with LLMServer(lambda call: reply) as server:
        for spec in (
            hosted(server, concurrency=1),
            EmbeddingsSpec(provider="transformers", path=tiny_bert, device="cpu"),
        ):
            embedder = open_embedder(spec)
            await embedder.embed(["a first one"], Meter())
            meters = [Meter() for _ in range(5)]
            started = time.perf_counter()
            await asyncio.gather(*(embedder.embed(["x" * 60], meter) for meter in meters))
            wall = time.perf_counter() - started
            await embedder.close()
            assert 0 < sum(meter.latency_s for meter in meters) <= wall


async def test_the_queries_of_a_fusion_are_embedded_together_and_count_as_long_as_one_waits_for_them() -> None:
    """Five calls of 0.1 s, four at a time, are 0.2 s for whoever waits, and five calls on the account."""
    questions = [f"question {number}" for number in range(5)]
    with LLMServer(lambda call: replace(steady_judge(call), delay_s=0.1)) as server:
        retriever = Library(CORPUS).retriever("dense", hosted(server, concurrency=4))
        await retriever.retrieve(["the corpus first"], 1, Meter())
        meters = [Meter(), Meter()]
        started = time.perf_counter()
        await retriever.retrieve(questions, 3, meters[0])
        wall = time.perf_counter() - started
        await retriever.retrieve(questions, 3, meters[1])  # nothing is sent, and it counts the same
        await retriever.close()
    assert 0.2 <= meters[0].latency_s <= wall
    assert meters[1].latency_s >= 0.2
    assert meters[0].calls == 5
    assert [seconds_together([3.0, 1.0, 1.0, 2.0], lanes) for lanes in (1, 2, 3, 9)] == [7.0, 4.0, 3.0, 3.0]


async def test_a_folder_with_broken_weights_fails_with_one_line(tiny_bert: Path, tmp_path: Path) -> None:
    for file in tiny_bert.iterdir():
        (tmp_path / file.name).write_bytes(b"{}" if file.suffix == ".safetensors" else file.read_bytes())
    agent = build({"a": dense(EmbeddingsSpec(provider="transformers", path=tmp_path, device="cpu"))})["a"]
    failure = await failed(agent)
    assert failure.cause == "unknown_model"
    assert "cannot be loaded" in failure.message
    assert "\n" not in failure.message


@pytest.mark.skipif(find_spec(MINILM_PACKAGE) is None, reason="the 'dense' extra is not installed")
async def test_the_packaged_minilm_knows_meaning() -> None:
    assert open_embedder(EmbeddingsSpec()).note == ""
    embedder = open_embedder(EmbeddingsSpec(provider="minilm"))
    car, automobile, banana = await embedder.embed(
        ["He drives a car.", "She steered the automobile.", "A ripe banana."], Meter()
    )
    await embedder.close()
    assert car @ automobile > car @ banana + 0.2
    assert embedder.identity["model"] == "all-MiniLM-L6-v2"


def test_without_the_extra_minilm_says_what_to_install_and_auto_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval_eval.agents.embeddings.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"extra 'dense', which is not installed: .* install .*minilm"):
        open_embedder(EmbeddingsSpec(provider="minilm"))
    assert "stand in" in open_embedder(EmbeddingsSpec()).note


def test_a_cache_passes_over_what_a_crash_cut_short(tmp_path: Path) -> None:
    identity = {"model": "m"}
    cache = VectorCache(tmp_path, identity)
    cache.keep({"a": CachedVector(np.array([1.0, 2.0], dtype=np.float32))})
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    cache = VectorCache(tmp_path, identity)
    cache.keep({"b": CachedVector(np.array([3.0], dtype=np.float32), {"calls": 1})})
    again = VectorCache(tmp_path, identity)
    assert (kept := again.find("a")) is not None
    assert kept.vector.tolist() == [1.0, 2.0]
    assert (kept := again.find("b")) is not None
    assert (kept.vector.tolist(), kept.took) == ([3.0], {"calls": 1})
    assert VectorCache(tmp_path, {"model": "n"}).find("a") is None
    assert all(json.loads(line) for line in whole.splitlines() if line)


def test_a_cache_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="jsonl: cannot be written: "):
        VectorCache(tmp_path / "file", {}).keep({"a": CachedVector(np.zeros(1, dtype=np.float32))})
