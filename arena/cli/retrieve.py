"""``retrieve``: search a corpus with every query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("retrieve")(retrieve)


def retrieve(
    corpus: Annotated[
        list[str], typer.Option(metavar="FILE|irds:NAME", help="documents: CSV, JSONL, Parquet or id<TAB>text; repeat")
    ],
    queries: Annotated[str, typer.Option(metavar="FILE|irds:NAME", help="a table qid, query, or TREC topics")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the run goes")],
    retriever: Annotated[Literal["bm25", "dense", "hybrid"], typer.Option(help="bm25, dense, or both merged")] = "bm25",
    depth: Annotated[int, typer.Option(min=1, help="documents for each query")] = 100,
    rrf_k: Annotated[int, typer.Option(min=1, help="hybrid: the constant of reciprocal rank fusion")] = 60,
    embeddings: Annotated[
        Literal["auto", "openai", "transformers", "minilm", "hashed"],
        typer.Option(help="dense, hybrid; auto is minilm where installed, else hashed words"),
    ] = "auto",
    model: Annotated[str, typer.Option(help="openai: the model; transformers: its name on the hub")] = "",
    model_path: Annotated[Path | None, typer.Option(metavar="FOLDER", help="transformers: a local model")] = None,
    base_url: Annotated[str | None, typer.Option(help="openai: a server of your own")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="openai: the environment variable with the key")] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="keep embeddings here, so that none is made twice")
    ] = None,
    name: Annotated[str | None, typer.Option(help="the run's tag; made of retriever and model when absent")] = None,
) -> None:
    """Search a corpus with every query.

    What is found is written as a TREC run.
    """
    import asyncio

    from pydantic import ValidationError

    from arena.cli.console import errors, say
    from judges.errors import InputError
    from judges.sections import describe
    from retrieval_eval.agents.ranking import Corpus
    from retrieval_eval.agents.retrieval import Library, retrieve_run
    from retrieval_eval.agents.spec import EmbeddingsSpec
    from retrieval_eval.data.collections import read_corpus, read_topics
    from retrieval_eval.data.runs import write_run

    given: dict[str, Any] = {"model": model, "path": model_path, "base_url": base_url, "api_key_env": api_key_env}
    try:
        spec = EmbeddingsSpec(provider=embeddings, **{key: value for key, value in given.items() if value})
    except ValidationError as error:
        raise InputError(f"--embeddings: {describe(error)}") from error
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
            errors.print(f"note: {nothing} queries find nothing")
        if searched.blank:
            errors.print(f"note: {searched.blank} documents have no text and cannot be found")
        say(f"{out}: {found} documents for {len(run.rankings)} queries, run {run.name}")

    asyncio.run(searching())
