"""One opening for page, report, published pages and terminal; people's labels that contradict it lower its colour."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from html import unescape
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from msgspec.structs import replace

from arena.boards.conclusion import BY_PEOPLE, conclude
from arena.boards.leaderboard import TournamentBoard, with_people
from arena.boards.people import evidence_checks
from arena.calibration.comparison import Settings
from arena.calibration.votes import Level, Opinion
from arena.cli.main import main
from arena.present.blocks import Check, VerdictCard
from arena.ratings.games import GameVerdict
from arena.ratings.rate import rate
from arena.ratings.results import RatingSettings
from arena.results.cache import cached_leaderboard
from arena.results.ratings import leaderboard
from arena.results.scores import people_scores
from arena.results.table_agreement import compare_opinions
from arena.store import Store
from benchmarks.page_store import write
from judges.types import Verdict

AGENTS = ("one", "two", "three", "four")
QUERIES = [f"q{number}" for number in range(40)]
FAST = RatingSettings(bootstrap=300, tournaments=0)
JUDGE = {"one": 1.2, "two": 0.4, "three": -0.4, "four": -1.2}
OTHERWISE = JUDGE | {"one": -1.2, "four": 1.2}


def won(strengths: Mapping[str, float], seed: int, rater: str) -> list[Opinion]:
    """A rater's verdicts on every game."""
    rng = np.random.default_rng(seed)
    return [
        Opinion(query, (a, b), rater, 1.0 if strengths[a] - strengths[b] + rng.logistic() > 0 else -1.0)
        for query in QUERIES
        for a, b in combinations(sorted(AGENTS), 2)
    ]


def graded(strengths: Mapping[str, float], seed: int, rater: str, item: tuple[str, ...]) -> list[Opinion]:
    """A rater's labels from 0 to 2 of every answer."""
    rng = np.random.default_rng(seed)
    return [
        Opinion(query, (agent, *item), rater, float(np.clip(round(1 + strengths[agent] + rng.normal(0, 0.7)), 0, 2)))
        for query in QUERIES
        for agent in AGENTS
    ]


def checked(
    people: Mapping[Level, Sequence[Opinion]], judges: Mapping[Level, Sequence[Opinion]] | None = None
) -> Check:
    """The check of a leaderboard by a judge whose preferences are ``JUDGE``, and of its labels, against people."""
    verdicts = won(JUDGE, 1, "judge")
    games = []
    for _, query, (a, b), value in ((0, own.query_id, own.item, own.value) for own in verdicts):
        for first, second in ((a, b), (b, a)):
            games.append(GameVerdict(query, first, second, Verdict.A if (value > 0) == (first == a) else Verdict.B))
    ratings = rate(games, FAST)
    by_judge = {(level, ""): own for level, own in ({"verdicts": verdicts} | (dict(judges or {}))).items()}
    by_people = {(level, ""): own for level, own in people.items()}
    shared = {key: own for key, own in by_people.items() if key in by_judge}
    comparisons = compare_opinions(by_judge, shared, Settings(samples=200), label_next=0, boards=False)
    scores = people_scores(by_people, QUERIES, (300, 0), {})
    (check,) = evidence_checks(ratings, conclude(ratings), comparisons, scores)
    assert check.name == BY_PEOPLE
    return check


@pytest.mark.parametrize(
    ("people", "said"),
    [
        ({"verdicts": won(OTHERWISE, 2, "ann")}, "People's votes rank four first, "),
        ({"criteria": graded(OTHERWISE, 2, "ann", ("clear",))}, "People's grades rank four first, "),
        ({"nuggets": graded(OTHERWISE, 2, "ann", ("n1",))}, "People on nuggets rank four first, "),
        ({"verdicts": won(JUDGE | {"three": -1.2, "four": 0.0}, 3, "ann")}, "People's votes rank four "),
    ],
)
def test_people_who_rank_agents_otherwise_contradict_the_leaderboard(
    people: Mapping[Level, Sequence[Opinion]], said: str
) -> None:
    check = checked(people)
    assert check.status == "failed"
    assert check.finding.startswith(said)
    assert "; the games say the reverse, by " in check.finding


def test_a_judge_whose_figures_people_correct_contradicts_it_on_every_level() -> None:
    generous = graded(JUDGE | {"three": 1.0}, 4, "judge", ("clear",))
    found = checked({"criteria": graded(JUDGE, 5, "ann", ("clear",))}, {"criteria": generous})
    assert found.status == "failed"
    assert found.finding.startswith(
        "Corrected by people's labels, 2 of 4 means of grades lie elsewhere than judge says: three, "
    )
    mild = won({agent: strength / 4 for agent, strength in JUDGE.items()}, 6, "ann")
    assert "win rates lie elsewhere than judge says: " in checked({"verdicts": mild}).finding


def test_people_who_agree_contradict_nothing_and_few_labels_say_nothing() -> None:
    found = [checked({"verdicts": won(JUDGE, seed, "ann")}).status for seed in range(10, 30)]
    assert found.count("failed") <= 3, "one in twenty, by chance"
    few = [own for own in won(OTHERWISE, 2, "ann") if own.query_id in QUERIES[:8]]
    ratings = rate([GameVerdict(q, "one", "four", side) for q in QUERIES for side in (Verdict.A, Verdict.B)], FAST)
    scores = people_scores({("verdicts", ""): few}, QUERIES, (300, 0), {})
    assert evidence_checks(ratings, conclude(ratings), (), scores) == []


@pytest.fixture(scope="module")
def crowd(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded verdicts of a language model on six agents, with the votes of a crowd on the same games."""
    folder, data = tmp_path_factory.mktemp("crowd"), shared / "data" / "crowdrag25"

    def table(name: str, verdict: str, rater: str, **keep: str) -> Path:
        with gzip.open(data / name, "rt", newline="") as opened:
            rows = [row for row in csv.DictReader(opened) if row[verdict] and keep.items() <= row.items()]
        once: dict[tuple[str, ...], str] = {}
        for row in rows:
            once.setdefault((row["qid"], row["agent_a"], row["agent_b"], row[rater]), row[verdict])
        lines = [f"{qid},{a},{b},{said},{who},ab" for (qid, a, b, who), said in once.items()]
        path = folder / f"{rater}.csv"
        path.write_text("\n".join(["qid,agent_a,agent_b,verdict,judge,order", *lines]))
        return path

    overall = "quality_overall"
    verdicts = table("llm_verdicts.csv.gz", "verdict", "mode", dimension=overall, mode="combined")
    people = table("human_votes.csv.gz", "vote", "worker", dimension=overall)
    store = folder / "crowd.db"
    for command in (
        ["import", "verdicts", str(verdicts), "--store", str(store), "--tournament", "crowd"],
        ["import", "votes", str(people), "--store", str(store)],
    ):
        with patch.object(sys, "argv", ["ragleague", *command]), pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    return store


FIRST = "People's votes rank llm-bullet first, 61 ("
REVERSE = " points above llm-essay; the games say the reverse, by 347 points."
OFF = "Corrected by people's labels, 4 of 6 win rates lie elsewhere than combined says"


def test_a_crowd_that_contradicts_the_games_lowers_the_colour_in_every_output(
    crowd: Path, tmp_path: Path, cli: Any
) -> None:
    texts = {
        "terminal": cli("leaderboard", crowd).out,
        "markdown": cli("leaderboard", crowd, "--format", "md").out,
        "details": cli("leaderboard", crowd, "--details").out,
    }
    assert cli("report", crowd, "--out", tmp_path / "report.html").status == 0
    assert cli("publish", crowd, tmp_path / "site").status == 0
    for name, path in (("report", tmp_path / "report.html"), ("site", tmp_path / "site" / "index.html")):
        texts[name] = unescape(path.read_text("utf-8"))
    told = json.loads(cli("leaderboard", crowd, "--format", "json").out)["conclusion"]
    assert (told["headline"], told["standing"]) == ("Tie at the top", "care")
    texts["json"] = f"Read with care Tie at the top {told['sentence']} {' '.join([*told['why'], *told['next']])}"
    for name, text in texts.items():
        words = " ".join(text.replace("\\", "").split())
        for part in (FIRST, REVERSE, OFF, "Read with care", "Tie at the top", "llm-essay and llm-news apart, it takes"):
            assert part in words, (name, part)


def cards(board: TournamentBoard) -> Iterator[VerdictCard]:
    yield from (block for block in board.opening() if isinstance(block, VerdictCard))


def test_page_and_terminal_know_the_same(crowd: Path) -> None:
    with closing(Store.open(str(crowd))) as store:
        board = with_people(store, cached_leaderboard(store, "crowd"))
        (card,) = cards(board)
        text = " ".join(board.screen().split())
    for line in (card.title, card.headline, card.sentence, *card.why[:1], *card.next[:1], *map(str.lower, card.facts)):
        assert line in text, line


def test_the_next_step_says_what_it_costs_where_the_store_knows_what_was_paid(tmp_path: Path) -> None:
    store = write(tmp_path / "paid.db", agents=3, queries=24, games_per_query=3)
    with closing(Store.open(str(store))) as opened:
        board = with_people(opened, leaderboard(opened))
    step = "To tell agent-02 and agent-00 apart, it takes about 21 (8 to 186) more queries"
    assert board.conclusion.next[1] == f"{step}, $0.13 to judge.", "144 judgments at $0.001 on 24 queries"
    assert f"{step}, $0.13 to judge." in " ".join(board.screen().split())
    unknown = TournamentBoard(replace(board.board, paid_usd=None)).conclusion.next
    assert unknown[1] == f"{step} like these."
