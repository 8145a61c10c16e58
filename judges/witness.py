"""Check by a reply's metadata that the right model replied and that it read the whole prompt.

A gateway may pass a request on to another model, and some servers silently cut prompts that are longer than their
context. The reply then looks like any other verdict, so it is counted as a failure.
"""

from __future__ import annotations

import re
from typing import Final

from judges.errors import PROGRESS, ProviderError
from judges.masking import one_line
from judges.spec import VENDORS, JudgeSpec
from judges.types import Completion, Prompt

_SUSPICIOUS: Final = 5
"""Characters per token above which a prompt's words are counted: prose has about four."""
_SMALLEST_CONTEXT: Final = 256
"""Tokens. What is said to be shorter was never a context: the server does not count."""
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\uac00-\ud7af]")
_PER_TOKEN: Final = 4
"""Characters of scripts without blanks in the longest usual token."""

_DATE: Final = re.compile(r"[-@._ ](20\d\d-?\d\d(-?\d\d)?|\d\d-20\d\d|\d\d-\d\d|\d{4})(?=$|[-@:._ ])")
_STORED: Final = re.compile(
    r"[-_.:](i?q\d\w*|k_\w|gguf|awq|gptq|exl\d|mlx\w*|bnb|[fb]f?16|fp\d+|int\d|\d+bit|v\d+:\d+)(?=$|[-_.:])"
)
"""How a model's weights are stored, or packed, says nothing of which model it is."""
_PARTS: Final = re.compile(r"[a-z]+|\d+")
_OF_A_SNAPSHOT: Final = frozenset(
    {
        "latest",
        "preview",
        "exp",
        "experimental",
        "stable",
        "instruct",
        "chat",
        "it",
        "hf",
        "free",
        "nitro",
        "floor",
        "v",
        "0",
    }
    | {"us", "eu", "apac", "global", "anthropic", "meta", "amazon", "openai", "google", "models", "model", "mistralai"}
)
"""Parts of a name that a reply may have beyond the name asked for."""
_TELLING: Final = frozenset(
    {"mini", "nano", "lite", "micro", "pro", "turbo", "large", "medium", "small", "tiny", "flash", "haiku", "sonnet"}
    | {"opus", "o", "b", "max", "plus", "coder", "vision", "scout", "maverick", "fast"}
)
"""Parts of a name, besides numbers, that make it another model."""
_HEADS: Final = frozenset(
    {"gpt", "claude", "gemini", "gemma", "llama", "qwen", "qwq", "mistral", "mixtral", "ministral", "deepseek", "phi"}
    | {"command", "grok", "glm", "kimi", "nova", "o", "codestral", "magistral", "olmo", "granite", "nemotron"}
)
"""How models' names begin."""


class Witness:
    """Looks at the replies of one judge.

    A name that no model has, such as that of a deployment or of a gateway's alias, may stand for any model, but always
    for the same one: the first that replies.

    Args:
        name: the judge's.
        spec: its declaration; ``replies_as`` says which model it is.
    """

    def __init__(self, name: str, spec: JudgeSpec) -> None:
        self._name, self._asked = name, spec.model
        self._hosted = spec.provider in VENDORS
        self._known_as = spec.replies_as
        self._may_be_alias = spec.replies_as is None and not names_a_model(spec.model)
        self._most_read = 0

    def look(self, completion: Completion, prompt: Prompt) -> ProviderError | None:
        """``other_model`` or ``prompt_cut``, where a reply is not of the judge's model or not on the whole prompt."""
        if not self._hosted:
            return None
        return self._by_another(completion.model) or self._on_a_part(completion.usage.input_tokens, prompt)

    def _by_another(self, model: str) -> ProviderError | None:
        if is_same_model(self._known_as or self._asked, model):
            return None
        if self._may_be_alias and self._known_as is None:
            self._known_as = model
            PROGRESS.info("judge %s: asked for %s, and %s replies", self._name, self._asked, model)
            return None
        if self._known_as is None:
            message = f"asked for {self._asked}, and {model} replied"
            to_do = "ask for the one that replies, or declare it as 'replies_as'"
        else:
            message = f"{self._asked} is {self._known_as}, and {model} replied"
            to_do = "keep the server from falling back on another model"
        return ProviderError("other_model", one_line(message), to_do=to_do)

    def _on_a_part(self, tokens: int | None, prompt: Prompt) -> ProviderError | None:
        if tokens is None:
            return None
        self._most_read = max(self._most_read, tokens)
        texts = [prompt.system, prompt.user, *(turn.text for turn in prompt.turns)]
        if tokens < _SMALLEST_CONTEXT or sum(map(len, texts)) <= _SUSPICIOUS * tokens:
            return None
        least = least_tokens(texts)
        # A server that once read as much does not count what its cache holds.
        if tokens >= least or self._most_read >= least:
            return None
        message = f"the server counts {tokens:,} tokens of a prompt of {least:,} words or more, so it cut it"
        to_do = "raise the server's context length (num_ctx, max-model-len)"
        return ProviderError("prompt_cut", message, to_do=to_do)


def least_tokens(texts: list[str]) -> int:
    """The fewest tokens that texts can be: one a word, since no usual token goes beyond one."""
    return sum(len(text.split()) + len(_UNSPACED.findall(text)) // _PER_TOKEN for text in texts)


def _parts(model: str) -> list[str]:
    name = f"-{model.lower().replace(chr(92), '/').rstrip('/').rpartition('/')[2]}"
    return _PARTS.findall(_DATE.sub("", _STORED.sub("", _STORED.sub("", name))))


def names_a_model(name: str) -> bool:
    """Whether a name is that of a model, as far as one can tell: it begins as one does, and holds a number."""
    parts = _parts(name)
    return any(part in _HEADS for part in parts) and any(part.isdigit() for part in parts)


def is_same_model(asked: str, replied: str) -> bool:
    """Whether what replied is what was asked for: the same name, or that of a snapshot, a vendor or a format of it."""
    if asked == replied:
        return True
    wanted, there = _parts(asked), _parts(replied)
    more, less = _without(there, wanted), _without(wanted, there)
    shared = len(there) > len(more)
    return (
        shared
        and _OF_A_SNAPSHOT.issuperset(more)
        and not any((p.isdigit() and p != "0") or p in _TELLING for p in less)
    )


def _without(parts: list[str], others: list[str]) -> list[str]:
    left = list(parts)
    for part in others:
        if part in left:
            left.remove(part)
    return left
