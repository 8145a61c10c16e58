"""Compare: all scores of the same agents, and where they disagree with the games."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from arena.boards import compare
from arena.boards.compare import CompareBoard, compare_board, compared
from arena.calibration.methods import Played
from arena.data.kinds import Annotation, texts_digest
from arena.present.picture import CellPanel, Strip
from arena.ratings.bradley_terry import BradleyTerrySettings
from arena.ratings.games import Games
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


def test_a_planted_disagreement_is_found_said_and_marked() -> None:
    found = board(means("cover", (3, 2, 1, 5)), means("v_strict", (3, 2, 1, 5), 2), means("criteria", (3, 2, 1, 0), 3))
    assert {(one.way, one.raised, one.lowered) for one in found.departures.pairs} == {
        (way, "d", other) for way in ("cover", "v_strict") for other in "abc"
    }
    assert found.sentences() == [
        "EXAM-Cover and nuggets disagree with the games about d: above a, b and c there, below in the games."
    ]
    strips = [panel for panel in found.figure().panels if isinstance(panel, Strip)]
    flagged = [(strip.title, agent) for strip in strips for agent, mark in strip.marks.items() if mark.flag]
    assert flagged == [("EXAM-Cover", "d"), ("Nuggets V strict", "d")]


def test_equal_orders_and_equal_agents_disagree_nowhere() -> None:
    same, level = means("cover", (3, 2, 1, 0)), means("criteria", (0, 0, 0, 0), 2)
    said = ["No score disagrees with the games about any two agents by more than chance."]
    assert board(same, level).sentences() == said
    assert board(same, level, rating=(0, 0, 0, 0)).sentences() == said


def test_of_two_agents_that_change_places_the_one_in_most_pairs_is_named() -> None:
    found = board(means("cover", (0, 3, 2, 1)))
    assert [(one.agent, one.others, one.above) for one in found.findings("cover")] == [("a", ("c", "d"), False)]


def test_what_too_few_queries_score_is_shown_with_its_coverage_and_held_against_nothing() -> None:
    few = means("cover", (0, 1, 2, 5)).among(QUERIES[:9])
    found = board(few)
    assert found.sentences() == ["Too few queries to hold EXAM-Cover against the games."]
    (_, strip) = (panel for panel in found.figure().panels if isinstance(panel, Strip))
    assert (strip.note, strip.marks["d"].tooltip) == ("9 of 60 queries", "On 9 of 60 queries.")


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
    picture = board(same).deltas("cover", ["a", "b"], {"level: easy": QUERIES[:20], "level: hard": QUERIES[20:]})
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
    grid = next(
        panel
        for panel in found.figure(lambda **fields: "?" + "&".join(fields.values())).panels
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
