"""The table that compares every two judges by their agreement with the same people on the same items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from arena.calibration.comparison import PANEL, Comparison, TwoJudges
from arena.present.numbers import COUNT, P_VALUE, PERCENT, SIGNED_2
from arena.present.table import INTERVAL, Column, Table, flat
from arena.ratings.results import MOST_JUDGES
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.estimate import Estimate

_COLUMNS: Final = (
    Column("first", "Judge"),
    Column("second", "Against"),
    Column("what", "Judged", programs=False),
    Column("n", "Things", COUNT, "Judged by both judges and by people."),
    Column("first_agreement", "Judge agrees", PERCENT, "Agreement with people's votes on these, each thing once."),
    Column("second_agreement", "Other agrees", PERCENT, "The same for the other judge."),
    Column("difference", "Difference", SIGNED_2, "Agreement of the judge minus that of the other.", INTERVAL),
    Column("p", "p", P_VALUE, "Sign-flip test by query, two-sided."),
    Column("p_holm", "p, corrected", P_VALUE, "p, corrected for all pairs of judges (Holm)."),
    Column("result", "The judge is", programs=False),
    Column("more", "More queries", COUNT, "With as many more like these, it is decided with a probability of 80%."),
)
_MOST: Final = 20
_HOLM: Final = "Each interval is at the level at which Holm's procedure tests its pair."


def two_judges(comparisons: Sequence[Comparison], judge: str = "", name: str = "two-judges") -> list[Table]:
    """Table of all pairs of judges, or of those with ``judge``; the list is empty if there is no pair."""
    pairs = [
        (comparison.what, pair)
        for comparison in comparisons
        for pair in comparison.pairs
        if judge in ("", pair.first, pair.second)
    ]
    notes = [f"Not worse: by {pairs[0][1].margin:g} at most (--epsilon)."] if pairs else []
    if (found := len(pairs)) > _MOST:
        pairs = sorted(pairs, key=lambda entry: 2.0 if entry[1].p is None else entry[1].p)[:_MOST]
        notes.append(f"The {_MOST} with the smallest p, of {found:,}; '--format json' has all.")
    rows = [pair_row(pair) | {"what": what, "result": _result(pair)} for what, pair in pairs]
    corrected = any(pair.level > 0.95 for _, pair in pairs)
    columns = [replace(column, interval=column.interval and "Interval") for column in _COLUMNS]
    notes += [_HOLM] if corrected else []
    return [Table(name, "Two judges", columns if corrected else _COLUMNS, rows, notes)] if pairs else []


def too_many(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Sentences on comparisons with too many judges to compare pair by pair."""
    for comparison in comparisons:
        if (judges := len(comparison.judges.keys() - {PANEL})) > MOST_JUDGES:
            yield f"{comparison.what}: {judges} judges; pairs of judges are compared among {MOST_JUDGES} at most"


def pair_row(pair: TwoJudges) -> dict[str, Any]:
    difference = Estimate(pair.difference.value, n=pair.queries) if pair.p is None else pair.difference
    return flat(replace(pair, difference=difference))


def _result(pair: TwoJudges) -> str:
    return f"too few to tell: fewer than {FEW_QUERIES} queries" if pair.p is None else pair.verdict
