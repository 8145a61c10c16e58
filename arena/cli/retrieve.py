"""``retrieve``: search a corpus with every query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.cli.options import Set, read_set
from judges.sections import Count, Section


class _Fusion(Section):
    """Settings of reciprocal rank fusion, which merges two rankings."""

    rrf_k: Count = 60


def retrieve(
    corpus: Annotated[
        list[str],
        typer.Option(metavar="FILE|irds:NAME", help="documents: CSV, JSONL, Parquet or id<TAB>text; may be repeated"),
    ],
    queries: Annotated[str, typer.Option(metavar="FILE|irds:NAME", help="a table qid, query, or TREC topics")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="the run file to write")],
    retriever: Annotated[Literal["bm25", "dense", "hybrid"], typer.Option(help="bm25, dense, or both merged")] = "bm25",
    depth: Annotated[int, typer.Option(min=1, help="documents for each query")] = 100,
    embeddings: Annotated[
        Literal["auto", "openai", "transformers", "minilm", "hashed"],
        typer.Option(help="dense, hybrid; auto is minilm where installed, else hashed words"),
    ] = "auto",
    cache: Annotated[Path | None, typer.Option(metavar="FOLDER", help="cache embeddings in this folder")] = None,
    name: Annotated[str | None, typer.Option(help="the run's tag; default: retriever and model")] = None,
    set_entries: Set = None,
) -> None:
    """Search a corpus with every query.

    Writes the results as a TREC run. --set: rrf_k=60 (the constant of reciprocal rank fusion, for hybrid), and the
    keys of a YAML file's 'embeddings': model, path, base_url, api_key_env, query_prefix, batch and so on.
    """
    import asyncio

    from arena.cli.console import errors, say
    from arena.present.numbers import counted
    from retrieval_eval.agents.ranking import Corpus
    from retrieval_eval.agents.retrieval import Library, retrieve_run
    from retrieval_eval.agents.spec import EmbeddingsSpec
    from retrieval_eval.data.collections import read_corpus, read_topics
    from retrieval_eval.data.runs import write_run

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
