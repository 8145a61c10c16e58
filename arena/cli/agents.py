"""``agents``: ask the systems under evaluation what they have not answered yet, or run their retrieval alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.options import Told

group = typer.Typer(help="Run the systems under evaluation, or their retrieval alone.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="agents")


@group.command()
def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="the tournament's YAML file")],
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="also ask again what an agent would not answer")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="write queries, answers and documents there, to look at")
    ] = None,
    form: Told = "table",
) -> None:
    """Ask the agents what they have not answered yet, and keep every reply in the store. Nothing is judged.

    Ctrl-C finishes what is in flight; a second one stops at once. Run again to go on. Exit status 3: an answer is
    missing, and the output says whose and why.
    """
    from arena.cli.console import Bars, errors, print_json, say
    from arena.cli.parts import print_part
    from arena.config.whole import load_config
    from arena.data.files import save_dataset
    from arena.present.plain import plain
    from arena.run.tournament import load_data
    from arena.stages.answers.asking import run_agents

    loaded = load_config(config)
    with Bars(shown=errors.is_terminal) as bars:
        answering = run_agents(loaded, bars, retry_failed=retry_failed)
    print_part(answering)
    if out is not None:
        files = save_dataset(load_data(loaded, answering.declared), out)
        for file in () if form == "json" else files:
            say(f"wrote {file}")
    if form == "json":
        agents = {
            name: {**plain(own), "failed": own.failed, "left": own.left} for name, own in answering.agents.items()
        }
        print_json({"agents": agents, "complete": answering.complete})
    if not answering.complete:
        raise typer.Exit(INCOMPLETE)


@group.command()
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
    """Search a corpus with every query, and write what is found as a TREC run."""
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
