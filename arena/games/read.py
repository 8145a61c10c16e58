"""The games of a tournament from its store."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from arena.games.table import FAILED, FIRST, SECOND, TIE, WAITING, GameRow, GameTable, game_table
from arena.samples import Combine, Consistency, combined, consistency
from arena.store import IDENTICAL, Result, Store, Wanted
from judges.types import JudgeFailure, Judgment, Task, Verdict

_SEEN_FROM_FIRST = {Verdict.A.value: FIRST, Verdict.TIE.value: TIE, Verdict.B.value: SECOND}


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


def read_games(store: Store, tournament: str, how: Mapping[str, Combine]) -> WantedGames:
    """All games of a tournament; ``how`` says by judge how several samples of a verdict become one.

    Where games are scored by preferences these come along, those of a verdict whose samples become one as their mean.
    """
    settings = store.settings(tournament)
    soft = settings["ratings"].get("preferences") == "soft"
    stored = None if soft else store.game_rows(tournament)
    if stored is None:
        samples = store.outcomes(tournament, Task.PAIRWISE)
        results = combined(samples, how)
        causes = Counter(result.cause for _, result in results if isinstance(result, JudgeFailure))
        preferences = _preferences(samples, settings) if soft else {}
        return WantedGames(game_table(rows_of(results, preferences)), causes, consistency(samples))
    causes = Counter(row[-1] for row in stored if row[-1] is not None)
    return WantedGames(game_table(map(_row_of_stored, stored)), causes, {})


def _preferences(samples: Iterable[tuple[Wanted, Result | None]], settings: Mapping[str, Any]) -> dict[Wanted, float]:
    """The mean preference of each verdict for the answer shown first, where its judge gives any."""
    from arena.games.probabilities import gives_probabilities, preference

    found: defaultdict[Wanted, list[float]] = defaultdict(list)
    for want, result in samples:
        if isinstance(result, Judgment) and gives_probabilities(settings, want.judge):
            preferred = preference(result)
            if preferred is not None:
                found[replace(want, sample=0)].append(preferred)
    return {want: sum(values) / len(values) for want, values in found.items()}


def rows_of(
    results: Iterable[tuple[Wanted, Result | None]], preferences: Mapping[Wanted, float] | None = None
) -> Iterator[GameRow]:
    """Wanted games with their results, samples combined, as rows of a table.

    Args:
        results: what was asked, and what came of it.
        preferences: for the answer shown first, where judges give any.
    """
    for want, result in results:
        said = FAILED if isinstance(result, JudgeFailure) else WAITING
        if isinstance(result, Judgment):
            said = _said(str(result.outcome), want.order)
        identical = result is not None and result.judgment_id == IDENTICAL
        preferred = (preferences or {}).get(want, math.nan)
        if want.order == "ba":
            preferred = 1 - preferred
        yield GameRow(want.judge, want.query_id, want.item, want.other, want.order, said, identical, preferred)


def _row_of_stored(row: Any) -> GameRow:
    judge, query_id, a, b, order, judgment_id, outcome, cause = row
    said = WAITING if cause is None else FAILED
    if outcome is not None:
        said = _SAID[outcome, order]
    return GameRow(judge, query_id, a, b, order, said, judgment_id == IDENTICAL and outcome is not None)


def _said(verdict: str, order: str) -> int:
    return -_SEEN_FROM_FIRST[verdict] if order == "ba" else _SEEN_FROM_FIRST[verdict]


_SAID = {(json.dumps(verdict), order): _said(verdict, order) for verdict in _SEEN_FROM_FIRST for order in ("ab", "ba")}
"""By the outcome as it is stored and the order."""
