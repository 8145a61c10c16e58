"""The page of the queries: the command's figures, one query opened, and what it says where there are no games."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from arena.boards.queries import query_board
from arena.data.dataset import Dataset
from arena.store import Store
from judges.types import Query
from tests.support.pages import page, sent, shown, table
from tests.support.sample_store import SETTINGS, write_store
from ui.data import LOCATION_VARIABLE


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "s.db"))
    return tmp_path / "s.db"


def test_queries_are_sorted_by_how_they_separate_and_open_with_their_games(here: Path) -> None:
    write_store(here, failed=3)
    with closing(Store.open(str(here))) as store:
        board = query_board(store, "sample")
    run = page("queries")
    lines, failures = table(run, "Separation"), table(run, "Elsewhere")
    assert list(lines["Query"]) == [one.query_id for one in board.by_separation]
    assert list(lines["Separation"]) == [round(one.separation or 0, 2) for one in board.by_separation]
    assert "9 of 12" in set(lines["Verdicts"])
    assert list(failures["Query"]) == [own["query_id"] for own in board.failures("hybrid")]
    run.selectbox(key="agent").select("bm25").run(timeout=20)
    assert list(table(run, "Elsewhere")["Query"]) == [own["query_id"] for own in board.failures("bm25")]
    run.text_input(key="query").input("notice").run(timeout=20)
    assert "12 queries hold these words" in shown(run)
    run.text_input(key="query").input("q03").run(timeout=20)
    assert not run.exception
    assert set(table(run, "Agent", "Won")["Agent"]) == set(board.standings.agents)
    assert "games?tournament=sample&query=q03" in sent(run)


def test_where_every_judgment_failed_the_pages_say_so_and_nothing_breaks(here: Path) -> None:
    write_store(here, queries=2, failed=24, criteria=False)
    assert "No game has a verdict yet" in shown(page("queries"))
    overview = shown(page("overview"))
    assert "Not enough verdicts to rate" in overview or "No verdicts yet" in overview
    assert "24 failed" in overview
    assert "Enough is judged" in overview
    assert "No run of this tournament has been recorded yet" in shown(page("runs"))


@pytest.mark.parametrize("queries", [{}, {"q": Query("q", "why?")}])
def test_without_a_verdict_the_page_says_what_to_do(here: Path, queries: dict[str, Query]) -> None:
    with closing(Store.create(str(here))) as store:
        store.begin("empty", SETTINGS, Dataset(queries), [])
    assert "run `ragleague run`" in shown(page("queries")).replace("Run", "run")
