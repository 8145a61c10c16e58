"""Commands ``nuggets``, to score runs by the nuggets they state, compare two rankings of the runs, and record edits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from arena.boards.nuggets import NuggetComparison, NuggetEdits, NuggetScores
from arena.cli.options import Force, Form, Samples, Seed, require_free
from arena.cli.show import show
from arena.cli.sources import clusters_in, queries_in
from arena.data.files import read_answers
from arena.present.files import save_plot
from arena.results.nugget_comparison import compare_conditions, read_condition
from judges.errors import DataError, InputError
from retrieval_eval.data.trec import read_qrels
from retrieval_eval.nuggets.files import read_assignments, read_banks, write_banks
from retrieval_eval.nuggets.scores import ScoreTable, score_table
from retrieval_eval.nuggets.types import Change, NuggetBank, changes, edited
from retrieval_eval.scores.citations import Cited, citation_scores, cited_documents

Topics = Annotated[
    Path | None,
    typer.Option(
        "--topics",
        help="file of topics to score, with their conversations if known; default: all that a run answered",
    ),
]


def nuggets_score(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="files of assignments (which nuggets each answer states), as nuggetizer or NIST write them",
        ),
    ],
    topics: Topics = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="file of the answers with their citations, to compute citation precision; needs --qrels",
        ),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="file of relevance labels of the cited documents; needs --answers"),
    ] = None,
    min_label: Annotated[int, typer.Option(help="lowest relevance label in --qrels that counts as relevant")] = 1,
    form: Annotated[
        Literal["table", "json", "csv", "md", "html", "latex", "jsonl"],
        typer.Option(
            "--format",
            help="output format, as in other commands; jsonl: scores by topic, in nuggetizer's format for metrics",
        ),
    ] = "table",
) -> None:
    """Score runs by the nuggets they state.

    Nuggets are facts that a good answer states. There are six scores: for vital nuggets, for all nuggets, and for all
    with okay ones at half weight; each strict, or with half credit for partial support. A run's score is the mean over
    the topics; a topic that the run did not answer counts 0. Topics with failed labels are left out of the means, and
    their number is shown. With --answers and --qrels it also shows which share of the cited documents is relevant.
    """
    queries, clusters = queries_in(topics), clusters_in(topics)
    table = score_table(read_assignments(list(files)), None if queries is None else list(queries), clusters)
    if topics is not None and not table.answered.any():
        raise InputError(
            f"{topics}: none of its topics is in {', '.join(map(str, files))}; check that both use the same topic ids"
        )
    if (qrels is None) is not (not answers):
        raise InputError(
            "--answers and --qrels go together: give both, since the labels say which cited documents are relevant"
        )
    cited = {}
    if qrels is not None:
        documents, labels = _read_cited(answers or [], qrels, table)
        cited = citation_scores(documents, labels, relevant=min_label, clusters=clusters)
    board = NuggetScores(table, cited)
    if form == "jsonl":
        for line in board.metrics():
            print(json.dumps(line, allow_nan=False))
    else:
        show(board, form)


def nuggets_correlate(
    first: Annotated[Path, typer.Argument(metavar="A", help="file of scores or assignments of runs in one condition")],
    second: Annotated[
        Path, typer.Argument(metavar="B", help="file of scores or assignments of the same runs in another condition")
    ],
    topics: Topics = None,
    score: Annotated[str, typer.Option(help="name of the score by which to rank the runs")] = "v_strict",
    plot: Annotated[Path | None, typer.Option(help="also write scatter plots to this .svg, .png or .html file")] = None,
    samples: Samples = 1000,
    seed: Seed = 0,
    form: Form = "table",
) -> None:
    """Compare how two conditions rank the runs.

    Conditions are, for example, automatic and manual nuggets. A and B may be files of assignments, the output of
    'nuggets score', or tables with a column 'run' and a column named as the score; with a column 'qid' the scores are
    by topic.
    """
    a, b = (read_condition(path, score) for path in (first, second))
    comparison = compare_conditions(a, b, samples, seed, queries_in(topics))
    board = NuggetComparison(comparison, score, (str(first), str(second)))
    if plot is not None:
        save_plot(plot, board.pictures(), f"{score}: {first.name} and {second.name}")
    show(board, form)


def nuggets_edit(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="file of the nuggets before the edit")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="file of the nuggets after a person has edited them")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="file to write the edited nuggets into, with their history")
    ],
    editor: Annotated[str, typer.Option(help="name of the person who edited the nuggets")] = "",
    force: Force = False,
    form: Form = "table",
) -> None:
    """Record what a person changed in nuggets.

    The new file records which nuggets were added, removed, merged, split or given another importance. A nugget in AFTER
    may list under "from" the texts of the nuggets in BEFORE that it comes from. Queries that are not in AFTER stay
    unchanged.
    """
    require_free(out, force)
    old, new = ({bank.query_id: bank for bank in read_banks(path)} for path in (before, after))
    edited_at = datetime.now(UTC).isoformat(timespec="seconds")
    changes_by_query: dict[str, list[Change]] = {}
    banks = []
    for query_id in {**old, **new}:
        bank_before = old.get(query_id, NuggetBank(query_id, "", ()))
        bank_after = new.get(query_id, bank_before)
        try:
            changes_by_query[query_id] = changes(bank_before, bank_after)
            banks.append(edited(bank_before, bank_after, by=editor, at=edited_at))
        except ValueError as error:
            raise DataError(after, f"query {query_id!r}: {error}") from error
    write_banks(out, banks)
    board = NuggetEdits(str(out), changes_by_query, [query_id for query_id in old if query_id not in new])
    show(board, form)


def _read_cited(
    paths: Sequence[Path], qrels: Path, table: ScoreTable
) -> tuple[dict[tuple[str, str], Cited], Mapping[str, Mapping[str, int]]]:
    """Read the documents that each run's answer to each topic cites, and the relevance labels of documents by topic.

    Args:
        paths: answers as tables or in the format of the TREC RAG track.
        qrels: file of relevance labels.
        table: a table of scores; only answers of its runs to its topics are read.

    Raises:
        InputError: a file cannot be read, or has no answer of these runs to these topics.
    """
    runs, topics = set(table.runs), set(table.topics)
    file_answers = (answer for path in paths for _, answer in read_answers(path))
    answers = [answer for answer in file_answers if answer.agent in runs and answer.query_id in topics]
    if not answers:
        raise InputError(
            f"{', '.join(map(str, paths))}: no answer belongs to a scored run and a scored topic; "
            "check that run names and topic ids match"
        )
    labels = read_qrels(qrels).labels
    return cited_documents(answers, {}, labels), labels
