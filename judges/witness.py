"""Checks on a reply's metadata: that the requested model replied, and that it read the whole prompt.

A gateway may pass a request on to another model, and some servers silently cut prompts that are longer than their
context. Such a reply looks like any other verdict, so these checks turn it into a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from judges.errors import PROGRESS, ProviderError
from judges.masking import one_line
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt

_SUSPICIOUS: Final = 5
"""A prompt with more characters per reported token (prose has about four) may have been cut: its words are counted."""
_SMALLEST_CONTEXT: Final = 256
"""In tokens. Every model's context has more tokens than this, so a smaller reported number is wrong and is ignored."""
_UNSPACED: Final = r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\uac00-\ud7af]"
_PER_TOKEN: Final = 4
"""Most characters that one token contains, in scripts without spaces between words."""

_DATE: Final = re.compile(r"[-@._ ](20\d\d-?\d\d(-?\d\d)?|\d\d-20\d\d|\d\d-\d\d|\d{4})(?=$|[-@:._ ])")
_FORMAT: Final = re.compile(
    r"[-_.:](i?q\d\w*|k_\w|gguf|awq|gptq|exl\d|mlx\w*|bnb|[fb]f?16|fp\d+|int\d|\d+bit|v\d+:\d+)(?=$|[-_.:])"
)
"""Suffixes of model names that denote the format or quantization of the weights, but no other model."""
_PARTS: Final = re.compile(r"[a-z]+|\d+")
_EXTRA_PARTS: Final = frozenset(
    """latest preview exp experimental stable instruct chat it hf free nitro floor v 0 us eu apac global anthropic meta
    amazon openai google models model mistralai""".split()  # noqa: SIM905
)
"""Parts of a model name that the server may add to the requested name without meaning another model."""
_DISTINCTIVE: Final = frozenset(
    """mini nano lite micro pro turbo large medium small tiny flash haiku sonnet opus o b max plus coder vision scout
    maverick fast""".split()  # noqa: SIM905
)
"""Parts of a model name that distinguish models, as numbers do; the server must not drop them from the requested
name."""
_FAMILIES: Final = frozenset(
    """gpt claude gemini gemma llama qwen qwq mistral mixtral ministral deepseek phi command grok glm kimi nova o
    codestral magistral olmo granite nemotron""".split()  # noqa: SIM905
)


class Witness:
    """Checks the model name and the token count in each reply that one judge gets from its server.

    If the requested name contains no known model family, it may name a deployment, or be a gateway's alias for any
    model. In that case the model that sends the first reply is expected in all later replies.
    """

    def __init__(self, name: str, spec: JudgeSpec) -> None:
        self._name, self._asked, self._known_as = name, spec.model, spec.replies_as
        self._hosted = spec.hosted
        self._may_be_alias = spec.replies_as is None and not names_a_model(spec.model)
        self._most_read = 0

    def look(self, completion: Completion, prompt: Prompt) -> ProviderError | None:
        """An error if another model replied (``other_model``) or the server cut the prompt (``prompt_cut``)."""
        if not self._hosted:
            return None
        return self._model_error(completion.model) or self._prompt_error(completion.usage.input_tokens, prompt)

    def _model_error(self, model: str) -> ProviderError | None:
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

    def _prompt_error(self, tokens: int | None, prompt: Prompt) -> ProviderError | None:
        if tokens is None:
            return None
        self._most_read = max(self._most_read, tokens)
        if tokens < _SMALLEST_CONTEXT or sum(map(len, prompt.texts)) <= _SUSPICIOUS * tokens:
            return None
        least = least_tokens(prompt.texts)
        # If the server once counted this many tokens, its context is large enough: it leaves out cached tokens.
        if tokens >= least or self._most_read >= least:
            return None
        message = f"the server counts {tokens:,} tokens of a prompt of {least:,} words or more, so it cut the prompt"
        to_do = "raise the server's context length (num_ctx, max-model-len)"
        return ProviderError("prompt_cut", message, to_do=to_do)


def least_tokens(texts: list[str]) -> int:
    """Lower bound on the number of tokens in the texts: one per word, since hardly any token spans two words.

    Scripts without spaces count a quarter of a token per character.
    """
    return sum(len(text.split()) + len(re.findall(_UNSPACED, text)) // _PER_TOKEN for text in texts)


def _parts(model: str) -> Counter[str]:
    name = f"-{model.lower().replace(chr(92), '/').rstrip('/').rpartition('/')[2]}"
    return Counter(_PARTS.findall(_DATE.sub("", _FORMAT.sub("", _FORMAT.sub("", name)))))


def names_a_model(name: str) -> bool:
    """Whether a name contains a known model family, such as ``gpt``, and a number."""
    parts = _parts(name)
    return any(part in _FAMILIES for part in parts) and any(part.isdigit() for part in parts)


def is_same_model(asked: str, replied: str) -> bool:
    """Whether the requested and the replied name denote one model: date, vendor or weight format may differ."""
    if asked == replied:
        return True
    asked_parts, replied_parts = _parts(asked), _parts(replied)
    extra, missing = replied_parts - asked_parts, asked_parts - replied_parts
    return (
        (replied_parts & asked_parts).total() > 0
        and _EXTRA_PARTS.issuperset(extra)
        and not any((part.isdigit() and part != "0") or part in _DISTINCTIVE for part in missing)
    )
