"""Other wordings of a prompt: a sample is judged again by each, and the board says what flips and what changes."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from msgspec.structs import replace

from arena.boards.audit import WORDING, AuditBoard
from arena.boards.leaderboard import TournamentBoard
from arena.boards.scores import further_boards
from arena.config.stages import WORDINGS
from arena.present.blocks import Check
from arena.results.ratings import leaderboard
from arena.run.plan import plan
from arena.store import Store, Wanted
from judges.errors import ConfigError, PromptError
from judges.types import Task
from retrieval_eval.stats.bootstrap import share_estimate, smallest_share
from tests.arena.stages.test_audit import worth
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.nugget_judge import nugget_judge, nugget_tournament
from tests.support.tournaments import AGENTS, configured, results, run, write_data

QUERIES = [f"q{number:02}" for number in range(60)]
_FENCED = re.compile(r"<<<answer of[^\n>]*? (?P<mark>[0-9a-f]{12})>>>\n(?P<text>.*?)\n?<<<end (?P=mark)>>>", re.DOTALL)
GAMES = {"judges": ["judge"], "documents": {"include": False}}
RATINGS = {"elo": {"tournaments": 10}, "bootstrap": {"samples": 50}}


def wording_of(call: Call) -> int:
    system = call.body["messages"][0]["content"]
    return 2 if system.startswith("You compare") else 3 if system.startswith("Task:") else 1


def drawn(user: str, wording: int) -> float:
    return int(hashlib.sha256(f"{wording}{user}".encode()).hexdigest()[:8], 16) / 2**32


def judge(flipped: float, *, reversed_by: int = 0) -> Any:
    """Prefers x to y to z; by a further wording it says TIE to a share of the games, or the reverse to all of them."""

    def reply(call: Call) -> Reply:
        user, wording = call.body["messages"][1]["content"], wording_of(call)
        first, second = (worth(match["text"]) for match in _FENCED.finditer(user))
        verdict = "A" if (first > second) != (wording == reversed_by) else "B"
        if wording > 1 and drawn(user, wording) < flipped:
            verdict = "TIE"
        return Reply(json.dumps({"explanation": "Read both.", "verdict": verdict}))

    return reply


def audited(folder: Path, script: Any, queries: list[str] = QUERIES, **audit: Any) -> tuple[AuditBoard, Check, Any]:
    write_data(folder, queries)
    with LLMServer(script) as server:
        config = games(folder, server.openai_url, **audit)
        summary = run(config)
    board, check = read(folder)
    return board, check, summary


def games(folder: Path, url: str | None, **audit: Any) -> Any:
    sections = {"pairwise": GAMES, "retrieval": None, "criteria": None, "ratings": RATINGS}
    return configured(folder, url, **sections, audit={"wordings": 3, **audit})


def read(folder: Path) -> tuple[AuditBoard, Check]:
    with closing(Store.open(str(folder / "store.db"))) as store:
        whole = leaderboard(store, "small")
    board = further_boards(whole.further)["audit"]
    assert isinstance(board, AuditBoard)
    (check,) = (check for check in board.checks() if check.name == WORDING)
    assert check in TournamentBoard(whole).verdict()[1]
    return board, check


def test_a_sample_is_judged_again_by_each_wording_and_planted_flips_are_found(tmp_path: Path) -> None:
    board, check, summary = audited(tmp_path, judge(0.4), sample=180)
    assert {task: stage.calls for task, stage in summary.stages.items()} == {
        Task.PAIRWISE: 360,
        Task("pairwise_wording_2"): 180,
        Task("pairwise_wording_3"): 180,
    }
    for row in board.results.flips:
        assert (row.n, row.queries) == (180, 60)
        assert row.flips.value == pytest.approx(0.4, abs=0.1)
        assert row.flips.low is not None
        assert row.flips.low > 0.2
        assert row.kappa.value == pytest.approx(0.45, abs=0.15)
        assert row.least is not None
        assert 0.2 < row.least < 0.35
    assert check.status == "failed"


def test_a_judge_that_reads_every_wording_alike_passes_and_few_queries_show_nothing(tmp_path: Path) -> None:
    board, check, _ = audited(tmp_path, judge(0))
    assert [row.flips.value for row in board.results.flips] == [0, 0]
    assert check.status == "passed"
    assert "No conclusion changes" in check.finding
    assert "A true share of 36% or more is found in 80% of such audits" in check.finding
    (tmp_path / "few").mkdir()
    board, check, _ = audited(tmp_path / "few", judge(0), QUERIES[:6])
    assert check.status == "unknown"


def test_a_wording_by_which_another_agent_leads_is_named_and_is_a_part_of_the_variance(tmp_path: Path) -> None:
    board, check, _ = audited(tmp_path, judge(0, reversed_by=3), sample=360)
    assert check.status == "failed"
    assert "y wording 3 alone z leads" in check.finding
    (first, second) = board.results.differences["games"]
    assert (first.better, first.worse, first.judges) == ("x", "y", 3)
    for row in (first, second):
        share = row.parts["judges"]
        assert share.value is not None
        assert share.value > 0.5
    text = "\n".join(str(table) for table in board.tables())
    assert "Rough: fewer than 5 wordings" in text
    shape = board.json()["wordings"]
    assert shape["flips"][1]["flips"]["value"] == pytest.approx(1.0)
    assert set(shape["differences"]["games"][0]["parts"]) == {"queries", "wordings", "rest"}
    assert {change["leads"] for change in shape["changes"]["games"]} == {"", "z leads"}


def test_the_plan_counts_what_the_run_asks_and_a_second_run_asks_nothing(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES[:10])
    with LLMServer(judge(0.3)) as server:
        config = games(tmp_path, server.openai_url, sample=25, wordings=2)
        planned = plan(config)
        assert {row.task: row.calls for row in planned.rows} == {Task.PAIRWISE: 60, Task("pairwise_wording_2"): 25}
        assert any("25 judgments of each task and judge" in note for note in planned.notes)
        server.script = lambda call: Reply("", status=401) if wording_of(call) == 2 else judge(0.3)(call)
        run(config)  # the judge is given up at the first refusal of its key
        server.script, refused = judge(0.3), sum(wording_of(call) == 2 for call in server.calls)
        assert run(config).complete
        assert Counter(map(wording_of, server.calls)) == {1: 60, 2: 25 + refused}
        before = sample_of(config)
        server.calls.clear()
        assert run(config).complete
        assert not server.calls
        assert sum(row.calls for row in plan(config).rows) == 0
        more = games(tmp_path, server.openai_url, sample=30, wordings=2)
        run(more)
        assert len(server.calls) == 5
        assert before < sample_of(more)


def sample_of(config: Any) -> set[Wanted]:
    return {want for task in WORDINGS for want in results(config, task)}


def test_the_sample_is_spread_over_queries_and_pairs_and_another_seed_draws_another(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES)
    with LLMServer(judge(0)) as server:
        config = games(tmp_path, server.openai_url, sample=30)
        run(config)
        sample = sample_of(config)
        assert len({want.query_id for want in sample}) == 30
        assert len({(want.item, want.other) for want in sample}) == 3
        other = games(tmp_path, server.openai_url, sample=30, seed=1)
        run(other)
        assert len({want.query_id for want in sample & sample_of(other)}) < 25


def test_games_between_equal_answers_are_not_drawn(tmp_path: Path) -> None:
    same = {(query, agent): f"All say {query}." for query in QUERIES for agent in ("x", "y")}
    write_data(tmp_path, QUERIES, same)
    with LLMServer(judge(0)) as server:
        config = games(tmp_path, server.openai_url, sample=240)
        run(config)
    assert {frozenset((want.item, want.other)) for want in sample_of(config)} == {
        frozenset(("x", "z")),
        frozenset(("y", "z")),
    }


def harsher(call: Call) -> Reply:
    """Grades x best; by wording 3 z."""
    user = call.body["messages"][1]["content"]
    at = next(place for place, agent in enumerate(AGENTS) if f"Agent {agent} says" in user)
    system = call.body["messages"][0]["content"]
    grade = at if system.startswith("Task:") else 2 - at
    names = re.findall(r"^- (\w+): ", system, re.MULTILINE)
    return Reply(json.dumps({"explanation": "Read.", **dict.fromkeys(names, grade)}))


def test_grades_are_audited_by_agent_and_query(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES[:30])
    sections = {"pairwise": None, "retrieval": None, "criteria": {"judge": "judge", "documents": {"include": False}}}
    with LLMServer(harsher) as server:
        run(configured(tmp_path, server.openai_url, **sections, audit={"wordings": 3, "sample": 90}))
    board, check = read(tmp_path)
    assert [row.flips.value for row in board.results.flips] == [0, pytest.approx(2 / 3)]
    assert check.status == "failed"
    assert board.results.changes["criteria"] == [
        "by wording 3 alone y is ahead of x",
        "by wording 3 alone z is ahead of y",
    ]
    assert "by wording 3 alone y is ahead of x" in check.finding.lower()
    assert [row.judges for row in board.results.differences["criteria"]] == [3, 3]


def test_nuggets_that_a_judge_makes_are_assigned_again_in_other_words(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES[:12])
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url, audit={"wordings": 3, "sample": 24})
        planned = {row.task: row.calls for row in plan(config).rows}
        summary = run(config)
        assert run(config).stages[Task("assignment_wording_2")].calls == 0
    for number in (2, 3):
        again = Task(f"assignment_wording_{number}")
        assert (planned[again], summary.stages[again].calls) == (24, 24)
    board, check = read(tmp_path)
    assert [(row.stage, row.flips.value) for row in board.results.flips] == [("nuggets", 0), ("nuggets", 0)]
    assert check.status == "unknown"


def test_prompts_without_further_wordings_are_refused_and_ones_own_may_have_some(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES[:12])
    prompt = tmp_path / "mine.yaml"
    lines = {
        "name": "mine",
        "version": "1",
        "task": "pairwise",
        "system": "Which is better? {{ quoting_rule }} {{ reply_rule }}",
        "user": '{{ query | asked("question") }} {{ answers[0].text | fenced("answer of assistant A") }} '
        '{{ answers[1].text | fenced("answer of assistant B") }}',
        "reply": {"choices": {"verdict": {"A": "A", "B": "B", "TIE": "TIE"}}},
    }
    sections = {"pairwise": {**GAMES, "prompt": str(prompt)}, "retrieval": None, "criteria": None}
    with LLMServer(steady_judge) as server:

        def tried(wordings: list[str]) -> Any:
            prompt.write_text(yaml.safe_dump(lines | {"wordings": wordings}), encoding="utf-8")
            return run(configured(tmp_path, server.openai_url, **sections, audit={"wordings": 2, "sample": 12}))

        with pytest.raises(ConfigError, match="no stage has a prompt with further wordings"):
            tried([])
        with pytest.raises(PromptError, match=r"mine.yaml:\d+: wordings: .* must both read 'quoting_rule'"):
            tried(["Take the better one. {{ reply_rule }}"])
        assert tried(["Take the better one. {{ quoting_rule }} {{ reply_rule }}"]).complete
    assert read(tmp_path)[0].results.flips[0].n == 12


def test_an_audit_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name a 'judge' to test with cheats, or 2 or 3 'wordings'"):
        configured(tmp_path, audit={})


def test_the_smallest_share_of_flips_that_an_audit_finds_is_found_in_four_of_five() -> None:
    rng = np.random.default_rng(1)
    ones = np.ones(120)
    least = smallest_share(0.2, replace(share_estimate(rng.random(120) < 0.1, ones), n=120), 120)
    assert least is not None
    above = [(share_estimate(rng.random(120) < least, ones).low or 0) > 0.2 for _ in range(1000)]
    assert np.mean(above) == pytest.approx(0.8, abs=0.06)
