"""Make the demo's three CSV files from the handbook and the questions: ``python -m arena.demo.build``.

Everything is computed here and now by the reference agents; nothing in the files is written by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from judges.errors import InputError
from judges.types import Document, Query
from retrieval_eval.agents.bm25 import Bm25Index, Bm25Retriever
from retrieval_eval.agents.expansion import FeedbackRetriever
from retrieval_eval.agents.extractive import ExtractiveGenerator, LeadGenerator
from retrieval_eval.agents.generation import OfflineGenerator
from retrieval_eval.agents.overlap import OverlapRetriever
from retrieval_eval.agents.passages import read_folder
from retrieval_eval.agents.rag import RagAgent
from retrieval_eval.agents.ranking import Offline
from retrieval_eval.agents.text import InverseDocumentFrequency
from retrieval_eval.agents.types import AgentReply

DEMO = Path(__file__).parent
HANDBOOK = DEMO.parents[1] / "docs" / "handbook"
INDEX_PAGE = "README.md"


@dataclass(frozen=True, slots=True)
class Question:
    """A demo question.

    Attributes:
        query: what the agents are asked.
        kind: factual, how-to, comparison or unanswerable.
        chapters: the handbook pages that hold the answer; none for an unanswerable question.
    """

    query: Query
    kind: str
    chapters: tuple[str, ...]


def read_questions(path: Path = DEMO / "questions.csv") -> list[Question]:
    """The questions in the order of the file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Question(Query(row["qid"], row["query"]), row["kind"], tuple(row["chapters"].split()))
            for row in csv.DictReader(file)
        ]


def demo_agents(passages: Sequence[Document]) -> list[RagAgent]:
    """BM25 with one or three passages, each with and without feedback, and a weak baseline."""
    index, idf = Bm25Index(passages), InverseDocumentFrequency(passages)
    plain, feedback = Offline(Bm25Retriever(index)), Offline(FeedbackRetriever(index))
    extractive, lead = OfflineGenerator(ExtractiveGenerator(idf, max_sentences=3)), OfflineGenerator(LeadGenerator())
    return [
        RagAgent("bm25-1", plain, extractive, depth=1, passages=1),
        RagAgent("bm25-3", plain, extractive, depth=3, passages=3),
        RagAgent("bm25-1-prf", feedback, extractive, depth=1, passages=1),
        RagAgent("bm25-3-prf", feedback, extractive, depth=3, passages=3),
        RagAgent("overlap-lead", Offline(OverlapRetriever(passages)), lead, depth=1, passages=1),
    ]


def build(folder: Path, *, handbook: Path = HANDBOOK, questions: Path = DEMO / "questions.csv") -> None:
    """Write queries.csv, documents.csv and answers.csv.

    Args:
        folder: where the files go; it must exist.
        handbook: the Markdown pages to search.
        questions: the questions to ask.

    Raises:
        DataError: the handbook is not there, as in an installed package without the documentation.
    """
    passages = read_folder(handbook, exclude={INDEX_PAGE})
    queries = [question.query for question in read_questions(questions)]
    replies = asyncio.run(_replies(queries, demo_agents(passages)))
    _write(folder / "queries.csv", ("qid", "query"), ((query.query_id, query.text) for query in queries))
    _write(
        folder / "documents.csv",
        ("qid", "did", "document", "agent", "rank", "score", "title"),
        (row for query, agent, reply in replies for row in _document_rows(query, agent, reply)),
    )
    _write(
        folder / "answers.csv",
        ("qid", "agent", "answer"),
        ((query.query_id, agent, reply.answer) for query, agent, reply in replies),
    )


async def _replies(queries: Sequence[Query], agents: Sequence[RagAgent]) -> list[tuple[Query, str, AgentReply]]:
    replies = []
    for query in queries:
        for agent in agents:
            reply = await agent.reply(query)
            if not isinstance(reply, AgentReply):
                raise InputError(f"{agent.name} does not answer {query.query_id!r}: {reply.message}")
            replies.append((query, agent.name, reply))
    return replies


def _document_rows(query: Query, agent: str, reply: AgentReply) -> Iterable[tuple[str, ...]]:
    for found in reply.documents:
        title, score = found.metadata["title"], f"{found.score:.4f}"
        yield query.query_id, found.doc_id, found.text, agent, str(found.rank), score, title


def _write(path: Path, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main() -> None:
    """Rebuild the packaged files, or write them elsewhere."""
    parser = argparse.ArgumentParser(prog="python -m arena.demo.build", description=__doc__)
    parser.add_argument("--out", type=Path, default=DEMO, help="folder for the three files (default: %(default)s)")
    build(parser.parse_args().out)


if __name__ == "__main__":
    main()
