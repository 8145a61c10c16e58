"""Labels that are visibly no random sample are refused, and random ones hardly ever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from arena.calibration.corrected_ratings import Estimates, estimates
from arena.calibration.prediction_powered import REJECTED, next_labels, not_random
from arena.data.kinds import CRITERIA, VERDICT, JudgedKind
from tests.conftest import CLI

THINGS = [(query, place) for query in range(60) for place in range(6)]
QUERIES = [query for query, _ in THINGS]


def _grades(rng: np.random.Generator) -> np.ndarray:
    return np.clip(np.round(1 + np.repeat(rng.normal(size=60), 6) + rng.normal(size=360)), 0, 3)


def _why(chosen: Sequence[int], grades: np.ndarray) -> str:
    labelled = np.zeros(360, np.bool_)
    labelled[list(chosen)] = True
    return not_random(labelled, QUERIES, {"value": grades})


def test_samples_of_things_of_queries_and_of_one_thing_a_query_are_refused_once_in_a_thousand_times_at_most() -> None:
    rng = np.random.default_rng(0)
    refused = 0
    for seed in range(500):
        grades = _grades(rng)
        whole = set(rng.permutation(60)[:15].tolist())
        refused += sum(
            bool(_why(chosen, grades))
            for chosen in (
                rng.permutation(360)[:70].tolist(),
                next_labels(QUERIES, [False] * 360, 70, seed),
                [at for at, query in enumerate(QUERIES) if query in whole],
                [6 * query + int(rng.integers(6)) for query in range(60)],
            )
        )
    assert refused <= 2000 * REJECTED + 4


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        (range(70), "the first queries"),
        (range(290, 360), "the last queries"),
        (range(0, 360, 6), "the first things of each query"),
        ("low", "on things with value 0"),
    ],
)
def test_labels_that_follow_the_file_or_the_judge_are_refused(chosen: range | str, reason: str) -> None:
    grades = _grades(np.random.default_rng(1))
    if chosen == "low":
        chosen = np.flatnonzero(grades == 0).tolist()
    assert reason in _why(chosen, grades)


def _estimates(kind: JudgedKind, labelled: Sequence[bool]) -> Estimates:
    """Every agent's things on 80 queries; ``labelled`` says of each, in order, whether people labelled it."""
    rng = np.random.default_rng(2)
    names = [("a", "b"), ("a", "c"), ("b", "c")] if kind is VERDICT else [("a", "quality"), ("b", "quality")]
    things = [(f"q{query}", item) for query in range(80) for item in names]
    judge: dict[str, dict[tuple[str, ...], float]] = {}
    people: dict[str, dict[tuple[str, ...], float]] = {}
    for (query, item), known in zip(things, labelled, strict=True):
        value = float(rng.integers(-1, 2))
        judge.setdefault(query, {})[item] = value
        if known:
            people.setdefault(query, {})[item] = value
    return estimates(kind.level, judge, people, {}, means=kind.means)


def test_an_agent_that_nobody_labelled_leaves_the_means_of_others_alone() -> None:
    drawn = np.random.default_rng(0).random(80) < 0.4
    found = _estimates(CRITERIA, [known for pair in zip(drawn, [False] * 80, strict=True) for known in pair])
    assert (set(found.figures), found.refused) == ({"a, quality"}, {})


def test_win_rates_over_opponents_that_nobody_labelled_games_with_are_refused() -> None:
    drawn = np.random.default_rng(0).random(80) < 0.4
    found = _estimates(VERDICT, [known for one in drawn for known in (one, False, False)])
    assert set(found.refused) == {"a", "b"}
    assert "first things of each query" in found.no_ratings


def _tables(folder: Path, people: str) -> list[str]:
    rows = [f"q{query},{agent},c,{(query * 7 + len(agent)) % 3}" for query in range(60) for agent in ("a", "bb")]
    (folder / "judge.csv").write_text("qid,agent,criterion,score\n" + "\n".join(rows) + "\n")
    (folder / "people.csv").write_text(people)
    return ["calibrate", str(folder / "judge.csv"), "--people", str(folder / "people.csv"), "--estimates"]


def test_the_first_rows_are_refused_in_one_line_that_says_what_to_do(cli: CLI, tmp_path: Path) -> None:
    rows = "".join(f"q{query},{agent},c,1\n" for query in range(20) for agent in ("a", "bb"))
    out = cli(*_tables(tmp_path, f"qid,agent,criterion,score\n{rows}")).out
    (line,) = (line for line in out.splitlines() if line.startswith("Not corrected"))
    assert "the first queries in the judge's file" in line
    assert "--next" in line
    assert "'probability'" in line


@pytest.mark.parametrize(
    ("cell", "message"),
    [("", ":2: 'probability' must be above 0 and at most 1"), ("1.5", "('1.5')"), ("0", "must be above 0")],
)
def test_a_probability_is_above_0_and_at_most_1(cli: CLI, tmp_path: Path, cell: str, message: str) -> None:
    ended = cli(*_tables(tmp_path, f"qid,agent,criterion,score,probability\nq1,a,c,1,{cell}\n"))
    assert ended.status == 2
    assert message in ended.err


def test_probabilities_come_with_all_labels_or_with_none(cli: CLI, tmp_path: Path) -> None:
    command = _tables(tmp_path, "qid,agent,criterion,score,probability\nq1,a,c,1,0.5\nq9,a,c,1,0.5\nq4,a,c,2,0.1\n")
    cli(*command)
    (tmp_path / "more.csv").write_text("qid,agent,criterion,score\nq2,a,c,1\n")
    ended = cli(*command, "--people", tmp_path / "more.csv")
    assert ended.status == 2
    assert "'probability': missing for 1 of 4 labelled items" in ended.err


def test_a_table_of_verdicts_may_say_probabilities(tmp_path: Path) -> None:
    from arena.results.opinion_tables import read_opinions

    path = tmp_path / "people.csv"
    path.write_text("qid,agent_a,agent_b,verdict,probability\nq1,a,b,A,0.25\n")
    assert [one.chance for one in read_opinions(path).groups[""]] == [0.25]
