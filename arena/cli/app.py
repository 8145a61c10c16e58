"""The typer application: commands are imported when they are named, and a wrong line is said in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from arena.cli.commands import ABOUT, COMMANDS, overview
from arena.cli.console import WHAT_IS_READ
from arena.cli.old_names import renewed
from arena.cli.options import Grouped, ManyValues
from judges.errors import InputError

_TYPER: Final[Mapping[str, Any]] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


class _LateCommands(TyperGroup):
    """Commands whose modules are imported when they are named."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the interface's
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            own = COMMANDS[cmd_name]
            found = getattr(import_module(f"arena.cli.{own.module}"), own.called or cmd_name)
            late = typer.Typer(add_completion=False, **_TYPER)
            late.callback()(_no_options)  # without it, one command would be the whole program
            if isinstance(found, typer.Typer):
                late.add_typer(found, name=cmd_name)
            else:
                late.command(cmd_name, cls=ManyValues if own.spread else Grouped)(found)
            self.commands.update(get_group(late).commands)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        name, command, rest = super().resolve_command(ctx, renewed(args))
        _require_once(command.params if command else (), rest)
        WHAT_IS_READ.begin(aloud=not {"json", "--format=json"} & set(rest))
        return name, command, rest

    def make_context(self, *args: Any, **more: Any) -> Any:
        with _in_our_words():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        with _in_our_words():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the interface's
        formatter.write(overview())


def _no_options() -> None:
    """Every command has its own options."""


def _print_version(asked: bool) -> None:
    if asked:
        from importlib import metadata  # late: it takes as long as all else that is read before a command

        typer.echo(f"ragleague {metadata.version('ragleague')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app = typer.Typer(name="ragleague", cls=_LateCommands, help=ABOUT, no_args_is_help=True, **_TYPER)
app.callback()(_options)


@contextmanager
def _in_our_words() -> Iterator[None]:
    """Turn the library's errors into ours.

    Raises:
        InputError: the command line is wrong.
    """
    try:
        yield
    except Exception as error:
        said = _said(error)
        if said is None:
            raise
        raise InputError(said) from error


def _said(error: Any) -> str | None:
    """What an error of the library says to the reader, nothing for other errors. Its classes are not public."""
    ctx: Any = getattr(error, "ctx", None)
    kind = type(error).__name__
    command = "" if ctx is None or ctx.parent is None else f"{ctx.command_path.partition(' ')[2]}: "
    said = None
    if kind == "MissingParameter":
        said = f"{command}{_name(error.param)} is missing: {error.param.help}"
    elif kind == "BadParameter" and error.param is not None:
        said = f"{_name(error.param)}: {_wrong_value(error)}"
    elif kind == "NoSuchOption":
        options = [name for param in ctx.command.params for name in param.opts if name.startswith("-")]
        said = f"{command}no option {error.option_name!r}{_instead(error.option_name, options, ctx)}"
    elif kind == "BadOptionUsage" and "requires" in error.message:
        said = f"{error.option_name}: a value is missing; write it after the option"
    elif kind == "BadOptionUsage":
        said = f"{error.option_name}: takes no value; leave out what follows '='"
    elif kind == "UsageError" and (
        found := re.fullmatch(r"Got unexpected extra argument\(s\) \((.*)\)", error.message)
    ):
        takes = [_name(param) for param in ctx.command.params if param.param_type_name == "argument"]
        said = f"{command}{found[1]!r} is too much; give {' '.join(takes) or 'options alone'}"
    elif kind == "UsageError" and (found := re.match(r"No such command '(.*?)'\.", error.message)):
        said = f"no command {found[1]!r}{_instead(found[1], ctx.command.list_commands(ctx), ctx)}"
    return said


def _instead(name: str, known: Sequence[str], ctx: Any) -> str:
    from judges.sections import did_you_mean

    return did_you_mean(name, known) or f"; '{ctx.command_path} --help' lists them"


def _name(param: Any) -> str:
    return str(param.opts[0] if param.param_type_name == "option" else param.metavar or param.name)


def _wrong_value(error: Any) -> str:
    """What a value must be, and what it is."""
    from pydantic import ValidationError

    from judges.sections import describe, did_you_mean

    said = describe(error.__cause__) if isinstance(error.__cause__, ValidationError) else str(error.message)
    if choice := re.fullmatch(r"'(.*)' is not one of (.*?)\.?", said):
        known = re.findall("'(.*?)'", choice[2])
        return f"must be {', '.join(known[:-1])} or {known[-1]}, not {choice[1]!r}{did_you_mean(choice[1], known)}"
    return said


def _require_once(params: Sequence[Any], words: Sequence[str]) -> None:
    """Refuse an option that is given twice and takes one value: the library would take the last.

    Raises:
        InputError: an option stands twice.
    """
    single = {
        name: param
        for param in params
        if param.param_type_name == "option" and not param.multiple
        for name in (*param.opts, *param.secondary_opts)
    }
    given: dict[str, str] = {}
    for word in words[: words.index("--") if "--" in words else None]:
        option = word.partition("=")[0]
        if option not in single:
            continue
        if before := given.get(single[option].name):
            raise InputError(
                f"{option}: is given twice; give it once"
                if before == option
                else f"{option}: says the opposite of {before}; give one of them"
            )
        given[single[option].name] = option
