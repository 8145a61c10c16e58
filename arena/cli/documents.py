"""Commands ``documents``, to cut files into passages, and ``retrieve``, to search a corpus with every query."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from msgspec.structs import asdict
from pydantic import ValidationError

from arena.cli.console import INCOMPLETE, errors, say, tell
from arena.cli.options import JsonForm, Set, read_set
from arena.cli.show import print_unread
from arena.data.corpus import CorpusReading, read_passages
from arena.present.numbers import counted
from judges.errors import InputError
from judges.sections import Count, Section, describe
from judges.types import Document
from retrieval_eval.agents.ranking import Corpus
from retrieval_eval.agents.retrieval import Library, retrieve_run
from retrieval_eval.agents.spec import EmbeddingsSpec
from retrieval_eval.data.collections import read_corpus, read_topics
from retrieval_eval.data.rows import Cell
from retrieval_eval.data.runs import write_run
from retrieval_eval.data.tables import write_rows
from retrieval_eval.documents.passages import PassagesSection
from retrieval_eval.documents.types import Limits

_SHOWN = 10
"""Maximum number of near-duplicates in the text output; JSON lists all of them."""
_COLUMNS = ("did", "title", "source", "page", "document")


def documents(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="folders and files to read: PDF, HTML, Markdown, DOCX, text")
    ],
    by: Annotated[
        Literal["paragraph", "tokens", "sentences", "pages"],
        typer.Option(help="unit by which documents are cut into passages"),
    ] = "paragraph",
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="maximum size of a passage; default: 400 words, 256 tokens, 10 sentences; by pages 2000 tokens",
        ),
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(
            min=0, help="number of tokens (default: 0) or sentences (5) that a passage repeats of the previous one"
        ),
    ] = None,
    near_duplicates: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="leave out passages at least this similar (0 to 1) to an earlier one; 0 keeps all"
        ),
    ] = 0.8,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="table to write the corpus into: did, title, source, page, document"),
    ] = None,
    set_entries: Set = None,
    form: JsonForm = "table",
) -> None:
    """Cut documents into passages for retrieval.

    Writes a corpus that 'data.corpus' reads. --set: megabytes=100, pages=5000 and seconds=120 are limits; a file above
    one of them is skipped. Without --out it only reports what can be read. Exit status 3: a file was skipped or read in
    part; the output says why.
    """
    options = {"size": size, "overlap": overlap, "near_duplicates": near_duplicates or None}
    passage_settings = _section(PassagesSection, {"by": by} | options)
    limits = read_set(Limits, set_entries)
    reading = CorpusReading()
    rows = _rows(read_passages(paths, passage_settings, limits, reading))
    if out is not None:
        write_rows(out, _COLUMNS, rows)
    else:
        for _ in rows:
            pass
    tell(_record(reading), _lines(reading, out), form)
    if form != "json":
        print_unread(reading)
    if reading.skipped:
        raise typer.Exit(INCOMPLETE)


def _section(kind: Any, values: Mapping[str, Any]) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InputError(describe(error)) from error


def _rows(passages: Iterator[Document]) -> Iterator[dict[str, Cell]]:
    for passage in passages:
        yield {"did": passage.doc_id, "document": passage.text, **passage.metadata}


def _record(reading: CorpusReading) -> dict[str, Any]:
    return {
        "documents": reading.documents,
        "passages": reading.passages,
        "near_duplicates": [asdict(twin) for twin in reading.twins],
        "skipped": [asdict(each) for each in reading.skipped],
        "notes": [{"source": each.source, "reason": each.reason} for each in reading.notes],
        "other_files": dict(reading.other_files),
    }


def _lines(reading: CorpusReading, out: Path | None) -> Iterator[str]:
    where = f" written to {out}" if out is not None else ""
    yield f"{counted(reading.documents, 'document')}, {counted(reading.passages, 'passage')}{where}"
    if reading.twins:
        yield f"{counted(len(reading.twins), 'passage')} left out, nearly the same as an earlier one:"
        yield from (f"  {twin.ident} of {twin.kept} ({twin.similarity:.2f})" for twin in reading.twins[:_SHOWN])
    if len(reading.twins) > _SHOWN:
        yield "  ... (--format json lists all)"


class _Fusion(Section):
    """Settings of reciprocal rank fusion, which merges the rankings of hybrid retrieval."""

    rrf_k: Count = 60


def retrieve(
    corpus: Annotated[
        list[str],
        typer.Option(
            metavar="FILE|irds:NAME", help="file of documents: CSV, JSONL, Parquet or id<TAB>text; may be repeated"
        ),
    ],
    queries: Annotated[
        str, typer.Option(metavar="FILE|irds:NAME", help="file of queries: a table qid, query, or TREC topics")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="file to write the retrieved documents into, a run in TREC format")
    ],
    retriever: Annotated[
        Literal["bm25", "dense", "hybrid"],
        typer.Option(help="way to search: by words (bm25), by embeddings (dense), or both merged (hybrid)"),
    ] = "bm25",
    depth: Annotated[int, typer.Option(min=1, help="number of documents to retrieve for each query")] = 100,
    embeddings: Annotated[
        Literal["auto", "openai", "transformers", "minilm", "hashed"],
        typer.Option(help="embeddings for dense and hybrid; auto: minilm if installed, else hashed words"),
    ] = "auto",
    cache: Annotated[Path | None, typer.Option(metavar="FOLDER", help="folder in which embeddings are cached")] = None,
    name: Annotated[
        str | None, typer.Option(help="name of the run, its tag in the file; default: retriever and model")
    ] = None,
    set_entries: Set = None,
) -> None:
    """Search a corpus with every query.

    Writes the results as a TREC run. --set: rrf_k=60 (the constant of reciprocal rank fusion, for hybrid), and the
    keys of a YAML file's 'embeddings': model, path, base_url, api_key_env, query_prefix, batch and so on.
    """
    fusion_entries = [entry for entry in set_entries or () if entry.startswith("rrf_k=")]
    rrf_k = read_set(_Fusion, fusion_entries).rrf_k
    spec = read_set(
        EmbeddingsSpec, [entry for entry in set_entries or () if entry not in fusion_entries], provider=embeddings
    )
    topics = list(read_topics(queries).values())
    documents = Corpus.of(read_corpus(corpus))
    library = Library(documents, cache)
    searcher = library.retriever(retriever, spec, rrf_k)
    tag: str = retriever
    if retriever != "bm25":
        embedder = library.embedder(spec)
        tag = f"{tag}-{embedder.identity.get('model') or embedder.identity['provider']}"
        if embedder.note:
            say(f"note: {embedder.note}", errors)

    async def search() -> None:
        try:
            run = await retrieve_run(searcher, topics, depth, "-".join((name or tag).split()))
        finally:
            await searcher.close()
        write_run(out, run)
        retrieved = sum(len(ranking.doc_ids) for ranking in run.rankings.values())
        if empty := len(topics) - len(run.rankings):
            errors.print(f"note: no document matches {counted(empty, 'query', 'queries')}")
        if documents.blank:
            errors.print(f"note: not searched, as they have no text: {counted(documents.blank, 'document')}")
        counts = f"{counted(retrieved, 'document')} for {counted(len(run.rankings), 'query', 'queries')}"
        say(f"{out}: {counts}, run {run.name}")

    asyncio.run(search())
