"""Advice on more queries where the data hold queries that nobody judged yet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import ragleague as rl
from arena.boards.conclusion import conclude_board, to_tell_apart
from arena.boards.gate.compare import compare
from arena.data.dataset import Group
from arena.results.ratings import Leaderboard, leaderboard, of_group
from arena.store import Store
from tests.support.sample_store import write_store

QUERIES = 30
FIRST = "of the data are not judged yet: judge them first."


def rows(agent: str) -> Iterator[dict[str, Any]]:
    """Answers of two agents, of which x is right a little more often."""
    for number in range(QUERIES):
        right = number % 3 != 0 if agent == "x" else number % 3 == 0 or number % 5 == 0
        text = "alpha" if right else "nobody knows"
        yield {"query_id": f"q{number}", "query": f"What is fact {number}?", "answer": text, "agent": agent}


def judge(prompt: Any) -> str:
    first, second = ("alpha" in answer.text for answer in prompt.asked.inputs.answers)
    return "TIE" if first == second else "A" if first else "B"


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], Path]:
    monkeypatch.chdir(tmp_path)
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for agent in "xy" for row in rows(agent)))

    def run(limit: int | None) -> Path:
        store = tmp_path / f"{limit}.db"
        data = rl.load("answers.jsonl", limit=limit) if limit else rl.load("answers.jsonl")
        rl.run(data, judge=judge, store=str(store), progress=False)
        return store

    return run


def board_of(store: Path, group: Group | None = None, **how: Any) -> Leaderboard:
    with closing(Store.open(str(store))) as opened:
        return leaderboard(of_group(opened, opened.only_tournament(), group), **how)


def advice(board: Leaderboard) -> str:
    assert board.ratings is not None
    return to_tell_apart(board.ratings, conclude_board(board))


def test_queries_beyond_a_limit_are_judged_before_more_are_written(
    judged: Callable[[int | None], Path], cli: Callable[..., Any]
) -> None:
    store = judged(14)
    assert advice(board_of(store)).startswith(f"16 queries {FIRST} To tell x and y apart, it takes about ")
    shown = cli("leaderboard", store, "--details").out
    neighbours = shown.partition("Can neighbours be told apart?")[2].partition("\n\n")[0]
    assert neighbours.strip().endswith(f"16 queries {FIRST}")
    with closing(Store.open(str(store))) as opened:
        (own,) = compare(opened, "x-y", "x", "y").scores
    assert any(f"undecided. 16 queries {FIRST} About " in line for line in own.remarks())


def test_where_every_query_is_judged_nothing_is_left_to_judge_first(judged: Callable[[int | None], Path]) -> None:
    store = judged(None)
    said = advice(board_of(store))
    assert said.startswith("To tell x and y apart, it takes about ")
    with closing(Store.open(str(store))) as opened:
        (own,) = compare(opened, "x-y", "x", "y").scores
    assert not any("judged yet" in line for line in own.remarks())


def test_queries_that_a_stopped_run_left_are_counted_and_those_of_other_groups_are_not(tmp_path: Path) -> None:
    per_query = 2 * 6  # two orders of six pairs of four agents
    store = write_store(tmp_path / "s.db", queries=20, unasked=5 * per_query, margin=0.1, kinds=["short", "long"])
    board = board_of(store, below_coverage=True)
    assert board.ratings is not None
    assert board.ratings.unjudged == 5
    short = board_of(store, ("kind", "short"), below_coverage=True)
    assert short.ratings is not None
    assert 0 < short.ratings.unjudged < 5
