"""Calibration as a reader looks at it: cached reads and tables. ``ragarena calibrate`` prints the same figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final

import pandas as pd
import streamlit as st

from arena.calibration.bland_altman import BlandAltman
from arena.calibration.comparison import Comparison, JudgeReport
from arena.calibration.estimates import Wish
from arena.calibration.opinions import Level
from arena.calibration.style import StyleEffect
from arena.calibration.words import OUTCOMES
from arena.opinions.tournament import TournamentCalibration, calibrate_tournament, resampling_of
from arena.store import Store
from retrieval_eval.stats.estimate import Coefficient, Estimate
from ui import data
from ui.figures import NONE, Row, percent, with_interval
from ui.whiskers import Look, Whiskers, whiskers_of

MOST_LISTED: Final = 50
"""Disagreements of each judge that are kept for the reading list."""


@st.cache_resource(max_entries=4, show_spinner="Holding judges against people …")
def calibration(source: data.Source) -> TournamentCalibration:
    """What the tournament shows about itself."""
    with closing(Store.open(source.location)) as store:
        settings = resampling_of(store.settings(source.tournament))
        return calibrate_tournament(store, source.tournament, {}, settings, most=MOST_LISTED, wish=Wish())


def reports(comparisons: Sequence[Comparison]) -> Iterator[tuple[Comparison, str, JudgeReport]]:
    """Every judge on every level."""
    for one in comparisons:
        for name, report in one.judges.items():
            yield one, name, report


def agreement_frame(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """A line for each judge and level."""
    rows: list[Row] = []
    for one, name, report in reports(comparisons):
        own, labels, within = report.against, report.against.labels, one.people.within.share
        kappa = NONE if labels is None else labels.kappa
        bias = NONE if own.differences is None else own.differences.bias
        rows.append(
            {
                "Judge": name,
                "Judged": one.people.level,
                "Things": own.n,
                "Coverage": 100 * own.n / ((own.n + own.people_only) or 1),
                **with_interval("Agrees with a vote", own.votes.share, 1, 100),
                **with_interval("Two people agree", within, 1, 100),
                "Without ties": None if own.votes_decided is None else percent(own.votes_decided.share),
                **with_interval("Kappa", kappa, 2),
                **with_interval("Spearman", own.correlations.spearman, 2),
                **with_interval("Bias", bias, 2),
                **with_interval("Leaderboard tau", NONE if report.boards is None else report.boards.kendall, 2),
            }
        )
    return pd.DataFrame(rows)


def people_frame(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """A line for each level: what people say among themselves."""
    rows: list[Row] = []
    for one in comparisons:
        own = one.people
        alpha = NONE if own.alpha is None else own.alpha.alpha
        rows.append(
            {
                "Judged": own.level,
                "People": len(own.annotators),
                "Votes": len(own.opinions),
                "Things": own.things,
                "By several": own.repeated,
                **with_interval("Two agree", own.within.share, 1, 100),
                **with_interval("Alpha", alpha, 2),
                "Not above chance": sum(person.above_chance is False for person in own.annotators),
            }
        )
    return pd.DataFrame(rows)


def coefficients_frame(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """A line for each judge and level: every correlation and coefficient of agreement with its interval."""
    rows: list[Row] = []
    for one, name, report in reports(comparisons):
        labels, correlations = report.against.labels, report.against.correlations
        figures: dict[str, Estimate | Coefficient] = {
            "Pearson": correlations.pearson,
            "Spearman": correlations.spearman,
            "Kendall's tau-b": correlations.kendall,
            "Kappa": NONE if labels is None else labels.kappa,
            "Kappa, linear": NONE if labels is None else labels.kappa_linear,
            "Kappa, quadratic": NONE if labels is None else labels.kappa_quadratic,
            "Alpha": NONE if labels is None else labels.alpha,
            "Alpha, ordinal": NONE if labels is None else labels.alpha_ordinal,
        }
        row: Row = {"Judge": name, "Judged": one.people.level}
        for figure, own in figures.items():
            row |= with_interval(figure, own, 2)
        rows.append(row)
    return pd.DataFrame(rows)


def confusion_frame(level: Level, report: JudgeReport) -> pd.DataFrame:
    """How often people's consensus was the row's value where the judge's was the column's; needs labels."""
    labels = report.against.labels
    assert labels is not None
    names = [OUTCOMES[label] if level == "verdicts" else str(label) for label in labels.scale]
    table = pd.DataFrame(labels.confusion, columns=[f"judge: {name}" for name in names])
    table.insert(0, "People", names)
    return table


def differences_frame(own: BlandAltman) -> pd.DataFrame:
    """A line for each mark of a Bland-Altman plot."""
    rows = [(point.mean, point.difference, point.times) for point in own.points]
    return pd.DataFrame(rows, columns=["Mean of both", "Judge less people", "Things"])


VOTERS: Final[Mapping[Look, str]] = {"orange": "two people", "blue": "a judge and a person"}


def votes_whiskers(comparisons: Sequence[Comparison]) -> list[Whiskers]:
    """For the picture: how often a judge and a person, or two people, say the same, in percent."""
    shares: dict[str, dict[Look, Estimate]] = {}
    for one in comparisons:
        shares[f"two people, {one.people.level}"] = {"orange": one.people.within.share}
        for name, report in one.judges.items():
            shares[f"{name}, {one.people.level}"] = {"blue": report.against.votes.share}
    return whiskers_of(shares, 100)


def money_frame(found: TournamentCalibration) -> pd.DataFrame:
    """A line for each judge of answers: agreement with people, orders, failures, cost."""
    verdicts = next((one for one in found.comparisons if one.people.level == "verdicts"), None)
    rows: list[Row] = []
    for judge, own in found.spent.items():
        report = verdicts.judges.get(judge) if verdicts is not None else None
        labels, orders = report.against.labels if report is not None else None, found.orders.get(judge)
        rows.append(
            {
                "Judge": judge,
                "Games": own.games,
                **with_interval("Same as people", NONE if labels is None else labels.agreement, 1, 100),
                **with_interval("Kappa", NONE if labels is None else labels.kappa, 2),
                **with_interval("Same in both orders", NONE if orders is None else orders.order_agreement, 1, 100),
                "Failed": f"{own.failed:,} of {own.wanted:,}",
                "Cost of 1000 games": own.per_thousand,
            }
        )
    return pd.DataFrame(rows)


def styles_frame(styles: Sequence[StyleEffect]) -> pd.DataFrame:
    """A line for each judge and quality."""
    rows = [
        {
            "Judge": own.judge,
            "Quality": own.name.replace("_", " "),
            **with_interval("Points", own.points, 0),
            "Verdicts": own.games,
            "Why not": own.why_not,
        }
        for own in styles
    ]
    frame = pd.DataFrame(rows)
    return frame if any(own.why_not for own in styles) else frame.drop(columns="Why not")


def effects_whiskers(styles: Sequence[StyleEffect]) -> list[Whiskers]:
    """For the picture: effects that there are."""
    return whiskers_of({f"{own.judge}, {own.name.replace('_', ' ')}": {"blue": own.points} for own in styles})
