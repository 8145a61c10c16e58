"""``calibrate``: whether a judge can be trusted, by what people say of the same things."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec.structs import replace

from arena.cli.console import errors, say
from arena.cli.options import Form, Tournament, Values, require_unused
from judges.errors import InputError

if TYPE_CHECKING:
    from arena.results.calibration import Calibration
    from arena.store import Store


_TABLES, _READING, _PEOPLE, _LABELS = "Of tables", "How tables are read", "People", "What to label"
_CARD = "Judge card"
_OF_PEOPLE = "people:"
"""Before what an option says of people's files alone."""


def calibrate(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG|STORE|FILE...",
            help="a tournament, or tables or qrels of what judges said; none to compare agents by people's grades",
        ),
    ] = None,
    people: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="what people said: tables or qrels", rich_help_panel=_PEOPLE),
    ] = None,
    consensus: Annotated[
        Literal["majority", "dawid-skene"], typer.Option(help="how several people become one", rich_help_panel=_PEOPLE)
    ] = "majority",
    against: Annotated[
        Literal["consensus", "votes"],
        typer.Option(help="hold judges against that consensus, or against every single vote", rich_help_panel=_PEOPLE),
    ] = "consensus",
    item: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="a further column that tells things of one query apart", rich_help_panel=_READING
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="compare each value of this column by itself", rich_help_panel=_READING),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="the files' name for a column; people:NAME=COLUMN for people's files",
            rich_help_panel=_READING,
        ),
    ] = None,
    value: Values = None,
    skip_faulty: Annotated[
        bool, typer.Option("--skip-faulty", help="leave out and count rows without a value", rich_help_panel=_READING)
    ] = False,
    as_games: Annotated[
        bool,
        typer.Option(
            "--as-games/--reconcile",
            help="every row one game, or both orders of a game reconciled",
            rich_help_panel=_READING,
        ),
    ] = False,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="queries, for conversations and disagreements", rich_help_panel=_TABLES),
    ] = None,
    answers: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="texts of answers", rich_help_panel=_TABLES)
    ] = None,
    documents: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="texts of documents", rich_help_panel=_TABLES)
    ] = None,
    disagreements: Annotated[
        int, typer.Option(min=0, help="things listed that a judge and people see differently", rich_help_panel=_LABELS)
    ] = 0,
    estimates: Annotated[
        bool,
        typer.Option(
            "--estimates",
            help="means, win rates and ratings corrected by people's labels",
            rich_help_panel=_LABELS,
        ),
    ] = False,
    width: Annotated[
        float | None,
        typer.Option(help="say how many labels an estimate's interval of this width needs", rich_help_panel=_LABELS),
    ] = None,
    label_next: Annotated[
        int, typer.Option("--next", min=0, help="list this many things to label next", rich_help_panel=_LABELS)
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="of tables Bland-Altman plots, of a tournament agents by every two methods; .svg, .png or .html",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.99,
            help="by how much a judge may be worse than a person; else the configuration's, or 0.1",
            rich_help_panel=_CARD,
        ),
    ] = None,
    card: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="whether judges may stand in for people, as .json or .html; may be repeated",
            rich_help_panel=_CARD,
        ),
    ] = None,
    expires: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="last day of the card; else in 90 days", rich_help_panel=_CARD),
    ] = None,
    tournament: Tournament = None,
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
    the judges' opinions are in its store; people's come from --people, from the pages, and from the data's qrels.
    People's grades of answers compare the agents, too: paired t tests of each criterion, corrected by Holm. Without
    judges, '--people FILE' alone says that.
    Qrels are held against those of --people: kappa, alpha, confusion, and agreement at each threshold. Of them faulty
    lines are left out and listed, and the exit status is then 3.
    """
    from arena.boards.calibration.board import CalibrationBoard
    from arena.boards.rated_tables import column_names
    from arena.calibration.comparison import Settings
    from arena.cli.show import show
    from arena.data.verdict_words import meanings
    from arena.results.opinion_tables import TableReading
    from arena.results.table_agreement import OpinionFiles, calibrate_tables, data_of
    from retrieval_eval.data.rows import known_format
    from retrieval_eval.data.trec import is_qrels

    sources = sources or []
    _check_cards(card or [], sources)
    if width is not None and not width > 0:
        raise InputError(f"--width: more than 0, not {width:g}")
    if any(is_qrels(source) or source.startswith("irds:") for source in sources):
        require_unused(
            "qrels, whose labels are only held against each other; write them as tables of qid, did, label",
            {
                "--consensus": consensus != "majority",
                "--against": against != "consensus",
                "--item": item,
                "--by": by,
                "--column": column,
                "--value": value,
                "--as-games": as_games,
                "--answers": answers,
                "--documents": documents,
                "--disagreements": disagreements,
                "--estimates": estimates,
                "--width": width,
                "--next": label_next,
                "--plot": plot,
                "--epsilon": epsilon,
                "--card": card,
                "--tournament": tournament,
            },
        )
        _compare_qrels(sources, people or [], queries, form)
        return
    theirs = [entry.removeprefix(_OF_PEOPLE) for entry in column or () if entry.startswith(_OF_PEOPLE)]
    ours = [entry for entry in column or () if not entry.startswith(_OF_PEOPLE)]
    alike = meanings(entry for entry in value or () if not entry.startswith(_OF_PEOPLE))
    of_people = meanings(entry.removeprefix(_OF_PEOPLE) for entry in value or () if entry.startswith(_OF_PEOPLE))
    reading = TableReading(tuple(item or ()), by, column_names(ours), alike, skip_faulty)
    human = replace(reading, columns=column_names(theirs), values={**alike, **of_people})
    said = OpinionFiles(people or [], human)
    wanted = label_next if estimates or width is not None or label_next else None

    def settings(own: Settings) -> Settings:
        own_samples, own_seed = own.samples if samples is None else samples, own.seed if seed is None else seed
        worse = own.epsilon if epsilon is None else epsilon
        return Settings(consensus, own_samples, own_seed, against, "ordered" if as_games else "reconciled", worse)

    if all(known_format(source) for source in sources):
        if not people:
            raise InputError("--people: name the tables of what people said")
        found = calibrate_tables(
            OpinionFiles([Path(source) for source in sources], reading),
            said,
            settings(Settings()),
            data=data_of(queries, documents or (), answers or ()),
            most=disagreements,
            label_next=wanted,
        )
    else:
        from arena.cli.sources import open_tournament
        from arena.results.agreement import calibrate_tournament, resampling_of

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
            if card:
                _write_cards(card, store, found, expires)
    if plot is not None:
        _plot(plot, found)
    show(CalibrationBoard(found, width), form)
    if form == "csv":
        for note in found.notes:
            say(note, errors)


def _compare_qrels(
    sources: Sequence[str],
    people: Sequence[Path],
    queries: Path | None,
    form: str,
) -> None:
    from arena.cli.metrics import compare_label_sets

    if len(people) != 1:
        raise InputError("--people: one file of labels to hold qrels against")
    compare_label_sets(str(people[0]), sources, queries, form)


def _check_cards(paths: Sequence[Path], sources: Sequence[str]) -> None:
    """See that cards can be written, before anything is computed."""
    from retrieval_eval.data.rows import known_format

    if any(path.suffix not in {".json", ".html"} for path in paths):
        raise InputError("--card: a file whose name ends in .json or .html")
    if paths and all(map(known_format, sources)):
        raise InputError("--card: goes with a tournament, which knows its judges' models and prompts; these are tables")


def _write_cards(paths: Sequence[Path], store: Store, found: Calibration, expires: datetime | None) -> None:
    from arena.boards.card import judge_cards
    from arena.present.report import Report, render
    from arena.results.cache import cached_leaderboard
    from retrieval_eval.data.files import open_replacing

    today = datetime.now(UTC)
    until = None if expires is None else expires.date()
    cards = judge_cards(cached_leaderboard(store, found.tournament), found, today.date(), until)
    for path in paths:
        page = Report(found.tournament, [], cards.sections(), f"{today:%Y-%m-%d}")
        text = json.dumps(cards.json(), indent=2) if path.suffix == ".json" else render(page)
        with open_replacing(path) as file:
            file.write(text.encode())
        say(f"wrote {path}", errors)
    for card in cards.cards:
        say(card.headline, errors)


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
