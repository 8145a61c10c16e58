"""Runs as the store keeps them, how far a tournament is, and two of its states compared."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from arena.boards.history import BoardState, NamesChanged, compare
from arena.boards.runs import runs_table
from arena.config.ratings import RatingsSection
from arena.results.cache import rating_draws
from arena.results.ratings import leaderboard
from arena.run.recorder import Recorder, recorded, standings_of, subject_of
from arena.store import Store
from arena.store.runners import Runner
from arena.store.runs import Runs
from arena.store.wants import progress
from tests.conftest import CLI
from tests.support.pages import config_file
from tests.support.sample_store import write_store
from tests.support.tournaments import configured, run, write_data

SUBJECT = {"settings": {}, "agents": [], "queries": {}}


def test_a_run_is_kept_with_what_it_came_to_and_its_leaderboard(tmp_path: Path, cli: CLI) -> None:
    write_data(tmp_path)
    config = configured(tmp_path)
    assert cli("run", config_file(config)).status == 0
    run(config)
    with closing(Store.open(config.store)) as store:
        second, first = Runs(store, "small").all()
        board, drawn = leaderboard(store), rating_draws(store, "small")
    assert (first.state, second.state) == ("complete", "complete")
    assert first.stages["pairwise"]["judged"] + first.stages["pairwise"]["known"] == 12
    assert second.stages["pairwise"]["known"] == 12
    assert first.standings == standings_of(board, drawn)
    assert second.standings == [], "nobody rated after the second"
    assert {**first.subject, "origin": {}} == second.subject, "the second was of no file"
    assert first.subject["agents"] == ["x", "y", "z"]
    assert (first.ended or 0) >= first.begun


@pytest.mark.parametrize(
    ("ranks", "provider", "first"),
    [
        ({"x": (1, 1), "y": (2, 2)}, "openai", "x"),
        ({"x": (1, 2), "y": (1, 2)}, "openai", None),
        ({"x": (None, None), "y": (None, None)}, "openai", None),
        ({"x": (1, 1), "y": (2, 2)}, "lexical", None),
    ],
)
def test_a_run_names_an_agent_first_only_where_its_intervals_and_a_language_model_do(
    tmp_path: Path, ranks: Mapping[str, tuple[int | None, int | None]], provider: str, first: str | None
) -> None:
    write_data(tmp_path)
    config = configured(tmp_path)
    run(config)
    with closing(Store.open(config.store)) as store:
        (recorded_run,) = Runs(store, "small").all()
    standings = [{"agent": agent, "rank_low": low, "rank_high": high} for agent, (low, high) in ranks.items()]
    subject = {**recorded_run.subject, "settings": {"judges": {"j": {"provider": provider}}}}
    (row,) = runs_table([replace(recorded_run, standings=standings, subject=subject)]).rows
    assert row["first"] == first


def test_a_run_whose_process_is_gone_was_killed(store_location: str) -> None:
    gone = replace(Runner(), pid=2**22 + 1)  # beyond the highest number of a process
    with closing(Store.create(store_location)) as store:
        begin(store)
        Runs(store, "t").begin(gone, SUBJECT)
        Runs(store, "t").begin(Runner(), SUBJECT)
        Runs(store, "t").begin(replace(gone, host="elsewhere"), SUBJECT)
        assert [(one.state, one.here) for one in Runs(store, "t").all()] == [
            ("running", False),
            ("running", True),
            ("killed", True),
        ]


def test_a_run_elsewhere_that_is_silent_was_killed_and_its_beat_keeps_it(tmp_path: Path) -> None:
    runner = replace(Runner(), host="elsewhere")
    with closing(Store.create(str(tmp_path / "s.db"))) as store:
        begin(store)
        Runs(store, "t").begin(runner, SUBJECT)
        with store.writing() as connection:
            connection.execute(text("UPDATE run SET beat = beat - 100"))
        assert [one.state for one in Runs(store, "t").all()] == ["killed"]
        store.beat(runner)
        assert [one.state for one in Runs(store, "t").all()] == ["running"]


@pytest.mark.parametrize(("problem", "ending"), [(KeyboardInterrupt, "stopped"), (ValueError, "failed")])
def test_a_run_that_breaks_off_says_how(tmp_path: Path, problem: type[BaseException], ending: str) -> None:
    with closing(Store.create(str(tmp_path / "s.db"))) as store:
        begin(store)
        with pytest.raises(problem), recorded(str(tmp_path / "s.db"), "t") as recorder:
            _begin_and_raise(recorder, store, problem)
        assert [one.state for one in Runs(store, "t").all()] == [ending]


def _begin_and_raise(recorder: Recorder, store: Store, problem: type[BaseException]) -> None:
    recorder.begin(store)
    raise problem


def test_progress_counts_what_the_leaderboard_counts(tmp_path: Path) -> None:
    with closing(Store.open(str(write_store(tmp_path / "s.db", failed=3, unasked=5)))) as store:
        found, board = progress(store, "sample"), leaderboard(store)
    counted = {task: (own.wanted, own.judged, own.failed, own.left) for task, own in found.stages.items()}
    assert counted == {task: (own.wanted, own.judged, own.failed, own.left) for task, own in board.coverage.items()}
    assert found.cost_unknown == sum(own.judged + own.failed - own.identical for own in board.coverage.values())
    assert found.cost_usd == 0


def test_what_changed_names_agents_judges_queries_and_settings() -> None:
    before = BoardState(
        subject(["a", "b"], {"j": {"model": "m-1"}, "k": {}}, {"q1": "x", "q2": "y"}), [line("a"), line("b")]
    )
    after = BoardState(
        subject(["b", "c"], {"j": {"model": "m-2"}}, {"q1": "z", "q3": "y"}), [line("c"), line("b", 300)]
    )
    found = compare(before, after)
    assert found.agents == NamesChanged(("c",), ("a",), ())
    assert found.judges == NamesChanged((), ("k",), ("j",))
    assert found.queries == NamesChanged(("q3",), ("q2",), ("q1",))
    assert found.settings == {"judges.j.model": ("m-1", "m-2"), "judges.k": ({}, None)}
    (move,) = found.moves
    assert [move[key] for key in ("agent", "place_before", "place_after", "points")] == ["b", 1, 1, 200]
    assert move["intervals"] == "apart"
    assert not found.same_subject
    (section,) = found.sections()
    assert "no points are shown here; History anchors them" in section.blocks[0].items[0]
    assert [column.heading for column in section.blocks[1].columns] == ["Agent", "Place before", "Place after"]


def test_a_state_is_no_different_from_itself(tmp_path: Path) -> None:
    with closing(Store.open(str(write_store(tmp_path / "s.db", queries=4)))) as store:
        board = leaderboard(store)
        own = BoardState(subject_of(board.settings, store.dataset("sample")), standings_of(board))
    found = compare(own, own)
    assert found.same_subject
    moves = [(move["place_before"], move["points"], move["intervals"]) for move in found.moves]
    assert moves == [(place, 0.0, "overlap") for place in range(1, 5)]


def test_a_setting_that_a_later_version_brings_has_not_changed() -> None:
    kept: dict[str, Any] = {
        "elo": {"k": 32.0, "initial": 1000.0, "tournaments": 500},
        "bradley_terry": {"ties": "davidson"},
        "bootstrap": {"by": "query", "samples": 1000},
        "min_coverage": 0.8,
        "seed": 7,
    }
    now = RatingsSection(seed=7).model_dump(mode="json")
    before, after = (BoardState({"settings": {"ratings": own}}, []) for own in (kept, now))
    assert compare(before, after).same_subject
    soft = BoardState({"settings": {"ratings": {**now, "preferences": "soft"}}}, [])
    assert compare(before, soft).settings == {"ratings.preferences": ("hard", "soft")}


def begin(store: Store) -> None:
    from arena.data.dataset import Dataset

    store.begin("t", {"ratings": {}}, Dataset({}), [])


def subject(agents: list[str], judges: dict[str, Any], queries: dict[str, str]) -> dict[str, Any]:
    return {"settings": {"judges": judges}, "agents": agents, "queries": queries}


def line(agent: str, bt: float = 100) -> dict[str, Any]:
    return {"agent": agent, "bt": bt, "bt_low": bt - 50, "bt_high": bt + 50}
