"""The provider ``python``: a user's function that takes the prompt and returns the reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from judges.contracts import written_reply
from judges.errors import ProviderError, RejectedError
from judges.functions import UserFunction, called, name_of
from judges.types import Completion, Prompt, ReplyContract

if TYPE_CHECKING:
    from judges.spec import JudgeSpec


class PromptText(str):
    """A prompt as one text, with everything that a model would see.

    Attributes:
        asked: the prompt's parts: ``system``, ``user``, ``turns``, the texts judged (``inputs``), and the contract with
            the allowed words (``contract``).

    Example:
        >>> def shorter(prompt: rl.PromptText) -> str:
        ...     answers = [answer.text for answer in prompt.asked.inputs.answers]
        ...     return "A" if len(answers[0]) < len(answers[1]) else "B"
        >>> data = rl.load({name: [{"question": "Why?", "answer": name * 3}] for name in ("yes", "maybe")})
        >>> rl.run(data, judge=shorter, store="shorter.db", progress=False).games()["verdict"].tolist()
        ['B', 'A']
    """

    asked: Prompt

    @classmethod
    def of(cls, prompt: Prompt) -> PromptText:
        """Join a prompt's parts; later turns begin with their role."""
        turns = [f"{turn.role}: {turn.text}" for turn in prompt.turns]
        text = cls("\n\n".join([prompt.system, prompt.user, *turns]))
        text.asked = prompt
        return text


class PythonProvider:
    """Calls ``function(prompt)`` with a ``PromptText``.

    The function returns a model's text, a mapping, which becomes JSON, or, for a contract with one choice, the label
    or verdict alone: ``"A"``, ``2``. Mappings and labels cannot be quotations, so they get the mark of their contract.
    An exception or any other type is a failure.

    Attributes:
        lacking: see ``UserFunction``.
    """

    judges_names = False

    def __init__(self, spec: JudgeSpec) -> None:
        assert spec.function is not None  # validated by JudgeSpec
        self._function = UserFunction(spec.function, spec.version)
        self.lacking = self._function.lacking
        self._model = spec.model or name_of(spec.function)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "python",
            "model": self._model,
            "source": self._function.identity,
            **({"objects": self._function.objects} if self._function.objects else {}),
        }

    async def complete(self, prompt: Prompt) -> Completion:
        try:
            returned, _ = await called(self._function.call, PromptText.of(prompt))
        except ProviderError as error:
            raise RejectedError(error.cause, str(error)) from error
        return Completion(_reply(returned, prompt.contract), self._model)

    async def close(self) -> None:
        """Keep the function's identity although calls may have changed its state."""
        self._function.settle()


def _reply(returned: object, contract: ReplyContract) -> str:
    """The reply text for a value that the function returned."""
    if isinstance(returned, Mapping):
        return json.dumps({**returned, **contract.mark_field}, ensure_ascii=False, default=str)
    if contract.form == "json" and len(contract.choices) == 1 and isinstance(returned, str | int):
        ((name, words),) = contract.choices.items()
        if returned in words:
            return written_reply(contract, {name: returned})
    if not isinstance(returned, str):
        message = f"the function returned a {type(returned).__name__}, not a text or a mapping"
        raise RejectedError("contract", message)
    return returned
