"""``nuggets``: facts made of documents and assigned to answers, scores of answers, and two ways of getting them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arena.cli.console import INCOMPLETE, tell
from arena.cli.options import Form, RetryFailed, Samples, Seed, Told
from judges.errors import DataError, InputError
from judges.types import NUGGET_TASKS, Task

if TYPE_CHECKING:
    from arena.config.whole import Config
    from arena.data.dataset import Dataset
    from arena.run.ledger import RunSummary
    from retrieval_eval.nuggets.types import Assignment

group = typer.Typer(help="Nugget evaluation: making, assigning, scoring and comparing.", no_args_is_help=True)

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="a tournament's YAML file with a section nuggets")]
Force = Annotated[bool, typer.Option("--force", help="write over a file that is there")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(group, name="nuggets")


@group.command()
def create(
    config: ConfigPath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the nuggets go")] = Path("nuggets.jsonl"),
    for_editing: Annotated[
        bool, typer.Option("--for-editing", help="for people to edit: whole lists, without importance")
    ] = False,
    force: Force = False,
    retry_failed: RetryFailed = False,
    form: Told = "table",
) -> None:
    """Make each query's nuggets of its relevant documents, and write them as nuggetizer does.

    Labels documents that have no label yet. Run again, it goes on where it stopped. Exit status 3: some query has no
    nuggets because a judgment failed or is missing.
    """
    from contextlib import closing

    from arena.config.whole import load_config
    from arena.stages.nuggets.judging import nuggets_of
    from arena.stages.nuggets.results import nugget_results, repetitions, unedited_banks
    from arena.store import Store
    from retrieval_eval.nuggets.files import write_banks
    from retrieval_eval.nuggets.types import Importance

    loaded = load_config(config)
    if nuggets_of(loaded).create is None:
        raise InputError(f"{config}: nuggets.bank gives the nuggets; leave it out to have some made")
    require_free(out, force)
    tasks = [Task.RELEVANCE, Task.NUGGETS] + ([] if for_editing else [Task.IMPORTANCE])
    summary = _run(loaded, tasks, retry_failed=retry_failed)
    with closing(Store.open(loaded.store)) as store:
        if for_editing:
            banks, without = unedited_banks(store, loaded.name)
        else:
            results = nugget_results(store, loaded.name)
            assert results is not None
            banks, without = list(results.banks.values()), dict(results.without)
        repeated = repetitions(store, loaded.name)
    write_banks(out, banks)
    counts = Counter(nugget.importance for bank in banks for nugget in bank.nuggets)
    number, vital = counts.total(), counts[Importance.VITAL]
    told = {"file": str(out), "queries": len(banks), "nuggets": number, "vital": vital, "without": without}
    more = f", {vital} of them vital" if vital else ""
    lines = [f"wrote {out}: {number} nuggets for {len(banks)} queries{more}", *_left_out(without)]
    lines += [f"- {query_id}: {' '.join(said)}" for query_id, said in repeated.items()]
    tell(told | {"repeated": repeated}, lines, form)
    if not summary.complete:
        raise typer.Exit(INCOMPLETE)


@group.command()
def assign(
    config: ConfigPath,
    nuggets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="these nuggets in place of the configuration's")
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="these answers, as a table or as TREC RAG runs; may be repeated"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="where assignments go")] = Path("assignments.jsonl"),
    documents_out: Annotated[
        Path, typer.Option(metavar="FILE", help="where those of documents go, with 'assign: {texts: documents}'")
    ] = Path("passages.jsonl"),
    force: Force = False,
    retry_failed: RetryFailed = False,
    form: Told = "table",
) -> None:
    """Hold answers and documents against nuggets, and write which they state, answers for 'nuggets score'.

    Without --nuggets, those of the configuration's bank or those that 'nuggets create' has made. Exit status 3: some
    label failed or is missing; the file has it as failed.
    """
    from contextlib import closing

    from arena.config.whole import load_config
    from arena.stages.nuggets.judging import assignment_of_files, nuggets_of
    from arena.stages.nuggets.results import nugget_results
    from arena.store import Store
    from retrieval_eval.nuggets.files import write_assignments, write_passage_assignments

    loaded = load_config(config)
    if (nuggets is None) is not (not answers):
        raise InputError("--nuggets and --answers go together: nuggets are held against answers to the same queries")
    data = None
    if nuggets is not None:
        loaded, data = assignment_of_files(loaded, nuggets, answers or [])
    section = nuggets_of(loaded)
    for kind, file in (("answers", out), ("documents", documents_out)):
        if kind in section.assign.texts:
            require_free(file, force)
    tasks = [Task.ASSIGNMENT, Task.PASSAGE_ASSIGNMENT] if section.bank is None else NUGGET_TASKS
    summary = _run(loaded, tasks, data, retry_failed=retry_failed)
    with closing(Store.open(loaded.store)) as store:
        results = nugget_results(store, loaded.name)
    if results is None or not results.banks:
        raise InputError(f"{config}: no query has nuggets yet; 'ragleague nuggets create {config}' makes them")
    told: dict[str, Any] = {}
    lines: list[str] = []
    if "answers" in section.assign.texts:
        write_assignments(out, results.assignments)
        told = _written("answers", out, results.assignments, lines)
    if "documents" in section.assign.texts:
        passages = list(results.passages.values())
        write_passage_assignments(documents_out, passages)
        told["passages"] = _written("documents", documents_out, passages, lines)
    lines += _left_out(results.without)
    if "answers" in section.assign.texts:
        lines.append(f"next:  ragleague nuggets score {out}")
    tell(told | {"without": dict(results.without)}, lines, form)
    if not summary.complete or not results.finished:
        raise typer.Exit(INCOMPLETE)


@group.command()
def edit(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="the nuggets as they were")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="the same file as a person has edited it")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="where the edited nuggets go, with their history")],
    by: Annotated[str, typer.Option(help="who edited them")] = "",
    force: Force = False,
    form: Form = "table",
) -> None:
    """Show what a person added, removed, merged, split or weighed otherwise, and keep it as history.

    A nugget in AFTER may name with "from" the texts of BEFORE that it was made of. Queries that AFTER lacks stay
    as they were.
    """
    from datetime import UTC, datetime

    from arena.boards.nuggets import NuggetEdits
    from arena.cli.show import show
    from retrieval_eval.nuggets.editing import Change, changes, edited
    from retrieval_eval.nuggets.files import read_banks, write_banks
    from retrieval_eval.nuggets.types import NuggetBank

    require_free(out, force)
    old, new = ({bank.query_id: bank for bank in read_banks(path)} for path in (before, after))
    at = datetime.now(UTC).isoformat(timespec="seconds")
    done: dict[str, list[Change]] = {}
    banks = []
    for query_id in {**old, **new}:
        was = old.get(query_id, NuggetBank(query_id, "", ()))
        now = new.get(query_id, was)
        try:
            done[query_id] = changes(was, now)
            banks.append(edited(was, now, by=by, at=at))
        except ValueError as error:
            raise DataError(after, f"query {query_id!r}: {error}") from error
    write_banks(out, banks)
    board = NuggetEdits(str(out), done, [query_id for query_id in old if query_id not in new])
    show(board, form)


@group.command()
def score(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="assignments as nuggetizer or NIST write them")
    ],
    topics: Annotated[
        Path | None, typer.Option(help="the topic set; without it the topics that any run answered")
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="the answers with their citations, for citation precision; with --qrels"),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="labels of the documents cited; with --answers")
    ] = None,
    relevant: Annotated[int, typer.Option(help="the lowest label that counts as relevant")] = 1,
    samples: Samples = 1000,
    seed: Seed = 0,
    form: Annotated[
        Literal["table", "json", "csv", "jsonl", "md", "html", "latex"],
        typer.Option("--format", help="how to write it; jsonl: nuggetizer's metrics by topic"),
    ] = "table",
) -> None:
    """Six scores of each run: vital, weighted and all nuggets, strict or with half credit for partial support.

    A run's score is the mean over the topic set; a topic it did not answer counts 0. Topics with failed labels are
    left out of its means and counted. With --answers and --qrels also which share of the documents cited is relevant.
    """
    import json

    from arena.boards.nuggets import NuggetScores
    from arena.cli.show import show
    from arena.stages.nuggets.judging import read_cited
    from arena.stages.nuggets.results import scored
    from retrieval_eval.citations import citation_scores
    from retrieval_eval.data.collections import read_topics
    from retrieval_eval.nuggets.files import read_assignments
    from retrieval_eval.nuggets.scores import score_table

    table = score_table(read_assignments(files), None if topics is None else list(read_topics(topics)))
    if topics is not None and not table.answered.any():
        raise InputError(f"{topics}: none of its topics is in {', '.join(map(str, files))}; are the ids the same?")
    if (qrels is None) is not (not answers):
        raise InputError("--answers and --qrels go together: whether a document cited is relevant, a label says")
    cited = {}
    if qrels is not None:
        documents, labels = read_cited(answers or [], qrels, table)
        cited = citation_scores(documents, labels, relevant=relevant, samples=samples, seed=seed)
    board = NuggetScores(scored(table, samples, seed), table, cited)
    if form == "jsonl":
        for line in board.metrics():
            print(json.dumps(line, allow_nan=False))
    else:
        show(board, form)


@group.command()
def correlate(
    first: Annotated[Path, typer.Argument(metavar="A", help="scores or assignments of one condition")],
    second: Annotated[Path, typer.Argument(metavar="B", help="those of another, for the same runs")],
    column: Annotated[str, typer.Option(help="the score to compare")] = "v_strict",
    plot: Annotated[Path | None, typer.Option(help="write the scatter plots to this .svg, .png or .html file")] = None,
    samples: Samples = 1000,
    seed: Seed = 0,
    form: Form = "table",
) -> None:
    """How alike two conditions order the same runs, such as automatic and manual nuggets.

    A and B are assignments, what 'nuggets score' writes, or tables with columns run and the score, by topic where they
    have a column qid.
    """
    from arena.boards.nugget_comparison import NuggetComparison
    from arena.cli.show import show
    from arena.stages.nuggets.comparison import compare_conditions, read_condition

    a, b = (read_condition(path, column) for path in (first, second))
    board = NuggetComparison(compare_conditions(a, b, samples, seed), column, (str(first), str(second)))
    if plot is not None:
        from arena.present.files import save_plot

        save_plot(plot, board.pictures(), f"{column}: {first.name} and {second.name}")
    show(board, form)


def require_free(out: Path, force: bool) -> None:
    """A file that a person may have edited is not written over unasked."""
    if out.exists() and not force:
        raise InputError(f"{out}: is there already; name another file with --out, or say --force")


def _run(config: Config, tasks: Sequence[Task], data: Dataset | None = None, *, retry_failed: bool) -> RunSummary:
    from arena.cli.parts import print_summary
    from arena.cli.trace import asking
    from arena.run import tournament

    with asking() as (bars, _):
        summary = tournament.run(config, bars, data=data, only=tasks, retry_failed=retry_failed)
    print_summary(summary)
    return summary


def _written(what: str, file: Path, assignments: Sequence[Assignment], lines: list[str]) -> dict[str, Any]:
    labels = [label for own in assignments for label in own.labels]
    assigned = sum(label is not None for label in labels)
    lines.append(f"wrote {file}: {assigned} of {len(labels)} labels of {len(assignments)} {what}")
    return {"file": str(file), what: len(assignments), "labels": len(labels), "assigned": assigned}


def _left_out(without: Mapping[str, str]) -> Iterator[str]:
    from arena.present.numbers import counted

    for why, number in Counter(without.values()).items():
        yield f"- {counted(number, 'query', 'queries')} left out: {why}"
