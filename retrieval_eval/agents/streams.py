"""Answers that come as a stream although none was asked for: put together, or refused with a word that says so."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

from judges.errors import ProviderError, TransientError
from judges.providers.endpoint import Received
from judges.providers.http_errors import error_in_body

_LINE_END = re.compile(r"\r\n|\r|\n")
_DONE = "[DONE]"
_JSON_LINES = ("ndjson", "jsonl", "json-lines", "stream+json")


def whole(received: Received, name: str) -> Received:
    """The answer; of a stream the chat completion whose chunks it is, or its only event.

    Read are server-sent events and lines of JSON, by their content type or by their first words.

    Args:
        received: with status 200.
        name: the agent's, for messages.

    Raises:
        TransientError: the stream broke off.
        ProviderError: it holds an error; or ``contract``, it is a stream of something else.
    """
    kind = received.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    begin = received.content[:200].lstrip()
    if kind == "text/event-stream" or begin.startswith((b"data:", b"event:")):
        texts = list(_events(received.content.decode("utf-8", "replace")))
    elif any(words in kind for words in _JSON_LINES) or _is_lines(received.content):
        texts = [line for line in received.content.decode("utf-8", "replace").split("\n") if line.strip()]
    else:
        return received
    try:
        content = json.dumps(_joined(texts, kind or "no content type", name)).encode()
    except RecursionError:
        raise ProviderError("contract", f"{name}: streams objects that are nested too deeply") from None
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
    """Whether the first line is a JSON object by itself and another one follows."""
    end = content.find(b"\n", 0, 100_000)
    if end < 0 or content[end : end + 100].lstrip()[:1] != b"{":
        return False
    return _object(content[:end].decode("utf-8", "replace")) is not None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _joined(texts: list[str], kind: str, name: str) -> Mapping[str, Any]:
    events = [_object(text) for text in texts if text.strip() != _DONE]
    error = next((event for event in events if event is not None and event.get("error")), None)
    if error is not None:
        raise error_in_body(error, name)
    if not events or (events[-1] is None and len(events) > 1 and None not in events[:-1]):
        raise TransientError("connection", f"{name}: the stream broke off")
    chunks = [event for event in events if event is not None and isinstance(event.get("choices"), list)]
    if len(chunks) < len(events) or not any("delta" in choice for chunk in chunks for choice in _choices(chunk)):
        if len(events) == 1 and events[0] is not None:
            return events[0]
        advice = "have it answer at once, as with 'stream: false' in its 'request'"
        raise ProviderError("contract", f"{name}: streams ({kind}), and not as chat completions do; {advice}")
    ended = any(choice.get("finish_reason") for chunk in chunks for choice in _choices(chunk))
    if not ended and texts[-1].strip() != _DONE:
        raise TransientError("connection", f"{name}: the stream broke off")
    return _completion(chunks)


def _choices(chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [choice for choice in chunk["choices"] if isinstance(choice, dict)]


def _completion(chunks: list[dict[str, Any]]) -> Mapping[str, Any]:
    """What the same server would have sent at once: texts joined, of all else what was said last."""
    body: dict[str, Any] = {}
    choices: dict[str, dict[str, Any]] = {}
    said: defaultdict[str, defaultdict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if value is not None}
        for choice in _choices(chunk):
            index, delta = str(choice.get("index", 0)), choice.get("delta")
            here = choices.setdefault(index, {})
            here |= {key: value for key, value in choice.items() if value is not None and key != "delta"}
            for key, value in (delta if isinstance(delta, dict) else {}).items():
                if value is not None:
                    said[index][key].append(value)
    for index, choice in choices.items():
        choice["message"] = {key: values[-1] if key == "role" else _last(values) for key, values in said[index].items()}
    return {**body, "object": "chat.completion", "choices": list(choices.values())}


def _last(values: list[Any]) -> Any:
    """The texts at the end as one text; else the last value."""
    texts = list(takewhile(lambda value: isinstance(value, str), reversed(values)))
    return "".join(reversed(texts)) if texts else values[-1]
