"""What to know of a dataset before it is judged: nothing of it is wrong, and none of it goes without saying."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Final

from arena.data.dataset import Dataset
from arena.present.numbers import counted, listed
from retrieval_eval.data.rows import how_to_name

ONE_AGENT: Final = f"a game compares two; if a column names the agent, {how_to_name('agent')}"
_NAMED: Final = 5
"""Queries, answers and pairs that are named; the others are counted."""


def notes_of(data: Dataset, to_come: Collection[str] = ()) -> list[str]:
    """One line for each thing that a reader of the result would otherwise not expect.

    Args:
        data: what is to be judged.
        to_come: agents that are still to be asked; what they have not answered is no news.
    """
    return [*data.notes, *_of_answers(data, to_come), *_of_agents(data, to_come)]


def _of_answers(data: Dataset, to_come: Collection[str]) -> Iterator[str]:
    empty = [
        f"{agent} on {data.called(query_id)}"
        for (query_id, agent), answer in data.answers.items()
        if not answer.text.strip()
    ]
    if empty:
        yield f"{counted(len(empty), 'empty answer')}, judged like any other: {listed(empty, _NAMED)}"
    if data.answers and data.unanswered_queries and not to_come:
        yield f"no answers at all to {listed([data.called(query_id) for query_id in data.unanswered_queries], _NAMED)}"
    missing = [
        f"{agent} on {data.called(query_id)}" for query_id, agent in data.missing_answers if agent not in to_come
    ]
    if missing:
        yield f"no answer by {listed(missing, _NAMED)}"


def _of_agents(data: Dataset, to_come: Collection[str]) -> Iterator[str]:
    answered = queries_by_agent(data)
    if len(answered) == 1 and not to_come:
        yield f"{next(iter(answered))!r} is the only agent, and {ONE_AGENT}"
    pairs = [
        f"{one} and {other}" for one, other in combinations(answered, 2) if answered[one].isdisjoint(answered[other])
    ]
    if pairs and not to_come:
        more = f"; and {len(pairs) - _NAMED} more pairs" if len(pairs) > _NAMED else ""
        yield f"agents without a query in common never meet: {'; '.join(pairs[:_NAMED])}{more}"


def queries_by_agent(data: Dataset) -> dict[str, set[str]]:
    """By agent the queries that it answered."""
    answered: dict[str, set[str]] = {}
    for query_id, agent in data.answers:
        answered.setdefault(agent, set()).add(query_id)
    return answered
