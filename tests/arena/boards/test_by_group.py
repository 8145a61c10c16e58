"""Differences by group of queries in every output, with what was corrected; and boards of one group."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragleague as rl
from arena.boards.gate.compare import compare
from arena.boards.gate.figures import PAIRWISE
from arena.data.dataset import groupings
from arena.results.cache import cached_games, cached_leaderboard
from arena.store import Store
from judges.errors import InputError
from judges.types import Query
from ragleague.testing import assert_not_worse
from retrieval_eval.stats.paired import holm
from tests.conftest import CLI

LOST = [number % 25 < 5 for number in range(25)]
TOPICS = {"billing": LOST, "setup": [not won for won in LOST], "use": [not won for won in LOST], "rare": [True] * 3}
LOOKED = (
    "Only queries where topic=billing: one of 11 groups. If its results made you choose it, its intervals are too "
    "narrow; '--by topic' corrects for that."
)


@pytest.fixture
def store(tmp_path: Path, cli: CLI) -> Path:
    """``new`` wins 8 of 10 against ``old``, but loses 8 of 10 on billing; three hard queries are of every topic."""
    lines, queries = ["qid,agent_a,agent_b,verdict"], ["qid,query,topic,level,source"]
    for topic, wins in TOPICS.items():
        for number, won in enumerate(wins):
            name = f"{topic}{number}"
            queries.append(f"{name},What is {name}?,{topic},{number % 3},{topic[0]}/{name}.md")
            lines += [f"{name},new,old,{'A' if won else 'B'}", f"{name},old,new,{'B' if won else 'A'}"]
    (tmp_path / "v.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "q.csv").write_text("\n".join(queries), encoding="utf-8")
    where = ("--queries", tmp_path / "q.csv", "--store", tmp_path / "s.db")
    assert cli("import", "verdicts", tmp_path / "v.csv", *where).status == 0
    return tmp_path / "s.db"


def words(text: str) -> str:
    return " ".join(text.split())


def test_one_column_is_corrected_for_its_own_groups_and_all_columns_for_all(store: Path, cli: CLI) -> None:
    shown = words(cli("leaderboard", store, "--by", "topic").out)
    assert "topic=billing old 25 20%" in shown
    assert "topic=rare old 3 100% - " in shown
    assert "Does the leader's share depend on topic? A permutation test says p below 0.001." in shown
    assert "level=" not in shown
    found: dict[str, Any] = json.loads(cli("leaderboard", store, "--by", "topic", "--format", "json").out)["by_group"]
    every = json.loads(cli("leaderboard", store, "--format", "json").out)["by_group"]
    assert (found["columns"], every["columns"]) == (["topic"], ["folder", "level", "topic"])
    one, among = (
        next(row for row in own["shares"] if (row["column"], row["value"]) == ("topic", "billing"))
        for own in (found, every)
    )
    assert (one["verdict"], among["verdict"], one["share"]) == ("worse", "worse", among["share"])
    assert one["high"] < among["high"], "three tests share an error probability, or more"
    assert "by group" in words(cli("leaderboard", store, "--details").out).lower()
    with pytest.raises(AssertionError):
        assert_not_worse(store, new="new", old="old", by="topic")
    refused = cli("leaderboard", store, "--by", "topics")
    assert (refused.status, "did you mean 'topic'" in refused.err) == (2, True)


def test_a_board_of_one_group_says_so_first_and_that_looking_was_not_corrected(
    store: Path, tmp_path: Path, cli: CLI
) -> None:
    of = ("--group", "topic=billing")
    lines = cli("leaderboard", store, *of).out.splitlines()
    assert any(line.startswith("v where topic=billing: 2 agents, 25 queries") for line in lines)
    assert LOOKED in words("\n".join(lines))
    for command in (("report", store, "--out", tmp_path / "r.html"), ("publish", store, tmp_path / "site")):
        assert cli(*command, *of).status == 0
    for page in (tmp_path / "r.html", tmp_path / "site/index.html", tmp_path / "site/queries.html"):
        text = page.read_text(encoding="utf-8")
        assert "v where topic=billing" in text, page
        assert "What is setup1?" not in text
    assert "one of 11 groups" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert cli("report", store, "--out", tmp_path / "r.html", "--by", "topic").status == 0
    assert "ragleague report s.db --tournament v --by topic" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert len(list((tmp_path / "site/queries").iterdir())) == 25
    compared = cli("compare", store, "new", "old", *of).out
    assert compared.startswith("Failed: new is worse than old, on queries where topic=billing.")
    assert LOOKED in compared
    gate = cli("gate", store, "--new", "new", "--old", "old", *of, "--format", "json")
    assert (gate.status, json.loads(gate.out)["group"]) == (1, {"column": "topic", "value": "billing", "of": 11})


def test_python_opens_a_group_or_tests_one_column(store: Path) -> None:
    board = rl.open(store, group="topic=billing")
    assert board.json()["group"] == {"column": "topic", "value": "billing", "of": 11}
    assert (len(board.games()), board.compare("new", "old").verdict) == (50, "worse")
    assert rl.open(store, by="topic").json()["by_group"]["columns"] == ["topic"]
    assert len(rl.open(store, by="topic").tables()["groups"]) == 4
    with pytest.raises(InputError, match="no query has topic=x; groups are"):
        rl.open(store, group="topic=x")
    with pytest.raises(InputError, match="no column 'topics'"):
        rl.open(store, by="topics")


def test_the_folder_of_a_synthetic_query_s_document_makes_groups(store: Path, cli: CLI) -> None:
    by_folder = groupings(
        [Query(name, name, {"source": f"docs/{name[0]}/{name}.md"}) for name in ("a1", "a2", "b1", "b2")]
    )
    assert by_folder == {"folder": {"docs/a": ("a1", "a2"), "docs/b": ("b1", "b2")}}
    assert not groupings([Query(name, name, {"source": f"{name}.md"}) for name in ("a1", "a2", "b1", "b2")])
    gate = cli("gate", store, "--new", "new", "--old", "old", "--by", "folder")
    assert (gate.status, gate.out.splitlines()[0]) == (1, "Failed: new is worse than old where folder=b.")


def test_groups_of_several_columns_share_one_correction(store: Path) -> None:
    with closing(Store.open(str(store))) as opened:
        alone, both = (compare(opened, "v", "new", "old", on=PAIRWISE, by=by) for by in ("topic", ("topic", "level")))
        assert cached_leaderboard(opened, "v").group is None
    widths = []
    for gate in (alone, both):
        (group,) = (group for group in gate.groups if group.name == "topic=billing")
        widths.append((group.compared.result.difference.high or 0) - (group.compared.result.difference.low or 0))
    assert widths[0] < widths[1]


def test_categories_of_mt_bench_matter_for_the_pairs_that_an_independent_analysis_found(
    shared: Path, tmp_path: Path, cli: CLI
) -> None:
    folder = shared / "data/mtbench_multijudge"
    verdict = {"A": "A", "B": "B", "tie": "TIE"}
    lines = ["qid,agent_a,agent_b,judge,verdict"]
    for row in csv.DictReader((folder / "verdicts.csv").read_text(encoding="utf-8").splitlines()):
        for column, names in (("winner_ab", ("model_a", "model_b")), ("winner_ba", ("model_b", "model_a"))):
            cells = (row["question_id"], *(row[name] for name in names), row["judge"], verdict.get(row[column]))
            lines += [",".join(map(str, cells))] if cells[-1] else []  # 35 could not be read
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    queries = [f"{each['question_id']},What?,{each['category']}" for each in questions]
    (tmp_path / "mt.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "q.csv").write_text("\n".join(["qid,query,category", *queries]), encoding="utf-8")
    where = ("--queries", tmp_path / "q.csv", "--store", tmp_path / "mt.db")
    assert cli("import", "verdicts", tmp_path / "mt.csv", *where).status == 0
    with closing(Store.open(str(tmp_path / "mt.db"))) as opened:
        pairs = [*combinations(cached_games(opened, "mt").agents, 2)]
        values = [compare(opened, "mt", *pair, on=PAIRWISE, by="category").groups[0].interaction for pair in pairs]
    corrected = dict(zip(pairs, holm(np.array(values)).tolist(), strict=True))
    first, second, *others = sorted(corrected.items(), key=lambda entry: entry[1])
    assert (first[0], second[0]) == (
        ("EEVE-Korean-Instruct-10.8B", "EXAONE-3.5-7.8B-Instruct"),
        ("EEVE-Korean-Instruct-10.8B", "Llama-3.1-8B-Instruct"),
    )
    assert first[1] == pytest.approx(0.019, abs=0.003)
    assert second[1] == pytest.approx(0.047, abs=0.006)
    assert all(p > 0.1 for _, p in others)
