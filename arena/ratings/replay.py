"""Many Elo tournaments over the same games, each in a random order of its own.

A tournament is a Fisher-Yates shuffle whose every draw is played at once. The random numbers are SplitMix64 (Steele,
Lea and Flood 2014, OOPSLA): its state is a counter, so a tournament depends on its own start alone, and it is a few
integer operations in any language. Powers of two come from a table and a polynomial of additions and products. So
the compiled kernel of ``replay_numba``, this module and any number of threads give the same bits, on any machine.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arena.ratings.games import Floats, Ints

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
States: TypeAlias = NDArray[np.uint64]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Increment and multipliers of SplitMix64."""

STEPS = 64
"""Steps of the table of powers per factor of two; the polynomial in between is good to the last bit or so."""
REACH = 64 * STEPS
"""Odds beyond 2^64 count as 2^64: the expected score differs by less than 1e-19."""
POWERS: Floats = 2.0 ** (np.arange(-REACH, REACH + 1) / STEPS)
LN_STEP = math.log(2) / STEPS
STEPS_PER_TENFOLD = math.log2(10) * STEPS

_DRAWS_AT_ONCE = 1 << 16
_CODES_IN_MEMORY = 32_000_000
"""Games that numpy holds at once, over tournaments; those that do not fit are replayed later."""
_WORTH_COMPILING = 30_000_000
"""Above this much work numpy takes longer than loading numba and compiling, about a second."""


class Packed(NamedTuple):
    """Games as one integer each: b, a and twice the score of a, from the highest bits to the lowest two."""

    codes: Codes
    agents: int
    bits: int


class Rule(NamedTuple):
    """Starting rating, K-factor and points per factor of ten in odds."""

    initial: float
    k: float
    scale: float


def pack(a: Ints, b: Ints, score: Floats, agents: int) -> Packed:
    """Games in the order given; 32 bits are enough for 32768 agents."""
    bits = max(1, (agents - 1).bit_length())
    kind: type[np.unsignedinteger[Any]] = np.uint32 if 2 * bits + 2 <= 32 else np.uint64
    codes = b.astype(kind)
    for shift, part in ((bits, a), (2, 2 * score)):
        np.left_shift(codes, kind(shift), out=codes)
        np.bitwise_or(codes, part.astype(kind), out=codes)
    return Packed(codes, agents, bits)


def starts(seed: int, tournaments: int) -> States:
    """The state that each tournament's random numbers start from; more tournaments leave the first as they are."""
    return np.asarray(np.random.SeedSequence(seed).generate_state(tournaments, np.uint64), np.uint64)


def replay(games: Packed, rule: Rule, begin: States, *, shuffled: bool = True, threads: int | None = None) -> Floats:
    """Final ratings of each tournament, shape (tournaments, agents).

    Args:
        games: the games.
        rule: how ratings move.
        begin: a state per tournament, from ``starts``.
        shuffled: in random order; otherwise as given, and all tournaments are alike.
        threads: of the compiled kernel, each with a copy of the games; all processors if absent.
    """
    finals = np.empty((begin.size, games.agents))
    # A step of numpy costs as much as some 600 tournaments in it.
    kernel = compiled_kernel() if games.codes.size * (begin.size + 600) >= _WORTH_COMPILING else None
    if kernel is None:
        chunk = max(1, _CODES_IN_MEMORY // max(1, games.codes.size))
        for first in range(0, begin.size, chunk):
            part = slice(first, first + chunk)
            finals[part] = replay_in_numpy(games, rule, begin[part], shuffled=shuffled)
        return finals
    workers = min(threads or _processors(), begin.size)
    limits = np.linspace(0, begin.size, workers + 1).astype(int)
    parts = [slice(low, high) for low, high in pairwise(limits)]
    with ThreadPoolExecutor(workers) as pool:
        work = [pool.submit(kernel, games, rule, begin[part], finals[part], shuffled) for part in parts]
    for done in work:
        done.result()
    return finals


def replay_in_numpy(games: Packed, rule: Rule, begin: States, *, shuffled: bool = True) -> Floats:
    """``replay`` without numba: one step per game, all tournaments at once."""
    length, tournaments = games.codes.size, begin.size
    orders = np.repeat(games.codes[:, np.newaxis], tournaments, axis=1)
    left = orders.ravel()
    lane = np.arange(tournaments)
    steps_per_point = STEPS_PER_TENFOLD / rule.scale
    ratings = np.full(games.agents * tournaments, rule.initial, np.float64)
    block = max(1, _DRAWS_AT_ONCE // tournaments)
    kind = games.codes.dtype.type
    for first in range(0, length, block):
        steps = np.arange(first, min(first + block, length))
        chosen = _draws(begin, steps, length) if shuffled else np.repeat(steps[:, np.newaxis], tournaments, axis=1)
        for step, places in zip(steps, chosen * tournaments + lane, strict=True):
            played = left[places]
            left[places] = orders[step]
            of_a = (played >> kind(2) & kind((1 << games.bits) - 1)).astype(np.int64) * tournaments + lane
            of_b = (played >> kind(2 + games.bits)).astype(np.int64) * tournaments + lane
            ahead = (ratings[of_b] - ratings[of_a]) * steps_per_point
            gain = rule.k * ((played & kind(3)) * 0.5 - 1.0 / (1.0 + _power(ahead)))
            ratings[of_a] += gain
            ratings[of_b] -= gain
    return ratings.reshape(games.agents, tournaments).T


def _draws(begin: States, steps: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Which game each tournament plays in each step: one of those from ``step`` on, shape (steps, tournaments)."""
    mixed = begin + (steps[:, np.newaxis].astype(np.uint64) + np.uint64(1)) * GAMMA
    for shift, factor in zip((30, 27), MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    mixed ^= mixed >> np.uint64(31)
    uniform = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return steps[:, np.newaxis] + (uniform * (length - steps[:, np.newaxis])).astype(np.int64)


def _power(steps: Floats) -> Floats:
    """2 to the power of ``steps`` / STEPS."""
    held = np.minimum(np.maximum(steps, -REACH), REACH)
    whole = np.floor(held + 0.5)
    rest = (held - whole) * LN_STEP
    square = rest * rest
    # Grouped as in the kernel: floating-point sums depend on it.
    series = (1.0 + rest) + square * ((0.5 + rest * (1 / 6)) + square * ((1 / 24) + rest * (1 / 120)))
    power: Floats = POWERS[whole.astype(np.int64) + REACH] * series
    return power


def compiled_kernel() -> Any:
    """The compiled replay, or ``None`` where the optional numba is missing: only speed is lost."""
    try:
        from arena.ratings.replay_numba import replay_part
    except ImportError:
        return None
    return replay_part


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
