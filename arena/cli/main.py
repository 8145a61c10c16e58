"""The ``ragarena`` command: one app, one place where errors become exit statuses."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from arena.cli.console import INCOMPLETE, errors, printable
from arena.cli.streams import guard_streams, output_problem
from judges.errors import InputError, RagarenaError, StoreError, StoreGoneError

_MODULES: Final[Mapping[str, Sequence[str]]] = {
    "demo": ["tournament"],
    "init": ["tournament"],
    "plan": ["tournament"],
    "run": ["tournament"],
    "failures": ["failures"],
    "batches": ["batches"],
    "leaderboard": ["board"],
    "rate": ["board"],
    "queries": ["queries"],
    "report": ["report"],
    "metrics": ["metrics"],
    "pool": ["pool"],
    "calibrate": ["calibrate"],
    "documents": ["documents"],
    "synth": ["synth"],
    "import": ["data"],
    "export": ["data"],
    "ui": ["page"],
    "doctor": ["page"],
    "qrels": ["qrels"],
    "nuggets": ["nuggets"],
    "exam": ["exam"],
    "bank": ["bank"],
    "agents": ["agents", "agents_run"],
    "votes": ["votes"],
    "store": ["stores"],
}
"""The modules of ``arena.cli`` that define each command, in the order of ``--help``."""

_TYPER: Final[Mapping[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


class _LateCommands(TyperGroup):
    """Commands whose modules are imported when they are named; ``--help`` imports all."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the interface's
        return list(_MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        names = [cmd_name] if cmd_name in _MODULES else _MODULES  # of a wrong name, all: the message suggests one
        modules = dict.fromkeys(module for name in names if name not in self.commands for module in _MODULES[name])
        if modules:
            late = typer.Typer(**_TYPER)
            late.callback()(_no_options)  # without it, one command would be the whole program
            for module in modules:
                import_module(f"arena.cli.{module}").register(late)
            self.commands.update(get_group(late).commands)
        return super().get_command(ctx, cmd_name)


def _no_options() -> None:
    """Every command has its own options."""


app = typer.Typer(
    name="ragarena",
    cls=_LateCommands,
    help="Decide which of your RAG systems is better, and whether the judge that says so can be trusted.",
    no_args_is_help=True,
    **_TYPER,
)
app.callback()(_no_options)


_INTERRUPTED = 130


def main() -> None:
    """Run the command line; exit 0 done, 1 cannot go on, 2 wrong input or no usable store, 3 done but incomplete."""
    guard_streams()
    if os.getpid() == 1:  # of a container: the system ends process 1 only at signals that it handles
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    status = _status()
    unwritten, reason = output_problem()
    if reason is not None:
        errors.print(f"error: standard output: {reason}")
    sys.exit(status or unwritten)


def _status() -> int:
    """Run a command; returns its exit status."""
    try:
        app()
    except StoreGoneError as error:
        return _failed(INCOMPLETE, error)
    except (InputError, StoreError) as error:
        return _failed(2, error)
    except RagarenaError as error:
        return _failed(1, error)
    except SystemExit as ending:
        if ending.code == _INTERRUPTED:  # typer makes this of a KeyboardInterrupt
            errors.print("stopped; what was judged is kept, run again to go on")
        return int(ending.code or 0)
    return 0


def _failed(status: int, error: RagarenaError) -> int:
    errors.print(printable(f"error: {error}"))
    return status
