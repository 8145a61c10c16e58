"""Queries that are turns of conversations: what was said before them, out of ``messages`` or of the earlier turns."""

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
"""As OpenAI, LangChain and MTRAG call them."""
_UNSAID: Final = frozenset({"system", "developer", "tool", "function"})
"""Roles whose messages neither a user nor an assistant said to the other, as OpenAI and LangChain call them."""
_SIDES: Final = ("user", "assistant")
_ASKED: Final = ("inputs", "question", "query", "user", "human", "input")
_ANSWERED: Final = ("outputs", "answer", "response", "assistant", "ai", "bot", "output")
"""What the two sides of a turn are called, where it is one object."""
_SHOWN: Final = 40
"""Characters of a value that an error shows."""


def with_messages(row: Row) -> Row:
    """The row with the question as its ``query`` and what was said before it as ``messages``, in the form of the store.

    The question is the last of the messages where the row has no other. A row without messages stays as it is.
    Messages of systems and tools, and the assistant's calls of tools, are left out and counted (``Row.left_out``).

    Raises:
        DataError: the messages are no list of messages of user and assistant, or do not end with a question.
    """
    given, query = row.values.get("messages"), row.values.get("query")
    if isinstance(query, list) or row.text("query").lstrip().startswith("[{"):
        turns = row.listed("query")
        if turns and any(isinstance(each, dict) for each in turns):  # as ragas has a conversation
            given, query = turns, None
    if given in (None, "", []) or (isinstance(given, str) and not given.strip()):
        return row
    listed = _objects(replace(row, values={"messages": given}))
    spoken = [(number, each) for number, each in enumerate(listed, start=1) if not _is_unsaid(each)]
    row, question = replace(row, left_out=len(listed) - len(spoken)), cell_text(query)
    if not spoken:
        if not question.strip():
            raise row.error("'messages' has none of the user, and there is no 'query'; end them with the question")
        return replace(row, values={**row.values, "messages": ""})
    *before, last = (_message(row, number, each) for number, each in spoken)
    if not question.strip():
        if last.role != "user":
            problem = "the last of 'messages' is the assistant's, and there is no 'query'; end them with the question"
            raise row.error(problem, last.text[:_SHOWN])
        question = last.text
    elif last != Message("user", question.strip()):
        before.append(last)
    said = Query("", "", messages=tuple(before)).columns.get("messages", "")
    return replace(row, values={**row.values, "query": question, "messages": said})


def _objects(row: Row) -> list[dict[str, Any]]:
    listed = row.listed("messages")
    said = [None] if listed is None else [message for each in listed for message in _of_turn(each)]
    objects = [each for each in said if isinstance(each, dict)]
    if len(objects) < len(said):
        name = row.theirs("messages")
        problem = f"{name!r} must be a list of objects with role and content, else say columns: {{messages: null}}"
        raise row.error(problem, row.text("messages")[:_SHOWN])
    return objects


def _of_turn(each: Any) -> list[Any]:
    """What a user and an assistant said in a turn, as LangChain and Prompt flow write it; a message as it is."""
    sides: list[Any] = []
    if isinstance(each, list | tuple):
        sides = list(each)
    elif isinstance(each, dict) and not _role(each):
        sides = [next((each[name] for name in names if name in each), None) for names in (_ASKED, _ANSWERED)]
        sides = [next(iter(side.values()), None) if isinstance(side, dict) else side for side in sides]
    if len(sides) == len(_SIDES) and all(isinstance(side, str) for side in sides):
        return [{"role": role, "content": side} for role, side in zip(_SIDES, sides, strict=True)]
    return [each]


def _role(each: Mapping[str, Any]) -> str:
    return str(next((each[name] for name in ("role", "speaker", "type") if name in each), ""))


def _text(each: Mapping[str, Any]) -> Any:
    return next((each[name] for name in ("content", "text") if name in each), None)


def _is_unsaid(each: Mapping[str, Any]) -> bool:
    calls = each.get("tool_calls") or each.get("function_call")
    return _role(each) in _UNSAID or bool(calls and not _text(each))


def _message(row: Row, number: int, each: Mapping[str, Any]) -> Message:
    role, text = _role(each), _text(each)
    if role not in _ROLES:
        problem = f"message {number} of 'messages' is neither the user's nor the assistant's; leave it out"
        raise row.error(problem, role or cell_text(dict(each))[:_SHOWN])
    if isinstance(text, list) and text and all(isinstance(part, dict) for part in text):  # OpenAI's parts of a message
        if strange := [str(part.get("type")) for part in text if not isinstance(part.get("text"), str)]:
            problem = f"message {number} of 'messages' holds more than text; judges read text only, so leave it out"
            raise row.error(problem, strange[0])
        text = "\n".join(part["text"] for part in text)
    if not isinstance(text, str) or not text.strip():
        problem = f"message {number} of 'messages' has no text as 'content'; write it, or leave the message out"
        raise row.error(problem, cell_text(dict(each))[:_SHOWN])
    return Message(_ROLES[role], text.strip())


def query_id_of(row: Row) -> str:
    """The id of a query that has none, of its text and of its place in a conversation; see ``with_messages``."""
    named = [row.text("conversation"), row.text("turn")]
    place = [row.text("messages")] if row.text("messages") else named if all(named) else []
    return id_of_text("q", "\n".join([*place, row.text("query")]))


def earlier_turns(rows: Mapping[str, Row]) -> dict[str, list[str]]:
    """By query the queries before it in its conversation, by the columns ``conversation`` and ``turn``.

    Empty where the rows have no such columns, or messages, which say more.

    Args:
        rows: by query id.

    Raises:
        DataError: a turn is no whole number, stands twice, or is missing between others or before them.
    """
    if any(row.text("messages") for row in rows.values()):
        return {}
    conversations: dict[str, dict[int, str]] = {}
    for query_id, row in rows.items():
        if "turn" not in row.values or not (name := row.text("conversation").strip()):
            continue
        text = row.text("turn").strip().removesuffix(".0")  # as pandas writes whole numbers of a column with gaps
        if not text.isdecimal():
            raise row.error("'turn' must be a whole number: number the turns of a conversation from 1", text or None)
        turns = conversations.setdefault(name, {})
        if (other := turns.setdefault(int(text), query_id)) != query_id:
            raise row.error(
                f"turn {text} of conversation {name!r} stands in {rows[other].place}; number each once", text
            )
    return {
        query_id: [turns[each] for each in numbers[:at]]
        for turns in conversations.values()
        for numbers in [_without_gap(turns, rows)]
        for at, query_id in enumerate(turns[number] for number in numbers)
    }


def _without_gap(turns: Mapping[int, str], rows: Mapping[str, Row]) -> list[int]:
    numbers = sorted(turns)
    for before, number in zip([min(numbers[0], 1) - 1, *numbers], numbers, strict=False):
        if number != before + 1:
            row = rows[turns[number]]
            problem = (
                f"turn {before + 1} of this conversation is missing: what was said before is not known; add its query"
            )
            raise row.error(problem, row.text("conversation"))
    return numbers


def with_turns(queries: Mapping[str, Query], earlier: Mapping[str, Sequence[str]]) -> dict[str, Query]:
    """The queries with their earlier turns as messages; the assistant's words are their references, where given."""

    def said(query: Query) -> list[Message]:
        answered = [] if query.reference is None else [Message("assistant", query.reference)]
        return [Message("user", query.text), *answered]

    return {
        query_id: replace(query, messages=tuple(each for one in earlier[query_id] for each in said(queries[one])))
        if earlier.get(query_id)
        else query
        for query_id, query in queries.items()
    }


def note_of_left_out(rows: Iterable[Row]) -> str:
    """What the rows of queries lack of their messages, see ``with_messages``; ``""`` where that is nothing."""
    left_out = sum(row.left_out for row in rows)
    if not left_out:
        return ""
    return f"messages of systems and tools are left out ({left_out:,}): judges, agents and people do not see them"


def require_one_spelling(names: Iterable[str]) -> None:
    """See that no conversation is taken for two.

    Raises:
        InputError: two names look alike.
    """
    spelt: dict[str, str] = {}
    for name in names:
        if problem := spelling_problem("conversations", name, spelt):
            raise InputError(problem)


def with_conversations(queries: Mapping[str, Query]) -> tuple[dict[str, Query], str]:
    """The queries with their conversations named where messages name none, and a note that says so.

    Queries whose conversations begin with the same message are of one.

    Raises:
        InputError: as ``require_one_spelling``.
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
