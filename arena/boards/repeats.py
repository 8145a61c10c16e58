"""The noise floor: how much a score changes when one system is asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arena.boards.quantities import WON, quantity
from arena.present.blocks import Section
from arena.present.numbers import COUNT, FIGURE, counted, with_interval
from arena.present.table import INTERVAL, Column, Table, fields, flat
from retrieval_eval.stats.repeats import Noise


def noise_words(noise: Noise) -> str:
    """The noise floor as a sentence; if all repeats scored the same, it says that this is no evidence."""
    runs = f"two runs of one system on {counted(noise.queries, 'query', 'queries')}"
    if not noise.floor.value:
        return (
            f"{runs} scored the same in all repeats: equal texts, or a score that sees no difference, are no evidence."
        )
    return f"{runs} differ by up to {with_interval(noise.floor, FIGURE)} in 95% of cases."


def noise_section(noises: Sequence[Noise]) -> Section:
    lead = "How much does a score change when one system answers the same queries again?"
    columns = [
        Column("title", "Score"),
        Column("floor", "Two runs differ by up to", FIGURE, "In 95% of cases, with one answer per query.", INTERVAL),
        Column("queries", "Queries", COUNT),
        Column("repeats", "Repeats", COUNT, "Answers of one agent to one query, at most."),
    ]
    rows = [fields(noise, "floor", "queries", "repeats") | {"title": title_of(noise)} for noise in noises]
    note = (
        "A smaller difference between two systems that answered each query once may be nothing but chance. Repeats are "
        "averaged within the query, so scores with repeats are steadier. Repeats with equal texts are no evidence."
    )
    return Section("noise", "Noise floor", lead, [Table("noise", "", columns, rows, [note])])


def noise_json(noises: Sequence[Noise]) -> Mapping[str, Any]:
    return {noise.score: flat(fields(noise, "floor", "queries", "repeats")) for noise in noises}


def title_of(noise: Noise) -> str:
    return quantity(WON if noise.score == "pairwise" else noise.score).title
