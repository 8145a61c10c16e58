"""The replies that a contract allows where it comes down to one label, for a model to be asked which is likeliest."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from judges.self_rating import HIGHEST_RATING
from judges.types import ReplyContract, word_per_value

_EXPLAINED = re.compile(
    r"likeliest of \d+ replies, with probability [01]\.\d{3} \(([^,]+ [01]\.\d{6}(?:, [^,]+ [01]\.\d{6})*)\)"
)


def allowed_replies(contract: ReplyContract) -> list[str]:
    """Every reply without an explanation, one for each value of the label; empty where a reply is more than a label."""
    if contract.form == "rating":
        return [str(rating) for rating in range(HIGHEST_RATING + 1)]
    if contract.form not in {"json", "brackets", "word"} or len(contract.choices) != 1 or contract.texts:
        return []
    ((name, words),) = contract.choices.items()
    return [_reply(contract, name, word) for word in word_per_value(words)]


def explained(contract: ReplyContract, reply: str, probabilities: Sequence[float]) -> str:
    """The likeliest reply with the probability of every label in place of the explanation, where there is one.

    Args:
        contract: one whose ``allowed_replies`` there are.
        reply: the likeliest of them.
        probabilities: of each of them.
    """
    if contract.form != "brackets" and not (contract.form == "json" and contract.reason):
        return reply
    (words,) = contract.choices.values()
    shares = zip(dict.fromkeys(words.values()), probabilities, strict=True)
    each = ", ".join(f"{value} {share:.6f}" for value, share in shares)
    said = f"likeliest of {len(probabilities)} replies, with probability {max(probabilities):.3f} ({each})"
    if contract.form == "brackets":
        return f"{said}\n{reply}"
    parts: Mapping[str, str | int] = json.loads(reply)
    return json.dumps({**parts, contract.reason: said})


def label_probabilities(reason: str) -> dict[str, float]:
    """The probability of each label, of an explanation that ``explained`` wrote; empty of any other."""
    found = _EXPLAINED.fullmatch(reason)
    if found is None:
        return {}
    pairs = (entry.rsplit(" ", 1) for entry in found[1].split(", "))
    return {value: float(share) for value, share in pairs}


def _reply(contract: ReplyContract, name: str, word: str | int) -> str:
    if contract.form == "word":
        return str(word)
    if contract.form == "brackets":
        return f"[[{word}]]"
    return json.dumps({**({contract.reason: ""} if contract.reason else {}), name: word})
