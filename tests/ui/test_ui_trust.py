"""The page of trust: the figures of the command, and what it says where there is nothing to hold a judge by."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import streamlit as st
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from arena.boards.calibration import corrected_figures
from arena.boards.people import against_people, among_table, coefficient_tables, judges_of, people_checks, votes_picture
from arena.boards.people import in_short as shortened
from arena.present.files import html_table
from arena.present.numbers import PERCENT
from arena.present.picture import Whiskers
from arena.present.table import Table
from arena.present.table import shown as columns_of
from arena.results.agreement import calibrate_tournament, resampling_of
from arena.results.table_agreement import Calibration
from arena.store import Store
from arena.store.annotations import Annotations
from tests.support.pages import page, sent, shown, unfolded
from tests.support.peoples_words import add_people
from tests.support.sample_store import write_store
from ui import data
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


def opened(view: str, **address: str) -> AppTest:
    st.cache_resource.clear()
    return page(view, **address)


def calibrated(path: Path) -> Calibration:
    with closing(Store.open(str(path))) as store:
        return calibrate_tournament(store, "sample", resampling_of(store.settings("sample")), most=50, label_next=0)


def test_judges_and_people_are_one_table_and_one_picture_and_more_holds_the_rest(judged: Path) -> None:
    board = calibrated(judged)
    first = opened("people")
    assert people_checks(board.comparisons)[0].finding in shown(first)
    drawn = sent(first)
    assert html_table(replace(shortened(board.comparisons), title=""), sortable=True) in drawn
    assert drawn.count("<figure") == 1
    assert len(columns_of(shortened(board.comparisons)).columns) <= 7
    drawn = sent(unfolded(first, "more"))
    coefficients = coefficient_tables(board.comparisons, "the consensus")
    for expected in (against_people(board.comparisons), among_table(board.comparisons), *coefficients):
        assert html_table(replace(expected, title=""), sortable=True) in drawn, expected.title


def test_corrected_figures_are_those_of_the_command(judged: Path) -> None:
    board = calibrated(judged)
    judge = judges_of(board.comparisons)[0]
    run = opened("corrected")
    tables = [block for block in corrected_figures(judge, 0.2) if isinstance(block, Table)]
    assert len(tables) == 2
    drawn = [html_table(replace(own, title=""), sortable=True).strip() for own in tables]
    assert not any(own in sent(run) for own in drawn)
    run = unfolded(run, "numbers")
    assert all(own in sent(run) for own in drawn)
    figures = next(iter(judge.estimates.figures.values())) if judge.estimates else None
    assert figures is not None
    assert PERCENT.write(figures.corrected.value) in sent(run)


def test_the_reading_list_leads_to_games(judged: Path) -> None:
    judge = judges_of(calibrated(judged).comparisons)[0]
    run = opened("disagreements")
    first = judge.disagreements[0]
    assert "/".join(first.item).replace("/", " / ") in sent(run)
    assert f"How long is the notice period in case {first.query_id}?" in sent(run)
    assert sent(run).count("view=games&amp;game=") == len(judge.disagreements)


def test_the_page_is_as_fresh_as_the_store(store: Path) -> None:
    write_store(store)
    assert "No human labels yet" in shown(opened("people"))
    add_people(store, "sample")
    assert "No human labels yet" not in shown(page("people"))


def test_without_people_one_part_says_how_to_get_labels_others_lead_to_it_and_checks_and_style_stand(
    store: Path,
) -> None:
    write_store(store)
    run = opened("people")
    leads = re.findall(r'href="review\?tournament=sample&amp;view=(\w+)"', sent(run))
    assert leads == ["vote", "label", "grade"], "what there are tasks for"
    assert [own.value for own in run.code] == [f"ragleague import votes LABELS.csv --store {store} --tournament sample"]
    purposes = {run.info[0].value}
    for view in ("corrected", "disagreements"):
        run = opened(view)
        assert 'href="trust?tournament=sample&amp;view=people"><p class="said button">How to get labels' in sent(run)
        assert not run.code
        purposes.add(run.info[0].value)
    assert len(purposes) == 3
    assert "trust checks passed" in shown(opened("checks"))
    assert "What does the judge like" in shown(opened("style"))


def test_a_judge_that_contradicts_people_is_not_called_good(store: Path) -> None:
    write_store(store)
    add_people(store, "sample", share=1.0, error=1.0)
    assert "It is not shown to agree with people more than chance would" in shown(opened("people"))


def test_a_vote_leaves_all_that_judges_said_as_it_is(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened("checks")
    for name in ("dataset", "games", "outcomes"):
        monkeypatch.setattr(Store, name, lambda *_, **__: pytest.fail("read anew"))
    before = data.tournaments()[0]
    with closing(Store.open(str(judged))) as store:
        said = Annotations(store, "sample").latest("verdict")[0]
        Annotations(store, "sample").add([replace(said, annotator="new")])
    after = data.tournaments()[0]
    assert after != before
    assert data.Source("", after, "").judged == data.Source("", before, "").judged
    monkeypatch.setattr(data, "compare_with_people", lambda *_, **__: ((), (), ()))
    assert "trust checks passed" in shown(page("checks"))


def test_what_takes_long_shows_its_progress_and_then_itself(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slow(*_: object, tell: Callable[[float, str], None]) -> tuple[object, ...]:
        tell(0.4, "Fitting")
        assert go_on.wait(20)
        return ()

    monkeypatch.setattr(data, "WORTH_KEEPING", 0)
    monkeypatch.setattr(data, "styles_of", slow)
    run = opened("style")
    assert "Fitting" in str([node.proto for node in run.get("progress")])
    go_on.set()
    for work in [own for own in threading.enumerate() if isinstance(own, data.Work)]:
        work.join()
    assert "Fitting" not in str([node.proto for node in run.run().get("progress")])


def test_the_card_says_whether_each_judge_may_stand_in_for_people(judged: Path) -> None:
    found = opened("card")
    assert not found.exception
    assert re.search(r"May strict stand in for people on games\? (Yes|No|Not known)\.", sent(found))


def test_a_corrected_figure_that_is_people_s_is_drawn_once(judged: Path) -> None:
    judge = judges_of(calibrated(judged).comparisons)[0]
    assert judge.estimates is not None
    name, figure = next(iter(judge.estimates.figures.items()))
    ignored = replace(figure, weight=0.0, corrected=figure.people)
    weighed = replace(figure, weight=0.5)
    estimates = replace(judge.estimates, figures={name: ignored, "weighed": weighed})
    (picture, *_) = (own for own in corrected_figures(replace(judge, estimates=estimates)) if isinstance(own, Whiskers))
    marks = {line.name: [mark.look for mark in line.marks] for line in picture.lines}
    assert marks == {name: ["orange", "grey"], "weighed": ["blue", "orange", "grey"]}
    assert "weight 0" in picture.caption


def test_agreement_on_few_things_is_counted_and_not_drawn(store: Path) -> None:
    write_store(store, qrels={f"q{query:02}": {f"q{query:02}-d0": 1} for query in range(4)})
    comparisons = calibrated(store).comparisons
    assert votes_picture(comparisons) == []
    (row,) = shortened(comparisons).rows
    assert row["too_few"] == "too few: 4 things of 4 queries"
    assert {"vote_agreement", "kappa"}.isdisjoint(row)
    assert "too few: 4 things of 4 queries" in sent(opened("people"))
