"""Games of outcomes that stand in no store."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from arena.games.read import games_of
from arena.games.table import GameTable
from arena.store import IDENTICAL, Result, Wanted
from arena.store.bulk import Columns, Texts
from judges.types import JudgeFailure, Judgment


def game_table(outcomes: Sequence[tuple[Wanted, Result | None]]) -> GameTable:
    """Wanted games with their results, in this order."""
    texts = {
        "judge": [want.judge for want, _ in outcomes],
        "query": [want.query_id for want, _ in outcomes],
        "first": [want.other if want.order == "ba" else want.item for want, _ in outcomes],
        "second": [want.item if want.order == "ba" else want.other for want, _ in outcomes],
        "outcome": [json.dumps(result.outcome) if isinstance(result, Judgment) else None for _, result in outcomes],
        "cause": [result.cause if isinstance(result, JudgeFailure) else None for _, result in outcomes],
    }
    numbers = {
        "position": list(range(len(outcomes))),
        "sample": [want.sample for want, _ in outcomes],
        "identical": [result is not None and result.judgment_id == IDENTICAL for _, result in outcomes],
    }
    columns = Columns(
        {name: Texts(values, np.arange(len(values), dtype=np.int32)) for name, values in texts.items()},
        {name: np.array(values, np.int32) for name, values in numbers.items()},
    )
    return games_of(columns, {}).table
