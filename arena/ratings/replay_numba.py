"""The replay of ``replay`` compiled by numba: shuffle and update fused, no lock held, one copy of the games."""

from __future__ import annotations

import numba
import numpy as np

from arena.ratings.games import Floats
from arena.ratings.replay import GAMMA, LN_STEP, MIX, POWERS, REACH, STEPS_PER_TENFOLD, Packed, Rule, States

_FIRST, _SECOND = MIX


def _replay(games: Packed, rule: Rule, begin: States, finals: Floats, shuffled: bool) -> None:
    """Write the final ratings of the tournaments that start from ``begin`` into ``finals``."""
    codes, bits = games.codes, games.bits
    steps_per_point = STEPS_PER_TENFOLD / rule.scale
    length = codes.size
    left = np.empty_like(codes)
    mask = (1 << bits) - 1
    for tournament in range(begin.size):
        left[:] = codes
        ratings = finals[tournament]
        ratings[:] = rule.initial
        state = begin[tournament]
        for step in range(length):
            chosen = step
            if shuffled:
                state += GAMMA
                mixed = (state ^ (state >> np.uint64(30))) * _FIRST
                mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
                mixed ^= mixed >> np.uint64(31)
                chosen += int(np.float64(mixed >> np.uint64(11)) * 2.0**-53 * np.float64(length - step))
            played = left[chosen]
            left[chosen] = left[step]
            a, b = (played >> 2) & mask, played >> (2 + bits)
            held = min(max((ratings[b] - ratings[a]) * steps_per_point, -REACH), REACH)
            whole = np.floor(held + 0.5)
            rest = (held - whole) * LN_STEP
            square = rest * rest
            series = (1.0 + rest) + square * ((0.5 + rest * (1 / 6)) + square * ((1 / 24) + rest * (1 / 120)))
            gain = rule.k * ((played & 3) * 0.5 - 1.0 / (1.0 + POWERS[int(whole) + REACH] * series))
            ratings[a] += gain
            ratings[b] -= gain


replay_part = numba.njit(nogil=True)(_replay)
