"""``retrieve``: search a corpus with every query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.cli.options import Set, read_set
from judges.sections import Count, Section


class _Fusion(Section):
    """How two rankings become one."""

    rrf_k: Count = 60


def retrieve(
    corpus: Annotated[
        list[str], typer.Option(metavar="FILE|irds:NAME", help="documents: CSV, JSONL, Parquet or id<TAB>text; repeat")
    ],
    queries: Annotated[str, typer.Option(metavar="FILE|irds:NAME", help="a table qid, query, or TREC topics")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the run goes")],
    retriever: Annotated[Literal["bm25", "dense", "hybrid"], typer.Option(help="bm25, dense, or both merged")] = "bm25",
    depth: Annotated[int, typer.Option(min=1, help="documents for each query")] = 100,
    embeddings: Annotated[
        Literal["auto", "openai", "transformers", "minilm", "hashed"],
        typer.Option(help="dense, hybrid; auto is minilm where installed, else hashed words"),
    ] = "auto",
    cache: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="keep embeddings here, so that none is made twice")
    ] = None,
    name: Annotated[str | None, typer.Option(help="the run's tag; made of retriever and model when absent")] = None,
    fine: Set = None,
) -> None:
    """Search a corpus with every query.

    What is found is written as a TREC run. --set: rrf_k=60 (the constant of reciprocal rank fusion, for hybrid), and
    the keys of a YAML file's 'embeddings': model, path, base_url, api_key_env, query_prefix, batch and so on.
    """
    import asyncio

    from arena.cli.console import errors, say
    from arena.present.numbers import counted
    from retrieval_eval.agents.ranking import Corpus
    from retrieval_eval.agents.retrieval import Library, retrieve_run
    from retrieval_eval.agents.spec import EmbeddingsSpec
    from retrieval_eval.data.collections import read_corpus, read_topics
    from retrieval_eval.data.runs import write_run

    fusing = [entry for entry in fine or () if entry.startswith("rrf_k=")]
    rrf_k = read_set(_Fusion, fusing).rrf_k
    spec = read_set(EmbeddingsSpec, [entry for entry in fine or () if entry not in fusing], provider=embeddings)
    topics = list(read_topics(queries).values())
    searched = Corpus.of(read_corpus(corpus))
    library = Library(searched, cache)
    searcher = library.retriever(retriever, spec, rrf_k)
    tag: str = retriever
    if retriever != "bm25":
        embedder = library.embedder(spec)
        tag = f"{tag}-{embedder.identity.get('model') or embedder.identity['provider']}"
        if embedder.note:
            say(f"note: {embedder.note}", errors)

    async def searching() -> None:
        try:
            run = await retrieve_run(searcher, topics, depth, "-".join((name or tag).split()))
        finally:
            await searcher.close()
        write_run(out, run)
        found = sum(len(ranking.doc_ids) for ranking in run.rankings.values())
        if nothing := len(topics) - len(run.rankings):
            errors.print(f"note: nothing is found for {counted(nothing, 'query', 'queries')}")
        if searched.blank:
            errors.print(f"note: without a text, so not to be found: {counted(searched.blank, 'document')}")
        what = f"{counted(found, 'document')} for {counted(len(run.rankings), 'query', 'queries')}"
        say(f"{out}: {what}, run {run.name}")

    asyncio.run(searching())
