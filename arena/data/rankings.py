"""Reads rankings, several answers to a query ordered at once, as games of each pair; fits the Plackett-Luce model.

The games of a ranking depend on each other. They share their query, by which the intervals of ratings are clustered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from judges.errors import DataError
from retrieval_eval.data.columns import Texts, TextSource, TextTable, row_at
from retrieval_eval.data.rows import finite, list_in
from retrieval_eval.data.table_spec import Columns, TableSpec

RANKINGS: Final = TableSpec(
    ("qid", "agent", "rank", "ranking", "judge"),
    words={"rank": ("position", "place"), "ranking": ("ranked", "order_of_answers")},
    option=True,
)
Tiers: TypeAlias = Sequence[Sequence[str]]
"""Agents by rank, best first; agents with the same rank share an entry."""
_MOST: Final = 200
"""Largest number of agents in one ranking."""


def is_ranked(header: Iterable[str], columns: Columns) -> bool:
    """Whether a table has rankings and no pairs of agents: a column ``ranking``, or ``agent`` and ``rank``."""
    ours = set(RANKINGS.named(header, {name: columns[name] for name in columns if name in RANKINGS.columns}).values())
    return not ours.isdisjoint({"qid", "judge"}) and ("ranking" in ours or {"agent", "rank"} <= ours)


def games_of_rankings(source: TextSource, rows: TextTable, columns: Columns) -> tuple[TextTable, list[Tiers]]:
    """Read a table of rankings: the games that they make, one for each pair of agents, and the rankings themselves."""
    called = RANKINGS.named(rows.columns, {name: columns[name] for name in columns if name in RANKINGS.columns})
    texts = {ours: rows.columns[theirs].each() for theirs, ours in called.items() if ours in RANKINGS.columns}
    rankings = list(_whole(source, rows, texts) if "ranking" in texts else _by_rows(source, rows, texts))
    cells: dict[str, list[str]] = {name: [] for name in ("agent_a", "agent_b", "verdict", "qid", "judge", "order")}
    places: list[int] = []
    for place, at, ranking in rankings:
        for (rank, agent), (other_rank, other) in combinations(
            [(rank, agent) for rank, tied in enumerate(ranking) for agent in tied], 2
        ):
            verdict = "TIE" if rank == other_rank else "A"
            judge, query = (texts[name][at] if name in texts else "" for name in ("judge", "qid"))
            for name, cell in zip(cells, (agent, other, verdict, query, judge, ""), strict=True):
                cells[name].append(cell)
            places.append(place)
    if "qid" not in texts:
        del cells["qid"]
    form = f"rankings: {len(rankings):,}, each pair of agents is a game"
    table = TextTable(
        {name: _texts(column) for name, column in cells.items()}, np.array(places, np.int64), rows.line, form
    )
    return table, [ranking for _, _, ranking in rankings]


def _texts(cells: Sequence[str]) -> Texts:
    index: dict[str | None, int] = {}
    codes = np.array([index.setdefault(cell, len(index)) for cell in cells], np.int32)
    return Texts(list(index), codes)


def _by_rows(
    source: TextSource, rows: TextTable, texts: Mapping[str, Sequence[str]]
) -> Iterator[tuple[int, int, Tiers]]:
    """Rankings from a row for each agent: place of the first row in the file and in these rows, and the ranking."""
    groups: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}
    for at, (agent, rank) in enumerate(zip(texts["agent"], texts["rank"], strict=True)):
        key = tuple(texts[name][at] if name in texts else "" for name in ("qid", "judge"))
        if (number := finite(rank.strip())) is None:
            raise _error(source, rows, at, "'rank' must be a number", rank)
        ranked = groups.setdefault((key[0], key[1]), {})
        if agent in ranked:
            raise _error(source, rows, at, "this agent has a rank in this ranking already; add a column 'judge'", agent)
        ranked[agent] = number, at
    for ranked in groups.values():
        by_rank: dict[float, list[str]] = {}
        for agent, (number, _) in sorted(ranked.items(), key=lambda entry: entry[1]):
            by_rank.setdefault(number, []).append(agent)
        first = min(at for _, at in ranked.values())
        if len(ranked) > 1:
            yield int(rows.places[first]), first, [*by_rank.values()]


def _whole(source: TextSource, rows: TextTable, texts: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, int, Tiers]]:
    for at, text in enumerate(texts["ranking"]):
        try:
            ranking = ranking_in(text)
        except ValueError as error:
            raise _error(source, rows, at, f"'ranking' {error}", text[:_MOST]) from None
        names = [agent for tied in ranking for agent in tied]
        if len(set(names)) < len(names) or len(names) > _MOST:
            raise _error(source, rows, at, f"'ranking' must name each agent once, and at most {_MOST}", text[:_MOST])
        if len(names) > 1:
            yield int(rows.places[at]), at, ranking


def ranking_in(text: str) -> Tiers:
    """The ranking that a cell spells: ``a > b = c``, a list of names, or Argilla's list of values and ranks.

    Raises:
        ValueError: the text is no ranking.
    """
    listed = list_in(text) if text.lstrip()[:1] in {"[", "("} else None
    if listed is None:
        tiers = [[name.strip() for name in tier.split("=")] for tier in re.split(r"[>\n;]|(?<!\S)-(?!\S)", text)]
        return [tier for tier in tiers if any(tier)]
    by_rank: dict[float, list[str]] = {}
    for place, entry in enumerate(listed, start=1):
        value, rank = (entry.get("value"), entry.get("rank", place)) if isinstance(entry, dict) else (entry, place)
        names: list[Any] = value if isinstance(value, list) else [value]
        if not all(isinstance(name, str) and name.strip() for name in names) or not isinstance(rank, int | float):
            raise ValueError("must be a list of agents' names, best first")
        by_rank.setdefault(float(rank), []).extend(names)
    return [names for _, names in sorted(by_rank.items())]


def _error(source: TextSource, rows: TextTable, at: int, problem: str, value: str) -> DataError:
    return row_at(source, int(rows.places[at])).error(problem, value)


def plackett_luce(rankings: Sequence[Tiers], agents: Sequence[str]) -> dict[str, float]:
    """Strengths by the Plackett-Luce model in natural logarithms, with mean 0; of tied agents each comes first half.

    Maximum of the likelihood with a weak normal prior, so that an agent that is always first has a finite strength.
    """
    number = {agent: at for at, agent in enumerate(agents)}
    orders = [[number[agent] for tied in ranking for agent in tied[::turn]] for ranking in rankings for turn in (1, -1)]

    def loss(strength: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        value, slope = _PRIOR * float(strength @ strength), 2 * _PRIOR * strength
        for order in orders:
            ranked = strength[order]
            left = np.logaddexp.accumulate(ranked[::-1])[::-1]
            value -= float((ranked - left).sum()) / 2
            slope[order] += (np.exp(ranked) * np.cumsum(np.exp(-left)) - 1) / 2
        return value, slope

    best = scipy.optimize.minimize(loss, np.zeros(len(agents)), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    return dict(zip(agents, (best - best.mean()).tolist(), strict=True))


_PRIOR: Final = 1e-3
