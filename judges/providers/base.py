"""The one Protocol between a judge and whatever produces its replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from judges.types import Completion, Prompt


class Provider(Protocol):
    """Turns a prompt into a completion; async, because that is where a judge waits.

    Attributes:
        identity: everything besides the prompt that decides what is replied (provider, model, parameters).
            It becomes part of each judgment's id, so it holds no key, address, or timeout.
        judges_names: whether it goes by the names of what is judged rather than by the texts, as recorded verdicts do.
    """

    judges_names: bool
    identity: Mapping[str, str | int | float | None]

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once.

        Raises:
            TransientError: another attempt may succeed.
            RejectedError: this prompt will not succeed.
            JudgeStoppedError: no prompt will succeed.
        """
        ...

    async def close(self) -> None:
        """Release connections or memory."""
        ...
