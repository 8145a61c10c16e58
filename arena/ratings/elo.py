"""Elo ratings, averaged over many random orders of the same games.

Elo (1978), *The Rating of Chessplayers*: the expected score of a is E = 1 / (1 + 10^((R_b - R_a) / scale)), and a
game moves a by K (S - E) and b by as much the other way, so that the sum of ratings is conserved. The rating
depends on the order of games; the mean over seeded orders (500 in the RAGElo paper) removes most of this dependence.

A tournament is a Fisher-Yates shuffle that plays each game as soon as it is drawn. The random numbers are SplitMix64
(Steele, Lea and Flood 2014, OOPSLA): its state is a counter, so a tournament depends only on its start state, and a
draw takes a few integer operations in any language. Powers of two come from a table and a polynomial of additions and
products. So the compiled numba kernel, numpy and any number of threads give the same bits on any machine.

Elo forgets: every game reduces the influence of the initial ratings. If an order is so long that the early games no
longer matter, only the last games are drawn (the last one first) and played.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.games import Games
from retrieval_eval.stats.arrays import Floats, Int32s


class EloSettings(Struct, frozen=True):
    """K-factor, starting rating, points per factor of ten in odds, number of random orders, and their seed."""

    k: float = 32.0
    initial: float = 1000.0
    scale: float = 400.0
    tournaments: int = 500
    seed: int = 0


class EloRatings(Struct, frozen=True, eq=False):
    """Mean ratings over random orders.

    Attributes:
        agents: names, in the order of ``ratings``.
        ratings: mean rating, shape (agents,).
        order_sd: sample standard deviation over orders, shape (agents,); NaN for a single order. It shows how much the
            order of games matters, not how certain the rating is: it is not a standard error.
    """

    agents: tuple[str, ...]
    ratings: Floats
    order_sd: Floats


def elo(games: Games, settings: EloSettings | None = None, *, threads: int | None = None) -> EloRatings:
    """Mean Elo ratings over random orders of the games.

    Games are sorted before the shuffle and each tournament has its own seed, so the result does not depend on the order
    of rows, on the chunk size or on the number of threads (default: all processors).

    Raises:
        ValueError: a setting is out of range, or a weight is not a whole number of games.
    """
    return elo_of(games.agents, sorted_games(games), settings, threads=threads)


def sorted_games(games: Games) -> Packed:
    """Games packed into integers and sorted, so that the order of rows does not matter."""
    packed = _packed(games)
    packed.codes.sort()
    return packed


def elo_of(
    agents: tuple[str, ...], played: Packed, settings: EloSettings | None = None, *, threads: int | None = None
) -> EloRatings:
    """Ratings as of ``elo`` from the games of ``sorted_games``, which need far less memory than ``Games``."""
    chosen = settings or EloSettings()
    finals = replay([played], chosen, starts(chosen.seed, chosen.tournaments), threads=threads)[0]
    spread = finals.std(axis=0, ddof=1) if chosen.tournaments > 1 else np.full(len(agents), np.nan)
    return EloRatings(agents, finals.mean(axis=0), spread)


def resampled_elo(games: Games, weights: Floats, settings: EloSettings) -> Floats:
    """Mean Elo ratings of resampled games: those of ``elo`` with each sample's weights.

    Args:
        games: the games; their own weights are ignored.
        weights: how often each sample plays each game, whole numbers, shape (samples, games).
        settings: the random orders are the same for all samples.

    Returns:
        Ratings, shape (samples, agents).
    """
    packed = _packed(replace(games, weight=None))
    order = np.argsort(packed.codes, kind="stable")
    counts = weights[:, order].astype(np.int64)
    samples = [packed._replace(codes=np.repeat(packed.codes[order], row)) for row in counts]
    if not samples:
        return np.empty((0, len(games.agents)))
    means: Floats = replay(samples, settings, starts(settings.seed, settings.tournaments)).mean(axis=1)
    return means


def _packed(games: Games) -> Packed:
    """Pack each game into one integer, the lower-numbered agent as ``a``; a row of weight w becomes w games."""
    flip = games.a > games.b
    score = np.where(flip, 1.0 - games.score, games.score)
    packed = pack(np.minimum(games.a, games.b), np.maximum(games.a, games.b), score, len(games.agents))
    if games.weight is None:
        return packed
    if not games.are_whole:
        raise ValueError("Elo replays single games: weights must be whole numbers")
    return packed._replace(codes=np.repeat(packed.codes, games.weight.astype(np.int64)))


Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
States: TypeAlias = NDArray[np.uint64]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Increment and multipliers of SplitMix64."""

STEPS = 64
"""Entries of the table of powers per factor of two; the polynomial between entries is accurate to about one bit."""
REACH = 64 * STEPS
"""Odds beyond 2^64 are clamped to 2^64: the expected score differs by less than 1e-19."""
POWERS: Floats = 2.0 ** (np.arange(-REACH, REACH + 1) / STEPS)
LN_STEP = math.log(2) / STEPS
STEPS_PER_TENFOLD = math.log2(10) * STEPS

_DRAWS_AT_ONCE = 1 << 16
_CODES_IN_MEMORY = 32_000_000
"""Most games that numpy holds in memory at once, over all tournaments of a chunk."""
_FEWEST_GAMES = 1 << 16
"""Least number of games of an order to play."""
_CONVERGED = 1e-9
"""Ratings that differ by fewer points count as equal."""
_WORTH_COMPILING = 10_000_000
"""With more work than this numpy takes longer than loading numba and its compiled kernel (about 0.3 s)."""


HALVES: Floats = np.array([0.0, 0.5, 1.0])
"""Scores of games with a verdict: loss, tie and win."""


class Packed(NamedTuple):
    """One integer per game: b, a and the index of a's score in ``scores``, from the highest bits to the lowest."""

    codes: Codes
    agents: int
    bits: int
    scores: Floats = HALVES
    low: int = 2
    """Number of bits of the score's index."""


def pack(a: Int32s, b: Int32s, score: Floats, agents: int) -> Packed:
    """Pack games into the smallest integer type that fits, so that a shuffle of millions stays in the cache."""
    bits = max(1, (agents - 1).bit_length())
    scores, score_index = HALVES, (2 * score).astype(np.int64)
    if (score_index != 2 * score).any():
        scores, score_index = np.unique(score, return_inverse=True)
    low = max(2, (scores.size - 1).bit_length())
    dtypes: list[type[np.unsignedinteger[Any]]] = [np.uint16, np.uint32, np.uint64]
    dtype = dtypes[np.searchsorted([16, 32], 2 * bits + low)]
    codes = b.astype(dtype)
    for shift, part in ((bits, a), (low, score_index)):
        np.left_shift(codes, dtype(shift), out=codes)
        np.bitwise_or(codes, part.astype(dtype), out=codes)
    return Packed(codes, agents, bits, scores, low)


def starts(seed: int, tournaments: int) -> States:
    """Start state of each tournament's random numbers; the first states do not depend on ``tournaments``."""
    return np.asarray(np.random.SeedSequence(seed).generate_state(tournaments, np.uint64), np.uint64)


def replay(
    samples: Sequence[Packed],
    settings: EloSettings,
    begin: States,
    *,
    shuffled: bool = True,
    threads: int | None = None,
) -> Floats:
    """Final ratings of each tournament of each set of games, shape (samples, tournaments, agents).

    Args:
        samples: sets of games of the same agents, such as resampled games.
        settings: K-factor, initial rating and scale; ``tournaments`` and ``seed`` are ignored.
        begin: start state of each tournament, from ``starts``; the same for every set.
        shuffled: play in random order; otherwise in the order given, so that all tournaments are equal.
        threads: number of threads of the compiled kernel, each with a copy of the games; default: all processors.
    """
    finals = np.empty((len(samples), begin.size, samples[0].agents))
    sizes = [sample.codes.size for sample in samples]
    # The overhead of one numpy step equals the work of about 600 tournaments.
    if begin.size * sum(sizes) + 600 * max(sizes) < _WORTH_COMPILING:
        by_length = sorted(range(len(samples)), key=lambda place: -sizes[place])
        tournaments = max(1, _CODES_IN_MEMORY // max(1, *sizes))
        number = max(1, tournaments // begin.size)
        for first in range(0, len(samples), number):
            chosen = by_length[first : first + number]
            for start in range(0, begin.size, tournaments):
                part = slice(start, start + tournaments)
                longest_first = [samples[place] for place in chosen]
                finals[chosen, part] = _replay_in_lanes(longest_first, settings, begin[part], shuffled=shuffled)
        return finals
    finals[:] = settings.initial
    rule = float(settings.k), float(settings.scale)
    tails = [_tail_length(sample, rule, begin[:1]) if shuffled else None for sample in samples]
    workers = threads or _processors()
    limits = np.linspace(0, begin.size, max(1, min(workers // len(samples), begin.size)) + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        futures = [
            pool.submit(_play, sample, rule, begin[low:high], final[low:high], shuffled=shuffled, tail=tail)
            for sample, final, tail in zip(samples, finals, tails, strict=True)
            for low, high in pairwise(limits)
        ]
    for future in futures:
        future.result()
    return finals


def _tail_length(games: Packed, rule: tuple[float, float], begin: States) -> int | None:
    """Number of last games that determine the final ratings; ``None`` (play all) if the order is too short.

    Half of that number must bring equal and widely spread initial ratings within ``_CONVERGED`` of each other.
    """
    spread = np.linspace(-2 * rule[1], 2 * rule[1], games.agents)  # sums to 0 like the equal ratings; games keep sums
    tail = _FEWEST_GAMES
    while 2 * tail < games.codes.size:
        from_equal, from_spread = np.zeros((1, games.agents)), spread[np.newaxis].copy()
        for ratings in (from_equal, from_spread):
            _play(games, rule, begin, ratings, shuffled=True, tail=tail // 2)
        if np.abs(from_equal - from_spread).max() < _CONVERGED:
            return tail
        tail *= 2
    return None


def _play(
    games: Packed, rule: tuple[float, float], begin: States, ratings: Floats, *, shuffled: bool, tail: int | None
) -> None:
    """Update ratings, shape (tournaments, agents), by the last ``tail`` games of each order; ``None`` plays all."""
    replay, last = compiled_kernels()
    if tail is None:
        replay(games, rule, begin, ratings, shuffled)
        return
    codes = games.codes.copy()
    for number in range(begin.size):
        row = slice(number, number + 1)
        replay(games._replace(codes=last(codes, begin[number], tail)), rule, begin[row], ratings[row], False)


def _replay_in_lanes(
    samples: Sequence[Packed], settings: EloSettings, begin: States, *, shuffled: bool = True
) -> Floats:
    """Replay all tournaments of all samples at once, one game of each per step; ``samples`` must be longest first."""
    lengths = np.repeat([sample.codes.size for sample in samples], begin.size)
    orders = np.zeros((lengths[0], lengths.size), samples[0].codes.dtype)
    for place, sample in enumerate(samples):
        orders[: sample.codes.size, place * begin.size : (place + 1) * begin.size] = sample.codes[:, np.newaxis]
    remaining, lane, start = orders.ravel(), np.arange(lengths.size), np.tile(begin, len(samples))
    agents, bits, scores, low = samples[0][1:]
    dtype = orders.dtype.type
    steps_per_point = STEPS_PER_TENFOLD / settings.scale
    ratings = np.full(agents * lengths.size, settings.initial, np.float64)
    block = max(1, _DRAWS_AT_ONCE // lengths.size)
    for first in range(0, lengths[0], block):
        steps = np.arange(first, min(first + block, lengths[0]))
        chosen = _draws(start, steps, lengths) if shuffled else np.repeat(steps[:, np.newaxis], lengths.size, axis=1)
        playing = np.searchsorted(-lengths, -steps)
        for step, places, lanes in zip(steps, chosen * lengths.size + lane, playing, strict=True):
            drawn, active = places[:lanes], lane[:lanes]
            played = remaining[drawn]
            remaining[drawn] = orders[step, :lanes]
            cell_a = (played >> dtype(low) & dtype((1 << bits) - 1)).astype(np.int64) * lengths.size + active
            cell_b = (played >> dtype(low + bits)).astype(np.int64) * lengths.size + active
            gap = (ratings[cell_b] - ratings[cell_a]) * steps_per_point
            gain = settings.k * (scores[played & dtype((1 << low) - 1)] - 1.0 / (1.0 + _power(gap)))
            ratings[cell_a] += gain
            ratings[cell_b] -= gain
    return ratings.reshape(agents, len(samples), begin.size).transpose(1, 2, 0)


def _draws(begin: States, steps: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of the game that each tournament plays in each step, ``step`` or later, shape (steps, tournaments)."""
    mixed = begin + (steps[:, np.newaxis].astype(np.uint64) + np.uint64(1)) * GAMMA
    for shift, factor in zip((30, 27), MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    mixed ^= mixed >> np.uint64(31)
    uniform = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return steps[:, np.newaxis] + (uniform * (length - steps[:, np.newaxis])).astype(np.int64)


def _power(steps: Floats) -> Floats:
    """2 to the power of ``steps`` / STEPS."""
    clamped = np.minimum(np.maximum(steps, -REACH), REACH)
    whole = np.floor(clamped + 0.5)
    rest = (clamped - whole) * LN_STEP
    square = rest * rest
    # Grouped as in the kernel, because rounding depends on the grouping.
    series = (1.0 + rest) + square * ((0.5 + rest * (1 / 6)) + square * ((1 / 24) + rest * (1 / 120)))
    power: Floats = POWERS[whole.astype(np.int64) + REACH] * series
    return power


@cache
def compiled_kernels() -> tuple[Any, Any]:
    """``_replay_with_numba`` and ``_last_with_numba``, compiled at the first call and cached on disk.

    numba writes the cache beside this file or else to the user's cache folder; without write access to either it
    compiles in every process.
    """
    import numba

    try:
        compiled = [numba.njit(nogil=True, cache=True)(kernel) for kernel in (_replay_with_numba, _last_with_numba)]
    except RuntimeError:
        compiled = [numba.njit(nogil=True)(kernel) for kernel in (_replay_with_numba, _last_with_numba)]
    return compiled[0], compiled[1]


_AHEAD = 64
"""Number of games that the kernel draws and fetches ahead, so that it does not wait for memory game by game."""


def _replay_with_numba(games: Packed, rule: tuple[float, float], begin: States, finals: Floats, shuffled: bool) -> int:
    """Update the ratings in ``finals`` by all games of the tournaments that start from ``begin``.

    Indices are unsigned, so that numba adds no code for negative indices.

    Returns:
        A meaningless number that keeps the compiler from removing the early reads.
    """
    codes, bits, scores, low = games.codes, games.bits, games.scores, games.low
    k, scale = rule
    steps_per_point = STEPS_PER_TENFOLD / scale
    length = codes.size
    remaining = np.empty_like(codes)
    drawn = np.empty(_AHEAD, np.uintp)
    agent_mask, score_mask = (1 << bits) - 1, (1 << low) - 1
    fetched = 0
    for tournament in range(begin.size):
        remaining[:] = codes
        ratings = finals[tournament]
        state = begin[tournament]
        for first in range(0, length, _AHEAD):
            number = min(_AHEAD, length - first)
            for place in range(number):
                chosen = first + place
                if shuffled:
                    state += GAMMA
                    mixed = (state ^ (state >> np.uint64(30))) * MIX[0]
                    mixed = (mixed ^ (mixed >> np.uint64(27))) * MIX[1]
                    mixed ^= mixed >> np.uint64(31)
                    chosen += int(np.float64(mixed >> np.uint64(11)) * 2.0**-53 * np.float64(length - chosen))
                drawn[place] = chosen
                fetched ^= remaining[drawn[place]] & 1
            for place in range(number):
                played = remaining[drawn[place]]
                remaining[drawn[place]] = remaining[first + place]
                a, b = np.uintp((played >> low) & agent_mask), np.uintp(played >> (low + bits))
                clamped = min(max((ratings[b] - ratings[a]) * steps_per_point, -REACH), REACH)
                whole = np.floor(clamped + 0.5)
                rest = (clamped - whole) * LN_STEP
                square = rest * rest
                series = (1.0 + rest) + square * ((0.5 + rest * (1 / 6)) + square * ((1 / 24) + rest * (1 / 120)))
                gain = k * (
                    scores[np.uintp(played & score_mask)] - 1.0 / (1.0 + POWERS[np.uintp(int(whole) + REACH)] * series)
                )
                ratings[a] += gain
                ratings[b] -= gain
    return fetched


def _last_with_numba(codes: Codes, start: np.uint64, tail: int) -> Codes:
    """The last ``tail`` games of a random order, drawn from the last one backwards; restores ``codes`` afterwards.

    This is a shuffle that stops after ``tail`` draws, so the cost depends on ``tail`` and not on all games.
    """
    length = codes.size
    indices, last = np.empty(tail, np.uintp), np.empty_like(codes[:tail])
    state = start
    for step in range(tail):
        state += GAMMA
        mixed = (state ^ (state >> np.uint64(30))) * MIX[0]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * MIX[1]
        mixed ^= mixed >> np.uint64(31)
        chosen = np.uintp(step + int(np.float64(mixed >> np.uint64(11)) * 2.0**-53 * np.float64(length - step)))
        indices[step] = chosen
        last[tail - 1 - step] = codes[chosen]
        codes[chosen], codes[step] = codes[step], codes[chosen]
    for step in range(tail - 1, -1, -1):
        chosen = indices[step]
        codes[chosen], codes[step] = codes[step], codes[chosen]
    return last


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
