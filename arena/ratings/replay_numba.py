"""The replay of ``replay`` compiled by numba: shuffle and update fused, no lock held, one copy of the games."""

from __future__ import annotations

import numba
import numpy as np

from arena.ratings.elo import GAMMA, LN_STEP, MIX, POWERS, REACH, STEPS_PER_TENFOLD, Packed, Rule, States
from arena.ratings.games import Floats

_FIRST, _SECOND = MIX


_AHEAD = 64
"""Draws made, and games fetched from memory, before they are played: waiting for one at a time would cost most."""


def _replay(games: Packed, rule: Rule, begin: States, finals: Floats, shuffled: bool) -> int:
    """Write the final ratings of the tournaments that start from ``begin`` into ``finals``.

    Indices are unsigned, which spares numba the question whether they count from the end.

    Returns:
        A number without meaning, which keeps the compiler from dropping the early reads.
    """
    codes, bits, scores, low = games.codes, games.bits, games.scores, games.low
    steps_per_point = STEPS_PER_TENFOLD / rule.scale
    length = codes.size
    left = np.empty_like(codes)
    drawn = np.empty(_AHEAD, np.uintp)
    mask, lowest = (1 << bits) - 1, (1 << low) - 1
    fetched = 0
    for tournament in range(begin.size):
        left[:] = codes
        ratings = finals[tournament]
        ratings[:] = rule.initial
        state = begin[tournament]
        for first in range(0, length, _AHEAD):
            number = min(_AHEAD, length - first)
            for place in range(number):
                chosen = first + place
                if shuffled:
                    state += GAMMA
                    mixed = (state ^ (state >> np.uint64(30))) * _FIRST
                    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
                    mixed ^= mixed >> np.uint64(31)
                    chosen += int(np.float64(mixed >> np.uint64(11)) * 2.0**-53 * np.float64(length - chosen))
                drawn[place] = chosen
                fetched ^= left[drawn[place]] & 1
            for place in range(number):
                played = left[drawn[place]]
                left[drawn[place]] = left[first + place]
                a, b = np.uintp((played >> low) & mask), np.uintp(played >> (low + bits))
                held = min(max((ratings[b] - ratings[a]) * steps_per_point, -REACH), REACH)
                whole = np.floor(held + 0.5)
                rest = (held - whole) * LN_STEP
                square = rest * rest
                series = (1.0 + rest) + square * ((0.5 + rest * (1 / 6)) + square * ((1 / 24) + rest * (1 / 120)))
                gain = rule.k * (
                    scores[np.uintp(played & lowest)] - 1.0 / (1.0 + POWERS[np.uintp(int(whole) + REACH)] * series)
                )
                ratings[a] += gain
                ratings[b] -= gain
    return fetched


replay_part = numba.njit(nogil=True)(_replay)
