"""The ``ragarena`` command: one app, one place where errors become exit statuses."""

from __future__ import annotations

import sys

import typer

from arena.cli import board, data, page, tournament
from arena.cli.console import errors
from judges.errors import InputError, RagarenaError

app = typer.Typer(
    name="ragarena",
    help="Decide which of your RAG systems is better, and whether the judge that says so can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group in (tournament, board, data, page):
    group.register(app)


def main() -> None:
    """Run the command line; exit 0 done, 1 cannot go on, 2 wrong input, 3 done but incomplete."""
    try:
        app()
    except InputError as error:
        errors.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except RagarenaError as error:
        errors.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("stopped; what was judged is kept, run again to go on", markup=False)
        sys.exit(130)
