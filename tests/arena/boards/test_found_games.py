"""Games as people read them: both orders as one, found by filters, with documents, reasons and flags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.boards.games import (
    GameFilter,
    address_of,
    documents_of,
    flag,
    flags_of,
    game_at,
    games_on,
    lost_table,
    opponents_table,
    verdicts_table,
)
from arena.boards.queries import label_of_query, queries_meant
from arena.config.schema import Config
from arena.config.settings import StoredSettings
from arena.ratings.games import tabulate
from arena.ratings.results import RatingSettings
from arena.results.cache import cached_games
from arena.results.games import GameKey
from arena.results.opinions import current_annotations
from arena.stages.together import TournamentStages
from arena.store import IDENTICAL, Result, Store, Wanted
from arena.store.annotations import Annotations
from arena.store.outcomes import game_verdicts
from judges.types import JudgeFailure, Judgment, Query, Task
from tests.support.games import game_records, game_table
from tests.support.sample_store import SETTINGS, write_store

VERDICTS = ("A", "B", "TIE", "failed", None)
Outcome = tuple[Wanted, Result | None]


def outcome(judge: str, query: str, agents: tuple[str, str], order: str, said: str | None) -> Outcome:
    result: Result | None = None if said is None else Judgment(f"{judge}{query}{agents}{order}", said, "", "", "m")
    if said == "failed":
        result = JudgeFailure("f", "empty", "nothing")
    return Wanted(Task.PAIRWISE, judge, query, *agents, order), result


@st.composite
def tournaments(draw: st.DrawFn) -> list[Outcome]:
    """A few games of three agents, some in one order only, named in either order."""
    pairs = st.sampled_from([("x", "y"), ("z", "x"), ("y", "z")])
    keys = st.tuples(
        st.sampled_from(["j", "k"]), st.sampled_from(["q1", "q2", "q3"]), pairs, st.sampled_from(["ab", "ba"])
    )
    return [outcome(*key, draw(st.sampled_from(VERDICTS))) for key in draw(st.sets(keys, min_size=1, max_size=24))]


@given(tournaments(), st.sampled_from(["tie", "win"]))
def test_columns_say_of_every_game_what_the_games_one_by_one_say(outcomes: list[Outcome], how: str) -> None:
    table = game_table(outcomes)
    scores = table.scores(how)
    records = game_records(outcomes, how)
    assert len(table) == len(records)
    for record in records:
        row = table.find(record.key)
        score = scores[row] if table.key(row).agent_a == record.agent_a else 1 - scores[row]
        assert (None if np.isnan(score) else score) == record.score
        assert table.orders_disagree[row] == record.orders_disagree
    verdicts = list(game_verdicts(outcomes))
    assert table.coverage().judged == len(verdicts)
    if verdicts:
        expected, found = tabulate(verdicts), table.verdicts()
        assert (found.agents, found.queries, found.judges) == (expected.agents, expected.queries, expected.judges)
        assert sorted(columns(found)) == sorted(columns(expected))


def columns(table: object) -> list[tuple[int, ...]]:
    names = ("a", "b", "outcome", "query", "judge")
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


PLAYED: Sequence[Outcome] = [
    outcome("j", "q1", ("x", "y"), "ab", "A"),
    outcome("j", "q1", ("x", "y"), "ba", "B"),
    outcome("k", "q1", ("x", "y"), "ab", "B"),
    outcome("j", "q2", ("x", "y"), "ab", "A"),
    outcome("j", "q2", ("x", "y"), "ba", "A"),
    outcome("j", "q2", ("y", "z"), "ab", None),
    outcome("j", "q3", ("x", "z"), "ab", "TIE"),
]
"""Rows of the table: x beats y on q1 for j and loses for k; orders apart on q2; y and z not played; a tie."""


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        (GameFilter(), [0, 1, 2, 3, 4]),
        (GameFilter(agent="x", opponent="y"), [0, 1, 2]),
        (GameFilter(agent="y", opponent="x", judge="k"), [1]),
        (GameFilter(queries=["q2"]), [2, 3]),
        (GameFilter(ending="a winner"), [0, 1]),
        (GameFilter(ending="a tie"), [2, 4]),
        (GameFilter(ending="no verdict yet"), [3]),
        (GameFilter(agent="y", ending="the agent wins"), [1]),
        (GameFilter(agent="y", ending="the agent loses"), [0]),
        (GameFilter(ending="the agent wins"), []),
        (GameFilter(apart="the two orders"), [2]),
        (GameFilter(apart="the judges"), [0, 1]),
        (GameFilter(agent="nobody"), []),
    ],
)
def test_filters_find_games(wanted: GameFilter, rows: list[int]) -> None:
    table = game_table(PLAYED)
    assert wanted.rows(table, table.scores("tie")).tolist() == rows


def test_an_empty_plan_is_an_empty_table() -> None:
    table = game_table([])
    assert len(table) == 0
    assert table.rated(RatingSettings()) is None
    assert GameFilter(apart="the judges").rows(table, table.scores("tie")).size == 0


def test_an_address_names_a_game_whatever_its_names_hold() -> None:
    key = GameKey('q"1', "<b>a</b>", "b,é", "j&?")
    assert game_at(address_of(key)) == key
    for wrong in (None, "", "0123456789ab", "[1,2,3,4]", '["q","a","b"]', "[" * 5000, '{"q":1}'):
        assert game_at(wrong) is None


def test_coverage_counts_each_order_of_each_name() -> None:
    found = game_table(PLAYED)
    assert found.coverage_by_name()["agent"] == {"x": (6, 6), "y": (5, 6), "z": (1, 2)}
    assert found.coverage_by_name()["judge"] == {"j": (5, 6), "k": (1, 1)}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("", None),
        (" ", None),
        ("q1", ["q1"]),
        (label_of_query("q1", Query("q1", "How long is the notice period?")), ["q1"]),
        ("PERIOD notice", ["q1", "q10"]),
        ("q1 trial", ["q10"]),
        ("holiday", []),
    ],
)
def test_a_query_is_asked_for_by_its_id_its_label_in_a_link_or_words_of_it(words: str, meant: list[str] | None) -> None:
    texts = {
        "q1": "How long is the notice period?",
        "q10": "The notice period on trial?",
        "q2": "Who may work from home?",
    }
    assert queries_meant(words, {query_id: Query(query_id, own) for query_id, own in texts.items()}) == meant


@pytest.mark.parametrize("threshold", [0, 1, 2])
@pytest.mark.parametrize("depth", [None, 1])
@pytest.mark.parametrize("pool", [{}, {"pool": "query"}, {"pool": "query", "pool_tokens": 30}])
def test_documents_shown_are_those_of_the_judge_s_prompt(
    tmp_path: Path, threshold: int, depth: int | None, pool: dict[str, Any]
) -> None:
    sections: dict[str, Any] = {
        "retrieval": {"judge": "strict", "depth": depth},
        "pairwise": {"judges": ["strict"], "documents": {"threshold": threshold, **pool}},
    }
    config = Config.model_validate(
        {"name": "n", "store": "s", "data": {"queries": "q"}, "judges": {"strict": {"provider": "lexical"}}, **sections}
    )
    with closing(Store.open(str(write_store(tmp_path / "s.db", queries=3)))) as store:
        data = store.dataset("sample")
        labels = {(want.query_id, want.item): result for want, result in store.outcomes("sample", Task.RELEVANCE)}
        games = store.outcomes("sample", Task.PAIRWISE)
    stages = TournamentStages(config, data)
    stages.labels.results.update(labels)
    for (want, result), record in zip(games[::2], game_records(games, "tie"), strict=True):
        prompt = stages.prompt(want)
        found = documents_of(record, data, labels, StoredSettings.model_validate({**SETTINGS, **sections}))
        seen = [entry.document.doc_id for entry in found if entry.shown]
        same = result is not None and result.judgment_id == IDENTICAL
        assert seen == ([] if same else [entry.document.doc_id for entry in prompt.inputs.documents])
        theirs = {entry.doc_id for entry in data.retrieved[want.query_id] if entry.agent in {want.item, want.other}}
        assert {entry.document.doc_id for entry in found} == theirs.union(seen)


def test_without_labels_every_retrieved_document_is_shown(tmp_path: Path) -> None:
    with closing(Store.open(str(write_store(tmp_path / "s.db", queries=2)))) as store:
        data, games = store.dataset("sample"), game_records(store.outcomes("sample", Task.PAIRWISE), "tie")
    found = documents_of(games[-1], data, {}, StoredSettings.model_validate({**SETTINGS, "retrieval": None}))
    assert len(found) == 3
    assert all(entry.shown for entry in found)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(str(write_store(tmp_path / "s.db", queries=3)))) as store:
        yield store


def test_each_verdict_on_a_query_stands_with_its_reason_and_an_agent_s_lost_games_with_why(opened: Store) -> None:
    games = cached_games(opened, "sample")
    scores = games.scores("tie")
    records = games_on(opened, "sample", "q01", games, scores)
    expected = game_records(opened.outcomes("sample", Task.PAIRWISE, "q01"), "tie")
    assert {record.key: record.score for record in records} == {record.key: record.score for record in expected}
    rows = verdicts_table(records, address_of).rows
    assert [game_at(row["to"]) for row in rows] == [record.key for record in records]
    assert {row["reason_ab"] for row in rows} == {"I weighed both answers to q01."}
    assert all(
        row["verdict_ab"] in {record.agent_a, record.agent_b, "a tie"}
        for row, record in zip(rows, records, strict=True)
    )
    lost = lost_table(records, "random-passage", opened.queries("sample"), address_of).rows
    won = {record.winner for record in records if "random-passage" in record.key} - {"random-passage", None}
    assert {row["opponent"] for row in lost if "random-passage" in row["to"]} == won
    assert {row["reason"] for row in lost} == {"I weighed both answers to q01."}
    (worst, *_), total = opponents_table(games, scores, "random-passage", lambda *_: "").rows, games.of_agent("bm25")
    assert worst["share"] <= 0.5
    assert sum(row["games"] for row in opponents_table(games, scores, "bm25", lambda *_: "").rows) == total.sum()


def test_a_flag_is_kept_with_its_comment_found_by_a_filter_and_outlives_no_change_of_a_text(opened: Store) -> None:
    games = cached_games(opened, "sample")
    key = games.key(4)
    data, said = opened.dataset("sample", key.query_id), Annotations(opened, "sample")
    assert said.add([flag(key, data, "ann", "Odd."), flag(key, data, "bob", "")]) == 2
    assert [one.value for one in flags_of(opened, "sample")[key]] == [
        {"judge": "strict", "comment": "Odd."},
        {"judge": "strict", "comment": ""},
    ]
    assert GameFilter(among=flags_of(opened, "sample")).rows(games, games.scores("tie")).tolist() == [4]
    said.add([flag(key, data, "bob", None)])
    assert [one.annotator for one in flags_of(opened, "sample")[key]] == ["ann"]
    assert said.counts() == {}, "a flag is no judgment"
    assert current_annotations(opened, "sample") == ([], 0)
    whole = opened.dataset("sample")
    changed = {name: replace(answer, text="New.") for name, answer in whole.answers.items()}
    opened.begin("sample", SETTINGS, replace(whole, answers=changed), [])
    assert flags_of(opened, "sample") == {}
