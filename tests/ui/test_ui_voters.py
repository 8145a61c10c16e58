"""Many people at once on the pages: nobody's word is refused or lost, and each has a queue of their own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import combinations
from pathlib import Path

import pytest

from arena.data.kinds import Annotation
from arena.people import tasks
from arena.store import Store, engine
from arena.store.annotations import Annotations
from benchmarks import page_store
from benchmarks.voters import Voter, all_vote
from tests.support.browser import served
from tests.support.pages import page, press, shown
from tests.support.sample_store import write_store
from ui import data
from ui.data import LOCATION_VARIABLE

PEOPLE, VOTES = 100, 4


def written(location: str) -> str:
    return page_store.write(location, agents=6, queries=12, games_per_query=15)


def kept(location: str) -> list[Annotation]:
    with closing(Store.open(location)) as store:
        return Annotations(store, page_store.NAME).history()


def test_a_hundred_people_vote_at_once_and_every_vote_is_kept(
    store_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PATIENCE_S", 2.0)  # as on the pages
    with data.shared(written(store_location)) as store:
        texts = store.dataset(page_store.NAME)
    games = [(query, *pair) for query in texts.queries for pair in combinations(texts.agents, 2)]
    pool = tasks.games(games, texts)
    together = threading.Barrier(PEOPLE)

    def vote(who: str) -> None:
        progress, seen = tasks.TaskProgress(pool.queue(who)), 0
        together.wait()
        for _ in range(VOTES):
            with data.shared(store_location) as store:
                news, seen = Annotations(store, page_store.NAME).news("verdict", who, seen)
            progress.add(news)
            task = progress.next()
            assert task is not None
            with data.shared(store_location) as store:
                Annotations(store, page_store.NAME).add(task.annotations(who, ["A"]), lambda said: None)

    people = [f"person {number}" for number in range(PEOPLE)]
    with ThreadPoolExecutor(PEOPLE) as threads:
        list(threads.map(vote, people))
    said = kept(store_location)
    assert Counter(one.annotator for one in said) == dict.fromkeys(people, VOTES)
    assert len({(one.annotator, one.query_id) for one in said}) == PEOPLE * VOTES


def test_votes_of_many_real_sessions_are_all_called_saved_and_are_there(store_location: str) -> None:
    people = [Voter(f"person {number}") for number in range(24)]
    with served(written(store_location)) as address:
        asyncio.run(all_vote(people, address, votes=3, every=0.2))
    assert [(one.saved, one.refused) for one in people] == [(3, [])] * 24
    assert Counter(one.annotator for one in kept(store_location)) == {one.name: 3 for one in people}


def test_a_vote_that_is_not_kept_says_so_and_stays_chosen_until_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = write_store(tmp_path / "s.db", queries=4)
    monkeypatch.setenv(LOCATION_VARIABLE, str(store))
    monkeypatch.setattr(engine, "PATIENCE_S", 0.2)
    run = press(page("vote").text_input(key="annotator").set_value("ann").run(timeout=20), "Neither is better")
    assert "Saved" in shown(run)
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        run = press(run, "Answer 2 is better")
    assert "Not saved." in shown(run)
    assert "another program keeps it locked" in shown(run)
    assert "✓ Saved" not in shown(run), "which is of the vote before"
    assert [own.label for own in run.button if own.proto.type == "primary"] == ["Answer 2 is better"]
    run = press(run, "Answer 2 is better")
    assert "✓ Saved: Answer 2" in shown(run)
    assert "Not saved." not in shown(run)
    assert [own.label for own in run.button if own.proto.type == "primary"] == []
    with closing(Store.open(str(store))) as opened:
        assert [one.value for one in Annotations(opened, "sample").latest()] == ["TIE", "B"]


def test_nobody_waits_for_a_lock_again_for_which_those_ahead_have_waited(tmp_path: Path) -> None:
    """Forty people one after another, each with all their patience, would wait for forty times as long."""
    opened = engine.open_engine(str(tmp_path / "s.db"), to_make=True)
    writers = [engine.writing(opened, 2.0, waited_s=waited) for waited in (0.0, 1.5, 60.0)]
    opened.dispose()
    assert [own.get_execution_options()["patience_s"] for own in writers] == [2.0, 0.5, 0.1]


def test_the_pages_leave_a_store_at_rest_that_nobody_uses(tmp_path: Path) -> None:
    location = written(str(tmp_path / "s.db"))
    with data.shared(location) as store, data.shared(location) as same:
        assert store is same
        store.version()
        assert Path(f"{location}-wal").exists()
    assert not Path(f"{location}-wal").exists()


def test_a_store_made_anew_in_the_place_of_another_is_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_store(tmp_path / "s.db", queries=4)
    monkeypatch.setenv(LOCATION_VARIABLE, str(path))
    before, _ = data.tournaments()
    path.unlink()
    write_store(path, queries=4)
    after, _ = data.tournaments()
    assert before[:2] == after[:2], "it has as many changes"
    assert before != after
