"""What a scripted server answers when it plays a judge: the same request gets the same reply, within its contract."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

_FENCED = re.compile(r"<<<(?P<name>[^\n>]*) (?P<mark>[0-9a-f]{12})>>>\n(?P<text>.*?)\n<<<end (?P=mark)>>>", re.DOTALL)
_WORDS = re.compile(r"one word and nothing else: (.*)\.")
_NUMBER = re.compile(r"^Passage( \[\d+\])$", re.MULTILINE)
_MARKER = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]")


def steady_text(request: Mapping[str, Any]) -> str:
    """The reply of a judge that reads the texts, not what they say to it.

    A verdict prefers the answer with the larger hash, so that both orders of a game agree; anything else is chosen by a
    hash of the texts judged. Texts are found by the marks that ragleague's prompts put around them.

    A list is filled up with made-up questions. Without a schema a rating is a number from 0 to 5, a word one of those
    named, and the answer to a question about one passage its first sentence, with the passage's number where that is
    asked for; a text about nothing but a query repeats the query.

    Args:
        request: the body of a chat completion or messages request, with a JSON schema, or whose system message asks
            for a word in double brackets.
    """
    system, user = _system(request), _first_user(request)
    texts = {match["name"]: match["text"] for match in _FENCED.finditer(user)}
    schema = _schema(request)
    if schema is None:
        if "one whole number from 0 to 5" in system:
            return str(_number(user) % 6)
        if named := _WORDS.search(system):
            return str(_choice("word", named[1].split(" or "), texts, user))
        if "passage" in texts:
            numbers = _NUMBER.findall(user) if "in square brackets" in system else []
            return f"{texts['passage'].partition('.')[0]}{''.join(numbers[-1:])}"
        words = list(dict.fromkeys(_MARKER.findall(system)))
        if not words:
            return f"Much is known about it: {' '.join(texts.values())}"
        return f"Read both.\n[[{_choice('verdict', words, texts, user)}]]"
    reply: dict[str, Any] = {}
    for name, rule in schema["properties"].items():
        if rule["type"] == "array":
            reply[name] = _labels(rule, user) if "enum" in rule["items"] else _written(rule, texts)
            continue
        words = rule.get("enum")
        reply[name] = "Read with care." if words is None else _choice(name, words, texts, user)
    return json.dumps(reply)


def steady_vectors(request: Mapping[str, Any]) -> dict[str, Any]:
    """The reply of an embeddings endpoint: of each text how often it has which letters, and its tokens."""
    texts = request["input"]
    vectors = [[text.lower().count(chr(code)) + 0.01 for code in range(97, 123)] for text in texts]
    data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    usage = {"prompt_tokens": sum(len(text) // 4 for text in texts)}
    return {"object": "list", "model": request["model"], "data": data[::-1], "usage": usage}


def _labels(rule: Mapping[str, Any], user: str) -> list[str]:
    """A label for each item."""
    number = int(re.findall(r"\d+", rule["description"])[0])
    return [_choice(str(place), rule["items"]["enum"], {}, user) for place in range(number)]


def _written(rule: Mapping[str, Any], texts: Mapping[str, str]) -> list[str]:
    """As many texts as the list may have, each of its own, the same for the same material."""
    most = max(map(int, re.findall(r"\d+", rule["description"])))
    subject = " ".join(" ".join(texts.values()).split()[:6])
    return [f"What is part {number} of {subject}?" for number in range(1, most + 1)]


def _choice(name: str, words: list[Any], texts: Mapping[str, str], user: str) -> Any:
    answers = [text for label, text in texts.items() if label.startswith("answer of")]
    if len(answers) == 2 and {"A", "B"} <= set(words):
        first, second = (_number(text) % 8 for text in answers)
        if first == second:
            return words[-1]
        return "A" if first > second else "B"
    return words[_number(f"{name} {user}") % len(words)]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _schema(request: Mapping[str, Any]) -> Any:
    if "response_format" in request:
        return request["response_format"]["json_schema"]["schema"]
    return request["output_config"]["format"]["schema"] if "output_config" in request else None


def _system(request: Mapping[str, Any]) -> str:
    if "system" in request:
        return _plain(request["system"])
    return next((_plain(message["content"]) for message in request["messages"] if message["role"] == "system"), "")


def _first_user(request: Mapping[str, Any]) -> str:
    return next(_plain(message["content"]) for message in request["messages"] if message["role"] == "user")


def _plain(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)
