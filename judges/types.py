"""The value types that all packages share: queries, answers, prompts, judgments. All are immutable."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct, field

Outcome: TypeAlias = int | str | Mapping[str, float | str] | tuple[str, ...]
"""The parsed value of a judge's reply: a label, a verdict, one value per criterion (a fraction if several samples are
averaged), or a list of texts or labels. If a relevance prompt asks for further fields besides the label, the outcome is
a mapping: the label has the key ``LABEL``, and each other field has its own name as key."""

Form: TypeAlias = Literal["json", "brackets", "word", "text", "list", "labels", "rating"]

LABEL = "label"
"""Key of the relevance label in an outcome that is a mapping, even if the prompt calls that field otherwise."""


Answerability: TypeAlias = Literal["answerable", "partial", "unanswerable", "underspecified"]
"""Whether the documents answer a query: wholly, in part or not at all, or the query leaves open what is meant."""
_ANSWERABLE: Final[Mapping[str, Answerability]] = {
    **dict.fromkeys(("true", "yes", "y", "1", "1.0", "answerable"), "answerable"),
    **dict.fromkeys(("false", "no", "n", "0", "0.0", "unanswerable", "not answerable"), "unanswerable"),
    **dict.fromkeys(("partial", "partially", "partially answerable", "partly answerable"), "partial"),
    "underspecified": "underspecified",
}
ANSWERABILITY: Final = ("answerability", "answerable")
"""Columns of queries that say whether the documents answer them. Judges are told, agents are not."""

Role: TypeAlias = Literal["user", "assistant"]
ROLES: tuple[Role, ...] = get_args(Role)


class Message(Struct, frozen=True):
    """One message of a chat: in a user's conversation, or in the exchange with a judge.

    The messages of a query precede its question. The messages of a prompt follow it: a reply of the judge that was
    rejected, and the request for another reply.
    """

    role: Role
    text: str


class Query(Struct, frozen=True):
    """A question to the agents; an agent that is a Python function gets it as its argument.

    Attributes:
        metadata: the query's further columns in its table; ``conversation`` is the id of the conversation.
        reference: the gold answer, if there is one. Judges of answers see it, agents do not.
        messages: the messages of the conversation before this query, in order; judges and agents see them.

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
        """Make a query from its table columns; messages of an unknown format (in old stores) stay in the metadata."""
        metadata = dict(columns)
        reference = metadata.pop("reference") if columns.get("reference", "").strip() else None
        messages = _messages(columns.get("messages", ""))
        if messages:
            del metadata["messages"]
        return cls(query_id, text, metadata, reference, messages)

    @property
    def columns(self) -> Mapping[str, str]:
        """The query's columns besides id and text, as stored; ``of`` makes the same query from them."""
        columns = dict(self.metadata)
        if self.reference is not None:
            columns["reference"] = self.reference
        if self.messages:
            messages = [{"role": message.role, "content": message.text} for message in self.messages]
            columns["messages"] = json.dumps(messages, ensure_ascii=False)
        return columns if columns == self.metadata else dict(sorted(columns.items()))

    @property
    def thread(self) -> str:
        """The conversation up to and including this query, as JSON; only the query's text if nothing came before."""
        earlier = [[message.role, message.text] for message in self.messages]
        return json.dumps([*earlier, ["user", self.text]], ensure_ascii=False) if earlier else self.text

    @property
    def answerability(self) -> Answerability | None:
        """Whether the documents answer the query, by its column ``answerability`` or ``answerable``; else ``None``."""
        return _ANSWERABLE.get(self.answerability_cell.casefold())

    @property
    def answerability_cell(self) -> str:
        """The text of the column that says whether the query can be answered; empty without one."""
        cells = (self.metadata.get(name, "").strip(" []\"'") for name in ANSWERABILITY)
        return next(filter(None, cells), "")

    def as_asked(self) -> Query:
        """The query as agents get it: without the reference answer and without word of whether it can be answered."""
        shown = {name: value for name, value in self.metadata.items() if name not in ANSWERABILITY}
        return Query(self.query_id, self.text, shown, None, self.messages)

    @property
    def cluster(self) -> str:
        """The query's group in resampling: its conversation, whose results are dependent, else the query itself."""
        return self.metadata.get("conversation") or self.query_id


def conversations(queries: Iterable[Query]) -> dict[str, str]:
    """The conversation id of each query that belongs to a conversation, by query id."""
    return {query.query_id: query.cluster for query in queries if query.cluster != query.query_id}


def _messages(column: str) -> tuple[Message, ...]:
    try:
        messages = tuple(Message(entry["role"], entry["content"]) for entry in json.loads(column))
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()
    valid = all(message.role in ROLES and isinstance(message.text, str) for message in messages)
    return messages if valid else ()


class Document(Struct, frozen=True):
    """A retrieved text. ``metadata`` holds ``title``, ``website`` and ``publish_time`` if they are known."""

    doc_id: str
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)


WITHOUT_TEXT: Final = {"note": "imported without texts"}
"""Metadata that marks a query or an answer that was imported without its text."""


CITATIONS: Final = "citations"
"""Metadata key for an answer's citations: a JSON list of document ids, or of numbers of documents counted from 1."""


class Answer(Struct, frozen=True):
    """The answer of one agent (a system under evaluation) to one query."""

    query_id: str
    agent: str
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_text(self) -> bool:
        """Whether the answer's text is known; people may import verdicts on answers without the answers' texts."""
        return bool(self.text) or dict(self.metadata) != WITHOUT_TEXT


_REPEAT: Final = re.compile(r"(.+) \(repeat ([1-9][0-9]*)\)", re.DOTALL)


def repeat_of(name: str) -> tuple[str, int]:
    """The agent and the number of the repeat from a name such as ``rag (repeat 2)``; other names are repeat 1.

    A system that is asked a query several times gives several answers; the second is stored as one of ``rag (repeat
    2)``. Whoever schedules, asks or judges treats it like the answer of another agent; ``GameTable`` and ``Scores`` put
    the repeats of an agent together.

    >>> repeat_of("rag (repeat 2)"), repeat_of("rag")
    (('rag', 2), ('rag', 1))
    """
    match = _REPEAT.fullmatch(name) if name.endswith(")") else None
    return (match[1], int(match[2])) if match else (name, 1)


def repeat_name(agent: str, repeat: int) -> str:
    return agent if repeat == 1 else f"{agent} (repeat {repeat})"


class Retrieved(Struct, frozen=True):
    """One document in an agent's (or a run's) ranking for a query; ``rank`` counts from 1."""

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
        return {Verdict.A: Verdict.B, Verdict.B: Verdict.A, Verdict.TIE: Verdict.TIE}[self]


class GameOutcome(IntEnum):
    """A verdict as a number: 1 if the answer shown first won, -1 if the second won, 0 for a tie."""

    SECOND = -1
    TIE = 0
    FIRST = 1

    @property
    def verdict(self) -> Verdict:
        return {GameOutcome.FIRST: Verdict.A, GameOutcome.TIE: Verdict.TIE, GameOutcome.SECOND: Verdict.B}[self]

    @property
    def points(self) -> float:
        return (1 + self.value) / 2


GAME_OUTCOMES: Final[Mapping[Hashable, GameOutcome]] = {outcome.verdict: outcome for outcome in GameOutcome}
"""Each verdict (or its text) with its ``GameOutcome``; for millions of verdicts this is faster than a property."""


class Task(StrEnum):
    """The kinds of work that a judge can be asked to do, such as labelling relevance or comparing two answers."""

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
        """Make and cache a member for a task not listed above, such as ``support``; equal names give one member."""
        if not isinstance(value, str) or not value.isidentifier():
            return None
        task = str.__new__(cls, value)
        task._name_, task._value_ = value.upper(), value
        cls._value2member_map_[value] = task
        return task


EXAM_TASKS = (Task.QUESTIONS, Task.GRADING, Task.EXTRACTION, Task.ANSWER_CHECK)

NUGGET_TASKS = (Task.NUGGETS, Task.IMPORTANCE, Task.ASSIGNMENT, Task.PASSAGE_ASSIGNMENT)


class ListRule(Struct, frozen=True):
    """The name and the allowed length of the list in a reply of the form ``list``.

    Attributes:
        name: the reply's field that contains the list.
        fewest: least number of texts in the list.
        most: largest number of texts in the list, ``None`` for any number.
        leeway: whether a list of ``fewer`` texts (at least one) or of ``more`` texts is accepted too, with a note. Of a
            list that is too long, only the first ``most`` texts are used, since the prompt asks for the most important
            ones first.
    """

    name: str
    fewest: int = 1
    most: int | None = None
    leeway: Literal["", "fewer", "more"] = ""


class ReplyContract(Struct, frozen=True):
    """The format that a judge's reply must have.

    Attributes:
        reason: name of the text field that explains the choice; empty if replies have no explanation.
        choices: for each field of the outcome the words (or whole numbers) that the judge may choose, and the value
            that each word means. With a single field the outcome is a plain value, with several a mapping.
        form: ``json`` is one JSON object; ``brackets`` is free text that ends in ``[[word]]``, the form of the
            published pairwise prompts; ``word`` is one allowed word and no explanation, the form of the published
            yes/no prompts; ``text`` is an answer in the judge's own words, and the single field of ``choices`` then
            lists special words and their values ("unanswerable" for the empty text); ``list`` is one JSON object with a
            list of distinct texts and nothing else; ``labels`` is one JSON object with a list of ``length`` words that
            its single choice allows, one word for each item of the inputs; ``rating`` is one whole number from 0 to 5
            and no explanation, the form of the published self-rating prompts.
        texts: names of further text fields, whose texts become part of the outcome.
        label: name of the field with the relevance label, if the outcome of a relevance prompt is a mapping.
        listed: name and length of the list, for the form ``list``, which has neither reason nor choices.
        length: number of labels in the reply, for the form ``labels``, which has no reason.
        levels: meaning of each rating that the prompt explains, for the form ``rating``.
        mark: letters that the reply must contain. They occur in none of the texts that the judge sees, so a reply that
            contains them cannot be copied from these texts. Only a request that follows such a suspected copy has a
            mark, see ``judges.judge.asked_again``.
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
    def mark_field(self) -> dict[str, str]:
        """Name and value of the extra JSON field in which the reply must repeat the mark; empty if there is no mark."""
        if not self.mark:
            return {}
        name = "mark"
        while name in (*self.text_fields, *self.outcome_fields):
            name += "_"
        return {name: self.mark}

    @property
    def text_fields(self) -> tuple[str, ...]:
        """Names of the reply's free-text fields, the reason first."""
        return (self.reason, *self.texts) if self.reason else self.texts

    @property
    def is_object(self) -> bool:
        """Whether the reply must be a JSON object, a format that some servers can enforce."""
        return self.form in ("json", "list", "labels")

    @property
    def outcome_fields(self) -> tuple[str, ...]:
        """Names of the reply's fields that contain labels, verdicts or the list."""
        return (self.listed.name,) if self.listed is not None else tuple(self.choices)


def word_per_value(words: Mapping[str | int, int | str]) -> list[str | int]:
    """The first word for each value of a choice: prompts ask for these words, and the parser accepts synonyms too."""
    first: dict[int | str, str | int] = {}
    for word, value in words.items():
        first.setdefault(value, word)
    return list(first.values())


class AnnotatedDocument(Struct, frozen=True):
    """A document with the relevance judge's label and reason; prompts for judging answers may include both."""

    document: Document
    label: int | None = None
    reason: str = ""


class Inputs(Struct, frozen=True):
    """The texts from which a prompt was rendered. Offline judges read them; no server gets them.

    ``documents`` holds the one document of a relevance prompt or the reference documents of an answer prompt;
    ``answers`` holds none, one, or two answers in the order shown; ``items`` the questions or nuggets of a test bank by
    which the texts are graded, or the nuggets that were found so far.
    """

    query: Query
    documents: tuple[AnnotatedDocument, ...] = ()
    answers: tuple[Answer, ...] = ()
    items: tuple[str, ...] = ()


class Prompt(Struct, frozen=True):
    """One request to a judge. The model sees ``system``, ``user``, ``turns`` and, on some servers, a JSON schema.

    Attributes:
        sample: number of this request, from 0, if the judge gets the same prompt several times; providers add the
            number to the seed.
        shared: number of characters at the beginning of ``user`` with which other prompts begin too, after the same
            ``system``; 0 if there are no such prompts.
    """

    task: Task
    name: str
    version: str
    system: str
    user: str
    contract: ReplyContract
    inputs: Inputs
    turns: tuple[Message, ...] = ()
    sample: int = 0
    shared: int = 0

    @property
    def beginning(self) -> str:
        """The text with which other prompts begin too; without ``shared`` only the system message."""
        return f"{self.system}\n{self.user[: self.shared]}"

    @property
    def texts(self) -> list[str]:
        """Every text of the prompt that the model sees."""
        return [self.system, self.user, *(turn.text for turn in self.turns)]

    def messages(self, system: str, user: str) -> list[dict[str, str]]:
        """Chat messages for a server: the texts ``system`` (unless empty) and ``user``, then the prompt's ``turns``."""
        first = [Message("user", user), *self.turns]
        messages = [{"role": message.role, "content": message.text} for message in first]
        return [{"role": "system", "content": system}, *messages] if system else messages


class Usage(Struct, frozen=True):
    """Tokens of one call, or the sum over the calls of a judgment; ``None`` where the server reports no number.

    ``input_tokens`` are all tokens sent. They include tokens read from the server's prompt cache
    (``cached_input_tokens``) and tokens written to it (``cache_write_tokens``: only Anthropic reports them, and charges
    more for them; the store contains their cost, not their number).
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def total(self) -> int | None:
        return (
            None if self.input_tokens is None or self.output_tokens is None else self.input_tokens + self.output_tokens
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.cached_input_tokens, other.cached_input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cache_write_tokens, other.cache_write_tokens),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    known = [tokens for tokens in (left, right) if tokens is not None]
    return sum(known) if known else None


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    FILTER = "content_filter"
    REFUSAL = "refusal"
    TOO_LONG = "too_long"
    OTHER = "other"


class Allowance(Struct, frozen=True):
    """Remaining rate limits as a server reports them: requests, tokens, and seconds until each limit is reset."""

    requests: int | None = None
    requests_reset_s: float | None = None
    tokens: int | None = None
    tokens_reset_s: float | None = None


class Completion(Struct, frozen=True):
    """One reply of a provider.

    Attributes:
        model: the server's name for the model, which may be more exact than the requested one.
        probability: the model's probability of the reply, if it computes one.
        aside: name of the response's field with the model's reasoning, if the model wrote nothing else.
    """

    text: str
    model: str
    finish: Finish = Finish.STOP
    usage: Usage = Usage()
    allowance: Allowance | None = None
    probability: float | None = None
    aside: str = ""


class Judgment(Struct, frozen=True):
    """The result of a valid reply from a judge, with its cost and times.

    Attributes:
        judgment_id: hash of the texts judged and of all settings that affect the reply, see ``judges.identity``.
        outcome: the label, verdict or criteria scores.
        reason: the judge's explanation.
        reply: the reply's full text, so that a better parser can read it again without a new call.
        rejected: earlier replies to the same prompt that violated the reply contract.
        latency_s: seconds from the first call's start to the last reply.
        cost_usd: price of all calls, ``None`` if the model's price is not known.
        replied_s: seconds spent in calls that returned a reply; ``None`` for a judgment read from the store.
        called_s: seconds spent in all calls, without the waits between them; ``None`` for a judgment from the store.
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
    """A judgment without a valid reply. Failures are stored, counted and shown, and never become labels.

    Attributes:
        cause: one of ``judges.errors.CAUSES``.
        message: one line that describes the failure.
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
    """Times, tokens, cost and errors of one call to a judge; contains no prompt and no reply.

    Attributes:
        at: end of the call, in seconds since 1970.
        call: number of the call within its judgment, from 1.
        reask: number of earlier replies to the same prompt that were rejected.
        finish: why the model stopped writing, ``None`` if there was no reply.
        cause: the error's cause, one of ``judges.errors.CAUSES``, ``None`` if there was a reply.
        allowed: the judge's limit on concurrent calls at that time.
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
    label = outcome.get(LABEL) if isinstance(outcome, Mapping) else outcome
    if not isinstance(label, int):
        raise TypeError(f"{outcome!r} holds no relevance label")
    return label


def details_of(outcome: Outcome) -> dict[str, float | str]:
    """The outcome's fields besides the relevance label; empty if the prompt asks for the label only."""
    return {name: value for name, value in outcome.items() if name != LABEL} if isinstance(outcome, Mapping) else {}
