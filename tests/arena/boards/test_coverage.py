"""Ratings need a least share of the verdicts that were wanted; below it nobody sees a table without asking for one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.boards.conclusion import conclude_board
from arena.config.ratings import RatingsSection
from arena.results.outcomes import Shortfall, shortfall
from arena.results.ratings import leaderboard
from arena.store import Result, Store, Wanted
from judges.types import JudgeFailure, Judgment, Task
from tests.support.llm_server import LLMServer, steady_judge
from tests.support.sample_store import AGENTS, SETTINGS, write_store
from tests.support.tournaments import write_data

Games = list[tuple[Wanted, Result | None]]


def game(judge: str, query: int, first: str, second: str, *, judged: bool) -> tuple[Wanted, Result | None]:
    want = Wanted(Task.PAIRWISE, judge, f"q{query}", first, second, "ab")
    return want, Judgment("id", "A", "", "", "m") if judged else JudgeFailure("id", "empty", "nothing")


def lacking_of(games: Games, least: float) -> Shortfall | None:
    judged_of: dict[str, dict[str, tuple[int, int]]] = {"judge": {}, "agent": {}}
    for want, result in games:
        for kind, name in (("judge", want.judge), ("agent", want.item), ("agent", want.other)):
            judged, wanted = judged_of[kind].get(name, (0, 0))
            judged_of[kind][name] = judged + isinstance(result, Judgment), wanted + 1
    return shortfall(judged_of, least)


def test_enough_verdicts_are_no_shortfall_and_the_bar_itself_is_enough() -> None:
    games = [game("j", query, "x", "y", judged=query < 8) for query in range(10)]
    assert lacking_of(games, 0.8) is None
    assert lacking_of(games[1:], 0.8) is not None
    assert lacking_of(games, 0.0) is None
    assert lacking_of([], 1.0) is None
    assert lacking_of([game("j", query, "x", "y", judged=query < 7) for query in range(100)], 0.07) is None


def test_a_judge_that_stopped_is_not_hidden_by_the_others() -> None:
    """Nine tenths of all verdicts are there, and one judge of five has half of its own."""
    games = [
        game(judge, query, "x", "y", judged=judge != "lame" or query % 2 == 0)
        for judge in ("a", "b", "c", "d", "lame")
        for query in range(20)
    ]
    lacking = lacking_of(games, 0.8)
    assert (lacking.kind, lacking.name, lacking.judged, lacking.wanted) == ("judge", "lame", 10, 20)


def test_an_agent_that_no_judge_would_read_is_not_hidden_by_the_others() -> None:
    agents = [f"agent{number}" for number in range(11)]
    games = [
        game("j", query, first, second, judged=agents[10] not in (first, second))
        for query in range(3)
        for place, first in enumerate(agents)
        for second in agents[place + 1 :]
    ]
    lacking = lacking_of(games, 0.8)
    assert sum(isinstance(result, Judgment) for _, result in games) / len(games) > 0.8
    assert (lacking.kind, lacking.name, lacking.judged, lacking.wanted) == ("agent", "agent10", 0, 30)


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.floats(0, 1))
def test_where_every_judge_and_agent_has_enough_the_whole_has(judged: Sequence[bool], least: float) -> None:
    games = [
        game(f"j{number % 3}", number, f"x{number % 2}", f"y{number % 5}", judged=there)
        for number, there in enumerate(judged)
    ]
    if lacking_of(games, least) is None:
        assert sum(judged) >= least * len(judged) - 3e-9, "each of three judges may lack what rounding takes"


@pytest.mark.parametrize(
    ("share", "least", "shown"), [(0.79996, 0.8, "79.996%"), (0.06667, 0.8, "7%"), (0.8, 1.0, "80%"), (0.0, 1.0, "0%")]
)
def test_a_share_below_the_bar_never_looks_as_if_it_were_on_it(share: float, least: float, shown: str) -> None:
    total = 100_000
    games: Games = [game("j", 1, "x", "y", judged=number < share * total) for number in range(total)]
    lacking = lacking_of(games, least)
    assert f"({shown})" in lacking.message


def test_ratings_below_the_bar_are_withheld_and_shown_on_demand(tmp_path: Path, cli: Any) -> None:
    store = write_store(tmp_path / "s.db", unasked=60)
    refused = cli("leaderboard", store)
    line = " ".join(refused.out.split())
    assert refused.status == 3
    assert line.startswith("Nothing to conclude yet: Not enough verdicts to rate. Judge strict has ")
    assert "and ratings need 80% of every judge's and agent's: run again to judge the rest" in line
    assert "'ragleague leaderboard --below-coverage'" in line
    assert "Rating" not in refused.out
    assert "would be rated highest" not in refused.out
    assert "judgments are missing: 0 failed, 60 not made yet" in line

    anyway = cli("leaderboard", store, "--below-coverage", "--details")
    assert anyway.status == 0
    assert "Bradley-Terry" in anyway.out
    assert "Below ratings.min_coverage: judge strict has " in anyway.out


def test_json_says_why_there_are_no_ratings(tmp_path: Path, cli: Any) -> None:
    store = write_store(tmp_path / "s.db", unasked=60)
    refused = cli("leaderboard", store, "--format", "json")
    board = json.loads(refused.out)
    assert refused.status == 3
    assert [board[field] for field in ("agents", "pairs", "fragility", "by_judge")] == [[], [], [], {}]
    assert board["shortfall"]["withheld"] is True
    assert board["shortfall"]["min_coverage"] == 0.8
    assert board["shortfall"]["share"] == round(board["shortfall"]["judged"] / board["shortfall"]["wanted"], 6)
    anyway = json.loads(cli("leaderboard", store, "--format", "json", "--below-coverage").out)
    assert anyway["shortfall"] == {**board["shortfall"], "withheld": False}
    assert len(anyway["agents"]) == len(AGENTS)
    assert (
        json.loads(cli("leaderboard", write_store(tmp_path / "t.db", unasked=0), "--format", "json").out)["shortfall"]
        is None
    )


def test_a_store_whose_settings_lack_the_bar_has_the_usual_one(tmp_path: Path) -> None:
    old = {name: value for name, value in SETTINGS["ratings"].items() if name != "min_coverage"}
    with closing(Store.open(str(write_store(tmp_path / "s.db", unasked=60)))) as store:
        wants = store.wanted("sample")
        store.begin("sample", {**SETTINGS, "ratings": old}, store.dataset("sample"), [want for want, _ in wants])
        store.assign("sample", [(want, found) for want, found in wants if found is not None])
        lacking = leaderboard(store).shortfall
    assert lacking is not None
    assert lacking.min_coverage == RatingsSection().min_coverage == 0.8


def test_the_page_says_what_the_command_line_says(tmp_path: Path) -> None:
    with closing(Store.open(str(write_store(tmp_path / "s.db", unasked=60)))) as store:
        board = leaderboard(store)
        anyway = leaderboard(store, below_coverage=True)
    found = conclude_board(board)
    assert (found.kind, found.headline) == ("empty", "Not enough verdicts to rate")
    assert board.shortfall.message[1:] in found.sentence
    assert "--below-coverage" in found.sentence
    shown = conclude_board(anyway)
    assert (shown.headline, shown.standing, shown.top) == ("Too little is judged", "none", ())


FILE = """
name: low
store: low.db
data: {{queries: queries.csv, documents: documents.csv, answers: answers.csv}}
judges:
  well: {{provider: openai, model: m, base_url: '{url}', api_key_env: ABSENT_KEY}}
  ill: {{provider: openai, model: ill, base_url: '{url}', api_key_env: ABSENT_KEY, max_attempts: 1}}
pairwise: {{judges: [well, ill], documents: {{include: false}}, schedule: {schedule}}}
ratings: {{min_coverage: {least}, bootstrap: {{samples: 50}}}}
"""


def written(folder: Path, url: str, least: float, schedule: str = "{kind: all}") -> Path:
    write_data(folder, [f"q{number}" for number in range(8)])
    config = folder / "low.yaml"
    config.write_text(FILE.format(url=url, least=least, schedule=schedule))
    return config


def test_an_adaptive_schedule_that_decided_early_lacks_nothing(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only games that were chosen are wanted: those it could save do not count as missing."""
    monkeypatch.setenv("ABSENT_KEY", "none")
    with LLMServer(steady_judge) as server:
        config = written(tmp_path, server.openai_url, 1.0, "{kind: adaptive, batch: 4, max_games: 6}")
        ran = cli("run", config, "--format", "json")
    board = json.loads(ran.out)
    assert board["adaptive"]["games"] == 6 < board["adaptive"]["possible"]
    assert board["shortfall"] is None
    assert board["agents"] != []
