"""Joins the chunks of an answer that a server streams although no stream was requested, or raises an error."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from judges.errors import NoServiceError, TransientError
from judges.providers.http_answers import error_in_body

_LINE_END = re.compile(r"\r\n|\r|\n")
_DONE = "[DONE]"
_EVENTS = "text/event-stream"
_JSON_LINES = ("ndjson", "jsonl", "json-lines", "stream+json")


class Received(Struct, frozen=True):
    """A raw HTTP answer, with its body decompressed."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class ForeignStreamError(NoServiceError):
    """A stream that is neither a chat completion nor a message."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__("server_error", f"{name}: streams {what}")

    def __reduce__(self) -> tuple[Any, ...]:
        return NoServiceError, ("server_error", str(self))


def joined(received: Received, name: str) -> Received:
    """Join a stream into the chat completion or message that it contains; other answers stay unchanged.

    Streams are server-sent events or lines of JSON, recognized by their content type or their first bytes.

    Args:
        received: an answer with status 200.
        name: the service's name, for messages.

    Raises:
        TransientError: the stream broke off.
        ProviderError: the stream contains an error.
        ForeignStreamError: the stream contains something else.
    """
    kind = received.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    begin = received.content[:200].lstrip()
    if kind == _EVENTS and begin.startswith(b"{"):  # JSON in spite of the content type
        if _object(received.content.decode("utf-8", "replace")) is not None:
            return received
        kind = "application/x-ndjson"
    if kind == _EVENTS or begin.startswith((b"data:", b"event:", b": ")):
        texts = list(_events(received.content.decode("utf-8", "replace")))
    elif any(words in kind for words in _JSON_LINES) or _is_lines(received.content):
        lines = received.content.decode("utf-8", "replace").split("\n")
        texts = [line.removeprefix("data:").strip() for line in lines if line.strip()]
    else:
        return received
    try:
        content = json.dumps(_join(texts, kind or "no content type", name)).encode()
    except RecursionError:
        raise ForeignStreamError(name, "objects that are nested too deeply") from None
    return replace(received, content=content)


def _events(content: str) -> Iterator[str]:
    """The data of each event (HTML standard, section 9.2.6)."""
    data: list[str] = []
    for line in (*_LINE_END.split(content), ""):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _is_lines(content: bytes) -> bool:
    """Whether the first line is a complete JSON object, followed by another object or an end marker."""
    end = content.find(b"\n", 0, 100_000)
    if end < 0 or not content[end : end + 100].lstrip().startswith((b"{", b"data:")):
        return False
    return _object(content[:end].decode("utf-8", "replace")) is not None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _join(texts: list[str], kind: str, name: str) -> Mapping[str, Any]:
    events = [_object(text) for text in texts if text.strip() != _DONE]
    error = next((event for event in events if event is not None and event.get("error")), None)
    if error is not None:
        raise error_in_body(error, name)
    if not events or (events[-1] is None and len(events) > 1 and None not in events[:-1]):
        raise TransientError("connection", f"{name}: the stream broke off")
    if any(event is not None and event.get("type") == "message_start" for event in events):
        return _message([event for event in events if event is not None], name)
    chunks = [event for event in events if event is not None and isinstance(event.get("choices"), list)]
    if len(chunks) < len(events) or not any("delta" in choice for chunk in chunks for choice in _choices(chunk)):
        if len(events) == 1 and events[0] is not None:
            return events[0]
        raise ForeignStreamError(name, f"({kind}), and not as chat completions do")
    ended = any(choice.get("finish_reason") for chunk in chunks for choice in _choices(chunk))
    if not ended and texts[-1].strip() != _DONE:
        raise TransientError("connection", f"{name}: the stream broke off")
    return _completion(chunks)


def _choices(chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [choice for choice in chunk["choices"] if isinstance(choice, dict)]


def _completion(chunks: list[dict[str, Any]]) -> Mapping[str, Any]:
    """Merge chunks into a chat completion: join their texts, and take the last value of every other field."""
    body: dict[str, Any] = {}
    choices: dict[str, dict[str, Any]] = {}
    deltas: defaultdict[str, defaultdict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if value is not None}
        for choice in _choices(chunk):
            index, delta = str(choice.get("index", 0)), choice.get("delta")
            merged = choices.setdefault(index, {})
            merged |= {key: value for key, value in choice.items() if value is not None and key != "delta"}
            for key, value in (delta if isinstance(delta, dict) else {}).items():
                if value is not None:
                    deltas[index][key].append(value)
    for index, choice in choices.items():
        choice["message"] = {
            key: values[-1] if key == "role" else _last(values) for key, values in deltas[index].items()
        }
    return {**body, "object": "chat.completion", "choices": list(choices.values())}


def _last(values: list[Any]) -> Any:
    texts = list(takewhile(lambda value: isinstance(value, str), reversed(values)))
    return "".join(reversed(texts)) if texts else values[-1]


def _message(events: list[dict[str, Any]], name: str) -> Mapping[str, Any]:
    """Merge the events of an Anthropic stream into the message that they describe."""
    body: dict[str, Any] = {}
    blocks: dict[str, dict[str, Any]] = {}
    for event in events:
        delta = event.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        match event.get("type"):
            case "message_start" if isinstance(event.get("message"), dict):
                body = dict(event["message"])
            case "content_block_start" if isinstance(event.get("content_block"), dict):
                blocks[str(event.get("index"))] = dict(event["content_block"])
            case "content_block_delta" if isinstance(delta.get("text"), str):
                block = blocks.setdefault(str(event.get("index")), {"type": "text", "text": ""})
                block["text"] = f"{block.get('text') or ''}{delta['text']}"
            case "message_delta":
                body |= delta
                body["usage"] = {**(body.get("usage") or {}), **(event.get("usage") or {})}
    if not body.get("stop_reason") and not any(event.get("type") == "message_stop" for event in events):
        raise TransientError("connection", f"{name}: the stream broke off")
    return {**body, "content": list(blocks.values())}
