"""Make the demo's three CSV files from the handbook and the questions: ``python -m docs.make_demo``.

Everything is computed here and now by the reference agents; nothing in the files is written by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from arena import demo
from judges.errors import DataError, InputError
from judges.types import Document, Query
from retrieval_eval.agents.rag import ExtractiveGenerator, RagAgent, WrittenAnswer, offline, rewritten_offline
from retrieval_eval.agents.ranking import (
    Bm25Index,
    Hit,
    InverseDocumentFrequency,
    best_first,
    searched_text,
    terms,
    top,
)
from retrieval_eval.agents.retrieval import Hybrid, Offline, Retriever
from retrieval_eval.agents.types import AgentReply
from retrieval_eval.documents.passages import PassagesSection, passages_of, sentences
from retrieval_eval.documents.text import read_markdown
from retrieval_eval.documents.types import SourceDocument

DEMO = Path(demo.__file__).parent
HANDBOOK = DEMO / "handbook"
INDEX_PAGE = "README.md"
DEPTH, PASSAGES, FURTHER_QUERIES = 3, 2, 3
"""Passages that an agent finds, of these what it answers from, and searches of RAG-Fusion besides the question's."""


LEAST: Final = 0.3
"""Least share of a question's words, weighted by rarity, that the passages must have for an agent to answer."""
DECLINED: Final = "The handbook does not say."


class Question(Struct, frozen=True):
    """A demo question.

    Attributes:
        query: what the agents are asked.
        topic: data, judging or scores.
        kind: factual, how-to, comparison or unanswerable.
        chapters: the handbook pages that hold the answer; none for an unanswerable question.
    """

    query: Query
    topic: str
    kind: str
    chapters: tuple[str, ...]


def read_questions(path: Path = DEMO / "questions.csv") -> list[Question]:
    """The questions in the order of the file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Question(Query(row["qid"], row["query"]), row["topic"], row["kind"], tuple(row["chapters"].split()))
            for row in csv.DictReader(file)
        ]


def demo_agents(passages: Sequence[Document]) -> list[RagAgent]:
    """The grid of Rackauckas et al. (2024), RAG and RAG-Fusion over BM25, dense and hybrid retrieval; a weak baseline.

    No model is asked. Latent semantic analysis stands in for embeddings, words of the first passages found for the
    further queries that a model would write, and three sentences of the two best passages for a written answer. An
    agent declines if these passages have too few of the question's words. The baseline says the first sentences of the
    passage that shares the most words with the question.
    """
    words, idf = Bm25Index(passages), InverseDocumentFrequency(passages)
    bm25, dense = Offline(words.find), Offline(LatentIndex(passages, idf).find)
    retrievers: dict[str, Retriever] = {"bm25": bm25, "dense": dense, "hybrid": Hybrid((bm25, dense))}
    rewriters = {"rag": None, "fusion": rewritten_offline(words, FURTHER_QUERIES)}
    extractive = offline(partial(answer_or_decline, idf))
    grid = [
        RagAgent(f"{kind}-{name}", retriever, extractive, DEPTH, PASSAGES, rewrite)
        for kind, rewrite in rewriters.items()
        for name, retriever in retrievers.items()
    ]
    weak = RagAgent("weak-baseline", Offline(partial(find_by_overlap, passages)), offline(lead), 1, 1)
    return [*grid, weak]


def answer_or_decline(idf: InverseDocumentFrequency, question: str, passages: Sequence[Document]) -> WrittenAnswer:
    """Answer by sentences of the passages; decline if they have less than ``LEAST`` of the question."""
    wanted, held = set(terms(question)), {term for passage in passages for term in terms(searched_text(passage))}
    if idf.total(wanted & held) < LEAST * idf.total(wanted):
        return WrittenAnswer(DECLINED)
    return ExtractiveGenerator(idf, max_sentences=3).generate(question, passages)


def find_by_overlap(documents: Sequence[Document], question: str, depth: int) -> list[Hit]:
    """A weak but honest baseline: documents by the number of distinct terms that they share with the question."""
    wanted = set(terms(question))
    shared = ((document, len(wanted.intersection(terms(searched_text(document))))) for document in documents)
    return best_first([Hit(document, float(count)) for document, count in shared if count], depth)


def lead(_question: str, passages: Sequence[Document], *, most: int = 2) -> WrittenAnswer:
    """The first sentences of the best passage, whatever was asked: a baseline known from summarisation."""
    return WrittenAnswer(" ".join(sentences(passages[0].text)[:most]), (1,)) if passages else WrittenAnswer("")


class LatentIndex:
    """Passages as short vectors, by latent semantic analysis (Deerwester et al. 1990, section 4).

    Words that occur together share dimensions, so a passage can be found that has none of the question's words.
    """

    def __init__(self, passages: Sequence[Document], idf: InverseDocumentFrequency, dimensions: int = 20) -> None:
        texts = [terms(searched_text(passage)) for passage in passages]
        self._passages, self._idf = passages, idf
        self._places = {term: place for place, term in enumerate(sorted({term for text in texts for term in text}))}
        rows = np.stack([self._weights(text) for text in texts])
        self._axes = np.linalg.svd(rows, full_matrices=False).Vh[:dimensions].T
        vectors = rows @ self._axes
        self._vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def find(self, question: str, depth: int) -> list[Hit]:
        """At most ``depth`` passages, nearest in angle first."""
        return top(self._passages, self._vectors @ (self._weights(terms(question)) @ self._axes), depth)

    def _weights(self, text: Sequence[str]) -> NDArray[np.float64]:
        """Of each term 1 + ln(occurrences), times how rare it is; of length 1."""
        weights = np.zeros(len(self._places))
        for term in set(text) & self._places.keys():
            weights[self._places[term]] = (1 + math.log(text.count(term))) * self._idf(term)
        return weights / (np.linalg.norm(weights) or 1.0)


def read_folder(folder: Path, *, exclude: Collection[str] = ()) -> list[Document]:
    """The passages of all Markdown files below a folder, in the order of their paths.

    Args:
        folder: where to look, at any depth.
        exclude: file names to leave out, such as an index that only repeats titles.

    Raises:
        DataError: there is no passage, or a file is not UTF-8 text.
    """
    paths = sorted(
        (path for path in folder.rglob("*.md") if path.name not in exclude),
        key=lambda path: path.relative_to(folder).as_posix(),
    )
    passages = [passage for path in paths for passage in _file_passages(path, folder)]
    if not passages:
        raise DataError(folder, "holds no Markdown file with text; name a folder of .md files")
    return passages


def _file_passages(path: Path, folder: Path) -> list[Document]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(path, f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    return markdown_passages(text, path.relative_to(folder).with_suffix("").as_posix())


def markdown_passages(text: str, source: str) -> list[Document]:
    """One passage per paragraph, list, table or code block, each with its title; ``source`` names the page."""
    read = read_markdown(text)
    document = SourceDocument(source, read.title or source, read.parts)
    passages = passages_of(document, PassagesSection(by="paragraph"))
    return [Document(passage.doc_id, passage.text, {"title": passage.metadata["title"]}) for passage in passages]


def build(folder: Path, *, handbook: Path = HANDBOOK, questions: Path = DEMO / "questions.csv") -> None:
    """Write queries.csv, documents.csv and answers.csv.

    Args:
        folder: where the files go; it must exist.
        handbook: the Markdown pages to search.
        questions: the questions to ask.

    Raises:
        DataError: the folder holds no such pages.
    """
    passages = read_folder(handbook, exclude={INDEX_PAGE})
    asked = read_questions(questions)
    replies = asyncio.run(_replies([question.query for question in asked], demo_agents(passages)))
    _write(
        folder / "queries.csv",
        ("qid", "query", "topic", "kind", "answerable"),
        (
            (
                question.query.query_id,
                question.query.text,
                question.topic,
                question.kind,
                str(bool(question.chapters)).lower(),
            )
            for question in asked
        ),
    )
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
    parser = argparse.ArgumentParser(prog="python -m docs.make_demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=DEMO, help="folder for the three files (default: %(default)s)")
    build(parser.parse_args().out)


if __name__ == "__main__":
    main()
