"""What a plan says that the run can decide, and what twice the queries or judges buy, from real runs."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.boards.runs import PlanBoard
from arena.config.schema import Config
from arena.present.blocks import Remarks
from arena.present.table import Table
from arena.run.decidable import Decides
from arena.run.plan import Plan, plan
from arena.store import Store
from arena.store.wants import paid
from judges.types import Task
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.tournaments import configured, run, write_data

PRICE = {"price": {"input": 2, "output": 10}}
QUERIES = [f"q{number:02}" for number in range(30)]


def by_chance(call: Call) -> Reply:
    """A judge that prefers an agent at random by query and pair, and its own way by model, in either order."""
    text = call.body["messages"][1]["content"]
    shown = sorted("xyz", key=lambda agent: text.find(f"Agent {agent} says") % 10**9)[:2]
    query = re.search(r"q\d\d", text)
    assert query
    chance = zlib.crc32(f"{query[0]}{sorted(shown)}{call.body['model']}".encode()) % 3
    won = "TIE" if chance == 2 else "AB"[shown.index(sorted(shown)[chance])]
    return Reply(json.dumps({"explanation": "By chance.", "verdict": won}))


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(by_chance) as running:
        yield running


def games(folder: Path, server: LLMServer, judges: int = 1, **more: Any) -> Config:
    declared = {
        f"j{number}": {"provider": "openai", "model": f"m{number}", "base_url": server.openai_url, **PRICE}
        for number in range(judges)
    }
    pairwise = {"judges": list(declared), "documents": {"include": False}} | more.pop("pairwise", {})
    sections: dict[str, Any] = {"judges": declared, "retrieval": None, "criteria": None, "pairwise": pairwise}
    return configured(folder, **sections, **more)


def table(made: Plan) -> Table:
    (found,) = [block for block in PlanBoard(made).sections()[0].blocks if getattr(block, "name", "") == "decides"]
    assert isinstance(found, Table)
    return found


def test_without_a_pilot_one_line_says_what_to_do(tmp_path: Path, server: LLMServer) -> None:
    write_data(tmp_path, QUERIES)
    config = games(tmp_path, server)
    unknown = "what this run can decide is not known: fewer than 8 queries have games in "
    for made in (plan(config), (run(config.limited(7)), plan(config))[1]):
        assert made.decides is None
        (note,) = [note for note in made.notes if note.startswith(unknown)]
        assert note.endswith("; judge 20 first with 'ragleague run CONFIG --limit 20', then plan again")
        assert PlanBoard(made).json()["decides"] is None
        assert note in [text for block in PlanBoard(made).sections()[0].blocks for text in getattr(block, "items", ())]
    (note,) = [note for note in plan(config.limited(6)).notes if note.startswith(unknown)]
    assert note.endswith("; that takes 8 judged queries")
    assert isinstance(PlanBoard(made).sections()[0].blocks[-1], Remarks)


def test_a_pilot_of_its_own_first_queries_predicts_the_rest(tmp_path: Path, server: LLMServer) -> None:
    write_data(tmp_path, QUERIES)
    config = games(tmp_path, server)
    run(config.limited(10))
    before = len(server.calls)
    made = plan(config)
    assert len(server.calls) == before
    decides = made.decides
    assert decides is not None
    assert (decides.tournament, decides.judged_queries, decides.pairs, decides.judges) == ("small", 10, 3, ("j0",))
    planned, twice = decides.runs
    assert (planned.queries, planned.judges, twice.queries, twice.judges) == (30, 1, 60, 1)
    assert planned.smallest is not None
    assert twice.smallest is not None
    assert 0.65 < twice.smallest / planned.smallest < 0.75
    assert planned.other_judges is None
    assert planned.cost_usd == made.cost_usd
    assert twice.cost_usd == pytest.approx((planned.cost_usd or 0) * (1 + 30 / 20))
    points, win = round(100 * planned.smallest), round(50 + 100 * planned.smallest)
    notes = table(made).notes
    assert notes[0].startswith(
        f"With 30 queries, 1 judge and 1 answer each, a difference of {points} points of wins ({win} to {100 - win}%) "
        "or more is found in 80% of runs"
    )
    assert "10 queries that j0 judged in tournament 'small', pooled over 3 pairs" in notes[1]
    assert notes[2:] == [
        "Rough: fewer than 20 judged queries say little of how queries differ.",
        "What more judges buy is not known: one judge has judged so far.",
    ]
    assert PlanBoard(made).json()["decides"]["runs"][0]["smallest"] == pytest.approx(planned.smallest, abs=1e-6)


def test_a_run_that_is_done_says_what_twice_as_much_costs(tmp_path: Path, server: LLMServer) -> None:
    write_data(tmp_path, QUERIES[:20])
    config = games(tmp_path, server, judges=3)
    run(config)
    decides = plan(config).decides
    assert decides is not None
    spent = paid(Store.open(config.store), "small")
    assert spent
    costs = [each.cost_usd for each in decides.runs]
    assert costs == [0, pytest.approx(spent), pytest.approx(spent)]
    sizes = [(each.run, each.queries, each.judges) for each in decides.runs]
    assert sizes == [("As planned", 20, 3), ("Twice the queries", 40, 3), ("Twice the judges", 20, 6)]
    one, _, judges = decides.runs
    assert one.other_judges is not None
    assert (one.smallest or 9) < one.other_judges
    assert (judges.smallest or 9) < (one.smallest or 0)
    assert any("fewer than 5 judges" in note for note in table(plan(config)).notes)


def test_an_earlier_tournament_of_the_store_is_the_pilot(tmp_path: Path, server: LLMServer) -> None:
    write_data(tmp_path, QUERIES[:9])
    run(games(tmp_path, server))
    run(configured(tmp_path, name="labels", pairwise=None))  # the latest one has no games
    (tmp_path / "next").mkdir()
    write_data(tmp_path / "next", QUERIES)
    config = games(tmp_path / "next", server, name="next", store=str(tmp_path / "store.db"))
    for judged in (0, 7, 8):
        if judged:
            run(config.limited(judged))
        decides = plan(config).decides
        assert decides is not None
        assert decides.tournament == ("next" if judged == 8 else "small")
        assert decides.runs[0].queries == 30


@pytest.mark.parametrize(
    ("schedule", "queries"),
    [({"kind": "random", "games_per_query": 1}, 10), ({"kind": "baseline", "baseline": "x"}, 30)],
)
def test_the_schedule_says_on_how_many_queries_two_agents_meet(
    tmp_path: Path, server: LLMServer, schedule: dict[str, Any], queries: int
) -> None:
    write_data(tmp_path, QUERIES)
    config = games(tmp_path, server, pairwise={"schedule": schedule})
    run(config.limited(12))
    decides: Decides | None = plan(config).decides
    assert decides is not None
    assert decides.runs[0].queries == queries


def test_an_adaptive_schedule_is_not_predicted(tmp_path: Path, server: LLMServer) -> None:
    write_data(tmp_path, QUERIES)
    made = plan(games(tmp_path, server, pairwise={"schedule": {"kind": "adaptive"}}))
    assert any(note.startswith("an adaptive schedule plays until its question is decided") for note in made.notes)


def test_without_games_nothing_is_said(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES)
    made = plan(configured(tmp_path, pairwise=None))
    assert made.decides is None
    assert not any("decide" in note for note in made.notes)
    assert {row.task for row in made.rows} == {Task.RELEVANCE, Task.CRITERIA}
