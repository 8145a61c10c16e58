"""``calibrate`` from tables and from a tournament: reads, compares, writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena.calibration.comparison import Comparison
from arena.calibration.consensus import Method
from arena.calibration.estimates import Wish
from arena.calibration.judge_people import Against, OrdersOfGames, Settings
from arena.cli.agreement_shapes import flattened
from arena.cli.calibrate_estimates import estimates_json, print_estimates
from arena.cli.calibrate_methods import (
    judges_json,
    methods_json,
    pair_rows,
    print_judges,
    print_methods,
    print_styles,
    write_scatter,
)
from arena.cli.calibrate_output import print_comparisons, print_disagreements
from arena.cli.calibrate_plot import write_bland_altman
from arena.cli.calibrate_shapes import comparison_json, comparison_rows
from arena.cli.console import errors, output, print_json, rounded
from arena.cli.figures import say
from arena.cli.markup import print_csv
from arena.cli.sources import open_tournament
from arena.opinions.tables import Tables, compare_tables, read_people, texts_of
from arena.opinions.tournament import calibrate_tournament, resampling_of
from judges.errors import InputError


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, of tables and of a tournament alike."""

    people: Tables
    consensus: Method
    samples: int | None
    seed: int | None
    wish: Wish | None
    disagreements: int
    plot: Path | None
    form: str
    against: Against
    games: OrdersOfGames

    def settings(self, own: Settings) -> Settings:
        """As asked for; what is not is as ``own`` has it."""
        samples = own.samples if self.samples is None else self.samples
        seed = own.seed if self.seed is None else self.seed
        return Settings(self.consensus, samples, seed, self.against, self.games)


def calibrate_tables(
    judges: Tables, request: Request, texts: tuple[Path | None, Sequence[Path], Sequence[Path]]
) -> None:
    """Hold tables of judges against tables of people."""
    if not request.people.paths:
        raise InputError("--people: name the tables of what people said")
    settings = request.settings(Settings())
    found = compare_tables(judges, request.people, settings, most=request.disagreements, wish=request.wish)
    if request.plot is not None:
        write_bland_altman(request.plot, found.comparisons)
    if request.form == "json":
        print_json({**_comparisons_json(found.comparisons, settings), "notes": found.notes})
        return
    if request.form == "csv":
        print_csv([row for one in found.comparisons for row in comparison_rows(one)])
    else:
        print_comparisons(found.comparisons, settings.against)
        print_estimates(found.comparisons)
        print_disagreements(found.comparisons, texts_of(*texts))
    _say(found.notes, request)


def calibrate_store(source: str, tournament: str | None, request: Request, method_samples: int) -> None:
    """Hold a tournament's methods against each other, and its judges against people."""
    people, notes = read_people(request.people)
    store, name = open_tournament(source, tournament)
    settings = request.settings(resampling_of(store.settings(name)))
    found = calibrate_tournament(
        store,
        name,
        people,
        settings,
        method_samples=method_samples,
        most=request.disagreements,
        wish=request.wish,
    )
    store.close()
    if found.outdated:
        notes = (*notes, f"{found.outdated:,} annotations are of texts that have changed since: left out")
    notes = (*notes, *(f"{level}: people spoke of nothing that a judge judged: left out" for level in found.apart))
    if request.plot is not None:
        write_scatter(request.plot, found.methods)
    if request.form == "json":
        styles = [flattened(one) for one in found.styles]
        shape = {
            "tournament": name,
            "style": styles,
            "methods": methods_json(found.methods),
            "judges": judges_json(found),
        }
        print_json({**rounded(shape), **_comparisons_json(found.comparisons, settings), "notes": notes})
        return
    if request.form == "csv":
        print_csv([rounded(row) for row in pair_rows(found.methods)])
    else:
        print_methods(found.methods)
        print_judges(found)
        print_styles(found)
        if found.comparisons:
            output.print()
            print_comparisons(found.comparisons, settings.against)
            print_estimates(found.comparisons)
            print_disagreements(found.comparisons, found.texts)
    _say(notes, request)


def _comparisons_json(comparisons: Iterable[Comparison], how: Settings) -> dict[str, Any]:
    shapes = []
    for one in comparisons:
        shape = comparison_json(one)
        for name, report in one.judges.items():
            if report.estimates is not None:
                shape["judges"][name]["estimates"] = rounded(estimates_json(report.estimates))
        shapes.append(shape)
    settings: dict[str, Any] = {"consensus": how.method, "samples": how.samples, "seed": how.seed}
    settings |= {"against": how.against, "games": how.games}
    return {"comparisons": shapes, "settings": settings}


def _say(notes: Iterable[str], request: Request) -> None:
    for note in notes:
        say(note, errors if request.form == "csv" else output)
