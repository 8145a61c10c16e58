"""What the pages say in each state of a store and for each address: logic only, in Streamlit's own test runner."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from arena.boards.games import address_of
from arena.boards.ratings import FLAGS
from arena.config.stages import all_tasks
from arena.data.dataset import Dataset
from arena.results.games import GameKey
from arena.results.outcomes import stage_words
from arena.run.imports import import_table
from arena.store import Store, engine
from judges.types import Query
from tests.support.pages import page, sent, shown, tables, unfolded
from tests.support.peoples_words import add_people
from tests.support.postgres import PostgresServer
from tests.support.sample_store import SETTINGS, write_store
from ui import data
from ui.app import PAGES
from ui.data import LOCATION_VARIABLE

APP = Path(__file__).parents[2] / "ui" / "app.py"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store that the pages read."""
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "s.db"))
    return tmp_path / "s.db"


def opened(name: str = "", **address: str) -> AppTest:
    """The app after its first run; a page other than the first is drawn alone, as the runner knows no addresses."""
    if name:
        return page(name, **address)
    run = AppTest.from_file(str(APP))
    for key, value in address.items():
        run.query_params[key] = value
    run.run(timeout=20)
    assert not run.exception
    return run


def test_without_a_store_or_a_tournament_it_is_said_what_to_do(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = opened()
    assert [error.value for error in run.error] == ["The store cannot be shown."]
    assert "no store there" in shown(run)
    Store.create(str(here)).close()
    assert "no tournament yet" in shown(opened())
    monkeypatch.delenv(LOCATION_VARIABLE)
    assert "start the pages with 'ragleague ui'" in shown(opened())


def test_a_tournament_that_has_not_begun_says_so_on_every_page(here: Path) -> None:
    with closing(Store.create(str(here))) as store:
        store.begin("empty", {**SETTINGS, "retrieval": None}, Dataset({"q": Query("q", "why?")}), [])
    for name, said in (
        ("", "No verdicts yet"),
        ("", "Nothing to conclude yet"),
        ("", "Nothing is planned"),
        ("compare", "No game has a verdict"),
        ("games", "plans no games"),
    ):
        assert said in shown(opened(name))


def test_what_is_missing_and_what_failed_is_counted_until_it_is_there(here: Path) -> None:
    write_store(here, queries=3, unasked=28, failed=5, criteria=False, priced=True)
    run = opened()
    assert "33 of 51 judgments are missing: 5 failed, 28 not made yet" in run.warning[0].value
    causes = tables(unfolded(run, "more"))[-1]
    assert causes["Failures"].tolist() == [5]
    assert causes["Cause"].tolist() == ["the reply was outside the contract, also when asked again"]
    assert "no verdict yet" in tables(opened("games"))[0]["Result"].tolist()
    assert "33 of 51 judgments are missing" in opened("compare").warning[0].value
    write_store(here, queries=20)
    run = opened()
    assert not run.warning
    assert "Clear leader" in shown(run)


def test_the_first_screen_has_few_words_and_all_that_a_terminal_shows_and_leads_to_each_agent(here: Path) -> None:
    write_store(here, queries=40, margin=0.5, priced=True)
    run = opened()
    assert sent(run).count("<h1>") == 1
    first = tables(run)[0]
    columns = ["Agent", "Group", "To first", "Ranks", "Win rate", "Cost", "Latency", "Mean grade", "nDCG@10"]
    assert [name for name in first if "Unnamed" not in name] == columns
    assert "queries?tournament=sample&amp;agent=bm25" in sent(run)
    assert "trust?tournament=sample" in sent(run)
    bodies = "".join(own.proto.body for own in run.get("html"))
    bodies = re.sub(r"</summary>.*?</details>|<t([dh])\b.*?</t\1>", "", bodies, flags=re.DOTALL)
    words = re.findall(r"[\w.,%]+", unescape(re.sub(r"<[^>]*>", " ", bodies)))
    assert 40 < len(words) <= 150, words


def test_the_newest_tournament_is_shown_until_another_is_chosen_and_stays_when_a_newer_one_begins(here: Path) -> None:
    write_store(here, name="first", agents=("one", "two"), queries=2)
    run = opened()
    write_store(here, name="second", agents=("three", "four"), queries=2)
    run.run(timeout=20)
    assert run.query_params.get("tournament") == "first"
    assert set(tables(run)[0]["Agent"]) == {"one", "two"}
    run = opened()
    assert run.query_params.get("tournament") == "second"
    assert set(tables(run)[0]["Agent"]) == {"three", "four"}
    assert '<option value="?tournament=first&amp;view=leaderboard">first</option>' in run.get("html")[0].proto.body


def test_no_other_tournament_is_shown_in_place_of_the_one_that_an_address_names(here: Path) -> None:
    write_store(here, queries=2)
    run = AppTest.from_file(str(APP))
    run.query_params["tournament"] = "another"
    run.run(timeout=20)
    assert [error.value for error in run.error] == ["The address asks for a tournament that this store does not hold."]
    assert not tables(run)
    assert 'view=leaderboard">sample</option>' in run.get("html")[0].proto.body


@pytest.mark.parametrize("queries", [False, True])
def test_verdicts_without_texts_are_shown_as_such_and_nobody_votes_on_them(here: Path, *, queries: bool) -> None:
    """No answer is said to be empty, or the same as another, where its text is not known."""
    table, texts = here.with_name("verdicts.csv"), here.with_name("queries.csv")
    rows = [f"q{query},{a},{b},A,judge" for query in range(12) for a, b in (("one", "two"), ("two", "three"))]
    table.write_text("\n".join(["qid,agent_a,agent_b,verdict,judge", *rows]))
    texts.write_text("\n".join(["qid,query", *(f"q{query},What is {query}?" for query in range(12))]))
    import_table(table, str(here), "imported", queries=texts if queries else None)
    game = address_of(GameKey("q1", "one", "two", "judge"))
    missing = "texts were not imported"
    for name, address in (("vote", {"annotator": "ann"}), ("games", {"game": game}), ("queries", {"query": "q1"})):
        run = page(name, **address)
        assert missing in shown(run), name
        assert not [own for own in run.button if own.label.startswith("Answer")]
        assert "answered nothing" not in shown(run)
        assert "the same, word for word" not in shown(run)
    assert "no answer's text is known" in unescape(sent(page("style")))
    assert "May judge stand in for people on games? Not known" in sent(page("card"))
    with_texts = "--tournament imported --queries QUERIES.csv --answers ANSWERS.csv"
    for name in ("label", "vote", "people"):
        command = page(name, annotator="ann").code[0].value
        assert command == f"ragleague import verdicts VERDICTS.csv --store {here} {with_texts}"
    for name in ("runs", "history", "bank", "nuggets"):
        run = page(name, annotator="ann")
        assert "These verdicts were imported. For more, write a YAML file" in shown(run), name
        assert [one.value for one in run.code] == ["ragleague init imported-run"]
    for name in ("label", "bank", "nuggets", "card", "people", "checks", "runs", "history"):
        assert "pairwise." not in sent(page(name, annotator="ann"))


def test_every_flag_of_a_rating_and_every_task_of_a_judge_has_words() -> None:
    from typing import get_args

    from arena.ratings.bradley_terry import Cause

    assert set(get_args(Cause)) | {"single_game"} == set(FLAGS)
    assert set(stage_words()) == set(all_tasks())


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


def test_a_store_that_another_program_locks_is_said_and_the_page_stays(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PATIENCE_S", 0.1)
    write_store(here, queries=2)
    run = opened()
    before = len(tables(run))
    with closing(sqlite3.connect(here, isolation_level=None)) as other:
        for words in ("PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE", "UPDATE state SET changes = changes"):
            other.execute(words)
        run.run(timeout=20)
        assert "another program keeps it locked" in shown(run)
        assert len(tables(run)) == before


def test_figures_that_a_page_keeps_in_the_store_make_nothing_be_read_anew(here: Path) -> None:
    write_store(here)
    version, (name,) = data.tournaments()
    before = here.stat().st_mtime_ns
    data.board(data.Source(str(here), version, name))
    assert here.stat().st_mtime_ns != before, "they are kept"
    assert data.tournaments()[0] == version
    write_store(here, queries=2)
    assert data.tournaments()[0] != version


def test_where_every_judgment_failed_the_pages_say_so_and_nothing_breaks(here: Path) -> None:
    write_store(here, queries=2, failed=24, criteria=False)
    assert "Nothing is scored yet" in shown(page("queries"))
    for view in ("vote", "assess", "grade"):
        words = shown(page(view))
        assert "Once judges have judged, people are asked here." in words
        assert "YAML" not in words, "annotators have no use for it"
    assert "Add this to the YAML file of this tournament" in shown(page("nuggets"))
    overview = shown(page("leaderboard"))
    assert "Not enough verdicts to rate" in overview or "No verdicts yet" in overview
    assert "24 failed" in overview
    assert "Share of judgments made" in overview
    assert "No run of this tournament has been recorded yet" in shown(page("runs"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_store(tmp_path_factory.mktemp("address") / "s.db")
    add_people(path, "sample")
    return path


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("games", {"agent": "Agent", "opponent": "Opponent"}),
        (
            "corrected",
            {
                "corrected": "Judge and what it judged",
                "width": "Say how many labels an interval of this width needs",
            },
        ),
        ("compare", {"part": "More"}),
        ("", {"view": "part of the page"}),
    ],
)
def test_what_an_address_asks_for_in_vain_is_said(
    store: Path, monkeypatch: pytest.MonkeyPatch, name: str, fields: dict[str, str]
) -> None:
    monkeypatch.setenv(LOCATION_VARIABLE, str(store))
    st.cache_resource.clear()
    assert "not here" not in shown(opened(name))
    run = opened(name, **dict.fromkeys(fields, "nonsense"))
    notes = [note.value for note in run.warning if "not here" in note.value]
    assert sorted(label for note in notes for label in note.rstrip(".").split(": ")[1].split(", ")) == sorted(
        fields.values()
    )


def test_one_field_limits_a_page_to_a_group_or_compares_the_groups_of_a_column(here: Path) -> None:
    write_store(here, queries=24, kinds=("x", "y"))
    texts = {chosen: shown(page("leaderboard", group=chosen)) for chosen in ("by kind", "kind: x")}
    assert "By group of queries" in texts["by kind"]
    assert "kind=y" in texts["by kind"]
    assert "permutation test" in texts["by kind"]
    assert "sample where kind=x" in texts["kind: x"]
    assert "Only queries where kind=x: one of 2 groups." in texts["kind: x"]
    assert "By group of queries" not in texts["kind: x"]
    for chosen, option in (("by kind", "--by kind"), ("kind: x", "--group kind=x")):
        assert page("versus", group=chosen).code[-1].value.endswith(option)


NAMES = ("a/b & c#d%20 'e'", 'say "é" <b>+?=;', "مرحبا 你好", "n" * 200)


def test_every_link_of_every_page_carries_what_is_chosen_and_leads_to_something_that_is_there(here: Path) -> None:
    write_store(here, agents=NAMES, queries=4, kinds=("x & y", "z"), qrels={"q00": {"q00-common": 1}})
    add_people(here, "sample")
    chosen = {"group": "kind: x & y"}
    parts = {view: one.address for one in PAGES for view in one.views}
    pages = [(part, ()) for part in parts]
    seen: set[tuple[str, str]] = set()
    for part, fields in pages:
        run = page(part, annotator="jo & co", **{"tournament": "sample", **chosen, **dict(fields)})
        assert not [note.value for note in run.warning if "not here" in note.value or "not in the store" in note.value]
        bodies = [own.proto.body for own in run.get("html")] + [own.value for own in run.markdown]
        links = re.findall(r'href="([^"]+)"|\]\(([a-z]+\?[^)]+)\)', "\n".join(bodies))
        for link in (unescape(html or markdown) for html, markdown in links):
            url = urlsplit(link)
            asked = dict(parse_qsl(url.query, strict_parsing=True, keep_blank_values=True))
            assert {"tournament": "sample", **chosen}.items() <= asked.items(), link
            assert "jo & co" not in asked.values(), "whoever opens it would judge in that name"
            assert url.path in parts.values(), link
            kind = (url.path + asked.get("view", ""), " ".join(sorted(asked)))
            if kind not in seen:  # one of each kind is followed
                seen.add(kind)
                rest = {name: value for name, value in asked.items() if name not in {"tournament", "view", *chosen}}
                view = asked.get("view") or next(view for view, at in parts.items() if at == url.path)
                pages.append((view, tuple(rest.items())))
    assert {view for view, fields in pages if fields} >= {"queries", "games"}
    assert len(pages) > len(parts) + 6
