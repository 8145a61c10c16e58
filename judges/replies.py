"""What a completion is worth: a parsed reply, a reason to ask again, or a failure that asking would not mend."""

from __future__ import annotations

from dataclasses import replace

from judges.errors import ReplyError
from judges.parse import ParsedReply, parse_reply
from judges.types import Completion, Finish, Prompt, Turn

FINAL_FINISHES = {
    Finish.FILTER: ("content_filter", "the provider's filter withheld the reply"),
    Finish.REFUSAL: ("refusal", "the model refused to answer"),
}
"""Cause and message of failures that another call would not mend."""


def read(completion: Completion, prompt: Prompt) -> ParsedReply:
    """What a completion says.

    Raises:
        ReplyError: it is outside the contract, cut off, or empty.
    """
    if not completion.text.strip():
        raise ReplyError("the reply was empty")
    if completion.finish is Finish.LENGTH:
        raise ReplyError("the reply was cut off; explain more briefly")
    return parse_reply(completion.text, prompt.contract, prompt.inputs)


def contract_cause(completion: Completion) -> str:
    """The cause of the failure, where the last reply could not be read either."""
    if not completion.text.strip():
        return "empty"
    return "truncated" if completion.finish is Finish.LENGTH else "contract"


def asked_again(prompt: Prompt, reply: str, problem: str) -> Prompt:
    """The same prompt with the refused reply and what is wrong with it; an empty message cannot be sent."""
    turns = (
        Turn("assistant", reply.strip() or "(no reply)"),
        Turn("user", f"That reply cannot be used: {problem}. Reply again, exactly in the form asked for."),
    )
    return replace(prompt, turns=prompt.turns + turns)
