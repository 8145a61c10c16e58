"""Tables that leave the page as files, and the figures on the pages beside those of the command."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from arena.boards.wins import Wins
from arena.present.glossary import TERMS
from arena.present.numbers import POINTS
from tests.support.sample_store import write_store
from ui import data
from ui.data import LOCATION_VARIABLE
from ui.differences import marked, similarity
from ui.tables import as_csv, with_meanings


def saved(frame: pd.DataFrame) -> list[list[str]]:
    return list(csv.reader(io.StringIO(as_csv(frame).decode(), newline="")))


@pytest.mark.parametrize("text", ["=1+1", "+1", "@SUM(A1)", "-2+3", "\t=1", "\r=1", "\n=1", " =1", '=HYPERLINK("x")'])
def test_texts_that_a_spreadsheet_would_run_begin_with_an_apostrophe(text: str) -> None:
    heading, line = saved(pd.DataFrame({text: [text]}))
    assert heading[0].startswith("'")
    assert line[0].startswith("'")


def test_figures_and_intervals_leave_as_they_are_and_what_is_unknown_as_nothing() -> None:
    frame = pd.DataFrame({"n": [-1.5, np.nan], "span": ["-2.0 to 3.1", None], "text": ['a, b\n"c"', "é"]})
    assert saved(frame) == [["n", "span", "text"], ["-1.5", "-2.0 to 3.1", 'a, b\n"c"'], ["", "", "é"]]


def test_a_heading_has_the_glossary_s_meaning_unless_the_page_says_more() -> None:
    own = {"Won": st.column_config.NumberColumn(help="said here"), "percent": "Percent"}
    found = with_meanings(pd.DataFrame(columns=["Won", "Kappa", "percent", "Nobody's"]), own)
    assert found["Won"]["help"] == "said here"
    assert (found["Kappa"]["help"], found["percent"]["help"]) == (TERMS["Kappa"], TERMS["Percent"])
    assert "Nobody's" not in found


def test_differences_are_marked_word_by_word_and_inert() -> None:
    left, right = marked("The cat <b>sat</b> on a mat", "the dog <b>sat</b> on a mat & ran")
    assert left == "The <mark>cat</mark> &lt;b&gt;sat&lt;/b&gt; on a mat"
    assert right == "the <mark>dog</mark> &lt;b&gt;sat&lt;/b&gt; on a mat <mark>&amp; ran</mark>"
    assert similarity("a b c d", "a x c d") == 0.75
    assert similarity("word " * 5000, "word") is None


def draw(page: str) -> None:
    from importlib import import_module

    from ui import data

    version, names = data.tournaments()
    import_module(f"ui.views.{page}").show(data.Source(data.location(), version, names[-1]))


def drawn(page: str) -> AppTest:
    run = AppTest.from_function(draw, kwargs={"page": page}).run(timeout=30)
    assert not run.exception
    return run


def test_pages_say_what_the_leaderboard_command_says_to_the_shown_digit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    store = write_store(tmp_path / "s.db", failed=3, unasked=2)
    monkeypatch.setenv(LOCATION_VARIABLE, str(store))
    told = json.loads(cli("leaderboard", store, "--format", "json").out)
    (board,) = (table.value for table in drawn("overview").dataframe if "Elo" in table.value)
    columns = {"rank": "Rank", "agent": "Agent", "group": "Group"}
    columns |= {"wins": "Won", "ties": "Tied", "losses": "Lost"}
    for name, heading in columns.items():
        assert board[heading].tolist() == [row[name] for row in told["agents"]]
    for name, heading in {"bt": "Bradley-Terry", "elo": "Elo"}.items():
        assert board[heading].map("{:.0f}".format).tolist() == [f"{row[name]:.0f}" for row in told["agents"]]
    spans = [POINTS.between(row["bt_low"], row["bt_high"]) for row in told["agents"]]
    assert board["95% interval"].tolist() == spans
    version, (name,) = data.tournaments()
    pairs = data.pairs(data.Source(str(store), version, name))
    assert pairs is not None
    cells = Wins(pairs, list(board["Agent"]), "wins only").pairwise().rows
    shown = {(cell["row"], cell["column"]): f"{100 * cell['share']:.1f}" for cell in cells}
    matrix = json.loads(cli("leaderboard", store, "--matrix", "--format", "json").out)["percent"]
    for row in matrix:
        for other in {cell["agent"] for cell in matrix} - {row["agent"]}:
            assert shown[row["agent"], other] == f"{row[other]:.1f}"
