"""Elo ratings, averaged over many random orders of the same games.

Elo (1978), *The Rating of Chessplayers*: the expected score of a is E = 1 / (1 + 10^((R_b - R_a) / scale)), and a
game raises R_a by K (S - E) and lowers R_b by as much, so that the sum of ratings is conserved. The rating
depends on the order of games; the mean over seeded orders (500 in the RAGElo paper) removes most of this dependence.

A tournament is a Fisher-Yates shuffle that plays each game as soon as it is drawn. The random numbers are SplitMix64
(Steele, Lea and Flood 2014, OOPSLA): its state is a counter, so a tournament depends only on its start state, and a
draw takes a few integer operations in any language. Powers of two come from a table and a polynomial of additions and
products. So a rating has the same bits on any machine. All tournaments are played side by side, one game of each per
step, because one call of numpy costs about as much for 500 games as for one.

Elo forgets: every game reduces the influence of the initial ratings. If an order is so long that the early games no
longer matter, only the last games are drawn (the last one first) and played.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.ratings.games import Games
from arena.ratings.results import RatingSettings
from retrieval_eval.stats import Floats, Int32s, Ints


def elo(games: Games, settings: RatingSettings | None = None) -> Floats:
    """Final Elo ratings after each of the tournaments, random orders of the games; shape (tournaments, agents).

    The rating is the mean over tournaments. Their standard deviation shows how much the order of games matters, not how
    certain the rating is: it is not a standard error.

    Games are sorted before the shuffle and each tournament has its own seed, so the result does not depend on the order
    of rows or on the chunk size. Settings out of range, or weights that are not whole numbers, raise a ``ValueError``.
    """
    return play_all(sorted_games(games), settings or RatingSettings())


def sorted_games(games: Games) -> Packed:
    """The games as sorted integers, which do not depend on the order of rows, and need far less memory."""
    packed = _packed(games)
    packed.codes.sort()
    return packed


def play_all(played: Packed, settings: RatingSettings) -> Floats:
    finals: Floats = replay([played], settings, starts(settings.seed, settings.tournaments))[0]
    return finals


def resampled_elo(games: Games, weights: Floats, settings: RatingSettings) -> Floats:
    """Mean Elo ratings of games resampled with ``weights``, shapes (samples, games) to (samples, agents).

    ``weights`` are whole numbers and replace the games' own. All samples are played in the same random orders.
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
"""Multipliers of SplitMix64; ``GAMMA`` is its increment."""

STEPS = 64
"""Number of entries per factor of two in the table of powers; the polynomial in between is accurate to about a bit."""
REACH = 64 * STEPS
"""Odds beyond 2^64 are clamped to 2^64: the expected score differs by less than 1e-19."""
POWERS: Floats = 2.0 ** (np.arange(-REACH, REACH + 1) / STEPS)
_POWERS_LIST = POWERS.tolist()
LN_STEP = math.log(2) / STEPS
STEPS_PER_TENFOLD = math.log2(10) * STEPS

_GAMES_AT_ONCE = 1 << 15
"""Number of games, over all tournaments, that are drawn and unpacked at once: few enough for the processor's cache."""
_BYTES_IN_MEMORY = 1 << 28
"""Maximum size in bytes of the shuffled games in memory at once; tournaments beyond it are played in further chunks."""
_WORTH_NUMPY = 16
"""If fewer tournaments are played at once, computing with single numbers is faster than with arrays."""
_FEWEST_GAMES = 1 << 16
"""Minimum number of last games to play of a long order; the games before them may be skipped."""
_CONVERGED = 1e-9
"""Ratings that differ by less than this many points count as equal."""
HALVES: Floats = np.array([0.0, 0.5, 1.0])
"""Scores of games whose outcome is a loss, a tie or a win."""


class Packed(NamedTuple):
    """Games as integers, whose bits are, highest first, agent b, agent a and the index of a's score in ``scores``."""

    codes: Codes
    agents: int
    bits: int
    scores: Floats = HALVES
    low: int = 2
    """Number of bits of the score's index."""


def pack(a: Int32s, b: Int32s, score: Floats, agents: int) -> Packed:
    """Pack each game into an integer of the smallest type that fits, so that millions of games stay in the cache."""
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
    """Start state of each tournament's random numbers; more tournaments do not change the first states."""
    return np.asarray(np.random.SeedSequence(seed).generate_state(tournaments, np.uint64), np.uint64)


def replay(samples: Sequence[Packed], settings: RatingSettings, begin: States) -> Floats:
    """Final ratings after each tournament with each sample of games, shape (samples, tournaments, agents).

    ``begin`` has the random start state of each tournament, from ``starts``, the same for every sample.
    """
    finals = np.empty((len(samples), begin.size, samples[0].agents))
    tails = [_tail_length(sample, settings, begin[0]) for sample in samples]
    longest_first = sorted(range(len(samples)), key=lambda place: -samples[place].codes.size)
    whole = [place for place in longest_first if tails[place] is None]
    chunks: list[tuple[list[int], int | None]] = [
        ([place], tail) for place, tail in enumerate(tails) if tail is not None
    ]
    if whole:
        number = max(1, _lanes_in_memory(samples[whole[0]].codes) // begin.size)
        chunks += [(whole[first : first + number], None) for first in range(0, len(whole), number)]
    for places, tail in chunks:
        chosen = [samples[place] for place in places]
        lanes = _lanes_in_memory(chosen[0].codes[:tail])
        for first in range(0, begin.size, lanes):
            part = begin[first : first + lanes]
            blocks = _orders(chosen, part) if tail is None else _blocks(_last_games(chosen[0].codes, part, tail))
            ratings = np.full((finals.shape[2], len(places) * part.size), float(settings.initial))
            play(blocks, chosen[0], settings, ratings)
            finals[places, first : first + lanes] = ratings.T.reshape(len(places), part.size, -1)
    return finals


def _lanes_in_memory(codes: Codes) -> int:
    return max(1, _BYTES_IN_MEMORY // max(1, codes.nbytes))


def _tail_length(games: Packed, settings: RatingSettings, start: np.uint64) -> int | None:
    """Number of last games of an order that determine the final ratings; ``None`` if all games must be played.

    Half as many games must bring ratings that start equal and ratings that start far apart within ``_CONVERGED`` of
    each other.
    """
    tail = _FEWEST_GAMES
    while 2 * tail < games.codes.size:
        # The spread ratings sum to 0 like the equal ones: games keep the sum.
        spread = np.linspace(-2 * settings.scale, 2 * settings.scale, games.agents)
        ratings = np.stack([np.zeros(games.agents), spread], axis=1)
        last = drawn(games.codes, start, tail // 2)[::-1, np.newaxis]
        play(_blocks(np.repeat(last, 2, axis=1)), games, settings, ratings)
        if np.abs(ratings[:, 0] - ratings[:, 1]).max() < _CONVERGED:
            return tail
        tail *= 2
    return None


def _orders(samples: Sequence[Packed], begin: States) -> Iterator[Codes]:
    """All games of each sample, shuffled from the states ``begin``, in blocks; the longest sample must be first."""
    sizes = [sample.codes.size for sample in samples]
    lengths, start = np.repeat(sizes, begin.size), np.tile(begin, len(samples))
    remaining = np.empty((sizes[0], lengths.size), samples[0].codes.dtype)
    for place, sample in enumerate(samples):
        remaining[: sample.codes.size, place * begin.size : (place + 1) * begin.size] = sample.codes[:, np.newaxis]
    flat, lane = remaining.ravel(), np.arange(lengths.size)
    for first, end in pairwise(sorted({*range(0, sizes[0], _steps_at_once(lengths.size)), *sizes})):
        active = int((lengths > first).sum())
        steps = np.arange(first, end)[:, np.newaxis]
        places = _draws(start[:active], steps, lengths[:active])
        places *= lengths.size
        places += lane[:active]
        block = np.empty(places.shape, remaining.dtype)
        for place, fetched, next_ in zip(places, block, remaining[first:end, :active], strict=True):
            flat.take(place, 0, fetched, "clip")  # other modes copy the result once more
            flat[place] = next_
        yield block


def _last_games(codes: Codes, begin: States, number: int) -> Codes:
    """The last ``number`` games of each order shuffled from the start states ``begin``."""
    orders = np.empty((number, begin.size), codes.dtype)

    def fill(lane: int) -> None:
        orders[::-1, lane] = drawn(codes, begin[lane], number)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(begin.size)))
    return orders


def _blocks(orders: Codes) -> Iterator[Codes]:
    size = _steps_at_once(orders.shape[1])
    return (orders[first : first + size] for first in range(0, len(orders), size))


def _steps_at_once(lanes: int) -> int:
    return max(1, _GAMES_AT_ONCE // lanes)


def drawn(codes: Codes, start: np.uint64, number: int) -> Codes:
    """The first ``number`` games that a Fisher-Yates shuffle draws, without a copy of all games.

    Draw i takes the game at a random position j >= i and moves the game at position i to position j. So a draw takes
    the original game at j, unless an earlier draw took from j: then it takes the game that this draw moved to j.
    """
    steps = np.arange(number)
    chosen = _draws(np.array([start]), steps, np.array([codes.size]))
    origin = steps.copy()  # of what stands at place i at draw i: moved there by the last draw that took from i
    early = np.flatnonzero((chosen < number) & (chosen != steps))
    origin[chosen[early]] = early
    places = chosen[early]
    while (before := origin[origin[places]]).tobytes() != origin[places].tobytes():
        origin[places] = before
    keys = np.sort(chosen.astype(np.uint64) << np.uint64(32) | steps.astype(np.uint64))
    place, step = keys >> np.uint64(32), (keys & np.uint64(0xFFFFFFFF)).astype(np.intp)
    again = np.flatnonzero(place[1:] == place[:-1])
    chosen[step[again + 1]] = origin[step[again]]
    return codes.take(chosen, mode="clip")


def _draws(begin: States, steps: Ints, length: Ints) -> Ints:
    """Position from which each tournament draws a game in each of these steps; it is at least the step's number."""
    mixed = begin + (steps.astype(np.uint64) + np.uint64(1)) * GAMMA
    shifted = np.empty_like(mixed)
    for shift, factor in zip((30, 27), MIX, strict=True):
        np.right_shift(mixed, np.uint64(shift), out=shifted)
        mixed ^= shifted
        mixed *= factor
    np.right_shift(mixed, np.uint64(31), out=shifted)
    mixed ^= shifted
    mixed >>= np.uint64(11)
    uniform = mixed.astype(np.float64)
    uniform *= 2.0**-53
    uniform *= length - steps
    chosen = uniform.astype(np.int64)
    chosen += steps
    return chosen


def play(blocks: Iterable[Codes], games: Packed, settings: RatingSettings, ratings: Floats) -> None:
    """Play blocks of games, shape (steps, tournaments), and update ``ratings``, shape (agents, tournaments), in place.

    Later blocks may lack the last tournaments, whose games are over.
    """
    width, flat = ratings.shape[1], ratings.ravel()
    assert np.shares_memory(flat, ratings)
    rule = float(settings.k), STEPS_PER_TENFOLD / settings.scale
    for block in blocks:
        steps, lanes = block.shape
        cells = np.empty((steps, 2, lanes), np.intp)
        cells[:, 0] = block >> games.low & ((1 << games.bits) - 1)
        cells[:, 1] = block >> (games.low + games.bits)
        cells *= width
        cells += np.arange(lanes)
        scores = games.scores[block & ((1 << games.low) - 1)]
        (_play_together if lanes >= _WORTH_NUMPY else _play_singly)(cells, scores, rule, flat)


def _play_singly(cells: NDArray[np.intp], scores: Floats, rule: tuple[float, float], ratings: Floats) -> None:
    """Does the same operations as ``_play_together``, but on single numbers."""
    k, steps_per_point = rule
    powers, view, floor = _POWERS_LIST, ratings.data, math.floor
    columns = cells[:, 0], cells[:, 1], scores
    for a, b, score in zip(*(column.ravel().tolist() for column in columns), strict=True):
        rating_a, rating_b = view[a], view[b]
        gap = min(max((rating_b - rating_a) * steps_per_point, -REACH), REACH)
        whole = floor(gap + 0.5)
        rest = (gap - whole) * LN_STEP
        square = rest * rest
        series = (1.0 + rest) + square * ((0.5 + rest * (1 / 6)) + square * ((1 / 24) + rest * (1 / 120)))
        gain = k * (score - 1.0 / (1.0 + powers[whole + REACH] * series))
        view[a], view[b] = rating_a + gain, rating_b - gain


def _play_together(cells: NDArray[np.intp], scores: Floats, rule: tuple[float, float], ratings: Floats) -> None:
    """Play one game of each tournament per step, in numpy arrays over all tournaments.

    ``cells`` has the indexes of a and b in ``ratings``, shape (steps, 2, tournaments).
    """
    lanes = scores.shape[1]
    both, index = np.empty(2 * lanes), np.empty(lanes, np.intp)
    rating_a, rating_b = both[:lanes], both[lanes:]
    gap, whole, square, term = np.empty((4, lanes))
    fetch, power = ratings.take, POWERS.take
    add, subtract, multiply = np.add, np.subtract, np.multiply
    # As arrays, because numpy takes longer to convert a number than to multiply by it.
    k, steps_per_point = map(np.array, rule)
    half, one, sixth, a_24th, a_120th, step = map(np.array, (0.5, 1.0, 1 / 6, 1 / 24, 1 / 120, LN_STEP))
    lowest, reach = np.array(-float(REACH)), np.array(float(REACH))
    for cell, score in zip(cells.reshape(-1, 2 * lanes), scores, strict=True):
        fetch(cell, 0, both, "clip")
        subtract(rating_b, rating_a, gap)
        multiply(gap, steps_per_point, gap)
        np.maximum(gap, lowest, out=gap)
        np.minimum(gap, reach, out=gap)
        # 2 to the power of gap / STEPS: for the whole part from the table, times a polynomial for the rest.
        add(gap, half, whole)
        np.floor(whole, whole)
        subtract(gap, whole, gap)
        multiply(gap, step, gap)
        multiply(gap, gap, square)
        multiply(gap, a_120th, term)
        add(term, a_24th, term)
        multiply(term, square, term)
        add(whole, reach, whole)
        index[:] = whole
        multiply(gap, sixth, whole)
        add(whole, half, whole)
        add(whole, term, whole)
        multiply(whole, square, whole)
        add(gap, one, gap)
        add(gap, whole, gap)
        power(index, 0, whole, "clip")
        multiply(whole, gap, whole)
        # The gain: k * (score - 1 / (1 + power)).
        add(whole, one, whole)
        np.divide(one, whole, whole)
        subtract(score, whole, whole)
        multiply(whole, k, whole)
        add(rating_a, whole, rating_a)
        subtract(rating_b, whole, rating_b)
        ratings[cell] = both
