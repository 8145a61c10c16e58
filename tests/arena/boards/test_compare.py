"""Compare: all scores of the same agents, and where they disagree with the games."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from arena.boards import compare
from arena.boards.compare import CompareBoard, compare_board, compared
from arena.boards.compare_drawing import compare_figure, group_deltas
from arena.calibration.methods import PairOrders, Played
from arena.data.kinds import Annotation, texts_digest
from arena.present.picture import CellPanel, Strip
from arena.ratings.bradley_terry import BradleyTerrySettings
from arena.ratings.games import Games
from arena.results.cache import cached_leaderboard
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.scores import Scores
from tests.support.sample_store import write_store

AGENTS, QUERIES = ("a", "b", "c", "d"), tuple(f"q{at}" for at in range(60))
PAIRS = np.array(np.triu_indices(len(AGENTS), k=1), np.int32)


def played(strengths: Sequence[float], seed: int = 0) -> Played:
    """Each two agents meet on each query; one point of strength is one of log-odds."""
    a, b = np.tile(PAIRS, len(QUERIES))
    query = np.repeat(np.arange(len(QUERIES), dtype=np.int32), PAIRS.shape[1])
    chance = 1 / (1 + np.exp(np.array(strengths)[b] - np.array(strengths)[a]))
    won = (np.random.default_rng(seed).random(a.size) < chance).astype(np.float64)
    return Played("bradley_terry", Games(AGENTS, a, b, won, query), QUERIES, BradleyTerrySettings())


def means(name: str, strengths: Sequence[float], seed: int = 1) -> Scores:
    noise = np.random.default_rng(seed).normal(0, 0.5, (len(AGENTS), len(QUERIES)))
    return Scores(name, AGENTS, QUERIES, np.array(strengths)[:, np.newaxis] + noise)


def board(*ways: Scores, rating: Sequence[float] = (3, 2, 1, 0), queries: Sequence[str] = QUERIES) -> CompareBoard:
    games = played(rating)
    ratings = dict(sorted(zip(AGENTS, map(Estimate, games.points()), strict=True), key=lambda one: -one[1].value))
    return compared([*ways, games], queries, ratings)


def strips(found: CompareBoard, **given: Any) -> dict[str, Strip]:
    return {panel.title: panel for panel in compare_figure(found, **given).panels if isinstance(panel, Strip)}


def test_a_planted_disagreement_is_counted_named_and_coloured() -> None:
    scores = means("cover", (3, 2, 1, 5)), means("v_strict", (3, 2, 1, 5), 2), means("criteria", (3, 2, 1, 0), 3)
    found = board(*scores, rating=(4.5, 3, 1.5, 0))
    assert {(one.way, one.raised, one.lowered) for orders in found.orders for one in orders.departures} == {
        (way, "d", other) for way in ("cover", "v_strict") for other in "abc"
    }
    counts = "3 of 6 pairs of agents as the games do, prove"
    assert found.sentences() == [
        "EXAM-Cover disagrees with the games about d (above a, b and c, below in the games): "
        f"it orders {counts}s 3 and reverses 3.",
        "Nuggets disagree with the games about d (above a, b and c, below in the games): "
        f"they order {counts} 3 and reverse 3.",
        "Mean grades agree with the games: they order 6 of 6 pairs of agents as the games do, "
        "prove 6 and reverse none.",
    ]
    drawn = strips(found)
    assert list(drawn) == ["Games", "EXAM-Cover", "Nuggets V strict", "Mean grade"]
    looks = {title: [strip.marks[agent].look for agent in AGENTS] for title, strip in drawn.items()}
    assert looks["EXAM-Cover"] == looks["Nuggets V strict"] == ["blue", "blue", "blue", "orange"]
    assert (looks["Games"], looks["Mean grade"]) == (["quiet"] * 4, ["blue"] * 4)
    assert drawn["EXAM-Cover"].verdict == ("orange", "disagrees on 1 agent")
    assert [share.count for share in drawn["EXAM-Cover"].shares] == [3, 0, 0, 0, 3]
    assert drawn["Mean grade"].verdict == ("blue", "agrees")
    assert drawn["Mean grade"].notes[:2] == ["6 of 6 pairs as the games", "6 proven, 0 reversed"]
    assert drawn["Mean grade"].notes[2:] == ["tau 1.00"]  # by all draws of queries


def test_a_tie_is_no_reverse() -> None:
    signs = np.array([[0, 1, 1], [-1, 0, 1], [-1, -1, 0]], np.int8)
    level = np.array([[0, 0, -1], [0, 0, 1], [1, -1, 0]], np.int8)
    orders = PairOrders("cover", ("a", "b", "c"), signs, level, np.zeros((3, 3), np.bool_))
    assert orders.tally()._asdict() == {"pairs": 3, "alike": 1, "proven": 0, "reversed": 0, "tied": 1}


def test_ranks_stand_on_one_scale_over_those_of_the_games() -> None:
    found = board(means("cover", (3, 2, 1, 5)))
    games, cover = strips(found)["Games"], strips(found)["EXAM-Cover"]
    assert [strip.ranks for strip in (games, cover)] == [4, 4]
    assert [(games.marks[agent].value, cover.marks[agent].value) for agent in AGENTS] == [
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 1),
    ]
    assert (cover.marks["d"].low, cover.marks["d"].high, cover.marks["d"].band) == (1, 1, (4, 4))
    assert games.marks["d"].band is None
    assert cover.marks["d"].tooltip.startswith("d by EXAM-Cover: rank 1 (1); ")


def test_chosen_agents_keep_their_numbers_ranks_and_colours() -> None:
    found = board(means("cover", (3, 2, 1, 5)))
    figure = compare_figure(found, agents=["d", "b"])
    assert figure.numbered == [(2, "b"), (4, "d")]
    for strip, whole in zip(strips(found, agents=["d", "b"]).values(), strips(found).values(), strict=True):
        assert strip.marks == {agent: whole.marks[agent] for agent in "bd"}


def test_where_nothing_is_proven_it_is_open_and_no_agreement() -> None:
    same, level = means("cover", (3, 2, 1, 0)), means("criteria", (0, 0, 0, 0), 2)
    first, second = board(same, level).sentences()
    assert first.startswith("EXAM-Cover agrees with the games: it orders 6 of 6 pairs")
    assert second.startswith("Whether mean grades agree with the games is open: they order ")
    assert second.endswith(" prove none and reverse none.")
    for sentence in board(same, level, rating=(0, 0, 0, 0)).sentences():
        assert sentence.startswith("Whether ")
    drawn = strips(board(level))["Mean grade"]
    assert drawn.verdict == ("open", "open")
    assert {mark.look for mark in drawn.marks.values()} == {"open"}


def test_where_most_is_open_it_agrees_only_where_both_are_sure() -> None:
    found = board(means("cover", (3, 0, 0, 0)), rating=(4.5, 3, 1.5, 0))
    (said,) = found.sentences()
    assert said.startswith("EXAM-Cover agrees with the games where both are sure, but most is open: it orders ")
    assert said.endswith(" proves 3 and reverses none.")
    strip = strips(found)["EXAM-Cover"]
    assert [strip.marks[agent].look for agent in AGENTS] == ["blue", "open", "open", "open"]
    assert strip.verdict == ("open", "mostly open")


def test_pairs_that_missing_judgments_could_turn_are_not_proven() -> None:
    ends = np.stack([np.full((4, 60), end) for end in (-9.0, 9.0)])
    (orders,) = board(replace(means("cover", (3, 2, 1, 0)), ends=ends)).orders
    assert orders.tally() == (6, 6, 0, 0, 0)


def test_scores_of_some_agents_are_ranked_beside_the_games_among_these() -> None:
    some = means("cover", (3, 2, 1, 0))
    some = replace(some, agents=AGENTS[1:], values=some.values[1:])
    strip = strips(board(some))["EXAM-Cover"]
    assert {agent: (mark.value, mark.band) for agent, mark in strip.marks.items()} == {
        "b": (1, (1, 1)),
        "c": (2, (2, 2)),
        "d": (3, (3, 3)),
    }
    assert strip.notes[-1] == "3 of 4 agents"


def test_of_two_agents_that_change_places_the_one_in_most_pairs_is_named() -> None:
    found = board(means("cover", (0, 3, 2, 1)))
    assert [(one.agent, one.others, one.above) for one in found.findings("cover")] == [("a", ("c", "d"), False)]


def test_what_too_few_queries_score_is_shown_with_its_coverage_and_held_against_nothing() -> None:
    few = means("cover", (0, 1, 2, 5)).among(QUERIES[:9])
    found = board(few)
    assert found.sentences() == ["Too few queries to hold EXAM-Cover against the games."]
    strip = strips(found)["EXAM-Cover"]
    assert (strip.verdict, strip.notes[-1]) == (("open", "too few queries"), "9 of 60 queries")
    assert strip.marks["d"].tooltip.endswith("; on 9 of 60 queries.")
    assert (strip.marks["d"].low, strip.marks["d"].high) == (1, 4)


def test_a_score_is_its_mean_with_an_interval_over_queries() -> None:
    cover = means("cover", (3, 2, 1, 0))
    (_, way) = board(cover).ways
    mean, error = cover.values[0].mean(), cover.values[0].std(ddof=1) / np.sqrt(len(QUERIES))
    own = way.scores["a"]
    assert (own.value, own.n) == (pytest.approx(mean), 60)
    assert mean - 5 * error < own.low < mean - 1.9 * error  # queries at the far end may have been missed
    assert mean + 1.9 * error < own.high < mean + 3 * error
    assert way.form.write(own.value) == f"{mean:.2f}"


def test_deltas_of_groups_are_paired_by_query() -> None:
    cover = means("cover", (3, 2, 1, 0))
    shift = cover.values[0] + np.where(np.arange(60) < 20, 1.0, 0.0)
    same = replace(cover, values=np.stack([cover.values[0], shift, *cover.values[2:]]))
    picture = group_deltas(board(same), "cover", ["a", "b"], {"level: easy": QUERIES[:20], "level: hard": QUERIES[20:]})
    figures = {line.name: (line.marks[0].value, line.marks[0].low, line.marks[0].beside) for line in picture.lines}
    assert figures["level: easy"] == (pytest.approx(1), None, "(20 queries)")
    assert figures["level: hard"] == (0, None, "(40 queries)")
    assert figures["All queries"][1] > 0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(str(write_store(tmp_path / "s.db")))) as opened:
        yield opened


def test_a_tournament_is_compared_once_until_somebody_says_something(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compare_board(store, "sample")
    assert found.ways[0].name == "bradley_terry"
    rated = cached_leaderboard(store, "sample").ratings
    for row in rated.agents:
        rank = found.ways[0].ranks[row.agent]
        assert (rank.value, rank.low, rank.high) == (row.rank, row.rank_low, row.rank_high)
    grid = next(
        panel
        for panel in compare_figure(found, lambda **fields: "?" + "&".join(fields.values())).panels
        if isinstance(panel, CellPanel)
    )
    assert grid.cells["hybrid", "dense"].link == "?games&hybrid&dense"

    def again(*_: object, **__: object) -> None:
        raise AssertionError("compared again")

    monkeypatch.setattr(compare, "compared", again)
    assert repr(compare_board(store, "sample").ways) == repr(found.ways)
    Annotations(store, "sample").add([Annotation("verdict", "ann", "q1", "dense", "bm25", "", "A")])
    with pytest.raises(AssertionError, match="compared again"):
        compare_board(store, "sample")


def test_one_vote_of_people_is_no_panel_and_is_said(store: Store) -> None:
    data = store.dataset("sample")
    texts = [data.queries["q01"].text, *(data.answers["q01", agent].text for agent in ("dense", "bm25"))]
    Annotations(store, "sample").add([Annotation("verdict", "ann", "q01", "dense", "bm25", texts_digest(*texts), "A")])
    found = compare_board(store, "sample")
    assert "people" not in {way.name for way in found.ways}
    assert "People's votes are on 1 query: too few to compare with." in found.sentences()


def test_scores_that_say_the_same_share_a_sentence_and_those_that_disagree_come_first() -> None:
    alike, level = means("cover", (3, 2, 1, 0)), means("criteria", (0, 0, 0, 0), 2)
    said = board(alike, level, means("people", (3, 2, 1, 0), 3), means("v_strict", (3, 2, 1, 5), 4)).sentences()
    assert [sentence.split(":")[0] for sentence in said] == [
        "Nuggets disagree with the games about d (above a, b and c, below in the games)",
        "EXAM-Cover and people's votes agree with the games",
        "Whether mean grades agree with the games is open",
    ]
    assert said[1].endswith(
        ": they order 6 and 6 of 6 pairs of agents as the games do, prove 5 and 5 and reverse none."
    )
