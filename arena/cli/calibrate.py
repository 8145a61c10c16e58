"""``calibrate``: compare judges with people who judged the same items, to see whether the judges can be trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec.structs import replace

from arena.boards.calibration import CalibrationBoard
from arena.boards.card import judge_cards
from arena.boards.drift import DriftBoard
from arena.boards.methods import method_charts
from arena.boards.people import difference_charts
from arena.boards.rated_tables import column_names
from arena.calibration.comparison import Settings
from arena.cli.console import errors, say
from arena.cli.options import Form, Tournament, Values, reading_option
from arena.cli.show import show
from arena.cli.sources import open_tournament, read_source
from arena.config.schema import Config
from arena.config.settings import read_cards
from arena.data.verdict_words import meanings
from arena.present.files import Report, render, save_plot
from arena.results.agreement import calibrate_tournament, resampling_of
from arena.results.cache import cached_leaderboard
from arena.results.opinion_tables import TableReading
from arena.results.table_agreement import Calibration, OpinionFiles, calibrate_tables, data_of
from arena.run.drift import ask_again, freeze
from arena.store import Store
from judges.errors import InputError
from retrieval_eval.data.files import open_replacing, read_json
from retrieval_eval.data.rows import known_format
from retrieval_eval.data.trec import is_qrels

_table_option = partial(typer.Option, rich_help_panel="For tables")
_people_option = partial(typer.Option, rich_help_panel="People")
_label_option = partial(typer.Option, rich_help_panel="What to label")
_card_option = partial(typer.Option, rich_help_panel="Judge card")
_OF_PEOPLE = "people:"
"""Prefix of values of ``--column`` and ``--value`` that apply only to the files of people's labels."""


def calibrate(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG|STORE|FILE...",
            help="tournament, or tables of judges' results, to compare with people; without either, "
            "agents are compared by people's grades",
        ),
    ] = None,
    people: Annotated[
        list[Path] | None,
        _people_option(metavar="FILE", help="file of people's labels: a table or TREC qrels; may be repeated"),
    ] = None,
    consensus: Annotated[
        Literal["majority", "dawid-skene"], _people_option(help="how labels of several people are combined into one")
    ] = "majority",
    against: Annotated[
        Literal["consensus", "votes"],
        _people_option(help="compare judges with people's combined label, or with each person's label"),
    ] = "consensus",
    item: Annotated[
        list[str] | None,
        reading_option(
            metavar="COLUMN",
            help="further column that identifies what was judged on a query, such as the turn; may be repeated",
        ),
    ] = None,
    by: Annotated[
        str | None,
        reading_option(metavar="COLUMN", help="compare judges and people separately for each value of this column"),
    ] = None,
    column: Annotated[
        list[str] | None,
        reading_option(
            metavar="NAME=COLUMN",
            help="read the file's column COLUMN as NAME; people:NAME=COLUMN applies to people's files only",
        ),
    ] = None,
    value: Values = None,
    skip_faulty: Annotated[
        bool, reading_option("--skip-faulty", help="skip rows without a value, and report how many")
    ] = False,
    as_games: Annotated[
        bool,
        reading_option(
            "--as-games/--reconcile", help="count every row as one game, or combine both orders of a game into one"
        ),
    ] = False,
    queries: Annotated[
        Path | None,
        _table_option(
            metavar="FILE",
            help="table of queries, to group them by conversation and show their texts with disagreements",
        ),
    ] = None,
    answers: Annotated[
        list[Path] | None,
        _table_option(metavar="FILE", help="table with the answers' texts, to show them with disagreements"),
    ] = None,
    documents: Annotated[
        list[Path] | None,
        _table_option(metavar="FILE", help="table with the documents' texts, to show them with disagreements"),
    ] = None,
    disagreements: Annotated[
        int, _label_option(min=0, help="number of items to list on which a judge and people disagree")
    ] = 0,
    estimates: Annotated[
        bool, _label_option("--estimates", help="show means, win rates and ratings corrected by people's labels")
    ] = False,
    width: Annotated[
        float | None, _label_option(help="show how many labels by people --estimates needs for intervals of this width")
    ] = None,
    label_next: Annotated[
        int, _label_option("--next", min=0, help="number of items to list that people should label next")
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="write plots to this .svg, .png or .html file: judges against people, or scores against scores",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        _card_option(
            min=0,
            max=0.99,
            help="by how much a judge may be worse than a person or another judge; "
            "default: the configuration's value, or 0.1",
        ),
    ] = None,
    card: Annotated[
        list[Path] | None,
        _card_option(
            metavar="FILE",
            help="write a judge card, a report on whether judges can replace people: .json or .html; may be repeated",
        ),
    ] = None,
    since: Annotated[
        Path | None,
        _card_option(
            metavar="CARD.json", help="ask the judges again on what people labelled for this card: did they change?"
        ),
    ] = None,
    expires: Annotated[
        datetime | None,
        _card_option(formats=["%Y-%m-%d"], help="last day on which the judge card is valid; default: in 90 days"),
    ] = None,
    tournament: Tournament = None,
    method_samples: Annotated[
        int, typer.Option(min=0, help="number of bootstrap samples for the correlations between a tournament's scores")
    ] = 200,
    samples: Annotated[
        int | None,
        typer.Option(
            min=0, help="number of bootstrap samples for intervals; default: the tournament's setting, or 1000"
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="random seed of the bootstrap samples; default: the tournament's setting, or 0"),
    ] = None,
    form: Form = "table",
) -> None:
    """Compare judges with people, to see whether they can be trusted.

    For a tournament it also shows how far different scores, such as ratings and grades, agree on the order of agents.

    Tables hold verdicts, relevance labels, grades or nugget assignments; the columns show which. Qrels are relevance
    labels, of which 'agreement' shows more. For a tournament, the judges' results come from its store, and people's
    labels from --people, from the web pages and from the qrels in its data. If people graded answers, paired t tests
    compare the agents on each criterion, corrected by Holm; '--people FILE' alone shows only these tests.
    """
    sources = sources or []
    _check_cards(card or [], sources)
    if since is not None:
        _ask_again(sources, since, form)
        return
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
            raise InputError("--people: is missing; name the files with people's labels, to compare the judges with")
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
                _write_cards(card, store, calibration, expires, read_source(sources[0])[2])
    if plot is not None:
        _plot(plot, calibration)
    show(CalibrationBoard(calibration, width), form)
    if form == "csv":
        for note in calibration.notes:
            say(note, errors)


def _check_cards(paths: Sequence[Path], sources: Sequence[str]) -> None:
    if any(path.suffix not in {".json", ".html"} for path in paths):
        raise InputError("--card: name a file that ends in .json or .html")
    if paths and all(known_format(source) or is_qrels(source) for source in sources):
        raise InputError(
            "--card: needs a tournament, since tables do not say the judges' models and prompts; leave it out"
        )


def _ask_again(sources: Sequence[str], since: Path, form: Form) -> None:
    config = read_source(sources[0])[2] if len(sources) == 1 else None
    if config is None:
        raise InputError("--since: needs the tournament's YAML file, which declares the judges to ask; name it alone")
    read_cards(since)  # checks their seals
    with open_tournament(sources[0]) as (store, _):
        cards = [card for card in read_json(since)["cards"] if card.get("frozen")]
        if not cards:
            raise InputError(
                f"{since}: has no labelled items to ask again; write it again with 'calibrate CONFIG --card'"
            )
        board = DriftBoard([ask_again(store, config, card) for card in cards])
    show(board, form)


def _write_cards(
    paths: Sequence[Path], store: Store, calibration: Calibration, expires: datetime | None, config: Config | None
) -> None:
    today = datetime.now(UTC)
    until = None if expires is None else expires.date()
    cards = judge_cards(cached_leaderboard(store, calibration.tournament), calibration, today.date(), until)
    try:
        frozen = {} if config is None else freeze(store, config, calibration)
    except InputError as error:
        say(f"the card cannot be used with --since: {error}", errors)
        frozen = {}
    cards = replace(cards, frozen=frozen)
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
        raise InputError(
            f"{sources[0]}, {sources[1]}: a tournament cannot be combined with other sources; "
            "name it alone, or name only tables"
        )
    for option, value in table_options.items():
        if value:
            raise InputError(f"{option}: is only for tables; leave it out, as the store of {sources[0]} has the data")


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
