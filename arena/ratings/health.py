"""Whether the judge behind the games can be trusted: order, first place, length, ties, circles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from arena.ratings.bradley_terry import BradleyTerrySettings, Ties, bradley_terry
from arena.ratings.counts import pair_counts, win_matrix
from arena.ratings.existence import position_identified
from arena.ratings.games import Games, GameVerdict, VerdictTable, as_games, reconcile, tabulate
from arena.ratings.sandwich import sandwich

Lengths = Mapping[tuple[str, str], float]
"""Length of the answer to a query by an agent, in any one unit, by (query_id, agent)."""


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """Advantage of being shown first in points, with its 95 % interval clustered by query where that is known."""

    points: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class JudgeHealth:
    """What verdicts say about their judge. ``None`` is unknown: nothing there to compute it from.

    Attributes:
        n: verdicts.
        tie_rate: share of verdicts that are ties.
        both_orders: games judged in both orders.
        order_agreement: share of those with the same outcome in both.
        decided: verdicts that are no tie.
        first_share: share of those won by the agent shown first.
        first_effect: advantage of being shown first, in Elo points; 0 for an unbiased judge.
        first_effect_low, first_effect_high: its 95 % interval.
        lengths_compared: decided verdicts on two answers of known and different length.
        longer_share: share of those won by the longer answer.
        triples: sets of three agents in which each pair has a majority winner.
        intransitive_triples: those in which the three beat each other in a circle.
    """

    n: int
    tie_rate: float
    both_orders: int
    order_agreement: float | None
    decided: int
    first_share: float | None
    first_effect: float | None
    first_effect_low: float | None
    first_effect_high: float | None
    lengths_compared: int
    longer_share: float | None
    triples: int
    intransitive_triples: int


def judge_health(
    verdicts: Iterable[GameVerdict] | VerdictTable,
    lengths: Lengths | None = None,
    *,
    ties: Ties = "davidson",
    scale: float = 400.0,
) -> JudgeHealth:
    """Health of all verdicts given; give those of one judge for its own.

    Args:
        verdicts: single verdicts, before orders are reconciled.
        lengths: lengths of answers, where known.
        ties: how the model behind ``first_effect`` treats ties.
        scale: points per factor of ten in odds.
    """
    table = verdicts if isinstance(verdicts, VerdictTable) else tabulate(verdicts)
    shown = as_games(table)
    games = shown if table.query is None else reconcile(table)
    both, agreements = (games.tally.both_orders, games.tally.agreements) if games.tally else (0, 0)
    decided = int(np.count_nonzero(table.outcome))
    effect = position_effect(shown, ties=ties, scale=scale)
    compared, longer = _length_counts(table, lengths or {})
    triples, circles = _triples(games)
    return JudgeHealth(
        n=len(table),
        tie_rate=1 - decided / len(table),
        both_orders=both,
        order_agreement=_share(agreements, both),
        decided=decided,
        first_share=_share(int(np.count_nonzero(table.outcome == 1)), decided),
        first_effect=effect.points if effect else None,
        first_effect_low=effect.low if effect else None,
        first_effect_high=effect.high if effect else None,
        lengths_compared=compared,
        longer_share=_share(longer, compared),
        triples=triples,
        intransitive_triples=circles,
    )


def position_effect(games: Games, *, ties: Ties = "davidson", scale: float = 400.0) -> PositionEffect | None:
    """Advantage of being shown first, estimated along with the agents' strengths.

    Args:
        games: single verdicts in the order shown.
        ties: how ties are modelled.
        scale: points per factor of ten in odds.

    Returns:
        ``None`` where the order shown cannot be told from strength, as when one agent is always shown first.
    """
    if not position_identified(pair_counts(games, ordered=True)):
        return None
    fitted = bradley_terry(games, BradleyTerrySettings(ties=ties, position=True, scale=scale))
    if fitted.position_effect is None:
        return None
    spread = sandwich(games, fitted)
    if spread is None or spread.position_sd is None:
        return PositionEffect(fitted.position_effect, None, None)
    # Where the fit leans on the prior, verdicts that never vary would give an interval of no width.
    model_sd = fitted.position_model_sd if fitted.problems else 0.0
    half = float(special.stdtrit(spread.clusters - 1, 0.975)) * max(spread.position_sd, model_sd)
    return PositionEffect(fitted.position_effect, fitted.position_effect - half, fitted.position_effect + half)


def _length_counts(table: VerdictTable, lengths: Lengths) -> tuple[int, int]:
    """Decided verdicts on answers of different known lengths, and those won by the longer."""
    if table.query is None or table.queries is None or not lengths:
        return 0, 0
    known = np.full((len(table.queries), len(table.agents)), math.nan)
    for row, query in enumerate(table.queries):
        for column, agent in enumerate(table.agents):
            known[row, column] = lengths.get((query, agent), math.nan)
    longer = np.sign(known[table.query, table.a] - known[table.query, table.b])
    comparable = (np.abs(longer) == 1) & (table.outcome != 0)
    return int(comparable.sum()), int((longer[comparable] == table.outcome[comparable]).sum())


def _triples(games: Games) -> tuple[int, int]:
    """Triples of agents decided in every pair, and circular ones; traces count each circle three or six times."""
    wins = win_matrix(games).wins
    beats = (wins > wins.T).astype(np.float64)
    decided = beats + beats.T
    every = np.trace(decided @ decided @ decided) / 6
    circles = np.trace(beats @ beats @ beats) / 3
    return round(float(every)), round(float(circles))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
