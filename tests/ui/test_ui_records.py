"""Games and documents as the pages show them, against what the tournament itself would say."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.boards.results import leaderboard
from arena.config.stored import StoredSettings
from arena.config.whole import Config
from arena.stages.tournament import TournamentStages
from arena.store import IDENTICAL, Result, Store, Wanted
from judges.types import JudgeFailure, Judgment, Task
from tests.support.games import game_records
from tests.support.sample_store import SETTINGS, write_store
from ui.views.game import GameRecord, retrieved_documents


def game(first: str | None, second: str | None, how: Any = "tie") -> GameRecord:
    """The game of x and y whose verdicts, with x shown first and with y shown first, are these."""
    outcomes: list[tuple[Wanted, Result | None]] = []
    for order, verdict in (("ab", first), ("ba", second)):
        result = None if verdict is None else Judgment(f"{order}{verdict}", verdict, "", "", "m")
        outcomes.append((Wanted(Task.PAIRWISE, "j", "q", "x", "y", order), result))
    (record,) = game_records(outcomes, how)
    return record


@pytest.mark.parametrize(
    ("first", "second", "winner", "score", "disagree"),
    [
        ("A", "B", "x", 1.0, False),
        ("B", "A", "y", 0.0, False),
        ("A", "A", None, 0.5, True),
        ("A", "TIE", None, 0.5, True),
        ("TIE", "TIE", None, 0.5, False),
        ("A", None, "x", 1.0, False),
        (None, "A", "y", 0.0, False),
        (None, None, None, None, False),
    ],
)
def test_two_orders_make_one_game(
    first: str | None, second: str | None, winner: str | None, score: float | None, disagree: bool
) -> None:
    record = game(first, second)
    assert (record.winner, record.score, record.orders_disagree) == (winner, score, disagree)


def test_a_win_and_a_tie_is_settled_as_the_tournament_says() -> None:
    assert game("A", "TIE", "win").winner == "x"


def test_a_failure_is_no_verdict() -> None:
    wants = [Wanted(Task.PAIRWISE, "j", "q", "x", "y", order) for order in ("ab", "ba")]
    (record,) = game_records([(want, JudgeFailure("i", "timeout", "late")) for want in wants], "tie")
    assert record.score is None


def test_the_first_agent_named_need_not_come_first_in_the_alphabet() -> None:
    want = Wanted(Task.PAIRWISE, "j", "q", "zebra", "ant", "ab")
    (record,) = game_records([(want, Judgment("i", "A", "", "", "m"))], "tie")
    assert (record.agent_a, record.winner) == ("zebra", "zebra")


def test_judges_of_one_pair_are_games_of_their_own() -> None:
    wants = [
        (Wanted(Task.PAIRWISE, judge, "q", "x", "y", "ab"), verdict) for judge, verdict in (("j", "A"), ("k", "B"))
    ]
    records = game_records([(want, Judgment(f"i{verdict}", verdict, "", "", "m")) for want, verdict in wants], "tie")
    assert [(record.judge, record.winner) for record in records] == [("j", "x"), ("k", "y")]
    assert len({record.key for record in records}) == 2


def test_games_add_up_to_the_leaderboard(tmp_path: Path) -> None:
    path = write_store(tmp_path / "s.db", unasked=3, failed=4)
    with closing(Store.open(str(path))) as store:
        board, records = leaderboard(store), game_records(store.outcomes("sample", Task.PAIRWISE), "tie")
    assert board.ratings is not None
    wins = Counter(record.winner for record in records)
    assert {row.agent: wins[row.agent] for row in board.ratings.agents} == {
        row.agent: row.wins for row in board.ratings.agents
    }
    health = board.ratings.judge_health
    assert health is not None
    assert health.order_agreement.value is not None
    disagree = sum(record.orders_disagree for record in records)
    assert disagree == round((1 - health.order_agreement.value) * health.both_orders)


@pytest.mark.parametrize("threshold", [0, 1, 2])
@pytest.mark.parametrize("depth", [None, 1])
def test_documents_shown_are_those_of_the_judge_s_prompt(tmp_path: Path, threshold: int, depth: int | None) -> None:
    sections: dict[str, Any] = {
        "retrieval": {"judge": "strict", "depth": depth},
        "pairwise": {"judges": ["strict"], "documents": {"threshold": threshold}},
    }
    config = Config.model_validate(
        {"name": "n", "store": "s", "data": {"queries": "q"}, "judges": {"strict": {"provider": "lexical"}}, **sections}
    )
    with closing(Store.open(str(write_store(tmp_path / "s.db", queries=3)))) as store:
        data = store.dataset("sample")
        labels = {(want.query_id, want.item): result for want, result in store.outcomes("sample", Task.RELEVANCE)}
        games = store.outcomes("sample", Task.PAIRWISE)
    stages = TournamentStages(config, data)
    stages.labels.results.update(labels)
    for (want, result), record in zip(games[::2], game_records(games, "tie"), strict=True):
        prompt = stages.prompt(want)
        assert prompt is not None
        found = retrieved_documents(record, data, labels, StoredSettings({**SETTINGS, **sections}))
        seen = [entry.document.doc_id for entry in found if entry.shown]
        same = result is not None and result.judgment_id == IDENTICAL
        assert seen == ([] if same else [entry.document.doc_id for entry in prompt.inputs.documents])
        assert {entry.document.doc_id for entry in found} == {
            entry.doc_id for entry in data.retrieved[want.query_id] if entry.agent in {want.item, want.other}
        }


def test_without_labels_every_retrieved_document_is_shown(tmp_path: Path) -> None:
    with closing(Store.open(str(write_store(tmp_path / "s.db", queries=2)))) as store:
        data, games = store.dataset("sample"), game_records(store.outcomes("sample", Task.PAIRWISE), "tie")
    found = retrieved_documents(games[-1], data, {}, StoredSettings({**SETTINGS, "retrieval": None}))
    assert len(found) == 3
    assert all(entry.shown for entry in found)
