"""What one game says about the gap between two agents, under three treatments of ties.

With d the gap in log-odds (order effect included) and h the tie parameter:

- ``davidson`` (Davidson 1970, JASA 65), h = log nu: P(a) : P(b) : P(tie) = e^(d/2) : e^(-d/2) : nu.
- ``half``: Bradley and Terry (1952), in which a tie adds half the log-probability of either win; the same expressions
  with nu = 0.
- ``rao-kupper`` (Rao and Kupper 1967, JASA 62), h = eta >= 0, a threshold: P(a) = s(d - eta), P(b) = s(-d - eta) with
  the logistic function s, so P(tie) = (e^(2 eta) - 1) P(a) P(b).

All are concave in (d, h). Arrays of gaps and outcomes have one shape; h broadcasts to it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from arena.ratings.games import Floats

TieModel: TypeAlias = Literal["davidson", "half", "rao-kupper"]

NO_TIES: dict[TieModel, float] = {"davidson": -np.inf, "half": -np.inf, "rao-kupper": 0.0}
"""The tie parameter under which ties do not happen: its maximum where there are none."""

_FAR = 600.0
"""Gaps beyond this are as good as infinite, and their exponentials still finite."""


class Outcomes(NamedTuple):
    """Numbers, or probabilities, of wins of either side and of ties."""

    wins_a: Floats
    wins_b: Floats
    ties: Floats


class Slopes(NamedTuple):
    """First derivatives of the log-likelihood in the gap and in the tie parameter."""

    gap: Floats
    tie: Floats


class Curvatures(NamedTuple):
    """Negative second derivatives."""

    gap: Floats
    cross: Floats
    tie: Floats


def probabilities(model: TieModel, gap: Floats, tie: Floats) -> Outcomes:
    """Probability of each outcome."""
    if model == "rao-kupper":
        (win, _), (loss, _) = _threshold(gap, tie)
        return Outcomes(win, loss, np.expm1(2 * tie) * win * loss)
    up = np.exp(np.clip(gap, -_FAR, _FAR) / 2)
    down, nu = 1 / up, np.exp(tie)
    total = up + down + nu
    return Outcomes(up / total, down / total, nu / total)


def log_likelihood(model: TieModel, gap: Floats, tie: Floats, seen: Outcomes) -> Floats:
    """Of the outcomes seen, up to a constant; minus infinity outside of the parameter's range."""
    if model == "rao-kupper":
        held = np.maximum(tie, 0.0)
        won = (seen.wins_a + seen.ties) * np.logaddexp(0, held - gap)
        lost = (seen.wins_b + seen.ties) * np.logaddexp(0, held + gap)
        with np.errstate(divide="ignore"):
            drawn = np.log(np.expm1(2 * held))
        tied: Floats = np.where(seen.ties > 0, seen.ties * np.where(seen.ties > 0, drawn, 0.0), 0.0)
        return tied - won - lost
    log_z = np.logaddexp(np.logaddexp(gap / 2, -gap / 2), tie)
    drawn = seen.ties * np.where(np.isfinite(tie), tie, 0.0)
    result: Floats = (seen.wins_a - seen.wins_b) * gap / 2 + drawn - sum(seen) * log_z
    return result


def slopes(model: TieModel, gap: Floats, tie: Floats, seen: Outcomes) -> Slopes:
    """First derivatives, written so that nothing cancels where one side nearly always wins."""
    if model == "rao-kupper":
        (_, not_win), (_, not_loss) = _threshold(gap, tie)
        won, lost = (seen.wins_a + seen.ties) * not_win, (seen.wins_b + seen.ties) * not_loss
        return Slopes(won - lost, seen.ties * _drawn_slope(tie) - won - lost)
    p = probabilities(model, gap, tie)
    half = p.ties / 2
    of_gap = seen.wins_a * (p.wins_b + half) - seen.wins_b * (p.wins_a + half) - seen.ties * (p.wins_a - p.wins_b) / 2
    return Slopes(of_gap, seen.ties * (1 - p.ties) - (seen.wins_a + seen.wins_b) * p.ties)


def curvatures(model: TieModel, gap: Floats, tie: Floats, seen: Outcomes) -> Curvatures:
    """Negative second derivatives; that of the tie parameter is 0 where ties do not happen."""
    if model == "rao-kupper":
        (win, not_win), (loss, not_loss) = _threshold(gap, tie)
        won, lost = (seen.wins_a + seen.ties) * win * not_win, (seen.wins_b + seen.ties) * loss * not_loss
        slope = _drawn_slope(tie)
        return Curvatures(won + lost, lost - won, won + lost + seen.ties * slope * (slope - 2))
    p, games = probabilities(model, gap, tie), sum(seen)
    decided = p.wins_a + p.wins_b
    of_gap = games * (decided * p.ties + 4 * p.wins_a * p.wins_b) / 4
    return Curvatures(of_gap, -games * (p.wins_a - p.wins_b) / 2 * p.ties, games * p.ties * decided)


def _threshold(gap: Floats, eta: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Probability of a win of a and of its contrary, and the same of b."""
    odds, theta = np.exp(np.clip(gap, -_FAR, _FAR)), np.exp(eta)
    of_a, of_b = odds + theta, 1 + theta * odds
    return (odds / of_a, theta / of_a), (1 / of_b, theta * odds / of_b)


def _drawn_slope(eta: Floats) -> Floats:
    """Derivative of log(e^(2 eta) - 1), 0 where eta is 0, since there are no ties then."""
    slope: Floats = np.where(eta > 0, 2 / -np.expm1(-2 * np.where(eta > 0, eta, 1.0)), 0.0)
    return slope
