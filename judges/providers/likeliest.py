"""The replies that a contract allows where it comes down to one label, for a model to be asked which is likeliest."""

from __future__ import annotations

import json
from collections.abc import Mapping

from judges.self_rating import HIGHEST_RATING
from judges.types import ReplyContract, word_per_value


def allowed_replies(contract: ReplyContract) -> list[str]:
    """Every reply without an explanation, one for each value of the label; empty where a reply is more than a label."""
    if contract.form == "rating":
        return [str(rating) for rating in range(HIGHEST_RATING + 1)]
    if contract.form not in {"json", "brackets", "word"} or len(contract.choices) != 1 or contract.texts:
        return []
    ((name, words),) = contract.choices.items()
    return [_reply(contract, name, word) for word in word_per_value(words)]


def explained(contract: ReplyContract, reply: str, probability: float, among: int) -> str:
    """The likeliest reply with its probability in place of the explanation, where there is one."""
    said = f"likeliest of {among} replies, with probability {probability:.3f}"
    if contract.form == "brackets":
        return f"{said}\n{reply}"
    if contract.form != "json" or not contract.reason:
        return reply
    parts: Mapping[str, str | int] = json.loads(reply)
    return json.dumps({**parts, contract.reason: said})


def _reply(contract: ReplyContract, name: str, word: str | int) -> str:
    if contract.form == "word":
        return str(word)
    if contract.form == "brackets":
        return f"[[{word}]]"
    return json.dumps({**({contract.reason: ""} if contract.reason else {}), name: word})
