"""Old against new, query by query: what was planted in one group of queries is found there, and sums up to the gate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from arena.boards.gate.compare import compare
from arena.boards.gate.figures import PAIRWISE
from arena.boards.gate.queries import PairBoard, pair_board
from arena.boards.leaderboard import TournamentBoard
from arena.results.ratings import leaderboard, of_group
from arena.store import Store
from tests.conftest import CLI
from tests.support.sample_store import write_store


def board_of(path: Path, cli: CLI, new_wins: dict[str, Sequence[bool]]) -> PairBoard:
    """The board of a tournament in which ``new`` wins or loses against ``old`` on each query of a topic."""
    lines, queries = ["qid,agent_a,agent_b,verdict"], ["qid,query,topic"]
    for topic, wins in new_wins.items():
        for number, won in enumerate(wins):
            name = f"{topic}{number}"
            queries.append(f"{name},What is {name}?,{topic}")
            lines += [f"{name},new,old,{'A' if won else 'B'}", f"{name},old,new,{'B' if won else 'A'}"]
    (path / "v.csv").write_text("\n".join(lines), encoding="utf-8")
    (path / "q.csv").write_text("\n".join(queries), encoding="utf-8")
    imported = cli("import", "verdicts", path / "v.csv", "--queries", path / "q.csv", "--store", path / "s.db")
    assert imported.status == 0, imported.err
    with closing(Store.open(str(path / "s.db"))) as store:
        return pair_board(store, "v", ("new", "old"), PAIRWISE)


def test_a_collapse_on_one_topic_is_named_though_all_topics_together_are_even(tmp_path: Path, cli: CLI) -> None:
    lost = [number % 50 < 11 for number in range(50)]  # 22 : 78
    board = board_of(tmp_path, cli, {"billing": lost, "setup": [not won for won in lost], "rare": [True, False]})
    verdicts = {group.value: group.verdict for group in board.groups}
    assert verdicts == {"billing": "worse", "rare": "too few to tell", "setup": "better"}
    assert board.collapsed == "Worse than old by more than chance where topic=billing."
    assert board.finding == "new does worse than old on 51 of 102 queries, better on 51, alike on the others."
    assert [pair.query_id for pair in board.pairs[:2]] == ["billing11", "billing12"], "the largest losses first"
    assert (board.pairs[0].new, board.pairs[0].old, board.pairs[-1].difference) == (0, 1, 1)
    assert [group.value for group in board.groups] == ["billing", "rare", "setup"], "the largest loss first"
    assert all(group.interaction and group.interaction < 0.001 for group in board.groups)
    with closing(Store.open(str(tmp_path / "s.db"))) as store:
        gate = compare(store, "v", "new", "old", on=PAIRWISE, by="topic")
    assert (gate.verdict, gate.status) == ("worse", 1), "all topics together are even"
    assert gate.headline == "Failed: new is worse than old where topic=billing."
    assert "Too few queries to tell: topic=rare (2 queries)." in gate.remarks()
    rows = {row["name"]: row for row in gate.tables()[1].rows}
    assert (rows["topic=rare"]["verdict"], rows["topic=rare"]["difference"].low) == ("too few to tell", None)
    assert rows["topic=billing"]["difference"].value == pytest.approx(0.22 - 0.5)
    assert rows["topic=billing"]["difference"].high < -0.05


def test_the_leader_that_loses_on_one_topic_fails_a_check_by_its_name(tmp_path: Path, cli: CLI) -> None:
    won = [number % 25 < 20 for number in range(25)]
    board_of(tmp_path, cli, {"billing": [not each for each in won], "setup": won, "use": won, "rare": [False] * 3})
    with closing(Store.open(str(tmp_path / "s.db"))) as store:
        board = leaderboard(store, "v")
    groups = board.by_group
    assert groups is not None
    assert (groups.leader, len(groups.tested), groups.few) == ("new", 3, ["topic=rare"])
    assert [(group.value, group.other, group.share.value) for group in groups.reversed] == [("billing", "old", 0.2)]
    (check,) = (check for check in TournamentBoard(board).verdict()[1] if check.name == "Result by group of queries")
    assert check.status == "failed"
    assert "new wins 20%" in check.finding
    assert "where topic=billing (25 queries), and 58% on all." in check.finding
    screen = cli("leaderboard", tmp_path / "s.db").out.splitlines()
    assert screen[2].startswith("Why: new wins 20%"), "the first reason"
    assert any("topic=billing" in line for line in screen[:6])


def test_no_topic_goes_the_other_way_where_the_leader_wins_on_each(tmp_path: Path, cli: CLI) -> None:
    won = [number % 5 > 0 for number in range(20)]
    board_of(tmp_path, cli, {"billing": won, "setup": won})
    with closing(Store.open(str(tmp_path / "s.db"))) as store:
        checks = TournamentBoard(leaderboard(store, "v")).verdict()[1]
    assert [check.status for check in checks if check.name == "Result by group of queries"] == ["passed"]


def test_a_column_that_makes_no_groups_is_refused(tmp_path: Path, cli: CLI) -> None:
    board_of(tmp_path, cli, {"billing": [True] * 12, "setup": [False] * 12})
    refused = cli("compare", tmp_path / "s.db", "new", "old", "--by", "topics")
    assert (refused.status, refused.err) == (
        2,
        "error: --by: no column 'topics' of the queries; did you mean 'topic'?\n",
    )
    failed = cli("gate", tmp_path / "s.db", "--new", "new", "--old", "old", "--by", "topic", "--format", "md")
    assert failed.status == 1
    assert "| topic=setup | 12 | 0.000 |" in failed.out


def test_one_group_of_a_column_is_judged_more_strictly_than_it_would_be_alone(tmp_path: Path, cli: CLI) -> None:
    lost = [number % 20 < 5 for number in range(20)]
    board = board_of(tmp_path, cli, {name: lost if name == "t3" else [True, False] * 10 for name in ("t1", "t2", "t3")})
    (group,) = (group for group in board.groups if group.value == "t3")
    with closing(Store.open(str(tmp_path / "s.db"))) as store:
        alone = compare(of_group(store, "v", ("topic", "t3")), "v", "new", "old", on=PAIRWISE).scores[0].result
    together = group.compared.result.difference
    assert together is not None
    assert together.value == alone.difference.value
    assert together.high - together.low > 1.1 * (alone.difference.high - alone.difference.low)  # type: ignore[operator]


@pytest.mark.parametrize("on", [PAIRWISE, "criteria", "nDCG@10"])
def test_queries_average_to_the_difference_that_the_gate_tests(tmp_path: Path, on: str) -> None:
    path = write_store(tmp_path / "s.db", queries=20)
    with closing(Store.open(str(path))) as store:
        board = pair_board(store, "sample", ("dense", "bm25"), on)
        expected = compare(store, "sample", "dense", "bm25", on=on).scores[0].result.difference
    half = 0.5 if on == PAIRWISE else 1
    assert len(board.pairs) == expected.n
    assert half * np.mean([pair.difference for pair in board.pairs]) == pytest.approx(expected.value)
