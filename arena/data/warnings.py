"""Notes on a dataset before it is judged: valid but unexpected things, such as empty or duplicate answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Final

from arena.data.dataset import Dataset, beginning
from arena.present.numbers import counted, listed
from retrieval_eval.data.table_spec import how_to_name

ONE_AGENT: Final = f"add the answers of another; or name the agents' column: {how_to_name('agent')}"
_NAMED: Final = 5
"""Maximum number of queries, answers or pairs that a note names; the note counts the rest."""


def notes_of(data: Dataset, to_come: Collection[str] = ()) -> list[str]:
    """One line for each property of the data that may surprise a reader of the results.

    Args:
        data: the data to judge.
        to_come: agents that the run has yet to ask; their missing answers are not noted.
    """
    return [*data.notes, *_of_queries(data), *_of_answers(data, to_come), *_of_agents(data, to_come)]


def _of_queries(data: Dataset) -> Iterator[str]:
    alike: dict[str, list[str]] = {}
    for query in data.queries.values():
        alike.setdefault(" ".join(query.thread.split()), []).append(query.query_id)
    several = [
        f"{listed(ids, _NAMED)} ask {' '.join(data.queries[ids[0]].text.split())!r}"
        for ids in alike.values()
        if len(ids) > 1
    ]
    if several:
        more = f"; and {len(several) - _NAMED} more texts" if len(several) > _NAMED else ""
        yield f"queries with the same text count as several: {'; '.join(several[:_NAMED])}{more}"


def _of_answers(data: Dataset, to_come: Collection[str]) -> Iterator[str]:
    empty = [
        f"{agent} on {data.called(query_id)}"
        for (query_id, agent), answer in data.answers.items()
        if not answer.text.strip()
    ]
    if empty:
        yield f"{counted(len(empty), 'empty answer')}, judged like any other: {listed(empty, _NAMED)}"
    for look, (pattern, advice) in _ODD.items():
        matches = re.compile(rf"\s*{pattern}", re.IGNORECASE | re.DOTALL).match
        odd = [
            f"{agent} on {data.called(query_id)} ({beginning(answer.text, _TEXT)!r})"
            for (query_id, agent), answer in data.answers.items()
            if matches(answer.text)
        ]
        if odd:
            names = listed(odd, _ODD_SHOWN)
            yield f"{counted(len(odd), 'answer')} {look}, judged like any other; {advice}: {names}"
    blank = [doc_id for doc_id, document in data.documents.items() if not document.text.strip()]
    if blank:
        yield f"{counted(len(blank), 'empty document')}, judged like any other: {listed(blank, _NAMED)}"
    if data.answers and data.unanswered_queries and not to_come:
        yield f"no answers at all to {listed([data.called(query_id) for query_id in data.unanswered_queries], _NAMED)}"
    missing = [
        f"{agent} on {data.called(query_id)}" for query_id, agent in data.missing_answers if agent not in to_come
    ]
    if missing:
        yield f"no answer by {listed(missing, _NAMED)}"


_ODD_SHOWN: Final = 3
"""Number of odd answers that a note quotes."""
_TEXT: Final = 40
"""Characters of each quoted answer."""
_MISSING = (
    "nan",
    "none",
    "null",
    "nil",
    "nat",
    "n/?a",
    "#n/a",
    "<na>",
    "undefined",
    "missing",
    r"#(?:value|ref)!",
    "-+",
)
_FAILED = (
    r"traceback \(most recent call last\)",
    r"\{\s*[\"']error[\"']\s*:",
    r"(?:[a-z_.]*error|[a-z_.]*exception|failed|failure)(?: code)?\s*[:(]",
    r"(?:http|status|error)(?:[ /]?code)?[ /:]*[45]\d\d\b",
    r"[45]\d\d(?: -|:)? (?:bad|client|conflict|forbidden|gateway|internal|not found|payment|request|server|service|"
    "too many|unauthorized)",
    r"(?:the |your )?(?:request |connection |operation |read |call |model )?(?:has |was )?(?:timed? ?out|aborted)\b",
    r"connection (?:closed|error|failed|refused|reset)",
    r"(?:rate limit|too many requests|internal server error|bad gateway|gateway time)",
    r"(?:service (?:temporarily )?unavailable)",
    r"(?:no response (?:from|received)|(?:an )?(?:internal |unexpected |unknown )?error occurred|something went wrong)",
    r"(?:insufficient_quota|you exceeded your current quota)",
)
_THINKING = (
    r"<(?:seed:|mm:)?(?:think|thinking|thought|reasoning)>",
    r"\[think\]|\u25c1think\u25b7|<\|start_thinking\|>|<\|channel\|?>(?:thought|analysis)",
    r".{0,20000}</(?:think|thinking|reasoning)>",
)
_ODD: Final = {
    "like a missing value": (rf"(?:{'|'.join(_MISSING)})\s*\Z", "remove the row if there was no answer"),
    "like an error": (rf"(?:{'|'.join(_FAILED)})(?=.{{0,400}}\Z)", "remove the row if there was no answer"),
    "with a model's thinking": (f"(?:{'|'.join(_THINKING)})", "cut it if users do not see it"),
}
"""Kinds of odd answers: a pattern for the beginning of the text, and advice.

Judges judge odd answers like other answers: an odd answer may be intended, and leaving out its games would favour the
agent.
"""


def _of_agents(data: Dataset, to_come: Collection[str]) -> Iterator[str]:
    answered = queries_by_agent(data)
    if len(answered) == 1 and not to_come:
        yield f"{next(iter(answered))!r} is the only agent; {ONE_AGENT}"
    pairs = [
        f"{first} and {second}"
        for first, second in combinations(answered, 2)
        if answered[first].isdisjoint(answered[second])
    ]
    same = [
        f"{first} and {second}"
        for first, second in combinations(answered, 2)
        if (both := answered[first] & answered[second])
        and all(data.answers[query_id, first].text == data.answers[query_id, second].text for query_id in both)
    ]
    if same:
        yield f"agents whose answers are all the same: {listed(same, _NAMED)}; is a file there twice?"
    if pairs and not to_come:
        more = f"; and {len(pairs) - _NAMED} more pairs" if len(pairs) > _NAMED else ""
        yield f"agents without a query in common never meet: {'; '.join(pairs[:_NAMED])}{more}"


def queries_by_agent(data: Dataset) -> dict[str, set[str]]:
    """The queries that each agent answered."""
    answered: dict[str, set[str]] = {}
    for query_id, agent in data.answers:
        answered.setdefault(agent, set()).add(query_id)
    return answered
