"""The pages of queries: the heat map, a query, an agent, the list of games, a game and its flags."""

from __future__ import annotations

import re
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from arena.boards.games import address_of, flags_of
from arena.boards.queries import QueryBoard, query_board
from arena.results.games import GameKey
from arena.store import Store
from judges.types import Task, label_of
from tests.support.pages import page, press, shown, table, tables, unfolded
from tests.support.sample_store import write_store
from ui.access import EVERYBODY_VARIABLE
from ui.data import LOCATION_VARIABLE

KEY = GameKey("q01", "bm25", "dense", "strict")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store that the pages read."""
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "s.db"))
    return tmp_path / "s.db"


def board_of(path: Path) -> QueryBoard:
    with closing(Store.open(str(path))) as store:
        return query_board(store, "sample")


def links(page: AppTest) -> dict[str, dict[str, str]]:
    """What the address of each link holds, by the link's words; of several with the same words the last."""
    markup = "".join(own.proto.body for own in page.get("html"))
    found = re.findall(r'<a href="([^"]*)">(.*?)</a>', markup, re.DOTALL)
    return {
        unescape(re.sub("<[^>]+>", "", words)): {
            name: values[0] for name, values in parse_qs(urlsplit(unescape(address)).query).items()
        }
        for address, words in found
    }


def follow(name: str, address: dict[str, str]) -> AppTest:
    return page(name, **{key: value for key, value in address.items() if key != "view"})


def test_the_heat_map_leads_to_queries_agents_and_games(here: Path) -> None:
    write_store(here, failed=3)
    board, run = board_of(here), page("queries")
    assert board.finding in shown(run)
    assert "verdicts on" in run.warning[0].value
    found = links(run)
    assert found[board.label("q03")] == {"tournament": "sample", "query": "q03"}
    assert found["bm25"] == {"tournament": "sample", "agent": "bm25"}
    cells = [address for address in found.values() if address.get("view") == "games"]
    assert all({"query", "agent"} < address.keys() for address in cells)
    run.segmented_control(key="score").set_value("Mean grade").run(timeout=20)
    assert "Mean grade: blue above the mean of the query's agents, orange below" in shown(run)
    assert board.finding not in shown(run), "it is about games"
    run.text_input(key="find").input("case q03").run(timeout=20)
    assert {label for label in links(run) if label.startswith("q")} == {board.label("q03")}
    run.text_input(key="find").input("nowhere").run(timeout=20)
    assert "No query holds these words" in shown(run)
    assert "not here" in shown(page("queries", query="nowhere"))


def test_more_queries_than_one_page_holds_are_paged_in_the_address(here: Path) -> None:
    write_store(here, queries=60, criteria=False)
    first, second = (links(page("queries", page=number)) for number in ("1", "2"))
    rows = [{label for label in found if re.match("q\\d", label)} for found in (first, second)]
    assert list(map(len, rows)) == [50, 10]
    assert not rows[0] & rows[1]


def test_a_query_shows_every_answer_document_and_verdict_with_what_was_said(here: Path) -> None:
    details = {"quote": "<b>as $x$ it says</b>"}
    with closing(Store.open(str(write_store(here, queries=2, details=details)))) as store:
        said = {want.item: result for want, result in store.outcomes("sample", Task.RELEVANCE, "q01")}
    common = label_of(said["q01-common"].outcome)  # type: ignore[union-attr]
    write_store(here, queries=2, details=details, qrels={"q01": {"q01-common": common + 1}})
    run = page("queries", query="q01", agent="bm25")
    words, board = shown(run), board_of(here)
    assert words.index("The answer of bm25 to q01") < words.index("The answer of hybrid to q01"), "the agent asked for"
    assert board.scores_line("q01", "bm25") in words
    assert set(table(run, "Agent", "Games")["Agent"]) == set(board.standings.agents)
    verdicts = table(run, "Game", "Result")
    assert len(verdicts) == 6
    assert {*verdicts["Reason"], *verdicts["Its reason"]} == {"I weighed both answers to q01."}
    assert f"people say {common + 1}" in words
    assert "quote <b>as $x$ it says</b>" in words.splitlines()
    game = links(run)["bm25 against dense"]
    assert game == {"tournament": "sample", "view": "games", "game": address_of(KEY)}
    assert "What the judge said" in shown(follow("games", game))


def test_an_agent_shows_its_scores_its_worst_queries_and_what_it_lost_on(here: Path) -> None:
    write_store(here)
    run, board = page("queries", agent="bm25"), board_of(here)
    assert "Place 3 of 4, on 12 queries." in shown(run)
    worst = [own["query_id"] for own in board.failures("bm25")]
    assert list(table(run, "Elsewhere")["Query"]) == worst[:10]
    lost = table(run, "Lost against")
    assert len(lost) == sum(own["lost"] for own in board.failures("bm25")[:10])
    assert set(lost["The judge's reason"]) <= {f"I weighed both answers to {query_id}." for query_id in worst}
    against = table(run, "Against")
    assert against["Games"].sum() == 36
    games = follow("games", links(run)["All games that it lost"])
    assert f"{against['Lost'].sum():.0f} games" in shown(games)


def test_games_are_listed_a_page_at_a_time_and_filtered_and_one_leads_to_the_next(here: Path) -> None:
    write_store(here, queries=20, criteria=False)
    run = page("games")
    assert "120 games" in shown(run)
    assert len(tables(run)[0]) == 25
    assert len(tables(page("games", page="5"))[0]) == 20
    run.selectbox(key="agent").select("bm25")
    run.selectbox(key="opponent").select("dense").run(timeout=20)
    listed = tables(run)[0]
    assert {frozenset(pair) for pair in zip(listed["Agent"], listed["Opponent"], strict=True)} == {
        frozenset({"bm25", "dense"})
    }
    assert len(listed) == 20
    assert "not in the store" in shown(page("games", game="0123456789ab"))
    one = page("games", agent="bm25", opponent="dense", game=address_of(KEY))
    assert "2 of 20" in shown(one)
    assert links(one)["All games"].items() >= {"agent": "bm25", "opponent": "dense", "view": "games"}.items()
    after = follow("games", links(one)["Next game"])
    assert "3 of 20" in shown(after)
    assert "q02" in shown(after)
    run = unfolded(run, "more")
    run.selectbox(key="result").select("no verdict yet").run(timeout=20)
    assert "No game passes these filters" in shown(run)


def test_a_reference_answer_is_shown_beside_the_answers(here: Path) -> None:
    write_store(here, queries=2, criteria=False, reference="Sixty days, says **the contract**.")
    for view, address in (("games", {"game": address_of(KEY)}), ("queries", {"query": "q01"})):
        run = page(view, **address)
        (box,) = (own.proto.body for own in run.get("html") if 'aria-label="Reference answer"' in own.proto.body)
        assert "Sixty days, says the contract." in re.sub("<[^>]*>", "", box)
    write_store(here, queries=2, criteria=False)
    assert "Reference answer" not in shown(page("queries", query="q01"))


def test_a_game_is_flagged_by_those_who_may_and_found_by_its_flag(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_store(here, queries=2, criteria=False)
    run = page("games", game=address_of(KEY), flag="true")
    run.text_area(key="comment").input("Both say <b>it</b>.")
    assert "an annotator's name" in shown(press(run, "Flag"))
    run.text_input(key="annotator").input("ann")
    run.text_area(key="comment").input("Both say <b>it</b>.")
    assert "ann: Both say <b>it</b>." in shown(press(run, "Flag"))
    listed = page("games", flagged="true")
    assert "1 game\n" in shown(listed)
    assert list(tables(listed)[0]["Flagged by"]) == ["ann"]
    monkeypatch.setenv(EVERYBODY_VARIABLE, "viewer")
    reader = page("games", game=address_of(KEY), flag="true")
    assert "ann: Both say" in shown(reader)
    assert not reader.button
    assert "no longer allows you to vote" in shown(press(run, "Take my flag back"))
    monkeypatch.setenv(EVERYBODY_VARIABLE, "voter")
    press(page("games", game=address_of(KEY), flag="true", annotator="ann"), "Take my flag back")
    with closing(Store.open(str(here))) as store:
        assert flags_of(store, "sample") == {}
