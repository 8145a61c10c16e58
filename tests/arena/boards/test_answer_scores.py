"""Scores that exist already are columns like those of judges: ranks, groups, gate, agreement with people; rankings."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import choix
import numpy as np
import pytest

from arena.data.rankings import plackett_luce, ranking_in
from arena.data.scored import read_scores
from judges.errors import InputError

CLI = Callable[..., Any]
AGENTS = {"new": 0.8, "mid": 0.7, "old": 0.6}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def long(folder: Path) -> Path:
    drawn = random.Random(1)
    rows = [
        (f"q{query}", agent, metric, round(drawn.gauss(level if metric == "faithfulness" else 1 - level, 0.05), 3), run)
        for query in range(30)
        for agent, level in AGENTS.items()
        for metric in ("faithfulness", "hallucination")
        for run in range(2)
    ]
    write(folder / "long.csv", ("query_id", "system", "metric", "value", "run"), rows)
    return folder / "long.csv"


def test_a_table_of_scores_is_ranked_without_a_judge(long: Path, cli: CLI) -> None:
    ended = cli("import", "scores", "long.csv", "--store", "s.db")
    assert ended.status == 0, ended.err
    assert "means of 2 runs" in ended.err
    assert "faithfulness and hallucination (lower is better) of 3 agents on 30 queries" in ended.out
    told = json.loads(cli("leaderboard", "s.db", "--format", "json").out)["answer_scores"]
    by_score = {
        name: [(row["agent"], row["ranks"], row["group"]) for row in told["ranks"] if row["score"] == name]
        for name in ("faithfulness", "hallucination")
    }
    assert set(map(tuple, by_score.values())) == {(("new", "1", "A"), ("mid", "2", "B"), ("old", "3", "C"))}
    first = told["pairs"][0]
    assert (first["better"], first["other"], first["queries"], first["separable"]) == ("new", "mid", 30, True)
    assert 0 < first["difference_low"] < first["difference"] < first["difference_high"] < 0.2
    assert "Which agents does a score tell apart?" in cli("leaderboard", "s.db", "--details").out
    gate = ("gate", "s.db", "--new", "new", "--old", "old", "--on")
    assert cli(*gate, "faithfulness").status == 0
    assert cli(*gate, "hallucination").status == 0, "lower is better"
    assert cli("gate", "s.db", "--new", "old", "--old", "new", "--on", "hallucination").status == 1
    assert "no such score; did you mean 'faithfulness'?" in cli(*gate, "faithfulnes").err


def test_columns_of_queries_group_imported_scores(folder: Path, cli: CLI) -> None:
    rows = [
        (f"q{at}", agent, "m", (agent == "new") * 0.4 + at / 100, "ab"[at % 2], at + (agent == "new"))
        for at in range(24)
        for agent in ("new", "old")
    ]
    write(folder / "s.csv", ("qid", "agent", "metric", "value", "kind", "seconds"), rows)
    assert cli("import", "scores", "s.csv", "--store", "s.db").status == 0
    pair = ("s.db", "new", "old", "--format", "json")
    groups = json.loads(cli("compare", *pair, "--by", "kind").out)["groups"]
    assert {(each["value"], each["queries"]) for each in groups} == {("a", 12), ("b", 12)}
    assert "no column 'seconds'" in cli("compare", *pair, "--by", "seconds").err, "it varies within a query"
    ended = cli("leaderboard", "s.db", "--group", "kind=a")
    assert "--group kind=a --details" in ended.out
    assert "Scores without games. A section ranks" in cli("report", "s.db", "--group", "kind=a").out
    assert "How each score orders the agents." in (folder / "report.html").read_text(encoding="utf-8")
    assert "no such score; known are m" in cli("gate", "s.db", "--new", "new", "--old", "old").err


def test_an_agent_without_a_score_is_missing_not_zero(folder: Path, cli: CLI) -> None:
    rows = [(f"q{at}", agent, "m", "" if (agent, at) == ("a", 0) else at / 20) for at in range(20) for agent in "ab"]
    write(folder / "s.csv", ("qid", "agent", "metric", "value"), rows)
    assert cli("import", "scores", "s.csv", "--store", "s.db").status == 0
    told = json.loads(cli("leaderboard", "s.db", "--format", "json").out)["answer_scores"]["agents"]
    assert (told["a"]["answer_scores_missing"], told["b"]["answer_scores_missing"]) == (1, 0)
    assert told["a"]["m"] > told["b"]["m"]


def results_of(tool: str, agent: str, level: float) -> Any:
    queries = [(f"q{at}?", min(1.0, level + at / 100)) for at in range(10)]
    if tool == "deepeval":
        return [
            {"input": query, "actualOutput": agent, "runDuration": 0.5, "metricsData": [{"name": "m", "score": score}]}
            for query, score in queries
        ]
    if tool == "ragchecker":
        return {"results": [{"query": q, "response": agent, "metrics": {"m": 100 * score}} for q, score in queries]}
    if tool == "promptfoo":
        result = {"promptIdx": 0, "provider": {"id": agent}, "response": {"output": agent}}
        return [{**result, "vars": {"q": q}, "namedScores": {"m": score}} for q, score in queries]
    if tool == "inspect":
        result = {"epoch": 1, "output": {"completion": agent}}
        return [
            {**result, "id": at, "input": q, "scores": {"m": {"value": score}}} for at, (q, score) in enumerate(queries)
        ]
    if tool == "mlflow":
        return {"columns": ["inputs", "outputs", "m/v1/score"], "data": [[q, agent, score] for q, score in queries]}
    if tool == "langsmith":
        return [{"inputs.question": q, "outputs.answer": agent, "feedback.m": score} for q, score in queries]
    return [{"user_input": q, "response": agent, "m": score, "tokens": 12} for q, score in queries]


@pytest.mark.parametrize("tool", ["deepeval", "ragchecker", "promptfoo", "inspect", "mlflow", "langsmith", "ragas"])
def test_scores_of_other_tools_are_found(folder: Path, tool: str) -> None:
    files = []
    for agent, level in AGENTS.items():
        files.append(folder / f"{agent}.json")
        files[-1].write_text(json.dumps(results_of(tool, agent, level)), encoding="utf-8")
    data, names = read_scores(files)
    assert names == ["m"]
    assert set(data.agents) == set(AGENTS)
    means = {
        agent: np.mean([float(answer.metadata["m"]) for answer in data.answers.values() if answer.agent == agent])
        for agent in AGENTS
    }
    assert [*means] == sorted(means, key=lambda agent: -means[agent])


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("q", "a", "m", "much")], ":2: 'value' must be a number"),
        ([("q", "a", "m", "1"), ("q", "a", "m", "2")], ":3: a second score of this answer"),
        ([("q", "a", "m", "inf")], ":2: 'value' must be a number"),
        ([("q", "a", "m", "")], "no score in it"),
    ],
)
def test_what_is_no_score_is_refused(folder: Path, rows: Sequence[Sequence[str]], says: str) -> None:
    write(folder / "s.csv", ("qid", "agent", "metric", "value"), rows)
    with pytest.raises(InputError) as raised:
        read_scores([Path("s.csv")])
    assert says in str(raised.value)


def test_columns_of_scores_are_named_by_the_user(folder: Path, cli: CLI) -> None:
    rows = [(at, agent, at % 5, 1) for at in range(12) for agent in "ab"]
    write(folder / "s.csv", ("qid", "agent", "quality", "tone"), rows)
    command = ("import", "scores", "s.csv", "--store", "s.db")
    assert "name each column of scores: --column score=NAME" in cli(*command).err
    named = ("--column", "score=quality", "--column", "score=tone", "--lower", "tone")
    assert "quality and tone (lower is better) of 2 agents" in cli(*command, *named).out
    assert "no such score" in cli(*command, *named, "--lower", "speed").err


def test_scores_of_the_answers_stand_beside_judged_games(folder: Path, cli: CLI) -> None:
    rows = [
        (f"q{at}", agent, f"{agent} {at}", level + (at % 5 - 2) / 100 * (agent == "new"))
        for at in range(30)
        for agent, level in AGENTS.items()
    ]
    write(folder / "a.csv", ("question", "agent", "answer", "faithfulness"), rows)
    settings = "data: {answers: a.csv}\njudges: {l: {provider: lexical}}\nanswer_scores: {columns: [faithfulness]}\n"
    (folder / "t.yaml").write_text(f"name: t\nstore: t.db\npairwise: {{judges: l}}\n{settings}", encoding="utf-8")
    assert cli("run", "t.yaml").status == 0
    told = json.loads(cli("leaderboard", "t.db", "--format", "json").out)
    assert {row["agent"]: row["faithfulness"] for row in told["agents"]} == pytest.approx(AGENTS)
    (folder / "u.yaml").write_text(f"name: u\nstore: u.db\n{settings}".replace("[faithfulness]", "[quality]"))
    assert "no answer has a number as 'quality'" in cli("run", "u.yaml").err
    (folder / "v.yaml").write_text(f"name: v\nstore: v.db\n{settings}")
    assert cli("run", "v.yaml").status == 0
    assert cli("gate", "v.yaml", "--new", "new", "--old", "old", "--on", "faithfulness").status == 0


def test_scores_agree_with_people(folder: Path, cli: CLI) -> None:
    drawn = random.Random(2)
    rows = [
        (f"q{at}", agent, "faithfulness", round(level + drawn.gauss(0, 0.05), 2))
        for at in range(30)
        for agent, level in AGENTS.items()
    ]
    write(folder / "people.csv", ("qid", "agent", "criterion", "score"), rows)
    write(folder / "ragas.csv", ("query_id", "system", "metric", "value"), rows)
    ended = cli("calibrate", "ragas.csv", "--people", "people.csv", "--format", "json")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["comparisons"][0]["judges"]["ragas"]["n"] == 90


def test_plackett_luce_is_choixs() -> None:
    drawn = np.random.default_rng(0)
    rankings = [drawn.permutation(6)[: drawn.integers(2, 7)].tolist() for _ in range(60)]
    expected = choix.opt_rankings(6, rankings, alpha=1e-3)
    ours = plackett_luce([[[str(item)] for item in ranking] for ranking in rankings], [*"012345"])
    assert [*ours.values()] == pytest.approx(expected - expected.mean(), abs=1e-5)


def test_tied_agents_of_a_ranking_are_alike() -> None:
    ours = plackett_luce([[["a"], ["b", "c"]], [["b", "c"], ["a"]]], ["a", "b", "c"])
    assert ours["b"] == pytest.approx(ours["c"])


@pytest.mark.parametrize(
    ("text", "ranking"),
    [
        ("a > b = c", [["a"], ["b", "c"]]),
        ('["b", "a"]', [["b"], ["a"]]),
        ('["b", ["a", "c"]]', [["b"], ["a", "c"]]),
        ('[{"value": "a", "rank": 2}, {"value": "b", "rank": 1}]', [["b"], ["a"]]),
    ],
)
def test_a_ranking_in_a_cell(text: str, ranking: list[list[str]]) -> None:
    assert ranking_in(text) == ranking


def test_rankings_are_games_clustered_by_query(folder: Path, cli: CLI) -> None:
    orders = ["abc", "abc", "bac", "acb"] * 6
    rows = [(at, "p", agent, rank) for at, order in enumerate(orders) for rank, agent in enumerate(order, start=1)]
    write(folder / "r.csv", ("qid", "annotator", "system", "rank"), rows)
    whole = [(at, "p", " > ".join(order)) for at, order in enumerate(orders)]
    write(folder / "w.csv", ("qid", "judge", "ranking"), whole)
    told = [json.loads(cli("rate", name, "--format", "json", "--samples", "0").out) for name in ("r.csv", "w.csv")]
    assert told[0]["agents"] == told[1]["agents"]
    assert {row["agent"]: row["games"] for row in told[0]["agents"]} == {"a": 48, "b": 48, "c": 48}
    ordered = sorted(told[0]["plackett_luce"], key=lambda agent: -told[0]["plackett_luce"][agent])
    assert ordered == ["a", "b", "c"]
    assert "Whole rankings by Plackett-Luce, in points: a " in cli("rate", "r.csv", "--samples", "0").out
    write(folder / "x.csv", ("qid", "agent", "rank"), [(1, "a", "first"), (1, "b", 2)])
    assert "x.csv:2: 'rank' must be a number ('first')" in cli("rate", "x.csv").err
