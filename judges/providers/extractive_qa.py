"""An extractive question-answering head: the part of a passage that answers a question (EXAM++'s SQuAD2 variant).

It reads ``Prompt.inputs``, the question and the one passage, and not the rendered prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from judges.errors import RejectedError
from judges.providers.batching import Batcher
from judges.providers.local_source import local_source
from judges.providers.span_model import Span, SpanModel
from judges.providers.texts import storable
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt, Usage

MAX_SPAN_TOKENS = 30
"""Longest answer, in tokens, where the declaration has no ``max_tokens``."""

Passage = tuple[str, str]
"""A question and the passage to answer it from."""


class ExtractiveQAProvider:
    """Runs a model from a local folder (``path``) or by name (``model``); up to ``batch_size`` passages in one batch.

    The reply is the best span as it stands in the passage, or the contract's word for "unanswerable" where that is more
    probable; the probability goes with the completion. The model is loaded with the first prompt.
    """

    judges_names = False

    def __init__(self, spec: JudgeSpec) -> None:
        """Check what can be checked without loading.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            InputError: the folder is missing or holds no model, or the device is not there.
        """
        self._local = local_source(spec)
        self._max_span_tokens = spec.max_tokens if "max_tokens" in spec.model_fields_set else MAX_SPAN_TOKENS
        self._size = spec.batch_size or spec.concurrency
        self._batcher: Batcher[SpanModel, Passage, Span] = Batcher(self._load, self._spans, spec.concurrency)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "extractive_qa",
            "model": self._local.name,
            "weights": self._local.weights,
            "max_tokens": self._max_span_tokens,
        }

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer once, together with what else is waiting.

        Raises:
            RejectedError: the prompt asks for something else than an answer from one passage, or does not fit.
            JudgeStoppedError: the model cannot be loaded.
        """
        span = await self._batcher.submit(_passage(prompt))
        text, probability = span.text, span.probability
        (special,) = prompt.contract.choices.values()
        if special and (span.no_answer > probability or not text):
            text, probability = str(next(iter(special))), span.no_answer
        usage = Usage(span.input_tokens, None, span.output_tokens)
        return Completion(storable(text), self._local.name, usage=usage, probability=probability)

    def _load(self) -> SpanModel:
        self._local.say_it_loads()
        return SpanModel(self._local.source, self._local.device, self._max_span_tokens)

    def _spans(self, model: SpanModel, passages: Sequence[Passage]) -> Iterator[tuple[int, Span | Exception]]:
        return model.answers(passages, self._size)

    async def close(self) -> None:
        """Release the model's memory."""
        await self._batcher.close()


def _passage(prompt: Prompt) -> Passage:
    inputs = prompt.inputs
    passages = [entry.document.text for entry in inputs.documents] + [answer.text for answer in inputs.answers]
    if prompt.contract.form != "text" or len(passages) != 1:
        raise RejectedError("bad_request", "provider 'extractive_qa' only answers a question from one passage")
    return inputs.query.text, passages[0]
