"""Make the demo's three CSV files from the handbook and the questions: ``python -m arena.demo.build``.

Everything is computed here and now by the reference agents; nothing in the files is written by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from judges.errors import DataError, InputError
from judges.types import Document, Query
from retrieval_eval.agents.rag import ExtractiveGenerator, RagAgent, lead, offline
from retrieval_eval.agents.ranking import Bm25Index, InverseDocumentFrequency, find_by_overlap
from retrieval_eval.agents.retrieval import Offline
from retrieval_eval.agents.types import AgentReply
from retrieval_eval.documents.passages import PassagesSection, passages_of
from retrieval_eval.documents.text import read_markdown
from retrieval_eval.documents.types import SourceDocument

DEMO = Path(__file__).parent
HANDBOOK = DEMO / "handbook"
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
    plain, feedback = Offline(index.find), Offline(index.find_with_feedback)
    extractive = offline(ExtractiveGenerator(idf, max_sentences=3).generate)
    return [
        RagAgent("bm25-1", plain, extractive, depth=1, passages=1),
        RagAgent("bm25-3", plain, extractive, depth=3, passages=3),
        RagAgent("bm25-1-prf", feedback, extractive, depth=1, passages=1),
        RagAgent("bm25-3-prf", feedback, extractive, depth=3, passages=3),
        RagAgent("overlap-lead", Offline(partial(find_by_overlap, passages)), offline(lead), depth=1, passages=1),
    ]


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
