"""The games of a tournament from its store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
    """All games of a tournament; ``how`` says by judge how several samples of a verdict become one."""
    stored = store.game_rows(tournament)
    if stored is None:
        samples = store.outcomes(tournament, Task.PAIRWISE)
        results = combined(samples, how)
        causes = Counter(result.cause for _, result in results if isinstance(result, JudgeFailure))
        return WantedGames(game_table(rows_of(results)), causes, consistency(samples))
    causes = Counter(row[-1] for row in stored if row[-1] is not None)
    return WantedGames(game_table(map(_row_of_stored, stored)), causes, {})


def rows_of(results: Iterable[tuple[Wanted, Result | None]]) -> Iterator[GameRow]:
    """Wanted games with their results, samples combined, as rows of a table."""
    for want, result in results:
        said = FAILED if isinstance(result, JudgeFailure) else WAITING
        if isinstance(result, Judgment):
            said = _said(str(result.outcome), want.order)
        identical = result is not None and result.judgment_id == IDENTICAL
        yield GameRow(want.judge, want.query_id, want.item, want.other, want.order, said, identical)


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
