"""A leaderboard of a group of queries: everything in it is of these queries alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from arena.boards.compare import compare_board
from arena.boards.games import opponents_table
from arena.boards.leaderboard import TournamentBoard
from arena.boards.queries import query_board
from arena.config.schema import load_config
from arena.data.dataset import Group
from arena.present.table import plain
from arena.ratings.separation import separations
from arena.results import cache as kept
from arena.results.agreement import compare_with_people
from arena.results.cache import cached_games, cached_leaderboard
from arena.results.ratings import Leaderboard, leaderboard, of_group
from arena.run.judging import run
from arena.store import Store
from judges.errors import InputError
from tests.golden.worlds import write_whole
from tests.support.peoples_words import add_people

GROUPS = (("kind", "odd"), ("kind", "even"))
"""Of ten queries five each."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    write_whole(folder)
    run(load_config(folder / "whole.yaml"), mock.Mock())
    return folder / "whole.yaml"


@pytest.fixture
def store(config: Path) -> Iterator[Store]:
    with closing(Store.open(load_config(config).store)) as opened:
        yield opened


def agents(board: Leaderboard) -> dict[str, dict[str, Any]]:
    return {row["agent"]: row for row in plain(TournamentBoard(board).json())["agents"]}


def test_groups_add_up_to_the_whole_in_every_stage(store: Store) -> None:
    whole, *parts = (leaderboard(of_group(store, "whole", group), "whole") for group in (None, *GROUPS))
    assert [part.ratings and part.ratings.units for part in parts] == [5, 5]
    for task, stage in whole.coverage.items():
        assert stage.wanted == sum(part.coverage[task].wanted for part in parts if task in part.coverage), task
        assert stage.judged == sum(part.coverage[task].judged for part in parts if task in part.coverage), task
    for own in whole.costs.agents:
        each = [next(each for each in part.costs.agents if each.agent == own.agent) for part in parts]
        assert (own.queries, own.answered) == (10, sum(one.answered for one in each))
    for row in whole.ratings.agents:
        each = [next(one for one in part.ratings.agents if one.agent == row.agent) for part in parts if part.ratings]
        assert (row.games, row.wins) == (sum(one.games for one in each), sum(one.wins for one in each))


def test_scores_of_groups_of_one_size_have_the_whole_s_score_as_their_mean(store: Store) -> None:
    boards = [leaderboard(of_group(store, "whole", group), "whole") for group in (None, *GROUPS)]
    whole, *parts = map(agents, boards)
    for agent, row in whole.items():
        for name in ("exam_cover", "nuggets_v_strict"):
            own = [part[agent][name] for part in parts]
            assert row[name] == pytest.approx(sum(own) / 2, abs=1e-5), (agent, name)
    assert any(own["exam_cover"] != parts[1][agent]["exam_cover"] for agent, own in parts[0].items())


def test_a_group_is_kept_beside_the_whole_and_never_taken_for_it(store: Store) -> None:
    group = GROUPS[0]
    fresh = leaderboard(of_group(store, "whole", group), "whole")
    assert repr(cached_leaderboard(of_group(store, "whole", group), "whole")) == repr(fresh)
    whole = repr(cached_leaderboard(store, "whole"))
    with mock.patch.object(kept, "leaderboard", side_effect=AssertionError("rated again")):
        assert repr(cached_leaderboard(of_group(store, "whole", group), "whole")) == repr(fresh)
        assert repr(cached_leaderboard(store, "whole")) == whole


def test_queries_games_and_people_of_the_groups_add_up_to_the_whole_s(store: Store, config: Path) -> None:
    add_people(Path(load_config(config).store), "whole")
    parts = [leaderboard(of_group(store, "whole", group), "whole") for group in GROUPS]
    agent, queries = parts[0].ratings.agents[0].agent, query_board(store, "whole")
    games = cached_games(store, "whole")
    scores = games.scores(store.settings("whole").win_and_tie)

    def met(chosen: Collection[str] | None) -> dict[str, int]:
        rows = opponents_table(games, scores, agent, lambda *_: "", chosen).rows
        return {row["opponent"]: row["games"] for row in rows}

    def by_judge(group: Group | None) -> dict[str, int]:
        comparisons, *_ = compare_with_people(of_group(store, "whole", group), "whole")
        return {f"{one.people.level} {name}": own.n for one in comparisons for name, own in one.judges.items()}

    boards = [queries.of_group(*group) for group in GROUPS]
    assert met(None) == {name: sum(met(board.queries)[name] for board in boards) for name in met(None)}
    whole, *of_groups = (by_judge(group) for group in (None, *GROUPS))
    assert {"verdicts words", "criteria words"} <= whole.keys()
    assert whole == {name: sum(own.get(name, 0) for own in of_groups) for name in whole}
    assert [sum(wanted for _, wanted in board.verdicts.values()) for board in boards] == [210, 210]
    for board in boards:
        assert board.finding == "None of 5 queries stands out by more than chance."
        with_games = [one for one in board.standings.figures if one.separation is not None]
        _, agreement = separations(*board.measured("won"))
        assert [one.agreement for one in with_games] == pytest.approx(agreement[: len(with_games)].tolist())


def test_the_command_names_the_group_and_an_unknown_one_is_refused(cli: Any, config: Path, store: Store) -> None:
    found = json.loads(cli("leaderboard", config, "--group", "kind=even", "--format", "json").out)
    assert found["group"] == {"column": "kind", "value": "even", "of": 2}
    assert {row["games"] for row in found["agents"]} == {5 * (len(found["agents"]) - 1)}
    assert "kind=even" in cli("leaderboard", config, "--group", "kind=even").out
    with pytest.raises(InputError, match="no query has kind=old; groups are kind=even, kind=odd"):
        of_group(store, "whole", ("kind", "old"))
    refused = cli("leaderboard", config, "--group", "even")
    assert (refused.status, "COLUMN=VALUE" in refused.err) == (2, True)


def test_scores_are_compared_on_the_queries_of_the_group_alone(store: Store) -> None:
    whole, *parts = (compare_board(of_group(store, "whole", group), "whole") for group in (None, *GROUPS))
    assert sum(own.queries for own in parts) == whole.queries
    for own, group in zip(parts, GROUPS, strict=True):
        board = cached_leaderboard(of_group(store, "whole", group), "whole")
        assert own.order[: len(board.ratings.agents)] == tuple(row.agent for row in board.ratings.agents)
        assert all(way.queries <= own.queries for way in own.ways)
    assert {way.name for way in whole.ways} >= {"bradley_terry", "cover", "v_strict", "criteria", "nDCG@10"}
