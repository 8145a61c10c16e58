"""A judge's figures corrected by people's labels, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pandas as pd

from arena.calibration.estimates import Estimates
from arena.calibration.prediction_powered import labels_needed
from retrieval_eval.stats.estimate import Estimate
from ui.figures import NONE, Row, with_interval
from ui.whiskers import Look, Whiskers, whiskers_of

WAYS: Final[Mapping[Look, str]] = {"blue": "corrected", "orange": "people alone", "grey": "judge alone"}


def estimates_frame(own: Estimates, width: float | None) -> pd.DataFrame:
    """Means, or win rates, three ways; with a width how many labels it takes."""
    rows: list[Row] = []
    for figure in own.figures:
        found = figure.corrected
        row = {
            "Figure": figure.name,
            **with_interval("Corrected", found.corrected, 3),
            **with_interval("People alone", found.people, 3),
            **with_interval("Judge alone", found.judge, 3),
            "Weight": found.weight,
            "Things": found.n,
            "Labelled": found.labelled,
        }
        if width is not None:
            needed = labels_needed(found, width)
            row |= {"Labels needed": _count(needed.corrected), "Without judge": _count(needed.people)}
        rows.append(row)
    return pd.DataFrame(rows)


def ratings_frame(own: Estimates) -> pd.DataFrame:
    """Bradley-Terry ratings three ways, the best first."""
    if own.ratings is None:
        return pd.DataFrame()
    found = own.ratings
    people = found.people or [NONE] * len(found.agents)
    best_first = sorted(
        zip(found.agents, found.corrected, people, found.judge, strict=True), key=lambda row: -(row[1].value or 0)
    )
    return pd.DataFrame(
        [
            {
                "Figure": agent,
                **with_interval("Corrected", corrected, 0),
                **with_interval("People alone", alone, 0),
                **with_interval("Judge alone", judged, 0),
            }
            for agent, corrected, alone, judged in best_first
        ]
    )


def three_ways(figures: Iterable[tuple[str, Estimate, Estimate, Estimate]]) -> list[Whiskers]:
    """For the picture: of name, corrected, people's alone and the judge's alone."""
    return whiskers_of(
        {name: dict(zip(WAYS, estimates, strict=True)) for name, *estimates in figures},
    )


def _count(labels: int | None) -> str:
    return "more than all" if labels is None else f"{labels:,}"
