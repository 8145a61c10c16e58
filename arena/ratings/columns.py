"""Verdict tables from columns of names, for tables of millions of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from arena.ratings.games import Ints, VerdictTable
from judges.errors import InputError
from judges.types import Verdict


@runtime_checkable
class Factorizable(Protocol):
    """A column that numbers its own values, as those of pandas do; missing values get the number -1."""

    def factorize(self) -> tuple[NDArray[np.intp], Iterable[Any]]:
        """The number of each row's value, and the values."""
        ...


Column: TypeAlias = Sequence[str] | NDArray[Any] | Factorizable
"""Names, one per row: a pandas column (quickest), a list or an array."""

_OUTCOME = {Verdict.A.value: 1, Verdict.TIE.value: 0, Verdict.B.value: -1}


def table_of_columns(
    agent_a: Column, agent_b: Column, verdict: Column, query_id: Column | None = None, judge: Column | None = None
) -> VerdictTable:
    """What ``tabulate`` makes of single verdicts, of columns of equal length.

    Args:
        agent_a: names of the agents shown first.
        agent_b: names of the agents shown second.
        verdict: ``A``, ``B`` or ``TIE``.
        query_id: names of the queries, if there are any.
        judge: names of the judges; one nameless judge if absent.

    Raises:
        InputError: the columns are empty or differ in length, a name is missing, an agent plays itself, or a verdict
            is none of the three; says in which row, counted from 1.
    """
    first, second, outcome = _numbered(agent_a, "agent_a"), _numbered(agent_b, "agent_b"), _outcomes(verdict)
    rows = outcome.size
    query = None if query_id is None else _numbered(query_id, "query_id")
    judged = (("",), np.zeros(rows, np.int32)) if judge is None else _numbered(judge, "judge")
    lengths = [len(codes) for _, codes in filter(None, (first, second, query, judged))]
    if set(lengths) != {rows}:
        raise InputError(f"columns differ in length: {rows} verdicts, other columns {lengths}")
    if not rows:
        raise InputError("there are no verdicts to rate: give at least one game")
    agents = tuple(sorted({*first[0], *second[0]}))
    number = {name: code for code, name in enumerate(agents)}
    a, b = (np.array([number[name] for name in names], np.int32)[codes] for names, codes in (first, second))
    if (same := np.flatnonzero(a == b)).size:
        raise InputError(f"verdict {same[0] + 1}: agent {agents[a[same[0]]]!r} plays itself: a game needs two agents")
    return VerdictTable(agents, a, b, outcome, query and query[0], None if query is None else query[1], *judged)


def _numbered(column: Column, what: str) -> tuple[tuple[str, ...], Ints]:
    """Sorted distinct names, and the number of each row's."""
    values, codes = _factorized(column)
    wrong = np.array([not (isinstance(value, str) and value.strip()) for value in values] + [True])
    if len(bad := np.flatnonzero(wrong[codes])):
        value = values[codes[bad[0]]] if codes[bad[0]] >= 0 else None
        raise InputError(f"verdict {bad[0] + 1}: {what} is empty or missing ({value!r}): give a name in every row")
    order = sorted(range(len(values)), key=values.__getitem__)
    place = np.empty(len(values), np.int32)
    place[order] = np.arange(len(values))
    return tuple(values[number] for number in order), place[codes]


def _outcomes(column: Column) -> NDArray[np.int8]:
    values, codes = _factorized(column)
    known = np.array([_OUTCOME.get(value, 2) if isinstance(value, str) else 2 for value in values] + [2], np.int8)
    outcome: NDArray[np.int8] = known[codes]
    if len(bad := np.flatnonzero(outcome == 2)):
        value = values[codes[bad[0]]] if codes[bad[0]] >= 0 else None
        raise InputError(f"verdict {bad[0] + 1}: {value!r} is not A, B or TIE")
    return outcome


def _factorized(column: Column) -> tuple[list[Any], NDArray[np.intp]]:
    """Distinct values in any order, and the number of each row's; -1 where there is none."""
    if isinstance(column, Factorizable):
        codes, values = column.factorize()
        return list(values), np.asarray(codes)
    names = column.tolist() if isinstance(column, np.ndarray) else column
    distinct = list(dict.fromkeys(names))
    number = {value: code for code, value in enumerate(distinct)}
    return distinct, np.fromiter(map(number.__getitem__, names), np.intp, len(names))
