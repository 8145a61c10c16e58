"""``calibrate``: whether a judge can be trusted, by what people say of the same things."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from arena.cli.options import ManyValues
from judges.errors import InputError


class Format(StrEnum):
    """How calibration is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Consensus(StrEnum):
    """How several people become one."""

    MAJORITY = "majority"
    DAWID_SKENE = "dawid-skene"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("calibrate", cls=ManyValues)(calibrate)


def calibrate(
    sources: Annotated[list[str], typer.Argument(metavar="JUDGE...", help="tables of what judges said")],
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
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Bland-Altman plots as .svg or .html")] = None,
    samples: Annotated[int, typer.Option(min=0, help="bootstrap samples of the intervals")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of the samples")] = 0,
    form: Annotated[Format, typer.Option("--format", help="table, json or csv")] = Format.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="the same as --format json")] = False,
) -> None:
    """Hold judges against people on whatever both judged.

    Tables of verdicts, relevance labels, grades or nugget assignments, told apart by their columns.
    """
    from arena.calibration.estimates import Wish
    from arena.calibration.judge_people import Settings
    from arena.cli.calibrate_estimates import estimates_json, print_estimates
    from arena.cli.calibrate_output import print_comparisons, print_disagreements
    from arena.cli.calibrate_shapes import comparison_json, comparison_rows
    from arena.cli.console import errors, output, print_json, rounded
    from arena.cli.figures import say
    from arena.cli.markup import print_csv
    from arena.opinions.files import Reading
    from arena.opinions.tables import Tables, compare_tables, texts_of
    from arena.rated_tables import column_names

    if not people:
        raise InputError("--people: name the tables of what people said")
    if width is not None and not width > 0:
        raise InputError(f"--width: more than 0, not {width:g}")
    how = Settings(consensus.value, samples, seed)
    reading = Reading(tuple(item or ()), by, column_names(column or ()), skip_empty)
    human = replace(reading, columns=column_names(people_column or (), "--people-column"))
    wish = Wish(width, label_next, seed) if estimates or width is not None or label_next else None
    of_judges = Tables([Path(name) for name in sources], reading)
    found = compare_tables(of_judges, Tables(people, human), how, most=disagreements, wish=wish)
    shown = "json" if as_json else form.value
    if plot is not None:
        from arena.cli.calibrate_plot import write_bland_altman

        write_bland_altman(plot, found.comparisons)
    if shown == "json":
        settings = {"consensus": how.method, "samples": samples, "seed": seed}
        comparisons = [comparison_json(one) for one in found.comparisons]
        for shape, one in zip(comparisons, found.comparisons, strict=True):
            for name, report in one.judges.items():
                if report.estimates is not None:
                    shape["judges"][name]["estimates"] = rounded(estimates_json(report.estimates))
        print_json({"comparisons": comparisons, "notes": found.notes, "settings": settings})
        return
    if shown == "csv":
        print_csv([row for one in found.comparisons for row in comparison_rows(one)])
    else:
        print_comparisons(found.comparisons)
        print_estimates(found.comparisons)
        print_disagreements(found.comparisons, texts_of(queries, documents or (), answers or ()))
    for note in found.notes:
        say(note, errors if shown == "csv" else output)
