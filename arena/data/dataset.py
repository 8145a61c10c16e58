"""The dataset of a tournament: queries, retrieved documents, answers and qrels; notes on unusual data.

``arena.data.files`` reads and writes the dataset's tables.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from textwrap import shorten
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from arena.present.numbers import counted, listed
from judges.errors import InputError
from judges.types import Answer, Document, Query, Retrieved, repeat_of
from retrieval_eval.data.rows import id_of_text
from retrieval_eval.data.table_spec import how_to_name

if TYPE_CHECKING:
    from retrieval_eval.scores.citations import CitedSentence, Habit

SHARED = ""
"""Agent's name for retrieved documents from a table without an agent column, which all agents received."""
EVERY_AGENT = "(every agent)"
"""Agent's name in tables of scores for the documents that all agents received."""

LATENCY, COST, TOKENS_IN, TOKENS_OUT = "latency_s", "cost_usd", "input_tokens", "output_tokens"
TRIED = "tried_s"
"""Time in seconds of all attempts to get an answer. This name and the four above are columns of tables of answers."""
_SHOWN: Final = 40

Causes: TypeAlias = Mapping[str, int]
"""Number of queries that an agent failed to answer, by cause of the failure."""


class Dataset(Struct, frozen=True, dict=True):
    """The data of a tournament. All ids are unique, and every answer and retrieved document belongs to a query.

    Attributes:
        queries: the queries by query_id, in the order of the file.
        documents: the documents by doc_id; each document once, even if retrieved many times.
        answers: the answers by (query_id, agent); judges judge an empty text like any other answer. The agent's name
            has the number of the repeat, see ``repeat_of``.
        retrieved: the retrieved documents by query_id, ordered by agent and rank; the agent is ``SHARED`` if the table
            names none.
        qrels: people's relevance labels by query_id and doc_id, including documents that nobody retrieved.
        notes: notes on how the files were read.
        left_out: number of queries in the files that are not used because of ``data.limit``.
    """

    queries: Mapping[str, Query]
    documents: Mapping[str, Document] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], Answer] = field(default_factory=dict)
    retrieved: Mapping[str, Sequence[Retrieved]] = field(default_factory=dict)
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    left_out: int = 0

    @cached_property
    def agents(self) -> tuple[str, ...]:
        return tuple(sorted({repeat_of(name)[0] for name in self.answerers}))

    @cached_property
    def answerers(self) -> tuple[str, ...]:
        """The names in ``answers`` and ``retrieved``: agents, and their repeats."""
        answering = {agent for _, agent in self.answers}
        retrieving = {entry.agent for entries in self.retrieved.values() for entry in entries}
        return tuple(sorted(answering | retrieving - {SHARED}))

    def names_of(self, query_id: str, agent: str) -> list[str]:
        """The keys of ``answers`` with what an agent answered to a query: its name, and a name for each repeat."""
        return [name for name in self.answerers if repeat_of(name)[0] == agent and (query_id, name) in self.answers]

    @cached_property
    def has_messages(self) -> bool:
        """Whether any query has earlier messages, because it is a later turn of a conversation."""
        return any(query.messages for query in self.queries.values())

    @cached_property
    def unanswered_queries(self) -> tuple[str, ...]:
        """Ids of the queries that no agent answered."""
        answered = {query_id for query_id, _ in self.answers}
        return tuple(query_id for query_id in self.queries if query_id not in answered)

    @cached_property
    def missing_answers(self) -> tuple[tuple[str, str], ...]:
        """Pairs (query id, agent) without an answer, for the queries that some other agent answered."""
        unanswered = set(self.unanswered_queries)
        return tuple(
            (query_id, agent)
            for query_id in self.queries
            if query_id not in unanswered
            for agent in self.agents
            if (query_id, agent) not in self.answers
        )

    def called(self, query_id: str) -> str:
        """How messages name a query: by its id, or by its text if the id is only a hash of the text."""
        text = self.queries[query_id].text
        return repr(beginning(text, _SHOWN)) if query_id == id_of_text("q", text) else query_id

    @cached_property
    def rankings(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """Ids of retrieved documents by (query id, agent), best first; ``SHARED`` is called ``EVERY_AGENT``."""
        rankings: dict[tuple[str, str], list[str]] = {}
        for query_id, entries in self.retrieved.items():
            for entry in entries:
                rankings.setdefault((query_id, entry.agent or EVERY_AGENT), []).append(entry.doc_id)
        return rankings

    @cached_property
    def given(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """Ids of the documents that each agent received, by (query id, agent), best first, with ``SHARED`` ones."""
        ranked: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for query_id, entries in self.retrieved.items():
            for entry in entries:
                for agent in self.answerers if entry.agent == SHARED else [entry.agent]:
                    ranked.setdefault((query_id, agent), []).append((entry.rank, entry.doc_id))
        return {key: [doc_id for _, doc_id in sorted(documents)] for key, documents in ranked.items()}

    @cached_property
    def sentences(self) -> Mapping[tuple[str, str], Sequence[CitedSentence] | None]:
        """The sentences of each answer with the documents they cite, by (query id, agent); see ``cited_sentences``."""
        from retrieval_eval.scores.citations import cited_sentences  # late, because it imports numpy

        return cited_sentences(self.answers.values(), self.given, self.documents)

    @cached_property
    def _habits(self) -> Mapping[str, Habit]:
        from retrieval_eval.scores.citations import habits_of  # late, as above

        return habits_of(self.answers.values(), self.given, self.documents)

    def renumbered(self, answer: Answer, shown: Sequence[str], agent: str = "") -> Answer:
        """Return the answer with its citations changed to positions in ``shown``, the ids of the documents beside it.

        The answer cites documents of ``agent``, by default those of its own agent.
        """
        from retrieval_eval.scores.citations import Habit, renumbered  # late, as above

        cited_agent = agent or answer.agent
        ranking, habit = self.given.get((answer.query_id, cited_agent), ()), self._habits.get(cited_agent, Habit())
        return replace(answer, text=renumbered(answer, ranking, self.documents, habit, shown))

    def digest(self) -> str:
        """SHA-256 of all data, as hexadecimal digits; it does not depend on the order of rows in the files."""
        whole, encode = hashlib.sha256(), json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
        for part in _canonical(self):
            whole.update(encode(part).encode() + b"\n")
        return whole.hexdigest()


def beginning(text: str, limit: int) -> str:
    """Shorten a text to one line of at most ``limit`` characters, between words if possible."""
    words = shorten(text, limit, placeholder="...")
    return words if 2 * len(words) > limit or not words.endswith("...") else " ".join(text.split())[: limit - 3] + "..."


def _canonical(dataset: Dataset) -> Iterator[list[object]]:
    for query_id, query in sorted(dataset.queries.items()):
        yield ["query", query_id, query.text, dict(query.columns)]
    for doc_id, document in sorted(dataset.documents.items()):
        yield ["document", doc_id, document.text, dict(document.metadata)]
    for (query_id, agent), answer in sorted(dataset.answers.items()):
        yield ["answer", query_id, agent, answer.text, dict(answer.metadata)]
    for query_id, entries in sorted(dataset.retrieved.items()):
        for entry in sorted(entries, key=lambda entry: (entry.agent, entry.rank, entry.doc_id)):
            yield ["retrieved", query_id, entry.doc_id, entry.agent, entry.rank, entry.score]
    for query_id, labels in sorted(dataset.qrels.items()):
        for doc_id, label in sorted(labels.items()):
            yield ["label", query_id, doc_id, label]


def texts_of(queries: Collection[Query]) -> dict[str, str]:
    """Texts of the queries by query id, and of the first message of each conversation by conversation id."""
    texts = {query.query_id: query.text for query in queries}
    for query in queries:
        texts.setdefault(query.cluster, query.messages[0].text if query.messages else query.text)
    return texts


_MAX_GROUPS: Final = 50
"""Queries are not grouped by a column with more values than this, or with more than half the number of queries."""
_DOCUMENT, _FOLDER = "source", "folder"
"""Column with the document of a synthetic query, and the column of groups made from it."""
Group: TypeAlias = tuple[str, str]
"""A column and a value; the group has the queries with this value in this column."""


def group_values(query: Query) -> Mapping[str, str]:
    """The values by which a query can be grouped: its columns, and the folder of the document it was written from."""
    folder, separator, _ = query.metadata.get(_DOCUMENT, "").rpartition("/")
    return {_FOLDER: folder, **query.metadata} if separator else query.metadata


def read_group(text: str) -> Group | None:
    """Read the group from ``COLUMN=VALUE``; ``None`` from an empty text.

    Raises:
        InputError: the text has another form.
    """
    column, separator, value = (part.strip() for part in text.partition("="))
    if text and not (column and separator):
        raise InputError(f"--group {text!r}: write COLUMN=VALUE, such as kind=factual")
    return (column, value) if text else None


def groupings(queries: Collection[Query]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Find the columns by which queries can be grouped: the ids of each group's queries, by column and sorted value."""
    ids: dict[str, dict[str, list[str]]] = {}
    for query in queries:
        for name, value in group_values(query).items():
            ids.setdefault(name, {}).setdefault(value, []).append(query.query_id)
    limit = min(_MAX_GROUPS, len(queries) / 2)
    return {
        name: {value: tuple(groups[value]) for value in sorted(groups)}
        for name, groups in ids.items()
        if 1 < len(groups) <= limit
    }


ONE_AGENT: Final = f"add the answers of another; or name the agents' column: {how_to_name('agent')}"
_NAMED: Final = 5
"""Maximum number of queries, answers or pairs that a note lists by name; the note counts the others."""


def notes_of(data: Dataset, to_come: Collection[str] = ()) -> list[str]:
    """Notes on what may surprise a reader of the results, such as empty or missing answers; one line each.

    Agents in ``to_come`` have not been asked yet, so that there are no notes on their missing answers.
    """
    repeats = () if to_come else _of_repeats(data)
    return [*data.notes, *_of_queries(data), *_of_answers(data, to_come), *_of_agents(data, to_come), *repeats]


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
_TEXT: Final = 40
_MISSING = (
    *("nan", "none", "null", "nil", "nat", "n/?a", "#n/a", "<na>", "undefined", "missing", r"#(?:value|ref)!", "-+"),
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
"""Kinds of suspicious answers: for each, a pattern for the beginning of the answer, and advice to the user.

Suspicious answers are noted and judged like others: they may be intended, and leaving them out would favour the agent.
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
        and all(_same(data.answers.get((query_id, first)), data.answers.get((query_id, second))) for query_id in both)
    ]
    if same:
        yield f"agents whose answers are all the same: {listed(same, _NAMED)}; is a file there twice?"
    if pairs and not to_come:
        more = f"; and {len(pairs) - _NAMED} more pairs" if len(pairs) > _NAMED else ""
        yield f"agents without a query in common never meet: {'; '.join(pairs[:_NAMED])}{more}"


def _same(one: Answer | None, other: Answer | None) -> bool:
    return one is not None and other is not None and one.text == other.text


def queries_by_agent(data: Dataset) -> dict[str, set[str]]:
    answered: dict[str, set[str]] = {}
    for query_id, agent in data.answers:
        answered.setdefault(repeat_of(agent)[0], set()).add(query_id)
    return answered


def _of_repeats(data: Dataset) -> Iterator[str]:
    """Notes on repeats that are in no game, and on repeats that are the same text."""
    if data.answerers == data.agents:
        return
    answers: dict[str, dict[str, list[tuple[int, str]]]] = {}
    for (query_id, name), answer in data.answers.items():
        agent, repeat = repeat_of(name)
        answers.setdefault(agent, {}).setdefault(query_id, []).append((repeat, answer.text))
    met = Counter((query_id, repeat_of(name)[1]) for query_id, name in data.answers)
    for agent, by_query in answers.items():
        alone = sum(
            met[query_id, repeat] == 1 and repeat > 1 for query_id, texts in by_query.items() for repeat, _ in texts
        )
        if alone and len(answers) > 1:
            yield (
                f"{counted(alone, 'answer')} of {agent} in no game: games pair repeats 1-1, 2-2 and so on, and no "
                "other agent has that repeat"
            )
        several = [texts for texts in by_query.values() if len(texts) > 1]
        if equal := sum(len({text for _, text in texts}) == 1 for texts in several):
            yield (
                f"{agent} gave one text in all repeats of {equal} of {counted(len(several), 'query', 'queries')}: "
                "equal texts are free ties and no evidence of how it varies; is it cached?"
            )
