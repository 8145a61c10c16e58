"""Ratings of earlier states on the scale of now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.boards.history import NOW, BoardState, HistoryBoard, Version, history, moment
from arena.results.cache import rating_draws
from arena.results.ratings import leaderboard
from arena.store import Store
from arena.store.runs import Runs
from tests.conftest import CLI
from tests.support.pages import config_file
from tests.support.tournaments import configured, write_data


def line(agent: str, bt: float, *se: float) -> dict[str, Any]:
    return {"agent": agent, "bt": bt, "bt_low": bt - 50, "bt_high": bt + 50, "se": list(se)}


SUBJECT = {"queries": {"q": "x"}}
BEFORE = BoardState(
    {**SUBJECT, "answers": {"a": "1", "b": "1", "c": "1"}}, [line("a", 100, 10, 20), line("b", 0, 10), line("c", -100)]
)
AFTER = BoardState(
    {**SUBJECT, "answers": {"a": "1", "b": "1", "c": "2"}}, [line("c", 200, 10, 20), line("a", 0, 10), line("b", -200)]
)


def of_two(unchanged: str = "ab", **subject: Any) -> HistoryBoard:
    first = moment(BoardState({**BEFORE.subject, **subject}, BEFORE.standings), "first", frozenset(unchanged), ())
    return HistoryBoard([first, moment(AFTER, NOW, frozenset("abc"), ())])


def test_a_state_is_moved_so_that_those_who_did_not_change_keep_their_mean() -> None:
    board = of_two()
    first, now = board.moments
    assert board.anchors(first) == ["a", "b"]
    anchored = {agent: board.rating(first, agent) for agent in "abc"}
    assert {agent: own.value for agent, own in anchored.items()} == {"a": -50.0, "b": -150.0, "c": -250.0}
    # Of c: (20^2 + 10^2) / 2 less half the mean of 0, 10^2, 10^2 and 0.
    assert anchored["c"].high == pytest.approx(-250 + 1.959964 * (250 - 25) ** 0.5)
    assert board.rating(now, "c").low == 150, "now keeps the interval of its leaderboard"


def test_an_agent_has_a_version_for_each_set_of_answers() -> None:
    board = of_two()
    assert [len(board.versions(agent)) for agent in "abc"] == [1, 1, 2]
    second = board.versions("c")[-1]
    assert (second.number, second.since, second.rating.value) == (2, NOW, 200)
    assert second.change.value == pytest.approx(450)
    assert board.drawn == "c"
    assert [own.name for own in board.picture().lines] == [NOW, "first"]
    assert [own.tag for own in board.picture().lines] == ["version 2", "version 1"]


def drawn(state: BoardState, draws: Mapping[str, Sequence[float]]) -> BoardState:
    lines = [{**own, "draws": [own["bt"] + moved for moved in draws[own["agent"]]]} for own in state.standings]
    return BoardState({**state.subject, "settings": {"ratings": {"seed": 3}}}, lines)


def test_a_change_on_the_same_queries_has_the_interval_of_how_both_versions_move_together() -> None:
    moved = np.random.default_rng(1).normal(0, 30, (3, 200))
    with_c = np.random.default_rng(2).normal(0, 5, 200)
    one = drawn(BEFORE, dict(zip("abc", moved, strict=True)))
    other = drawn(AFTER, {"a": moved[0], "b": moved[1], "c": moved[2] + with_c})
    queries = {"queries": {f"q{at}": "x" for at in range(60)}}

    def changed(after: BoardState) -> Version:
        states = [BoardState({**own.subject, **queries}, own.standings) for own in (one, after)]
        first, now = (moment(own, name, frozenset("ab"), ()) for own, name in zip(states, ("first", NOW), strict=True))
        return HistoryBoard([first, now]).versions("c")[-1]

    found = changed(other)
    assert found.paired
    assert found.change.value == pytest.approx(450)
    assert (found.change.high or 0) - (found.change.low or 0) == pytest.approx(2 * 1.96 * 5, rel=0.2)
    alone = changed(BoardState({**other.subject, "settings": {"ratings": {"seed": 4}}}, other.standings))
    assert not alone.paired
    assert alone.change.value == pytest.approx(450)


def test_a_state_without_anyone_unchanged_is_on_another_scale_and_is_not_shown() -> None:
    board = of_two(unchanged="")
    assert board.rating(board.moments[0], "c").value == -100
    assert board.versions("c")[-1].change is None
    (section,) = board.sections()
    assert "1 run has no anchor" in section.blocks[0].items[0]
    assert [line.name for line in board.picture().lines] == ["now"]
    ratings = {(row["agent"], row["version"]): row["rating"] for row in section.blocks[2].rows}
    assert ratings["c", 1] is None
    assert ratings["c", 2].value is not None


def test_runs_keep_what_the_history_is_made_of(tmp_path: Path, cli: CLI) -> None:
    write_data(tmp_path)
    config = configured(tmp_path, criteria=None)
    assert cli("run", config_file(config)).status == 0
    answers = (tmp_path / "answers.csv").read_text().splitlines()
    head, *rows = answers
    changed = [row + " and more" if row.split(",")[1] == "x" else row for row in rows]
    (tmp_path / "answers.csv").write_text("\n".join([head, *changed]) + "\n")
    assert cli("run", config_file(config)).status == 0
    with closing(Store.open(config.store)) as store:
        runs, board, data = Runs(store, "small").all(), leaderboard(store), store.dataset("small")
        found = history(runs, board, data, rating_draws(store, "small"))
    assert len(found.moments) == 2
    assert found.anchors(found.moments[0]) == ["y", "z"]
    assert {agent: len(found.versions(agent)) for agent in found.agents} == {"x": 2, "y": 1, "z": 1}
    first, second = found.versions("x")
    assert first.rating.value is not None
    assert second.paired


def test_runs_of_earlier_versions_kept_less_and_are_shown_without_an_anchor() -> None:
    old = BoardState({"queries": {"q": "x"}}, [{**line("a", 1), "se": ()}, line("b", 0)])
    board = HistoryBoard([moment(old, "first", frozenset(), ()), moment(AFTER, NOW, frozenset("abc"), ())])
    assert [own.rating.value for own in board.versions("a")] == [1, 0]
    assert board.versions("a")[-1].change is None
