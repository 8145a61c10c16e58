"""BM25, feedback and overlap retrieval, by hand and on the Cranfield collection."""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from judges.errors import InputError
from judges.types import Document, Query
from retrieval_eval.agents.rag import RagAgent, lead, offline
from retrieval_eval.agents.ranking import Bm25Index, Corpus, Hit, find_by_overlap, query_weights, rm3
from retrieval_eval.agents.retrieval import Offline
from retrieval_eval.agents.types import AgentFailure, AgentReply

TEXTS = {"a": "elo elo rating", "b": "rating order order order", "c": "nugget"}
DOCUMENTS = [Document(doc_id, text) for doc_id, text in TEXTS.items()]


def test_scores_follow_the_formula() -> None:
    (hit,) = Bm25Index(DOCUMENTS).search(query_weights("Elo"), 5)
    frequency, length, mean_length, k1, b = 2, 3, 8 / 3, 1.2, 0.75
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * frequency / (frequency + k1 * (1 - b + b * length / mean_length))
    assert hit.document.doc_id == "a"
    assert hit.score == pytest.approx(expected, abs=1e-6)


def test_term_weights_scale_and_add_up() -> None:
    index = Bm25Index(DOCUMENTS)
    elo, rating = (index.search({term: 1.0}, 1)[0].score for term in ("elo", "rate"))
    mixed = {hit.document.doc_id: hit.score for hit in index.search({"elo": 2.0, "rate": 0.5}, 3)}
    assert elo == pytest.approx(mixed["a"] / 2 - 0.5 * rating / 2, abs=1e-5)


def test_documents_without_a_query_term_are_not_found() -> None:
    index = Bm25Index(DOCUMENTS)
    assert [hit.document.doc_id for hit in index.find("rating", 9)] == ["a", "b"]
    assert index.find("of the unseen", 9) == []
    assert index.expanded("of the unseen", 9) == []


@pytest.mark.parametrize("order", [("x", "y", "z"), ("z", "y", "x")])
def test_equal_scores_are_ranked_by_id(order: tuple[str, ...]) -> None:
    documents = [Document(doc_id, "same words") for doc_id in order]
    for find in (Bm25Index(documents).find, partial(find_by_overlap, documents)):
        assert [hit.document.doc_id for hit in find("words", 2)] == ["x", "y"]


def test_titles_are_searched() -> None:
    documents = [*DOCUMENTS, Document("d", "nothing here", {"title": "Kappa"})]
    assert Bm25Index(documents).find("kappa", 1)[0].document.doc_id == "d"


@pytest.mark.parametrize("documents", [[], [Document("a", "the of"), Document("b", "")]])
def test_an_index_without_words_is_refused(documents: list[Document]) -> None:
    with pytest.raises(InputError, match="no text to search"):
        Bm25Index(documents)


def test_a_corpus_refuses_one_id_twice() -> None:
    with pytest.raises(InputError, match="two documents have the id 'a'"):
        Corpus.of([Document("a", "one"), Document("a", "two")])


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    Bm25Index(DOCUMENTS).find("elo rating", 2)
    assert capfd.readouterr() == ("", "")


def test_rm3_mixes_the_query_with_the_words_of_the_passages() -> None:
    feedback = [Hit(Document("1", "elo order"), 3.0), Hit(Document("2", "elo elo elo nugget"), 1.0)]
    # P(elo) = 3/4 * 1/2 + 1/4 * 3/4 = 9/16, P(order) = 6/16; nugget (1/16) is cut, so they become 3/5 and 2/5.
    weights = rm3({"elo": 1.0, "kappa": 1.0}, feedback, expansion_terms=2, original=0.5)
    assert weights == pytest.approx({"elo": 0.25 + 0.3, "kappa": 0.25, "order": 0.2})


def test_rm3_without_feedback_is_the_normalised_query() -> None:
    assert rm3({"elo": 3.0, "kappa": 1.0}, []) == {"elo": 0.75, "kappa": 0.25}


def test_overlap_counts_each_shared_term_once() -> None:
    hits = find_by_overlap(DOCUMENTS, "Which order do elo ratings and elo have?", 3)
    assert [(hit.document.doc_id, hit.score) for hit in hits] == [("a", 2.0), ("b", 2.0)]


async def test_an_agent_reports_what_it_retrieved_and_answered() -> None:
    retriever, generator = Offline(Bm25Index(DOCUMENTS).find), offline(lead)
    reply = await RagAgent("bm25-2", retriever, generator, depth=2, passages=1).reply(Query("q1", "elo rating"))
    assert isinstance(reply, AgentReply)
    assert (reply.answer, reply.citations) == (TEXTS["a"], ("a",))
    assert [(found.doc_id, found.rank, found.text) for found in reply.documents] == [
        ("a", 1, TEXTS["a"]),
        ("b", 2, TEXTS["b"]),
    ]
    scores = [found.score or 0 for found in reply.documents]
    assert scores[0] > scores[1] > 0
    assert (reply.calls, reply.cost_usd) == (0, 0.0)
    assert reply.latency_s is not None
    assert reply.latency_s > 0


async def test_an_agent_that_finds_nothing_gives_no_answer() -> None:
    agent = RagAgent("x", Offline(partial(find_by_overlap, DOCUMENTS)), offline(lead), depth=1, passages=1)
    reply = await agent.reply(Query("q1", "unseen"))
    assert isinstance(reply, AgentFailure)
    assert reply.cause == "empty"


@dataclass(frozen=True)
class Cranfield:
    """The collection: its folder, and an index of its documents."""

    folder: Path
    index: Bm25Index


@pytest.fixture(scope="module")
def cranfield(shared: Path) -> Cranfield:
    folder = shared / "data" / "cranfield"
    with (folder / "documents.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return Cranfield(folder, Bm25Index([Document(row["docid"], row["text"], {"title": row["title"]}) for row in rows]))


def test_feedback_finds_more_on_cranfield(cranfield: Cranfield) -> None:
    def find_with_feedback(question: str, depth: int) -> list[Hit]:
        weights = query_weights(question)
        return cranfield.index.search(rm3(weights, cranfield.index.search(weights, 3)), depth)

    plain, feedback = (
        _mean_average_precision(cranfield, _run(cranfield, find)) for find in (cranfield.index.find, find_with_feedback)
    )
    assert feedback > plain + 0.02


def _run(cranfield: Cranfield, find: Callable[[str, int], list[Hit]]) -> dict[str, list[str]]:
    with (cranfield.folder / "queries.tsv").open(encoding="utf-8", newline="") as file:
        queries = [(row[0], row[2]) for row in csv.reader(file, delimiter="\t")]
    return {query_id: [hit.document.doc_id for hit in find(text, 100)] for query_id, text in queries}


def _mean_average_precision(cranfield: Cranfield, run: dict[str, list[str]]) -> float:
    relevant: defaultdict[str, set[str]] = defaultdict(set)
    for line in (cranfield.folder / "qrels.txt").read_text().splitlines():
        query_id, _, doc_id, label = line.split()
        if int(label) > 0:
            relevant[query_id].add(doc_id)
    total = 0.0
    for query_id, wanted in relevant.items():
        found = [rank for rank, doc_id in enumerate(run.get(query_id, []), start=1) if doc_id in wanted]
        total += sum(count / rank for count, rank in enumerate(found, start=1)) / len(wanted)
    return total / len(relevant)
