"""``calibrate``: compare judges with people who judged the same items, to see whether the judges can be trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec.structs import replace

from arena.boards.calibration.board import CalibrationBoard
from arena.boards.calibration.methods import method_charts
from arena.boards.calibration.people import difference_charts
from arena.boards.rated_tables import column_names
from arena.calibration.comparison import Settings
from arena.cli.console import errors, say
from arena.cli.options import Form, Tournament, Values
from arena.cli.show import show
from arena.cli.sources import open_tournament
from arena.data.verdict_words import meanings
from arena.present.files import save_plot
from arena.results.agreement import calibrate_tournament, resampling_of
from arena.results.opinion_tables import TableReading
from arena.results.table_agreement import Calibration, OpinionFiles, calibrate_tables, data_of
from arena.store import Store
from judges.errors import InputError
from retrieval_eval.data.files import open_replacing
from retrieval_eval.data.rows import known_format
from retrieval_eval.data.trec import is_qrels

_TABLES, _READING, _PEOPLE, _LABELS = "For tables", "How tables are read", "People", "What to label"
_CARD = "Judge card"
_OF_PEOPLE = "people:"
"""Prefix of option values that apply only to files with labels by people."""


def calibrate(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG|STORE|FILE...",
            help="a tournament, or tables of judges' verdicts; leave it out to compare agents by people's grades",
        ),
    ] = None,
    people: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="people's labels: tables or qrels", rich_help_panel=_PEOPLE),
    ] = None,
    consensus: Annotated[
        Literal["majority", "dawid-skene"],
        typer.Option(help="how several people's labels are combined", rich_help_panel=_PEOPLE),
    ] = "majority",
    against: Annotated[
        Literal["consensus", "votes"],
        typer.Option(help="compare judges with that consensus, or with every single vote", rich_help_panel=_PEOPLE),
    ] = "consensus",
    item: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="a further column that identifies an item of a query", rich_help_panel=_READING
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="compare separately for each value of this column", rich_help_panel=_READING
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="read NAME from the column COLUMN; people:NAME=COLUMN for people's files only",
            rich_help_panel=_READING,
        ),
    ] = None,
    value: Values = None,
    skip_faulty: Annotated[
        bool,
        typer.Option("--skip-faulty", help="skip rows without a value, and report how many", rich_help_panel=_READING),
    ] = False,
    as_games: Annotated[
        bool,
        typer.Option(
            "--as-games/--reconcile",
            help="count every row as one game, or reconcile both orders of a game",
            rich_help_panel=_READING,
        ),
    ] = False,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="the queries: to group conversations and to show texts of disagreements",
            rich_help_panel=_TABLES,
        ),
    ] = None,
    answers: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="texts of answers", rich_help_panel=_TABLES)
    ] = None,
    documents: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="texts of documents", rich_help_panel=_TABLES)
    ] = None,
    disagreements: Annotated[
        int,
        typer.Option(min=0, help="list this many items on which a judge and people disagree", rich_help_panel=_LABELS),
    ] = 0,
    estimates: Annotated[
        bool,
        typer.Option(
            "--estimates",
            help="show means, win rates and ratings corrected by people's labels",
            rich_help_panel=_LABELS,
        ),
    ] = False,
    width: Annotated[
        float | None,
        typer.Option(help="show how many labels an interval of this width needs", rich_help_panel=_LABELS),
    ] = None,
    label_next: Annotated[
        int, typer.Option("--next", min=0, help="list this many items to label next", rich_help_panel=_LABELS)
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="plot to .svg, .png or .html: Bland-Altman for tables; for a tournament, agents by each two methods",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.99,
            help="how much worse than a person a judge may be; default: the configuration's value, or 0.1",
            rich_help_panel=_CARD,
        ),
    ] = None,
    card: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="write a report on whether judges can replace people, as .json or .html; may be repeated",
            rich_help_panel=_CARD,
        ),
    ] = None,
    expires: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], help="last day on which the card is valid; default: in 90 days", rich_help_panel=_CARD
        ),
    ] = None,
    tournament: Tournament = None,
    method_samples: Annotated[
        int, typer.Option(min=0, help="bootstrap samples for the correlations between a tournament's methods")
    ] = 200,
    samples: Annotated[
        int | None,
        typer.Option(min=0, help="bootstrap samples for the intervals; default: the tournament's setting, or 1000"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="random seed of the samples; default: the tournament's setting, or 0")
    ] = None,
    form: Form = "table",
) -> None:
    """Compare judges with people, to see whether they can be trusted.

    For a tournament it also shows how well its ways of scoring agents agree with each other.

    Tables hold verdicts, relevance labels, grades or nugget assignments; the columns show which. Qrels are labels, and
    'agreement' shows more of them. A tournament's store has its judges' results; people's labels come from --people,
    from the pages and from the data's qrels. People's grades of answers also compare the agents: paired t tests for
    each criterion, corrected by Holm; '--people FILE' alone shows only these.
    """
    sources = sources or []
    _check_cards(card or [], sources)
    if width is not None and not width > 0:
        raise InputError(f"--width: must be more than 0, not {width:g}")
    people_columns = [entry.removeprefix(_OF_PEOPLE) for entry in column or () if entry.startswith(_OF_PEOPLE)]
    judge_columns = [entry for entry in column or () if not entry.startswith(_OF_PEOPLE)]
    words = meanings(entry for entry in value or () if not entry.startswith(_OF_PEOPLE))
    people_words = meanings(entry.removeprefix(_OF_PEOPLE) for entry in value or () if entry.startswith(_OF_PEOPLE))
    reading = TableReading(tuple(item or ()), by, column_names(judge_columns), words, skip_faulty)
    human = replace(reading, columns=column_names(people_columns), values={**words, **people_words})
    people_files = OpinionFiles(people or [], human)
    next_labels = label_next if estimates or width is not None or label_next else None

    def settings(defaults: Settings) -> Settings:
        return Settings(
            consensus,
            defaults.samples if samples is None else samples,
            defaults.seed if seed is None else seed,
            against,
            "ordered" if as_games else "reconciled",
            defaults.epsilon if epsilon is None else epsilon,
        )

    if all(known_format(source) or is_qrels(source) for source in sources):
        if not people:
            raise InputError("--people: name the tables with people's labels")
        calibration = calibrate_tables(
            OpinionFiles([Path(source) for source in sources], reading),
            people_files,
            settings(Settings()),
            data=data_of(queries, documents or (), answers or ()),
            most=disagreements,
            label_next=next_labels,
        )
    else:
        table_options = {"--item": item, "--by": by, "--column": column, "--queries": queries, "--answers": answers}
        _require_tournament(sources, {**table_options, "--documents": documents})
        with open_tournament(sources[0], tournament) as (store, name):
            calibration = calibrate_tournament(
                store,
                name,
                settings(resampling_of(store.settings(name))),
                people_files,
                method_samples=method_samples,
                most=disagreements,
                label_next=next_labels,
            )
            if card:
                _write_cards(card, store, calibration, expires)
    if plot is not None:
        _plot(plot, calibration)
    show(CalibrationBoard(calibration, width), form)
    if form == "csv":
        for note in calibration.notes:
            say(note, errors)


def _check_cards(paths: Sequence[Path], sources: Sequence[str]) -> None:
    """Check that the cards can be written, before anything is computed."""
    if any(path.suffix not in {".json", ".html"} for path in paths):
        raise InputError("--card: name a file that ends in .json or .html")
    if paths and all(known_format(source) or is_qrels(source) for source in sources):
        raise InputError("--card: goes with a tournament, which knows its judges' models and prompts; these are tables")


def _write_cards(paths: Sequence[Path], store: Store, calibration: Calibration, expires: datetime | None) -> None:
    from arena.boards.card import judge_cards
    from arena.present.report import Report, render
    from arena.results.cache import cached_leaderboard

    today = datetime.now(UTC)
    until = None if expires is None else expires.date()
    cards = judge_cards(cached_leaderboard(store, calibration.tournament), calibration, today.date(), until)
    for path in paths:
        page = Report(calibration.tournament, [], cards.sections(), f"{today:%Y-%m-%d}")
        text = json.dumps(cards.json(), indent=2) if path.suffix == ".json" else render(page)
        with open_replacing(path) as file:
            file.write(text.encode())
        say(f"wrote {path}", errors)
    for card in cards.cards:
        say(card.headline, errors)


def _require_tournament(sources: Sequence[str], table_options: Mapping[str, object]) -> None:
    if len(sources) > 1:
        raise InputError(f"{sources[0]}, {sources[1]}: name one tournament, or only tables")
    for option, value in table_options.items():
        if value:
            raise InputError(f"{option}: goes with tables; {sources[0]} is a tournament, whose store has the data")


def _plot(path: Path, calibration: Calibration) -> None:
    if calibration.methods is None:
        charts, reason = (
            difference_charts(calibration.comparisons),
            "verdicts have no differences to plot; labels and grades have",
        )
    else:
        charts, reason = method_charts(calibration.methods), "no two methods score three agents or more"
    if not charts:
        raise InputError(f"--plot: {reason}")
    save_plot(path, charts, "judges minus people" if calibration.methods is None else "methods against each other")
