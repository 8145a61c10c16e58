"""One name, one unit and one figure with its interval of each thing, in all that the product writes."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
import streamlit as st

from arena.boards.compare import compare_board
from arena.boards.leaderboard import TournamentBoard, with_people
from arena.boards.quantities import NUGGETS, WON, quantity
from arena.boards.queries import query_board
from arena.boards.report import publish
from arena.cli.console import WIDE, output
from arena.cli.main import main
from arena.results.cache import cached_leaderboard
from arena.results.scores import means_of
from arena.store import Store
from retrieval_eval.data.tables import write_rows
from tests.golden.worlds import write_demo, write_whole
from tests.support.outputs import (
    Fault,
    Reading,
    faults,
    figure,
    of_csv,
    of_figures,
    of_html,
    of_sections,
    of_terminal,
    of_ways,
)
from tests.support.pages import page, sent, titled, unfolded
from ui.access import EVERYBODY_VARIABLE
from ui.data import LOCATION_VARIABLE

TURNS = (1, 4, 2, 3)
"""Queries of each conversation; they differ, so that a mean over conversations is another one."""


class World(NamedTuple):
    folder: Path
    yaml: str
    name: str

    @property
    def config(self) -> Path:
        return self.folder / self.yaml

    @property
    def location(self) -> str:
        return str(self.folder / f"{self.name}.db")


@pytest.fixture(scope="module", params=["demo", "conversations"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The demo, whose exam is on some queries; and conversations with every stage, people's votes and grades."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "demo":
        write_demo(folder)
        found, commands = World(folder, "tournament.yaml", "rag-handbook"), [["run", folder / "tournament.yaml"]]
    else:
        write_whole(folder)
        path = folder / "queries.csv"
        rows = [*csv.DictReader(io.StringIO(path.read_text("utf-8")))]
        turns = [(f"c{at}", turn) for at, size in enumerate(TURNS) for turn in range(1, size + 1)]
        rows = [{**row, "conversation": name, "turn": turn} for row, (name, turn) in zip(rows, turns, strict=True)]
        write_rows(path, list(rows[0]), rows)
        found = World(folder, "whole.yaml", "whole")
        files = (folder / "people.csv", folder / "graded.csv")
        commands = [["run", found.config], *(["import", "votes", file, "--store", found.config] for file in files)]
    for command in commands:
        said(command)
    return found


def said(command: list[Any]) -> str:
    """What a command writes to standard output, on lines that are wide enough."""
    out, width = io.StringIO(), output.width
    output.width, words = WIDE, ["ragleague", *map(str, command)]
    with patch.object(sys, "argv", words), contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ending:
        main()
    output.width = width
    assert not ending.value.code, out.getvalue()
    return out.getvalue()


@pytest.fixture(scope="module")
def store(world: World) -> Iterator[Store]:
    with closing(Store.open(world.location)) as opened:
        yield opened


@pytest.fixture(scope="module")
def known(world: World, store: Store) -> list[Reading]:
    """Every figure of the agents, from the scores themselves."""
    board, found = cached_leaderboard(store, world.name), list[Reading]()
    assert board.ratings is not None
    for row in board.ratings.agents:
        found.append(figure("known", "Rating", row.agent, row.bt, row.bt_low, row.bt_high))
        if row.elo is not None:
            found.append(figure("known", "Elo", row.agent, row.elo))
    queries = query_board(store, world.name)
    means = {WON: queries.means(WON)}
    means |= {
        score.name: score.means for score in means_of(store, world.name, partial(store.dataset, world.name), every=True)
    }
    assert board.nuggets is not None
    means |= {score.name: score.means for score in board.nuggets.answers.scores}
    for name, by_agent in means.items():
        for agent, mean in by_agent.items():
            found.append(figure("known", quantity(name).title, agent, mean.value, mean.low, mean.high))
    return found


@pytest.fixture(scope="module")
def readings(world: World, store: Store) -> list[Reading]:
    """The figures of every page, report, published page, terminal output, CSV and JSON."""
    config = world.config
    found = [*_of_boards(world, store), *_of_commands(config), *_of_pages(world, store)]
    publish(store, world.name, world.folder / "site", world.location)
    for path in sorted((world.folder / "site").rglob("*.html")):
        if path.parent.name != "queries":
            found += of_html(f"site {path.stem}", path.read_text("utf-8"))
    return [_in_family(reading) for reading in found if _of_all(reading)]


def _of_boards(world: World, store: Store) -> Iterator[Reading]:
    board = with_people(store, cached_leaderboard(store, world.name))
    yield from of_sections("brief", board.brief())
    yield from of_sections("details", board.sections())
    compared = compare_board(store, world.name)
    yield from of_ways(compared.json()["ways"])
    for pair in compared.methods.pairs:
        yield _tau("compare.json", pair.first, pair.second, pair.kendall.value, pair.kendall.low, pair.kendall.high)


def _of_commands(config: Path) -> Iterator[Reading]:
    yield from of_terminal("leaderboard --details", said(["leaderboard", config, "--details"]))
    yield from of_terminal("calibrate", said(["calibrate", config, "--estimates"]))
    yield from of_csv(said(["leaderboard", config, "--format", "csv"]))
    yield from _of_leaderboard(json.loads(said(["leaderboard", config, "--format", "json"])))
    yield from _of_calibration(json.loads(said(["calibrate", config, "--format", "json", "--estimates"])))
    shape = json.loads(said(["queries", config, "--format", "json"]))
    for agent, rows in shape["agents"].items():
        scored = [row["scores"]["criteria"] for row in rows if "criteria" in row["scores"]]
        yield figure("json", "Mean grade", agent, sum(scored) / len(scored))


def _of_leaderboard(shape: Any) -> Iterator[Reading]:
    for row in shape["agents"]:
        yield figure("json", "Rating", row["agent"], row["bt"], row["bt_low"], row["bt_high"])
    for row in shape["exam"]["agents"]:
        cover = row["levels"]["4"]["cover"]
        yield figure("json", "EXAM-Cover", row["agent"], cover["mean"], cover["low"], cover["high"])
    for agent, row in shape["nuggets"]["agents"].items():
        for name, nugget_score in NUGGETS.items():
            yield figure("json", nugget_score.title, agent, row[name], row[f"{name}_low"], row[f"{name}_high"])
    for agent, by_criterion in shape["criteria"].items():
        for name, mean in by_criterion.items():
            yield figure("json", name, agent, mean["mean"])


def _of_calibration(shape: Any) -> Iterator[Reading]:
    for name, method in shape["methods"]["methods"].items():
        for agent, score in method["scores"].items():
            yield figure("json", quantity(name).title, agent, score)
    for pair in shape["methods"]["pairs"]:
        yield _tau("json", pair["first"], pair["second"], *(pair[f"kendall{end}"] for end in ("", "_low", "_high")))
    of_verdicts = [comparison for comparison in shape["comparisons"] if comparison["level"] == "verdicts"]
    for row in (row for comparison in of_verdicts for row in comparison["judges"]["words"]["estimates"]["figures"]):
        yield figure("json", "Win rate", row["name"], row["judge"], row["judge_low"], row["judge_high"])


def _tau(where: str, first: str, second: str, value: float | None, low: float | None, high: float | None) -> Reading:
    of = " | ".join((quantity(first).title, quantity(second).title))
    return figure(where, "Kendall's tau", of, value, low, high)


def _of_pages(world: World, store: Store) -> Iterator[Reading]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCATION_VARIABLE, world.location)
        patch.setenv(EVERYBODY_VARIABLE, "viewer")
        st.cache_resource.clear()
        yield from _of_page("leaderboard", page("leaderboard"))
        yield from _of_page("compare", unfolded(page("compare"), "tables"))
        for view in ("checks", "people", "corrected", "style"):
            yield from _of_page(view, page(view))
        board = query_board(store, world.name)
        for agent in board.standings.agents:
            yield from of_figures("page agent", agent, _html(page("queries", agent=agent)))
        st.cache_resource.clear()


def _of_page(name: str, run: Any) -> Iterator[Reading]:
    for title, markup in titled(run):
        for reading in of_html(f"page {name}", markup):
            yield reading if reading.where.endswith("picture") else reading._replace(where=f"page {name}: {title}")


def _html(run: Any) -> str:
    return "\n".join(node.proto.body for node in run.get("html"))


def _of_all(reading: Reading) -> bool:
    """Whether a figure is of all queries: those of an opponent, a query or a group of queries have a narrower scope."""
    return not any(words in reading.where for words in NARROW)


NARROW = ("Documents by",)
FAMILIES = ("Nuggets of answers",)


def _in_family(reading: Reading) -> Reading:
    """In a table of one family the family is not named again: 'V strict' under 'Nuggets of answers'."""
    short = {nugget_score.short: nugget_score.title for nugget_score in NUGGETS.values()}
    if any(family in reading.where for family in FAMILIES) and reading.name in short:
        return reading._replace(name=short[reading.name])
    return reading


def test_no_output_names_or_counts_one_thing_in_two_ways(readings: list[Reading], known: list[Reading]) -> None:
    assert [_said(fault) for fault in faults(readings, known)] == []
    outputs = {reading.where.split(":")[0] for reading in readings}
    pages = {f"page {name}" for name in ("leaderboard", "compare", "style", "agent")}
    assert outputs >= {"brief", "details", "calibrate", "csv", "json", *pages}
    names = {reading.name for reading in readings}
    assert names >= {
        "Rating",
        "Elo",
        "Win rate",
        "EXAM-Cover",
        "Nuggets V strict",
        "Mean grade",
        "nDCG@10",
        "Kendall's tau",
    }
    assert len(readings) > 1000


PLANTED = {
    "two figures": lambda reading: reading._replace(value="0.123"),
    "two intervals": lambda reading: reading._replace(interval="0.01 to 0.02"),
    "two units": lambda reading: reading._replace(value=f"{100 * float(reading.value):.2f}%", interval=""),
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("output", ["page compare: Scores with intervals", "page agent", "details: EXAM-Cover"])
def test_a_planted_figure_is_found(kind: str, output: str, readings: list[Reading], known: list[Reading]) -> None:
    at = next(
        at
        for at, reading in enumerate(readings)
        if reading.where == output and reading.name == "EXAM-Cover" and reading.interval and float(reading.value) < 0.99
    )
    planted = [*readings[:at], PLANTED[kind](readings[at]), *readings[at + 1 :]]
    found = faults(planted, known)
    assert kind in {fault.kind for fault in found}
    assert all(planted[at] in fault or fault.kind == "two units" for fault in found)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Win rate", "Share of points"),
        ("EXAM-Cover", "Cover@20"),
        ("Nuggets V strict", "Facts"),
        ("Mean grade", "Marks"),
    ],
)
@pytest.mark.parametrize("output", ["brief: ", "page leaderboard: "])
def test_another_name_is_found(
    right: str, wrong: str, output: str, readings: list[Reading], known: list[Reading]
) -> None:
    planted = [
        reading._replace(name=wrong) if reading.where == output and reading.name == right else reading
        for reading in readings
    ]
    assert planted != readings
    assert {(fault.kind, fault.first.name, fault.second.name) for fault in faults(planted, known)} == {
        ("two names", right, wrong)
    }


def _said(fault: Fault) -> str:
    return f"{fault.kind}: {tuple(fault.first)} and {tuple(fault.second)}"


def test_counts_of_checks_add_up_and_are_the_same_everywhere(world: World, store: Store) -> None:
    board: TournamentBoard = with_people(store, cached_leaderboard(store, world.name))
    trust = json.loads(said(["leaderboard", world.config, "--format", "json"]))["trust"]
    assert trust["passed"] + trust["failed"] + trust["not_known"] == trust["checks"] == len(trust["by_check"])
    words = (
        f"{trust['passed']} of {trust['checks']} trust checks passed, {trust['failed']} failed, "
        f"{trust['not_known']} not known."
    )
    assert words in " ".join(said(["leaderboard", world.config]).split())
    assert words in said(["leaderboard", world.config, "--details"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCATION_VARIABLE, world.location)
        patch.setenv(EVERYBODY_VARIABLE, "viewer")
        st.cache_resource.clear()
        assert words in sent(page("checks"))
        strip = _html(page("leaderboard"))
        st.cache_resource.clear()
    assert strip.count('class="failed"><summary>') in (0, trust["failed"])
    assert f"{trust['not_known']} not known" in strip
    assert f"{trust['passed']} passed" in strip
    assert words in (world.folder / "site" / "index.html").read_text("utf-8")
    assert board.conclusion is not None
