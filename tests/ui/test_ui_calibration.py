"""The page of calibration: the figures of the command, and what it says where there is nothing to hold a judge by."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from arena.opinions.tournament import compare_with_people
from arena.present.glossary import TERMS
from arena.store import Store
from tests.conftest import CLI
from tests.support.pages import page, shown, table, unfolded
from tests.support.peoples_words import add_people
from tests.support.sample_store import AGENTS, write_store
from ui.data import LOCATION_VARIABLE
from ui.methods import named_agents

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
    return page("calibration")


def as_json(cli: CLI, path: Path, *more: object) -> Any:
    found: Any = json.loads(cli("calibrate", path, "--format", "json", *more).out)
    return found


def same(shown: object, expected: float | None, digits: int, factor: int = 1) -> None:
    if expected is None:
        assert shown is None or shown != shown  # NaN, as a table has it
    else:
        assert f"{shown:.{digits}f}" == f"{factor * expected:.{digits}f}"


def span(row: dict[str, Any], name: str, digits: int, factor: int = 1) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "none" if low is None else f"{factor * low:.{digits}f} to {factor * high:.{digits}f}"


def test_agreement_with_people_is_the_command_s(judged: Path, cli: CLI) -> None:
    expected = as_json(cli, judged)["comparisons"]
    frame = table(opened(), "Agrees with a vote")
    assert [(row["Judge"], row["Judged"]) for _, row in frame.iterrows()] == [
        (judge, one["level"]) for one in expected for judge in one["judges"]
    ]
    assert set(frame["Judged"]) == {"verdicts", "criteria", "labels"}
    for (_, row), one in zip(frame.iterrows(), expected, strict=True):
        own = one["judges"][row["Judge"]]
        assert row["Things"] == own["n"]
        same(row["Agrees with a vote"], own["vote_agreement"], 1, 100)
        assert row["Agrees with a vote, 95 %"] == span(own, "vote_agreement", 1, 100)
        same(row["Two people agree"], one["people"]["same"], 1, 100)
        same(row["Kappa"], own["kappa"], 2)
        assert row["Kappa, 95 %"] == span(own, "kappa", 2)
        same(row["Spearman"], own["spearman"], 2)
        same(row["Leaderboard tau"], own.get("leaderboard_kendall"), 2)
        if one["level"] != "verdicts":
            same(row["Bias"], own["bias"], 2)


def test_intervals_are_drawn_as_the_tournament_s_checks_draw_them_unless_asked_otherwise(
    judged: Path, cli: CLI
) -> None:
    found = as_json(cli, judged)
    usual = {"consensus": "majority", "against": "consensus", "games": "reconciled"}
    assert found["settings"] == {**usual, "samples": 200, "seed": 3}
    with closing(Store.open(str(judged))) as store:
        checked, _ = compare_with_people(store, "sample")
    kappas = [report.against.labels.kappa for one in checked for report in one.judges.values()]
    shown = [own for one in found["comparisons"] for own in one["judges"].values()]
    for own, kappa in zip(shown, kappas, strict=True):
        same(own["kappa_low"], kappa.low, 5)
        same(own["kappa_high"], kappa.high, 5)
    other = as_json(cli, judged, "--samples", "50", "--seed", "1")
    assert other["settings"] == {**usual, "samples": 50, "seed": 1}
    assert other["comparisons"] != found["comparisons"]
    board = {row["agent"]: row for row in json.loads(cli("leaderboard", judged, "--format", "json").out)["agents"]}
    methods = other["methods"]["methods"]
    for agent, row in board.items():
        same(methods["elo"]["scores"][agent], row["elo"], 3)
        same(methods["bradley_terry"]["scores"][agent], row["bt"], 3)


def test_every_coefficient_and_confusion_is_the_command_s(judged: Path, cli: CLI) -> None:
    expected = as_json(cli, judged)["comparisons"]
    run = unfolded(opened(), "all-coefficients")
    names = {
        "Pearson": "pearson",
        "Spearman": "spearman",
        "Kendall's tau-b": "kendall",
        "Kappa": "kappa",
        "Kappa, linear": "kappa_linear",
        "Kappa, quadratic": "kappa_quadratic",
        "Alpha": "alpha",
        "Alpha, ordinal": "alpha_ordinal",
    }
    assert names.keys() <= TERMS.keys(), "a heading without a meaning"
    frame = table(run, "Kappa, quadratic")
    assert len(frame) == len(expected)
    for (_, row), one in zip(frame.iterrows(), expected, strict=True):
        own = one["judges"][row["Judge"]]
        for column, name in names.items():
            same(row[column], own[name], 2)
            assert row[f"{column}, 95 %"] == span(own, name, 2)
    confusion = table(run, "People", "judge: tie")
    assert confusion.iloc[:, 1:].to_numpy().tolist() == expected[0]["judges"]["strict"]["confusion"]


def test_methods_money_and_style_are_the_command_s(judged: Path, cli: CLI) -> None:
    expected = as_json(cli, judged)
    run = unfolded(opened(), "numbers of Correlations")
    cells = table(run, "row", "column", "value").set_index(["row", "column"])
    assert len(cells) == 2 * len(expected["methods"]["pairs"])
    for pair in expected["methods"]["pairs"]:
        cell = cells.loc[(pair["second"], pair["first"])]
        same(cell["value"], pair["kendall"], 2)
        assert cell["interval"] == span(pair, "kendall", 2)
    places = table(run, "Best place", "Worst place")
    gaps = [gap for gap in expected["methods"]["places"] if gap["worst"] > gap["best"]]
    assert list(places["Agent"]) == [gap["agent"] for gap in gaps]
    money = table(run, "Same as people").iloc[0]
    judge = expected["judges"]["strict"]
    same(money["Same in both orders"], judge["order_agreement"], 1, 100)
    same(money["Kappa"], expected["comparisons"][0]["judges"]["strict"]["kappa"], 2)
    style = table(run, "Quality")
    for (_, row), own in zip(style.iterrows(), expected["style"], strict=True):
        same(row["Points"], own["points"], 0)
        assert row["Points, 95 %"] == span(own, "points", 0)


def test_agents_whose_places_differ_most_are_named_and_no_name_stands_on_another() -> None:
    rows = [(f"a{at:02}", float(at), float(at)) for at in range(40)] + [("up", 0.0, 45.0), ("beside", 0.5, 45.0)]
    named = named_agents(pd.DataFrame(rows, columns=["agent", "x", "y"]))
    assert named[0] == "up"
    assert "beside" not in named
    assert 3 < len(named) <= 12
    one = [("a", 1.0, 2.0)]
    assert named_agents(pd.DataFrame(one, columns=["agent", "x", "y"])) == ["a"]


def test_corrected_figures_are_the_command_s(judged: Path, cli: CLI) -> None:
    expected = as_json(cli, judged, "--estimates", "--width", "0.2")["comparisons"][0]["judges"]["strict"]["estimates"]
    run = opened()
    frame = table(run, "Labels needed").set_index("Figure")
    for own in expected["figures"]:
        row = frame.loc[own["name"]]
        for column, name in (("Corrected", "corrected"), ("People alone", "people"), ("Judge alone", "judge")):
            same(row[column], own[name], 3)
            assert row[f"{column}, 95 %"] == span(own, name, 3)
        needed = own["labels_needed"]
        assert row["Labels needed"] == ("more than all" if needed is None else f"{needed:,}")
    ratings = [frame.value for frame in run.dataframe if "Corrected" in frame.value and "Weight" not in frame.value]
    (rated,) = ratings
    of_agent = {own["agent"]: own for own in expected["ratings"]["agents"]}
    assert set(rated["Figure"]) == set(AGENTS)
    for _, row in rated.iterrows():
        same(row["Corrected"], of_agent[row["Figure"]]["corrected"], 0)


def test_the_reading_list_has_the_texts_and_leads_to_the_game(judged: Path, cli: CLI) -> None:
    expected = as_json(cli, judged, "--disagreements", "1")["comparisons"][0]["judges"]["strict"]["disagreements"][0]
    run = opened()
    said = shown(run)
    assert f"{expected['query_id']}: {' / '.join(expected['item'])}" in said
    assert f"How long is the notice period in case {expected['query_id']}?" in said
    assert f"The answer of {expected['item'][0]} to {expected['query_id']}" in said
    assert sum("games?tournament=sample&game=" in element.value for element in run.markdown) == 5


def test_the_page_is_as_fresh_as_the_store(store: Path) -> None:
    write_store(store)
    assert "no labels of people" in shown(opened())
    add_people(store, "sample")
    assert "no labels of people" not in shown(page("calibration"))


def test_without_people_it_says_how_to_get_labels_and_shows_what_needs_none(store: Path) -> None:
    write_store(store)
    run = opened()
    said = shown(run)
    for way in (
        "[Vote](vote?tournament=sample)",
        "[Assess](assess?tournament=sample)",
        "data: {qrels: FILE}",
        "ragarena votes import",
    ):
        assert way in said
    assert "Most alike are" in said
    assert len(table(run, "Cost of 1000 games")) == 1
    assert "Not known without labels of people" in said


def test_labels_of_nothing_that_was_judged_are_said_and_break_nothing(store: Path, cli: CLI) -> None:
    write_store(store, qrels={"q01": {"elsewhere": 1}})
    assert "people spoke of labels, but of nothing that a judge judged" in shown(opened())
    assert "labels: people spoke of nothing that a judge judged: left out" in cli("calibrate", store).out


def test_a_tournament_without_grades_and_with_two_agents_has_no_methods_to_compare(store: Path) -> None:
    write_store(store, agents=AGENTS[:2], criteria=False)
    said = shown(opened())
    assert "it takes two ways of scoring, and three agents" in said


def test_where_every_game_failed_the_judge_has_failures_and_no_agreement(store: Path) -> None:
    write_store(store, failed=12 * 6 * 2 - 2, criteria=False)
    row = table(opened(), "Failed").iloc[0]
    assert row["Failed"] == "142 of 144"
    with closing(Store.open(str(store))) as opened_store:
        assert opened_store.settings("sample")["criteria"] is None


def test_what_people_say_among_themselves_is_drawn_when_it_is_opened(judged: Path, cli: CLI) -> None:
    (verdicts, *_) = as_json(cli, judged)["comparisons"]
    run = opened()
    assert not any("Not above chance" in frame.value for frame in run.dataframe)
    row = table(unfolded(run, "people-among-themselves"), "Not above chance").iloc[0]
    assert (row["Judged"], row["People"]) == (verdicts["level"], 2)


def test_few_queries_are_no_reason_to_trust(store: Path) -> None:
    write_store(store, queries=4)
    add_people(store, "sample", share=1.0, error=0.0)
    said = shown(opened())
    assert "Too few labels to say" in said
    assert "As good as people" not in said


def test_a_judge_that_contradicts_people_is_not_called_good(store: Path) -> None:
    write_store(store)
    add_people(store, "sample", share=1.0, error=1.0)
    assert "No better than chance: strict, verdicts" in shown(opened())
