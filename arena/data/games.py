"""The games of a tournament from its store: columns of numbers all the way, so that millions are no other case.

The store numbers names while it reads. Rows of one query, judge and pair become one game, several samples of a verdict
one verdict, as ``arena.stages.samples`` says of single results. A judge may give the probability of each label: then a
verdict says how sure the judge is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from arena.config.stored import StoredSettings
from arena.data.game_table import FAILED, FIRST, NOT_WANTED, SECOND, TIE, WAITING, GameTable
from arena.ratings.games import Floats, Ints
from arena.store import Store
from arena.store.bulk import Columns, in_order
from judges.types import Judgment, Verdict

if TYPE_CHECKING:
    from arena.stages.samples import Consistency


PROBABILITIES: Final = {"p_a": Verdict.A.value, "p_b": Verdict.B.value, "p_tie": Verdict.TIE.value}
"""Columns of a table of verdicts: the probability that each answer is the better one, and that neither is."""


def verdict_probabilities(judgment: Judgment) -> dict[str, float]:
    """The probability of each of ``PROBABILITIES``, from what the judge's reply says; empty where it says none."""
    from judges.providers.transformers import label_probabilities

    by_label = label_probabilities(judgment.reason)
    if not by_label or by_label.get(str(judgment.outcome)) != max(by_label.values()):
        return {}
    return {column: by_label.get(label, 0.0) for column, label in PROBABILITIES.items()}


def preference(judgment: Judgment) -> float | None:
    """Probability that the answer shown first is the better one, a tie counted as half; ``None`` without any."""
    found = verdict_probabilities(judgment)
    total = sum(found.values())
    return (found["p_a"] + found["p_tie"] / 2) / total if total else None


_STORED: Final = {json.dumps(verdict): said for verdict, said in zip(Verdict, (FIRST, SECOND, TIE), strict=True)}
"""By the outcome as it is stored, seen from the answer shown first."""


@dataclass(frozen=True)
class WantedGames:
    """The games of a tournament with what was said of them.

    Attributes:
        table: every game, each judge's samples combined.
        causes: how many orders failed for which cause.
        consistency: of each judge that was asked several times, how far its samples agree.
    """

    table: GameTable
    causes: Mapping[str, int]
    consistency: Mapping[str, Consistency]


def read_games(store: Store, tournament: str) -> WantedGames:
    """All games of a tournament, samples combined as its settings say; with preferences where games are scored by them.

    Raises:
        InputError: no such tournament.
    """
    settings = store.settings(tournament)
    soft = settings.ratings.preferences == "soft"
    return games_of(store.game_columns(tournament, reasons=soft), settings)


def games_of(rows: Columns, settings: StoredSettings) -> WantedGames:
    """Wanted verdicts, a row for each sample of each order of a game, as games in the order of their plan.

    Args:
        rows: as ``Store.game_columns`` has them; with ``reason`` where games are scored by preferences.
        settings: of the tournament.
    """
    rows = rows.in_order_of("position")
    judges, (judge,) = in_order(rows.texts["judge"])
    queries, (query,) = in_order(rows.texts["query"])
    agents, (first, second) = in_order(rows.texts["first"], rows.texts["second"])
    a, b, b_first = np.minimum(first, second), np.maximum(first, second), first > second
    key = ((query.astype(np.int64) * len(judges) + judge) * len(agents) + a) * len(agents) + b
    _, start, game = np.unique(key, return_index=True, return_inverse=True)
    as_planned = np.argsort(start)
    place = np.empty(start.size, np.int64)
    place[as_planned] = np.arange(start.size)
    start, slot = start[as_planned], 2 * place[game] + b_first  # a slot is one order of a game
    given = _said(rows)
    seen_from_a = np.where(b_first & (given <= FIRST), -given, given)
    counts = {
        said: np.bincount(slot[seen_from_a == said], minlength=2 * start.size)
        for said in (FIRST, TIE, SECOND, FAILED, WAITING)
    }
    sampled = bool(rows.numbers["sample"].any())
    of_judge = np.repeat(judge[start], 2)
    said = _combined(counts, _ways(judges, settings)[of_judge] if sampled else None)
    table = GameTable(
        agents,
        queries,
        judges,
        a[start],
        b[start],
        query[start],
        judge[start],
        said.reshape(-1, 2),
        np.bincount(slot // 2, rows.numbers["identical"], start.size) > 0,
        _preferences(rows, settings, slot, b_first, start.size) if "reason" in rows.texts else np.empty((0, 2)),
    )
    consistency = _consistency(counts, of_judge, judges) if sampled else {}
    return WantedGames(table, _causes(rows, given, slot, said), consistency)


def _said(rows: Columns) -> NDArray[np.int8]:
    """What each row says, seen from the answer shown first."""
    outcome, cause = rows.texts["outcome"], rows.texts["cause"]
    failed = np.array([WAITING if name is None else FAILED for name in cause.names], np.int8)[cause.codes]
    verdict = np.array([NOT_WANTED if name is None else _STORED[name] for name in outcome.names], np.int8)
    judged = np.array([name is not None for name in outcome.names], np.bool_)[outcome.codes]
    return np.where(judged, verdict[outcome.codes], failed).astype(np.int8)


def _ways(judges: Iterable[str], settings: StoredSettings) -> Ints:
    """By judge, the place among ``majority``, ``median`` and ``mean`` of how its samples become one."""
    how = settings.combinations
    return np.array([("majority", "median", "mean").index(how.get(judge, "majority")) for judge in judges], np.int32)


def _combined(counts: Mapping[int, NDArray[np.integer]], ways: Ints | None) -> NDArray[np.int8]:
    """One verdict for each slot from how often each was given, see ``arena.stages.samples.combine``; shape (slots,)."""
    wins, ties, losses = (counts[said] for said in (FIRST, TIE, SECOND))
    verdict = (wins > np.maximum(ties, losses)).astype(np.int8) - (losses > np.maximum(ties, wins))
    judged = wins + ties + losses
    if ways is not None:
        lower, upper = (
            (at >= losses + ties).astype(np.int8) - (at < losses) for at in ((judged - 1) // 2, judged // 2)
        )
        verdict = np.choose(ways, [verdict, np.sign(lower + upper), np.sign(wins - losses)])
    failed, waiting = counts[FAILED], counts[WAITING]
    cases = [waiting > 0, judged < failed, judged > 0]
    return np.asarray(np.select(cases, [WAITING, FAILED, verdict], NOT_WANTED), np.int8)


def _causes(rows: Columns, given: NDArray[np.int8], slot: NDArray[np.int64], said: NDArray[np.int8]) -> dict[str, int]:
    """How many slots failed for which cause, that of the first sample that did."""
    failing = np.flatnonzero((given == FAILED) & (said[slot] == FAILED))
    _, firsts = np.unique(slot[failing], return_index=True)
    cause = rows.texts["cause"]
    found = Counter(cause.codes[failing[firsts]].tolist())
    return {str(cause.names[code]): number for code, number in found.items()}


def _consistency(
    counts: Mapping[int, NDArray[np.integer]], of_judge: Ints, judges: tuple[str, ...]
) -> dict[str, Consistency]:
    """By judge, how often two of its samples say the same."""
    from arena.stages.samples import Consistency

    given = np.array([counts[said] for said in (FIRST, TIE, SECOND)])
    several = given.sum(axis=0) > 1
    pairs, equal, repeated = (
        np.bincount(of_judge, weights, len(judges))
        for weights in (_pairs(given.sum(axis=0)), _pairs(given).sum(axis=0), several)
    )
    return {
        judges[code]: Consistency(float(equal[code] / pairs[code]), int(repeated[code]))
        for code in dict.fromkeys(of_judge[several].tolist())
    }


def _pairs(number: NDArray[np.integer]) -> NDArray[np.integer]:
    return number * (number - 1) // 2


def _preferences(
    rows: Columns, settings: StoredSettings, slot: NDArray[np.int64], b_first: NDArray[np.bool_], games: int
) -> Floats:
    """The mean preference of each slot's samples for ``a``, NaN where there is none; (0, 2) without any."""
    judge, outcome, reason = (rows.texts[name] for name in ("judge", "outcome", "reason"))
    sure = [settings.gives_probabilities(str(name)) for name in judge.names]
    preferred = np.full(slot.size, np.nan)
    for row, (of, said, why) in enumerate(zip(judge.codes, outcome.codes, reason.codes, strict=True)):
        stored = outcome.names[said]
        if sure[of] and stored is not None:
            found = preference(Judgment("", json.loads(stored), reason.names[why] or "", "", ""))
            preferred[row] = np.nan if found is None else found
    known = ~np.isnan(preferred)
    if not known.any():
        return np.empty((0, 2))
    of_a = np.where(b_first, 1 - preferred, preferred)[known]
    number, total = (np.bincount(slot[known], weights, 2 * games) for weights in (None, of_a))
    means: Floats = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return means.reshape(-1, 2)
