"""What is said of small tables of verdicts is true: a few of those that ``benchmarks.false_sentences`` searches."""

from __future__ import annotations

from benchmarks.false_sentences.search import search
from benchmarks.false_sentences.worlds import KINDS


def test_no_sentence_about_a_table_of_every_other_kind_is_false() -> None:
    some = range(0, len(KINDS), 2)
    found = search(some, seed=1)
    assert found.false == {}
    assert sum(found.said.values()) > 40 * len(some)
    assert found.wrong_leaders <= found.allowed
