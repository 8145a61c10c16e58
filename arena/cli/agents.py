"""``agents``: ask the systems under evaluation what they have not answered yet, or run their retrieval alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arena.cli.console import INCOMPLETE
from arena.cli.options import ForPrograms

if TYPE_CHECKING:
    from arena.cli.trace import Trace
    from arena.config.whole import Config
    from arena.run.recorder import Recorder
    from arena.stages.answers.asking import AgentsRun, AgentSummary

group = typer.Typer(help="Run the systems under evaluation, or their retrieval alone.", no_args_is_help=True)

_NAMED = 3
"""Files that could not be read that are named."""


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
    as_json: ForPrograms = False,
) -> None:
    """Ask the agents what they have not answered yet, and keep every reply in the store. Nothing is judged.

    Ctrl-C finishes what is in flight; a second one stops at once. Run again to go on. Exit status 3: an answer is
    missing, and the output says whose and why.
    """
    from arena.cli.console import print_json, say
    from arena.config.whole import load_config
    from arena.data.files import save_dataset
    from arena.present.plain import plain
    from arena.run.tournament import load_data

    loaded = load_config(config)
    answering = ask_agents(loaded, retry_failed=retry_failed)
    if out is not None:
        files = save_dataset(load_data(loaded, answering.declared), out)
        for file in () if as_json else files:
            say(f"wrote {file}")
    if as_json:
        agents = {
            name: {**plain(own), "failed": own.failed, "left": own.left} for name, own in answering.agents.items()
        }
        print_json({"agents": agents, "complete": answering.complete})
    if not answering.complete:
        raise typer.Exit(INCOMPLETE)


def ask_agents(
    config: Config, *, retry_failed: bool, trace: Trace | None = None, part_of: Recorder | None = None
) -> AgentsRun:
    """Ask what is missing with a bar for each agent, and say what became of it."""
    from arena.cli.trace import asking
    from arena.stages.answers.asking import run_agents

    with asking() as (bars, _):
        answering = run_agents(config, bars, retry_failed=retry_failed, trace=trace, part_of=part_of)
    _print_agents(answering)
    return answering


def _print_agents(run: AgentsRun) -> None:
    """One line per agent on standard error, what could not be read of the corpus, and what to know of the agents."""
    from arena.cli.console import errors, say
    from arena.present.numbers import counted

    if (corpus := run.corpus) is not None:
        twins = f", {corpus.twins:,} that repeat another left out" if corpus.twins else ""
        say(f"corpus: {counted(len(corpus.documents), 'document')} to search{twins}", errors)
        for file in corpus.skipped[:_NAMED]:
            partly = "partly read: " if file.outcome == "partly read" else ""
            say(f"corpus: {file.source} {partly}{file.reason}", errors)
        if (more := len(corpus.skipped) - _NAMED) > 0:
            say(f"corpus: ... and {more:,} more; 'ragleague documents' lists all", errors)
    for name, summary in run.agents.items():
        say(f"agent {name}: {_words(summary)}", errors)
        if summary.stopped:
            say(f"agent {name!r} stopped: {summary.stopped}", errors)
    for note in dict.fromkeys(note for agent in run.declared for note in agent.notes):
        say(f"note: {note}", errors)
    if not run.complete:
        say("incomplete: run again to ask for the missing answers", errors)


def _words(own: AgentSummary) -> str:
    from arena.present.numbers import MONEY

    causes = ", ".join(f"{cause} {count}" for cause, count in own.causes.items())
    failed = f"{own.failed} failed" + (f" ({causes})" if causes else "")
    cost = MONEY.write(own.cost_usd) if own.cost_unknown < own.answered + own.failed or not own.calls else ""
    unknown = f"{own.cost_unknown} of unknown cost" if own.cost_unknown and own.calls else ""
    spent = " + ".join(filter(None, (cost, unknown)))
    said = f"{own.answered} answered, {own.known} known, {failed}, {own.left} left of {own.wanted}"
    return f"{said}; {own.calls} calls, {spent}, {own.seconds:.1f} s"


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
