"""``agents``: the systems under evaluation, or their retrieval alone."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from retrieval_eval.agents.embedding_spec import EmbeddingsSpec

group = typer.Typer(help="Run the systems under evaluation, or their retrieval alone.", no_args_is_help=True)


class RetrieverChoice(StrEnum):
    """How documents are found."""

    BM25 = "bm25"
    DENSE = "dense"
    HYBRID = "hybrid"


class EmbeddingsChoice(StrEnum):
    """What turns texts into vectors."""

    AUTO = "auto"
    OPENAI = "openai"
    TRANSFORMERS = "transformers"
    MINILM = "minilm"
    HASHED = "hashed"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="agents")


@group.callback()
def _group() -> None:
    """Keep ``retrieve`` a command of its own, whatever else there is."""


@group.command()
def retrieve(
    corpus: Annotated[
        list[str], typer.Option(metavar="FILE|irds:NAME", help="documents: CSV, JSONL, Parquet or id<TAB>text; repeat")
    ],
    queries: Annotated[str, typer.Option(metavar="FILE|irds:NAME", help="a table qid, query, or TREC topics")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the run goes")],
    retriever: Annotated[RetrieverChoice, typer.Option(help="bm25, dense, or both merged")] = RetrieverChoice.BM25,
    depth: Annotated[int, typer.Option(min=1, help="documents for each query")] = 100,
    rrf_k: Annotated[int, typer.Option(min=1, help="hybrid: the constant of reciprocal rank fusion")] = 60,
    embeddings: Annotated[
        EmbeddingsChoice, typer.Option(help="dense, hybrid; auto is minilm where installed, else hashed words")
    ] = EmbeddingsChoice.AUTO,
    model: Annotated[str, typer.Option(help="openai: the model; transformers: its name on the hub")] = "",
    model_path: Annotated[Path | None, typer.Option(metavar="FOLDER", help="transformers: a local model")] = None,
    base_url: Annotated[str | None, typer.Option(help="openai: a server of your own")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="openai: the environment variable with the key")] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="keep embeddings here, so that none is made twice")
    ] = None,
    name: Annotated[str | None, typer.Option(help="the run's tag; made of retriever and model when absent")] = None,
) -> None:
    """Search a corpus with every query, and write what is found as a TREC run."""
    import asyncio

    from arena.cli.console import errors, output, printable
    from retrieval_eval.agents.corpus import Corpus
    from retrieval_eval.agents.retrieval import Library, retrieve_run
    from retrieval_eval.corpora import read_corpus
    from retrieval_eval.topics import read_topics
    from retrieval_eval.trec_files import write_run

    spec = _embeddings(embeddings, model, model_path, base_url, api_key_env)
    topics = list(read_topics(queries).values())
    searched = Corpus.of(read_corpus(corpus))
    library = Library(searched, cache)
    searcher = library.retriever(retriever.value, spec, rrf_k)
    tag = retriever.value
    if retriever is not RetrieverChoice.BM25:
        embedder = library.embedder(spec)
        tag = f"{tag}-{embedder.identity.get('model') or embedder.identity['provider']}"
        if embedder.note:
            errors.print(printable(f"note: {embedder.note}"))

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
        output.print(printable(f"{out}: {found} documents for {len(run.rankings)} queries, run {run.name}"))

    asyncio.run(searching())


def _embeddings(
    provider: EmbeddingsChoice, model: str, path: Path | None, base_url: str | None, api_key_env: str | None
) -> EmbeddingsSpec:
    from pydantic import ValidationError

    from judges.errors import InputError
    from judges.sections import describe
    from retrieval_eval.agents.embedding_spec import EmbeddingsSpec

    given = {"model": model, "path": path, "base_url": base_url, "api_key_env": api_key_env}
    said = {key: value for key, value in given.items() if value not in (None, "")}
    try:
        return EmbeddingsSpec.model_validate({"provider": provider.value, **said})
    except ValidationError as error:
        raise InputError(f"--embeddings: {describe(error)}") from error
