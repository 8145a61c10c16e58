"""The ``ragarena`` command: one app, one place where errors become exit statuses."""

from __future__ import annotations

import os
import signal
import sys

import typer

from arena.cli import (
    agents,
    agents_run,
    bank,
    batches,
    board,
    calibrate,
    data,
    documents,
    exam,
    failures,
    metrics,
    nuggets,
    page,
    pool,
    qrels,
    queries,
    report,
    stores,
    synth,
    tournament,
    votes,
)
from arena.cli.console import INCOMPLETE, errors, printable
from arena.cli.streams import guard_streams, output_problem
from judges.errors import InputError, RagarenaError, StoreError, StoreGoneError

app = typer.Typer(
    name="ragarena",
    help="Decide which of your RAG systems is better, and whether the judge that says so can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group in (
    tournament,
    failures,
    batches,
    board,
    queries,
    report,
    metrics,
    qrels,
    nuggets,
    exam,
    bank,
    pool,
    agents,
    agents_run,
    calibrate,
    votes,
    documents,
    synth,
    data,
    stores,
    page,
):
    group.register(app)


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
