"""The provider ``extractive_qa``: models that mark a question's answer in a passage (EXAM++'s SQuAD2 variant).

It uses ``Prompt.inputs``, the question and one passage, and not the rendered prompt.

A passage longer than the model's window is split into overlapping windows. In each window, start and end of the answer
have a distribution over the passage's tokens and the token for "no answer"; a span's probability is the product of the
two. The reply is the best span over all windows, unless "no answer" is more probable; the probability of "no answer"
is its smallest over the windows (as in the question-answering pipeline of transformers 4; SQuAD 2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from judges.errors import JudgeStoppedError, ProviderError, RejectedError
from judges.masking import storable
from judges.providers.local import Divider, LocalProvider, LocalSource, try_each
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt, Usage

MAX_SPAN_TOKENS = 30
"""Longest answer in tokens, if the judge's declaration has no ``max_tokens``."""

SpanQuestion = tuple[str, str, str]
"""A question, its passage, and what to reply if there is no answer (if empty, the best span is always the reply)."""

LONGEST_WINDOW = 512
OVERLAP = 128


class _Window(Struct, frozen=True):
    """The best span in one window: its probability, its start and end offset in the passage, and its tokens.

    ``no_answer`` is the probability that the window contains no answer.
    """

    probability: float
    no_answer: float
    start: int
    end: int
    tokens: int


class SpanModel:
    """A model that predicts start and end of an answer (BERT, RoBERTa, DeBERTa, T5, ...), with its tokenizer."""

    def __init__(self, local: LocalSource, max_span_tokens: int) -> None:
        import transformers

        source, self._name = local.source, local.name
        transformers.utils.logging.disable_progress_bar()  # it would overwrite ours
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
        model, report = transformers.AutoModelForQuestionAnswering.from_pretrained(
            source, dtype="auto", output_loading_info=True
        )
        if report["missing_keys"]:
            problem = f"has no trained head for extractive question answering ({sorted(report['missing_keys'])[0]})"
            raise JudgeStoppedError("unknown_model", f"{source}: {problem}")
        if not tokenizer.is_fast:
            raise JudgeStoppedError("unknown_model", f"{source}: its tokenizer does not report the positions of tokens")
        self._tokenizer, self._model = tokenizer, model.to(local.device).eval()
        self._max_span_tokens = max_span_tokens
        self._divider = Divider()
        positions = getattr(model.config, "max_position_embeddings", None) or LONGEST_WINDOW
        self._window = min(tokenizer.model_max_length, positions, LONGEST_WINDOW)

    def best_spans(
        self, questions: Sequence[SpanQuestion], size: int
    ) -> Iterator[tuple[int, Completion | ProviderError]]:
        """Yield each question's index and best span, computed in batches of at most ``size``.

        A question that takes more than half of the model's window gets an error.
        """
        lengths, failures = try_each(questions, lambda each: len(self._tokenizer(each[0])["input_ids"]))
        yield from failures
        yield from ((at, self._too_long(length)) for at, length in lengths.items() if length > self._window // 2)
        fitting = [at for at, length in lengths.items() if length <= self._window // 2]

        def spans(places: Sequence[int]) -> list[Completion | ProviderError]:
            return list(self._spans([questions[at] for at in places]))

        for start in range(0, len(fitting), size):
            for places, results in Divider().parts(fitting[start : start + size], lengths.__getitem__, spans):
                yield from zip(places, [results] if isinstance(results, ProviderError) else results, strict=True)

    def _spans(self, questions: Sequence[SpanQuestion]) -> Iterator[Completion | ProviderError]:
        windows = self._tokenizer(
            [question for question, _, _ in questions],
            [passage for _, passage, _ in questions],
            truncation="only_second",
            max_length=self._window,
            stride=min(OVERLAP, self._window // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=True,
        )
        owners = windows["overflow_to_sample_mapping"]
        spans = self._read(windows, len(owners))
        for owner, (_, passage, no_answer) in enumerate(questions):
            rows = [row for row, each in enumerate(owners) if each == owner]
            tokens = sum(sum(windows["attention_mask"][row]) for row in rows)
            yield self._reply(passage, no_answer, [spans[row] for row in rows], tokens)

    def _reply(
        self, passage: str, no_answer: str, windows: Sequence[_Window | ProviderError], tokens: int
    ) -> Completion | ProviderError:
        if problem := next((window for window in windows if isinstance(window, ProviderError)), None):
            return problem
        spans = [window for window in windows if not isinstance(window, ProviderError)]
        best = max(spans, key=lambda window: window.probability)
        text, probability = passage[best.start : best.end].strip(), best.probability
        no_answer_probability = min(window.no_answer for window in spans)
        if no_answer and (no_answer_probability > probability or not text):
            text, probability = no_answer, no_answer_probability
        usage = Usage(tokens, None, best.tokens)
        return Completion(storable(text), self._name, usage=usage, probability=probability)

    def _read(self, windows: Any, number: int) -> list[_Window | ProviderError]:
        spans: dict[int, _Window | ProviderError] = {}
        width = len(windows["input_ids"][0])
        parts = self._divider.parts(range(number), lambda _: width, lambda rows: self._batch(windows, rows))
        for rows, results in parts:
            spans.update(zip(rows, [results] if isinstance(results, ProviderError) else results, strict=True))
        return [spans[row] for row in range(number)]

    def _batch(self, windows: Any, rows: Sequence[int]) -> list[_Window]:
        import torch

        known = [name for name in self._tokenizer.model_input_names if name in windows]
        inputs = {name: torch.tensor([windows[name][row] for row in rows], device=self._model.device) for name in known}
        with torch.inference_mode():
            output = self._model(**inputs)
        starts, ends = output.start_logits.float().cpu(), output.end_logits.float().cpu()
        return [self._best_in(windows, row, starts[at], ends[at]) for at, row in enumerate(rows)]

    def _best_in(self, windows: Any, row: int, start_logits: Any, end_logits: Any) -> _Window:
        import torch

        passage = torch.tensor([part == 1 for part in windows.sequence_ids(row)])
        no_answer_at = self._no_answer_token(windows["input_ids"][row])
        allowed = passage.clone()
        allowed[no_answer_at] = True
        starts = start_logits.masked_fill(~allowed, -torch.inf).softmax(0)
        ends = end_logits.masked_fill(~allowed, -torch.inf).softmax(0)
        no_answer = float(starts[no_answer_at] * ends[no_answer_at])
        spans = torch.outer(starts * passage, ends * passage).triu().tril(self._max_span_tokens - 1)
        best = int(spans.argmax())
        start, end = divmod(best, len(passage))
        offsets = windows["offset_mapping"][row]
        return _Window(float(spans.flatten()[best]), no_answer, offsets[start][0], offsets[end][1], end - start + 1)

    def _no_answer_token(self, ids: list[int]) -> int:
        """Position of the token that stands for "no answer": the class token if there is one, else the first token."""
        return ids.index(self._tokenizer.cls_token_id) if self._tokenizer.cls_token_id in ids else 0

    def _too_long(self, length: int) -> RejectedError:
        message = f"a question of {length} tokens leaves no room for a passage in the model's {self._window}"
        return RejectedError("bad_request", message)


class ExtractiveQAProvider(LocalProvider[SpanModel, SpanQuestion, Completion]):
    """Replies with the passage's best span, or with the contract's word for "unanswerable" if that is more probable."""

    def __init__(self, spec: JudgeSpec) -> None:
        self._max_span_tokens = spec.max_tokens if "max_tokens" in spec.model_fields_set else MAX_SPAN_TOKENS
        super().__init__(spec, max_tokens=self._max_span_tokens)

    async def complete(self, prompt: Prompt) -> Completion:
        inputs, contract = prompt.inputs, prompt.contract
        passages = [entry.document.text for entry in inputs.documents] + [answer.text for answer in inputs.answers]
        if contract.form != "text" or len(passages) != 1:
            raise RejectedError("bad_request", "provider 'extractive_qa' only answers a question from one passage")
        no_answer = next((str(word) for words in contract.choices.values() for word in words), "")
        return await self._batcher.submit((inputs.query.text, passages[0], no_answer))

    def _load(self) -> SpanModel:
        return SpanModel(self._local, self._max_span_tokens)

    def _work(self, model: SpanModel, items: Sequence[SpanQuestion]) -> Iterator[tuple[int, Completion | Exception]]:
        return model.best_spans(items, self._size)
