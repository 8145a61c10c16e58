"""The typer application: imports a command's module when it is called, and rewords the library's errors."""

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
from arena.cli.console import COLUMN_NOTES
from arena.cli.old_names import translate_old_names
from arena.cli.options import Grouped, ManyValues
from judges.errors import InputError

_TYPER: Final[Mapping[str, Any]] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


class _LateCommands(TyperGroup):
    """A group that imports a command's module only when the command is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - part of the interface
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            entry = COMMANDS[cmd_name]
            command = getattr(import_module(f"arena.cli.{entry.module}"), entry.function or cmd_name)
            group = typer.Typer(add_completion=False, **_TYPER)
            group.callback()(_no_options)  # otherwise typer makes the only command the whole program
            if isinstance(command, typer.Typer):
                group.add_typer(command, name=cmd_name)
            else:
                group.command(cmd_name, cls=ManyValues if entry.many_values else Grouped)(command)
            self.commands.update(get_group(group).commands)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        name, command, rest = super().resolve_command(ctx, translate_old_names(args))
        _require_once(command.params if command else (), rest)
        COLUMN_NOTES.listen(quiet=bool({"json", "--format=json"} & set(rest)))
        return name, command, rest

    def make_context(self, *args: Any, **more: Any) -> Any:
        with _clear_errors():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        with _clear_errors():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - part of the interface
        formatter.write(overview())


def _no_options() -> None:
    """A callback without options, which makes typer treat the program as a group of commands."""


def _print_version(asked: bool) -> None:
    if asked:
        from importlib import metadata  # late: this import takes as long as all others before a command

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
def _clear_errors() -> Iterator[None]:
    """Replace the library's errors by an ``InputError`` with a clear message.

    Raises:
        InputError: the command line is wrong.
    """
    try:
        yield
    except Exception as error:
        message = _message(error)
        if message is None:
            raise
        raise InputError(message) from error


def _message(error: Any) -> str | None:
    """The message for an error of the library, ``None`` for other errors; by class name, as its classes are private."""
    ctx: Any = getattr(error, "ctx", None)
    kind = type(error).__name__
    command = "" if ctx is None or ctx.parent is None else f"{ctx.command_path.partition(' ')[2]}: "
    message = None
    if kind == "MissingParameter":
        message = f"{command}{_name(error.param)} is missing: {error.param.help}"
    elif kind == "BadParameter" and error.param is not None:
        message = f"{_name(error.param)}: {_wrong_value(error)}"
    elif kind == "NoSuchOption":
        options = [name for param in ctx.command.params for name in param.opts if name.startswith("-")]
        message = f"{command}no option {error.option_name!r}{_suggestion(error.option_name, options, ctx)}"
    elif kind == "BadOptionUsage" and "requires" in error.message:
        message = f"{error.option_name}: a value is missing; write it after the option"
    elif kind == "BadOptionUsage":
        message = f"{error.option_name}: takes no value; leave out what follows '='"
    elif kind == "UsageError" and (
        match := re.fullmatch(r"Got unexpected extra argument\(s\) \((.*)\)", error.message)
    ):
        arguments = [_name(param) for param in ctx.command.params if param.param_type_name == "argument"]
        message = f"{command}{match[1]!r} is too much; give {' '.join(arguments) or 'options alone'}"
    elif kind == "UsageError" and (match := re.match(r"No such command '(.*?)'\.", error.message)):
        message = f"no command {match[1]!r}{_suggestion(match[1], ctx.command.list_commands(ctx), ctx)}"
    return message


def _suggestion(name: str, known: Sequence[str], ctx: Any) -> str:
    from judges.sections import did_you_mean

    return did_you_mean(name, known) or f"; '{ctx.command_path} --help' lists them"


def _name(param: Any) -> str:
    return str(param.opts[0] if param.param_type_name == "option" else param.metavar or param.name)


def _wrong_value(error: Any) -> str:
    """What a value must be, and what it is."""
    from pydantic import ValidationError

    from judges.sections import describe, did_you_mean

    message = describe(error.__cause__) if isinstance(error.__cause__, ValidationError) else str(error.message)
    if choice := re.fullmatch(r"'(.*)' is not one of (.*?)\.?", message):
        known = re.findall("'(.*?)'", choice[2])
        return f"must be {', '.join(known[:-1])} or {known[-1]}, not {choice[1]!r}{did_you_mean(choice[1], known)}"
    return message


def _require_once(params: Sequence[Any], words: Sequence[str]) -> None:
    """Refuse a single-value option that is given twice: the library would silently take the last value.

    Raises:
        InputError: an option is given twice.
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
        if earlier := given.get(single[option].name):
            raise InputError(
                f"{option}: is given twice; give it once"
                if earlier == option
                else f"{option}: says the opposite of {earlier}; give one of them"
            )
        given[single[option].name] = option
