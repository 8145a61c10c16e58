"""What is said of small tables of verdicts is true: a few of those that ``benchmarks.false_sentences`` searches."""

from __future__ import annotations

import pytest

from benchmarks.false_sentences.claims import Seen, read
from benchmarks.false_sentences.recount import Recount, Row
from benchmarks.false_sentences.search import search
from benchmarks.false_sentences.worlds import KINDS, World


def test_no_sentence_about_a_table_of_every_other_kind_is_false() -> None:
    some = range(0, len(KINDS), 2)
    found = search(some, seed=1)
    assert found.false == {}
    assert sum(found.said.values()) > 40 * len(some)
    assert found.wrong_leaders <= found.allowed


def of_one_order(queries: int = 60) -> Seen:
    world = World("one order, first wins", {"x": 0.0, "y": 0.0}, queries)
    return Seen(world, Recount([Row(f"q{query:02}", "x", "y", "x") for query in range(queries)]))


def circle() -> Seen:
    pairs = (("x", "y"), ("y", "z"), ("z", "x"))
    rows = [
        Row(f"q{query:02}", *shown, winner=b if query < 3 else a)
        for a, b in pairs
        for query in range(30)
        for shown in ((a, b), (b, a))
    ]
    return Seen(World("circle", dict.fromkeys("xyz", 0.0), 30, circle=True), Recount(rows))


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        (
            of_one_order(),
            "Conclusion: Clear leader. x leads, 649 points above y, at 95% confidence over 60 games on 60 queries.",
        ),
        (of_one_order(4), "check passed: No favour for the place shown: 75% (13 to 98%) of verdicts with a winner go."),
        (of_one_order(4), "Only 5 queries: with fewer than 10, intervals miss too often to name a leader."),
        (circle(), "Of 100 games with a winner x would win about 50 against y (between 40 and 60)."),
        (
            circle(),
            "No two of the 3 agents can be told apart, at 95% confidence over 60 games on 30 queries.",
        ),
        (circle(), "Without 0 of 90 games y would be rated highest."),
        (
            circle(),
            "row of Can neighbours be told apart?: y | z | 0 | -60 to +60 | 1.000 | no | - | 0 games",
        ),
        (circle(), "x and y met in 30 games: x won 26, y won 4, 0 tied."),
    ],
)
def test_the_search_knows_a_false_sentence_when_it_reads_one(seen: Seen, line: str) -> None:
    (finding,) = read(seen, [line])
    assert finding.wrong
