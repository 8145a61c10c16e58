"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer
from pydantic import ValidationError

from judges.errors import InputError
from judges.sections import Section, describe, nearest

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file with the configuration")]
Source = Annotated[
    str, typer.Argument(metavar="CONFIG|STORE", help="YAML file of a tournament, or the store with its results")
]
Tournament = Annotated[str | None, typer.Option(help="name of the tournament, if the store has several")]
BelowCoverage = Annotated[
    bool,
    typer.Option(
        "--below-coverage", help="show ratings even if the share of finished judgments is below ratings.min_coverage"
    ),
]
Form = Annotated[
    Literal["table", "json", "csv", "md", "html", "latex"],
    typer.Option(
        "--format", help="output format: table for people, json for programs; csv, md, html, latex: first table only"
    ),
]
JsonForm = Annotated[
    Literal["table", "json"], typer.Option("--format", help="output format: table for people, json for programs")
]
By = Annotated[
    str,
    typer.Option(metavar="COLUMN", help="column of the queries: also compare the agents on each of its groups"),
]
OfGroup = Annotated[
    str,
    typer.Option(
        "--group", metavar="COLUMN=VALUE", help="only the queries with this value in a column, such as kind=factual"
    ),
]
Details = Annotated[
    bool,
    typer.Option(
        "--details", help="print every table: neighbouring agents, judges, grades, documents, costs, coverage"
    ),
]
reading_option = partial(typer.Option, rich_help_panel="How tables are read")
Values = Annotated[
    list[str] | None,
    reading_option(
        "--value",
        metavar="WORD=VERDICT",
        help="verdict (A, B, TIE) for a word, number or range in the file: 'A ist besser'=A, 0=TIE, -3..-1=A",
    ),
]
Columns = Annotated[
    list[str] | None,
    reading_option(
        "--column",
        metavar="NAME=COLUMN",
        help="read the file's column COLUMN as NAME, as in qid=query_id; may be repeated",
    ),
]
OutTable = Annotated[
    Path, typer.Argument(metavar="OUT", help="file to write: .csv, .tsv, .jsonl or .parquet, or one of them .gz")
]
Seed = Annotated[int, typer.Option(min=0, help="random seed of the bootstrap samples")]
Samples = Annotated[
    int, typer.Option(min=0, max=100_000, help="number of bootstrap samples from which intervals are computed")
]
OfQueries = Annotated[
    Path | None,
    typer.Option(
        "--queries",
        metavar="FILE",
        help="table of queries and their conversations; the bootstrap then resamples entire conversations",
    ),
]
SkipFaulty = Annotated[
    bool, typer.Option("--skip-faulty", help="skip lines that are wrong or empty, and report how many")
]
Force = Annotated[bool, typer.Option("--force", help="overwrite an existing file")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="retry all failures, including refused and unusable replies")
]
LogJson = Annotated[
    Path | None,
    typer.Option(
        "--log-json",
        metavar="FILE",
        help="append a line of JSON to FILE for each call of a model, without prompts and replies",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="set one of the settings that the description above lists; may be repeated"
    ),
]
_Section = TypeVar("_Section", bound="Section")
GradesFile = Annotated[
    Path,
    typer.Argument(
        metavar="GRADES",
        help="file of grades: the Rubric-Grading Workbench's graded jsonl.gz, or a table qid, did, item, grade",
    ),
]
Runs = Annotated[
    list[Path] | None,
    typer.Option("--run", help="file of an agent's ranked passages, a run in TREC format; may be repeated"),
]
RunFiles = Annotated[
    list[Path],
    typer.Option(
        "--run", metavar="FILE", help="file of a run: TREC format, or a table qid, did, score; may be repeated"
    ),
]
Llm = Annotated[
    str | None, typer.Option("--llm", help="model of the grader whose grades to use, if the file has several graders")
]
PromptName = Annotated[
    str | None,
    typer.Option("--prompt", help="prompt of the grader whose grades to use, if the file has several prompts"),
]
MinGrade = Annotated[
    int | None,
    typer.Option(
        "--min-grade", min=1, help="lowest grade that counts as covering an item; default: 4, or 1 if grades are 0/1"
    ),
]
K = Annotated[int, typer.Option("--k", min=1, help="score only the first K passages of a response")]


def require_free(out: Path, force: bool) -> None:
    """Refuse to overwrite an existing file without ``--force``, since a person may have edited the file."""
    if out.exists() and not force:
        raise InputError(f"{out}: exists already; name another file, or add --force")


def read_set(section: type[_Section], given: Sequence[str] | None, **others: object) -> _Section:
    """Read the ``KEY=VALUE`` entries of the option ``--set`` into a section of settings.

    ``others`` has the settings for which the command has options of their own.
    """
    values: dict[str, object] = {}
    for entry in given or ():
        key, separator, value = entry.partition("=")
        if not (key and separator and value):
            raise InputError(f"--set {entry}: is not a setting with its value; write KEY=VALUE")
        if key not in section.model_fields or key in others:
            raise InputError(f"--set {key}: no such setting{nearest(key, section.model_fields.keys() - others)}")
        values[key] = value
    try:
        return section.model_validate({**others, **values})
    except ValidationError as error:
        raise InputError(f"--set: {describe(error)}") from error
