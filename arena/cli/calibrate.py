"""``calibrate``: whether a judge can be trusted, by what people say of the same things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.options import Form, ManyValues
from judges.errors import InputError

if TYPE_CHECKING:
    from arena.boards.calibration.board import Calibration


class Consensus(StrEnum):
    """How several people become one."""

    MAJORITY = "majority"
    DAWID_SKENE = "dawid-skene"


class Against(StrEnum):
    """What a judge is held against."""

    CONSENSUS = "consensus"
    VOTES = "votes"


class Orders(StrEnum):
    """What the two orders of a game are."""

    RECONCILED = "reconciled"
    ORDERED = "ordered"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("calibrate", cls=ManyValues)(calibrate)


def calibrate(
    sources: Annotated[
        list[str], typer.Argument(metavar="CONFIG|STORE|TABLE...", help="a tournament, or tables of what judges said")
    ],
    people: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="tables of what people said")] = None,
    item: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="a further column that tells things of one query apart")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="compare each value of this column by itself")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COLUMN", help="the judges' files' name for a column")
    ] = None,
    people_column: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COLUMN", help="the people's files' name for a column")
    ] = None,
    skip_empty: Annotated[bool, typer.Option("--skip-empty", help="leave out and count rows without a value")] = False,
    consensus: Annotated[Consensus, typer.Option(help="how several people become one")] = Consensus.MAJORITY,
    against: Annotated[
        Against, typer.Option(help="hold judges against people's consensus, or against every single vote")
    ] = Against.CONSENSUS,
    games: Annotated[
        Orders, typer.Option(help="fold the two orders of a game into one verdict, or take each as a game of its own")
    ] = Orders.RECONCILED,
    disagreements: Annotated[int, typer.Option(min=0, help="things listed that a judge and people see differently")] = (
        0
    ),
    queries: Annotated[Path | None, typer.Option(metavar="FILE", help="texts of queries, for disagreements")] = None,
    answers: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="texts of answers")] = None,
    documents: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="texts of documents")] = None,
    estimates: Annotated[
        bool, typer.Option("--estimates", help="means, win rates and ratings corrected by people's labels")
    ] = False,
    width: Annotated[
        float | None, typer.Option(help="say how many labels an estimate's interval of this width needs")
    ] = None,
    label_next: Annotated[int, typer.Option("--next", min=0, help="list this many things to label next")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="of tables Bland-Altman plots, of a tournament agents by every two methods; .svg, .png or .html",
        ),
    ] = None,
    tournament: Annotated[str | None, typer.Option(help="its name, where the store holds several")] = None,
    method_samples: Annotated[
        int, typer.Option(min=0, help="bootstrap samples of the correlations between a tournament's methods")
    ] = 200,
    samples: Annotated[
        int | None,
        typer.Option(min=0, help="bootstrap samples of the intervals; else the tournament's, or 1000"),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="of the samples; else the tournament's, or 0")] = None,
    form: Form = "table",
) -> None:
    """Whether a judge can be trusted: judges held against people.

    Of a tournament also how its ways of scoring agents agree with each other.

    Tables hold verdicts, relevance labels, grades or nugget assignments, told apart by their columns. Of a tournament
    the judges' opinions are in its store; people's come from --people, from the
    pages, and from the data's qrels.
    """
    from arena.boards.rated_tables import column_names
    from arena.calibration.comparison import Settings
    from arena.cli.console import errors, printable
    from arena.cli.show import show
    from arena.cli.sources import open_tournament
    from arena.people.calibrate import Tables, calibrate_tables, calibrate_tournament, resampling_of, texts_of
    from arena.people.files import Reading
    from retrieval_eval.data.rows import known_format

    if width is not None and not width > 0:
        raise InputError(f"--width: more than 0, not {width:g}")
    reading = Reading(tuple(item or ()), by, column_names(column or ()), skip_empty)
    human = replace(reading, columns=column_names(people_column or (), "--people-column"))
    said = Tables(people or [], human)
    wanted = label_next if estimates or width is not None or label_next else None

    def settings(own: Settings) -> Settings:
        own_samples, own_seed = own.samples if samples is None else samples, own.seed if seed is None else seed
        return Settings(consensus.value, own_samples, own_seed, against.value, games.value)

    if all(known_format(source) for source in sources):
        if not people:
            raise InputError("--people: name the tables of what people said")
        found = calibrate_tables(
            Tables([Path(source) for source in sources], reading),
            said,
            settings(Settings()),
            texts=texts_of(queries, documents or (), answers or ()),
            most=disagreements,
            label_next=wanted,
        )
    else:
        given = {"--item": item, "--by": by, "--column": column, "--queries": queries, "--answers": answers}
        _require_tournament(sources, {**given, "--documents": documents})
        with open_tournament(sources[0], tournament) as (store, name):
            found = calibrate_tournament(
                store,
                name,
                settings(resampling_of(store.settings(name))),
                said,
                method_samples=method_samples,
                most=disagreements,
                label_next=wanted,
            )
    if plot is not None:
        _plot(plot, found)
    show(replace(found, width=width), form)
    if form == "csv":
        for note in found.notes:
            errors.print(printable(note))


def _require_tournament(sources: Sequence[str], of_tables: Mapping[str, object]) -> None:
    if len(sources) > 1:
        raise InputError(f"{sources[0]}, {sources[1]}: one tournament, or tables only")
    for option, value in of_tables.items():
        if value:
            raise InputError(f"{option}: goes with tables; {sources[0]} is a tournament, which has its own")


def _plot(path: Path, found: Calibration) -> None:
    from arena.boards.calibration.methods import method_charts
    from arena.boards.calibration.people import difference_charts
    from arena.present.files import save_plot

    if found.methods is None:
        charts, why_not = difference_charts(found.comparisons), "verdicts have no differences, labels and grades have"
    else:
        charts, why_not = method_charts(found.methods), "no two methods score three agents or more"
    if not charts:
        raise InputError(f"--plot: {why_not}")
    save_plot(path, charts, "judges minus people" if found.methods is None else "methods against each other")
