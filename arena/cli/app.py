"""The typer application: imports a command's module when the command is called, and reports errors in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from arena.cli.commands import ABOUT, COMMANDS, INTERRUPTED, Command, CommandGroup, Entry, overview
from arena.cli.console import COLUMN_NOTES, INCOMPLETE, errors, short_paths
from arena.present.numbers import printable
from judges.errors import InputError, RagleagueError, StoreError, StoreGoneError, reason
from judges.sections import describe, did_you_mean, nearest

_TYPER: Final[Mapping[str, Any]] = {"pretty_exceptions_enable": False, "rich_markup_mode": None}
_WRONG: Final[Any] = import_module(typer.BadParameter.__module__)
"""Typer's module of exceptions, found through a class in it, as its name differs between versions of typer."""


class _Leaf(TyperCommand):
    """A command whose help lists its options in groups, named by each option's ``rich_help_panel``."""

    allow_extra_args = True  # refused below, by name

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _require_once(self.params, args)
            COLUMN_NOTES.listen(quiet=bool({"json", "--format=json"} & set(args)))
        with _plain_errors(ctx):
            rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            arguments = [_name(param) for param in self.params if param.param_type_name == "argument"]
            choice = " ".join(arguments) or "options alone"
            raise InputError(f"{_at(ctx)}unexpected {' '.join(rest)!r}; this command takes {choice}")
        return rest

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


class _ManyValues(_Leaf):
    """A command whose repeatable options also take several values at once, as in ``--run runs/*.run``.

    If the command needs arguments, this works only when they come before the options.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read ``--run A B`` as ``--run A --run B``."""
        repeatable = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        needed = any(param.param_type_name == "argument" and param.required for param in self.params)
        if needed and args and args[0].startswith("-"):  # an argument at the end would be read as a value
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, list(_repeat_options(args, repeatable)))


class _Commands(TyperGroup):
    """A group that imports a command's module only when the command is called."""

    entries: Mapping[str, Entry] = COMMANDS

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - part of the interface
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - part of the interface
        if cmd_name not in self.commands and (entry := self.entries.get(cmd_name)) is not None:
            self.commands[cmd_name] = self.made(cmd_name, entry)
        return self.commands.get(cmd_name)

    def made(self, name: str, entry: Entry) -> Any:
        return _Subcommands(name, entry) if isinstance(entry, CommandGroup) else _command(name, entry)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _plain_errors(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and args[0] not in self.entries:
            names = [*self.entries]
            hint = nearest(args[0], names) if ctx.parent else _suggestion(args[0], names, ctx)
            raise InputError(f"{_at(ctx)}no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - part of the interface
        formatter.write(overview(str(self.name)))


class _Subcommands(_Commands):
    """A group of commands with a common first word, such as ``make``."""

    def __init__(self, name: str, group: CommandGroup) -> None:
        super().__init__(name=name, help=group.summary, no_args_is_help=True, rich_markup_mode=None)
        self.entries = group.commands

    def made(self, name: str, entry: Entry) -> Any:
        assert isinstance(entry, Command)
        return _command(f"{self.name} {name}", entry)


def _command(words: str, entry: Command) -> Any:
    """Import the function behind an entry of the table of commands, and build the typer command that calls it.

    ``words`` is the command as the user types it, such as ``make bank``.
    """
    function = getattr(import_module(f"arena.cli.{entry.module}"), words.replace(" ", "_").replace("-", "_"))
    alone = typer.Typer(add_completion=False, **_TYPER)
    alone.command(words.rsplit(maxsplit=1)[-1], cls=_ManyValues if entry.many_values else _Leaf)(function)
    return typer.main.get_command(alone)


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


app = typer.Typer(name="ragleague", cls=_Commands, help=ABOUT, no_args_is_help=True, **_TYPER)
app.callback()(_options)


def run_app() -> int:
    """Run the command that ``sys.argv`` names, print its error if it fails, and return its exit status."""
    try:
        with _explained_damage():
            app()
    except StoreGoneError as error:
        return _report_error(INCOMPLETE, error)
    except RagleagueError as error:
        return _report_error(2 if isinstance(error, InputError | StoreError) else 1, error)
    except OSError as error:
        if error.filename is None:
            raise
        return _report_error(2, InputError(f"{error.filename}: {reason(error)}"))
    except SystemExit as ending:
        if ending.code == INTERRUPTED:  # typer turns a KeyboardInterrupt into this
            COLUMN_NOTES.clear()
            errors.print("stopped; what was judged is kept, run again to go on")
        return int(ending.code or 0)
    finally:
        COLUMN_NOTES.print_new()
    return 0


@contextmanager
def _explained_damage() -> Iterator[None]:
    """Replace an error in the block that a damaged store has caused by an error that names the store and the damage."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        from arena.store.check import damage_behind  # late: many commands open no store

        if (damage := damage_behind()) is None:
            raise
        raise damage from error


def _report_error(status: int, error: RagleagueError) -> int:
    COLUMN_NOTES.clear()
    errors.print(printable(short_paths(f"error: {error}")))
    return status


@contextmanager
def _plain_errors(ctx: Any) -> Iterator[None]:
    """Replace typer's error for a wrong command line by an ``InputError`` that says what to do."""
    try:
        yield
    except _WRONG.NoSuchOption as error:
        options = [name for param in ctx.command.params for name in param.opts if name.startswith("-")]
        hint = _suggestion(error.option_name, options, ctx)
        raise InputError(f"{_at(ctx)}no option {error.option_name!r}{hint}") from error
    except _WRONG.BadOptionUsage as error:
        name = error.option_name
        (option,) = (param for param in ctx.command.params if name in (*param.opts, *param.secondary_opts))
        fault = "takes no value; leave out what follows '='"
        if not option.is_flag:
            fault = "a value is missing; write it after the option"
        raise InputError(f"{name}: {fault}") from error
    except _WRONG.MissingParameter as error:
        raise InputError(f"{_at(ctx)}{_name(error.param)} is missing: {error.param.help}") from error
    except _WRONG.BadParameter as error:
        raise InputError(f"{_name(error.param)}: {_wrong_value(error)}") from error


def _words(ctx: Any) -> str:
    """Words of the command after ``ragleague``, such as ``make bank``; empty for ``ragleague`` alone."""
    return f"{_words(ctx.parent)} {ctx.info_name}".strip() if ctx.parent else ""


def _at(ctx: Any) -> str:
    return f"{_words(ctx)}: " if ctx.parent else ""


def _suggestion(name: str, known: Sequence[str], ctx: Any) -> str:
    return did_you_mean(name, known) or f"; '{f'ragleague {_words(ctx)}'.strip()} --help' lists them"


def _name(param: Any) -> str:
    return str(param.opts[0] if param.param_type_name == "option" else param.metavar or param.name)


def _wrong_value(error: Any) -> str:
    """Say which values an option allows, and which value was given."""
    kind, value = error.param.type_descriptor, error.__cause__.errors()[0]["input"]
    if choices := [str(getattr(choice, "value", choice)) for choice in kind.choices or ()]:
        named = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
        return f"must be {named}, not {value!r}{did_you_mean(value, choices)}"
    if kind.is_datetime:
        return f"must be a date such as 2030-12-31, not {value!r}"
    return describe(error.__cause__)


def _require_once(params: Sequence[Any], words: Sequence[str]) -> None:
    """Refuse an option that takes one value and is given twice: typer would silently use the last value."""
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
