"""Calibration as plain values: the JSON that other programs rely on, and flat rows for tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from arena.calibration.comparison import Comparison, JudgeReport
from arena.calibration.judge_people import People
from arena.calibration.orders import OrderHealth
from arena.cli.agreement_shapes import flattened
from arena.cli.console import rounded
from arena.cli.metrics_shapes import Row
from retrieval_eval.stats.estimate import Coefficient, Estimate

_NESTED = {"scale", "confusion", "binarised", "n", "queries", "first_only", "second_only"}


def comparison_json(one: Comparison) -> Row:
    """One comparison of judges with people."""
    shape: Row = rounded(
        {
            "group": one.group or None,
            "level": one.people.level,
            "people": {**people_row(one.people, one.orders), "annotators": _annotators(one.people)},
            "judges": {name: _judge_json(own) for name, own in one.judges.items()},
            "panel": None if one.gain is None else flattened(one.gain),
        }
    )
    return shape


def comparison_rows(one: Comparison) -> list[Row]:
    """One flat row per judge."""
    rows: list[Row] = []
    for own in one.judges.values():
        row = {"group": one.group or None, "level": one.people.level, **judge_row(own)}
        rows.append(rounded(row))
    return rows


def people_row(own: People, orders: OrderHealth | None) -> Row:
    """What people say among themselves, flat."""
    row: Row = {
        "people": len(own.annotators),
        "votes": len(own.opinions),
        "things": own.things,
        "repeated": own.repeated,
        "suspects": sum(one.above_chance is False for one in own.annotators),
        "pairs": own.within.pairs,
        **estimate_row("same", own.within.share),
    }
    if own.within_decided is not None:
        row |= {"decided_pairs": own.within_decided.pairs, **estimate_row("same_decided", own.within_decided.share)}
    if own.alpha is not None:
        row |= {**estimate_row("alpha", own.alpha.alpha), **estimate_row("alpha_ordinal", own.alpha.alpha_ordinal)}
    row |= {
        "consensus": own.consensus.method,
        "contested": own.consensus.contested,
        "iterations": own.consensus.iterations,
        "converged": own.consensus.converged,
    }
    return row | _orders_row(orders)


def judge_row(report: JudgeReport) -> Row:
    """A judge against people, flat."""
    own = report.against
    row: Row = {
        "judge": own.judge,
        "n": own.n,
        "queries": own.queries,
        "judge_only": own.judge_only,
        "people_only": own.people_only,
        "vote_pairs": own.votes.pairs,
        **estimate_row("vote_agreement", own.votes.share),
    }
    if own.votes_decided is not None:
        row |= {
            "decided_vote_pairs": own.votes_decided.pairs,
            **estimate_row("decided_vote_agreement", own.votes_decided.share),
        }
    if own.labels is not None:
        row |= {name: value for name, value in flattened(own.labels).items() if name not in _NESTED}
    for name in ("pearson", "spearman", "kendall"):
        row |= coefficient_row(name, getattr(own.correlations, name))
    if own.differences is not None:
        for name in ("bias", "lower", "upper"):
            row |= estimate_row(name, getattr(own.differences, name))
    if report.boards is not None:
        row["leaderboard_agents"] = report.boards.agents
        for name in ("kendall", "spearman"):
            row |= coefficient_row(f"leaderboard_{name}", getattr(report.boards, name))
    return row | _orders_row(report.orders)


def estimate_row(name: str, own: Estimate) -> Row:
    """An estimate as three fields."""
    return {name: own.value, f"{name}_low": own.low, f"{name}_high": own.high}


def coefficient_row(name: str, own: Coefficient) -> Row:
    """A correlation as four fields."""
    return {name: own.value, f"{name}_low": own.low, f"{name}_high": own.high, f"{name}_p": own.p_value}


def _judge_json(own: JudgeReport) -> Row:
    row = judge_row(own)
    if own.against.labels is not None:
        row["scale"], row["confusion"] = list(own.against.labels.scale), own.against.labels.confusion
    row["outside_scale"] = [{"value": value, "n": count} for value, count in own.against.outside]
    row["disagreements"] = [asdict(one) for one in own.disagreements]
    if own.against.differences is not None:
        row["points"] = [asdict(point) for point in own.against.differences.points]
    return row


def _annotators(own: People) -> list[Row]:
    reliability = {one.rater: one.accuracy for one in own.consensus.raters}
    return [{**flattened(one), "accuracy": reliability.get(one.rater)} for one in own.annotators]


def _orders_row(orders: OrderHealth | None) -> dict[str, Any]:
    return {} if orders is None else flattened(orders)
