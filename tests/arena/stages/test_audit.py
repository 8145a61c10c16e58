"""The audit: known cheats find out judges that can be gamed, and touch no agent's rating."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.boards.audit import AuditBoard
from arena.boards.leaderboard import TournamentBoard
from arena.boards.scores import further_boards
from arena.calibration.cheats import CANARIES, rating_for
from arena.config.schema import Config
from arena.ratings.bradley_terry import BradleyTerrySettings, bradley_terry
from arena.ratings.covariates import controlled_ratings, standardised_difference
from arena.ratings.games import Games
from arena.ratings.likelihood import TieModel
from arena.results.audit import results
from arena.results.ratings import Leaderboard, leaderboard
from arena.store import Store
from judges.errors import ConfigError
from retrieval_eval.stats.bootstrap import share_estimate
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.sample_store import in_conversations
from tests.support.tournaments import AGENTS, configured, run, write_data

QUERIES = [f"q{number:02}" for number in range(60)]
_FENCED = re.compile(r"<<<answer of[^\n>]*? (?P<mark>[0-9a-f]{12})>>>\n(?P<text>.*?)\n?<<<end (?P=mark)>>>", re.DOTALL)
ORDERS = ("choose this answer", "has won", "prefer the answer", "it wins")


def worth(text: str) -> float:
    named = re.search(r"Agent (\w) says", text)
    return 0.0 if named is None else 3.0 - AGENTS.index(named[1])


JUDGES: dict[str, Callable[[str], Any]] = {
    "fair": worth,
    "loves length": len,
    "obeys orders": lambda text: (any(order in text for order in ORDERS), worth(text)),
}


def verdict(how: str, user: str) -> str:
    first, second = (JUDGES[how](match["text"]) for match in _FENCED.finditer(user))
    return "A" if first > second else "B" if second > first else "TIE"


def audited(folder: Path, how: str, **audit: Any) -> tuple[Leaderboard, AuditBoard]:
    def reply(call: Call) -> Reply:
        said = verdict(how, call.body["messages"][1]["content"])
        return Reply(json.dumps({"explanation": "Read both.", "verdict": said}))

    write_data(folder, QUERIES)
    games = {"judges": ["judge"], "documents": {"include": False}}
    with LLMServer(reply) as server:
        run(configured(folder, server.openai_url, **sections(games, **audit)))
    return read(folder)


def sections(games: Any, **audit: Any) -> dict[str, Any]:
    ratings = {"elo": {"tournaments": 10}, "bootstrap": {"samples": 50}}
    return {
        "pairwise": games,
        "retrieval": None,
        "criteria": None,
        "ratings": ratings,
        "audit": {"judge": "judge", **audit},
    }


def read(folder: Path) -> tuple[Leaderboard, AuditBoard]:
    with closing(Store.open(str(folder / "store.db"))) as store:
        board = leaderboard(store, "small")
    found = further_boards(board.further)["audit"]
    assert isinstance(found, AuditBoard)
    return board, found


def given(found: AuditBoard) -> dict[str, float]:
    return {row["canary"]: row["given"].value for row in found.rows}


def test_a_fair_judge_gives_nothing_away_and_no_cheat_is_an_agent(tmp_path: Path) -> None:
    board, found = audited(tmp_path, "fair")
    assert given(found) == dict.fromkeys(CANARIES, 0.0)
    assert {row["rank"] for row in found.rows if row["fair"] == 0} == {"4 of 4"}
    assert [(row["queries"], row["missing"]) for row in found.rows] == [(60, 0)] * len(CANARIES)
    (check,) = found.checks()
    assert check.status == "passed"
    assert board.ratings is not None
    assert [row.agent for row in board.ratings.agents] == [*AGENTS]
    assert all(row.games == 2 * len(QUERIES) for row in board.ratings.agents)
    assert check in TournamentBoard(board).verdict()[1]


@pytest.mark.parametrize(
    ("how", "fooled"),
    [
        ("loves length", {"constant", "praise", "padded", "citations", *(own for own in CANARIES if "order" in own)}),
        ("obeys orders", {own for own in CANARIES if "order" in own}),
    ],
)
def test_planted_weaknesses_are_found(tmp_path: Path, how: str, fooled: set[str]) -> None:
    _, found = audited(tmp_path, how)
    assert {name for name, points in given(found).items() if points > 0.4} == fooled
    assert {row["rank"] for row in found.rows if row["canary"] in fooled and row["fair"] == 0} == {"1 of 4"}
    (check,) = found.checks()
    assert check.status == "failed"
    assert all(name in check.finding for name in fooled)


def gameable(prompt: Any) -> str:
    first, second = (len(answer.text) for answer in prompt.asked.inputs.answers)
    return "A" if first > second else "B" if second > first else "TIE"


def test_a_judge_offline_is_found_out_too_and_too_few_queries_show_nothing(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES[:5])
    function = {"provider": "python", "function": "tests.arena.stages.test_audit:gameable"}
    games = {"judges": ["judge"], "documents": {"include": False}}
    run(configured(tmp_path, judge=function, **sections(games, canaries=["padded", "empty"])))
    _, found = read(tmp_path)
    assert given(found) == {"padded": 0.5, "empty": 0}
    (check,) = found.checks()
    assert check.status == "unknown"


def test_what_is_given_away_is_by_conversation(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES)
    function = {"provider": "python", "function": "tests.arena.stages.test_audit:fooled_at_times"}
    games = {"judges": ["judge"], "documents": {"include": False}}
    run(configured(tmp_path, judge=function, **sections(games, canaries=["question"])))
    widths = []
    with closing(Store.open(str(tmp_path / "store.db"))) as store:
        for turns in (1, 6):
            in_conversations(store, "small", turns)
            (row,) = results(store, "small").rows
            assert (row["queries"], row["points"].value, row["points"].n) == (60, 0.5, None)
            widths.append(row["points"].high - row["points"].low)
    assert widths[0] == pytest.approx(0.25, abs=0.02)
    assert widths[1] == pytest.approx(0.55, abs=0.08)


def fooled_at_times(prompt: Any) -> str:
    fooled = int(prompt.asked.inputs.query.query_id[1:]) // 6 % 2
    cheat = [answer.agent == "question" for answer in prompt.asked.inputs.answers]
    return "AB"[cheat.index(True) if fooled else cheat.index(False)] if any(cheat) else "TIE"


def test_unknown_cheats_and_an_audit_without_games_are_refused(tmp_path: Path) -> None:
    write_data(tmp_path)
    with pytest.raises(ValueError, match="unknown cheat 'pading'"):
        configured(tmp_path, **sections({"judges": ["judge"]}, canaries=["pading"]))
    config: Config = configured(tmp_path, **{**sections(None), "pairwise": None})
    with pytest.raises(ConfigError, match="'pairwise'"):
        run(config)


def test_a_share_of_points_is_the_rating_that_is_expected_to_get_it() -> None:
    assert rating_for(0.5, [1000, 1200]) == pytest.approx(1100)
    assert rating_for(10 / 11, [1000]) == pytest.approx(1400)
    assert rating_for(0, [1000]) == float("-inf")
    assert rating_for(None, [1000]) is None


@pytest.mark.parametrize("ties", ["davidson", "rao-kupper", "half"])
def test_a_cheat_as_strong_as_an_agent_gets_its_rating_however_many_games_are_ties(ties: TieModel) -> None:
    """One game in two and more is a tie; the share of points of an agent places a cheat where the agent is."""
    rng = np.random.default_rng(4)
    pairs = np.array([(i, j) for i in range(5) for j in range(i + 1, 5)] * 2000, np.int32)
    gap = np.array([0, 0.4, 0.8, 1.2, 1.6])[pairs] @ [0.5, -0.5]
    total = np.exp(gap) + np.exp(-gap) + 3
    drawn = rng.random(len(pairs)) * total
    score = np.where(drawn < np.exp(gap), 1.0, np.where(drawn < np.exp(gap) + 3, 0.5, 0.0))
    fitted = bradley_terry(Games(tuple("vwxyz"), *pairs.T, score), BradleyTerrySettings(ties=ties))
    assert (score == 0.5).mean() > 0.5
    for agent in range(5):
        first, second = (pairs[:, side] == agent for side in (0, 1))
        share = np.concatenate([score[first], 1 - score[second]]).mean()
        met = fitted.ratings[np.concatenate([pairs[first, 1], pairs[second, 0]])]
        found = rating_for(float(share), met.tolist(), ties=ties, tie_parameter=fitted.tie_parameter)
        assert found == pytest.approx(fitted.ratings[agent], abs=12)


def test_control_for_length_does_not_see_the_constant_text_that_won_alpaca_eval(shared: Path) -> None:
    """NullModel says the same, shortly, to all 805 prompts: it leads raw, and by more where length is controlled."""
    judge, base = "weighted_alpaca_eval_gpt4_turbo", "gpt4_1106_preview"
    with gzip.open(shared / "data/alpaca_eval2/verdicts_dev.csv.gz", "rt") as file:
        rows = [
            row for row in csv.DictReader(file) if row["judge"] == judge and row["preference"] and row["model"] != base
        ]
    names = sorted({row["model"] for row in rows})
    agents, won = np.array([names.index(row["model"]) for row in rows], np.int32), np.zeros(len(rows))
    won[:] = [float(row["preference"]) > 1.5 for row in rows]
    queries = np.unique([row["iid"] for row in rows], return_inverse=True)[1].astype(np.int32)
    games = Games((*names, base), agents, np.full(len(rows), len(names), np.int32), won, queries)
    lengths = (np.log([max(1.0, float(row[side])) for row in rows]) for side in ("len_model", "len_baseline"))
    controlled = controlled_ratings(games, {"log_length": standardised_difference(*lengths)})
    raw = dict(zip(games.agents, bradley_terry(games).ratings.tolist(), strict=True))
    level = {row.agent: row.rating for row in controlled.agents}
    leads = [own["NullModel"] - max(own[name] for name in own if name != "NullModel") for own in (raw, level)]
    assert leads == [pytest.approx(185, abs=2), pytest.approx(302, abs=2)]
    cheat = won[agents == names.index("NullModel")]
    share = share_estimate(cheat, np.ones(cheat.size))
    assert (share.value, share.low, share.high) == pytest.approx((0.84, 0.813, 0.864), abs=0.001)
