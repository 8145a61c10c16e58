"""What failed is no 0: a judge that replies nothing usable on one agent turns no score, verdict or sentence round."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.boards.card import judge_cards
from arena.boards.compare import CompareBoard, compare_board
from arena.boards.gate.board import GateBoard
from arena.boards.gate.compare import compare
from arena.boards.leaderboard import TournamentBoard
from arena.boards.report import tournament_report
from arena.boards.trust import EVEN
from arena.config.schema import Config
from arena.present.files import render
from arena.results.agreement import calibrate_tournament, resampling_of
from arena.results.ratings import leaderboard
from arena.results.scores import means_of
from arena.store import Store
from retrieval_eval.stats.scores import Scores, shares
from tests.conftest import CLI
from tests.support.failing_judge import FAIR, GOOD, POOR, QUALITY, QUERIES, judge, tournament
from tests.support.llm_server import LLMServer
from tests.support.sample_store import begin_judged
from tests.support.tournaments import run

SCORES = ("exam", "nDCG@10", "criteria", "nuggets", "support_precision", "support_recall", "pairwise")
STAGES = ("exam", "retrieval", "criteria", "nuggets", "support", "pairwise")


def judged(folder: Path, unusable: str = "", share: float = 0.6, **sections: Any) -> Config:
    folder.mkdir()
    with LLMServer(judge(unusable, share)) as server:
        config = tournament(folder, server.openai_url, **sections)
        run(config)
    return config


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Config]:
    """The same tournament, and what it is where 60 % of the replies on one agent are unusable."""
    folder = tmp_path_factory.mktemp("failing")
    return {unusable: judged(folder / (unusable or "none"), unusable) for unusable in ("", GOOD, POOR)}


def opened(config: Config) -> Any:
    return closing(Store.open(config.store))


def gates(config: Config) -> dict[tuple[str, str], GateBoard]:
    with opened(config) as store:
        return {pair: compare(store, config.name, *pair, on=SCORES) for pair in permutations(QUALITY, 2)}


@pytest.mark.parametrize("unusable", [GOOD, POOR])
def test_no_difference_and_no_verdict_changes_its_sign(configs: dict[str, Config], unusable: str) -> None:
    whole, found = gates(configs[""]), gates(configs[unusable])
    for pair, comparison in found.items():
        for own, before in zip(comparison.scores, whole[pair].scores, strict=True):
            said, was = own.result.difference.value, before.result.difference.value
            assert said is None or was is None or np.sign(said) == np.sign(was), (pair, own.on, was, said)
            assert (own.verdict, before.verdict) not in {("worse", "better"), ("better", "worse")}
            if unusable in pair:
                assert own.judgments[pair.index(unusable)][0] > 0 or own.on == "pairwise"
                ends = own.result.ends
                assert ends[0] - 1e-9 <= (was or 0) <= ends[1] + 1e-9, "what is true lies within the bounds"
        assert not (comparison.status == 1 and whole[pair].status == 0)
        assert not (comparison.status == 0 and whole[pair].status == 1)


def test_an_exam_that_fails_for_the_best_agent_does_not_call_it_worse(configs: dict[str, Config]) -> None:
    with opened(configs[GOOD]) as store:
        (exam,) = compare(store, "small", GOOD, FAIR, on="exam").scores
        gate = compare(store, "small", GOOD, FAIR, on="nDCG@10")
    assert (exam.new or 0) > 0.9
    assert (exam.old or 0) < 0.75
    assert exam.judgments == ((120, 200), (0, 200))
    assert exam.verdict == "undecided"
    assert any("120 of 200 of alder and 0 of 200 of birch, more of alder by more than chance" in n for n in exam.notes)
    assert (gate.status, gate.json()["scores"][0]["judgments"]["new"]) == (3, {"missing": 44, "of": 80})


def test_the_commands_say_so_too(configs: dict[str, Config], cli: CLI) -> None:
    store = configs[GOOD].store
    ended = cli("gate", store, "--new", GOOD, "--old", FAIR, "--on", "exam", "--format", "json")
    (own,) = json.loads(ended.out)["scores"]
    assert (ended.status, own["verdict"], own["judgments"]["new"]) == (3, "undecided", {"missing": 120, "of": 200})
    assert own["bounds"][0] < own["difference"] < own["bounds"][1]
    content = json.loads(cli("leaderboard", store, "--below-coverage", "--format", "json").out)
    assert content["missing"]["scores"]["exam"][GOOD] == {"missing": 120, "of": 200}


def test_what_is_said_below_scores_holds_where_judgments_failed(configs: dict[str, Config]) -> None:
    """A label that failed is not taken for "not relevant", and games that rate nobody are games all the same."""
    notes = {}
    for unusable in ("", GOOD):
        with opened(configs[unusable]) as store:
            board = TournamentBoard(leaderboard(store, "small"))
        tables = {table.name: table for table in board.tables()}
        notes[unusable] = " ".join(tables["retrieval"].notes)
    assert "A document without a label counts as not relevant" in notes[""]
    assert "A document that was not to be labelled counts as not relevant" in notes[GOOD]
    assert "of 20 with labels; of each agent those that are not known left out." in notes[GOOD]
    with opened(configs[GOOD]) as store:
        assert leaderboard(store, "small").withheld
        said = compare_board(store, "small").sentences()
    assert said[0].startswith("Too few games are judged to rate these agents, so the scores are compared")


@pytest.mark.parametrize("unusable", [GOOD, POOR])
def test_the_board_says_by_agent_what_is_missing(configs: dict[str, Config], unusable: str) -> None:
    with opened(configs[unusable]) as store:
        board = TournamentBoard(leaderboard(store, "small", below_coverage=True))
        content = json.loads(json.dumps(board.json(), default=str))
    check = next(own for own in board.verdict()[1] if own.name == EVEN)
    assert check.status == "failed"
    for stage in STAGES:
        counts = content["missing"]["scores"][stage]
        others = [agent for agent in QUALITY if agent != unusable]
        assert counts[unusable]["missing"] > 0.4 * counts[unusable]["of"]
        assert stage == "pairwise" or all(counts[agent]["missing"] == 0 for agent in others)
    assert {(own["score"], own["agent"]) for own in content["missing"]["shares"] if own["uneven"]} == {
        (stage, unusable) for stage in STAGES
    }
    exam = {own["agent"]: own for own in content["exam"]["agents"]}
    assert exam[unusable]["missing"] == content["missing"]["scores"]["exam"][unusable]["missing"]
    retrieval = content["retrieval"]["scores"]["judge"]["agents"][unusable]
    assert retrieval["missing_labels"] == content["missing"]["scores"]["retrieval"][unusable]["missing"]
    row = next(own for own in content["agents"] if own["agent"] == unusable)
    assert min(row[f"{name}_missing"] for name in ("exam", "nuggets", "support")) > 0


def test_nothing_missing_is_said_to_be_nothing(configs: dict[str, Config]) -> None:
    with opened(configs[""]) as store:
        board = TournamentBoard(leaderboard(store, "small"))
    assert board.board.uneven == ()
    assert not any(own.name == EVEN for own in board.verdict()[1])
    assert {missing for own in board.board.missing.values() for missing, _ in own.values()} == {0}


@pytest.fixture(scope="module")
def exam_alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CompareBoard]:
    """Compare where games are judged and the exam of one agent fails, and where nothing does."""
    found = {}
    for unusable in ("", GOOD):
        folder = tmp_path_factory.mktemp("exam") / (unusable or "none")
        fails, none = judge(unusable), judge()
        with LLMServer(lambda call: (none if "response_format" in call.body else fails)(call)) as server:  # noqa: B023
            folder.mkdir()
            config = tournament(folder, server.openai_url)
            run(config)
        with opened(config) as store:
            found[unusable] = compare_board(store, "small")
    return found


def test_compare_calls_what_is_missing_no_disagreement(exam_alone: dict[str, CompareBoard]) -> None:
    for board in exam_alone.values():
        assert not any(orders.departures for orders in board.orders)
    *_, said = exam_alone[GOOD].sentences()
    assert said.startswith("Judgments of alder are missing, more than of others by more than chance: 120 of 200 (")
    content = exam_alone[GOOD].json()
    assert content["ways"]["cover"]["missing"][GOOD] == {"missing": 120, "of": 200}
    assert [own["agent"] for own in content["uneven"]] == [GOOD]


def texts(config: Config) -> Iterator[str]:
    with opened(config) as store:
        report = tournament_report(store, "small", "small.yaml", below_coverage=True)
        board = leaderboard(store, "small", below_coverage=True)
        calibration = calibrate_tournament(store, "small", resampling_of(board.settings), label_next=0)
        cards = judge_cards(board, calibration, datetime.now(UTC).date())
    yield re.sub(r"<[^>]+>", " ", render(report.page(datetime.now(UTC))))
    yield repr(cards.sections())


@pytest.mark.parametrize("unusable", [GOOD, POOR])
def test_no_sentence_of_report_or_card_puts_a_worse_agent_first(configs: dict[str, Config], unusable: str) -> None:
    for text in texts(configs[unusable]):
        for better, worse in ((GOOD, FAIR), (FAIR, POOR), (GOOD, POOR)):
            assert not re.search(rf"{worse} (is|are) (rated |surely )*(better|above|higher)[^.]*{better}", text)
            assert not re.search(rf"{better} (is|are) (rated )?(worse|below|lower)[^.]*{worse}", text)


def test_where_nothing_is_graded_there_is_no_score_and_the_gate_does_not_know(tmp_path: Path) -> None:
    config = judged(tmp_path / "all", GOOD, share=1.0)
    with opened(config) as store:
        content = TournamentBoard(leaderboard(store, "small", below_coverage=True)).json()
        found = compare(store, "small", GOOD, POOR, on=SCORES)
    for own in found.scores:
        assert (own.verdict, own.new if own.on != "criteria" else None) == ("undecided", None), own.on
        assert own.remarks()
    assert (found.status, found.verdict) == (3, "undecided")
    exam = next(own for own in content["exam"]["agents"] if own["agent"] == GOOD)
    assert [level["cover"]["mean"] for level in exam["levels"].values()] == [None] * 5
    assert exam["levels"]["4"]["place"] is None
    measures = content["retrieval"]["scores"]["judge"]["agents"][GOOD]["measures"]
    assert measures["nDCG@10"]["value"] is None


def test_a_few_failures_among_many_block_no_gate(tmp_path: Path) -> None:
    config = judged(tmp_path / "few", GOOD, share=0.02)
    with opened(config) as store:
        found = compare(store, "small", GOOD, POOR, on=SCORES)
        lacking = {own.on: own.judgments[0][0] for own in found.scores}
        (even,) = [own for own in TournamentBoard(leaderboard(store, "small")).verdict()[1] if own.name == EVEN]
    assert sum(lacking.values()) > 3
    assert (found.status, {own.verdict for own in found.scores}) == (0, {"better"})
    assert even.status != "failed"


def test_a_run_that_was_stopped_leaves_gaps_and_no_zeros(tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    folder.mkdir()
    with LLMServer(judge()) as server:
        config = tournament(folder, server.openai_url, pairwise=None, criteria=None, nuggets=None, support=None)
        run(config)
    with opened(config) as store:
        whole = {own.name: own for own in means_of(store, "small", lambda: store.dataset("small"))}
        begin_judged(store, "stopped", lambda want: want.query_id < QUERIES[10], "small")
        half = {own.name: own for own in means_of(store, "stopped", lambda: store.dataset("stopped"))}
    for name in ("cover", "nDCG@10"):
        own, before = half[name], whole[name]
        assert np.isnan(own.values[:, 10:]).all()
        np.testing.assert_array_equal(own.values[:, :10], before.values[:, :10])
        assert all(missing == of / 2 for missing, of in map(own.missing, own.agents))


def test_shares_that_differ_by_more_than_chance_are_told_from_those_of_one_query() -> None:
    wanted, names = np.full((3, 20), 10), tuple(f"q{number}" for number in range(20))
    spread, lump = np.zeros((2, 3, 20), int)
    spread[0, ::2], lump[0, 0] = 1, 10
    (first, *others), (one, *_) = (
        shares({"exam": Scores("exam", ("x", "y", "z"), names, wanted * 1.0, np.array([wanted, missing]))})
        for missing in (spread, lump)
    )
    assert (first.agent, first.missing, first.wanted, first.uneven) == ("x", 10, 200, True)
    assert not any(own.uneven for own in others)
    assert (one.missing, one.uneven, one.doubtful) == (10, False, True)


def test_shares_of_equal_agents_are_seldom_found_to_differ() -> None:
    rng, alarms = np.random.default_rng(7), 0
    for _ in range(200):
        missing = rng.binomial(10, 0.1, (3, 20))
        missing[rng.random((3, 20)) < 0.05] = 10
        wanted = np.full((3, 20), 10)
        names = tuple(map(str, range(20)))
        scores = Scores("exam", ("x", "y", "z"), names, wanted * 1.0, np.array([wanted, missing]))
        alarms += any(own.uneven for own in shares({"exam": scores}))
    assert alarms <= 10
