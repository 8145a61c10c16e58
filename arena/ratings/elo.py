"""Elo ratings, averaged over many random orders of the same games.

Elo (1978), *The Rating of Chessplayers*: the expected score of a is E = 1 / (1 + 10^((R_b - R_a) / scale)), and a
game moves a by K (S - E) and b by as much the other way, so that the sum of ratings is conserved. The rating
depends on the order of games; the mean over seeded orders (500 in the RAGElo paper) removes most of that.

A tournament is a Fisher-Yates shuffle whose every draw is played at once. The random numbers are SplitMix64 (Steele,
Lea and Flood 2014, OOPSLA): its state is a counter, so a tournament depends on its own start alone, and it is a few
integer operations in any language. Powers of two come from a table and a polynomial of additions and products. So
the kernel that numba compiles, numpy and any number of threads give the same bits, on any machine.

Elo forgets: every game takes away a share of what two ratings owe to their beginning. Of an order so long that nothing
of it is left, only the last games are drawn, the last one first, and played.
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
        order_sd: sample standard deviation over orders, shape (agents,). It says how much the order of games
            matters, not how certain the rating is: it is no confidence interval. NaN of one order.
    """

    agents: tuple[str, ...]
    ratings: Floats
    order_sd: Floats


def elo(games: Games, settings: EloSettings | None = None, *, threads: int | None = None) -> EloRatings:
    """Mean Elo ratings over random orders of the games.

    Games are sorted before they are shuffled and each tournament has a seed of its own, so the result depends
    neither on the order of rows nor on how tournaments are spread over memory and threads (all processors if
    ``threads`` is absent).

    Raises:
        ValueError: a setting is out of range, or a weight is no whole number of games.
    """
    return elo_of(games.agents, sorted_games(games), settings, threads=threads)


def sorted_games(games: Games) -> Packed:
    """The games in an order that depends on nothing but them."""
    played = _packed(games)
    played.codes.sort()
    return played


def elo_of(
    agents: tuple[str, ...], played: Packed, settings: EloSettings | None = None, *, threads: int | None = None
) -> EloRatings:
    """What ``elo`` makes of ``sorted_games``, which take far less memory than the games."""
    how = settings or EloSettings()
    finals = replay([played], how, starts(how.seed, how.tournaments), threads=threads)[0]
    spread = finals.std(axis=0, ddof=1) if how.tournaments > 1 else np.full(len(agents), np.nan)
    return EloRatings(agents, finals.mean(axis=0), spread)


def resampled_elo(games: Games, weights: Floats, settings: EloSettings) -> Floats:
    """Mean Elo ratings where each game counts as often as each sample says, as ``elo`` gives them with such weights.

    Args:
        games: of any weight, which is not looked at.
        weights: whole numbers, shape (samples, games).
        settings: the random orders are the same for all samples.

    Returns:
        Shape (samples, agents).
    """
    codes = _packed(replace(games, weight=None))
    order = np.argsort(codes.codes, kind="stable")
    times = weights[:, order].astype(np.int64)
    samples = [codes._replace(codes=np.repeat(codes.codes[order], row)) for row in times]
    if not samples:
        return np.empty((0, len(games.agents)))
    means: Floats = replay(samples, settings, starts(settings.seed, settings.tournaments)).mean(axis=1)
    return means


def _packed(games: Games) -> Packed:
    """One code per game, the lower-numbered agent as ``a``; a row of weight 3 is played three times, of 0 never."""
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
"""Steps of the table of powers per factor of two; the polynomial in between is good to the last bit or so."""
REACH = 64 * STEPS
"""Odds beyond 2^64 count as 2^64: the expected score differs by less than 1e-19."""
POWERS: Floats = 2.0 ** (np.arange(-REACH, REACH + 1) / STEPS)
LN_STEP = math.log(2) / STEPS
STEPS_PER_TENFOLD = math.log2(10) * STEPS

_DRAWS_AT_ONCE = 1 << 16
_CODES_IN_MEMORY = 32_000_000
"""Games that numpy holds at once, over tournaments; those that do not fit are replayed later."""
_FEWEST = 1 << 16
"""Games of an order that are played in any case."""
_MET = 1e-9
"""Ratings that differ by fewer points are the same."""
_WORTH_COMPILING = 10_000_000
"""Above this much work numpy takes longer than loading numba and the compiled kernel, about a third of a second."""


HALVES: Floats = np.array([0.0, 0.5, 1.0])
"""Scores of games with a verdict."""


class Packed(NamedTuple):
    """Games as one integer each: b, a and the place of a's score in ``scores``, from the highest bits to the lowest."""

    codes: Codes
    agents: int
    bits: int
    scores: Floats = HALVES
    low: int = 2
    """Bits of the lowest part."""


def pack(a: Int32s, b: Int32s, score: Floats, agents: int) -> Packed:
    """Games in the order given, each in as few bits as it needs: millions that are shuffled stay near the processor."""
    bits = max(1, (agents - 1).bit_length())
    scores, place = HALVES, (2 * score).astype(np.int64)
    if (place != 2 * score).any():
        scores, place = np.unique(score, return_inverse=True)
    low = max(2, (scores.size - 1).bit_length())
    kinds: list[type[np.unsignedinteger[Any]]] = [np.uint16, np.uint32, np.uint64]
    kind = kinds[np.searchsorted([16, 32], 2 * bits + low)]
    codes = b.astype(kind)
    for shift, part in ((bits, a), (low, place)):
        np.left_shift(codes, kind(shift), out=codes)
        np.bitwise_or(codes, part.astype(kind), out=codes)
    return Packed(codes, agents, bits, scores, low)


def starts(seed: int, tournaments: int) -> States:
    """The state that each tournament's random numbers start from; more tournaments leave the first as they are."""
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
        samples: sets of games of the same agents, such as resampled ones.
        settings: how ratings move; not how many tournaments there are.
        begin: a state per tournament, from ``starts``; every set is replayed from the same ones.
        shuffled: in random order; otherwise as given, and all tournaments are alike.
        threads: of the compiled kernel, each with a copy of the games; all processors if absent.
    """
    finals = np.empty((len(samples), begin.size, samples[0].agents))
    sizes = [sample.codes.size for sample in samples]
    # A step of numpy costs as much as some 600 tournaments in it.
    if begin.size * sum(sizes) + 600 * max(sizes) < _WORTH_COMPILING:
        by_length = sorted(range(len(samples)), key=lambda place: -sizes[place])
        tournaments = max(1, _CODES_IN_MEMORY // max(1, *sizes))
        number = max(1, tournaments // begin.size)
        for first in range(0, len(samples), number):
            chosen = by_length[first : first + number]
            for start in range(0, begin.size, tournaments):
                part = slice(start, start + tournaments)
                alike = [samples[place] for place in chosen]
                finals[chosen, part] = _replay_in_lanes(alike, settings, begin[part], shuffled=shuffled)
        return finals
    finals[:] = settings.initial
    rule = float(settings.k), float(settings.scale)
    kept = [_remembered(sample, rule, begin[:1]) if shuffled else None for sample in samples]
    workers = threads or _processors()
    limits = np.linspace(0, begin.size, max(1, min(workers // len(samples), begin.size)) + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        work = [
            pool.submit(_play, sample, rule, begin[low:high], final[low:high], shuffled=shuffled, kept=number)
            for sample, final, number in zip(samples, finals, kept, strict=True)
            for low, high in pairwise(limits)
        ]
    for done in work:
        done.result()
    return finals


def _remembered(games: Packed, rule: tuple[float, float], begin: States) -> int | None:
    """How many of the last games of an order its ratings depend on; ``None`` where it is too short to say.

    Ratings that begin far apart are those that begin alike, to ``_MET``, after half as many.
    """
    apart = np.linspace(-2 * rule[1], 2 * rule[1], games.agents)  # no game changes the sum
    kept = _FEWEST
    while 2 * kept < games.codes.size:
        alike, other = np.zeros((1, games.agents)), apart[np.newaxis].copy()
        for ratings in (alike, other):
            _play(games, rule, begin, ratings, shuffled=True, kept=kept // 2)
        if np.abs(alike - other).max() < _MET:
            return kept
        kept *= 2
    return None


def _play(
    games: Packed, rule: tuple[float, float], begin: States, ratings: Floats, *, shuffled: bool, kept: int | None
) -> None:
    """Move each tournament's ratings, shape (tournaments, agents), by the last ``kept`` games of its order, or all."""
    replay, last = compiled_kernels()
    if kept is None:
        replay(games, rule, begin, ratings, shuffled)
        return
    codes = games.codes.copy()
    for place in range(begin.size):
        own = slice(place, place + 1)
        replay(games._replace(codes=last(codes, begin[place], kept)), rule, begin[own], ratings[own], False)


def _replay_in_lanes(
    samples: Sequence[Packed], settings: EloSettings, begin: States, *, shuffled: bool = True
) -> Floats:
    """One step per game, all tournaments of all samples at once: ``samples`` begin with the one of most games."""
    lengths = np.repeat([sample.codes.size for sample in samples], begin.size)
    orders = np.zeros((lengths[0], lengths.size), samples[0].codes.dtype)
    for place, sample in enumerate(samples):
        orders[: sample.codes.size, place * begin.size : (place + 1) * begin.size] = sample.codes[:, np.newaxis]
    left, lane, start = orders.ravel(), np.arange(lengths.size), np.tile(begin, len(samples))
    agents, bits, scores, low = samples[0][1:]
    kind = orders.dtype.type
    steps_per_point = STEPS_PER_TENFOLD / settings.scale
    ratings = np.full(agents * lengths.size, settings.initial, np.float64)
    block = max(1, _DRAWS_AT_ONCE // lengths.size)
    for first in range(0, lengths[0], block):
        steps = np.arange(first, min(first + block, lengths[0]))
        chosen = _draws(start, steps, lengths) if shuffled else np.repeat(steps[:, np.newaxis], lengths.size, axis=1)
        playing = np.searchsorted(-lengths, -steps)
        for step, places, lanes in zip(steps, chosen * lengths.size + lane, playing, strict=True):
            of_games, own = places[:lanes], lane[:lanes]
            played = left[of_games]
            left[of_games] = orders[step, :lanes]
            of_a = (played >> kind(low) & kind((1 << bits) - 1)).astype(np.int64) * lengths.size + own
            of_b = (played >> kind(low + bits)).astype(np.int64) * lengths.size + own
            ahead = (ratings[of_b] - ratings[of_a]) * steps_per_point
            gain = settings.k * (scores[played & kind((1 << low) - 1)] - 1.0 / (1.0 + _power(ahead)))
            ratings[of_a] += gain
            ratings[of_b] -= gain
    return ratings.reshape(agents, len(samples), begin.size).transpose(1, 2, 0)


def _draws(begin: States, steps: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
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


@cache
def compiled_kernels() -> tuple[Any, Any]:
    """``_replay_with_numba`` and ``_last_with_numba``, each compiled at its first call and then kept on disk.

    numba keeps them beside this file or else in the user's cache folder, and not at all where it can write to neither.
    """
    import numba

    try:
        compiled = [numba.njit(nogil=True, cache=True)(each) for each in (_replay_with_numba, _last_with_numba)]
    except RuntimeError:
        compiled = [numba.njit(nogil=True)(each) for each in (_replay_with_numba, _last_with_numba)]
    return compiled[0], compiled[1]


_AHEAD = 64
"""Draws made, and games fetched from memory, before they are played: waiting for one at a time would cost most."""


def _replay_with_numba(games: Packed, rule: tuple[float, float], begin: States, finals: Floats, shuffled: bool) -> int:
    """Move the ratings in ``finals`` by all games of the tournaments that start from ``begin``.

    Indices are unsigned, which spares numba the question whether they count from the end.

    Returns:
        A number without meaning, which keeps the compiler from dropping the early reads.
    """
    codes, bits, scores, low = games.codes, games.bits, games.scores, games.low
    k, scale = rule
    steps_per_point = STEPS_PER_TENFOLD / scale
    length = codes.size
    left = np.empty_like(codes)
    drawn = np.empty(_AHEAD, np.uintp)
    mask, lowest = (1 << bits) - 1, (1 << low) - 1
    fetched = 0
    for tournament in range(begin.size):
        left[:] = codes
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
                gain = k * (
                    scores[np.uintp(played & lowest)] - 1.0 / (1.0 + POWERS[np.uintp(int(whole) + REACH)] * series)
                )
                ratings[a] += gain
                ratings[b] -= gain
    return fetched


def _last_with_numba(codes: Codes, start: np.uint64, kept: int) -> Codes:
    """The last ``kept`` games of a random order, whose draws begin with the last one. ``codes`` are left as they were.

    The draws are those of a shuffle that stops after as many: an order costs what is played of it.
    """
    length = codes.size
    drawn, last = np.empty(kept, np.uintp), np.empty_like(codes[:kept])
    state = start
    for step in range(kept):
        state += GAMMA
        mixed = (state ^ (state >> np.uint64(30))) * MIX[0]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * MIX[1]
        mixed ^= mixed >> np.uint64(31)
        chosen = np.uintp(step + int(np.float64(mixed >> np.uint64(11)) * 2.0**-53 * np.float64(length - step)))
        drawn[step] = chosen
        last[kept - 1 - step] = codes[chosen]
        codes[chosen], codes[step] = codes[step], codes[chosen]
    for step in range(kept - 1, -1, -1):
        chosen = drawn[step]
        codes[chosen], codes[step] = codes[step], codes[chosen]
    return last


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
