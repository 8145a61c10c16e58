"""Options that several commands have, and those that take several values at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

Source = Annotated[str, typer.Argument(metavar="CONFIG|STORE", help="a tournament's YAML file or its store")]
Tournament = Annotated[str | None, typer.Option(help="its name, where the store holds several")]
Form = Annotated[
    Literal["table", "json", "csv", "md", "html", "latex"],
    typer.Option("--format", help="table for people, json for programs; csv, md, html, latex: the first table"),
]
Told = Annotated[Literal["table", "json"], typer.Option("--format", help="table for people, json for programs")]
Details = Annotated[
    bool, typer.Option("--details", help="every table: neighbours, judges, grades, documents, costs, coverage")
]
Seed = Annotated[int, typer.Option(min=0, help="of the samples")]
Samples = Annotated[int, typer.Option(min=0, help="bootstrap samples of the intervals")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="also ask again where replies stayed outside their contract")
]
LogJson = Annotated[
    Path | None,
    typer.Option("--log-json", metavar="FILE", help="add a JSON line per call to FILE; no text of any prompt or reply"),
]


class ManyValues(TyperCommand):
    """A command without arguments whose repeatable options also take their values in one go: ``--run runs/*.run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read ``--run A B`` as ``--run A --run B``."""
        repeatable = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
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
