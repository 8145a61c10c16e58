"""What the pages say in each state of a store: logic only, in Streamlit's own test runner."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from arena.boards.ratings import FLAGS
from arena.boards.trust import trust_checks
from arena.conclusion import conclude_board
from arena.dataset import Dataset
from arena.leaderboard import leaderboard
from arena.samples import labels_of
from arena.store import Store, Wanted
from arena.wording import STAGES
from judges.pointwise import label_of
from judges.types import Answer, Document, Query, Retrieved, Task
from tests.support.pages import shown, unfolded
from tests.support.postgres import PostgresServer
from tests.support.sample_store import SETTINGS, write_store
from ui.data import LOCATION_VARIABLE

APP = Path(__file__).parents[2] / "ui" / "app.py"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store that the pages read."""
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "s.db"))
    return tmp_path / "s.db"


def opened(page: str = "") -> AppTest:
    """The app after its first run; a page other than the first is drawn alone, as the runner knows no addresses."""
    run = AppTest.from_function(draw, kwargs={"page": page}) if page else AppTest.from_file(str(APP))
    run.run(timeout=20)
    assert not run.exception
    return run


def draw(page: str) -> None:
    from importlib import import_module

    from ui import data

    version, names = data.tournaments()
    import_module(f"ui.views.{page}").show(data.Source(data.location(), version, names[-1]))


def test_a_store_that_is_gone_is_said_in_one_line() -> None:
    run = opened()
    assert [error.value for error in run.error] == ["The store cannot be shown."]
    assert "no store there" in shown(run)


def test_pages_started_without_a_store_say_how_to_start_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOCATION_VARIABLE)
    assert "start the pages with 'ragarena ui'" in shown(opened())


def test_a_store_without_a_tournament_says_what_to_do(here: Path) -> None:
    Store.create(str(here)).close()
    assert "no tournament yet" in shown(opened())


def test_a_tournament_that_has_not_begun_says_so_on_every_page(here: Path) -> None:
    with closing(Store.create(str(here))) as store:
        store.begin("empty", SETTINGS, Dataset({"q": Query("q", "why?")}), [])
    assert "No verdicts yet" in shown(opened())
    assert "Nothing is planned" in shown(opened())
    assert "No game has a verdict" in shown(opened("matrix"))
    assert "plans no games" in shown(opened("games"))


def test_a_run_that_was_killed_early_shows_what_is_missing(here: Path) -> None:
    write_store(here, queries=3, unasked=36, criteria=False, priced=True)
    run = opened()
    assert "36 of 51 judgments are missing: 0 failed, 36 not made yet" in run.warning[0].value
    assert "no verdict yet" in opened("games").dataframe[0].value["Result"].tolist()


def test_a_matrix_of_too_few_verdicts_to_rate_is_shown_and_said_to_be_one(here: Path) -> None:
    write_store(here, failed=40, criteria=False)
    run = opened("matrix")
    assert not run.info
    assert "too little is judged to rate the agents" in run.warning[0].value


def test_failures_are_counted_with_their_cause(here: Path) -> None:
    write_store(here, failed=5)
    run = opened()
    assert "5 failed" in run.warning[0].value
    causes = run.dataframe[-1].value
    assert causes["Failures"].tolist() == [5]
    assert causes["Cause"].tolist() == ["the reply was outside the contract, also when asked again"]


def test_every_trust_check_of_the_report_is_shown_with_what_to_do(here: Path) -> None:
    with closing(Store.open(str(write_store(here, margin=0.1)))) as store:
        board = leaderboard(store)
    checks = trust_checks(board, conclude_board(board))
    assert {check.status for check in checks} == {"failed", "unknown", "passed"}
    words = shown(opened())
    for check in checks:
        assert f"{check.name}\n{check.finding}" in words
        assert (check.remedy in words) == (check.status != "passed")


def test_a_complete_tournament_has_no_warning(here: Path) -> None:
    write_store(here, queries=20)
    run = opened()
    assert not run.warning
    assert run.header[0].value.endswith("Clear leader")


def test_of_several_tournaments_the_newest_is_shown_and_the_others_can_be_chosen(here: Path) -> None:
    write_store(here, name="first", agents=("one", "two"))
    write_store(here, name="second", agents=("three", "four"))
    run = opened()
    assert run.selectbox[0].value == "second"
    assert run.query_params.get("tournament") == "second"
    assert set(run.dataframe[0].value["Agent"]) == {"three", "four"}
    run.selectbox[0].select("first").run(timeout=20)
    assert set(run.dataframe[0].value["Agent"]) == {"one", "two"}
    assert run.query_params.get("tournament") == "first"


def test_a_tournament_that_is_shown_stays_when_a_newer_one_begins(here: Path) -> None:
    write_store(here, name="first", agents=("one", "two"))
    run = opened()
    assert run.query_params.get("tournament") == "first"
    write_store(here, name="second", agents=("three", "four"))
    run.run(timeout=20)
    assert set(run.dataframe[0].value["Agent"]) == {"one", "two"}


def test_no_other_tournament_is_shown_in_place_of_the_one_that_an_address_names(here: Path) -> None:
    write_store(here)
    run = AppTest.from_file(str(APP))
    run.query_params["tournament"] = "another"
    run.run(timeout=20)
    assert [error.value for error in run.error] == ["The address asks for a tournament that this store does not hold."]
    assert not run.dataframe
    run.selectbox[0].select("sample").run(timeout=20)
    assert not run.error
    assert run.dataframe


def test_a_store_that_grows_is_read_anew(here: Path) -> None:
    write_store(here, unasked=40)
    assert opened().warning
    write_store(here)
    assert not opened().warning


def test_games_are_listed_a_page_at_a_time(here: Path) -> None:
    write_store(here, queries=20, criteria=False)
    run = opened("games")
    assert "120 games" in shown(run)
    assert len(run.dataframe[0].value) == 50


def test_a_pair_s_filter_leaves_its_games_only(here: Path) -> None:
    write_store(here)
    run = opened("games")
    run.selectbox(key="agent").select("bm25")
    run.selectbox(key="opponent").select("dense").run(timeout=20)
    assert not run.exception
    listed = run.dataframe[0].value
    assert len(listed) == 12
    assert {frozenset(pair) for pair in zip(listed["Agent"], listed["Opponent"], strict=True)} == {
        frozenset({"bm25", "dense"})
    }


def test_filters_that_leave_nothing_say_so(here: Path) -> None:
    write_store(here)
    run = unfolded(opened("games"), "more")
    run.selectbox(key="result").select("no verdict yet").run(timeout=20)
    assert "No game passes these filters" in shown(run)


def test_equal_answers_are_shown_as_a_tie_without_a_judge(here: Path) -> None:
    write_store(here, queries=1, criteria=False)
    run = opened("games")
    run.selectbox(key="agent").select("bm25")
    run.selectbox(key="opponent").select("random-passage").run(timeout=20)
    assert "A tie: both answers are the same text." in shown(run)
    assert "the judge of this game saw 0 of them" in shown(run)


def test_what_the_relevance_judge_said_besides_the_label_is_shown(here: Path) -> None:
    write_store(here, queries=1, criteria=False, details={"match": 3, "quote": "<b>as $x$ it says</b>"})
    run = opened("games")
    run.selectbox(key="agent").select("bm25")
    run.selectbox(key="opponent").select("dense").run(timeout=20)
    assert not run.exception
    assert any(label in shown(run) for label in ("label 0", "label 1", "label 2"))
    assert "match 3, quote <b>as $x$ it says</b>" in shown(run).splitlines()
    seen = re.search(r"the judge of this game saw (\d+)", shown(run))
    assert seen is not None
    assert int(seen[1]) > 0


def test_retrieval_that_nobody_labels_says_what_to_do(here: Path) -> None:
    with closing(Store.create(str(here))) as store:
        store.begin("empty", {**SETTINGS, "retrieval": None}, Dataset({"q": Query("q", "why?")}), [])
    assert "Give its YAML file a `retrieval` section" in shown(opened("retrieval"))


def test_documents_that_wait_for_their_labels_are_said_to(here: Path) -> None:
    data = Dataset(
        {"q": Query("q", "why?")},
        {"d": Document("d", "text")},
        {("q", "x"): Answer("q", "x", "so")},
        {"q": (Retrieved("q", "d", "x", 1),)},
    )
    with closing(Store.create(str(here))) as store:
        store.begin("waiting", SETTINGS, data, [Wanted(Task.RELEVANCE, "strict", "q", "d")])
    run = opened("retrieval")
    assert "of 1 labels 0 failed and 1 are not made yet" in run.warning[0].value
    assert "No agent's documents have a label yet" in shown(run)
    assert "Not judged yet." in shown(run)


def test_retrieval_shows_measures_queries_labels_and_documents(here: Path) -> None:
    write_store(here, queries=4, criteria=False, details={"quote": "<b>as $x$ it says</b>"})
    run = opened("retrieval")
    measures, labels, intervals, queries = (frame.value for frame in run.dataframe)
    assert list(measures["Agent"]) == ["hybrid", "dense", "bm25", "random-passage"]  # in the order of their ratings
    assert {"nDCG@10", "95% interval", "RR(rel=2)@5", "Judged@10"} <= set(measures)
    assert {"nDCG@10", "RR(rel=2)@5", "Judged@10"} <= set(intervals)
    assert len(queries) == 4
    assert labels[[name for name in labels if name.startswith("Label ")]].sum(axis=1).tolist() == [8, 8, 8, 8, 20]
    assert "No labels of people: name them" in shown(run)
    assert "5 of the 5 documents that agents retrieved" in shown(run)
    assert "quote <b>as $x$ it says</b>" in shown(run).splitlines()
    run.selectbox(key="measure").select("Judged@10").run(timeout=20)
    assert run.dataframe[3].value["hybrid"].tolist() == [1.0] * 4


def test_people_s_labels_stand_beside_the_judge_s_and_filter_documents(here: Path) -> None:
    with closing(Store.open(str(write_store(here, queries=2, criteria=False)))) as store:
        said = {document: label_of(found.outcome) for document, found in labels_of(store, "sample").items()}  # type: ignore[union-attr]
    people = {"q00": {doc_id: label for (query_id, doc_id), label in said.items() if query_id == "q00"}}
    people["q00"]["q00-common"] += 1
    write_store(here, queries=2, criteria=False, qrels=people)
    run = opened("retrieval")
    assert set(run.dataframe[0].value["Labels of"]) == {"the judge", "people"}
    assert "Same label" in shown(run)
    assert "0.80" in shown(run)
    assert "5 of the 5 that people labelled (100%)" in shown(run)
    run.selectbox(key="documents").select("where people disagree").run(timeout=20)
    assert "1 of the 5 documents" in shown(run)
    assert "people say" in shown(run)
    run.selectbox(key="documents").select("without a label").run(timeout=20)
    assert "No document passes these filters" in shown(run)


def test_every_flag_of_a_rating_has_words() -> None:
    from typing import get_args

    from arena.ratings.existence import Cause

    assert set(get_args(Cause)) | {"single_game"} == set(FLAGS)


def test_every_task_of_a_judge_has_words_on_the_page() -> None:
    assert set(STAGES) == set(Task)


def test_a_page_says_in_one_line_that_its_server_is_away_and_shows_the_store_again(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = postgres.database()
    Store.create(location).close()
    monkeypatch.setenv(LOCATION_VARIABLE, location)
    with postgres.away():
        run = opened()
        assert [error.value for error in run.error] == ["The store cannot be shown."]
        assert "no database server answers there" in shown(run)
    assert "no tournament yet" in shown(run.run())
