"""The typer application: commands are imported when they are named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module, metadata
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from arena.cli.commands import ABOUT, COMMANDS, overview
from arena.cli.old_names import renewed

_TYPER: Final[Mapping[str, Any]] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


_OUR_WORDS: Final = {
    r"^Value error, ": "",
    r"^Input should be greater than or equal to ": "must be at least ",
    r"^Input should be greater than ": "must be more than ",
    r"^Input should be less than or equal to ": "must be at most ",
    r"^Input should be less than ": "must be less than ",
    r"^Input should be a valid integer.*": "must be a whole number",
    r"^Input should be a valid number.*": "must be a number",
}
"""By what the library says of an option's value."""


class _LateCommands(TyperGroup):
    """Commands whose modules are imported when they are named."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the interface's
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        names = [cmd_name] if cmd_name in COMMANDS else COMMANDS  # of a wrong name, all: the message suggests one
        modules = dict.fromkeys(COMMANDS[name].module for name in names if name not in self.commands)
        if modules:
            late = typer.Typer(add_completion=False, **_TYPER)
            late.callback()(_no_options)  # without it, one command would be the whole program
            for module in modules:
                import_module(f"arena.cli.{module}").register(late)
            self.commands.update(get_group(late).commands)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if ctx.resilient_parsing else renewed(args))

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what is wrong with an option is said in our words, not in those of the library that checks."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if hasattr(error, "param_hint") and isinstance(said := getattr(error, "message", None), str):
                for theirs, ours in _OUR_WORDS.items():
                    said = re.sub(theirs, ours, said)
                error.message = said  # type: ignore[attr-defined]
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the interface's
        formatter.write(overview())


def _no_options() -> None:
    """Every command has its own options."""


def _print_version(asked: bool) -> None:
    if asked:
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
