"""A judge of one's own: a Python function that is given the prompt and returns the reply."""

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
    """The whole prompt that a model would see, as one text; a judge that is a function gets it.

    Attributes:
        asked: its parts: ``system``, ``user``, ``turns``, the texts to judge (``inputs``), and the words that a reply
            may use (``contract``).

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
        """The text of a prompt; later turns are named by who wrote them."""
        turns = [f"{turn.role}: {turn.text}" for turn in prompt.turns]
        text = cls("\n\n".join([prompt.system, prompt.user, *turns]))
        text.asked = prompt
        return text


class PythonProvider:
    """Calls ``function(prompt)`` with a ``PromptText``.

    It returns what a model would write; or a mapping, which becomes JSON; or, where one label or verdict is asked for,
    that alone: ``"A"``, ``2``. Only a text may be a quotation; the others get the mark that their contract asks for. An
    exception is a failure, and so is any other type.

    Attributes:
        lacking: see ``UserFunction``.
    """

    judges_names = False

    def __init__(self, spec: JudgeSpec) -> None:
        assert spec.function is not None  # of every judge of this kind
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
        """Call the function."""
        try:
            given, _ = await called(self._function.call, PromptText.of(prompt))
        except ProviderError as error:
            raise RejectedError(error.cause, str(error)) from error
        return Completion(_reply(given, prompt.contract), self._model)

    async def close(self) -> None:
        """Nothing is held."""
        self._function.settle()


def _reply(given: object, contract: ReplyContract) -> str:
    """What was returned as a model would have written it."""
    if isinstance(given, Mapping):
        return json.dumps({**given, **contract.marking}, ensure_ascii=False, default=str)
    if contract.form == "json" and len(contract.choices) == 1 and isinstance(given, str | int):
        ((name, words),) = contract.choices.items()
        if given in words:
            return written_reply(contract, {name: given})
    if not isinstance(given, str):
        message = f"the function returned a {type(given).__name__}, not a text or a mapping"
        raise RejectedError("contract", message)
    return given
