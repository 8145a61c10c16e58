"""The page of calibration: the figures of the command, and what it says where there is nothing to hold a judge by."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from arena.people.calibrate import calibrate_tournament, resampling_of
from arena.present.files import html_table
from arena.store import Store
from tests.conftest import CLI
from tests.support.pages import page, sent, shown, table, unfolded
from tests.support.peoples_words import add_people
from tests.support.sample_store import write_store
from ui.data import LOCATION_VARIABLE

QRELS = {f"q{query:02}": {f"q{query:02}-d{at}": (query + at) % 3 for at in range(4)} for query in range(12)}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "s.db"
    monkeypatch.setenv(LOCATION_VARIABLE, str(path))
    return path


@pytest.fixture
def judged(store: Path) -> Path:
    write_store(store, qrels=QRELS)
    assert add_people(store, "sample") > 50
    return store


def opened() -> AppTest:
    st.cache_resource.clear()
    return page("trust")


def as_json(cli: CLI, path: Path, *more: object) -> Any:
    found: Any = json.loads(cli("calibrate", path, "--format", "json", *more).out)
    return found


def test_the_page_draws_the_tables_of_the_board(judged: Path) -> None:
    run = unfolded(opened(), "all-coefficients")
    with closing(Store.open(str(judged))) as store:
        found = calibrate_tournament(store, "sample", resampling_of(store.settings("sample")), label_next=0)
    board = replace(found, width=0.2)
    drawn = sent(run)
    chosen = f"{next(iter(found.comparisons[0].judges))}-{found.comparisons[0].people.level}"
    for expected in board.tables():
        if expected.name in {"scores", "correlations"}:  # on the page of all scores
            continue
        if not expected.name.startswith("corrected") or expected.name.endswith(chosen):
            assert html_table(replace(expected, title=""), sortable=True) in drawn, expected.title
    assert {one.people.level for one in found.comparisons} == {"verdicts", "criteria", "labels"}
    assert all(column.explained for column in board.tables()[2].columns if "Kappa" in column.heading)


def test_the_reading_list_has_the_texts_and_leads_to_the_game(judged: Path, cli: CLI) -> None:
    expected = as_json(cli, judged, "--disagreements", "1")["comparisons"][0]["judges"]["strict"]["disagreements"][0]
    run = opened()
    said = shown(run)
    assert f"{expected['query_id']}: {' / '.join(expected['item'])}" in said
    assert f"How long is the notice period in case {expected['query_id']}?" in said
    assert f"The answer of {expected['item'][0]} to {expected['query_id']}" in said
    assert sum("queries?tournament=sample&view=games&game=" in element.value for element in run.markdown) == 5


def test_the_page_is_as_fresh_as_the_store(store: Path) -> None:
    write_store(store)
    assert "No human labels yet" in shown(opened())
    add_people(store, "sample")
    assert "No human labels yet" not in shown(page("trust"))


def test_without_people_it_says_how_to_get_labels_and_shows_what_needs_none(store: Path) -> None:
    write_store(store)
    run = opened()
    said = shown(run)
    for way in (
        "[Vote](review?tournament=sample&view=vote)",
        "[Assess](review?tournament=sample&view=assess)",
        "data: {qrels: FILE}",
        "ragleague votes import",
    ):
        assert way in said
    assert len(table(run, "Same in both orders")) == 1
    assert "Not known without labels of people" in said


def test_labels_of_nothing_that_was_judged_are_said_and_break_nothing(store: Path, cli: CLI) -> None:
    write_store(store, qrels={"q01": {"elsewhere": 1}})
    assert "labels: people spoke of nothing that a judge judged: left out" in shown(opened())
    assert "labels: people spoke of nothing that a judge judged: left out" in cli("calibrate", store).out


def test_few_queries_are_no_reason_to_trust(store: Path) -> None:
    write_store(store, queries=4)
    add_people(store, "sample", share=1.0, error=0.0)
    said = shown(opened())
    assert "That is too little to trust or distrust it" in said
    assert "Not known" in said


def test_a_judge_that_contradicts_people_is_not_called_good(store: Path) -> None:
    write_store(store)
    add_people(store, "sample", share=1.0, error=1.0)
    assert "It is not shown to agree with people more than chance would" in shown(opened())
