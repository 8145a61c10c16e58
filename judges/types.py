"""The vocabulary every package shares. All values are immutable; a failure is a value too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct, field

Outcome: TypeAlias = int | str | Mapping[str, float | str] | tuple[str, ...]
"""What counts in a reply: a label, a verdict, one value per criterion (a fraction as the mean of several samples), or a
list of texts or labels. A relevance prompt that asks for more than its label gives a mapping, with the label under
``LABEL`` and the other fields under their names."""

Form: TypeAlias = Literal["json", "brackets", "word", "text", "list", "labels", "rating"]
"""How a reply is written, see ``ReplyContract``."""

LABEL = "label"
"""Where a relevance outcome that is a mapping holds its label, whatever the prompt calls that field."""


Role: TypeAlias = Literal["user", "assistant"]
ROLES: tuple[Role, ...] = get_args(Role)


class Message(Struct, frozen=True):
    """What was said in a conversation before a question."""

    role: Role
    text: str


class Query(Struct, frozen=True):
    """A question put to the agents; an agent that is a function gets it.

    Attributes:
        metadata: the other columns of its table; ``conversation`` names the conversation that the query is a turn of.
        reference: the gold answer, if there is one. Judges of answers see it, agents do not.
        messages: earlier messages of the conversation, in order; judges and agents see them.

    Example:
        >>> def echo(query: rl.Query) -> str:
        ...     return f"You asked: {query.text}"
        >>> echo(rl.Query("q1", "Why do cats purr?"))
        'You asked: Why do cats purr?'
    """

    query_id: str
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    reference: str | None = None
    messages: tuple[Message, ...] = ()

    @classmethod
    def of(cls, query_id: str, text: str, columns: Mapping[str, str]) -> Query:
        """A query of a table's further columns: metadata but for ``reference`` and ``messages``, where not blank.

        Messages of another form, as a store of an earlier version may have them, are metadata.
        """
        messages = _messages(columns["messages"]) if columns.get("messages") else ()
        reference = columns.get("reference", "").strip() and columns["reference"]
        special = {"reference"} if reference else set[str]()
        special |= {"messages"} if messages else set()
        metadata = {name: value for name, value in columns.items() if name not in special}
        return cls(query_id, text, metadata, reference or None, messages)

    @property
    def columns(self) -> Mapping[str, str]:
        """The further columns of a table, from which ``of`` makes the query again; sorted, as the store has them."""
        columns = dict(self.metadata)
        if self.reference is not None:
            columns["reference"] = self.reference
        if self.messages:
            said = [{"role": each.role, "content": each.text} for each in self.messages]
            columns["messages"] = json.dumps(said, ensure_ascii=False)
        return columns if columns == self.metadata else dict(sorted(columns.items()))

    @property
    def thread(self) -> str:
        """All that was said up to it as one text, which tells queries apart; its text where nothing was before it."""
        said = [[each.role, each.text] for each in self.messages]
        return json.dumps([*said, ["user", self.text]], ensure_ascii=False) if said else self.text

    @property
    def cluster(self) -> str:
        """What its verdicts and scores depend on each other within: its conversation, else the query itself."""
        return self.metadata.get("conversation") or self.query_id


def conversations(queries: Iterable[Query]) -> dict[str, str]:
    """The cluster of each query that is a turn of a conversation, by its id; all others are clusters of their own."""
    return {query.query_id: query.cluster for query in queries if query.cluster != query.query_id}


def _messages(column: str) -> tuple[Message, ...]:
    try:
        said = tuple(Message(each["role"], each["content"]) for each in json.loads(column))
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()
    return said if all(each.role in ROLES and isinstance(each.text, str) for each in said) else ()


class Document(Struct, frozen=True):
    """A retrieved text. ``title``, ``website`` and ``publish_time`` are in ``metadata`` where known."""

    doc_id: str
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)


WITHOUT_TEXT: Final = {"note": "imported without texts"}
"""Metadata of a query or an answer of which nothing but the name is known."""


class Answer(Struct, frozen=True):
    """What one agent, the system under evaluation, answered to one query."""

    query_id: str
    agent: str
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_text(self) -> bool:
        """Whether its text is known: verdicts may be imported without."""
        return bool(self.text) or dict(self.metadata) != WITHOUT_TEXT


class Retrieved(Struct, frozen=True):
    """One agent's (or run's) retrieval of one document; ``rank`` counts from 1."""

    query_id: str
    doc_id: str
    agent: str
    rank: int
    score: float | None = None


class Verdict(StrEnum):
    """Which of two answers is better: the first shown, the second shown, or neither."""

    A = "A"
    B = "B"
    TIE = "TIE"

    def swapped(self) -> Verdict:
        """The same verdict with the two sides exchanged."""
        return {Verdict.A: Verdict.B, Verdict.B: Verdict.A, Verdict.TIE: Verdict.TIE}[self]


class Task(StrEnum):
    """What a judge is asked to do."""

    RELEVANCE = "relevance"
    PAIRWISE = "pairwise"
    CRITERIA = "criteria"
    EXTRACTION = "extraction"
    QUESTIONS = "questions"
    GRADING = "grading"
    ANSWER_CHECK = "answer_check"
    NUGGETS = "nuggets"
    IMPORTANCE = "importance"
    ASSIGNMENT = "assignment"
    ANSWERING = "answering"
    REWRITING = "rewriting"
    PASSAGE_ASSIGNMENT = "passage_assignment"
    QUERIES = "queries"
    ANSWERABLE = "answerable"

    @classmethod
    def _missing_(cls, value: object) -> Task | None:
        """Stages may bring tasks along that are not listed here; each is one value, however often it is made."""
        if not isinstance(value, str) or not value.isidentifier():
            return None
        task = str.__new__(cls, value)
        task._name_, task._value_ = value.upper(), value
        cls._value2member_map_[value] = task
        return task


EXAM_TASKS = (Task.QUESTIONS, Task.GRADING, Task.EXTRACTION, Task.ANSWER_CHECK)
"""What belongs to an exam."""

NUGGET_TASKS = (Task.NUGGETS, Task.IMPORTANCE, Task.ASSIGNMENT, Task.PASSAGE_ASSIGNMENT)
"""What judges do with nuggets, in this order for each query."""


class ListRule(Struct, frozen=True):
    """The list of a reply of the form ``list``.

    Attributes:
        name: the field that holds it.
        fewest: texts that it must have.
        most: texts that it may have, ``None`` for any number.
        leeway: which other number is taken, and said: ``fewer`` down to one, or ``more``, of which the first ``most``
            are kept, since the judge was asked to begin with what matters most.
    """

    name: str
    fewest: int = 1
    most: int | None = None
    leeway: Literal["", "fewer", "more"] = ""


class ReplyContract(Struct, frozen=True):
    """What a reply must consist of.

    Attributes:
        reason: name of the text field that explains the choice; empty where there is none.
        choices: for each field that counts, its allowed words (or whole numbers) and their values. A single
            field makes the outcome a plain value, several make it a mapping.
        form: ``json`` is one JSON object; ``brackets`` is free text that ends in ``[[word]]``, the form of
            the published pairwise prompts; ``word`` is one allowed word and no explanation, the form of the
            published yes/no prompts; ``text`` is an answer in the judge's own words, and the single field of
            ``choices`` then lists the words that stand for something else ("unanswerable" for the empty text);
            ``list`` is one JSON object with a list of texts, each once, and nothing else; ``labels`` is one JSON
            object with a list of ``length`` words of its one choice, one for each item of the inputs; ``rating`` is one
            whole number from 0 to 5 and no explanation, the form of the published self-rating prompts.
        texts: further text fields, kept in the outcome.
        label: which choice is the relevance label, where the outcome of a relevance prompt is a mapping.
        listed: of the form ``list``, which has neither reason nor choices.
        length: of the form ``labels``, which has no reason.
        levels: of the form ``rating``, what the prompt says that each number stands for, as far as it does.
        mark: letters that the reply must carry, and that none of the texts shown holds: with them it is no quotation.
            Only a judge that is asked again has to write one, see ``judges.judge.asked_again``.
    """

    reason: str
    choices: Mapping[str, Mapping[str | int, int | str]]
    form: Form = "json"
    texts: tuple[str, ...] = ()
    label: str | None = None
    listed: ListRule | None = None
    length: int | None = None
    levels: Mapping[int, str] = field(default_factory=dict)
    mark: str = ""

    @property
    def marking(self) -> dict[str, str]:
        """The field that holds the mark in a reply that is a JSON object; empty where none is asked for."""
        if not self.mark:
            return {}
        name = "mark"
        while name in (*self.spoken, *self.counted):
            name += "_"
        return {name: self.mark}

    @property
    def spoken(self) -> tuple[str, ...]:
        """Names of the fields of free text."""
        return (self.reason, *self.texts) if self.reason else self.texts

    @property
    def is_object(self) -> bool:
        """Whether a reply is a JSON object, which a server can be held to."""
        return self.form in ("json", "list", "labels")

    @property
    def counted(self) -> tuple[str, ...]:
        """Names of the fields that the outcome is made of."""
        return (self.listed.name,) if self.listed is not None else tuple(self.choices)


def word_per_value(words: Mapping[str | int, int | str]) -> list[str | int]:
    """The first word for each value of a choice: what a judge is told to say, where others are understood as well."""
    first: dict[int | str, str | int] = {}
    for word, value in words.items():
        first.setdefault(value, word)
    return list(first.values())


class AnnotatedDocument(Struct, frozen=True):
    """A document with the relevance judge's label and reason, as an answer judge sees it."""

    document: Document
    label: int | None = None
    reason: str = ""


class Inputs(Struct, frozen=True):
    """What a prompt was rendered from. Offline judges read it; it is never sent anywhere.

    ``documents`` holds the one document of a relevance prompt or the reference documents of an answer
    prompt; ``answers`` holds none, one, or two answers in the order shown; ``items`` the questions or nuggets of a test
    bank that the texts are held against, or the list of nuggets that goes on.
    """

    query: Query
    documents: tuple[AnnotatedDocument, ...] = ()
    answers: tuple[Answer, ...] = ()
    items: tuple[str, ...] = ()


class Turn(Struct, frozen=True):
    """A later message of a conversation, used to ask again after a reply outside the contract."""

    role: Literal["user", "assistant"]
    text: str


class Prompt(Struct, frozen=True):
    """One request to a judge. ``system`` and ``user`` are all that a model sees, besides the schema."""

    task: Task
    name: str
    version: str
    system: str
    user: str
    contract: ReplyContract
    inputs: Inputs
    turns: tuple[Turn, ...] = ()
    sample: int = 0
    """Which of several repetitions this is, where a judge is asked more than once; a provider adds it to the seed."""


class Usage(Struct, frozen=True):
    """Tokens of one call, or summed over the calls of a judgment. ``None`` where the server did not say.

    ``input_tokens`` are all that were sent, among them those that came from the server's prompt cache
    (``cached_input_tokens``) and those that it took in (``cache_write_tokens``: only Anthropic counts them and asks
    more for them; the store keeps what they cost, not their number).
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cache_write_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.cached_input_tokens, other.cached_input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cache_write_tokens, other.cache_write_tokens),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


class Finish(StrEnum):
    """Why a model stopped writing."""

    STOP = "stop"
    LENGTH = "length"
    FILTER = "content_filter"
    REFUSAL = "refusal"
    TOO_LONG = "too_long"
    OTHER = "other"


class Allowance(Struct, frozen=True):
    """What a server says is left of its rate limits: requests and tokens, and seconds until there are more."""

    requests: int | None = None
    requests_reset_s: float | None = None
    tokens: int | None = None
    tokens_reset_s: float | None = None


class Completion(Struct, frozen=True):
    """One reply, whole.

    ``model`` is the name the server gave, which may be more exact than the one asked; ``probability`` is the reply's by
    the model itself, where it computes one;
    ``aside`` names the field that holds reasoning, where there is nothing else.
    """

    text: str
    model: str
    finish: Finish = Finish.STOP
    usage: Usage = Usage()
    allowance: Allowance | None = None
    probability: float | None = None
    aside: str = ""


class Judgment(Struct, frozen=True):
    """A reply that fulfils its contract.

    Attributes:
        judgment_id: hash of everything that was judged and how, see ``judges.identity``.
        outcome: the label, verdict or criteria scores.
        reason: the judge's explanation.
        reply: the whole reply, so that a better parser needs no new call.
        rejected: earlier replies to the same prompt that were outside the contract.
        latency_s: seconds from the first call's start to the last reply.
        cost_usd: price of all calls, ``None`` where the model's price is not known.
        replied_s: seconds of the calls that brought a reply; of a stored judgment nobody knows them.
        called_s: of all calls, without the waits between them.
    """

    judgment_id: str
    outcome: Outcome
    reason: str
    reply: str
    model: str
    usage: Usage = Usage()
    calls: int = 1
    latency_s: float = 0.0
    cost_usd: float | None = None
    rejected: tuple[str, ...] = ()
    replied_s: float | None = None
    called_s: float | None = None


class JudgeFailure(Struct, frozen=True):
    """A judgment that did not come about. It is stored, counted and shown, and never becomes a label.

    Attributes:
        cause: short machine-readable cause, one of ``judges.errors.CAUSES``.
        message: one line for people.
        reply: the last reply, if there was one.
    """

    judgment_id: str
    cause: str
    message: str
    reply: str | None = None
    model: str = ""
    usage: Usage = Usage()
    calls: int = 1
    latency_s: float = 0.0
    cost_usd: float | None = None
    rejected: tuple[str, ...] = ()


class CallTrace(Struct, frozen=True):
    """One call to a judge, without what was said.

    Attributes:
        at: when it ended, in seconds since 1970.
        call: which call of its judgment, counting from 1.
        reask: how many replies to the same prompt had been refused before.
        finish: why the model stopped writing, ``None`` if there was no reply.
        cause: of the error, one of ``judges.errors.CAUSES``, ``None`` if there was a reply.
        allowed: calls at once that the judge allowed itself then.
    """

    at: float
    judge: str
    model: str
    task: Task
    judgment_id: str
    call: int
    reask: int
    latency_s: float
    finish: str | None
    cause: str | None
    usage: Usage
    cost_usd: float | None
    allowed: int


def label_of(outcome: Outcome) -> int:
    """The relevance label of a relevance judgment's outcome, whatever else the prompt asked for.

    Raises:
        TypeError: the outcome is of another task.
    """
    label = outcome.get(LABEL) if isinstance(outcome, Mapping) else outcome
    if not isinstance(label, int):
        raise TypeError(f"{outcome!r} holds no relevance label")
    return label


def details_of(outcome: Outcome) -> dict[str, float | str]:
    """What a relevance judgment says besides its label, by field; nothing where the prompt asked for the label only."""
    if not isinstance(outcome, Mapping):
        return {}
    return {name: value for name, value in outcome.items() if name != LABEL}
