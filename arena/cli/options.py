"""Options that several commands have, and those that take several values at once."""

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
Tournament = Annotated[str | None, typer.Option(help="its name, where the store holds several")]
BelowCoverage = Annotated[
    bool, typer.Option("--below-coverage", help="rate also where less is judged than ratings.min_coverage")
]
Form = Annotated[
    Literal["table", "json", "csv", "md", "html", "latex"],
    typer.Option("--format", help="table for people, json for programs; csv, md, html, latex: the first table"),
]
Told = Annotated[Literal["table", "json"], typer.Option("--format", help="table for people, json for programs")]
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
Seed = Annotated[int, typer.Option(min=0, help="of the samples")]
Samples = Annotated[int, typer.Option(min=0, max=100_000, help="bootstrap samples of the intervals")]
OfQueries = Annotated[
    Path | None,
    typer.Option("--queries", metavar="FILE", help="the queries; turns of one conversation are then drawn together"),
]
SkipFaulty = Annotated[
    bool, typer.Option("--skip-faulty", help="leave out and count lines that are wrong or empty, and go on")
]
Force = Annotated[bool, typer.Option("--force", help="write over a file that is there")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="ask again about all failures, also refused or unusable replies")
]
LogJson = Annotated[
    Path | None,
    typer.Option("--log-json", metavar="FILE", help="add a JSON line per call to FILE; no text of any prompt or reply"),
]


def given_options(ctx: typer.Context) -> set[str]:
    """The options that the command line gives, by their names."""
    return {
        param.opts[0]
        for param in ctx.command.params
        if param.param_type_name == "option" and _on_the_command_line(ctx, param.name)
    }


def _on_the_command_line(ctx: typer.Context, name: str | None) -> bool:
    source = ctx.get_parameter_source(name or "")
    return source is not None and source.name == "COMMANDLINE"


def require_free(out: Path, force: bool) -> None:
    """A file that a person may have edited is not written over unasked."""
    if out.exists() and not force:
        raise InputError(f"{out}: is there already; name another file, or say --force")


def require_unused(why: str, given: Mapping[str, object]) -> None:
    """Refuse options that have a value and do not go with something.

    Args:
        why: what they do not go with, as an error says it.
        given: values by option; none where it was not given.

    Raises:
        InputError: one was given.
    """
    if wrong := [option for option, value in given.items() if value]:
        raise InputError(f"{', '.join(wrong)}: does not go with {why}")


Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a setting that is seldom needed; repeat")
]
_Section = TypeVar("_Section", bound="Section")


def read_set(section: type[_Section], given: Sequence[str] | None, **others: object) -> _Section:
    """The settings that ``--set`` gives, checked as those of a YAML file are.

    Args:
        section: what there is to set.
        given: ``KEY=VALUE``.
        others: values that other options give.

    Raises:
        InputError: an entry is none, or a key or a value is wrong.
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
    """A command whose help lists its options under the headings that they name as ``rich_help_panel``."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options by heading."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                of_its_kind = "Arguments" if param.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(param, "rich_help_panel", None) or of_its_kind, []).append(record)
        for heading in sorted(groups, key=lambda name: (name != "Arguments", name == "Options")):
            with formatter.section(heading):
                formatter.write_dl(groups[heading])


class ManyValues(Grouped):
    """Repeatable options also take their values in one go: ``--run runs/*.run``; arguments come before them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read ``--run A B`` as ``--run A --run B``."""
        repeatable = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        needed = any(param.param_type_name == "argument" and param.required for param in self.params)
        if needed and args and args[0].startswith("-"):  # the argument comes last, where a value might be
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, list(_spread(args, repeatable)))


def _spread(args: list[str], repeatable: set[str]) -> Iterator[str]:
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
    list[Path] | None, typer.Option("--run", help="passages in order, as a run of trec_eval; may be repeated")
]
Llm = Annotated[str | None, typer.Option("--llm", help="the grader's model, where there are several graders")]
PromptName = Annotated[str | None, typer.Option("--prompt", help="the grader's prompt, where there are several")]
MinGrade = Annotated[
    int | None, typer.Option("--min-grade", min=1, help="grade that counts as covered; 4, or 1 of 0/1")
]
K = Annotated[int, typer.Option("--k", min=1, help="passages of a response that count")]
