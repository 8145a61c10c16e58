"""Reads matrices of win percentages, the form in which papers publish a tournament."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from arena.data.verdict_words import VERDICTS
from judges.errors import DataError
from retrieval_eval.data.rows import Row
from retrieval_eval.data.table_spec import TableSpec, say_read
from retrieval_eval.data.tables import read_columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MATRIX: Final = TableSpec(("agent",), ("agent",))
SUMMARIES: Final = frozenset({"average", "mean"})
"""Summary columns, which are ignored."""


def is_win_matrix(path: Path | str) -> bool:
    """Whether a table's header has one agent column; a table of games has two.

    Raises:
        DataError: the file cannot be read.
    """
    header = read_columns(path)
    return MATRIX.has_all(header) and not VERDICTS.has_all(header)


def read_win_matrix(path: Path | str) -> tuple[list[str], NDArray[np.float64]]:
    """Read a matrix with a column ``agent`` and one further column for each agent.

    A cell is the percentage, 0 to 100, of games that the row's agent won against the column's agent. The rest of a
    pair's games, up to 100, are ties. Both cells of a pair are empty if its agents never met. The diagonal is ignored.

    Returns:
        The K agents in the order of the rows, and the percentages, shape (K, K), NaN for empty cells.

    Raises:
        DataError: the file cannot be read, rows and columns name different agents, or a cell is not a percentage.
    """
    import numpy as np

    rows = list(MATRIX.rows(path))
    agents = _agents(Path(path), rows)
    percentages = np.full((len(agents), len(agents)), np.nan)
    for i, row in enumerate(rows):
        for j, opponent in enumerate(agents):
            if i != j:
                percentages[i, j] = _percentage(row, opponent)
    for i, j in itertools.combinations(range(len(agents)), 2):
        _check_pair(rows[j], agents[i], float(percentages[i, j]), float(percentages[j, i]))
    if not np.nanmax(percentages, initial=0) > 1:
        raise DataError(path, "no value is above 1: if these are fractions, multiply them by 100")
    say_read(path, rows[0].called, {"agent", *agents}, f"a matrix of {len(agents)} agents")
    return agents, percentages


def _agents(path: Path, rows: Sequence[Row]) -> list[str]:
    agents: list[str] = []
    for row in rows:
        if (agent := row.identifier("agent")) in agents:
            raise row.error("this agent has a row already", agent)
        agents.append(agent)
    header = rows[0].values
    for agent in agents:
        if agent not in header:
            raise MATRIX.missing(path, agent, header)
    if extra := [name for name in header if name != "agent" and name not in agents and name not in SUMMARIES]:
        raise DataError(
            path, "no agent with a row has the name of this column; add its row or remove the column", value=extra[0]
        )
    return agents


def _percentage(row: Row, opponent: str) -> float:
    text = row.text(opponent).strip()
    try:
        percentage = float(text) if text else math.nan
    except ValueError:
        percentage = math.inf
    if not (math.isnan(percentage) or 0 <= percentage <= 100):
        raise row.error(f"the percentage against {opponent!r} must be a number from 0 to 100", text)
    return percentage


def _check_pair(row: Row, opponent: str, opponent_won: float, row_won: float) -> None:
    if math.isnan(opponent_won) != math.isnan(row_won):
        raise row.error(f"only one of the two percentages of this agent and {opponent!r} is given; give both")
    from arena.ratings.pairs import ROUNDING

    if opponent_won + row_won > 100 + ROUNDING:
        won = f"{row_won:g} + {opponent_won:g}"
        raise row.error(f"this agent and {opponent!r} together won more than all games", won)
