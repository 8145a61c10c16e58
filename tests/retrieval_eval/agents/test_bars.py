"""The retrievers on Cranfield by our own measures, and reciprocal rank fusion against ten lines of arithmetic."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.types import Document, Query
from retrieval_eval.agents.ranking import Corpus, Hit, reciprocal_rank_fusion
from retrieval_eval.agents.retrieval import Library, RetrieverName, retrieve_run
from retrieval_eval.agents.spec import EmbeddingsSpec
from retrieval_eval.agents.types import Meter
from retrieval_eval.data.collections import read_corpus
from retrieval_eval.data.trec import read_qrels
from retrieval_eval.metrics import evaluate

HASHED = EmbeddingsSpec(provider="hashed")


@pytest.fixture(scope="module")
def cranfield(shared: Path) -> tuple[Library, list[Query], Path]:
    folder = shared / "data" / "cranfield"
    lines = [line.split("\t") for line in (folder / "queries.tsv").read_text(encoding="utf-8").splitlines()]
    queries = [Query(query_id, text) for query_id, _, text in lines]
    return Library(Corpus.of(read_corpus([folder / "documents.jsonl"]))), queries, folder / "qrels.txt"


@pytest.mark.parametrize(("name", "ndcg", "mrr"), [("bm25", 0.37, 0.52), ("dense", 0.33, 0.50), ("hybrid", 0.36, 0.51)])
async def test_retrievers_are_as_good_as_they_were_on_cranfield(
    cranfield: tuple[Library, list[Query], Path], name: RetrieverName, ndcg: float, mrr: float
) -> None:
    library, queries, qrels = cranfield
    run = await retrieve_run(library.retriever(name, HASHED), queries, 100, name)
    metrics = evaluate(read_qrels(qrels).labels, {name: run.scores()}, ["nDCG@10", "RR@5"])
    assert metrics.value(name, "nDCG@10") == pytest.approx(ndcg, abs=0.011)
    assert metrics.value(name, "RR@5") == pytest.approx(mrr, abs=0.011)


async def test_hybrid_is_the_fusion_of_both_rankings(cranfield: tuple[Library, list[Query], Path]) -> None:
    library, queries, _ = cranfield
    texts = [query.text for query in queries[:20]]
    rankings = [
        await library.retriever(name, HASHED).retrieve(texts, 100, Meter()) for name in ("bm25", "dense", "hybrid")
    ]
    for words, vectors, merged in zip(*rankings, strict=True):
        expected = by_hand([ids(words), ids(vectors)], 60)
        assert {hit.document.doc_id: hit.score for hit in merged} == pytest.approx(
            {doc_id: expected[doc_id] for doc_id in ids(merged)}
        )
        assert min(hit.score for hit in merged) == pytest.approx(sorted(expected.values(), reverse=True)[99])


def ids(hits: list[Hit]) -> list[str]:
    return [hit.document.doc_id for hit in hits]


def by_hand(rankings: list[list[str]], k: int) -> dict[str, float]:
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for place, doc_id in enumerate(ranking):
            scores[doc_id] += 1 / (k + place + 1)
    return scores


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=5),
    st.integers(1, 100),
)
def test_fusion_is_the_sum_of_reciprocal_ranks_best_first(rankings: list[list[str]], k: int) -> None:
    hits = [[Hit(Document(doc_id, ""), -float(place)) for place, doc_id in enumerate(ranking)] for ranking in rankings]
    merged = reciprocal_rank_fusion(hits, k)
    assert {hit.document.doc_id: hit.score for hit in merged} == pytest.approx(by_hand(rankings, k))
    assert merged == sorted(merged, key=lambda hit: (-hit.score, hit.document.doc_id))
    assert reciprocal_rank_fusion(hits[::-1], k) == merged
