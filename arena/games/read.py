"""The games of a tournament from its store."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from arena.games.table import FAILED, FIRST, SECOND, TIE, WAITING, GameTable, game_table
from arena.store import IDENTICAL, Result, Store, Wanted
from judges.types import JudgeFailure, Judgment, Task, Verdict

if TYPE_CHECKING:
    from arena.samples import Combine, Consistency

_SAID: Final = {Verdict.A.value: FIRST, Verdict.TIE.value: TIE, Verdict.B.value: SECOND}
_STORED: Final = {json.dumps(verdict): said for verdict, said in _SAID.items()}
"""By the outcome as it is stored."""


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


def read_games(store: Store, tournament: str, how: Mapping[str, Combine] | None = None) -> WantedGames:
    """All games of a tournament; ``how`` says by judge how several samples of a verdict become one.

    Without it they become one as the tournament's settings say. Where games are scored by preferences these come along,
    those of a verdict whose samples become one as their mean.
    """
    settings = store.settings(tournament)
    soft = settings["ratings"].get("preferences") == "soft"
    stored = None if soft else store.game_rows(tournament)
    if stored is None:
        from arena.samples import combinations, combined, consistency

        samples = store.outcomes(tournament, Task.PAIRWISE)
        results = combined(samples, combinations(settings) if how is None else how)
        causes = Counter(result.cause for _, result in results if isinstance(result, JudgeFailure))
        preferences = _preferences(samples, settings) if soft else {}
        return WantedGames(games_of(results, preferences), causes, consistency(samples))
    *names, judgment_id, outcome, cause = list(zip(*stored, strict=True)) or [()] * 7
    failed = [WAITING if each is None else FAILED for each in cause]
    said = [other if each is None else _STORED[each] for each, other in zip(outcome, failed, strict=True)]
    identical = [ident == IDENTICAL and each is not None for ident, each in zip(judgment_id, outcome, strict=True)]
    causes = Counter(each for each in cause if each is not None)
    named = dict(zip(("judge", "query", "first", "second"), names, strict=True))
    return WantedGames(game_table(**named, said=said, identical=identical), causes, {})


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


def games_of(
    results: Iterable[tuple[Wanted, Result | None]], preferences: Mapping[Wanted, float] | None = None
) -> GameTable:
    """Wanted games with their results, samples combined.

    Args:
        results: what was asked, and what came of it.
        preferences: for the answer shown first, where judges give any.
    """
    names = ("judge", "query", "first", "second", "said", "identical", "preference")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for want, result in results:
        first, second = (want.other, want.item) if want.order == "ba" else (want.item, want.other)
        identical = result is not None and result.judgment_id == IDENTICAL
        preferred = (preferences or {}).get(want, math.nan)
        row = want.judge, want.query_id, first, second, said_by(result), identical, preferred
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)
    return game_table(**columns)


def said_by(result: Result | None) -> int:
    """What a result says, seen from the answer shown first."""
    if isinstance(result, Judgment):
        return _SAID[str(result.outcome)]
    return WAITING if result is None else FAILED
