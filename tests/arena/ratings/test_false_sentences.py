"""What is said of small worlds is true: a few of those that ``benchmarks.false_sentences`` searches."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

from arena.store import Store
from benchmarks.false_sentences import judged, tournaments, voters
from benchmarks.false_sentences.search import of_tournament, search_ratings, search_votes
from benchmarks.false_sentences.sentences import Rate, Result
from benchmarks.false_sentences.worlds import KINDS


def test_no_sentence_about_a_table_of_every_other_kind_is_false() -> None:
    found, some = Result(), range(0, len(KINDS), 2)
    search_ratings(found, some, seed=1)
    assert found.false == {}
    assert sum(found.said.values()) > 40 * len(some)
    assert found.holds


def test_no_sentence_about_judges_and_people_of_every_other_kind_is_false() -> None:
    found, some = Result(), range(0, len(voters.KINDS), 2)
    search_votes(found, some, seed=1)
    assert found.false == {}
    assert sum(found.said.values()) > 15 * len(some)
    assert found.holds


def test_no_sentence_about_a_tournament_is_false_and_other_figures_would_be(tmp_path: Path) -> None:
    """Of every stage judgments failed; each sentence that counts is read again with its first figure one up."""
    world = next(own for own in (tournaments.draw(number, 0) for number in range(2, 99, 12)) if own.share == 0.2)
    config, seen = tournaments.run(world, tmp_path), judged.Seen.of(world)
    with closing(Store.open(config.store)) as store:
        said = list(of_tournament(seen, store, config.name))
    assert [own for own in said if own.wrong] == []
    assert {own.kind for own in said} >= COUNTED
    seen.pair = world.failing, next(agent for agent in world.agents if agent != world.failing)
    for kind in sorted(COUNTED):
        own = next(own for own in said if own.kind == kind and _again(seen, own.line) == "")
        assert _again(seen, _raised(own.line)), f"{kind}: nothing is wrong with {_raised(own.line)}"


COUNTED = {
    *("check: even", "check: judged", "gate: games", "gate: missing judgments", "gate: row", "gate: score", "missing"),
    *("queries: missing", "queries: row", "row of criteria", "row of exam", "row of nuggets", "row of retrieval"),
}
"""Kinds of sentences that hold a figure."""


def _again(seen: judged.Seen, line: str) -> str:
    (found,) = judged.read(seen, [line])
    return found.wrong


def _raised(line: str) -> str:
    """The line with its first figure one up, or two of the last decimal; names of measures and queries are left."""
    figure = re.search(r"(?<![@\w.])(\d+)(?:\.(\d+))?(?![\w])", line)
    assert figure is not None, line
    decimals = len(figure[2] or "")
    return (
        line[: figure.start()]
        + f"{float(figure[0]) + (2 * 10**-decimals if decimals else 1):.{decimals}f}"
        + line[figure.end() :]
    )


def test_a_claim_that_is_untrue_more_often_than_chance_allows_does_not_hold() -> None:
    assert Rate(0.025, null=400).allowed == 18
    assert Result(rates={"better": Rate(0.025, 400, 18)}).holds
    assert not Result(rates={"better": Rate(0.025, 400, 19)}).holds
