"""What models put around a reply: reasoning, channels, fences, tags and marks of their template."""

from __future__ import annotations

import re

from judges.errors import ReplyError

_SPACE = " \t\r\n\v\f\u00a0\ufeff\u200b\u2060"
_REASONING = r"(?:seed:|mm:)?(?:think|thinking|thought|reasoning)"
_OPENS = re.compile(
    rf"<(?P<tag>{_REASONING})>|(?P<other>\[THINK\]|◁think▷|<\|START_THINKING\|>|<\|channel>thought)", re.IGNORECASE
)
_CLOSINGS = {
    "[THINK]": "[/THINK]",
    "◁THINK▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|CHANNEL>THOUGHT": "<channel|>",
}
_CLOSES = re.compile(rf"</{_REASONING}>|{'|'.join(re.escape(close) for close in _CLOSINGS.values())}", re.IGNORECASE)
_CHANNEL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>(\w+)(?: ?<\|constrain\|>\w+)?<\|message\|>")
_ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "</s>", "<end_of_turn>", "<eos>"),
    *("<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>"),  # noqa: RUF001 - as the model writes it
)
_MOST_ENDS = 4
_LONGEST_VALUE = 200
_FENCE = re.compile(
    r"(```|~~~)(?:json5?|jsonc|python|py|text|txt|plaintext|markdown)?[ \t]*(?:\n|(?=[\[{]))", re.IGNORECASE
)
_TAG = re.compile(r"<(answer|final_answer|output|response|result|json|verdict|rating|label)>", re.IGNORECASE)
_BOXED = re.compile(r"(?:\$\$?|\\[(\[])?\s*\\boxed\{\s*(?:\\text\{([^{}]*)\}|([^{}]*))\s*\}\s*(?:\$\$?|\\[)\]])?\.?")


def without_reasoning(text: str) -> str:
    """The reply behind the reasoning that it begins with; a draft within the reasoning is none.

    Raises:
        ReplyError: the reasoning does not end, or nothing follows it.
    """
    rest = _final_channel(_without_ends(text.strip(_SPACE)))
    at = 0
    while opened := _OPENS.match(rest, at):
        closing = f"</{opened['tag']}>" if opened["tag"] else _CLOSINGS[opened["other"].upper()]
        closed = re.compile(re.escape(closing), re.IGNORECASE).search(rest, opened.end())
        if closed is None:
            raise ReplyError(f"the reasoning does not end; close it with {closing} and reply behind it")
        at = closed.end()
        while at < len(rest) and rest[at] in _SPACE:
            at += 1
    if at and at == len(rest):
        raise ReplyError("there is nothing behind the reasoning; reply there")
    return rest[at:].removeprefix("<|START_RESPONSE|>")


def behind_lone_end(text: str) -> str | None:
    """What follows the end of reasoning whose beginning stood in the prompt; ``None`` where there is no such end."""
    closes = list(_CLOSES.finditer(text))
    if not closes or _OPENS.search(text):
        return None
    return text[closes[-1].end() :].strip(_SPACE)


def ends_within_reasoning(text: str) -> bool:
    """Whether reasoning begins in ``text`` and does not end there."""
    opens = [opened.end() for opened in _OPENS.finditer(text)]
    return bool(opens) and _CLOSES.search(text, opens[-1]) is None


def unwrapped(text: str) -> str:
    """The reply without white space, one code fence and one tag such as ``<answer>`` around all of it."""
    inner = text.strip(_SPACE)
    if (tag := _TAG.match(inner)) and inner.lower().endswith(f"</{tag[1].lower()}>"):
        inner = inner[tag.end() : -len(tag[0]) - 1].strip(_SPACE)
    fence = _FENCE.match(inner)
    if fence and inner.endswith(fence[1]) and len(inner) >= fence.end() + len(fence[1]):
        inner = inner[fence.end() : -len(fence[1])].strip(_SPACE)
    return inner


def value_alone(text: str) -> str:
    """The value of a reply that is one value, without what is around it, such as LaTeX's box."""
    inner = unwrapped(text)
    if len(inner) > _LONGEST_VALUE:
        return inner
    boxed = _BOXED.fullmatch(inner)
    return (boxed[1] or boxed[2] or "").strip() if boxed else inner


def _without_ends(text: str) -> str:
    """``text`` without the marks by which a model ends its turn."""
    for _ in range(_MOST_ENDS):
        mark = next((mark for mark in _ENDS if text.endswith(mark)), None)
        if mark is None:
            break
        text = text.removesuffix(mark).rstrip(_SPACE)
    return text


def _final_channel(text: str) -> str:
    """The one final channel of a reply in channels (gpt-oss), also where a server dropped the marks between them.

    Raises:
        ReplyError: there is none, or there are several.
    """
    if _CHANNEL.match(text):
        channels = list(_CHANNEL.finditer(text))
        if [channel[1] for channel in channels].count("final") != 1 or channels[-1][1] != "final":
            raise ReplyError("the reply must end in one final channel")
        return text[channels[-1].end() :].strip(_SPACE)
    if text.startswith("analysis") and text.count("assistantfinal") == 1:
        return text[text.index("assistantfinal") + len("assistantfinal") :].strip(_SPACE)
    return text
