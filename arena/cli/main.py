"""The ``ragarena`` command: one app, one place where errors become exit statuses."""

from __future__ import annotations

import sys
from typing import NoReturn

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
from arena.cli.console import errors, printable
from judges.errors import InputError, RagarenaError, StoreError

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
    try:
        app()
    except (InputError, StoreError) as error:
        _end(2, f"error: {error}")
    except RagarenaError as error:
        _end(1, f"error: {error}")
    except SystemExit as ending:
        if ending.code == _INTERRUPTED:  # typer makes this of a KeyboardInterrupt
            errors.print("stopped; what was judged is kept, run again to go on")
        raise


def _end(status: int, message: str) -> NoReturn:
    errors.print(printable(message))
    sys.exit(status)
