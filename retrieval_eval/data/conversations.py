"""Reads the earlier messages of queries in conversations, from a column ``messages`` or from rows of earlier turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from judges.errors import InputError
from judges.types import Message, Query, Role
from retrieval_eval.data.rows import Row, cell_text, id_of_text, spelling_problem

_ROLES: Final[Mapping[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "agent": "assistant",
    "ai": "assistant",
}
"""Names of roles in the formats of OpenAI, LangChain and MTRAG, mapped to ``user`` and ``assistant``."""
_INTERNAL_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
"""Roles of OpenAI and LangChain whose messages are neither the user's nor the assistant's."""
_SIDES: Final = ("user", "assistant")
_ASKED: Final = ("inputs", "question", "query", "user", "human", "input")
_ANSWERED: Final = ("outputs", "answer", "response", "assistant", "ai", "bot", "output")
"""``_ASKED`` and ``_ANSWERED`` are possible keys of the user's and the assistant's text in an object that contains
both."""
_MOST_SHOWN: Final = 40


def with_messages(row: Row) -> Row:
    """The row with the question as ``query`` and the earlier messages as ``messages``, in the store's format.

    If the row has no question as ``query``, its last message is the question. A row without messages is returned
    unchanged. System and tool messages and the assistant's tool calls are removed and counted in ``Row.left_out``.
    """
    messages, query = row.values.get("messages"), row.values.get("query")
    if isinstance(query, list) or row.text("query").lstrip().startswith("[{"):
        entries = row.listed("query")
        if entries and any(isinstance(message, dict) for message in entries):  # ragas puts a conversation there
            messages, query = entries, None
    if messages in (None, "", []) or (isinstance(messages, str) and not messages.strip()):
        return row
    objects = _objects(replace(row, values={"messages": messages}))
    spoken = [(number, message) for number, message in enumerate(objects, start=1) if not _is_internal(message)]
    row, question = replace(row, left_out=len(objects) - len(spoken)), cell_text(query)
    if not spoken:
        if not question.strip():
            raise row.error(
                "'messages' has no message of the user, and there is no 'query'; make the question the last message"
            )
        return replace(row, values={**row.values, "messages": ""})
    *before, last = (_message(row, number, message) for number, message in spoken)
    if not question.strip():
        if last.role != "user":
            problem = (
                "the last of 'messages' is the assistant's, and there is no 'query'; make the question the last message"
            )
            raise row.error(problem, last.text[:_MOST_SHOWN])
        question = last.text
    elif last != Message("user", question.strip()):
        before.append(last)
    earlier = Query("", "", messages=tuple(before)).columns.get("messages", "")
    return replace(row, values={**row.values, "query": question, "messages": earlier})


def _objects(row: Row) -> list[dict[str, Any]]:
    entries = row.listed("messages")
    messages = [None] if entries is None else [message for entry in entries for message in _of_turn(entry)]
    objects = [entry for entry in messages if isinstance(entry, dict)]
    if len(objects) < len(messages):
        name = row.theirs("messages")
        problem = f"{name!r} must be a list of objects with role and content, else say columns: {{messages: null}}"
        raise row.error(problem, row.text("messages")[:_MOST_SHOWN])
    return objects


def _of_turn(entry: Any) -> list[Any]:
    """Split a turn in LangChain's or Prompt flow's form into two messages; any other entry gives a list of itself."""
    sides: list[Any] = []
    if isinstance(entry, list | tuple):
        sides = list(entry)
    elif isinstance(entry, dict) and not _role(entry):
        sides = [next((entry[name] for name in names if name in entry), None) for names in (_ASKED, _ANSWERED)]
        sides = [next(iter(side.values()), None) if isinstance(side, dict) else side for side in sides]
    if len(sides) == len(_SIDES) and all(isinstance(side, str) for side in sides):
        return [{"role": role, "content": side} for role, side in zip(_SIDES, sides, strict=True)]
    return [entry]


def _role(message: Mapping[str, Any]) -> str:
    return str(next((message[name] for name in ("role", "speaker", "type") if name in message), ""))


def _text(message: Mapping[str, Any]) -> Any:
    return next((message[name] for name in ("content", "text") if name in message), None)


def _is_internal(message: Mapping[str, Any]) -> bool:
    calls = message.get("tool_calls") or message.get("function_call")
    return _role(message) in _INTERNAL_ROLES or bool(calls and not _text(message))


def _message(row: Row, number: int, message: Mapping[str, Any]) -> Message:
    role, text = _role(message), _text(message)
    if role not in _ROLES:
        problem = f"message {number} of 'messages' is neither the user's nor the assistant's; leave it out"
        raise row.error(problem, role or cell_text(dict(message))[:_MOST_SHOWN])
    # OpenAI splits a message into parts.
    if isinstance(text, list) and text and all(isinstance(part, dict) for part in text):
        if other_types := [str(part.get("type")) for part in text if not isinstance(part.get("text"), str)]:
            problem = f"message {number} of 'messages' holds more than text; judges read text only, so leave it out"
            raise row.error(problem, other_types[0])
        text = "\n".join(part["text"] for part in text)
    if not isinstance(text, str) or not text.strip():
        problem = f"message {number} of 'messages' has no text as 'content'; write it, or leave the message out"
        raise row.error(problem, cell_text(dict(message))[:_MOST_SHOWN])
    return Message(_ROLES[role], text.strip())


def query_id_of(row: Row) -> str:
    """Make an id for a query without one: a hash of its text and its messages (or its conversation and turn)."""
    named = [row.text("conversation"), row.text("turn")]
    place = [row.text("messages")] if row.text("messages") else named if all(named) else []
    return id_of_text("q", "\n".join([*place, row.text("query")]))


def earlier_turns(rows: Mapping[str, Row]) -> dict[str, list[str]]:
    """The ids of the earlier queries in each query's conversation, by query id, from ``conversation`` and ``turn``.

    Empty if the rows lack these columns, or have messages, which contain the assistant's replies as well.
    """
    if any(row.text("messages") for row in rows.values()):
        return {}
    conversations: dict[str, dict[int, str]] = {}
    for query_id, row in rows.items():
        if "turn" not in row.values or not (name := row.text("conversation").strip()):
            continue
        text = row.text("turn").strip().removesuffix(".0")  # pandas writes whole numbers so if the column has gaps
        if not text.isdecimal():
            raise row.error("'turn' must be a whole number: number the turns of a conversation from 1", text or None)
        turns = conversations.setdefault(name, {})
        if (other := turns.setdefault(int(text), query_id)) != query_id:
            problem = f"turn {text} of conversation {name!r} is also in {rows[other].place}; number each once"
            raise row.error(problem, text)
    earlier: dict[str, list[str]] = {}
    for turns in conversations.values():
        before, asked = min(1, *turns) - 1, list[str]()
        for number, query_id in sorted(turns.items()):
            if number != before + 1:
                row, problem = rows[query_id], f"turn {before + 1} of this conversation is missing; add its query"
                raise row.error(problem, row.text("conversation"))
            earlier[query_id], before = list(asked), number
            asked.append(query_id)
    return earlier


def with_turns(queries: Mapping[str, Query], earlier: Mapping[str, Sequence[str]]) -> dict[str, Query]:
    """The queries with their earlier turns as messages; gold answers, if given, become the assistant's messages."""

    def messages(query: Query) -> list[Message]:
        answered = [] if query.reference is None else [Message("assistant", query.reference)]
        return [Message("user", query.text), *answered]

    threaded = dict(queries)
    for query_id, others in earlier.items():
        if others:
            thread = tuple(each for other in others for each in messages(queries[other]))
            threaded[query_id] = replace(queries[query_id], messages=thread)
    return threaded


def note_of_left_out(rows: Iterable[Row]) -> str:
    """A note that says how many messages ``with_messages`` removed; ``""`` if it removed none."""
    left_out = sum(row.left_out for row in rows)
    if not left_out:
        return ""
    return f"messages of systems and tools are left out ({left_out:,}): judges, agents and people do not see them"


def require_one_spelling(names: Iterable[str]) -> None:
    spelt: dict[str, str] = {}
    for name in names:
        if problem := spelling_problem("conversations", name, spelt):
            raise InputError(problem)


def with_conversations(queries: Mapping[str, Query]) -> tuple[dict[str, Query], str]:
    """The queries with ``conversation`` in their metadata, and a note that says how queries were grouped.

    If no query names its conversation, queries whose messages begin with the same message form one conversation.
    """
    require_one_spelling(
        query.metadata["conversation"] for query in queries.values() if "conversation" in query.metadata
    )
    known = any("conversation" in query.metadata for query in queries.values())
    if known or not any(query.messages for query in queries.values()):
        return dict(queries), ""
    named = {}
    for query_id, query in queries.items():
        first = query.messages[0].text if query.messages else query.text
        named[query_id] = replace(query, metadata={**query.metadata, "conversation": id_of_text("c", first)})
    number = len({query.cluster for query in named.values()})
    if number == len(named):
        return dict(queries), ""
    return named, (
        f"{len(named):,} queries count as turns of {number:,} conversations, since those that begin with the same "
        "message are one; to say it yourself, add a column 'conversation'"
    )
