"""Options that several commands share, and command classes for grouped help and options with many values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand

from judges.errors import InputError

if TYPE_CHECKING:
    from judges.sections import Section

Source = Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")]
Tournament = Annotated[str | None, typer.Option(help="name of the tournament, if the store has several")]
BelowCoverage = Annotated[
    bool, typer.Option("--below-coverage", help="rate even if less is judged than ratings.min_coverage")
]
Form = Annotated[
    Literal["table", "json", "csv", "md", "html", "latex"],
    typer.Option("--format", help="table for people, json for programs; csv, md, html, latex: the first table"),
]
JsonForm = Annotated[Literal["table", "json"], typer.Option("--format", help="table for people, json for programs")]
Details = Annotated[
    bool, typer.Option("--details", help="every table: neighbours, judges, grades, documents, costs, coverage")
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--value",
        metavar="WORD=VERDICT",
        help="what a word, number or range means, as in 'A ist besser'=A, 0=TIE or -3..-1=A",
        rich_help_panel="How tables are read",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="random seed of the bootstrap samples")]
Samples = Annotated[int, typer.Option(min=0, max=100_000, help="bootstrap samples for the intervals")]
OfQueries = Annotated[
    Path | None,
    typer.Option(
        "--queries", metavar="FILE", help="the queries; the bootstrap then draws the turns of a conversation together"
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
    typer.Option("--log-json", metavar="FILE", help="append a JSON line per call to FILE, without prompts or replies"),
]


def given_options(ctx: typer.Context) -> set[str]:
    """Names of the options that the command line sets."""
    return {
        param.opts[0]
        for param in ctx.command.params
        if param.param_type_name == "option" and _on_the_command_line(ctx, param.name)
    }


def _on_the_command_line(ctx: typer.Context, name: str | None) -> bool:
    source = ctx.get_parameter_source(name or "")
    return source is not None and source.name == "COMMANDLINE"


def require_free(out: Path, force: bool) -> None:
    """Refuse to overwrite a file, which a person may have edited.

    Raises:
        InputError: the file exists, without ``--force``.
    """
    if out.exists() and not force:
        raise InputError(f"{out}: is there already; name another file, or say --force")


def require_unused(why: str, given: Mapping[str, object]) -> None:
    """Refuse options that do not apply.

    Args:
        why: what they do not go with; part of the error message.
        given: values by option; empty or ``None`` if the option was not set.

    Raises:
        InputError: one was set.
    """
    if misplaced := [option for option, value in given.items() if value]:
        raise InputError(f"{', '.join(misplaced)}: does not go with {why}")


Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a rarely needed setting; may be repeated")
]
_Section = TypeVar("_Section", bound="Section")


def read_set(section: type[_Section], given: Sequence[str] | None, **others: object) -> _Section:
    """The settings from ``--set``, validated like those of a YAML file.

    Args:
        section: the model of the settings.
        given: entries ``KEY=VALUE``.
        others: values from other options.

    Raises:
        InputError: an entry is malformed, or a key or value is wrong.
    """
    from pydantic import ValidationError

    from judges.sections import describe, nearest

    values: dict[str, object] = {}
    for entry in given or ():
        key, separator, value = entry.partition("=")
        if not (key and separator and value):
            raise InputError(f"--set {entry}: KEY=VALUE is asked for")
        if key not in section.model_fields or key in others:
            raise InputError(f"--set {key}: there is none{nearest(key, section.model_fields.keys() - others)}")
        values[key] = value
    try:
        return section.model_validate({**others, **values})
    except ValidationError as error:
        raise InputError(f"--set: {describe(error)}") from error


class Grouped(TyperCommand):
    """A command whose help groups its options under their ``rich_help_panel``."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                default = "Arguments" if param.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(param, "rich_help_panel", None) or default, []).append(record)
        for heading in sorted(groups, key=lambda name: (name != "Arguments", name == "Options")):
            with formatter.section(heading):
                formatter.write_dl(groups[heading])


class ManyValues(Grouped):
    """Options that may repeat also take several values at once, ``--run runs/*.run``; arguments come first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read ``--run A B`` as ``--run A --run B``."""
        repeatable = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        needed = any(param.param_type_name == "argument" and param.required for param in self.params)
        if needed and args and args[0].startswith("-"):  # an argument at the end would be read as a value
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, list(_repeat_options(args, repeatable)))


def _repeat_options(args: list[str], repeatable: set[str]) -> Iterator[str]:
    option, values = "", 0
    for word in args:
        if word.startswith("-"):
            option, values = word, 0
        elif option in repeatable:
            values += 1
            if values > 1:
                yield option
        yield word


GradesFile = Annotated[
    Path, typer.Argument(metavar="GRADES", help="the workbench's graded jsonl.gz, or a table qid, did, item, grade")
]
Runs = Annotated[
    list[Path] | None, typer.Option("--run", help="ranked passages, as a run in TREC format; may be repeated")
]
Llm = Annotated[str | None, typer.Option("--llm", help="model of the grader, if there are several graders")]
PromptName = Annotated[str | None, typer.Option("--prompt", help="prompt of the grader, if there are several prompts")]
MinGrade = Annotated[
    int | None,
    typer.Option("--min-grade", min=1, help="lowest grade that counts as covered; default: 4, or 1 if grades are 0/1"),
]
K = Annotated[int, typer.Option("--k", min=1, help="score only the first K passages of a response")]
