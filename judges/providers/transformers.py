"""The provider ``transformers``: local causal chat models and text-to-text models (FLAN-T5) of Hugging Face."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from judges.contracts import allowed_replies, written_reply
from judges.errors import ProviderError
from judges.providers.local import LocalProvider, shared_prefix, try_each
from judges.providers.local_model import Conversation, Indexed, LocalModel
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt, ReplyContract, Usage, word_per_value

_EXPLAINED = re.compile(
    r"likeliest of \d+ replies, with probability [01]\.\d{3} \(([^,]+ [01]\.\d{6}(?:, [^,]+ [01]\.\d{6})*)\)"
)


class TransformersProvider(LocalProvider[LocalModel, Prompt, Completion]):
    """Runs prompts on a model in batches of prompts with a common prefix or similar length.

    With ``labels: likeliest``, no text is generated for replies that are a single label: the allowed replies are
    scored, and the most probable one is the reply, with all their probabilities as the explanation.

    Other replies are generated, greedily unless a temperature is declared. With a temperature, a seed makes a run
    repeatable only as a whole, since the composition of batches depends on timing.
    """

    def __init__(self, spec: JudgeSpec) -> None:
        """Check the declaration without loading the model."""
        template = json.dumps(spec.chat_template_kwargs, sort_keys=True)
        super().__init__(
            spec,
            temperature=spec.temperature,
            seed=spec.seed,
            max_tokens=spec.max_tokens,
            **({} if spec.labels == "written" else {"labels": spec.labels}),
            **({"chat_template_kwargs": template} if spec.chat_template_kwargs else {}),
        )

    async def complete(self, prompt: Prompt) -> Completion:
        """Run the prompt once, in a batch with other waiting prompts.

        Raises:
            RejectedError: the prompt does not fit the model or the memory, or raised an exception even when run alone.
            JudgeStoppedError: the model cannot be loaded.
        """
        return await self._batcher.submit(prompt)

    def _load(self) -> LocalModel:
        return LocalModel(self._local, self._spec)

    def _work(self, model: LocalModel, items: Sequence[Prompt]) -> Iterator[tuple[int, Completion | Exception]]:
        """Score replies before generating others, since generating takes far longer."""
        conversations = [_conversation(prompt) for prompt in items]
        likeliest = self._spec.labels == "likeliest"
        allowed = [allowed_replies(prompt.contract) if likeliest else [] for prompt in items]
        to_score = [at for at, replies in enumerate(allowed) if replies]
        chosen = score_replies(
            model, [conversations[at] for at in to_score], [allowed[at] for at in to_score], self._size
        )
        for place, scores in chosen:
            at = to_score[place]
            yield at, self._likeliest(items[at].contract, allowed[at], scores)
        to_write = [at for at, replies in enumerate(allowed) if not replies]
        for place, reply in model.generate([conversations[at] for at in to_write], self._size):
            yield to_write[place], reply

    def _likeliest(
        self, contract: ReplyContract, replies: Sequence[str], scores: ReplyScores | ProviderError
    ) -> Completion | Exception:
        if isinstance(scores, Exception):
            return scores
        text = explained(contract, replies[scores.best], scores)
        usage = Usage(scores.input_tokens, None, scores.output_tokens)
        return Completion(text, self._local.name, usage=usage, probability=scores.probabilities[scores.best])


def explained(contract: ReplyContract, reply: str, scores: ReplyScores) -> str:
    """The most probable reply; if replies have an explanation, it lists the probability of every label."""
    if contract.form != "brackets" and not (contract.form == "json" and contract.reason):
        return reply
    ((name, words),) = contract.choices.items()
    shares = zip(dict.fromkeys(words.values()), scores.probabilities, strict=True)
    each = ", ".join(f"{value} {share:.6f}" for value, share in shares)
    probability = scores.probabilities[scores.best]
    reason = f"likeliest of {len(scores.probabilities)} replies, with probability {probability:.3f} ({each})"
    return written_reply(contract, {name: word_per_value(words)[scores.best]}, reason)


def label_probabilities(reason: str) -> dict[str, float]:
    """The probability of each label, parsed from an explanation by ``explained``; empty for any other text."""
    match = _EXPLAINED.fullmatch(reason)
    if match is None:
        return {}
    pairs = (entry.rsplit(" ", 1) for entry in match[1].split(", "))
    return {value: float(share) for value, share in pairs}


def _conversation(prompt: Prompt) -> Conversation:
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    messages.append({"role": "user", "content": prompt.user})
    return [*messages, *({"role": turn.role, "content": turn.text} for turn in prompt.turns)]


_TAIL_CHARACTERS = 16
"""Number of characters at a prompt's end that may affect how the start of its reply is tokenized."""


class ReplyScores(Struct, frozen=True):
    """The probability of each allowed reply, and the numbers of tokens that were processed."""

    probabilities: tuple[float, ...]
    input_tokens: int
    output_tokens: int

    @property
    def best(self) -> int:
        """Index of the most probable reply; the first if several are equally probable."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)


def score_replies(
    model: LocalModel, conversations: Sequence[Conversation], replies: Sequence[Sequence[str]], size: int
) -> Iterator[Indexed[ReplyScores]]:
    """Score the allowed replies to each conversation, in batches of at most ``size`` conversations.

    A reply's probability is the product of its tokens' probabilities, up to and including its end token (as in Brown et
    al. 2020, section 2.4, without a correction for length), normalized so that the replies' probabilities sum to 1. The
    replies' common prefix is treated as part of the prompt, which does not change the result.

    Yields:
        Each conversation's index with its scores, as soon as its batch is done.
    """

    def tokens(pair: tuple[Conversation, Sequence[str]]) -> tuple[tuple[tuple[int, ...], ...], list[int]]:
        conversation, allowed = pair
        return _reply_tokens(model, model.rendered(conversation), allowed), model.tokens(conversation)

    tokenized, failures = try_each(list(zip(conversations, replies, strict=True)), tokens)
    yield from failures
    groups: defaultdict[tuple[tuple[int, ...], ...], list[int]] = defaultdict(list)
    for at, (written, _) in tokenized.items():
        groups[written].append(at)
    for written, places in groups.items():
        scorer = _Scorer(model, [list(reply) for reply in written])
        prompts = [tokenized[at][1] for at in places]
        for at, scores in model.run_batches(prompts, size, max(map(len, written)), scorer.batch):
            yield places[at], scores


def _reply_tokens(model: LocalModel, prompt: str, replies: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The tokens of each reply when it follows this prompt, with the end token."""
    tail = prompt[-_TAIL_CHARACTERS:]
    before = _tokens(model, tail)
    sequences = []
    for reply in replies:
        joined = _tokens(model, tail + reply)
        tokens = joined[len(before) :] if joined[: len(before)] == before else _tokens(model, reply)
        sequences.append((*tokens, *model.end_tokens[:1]))
    return tuple(sequences)


def _tokens(model: LocalModel, text: str) -> list[int]:
    tokens: list[int] = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    return tokens


class _Scorer:
    """Scores one set of replies to many prompts."""

    def __init__(self, model: LocalModel, replies: list[list[int]]) -> None:
        self._model, self._replies = model, replies
        self._common = 0 if model.is_encoder_decoder else shared_prefix(replies)

    def batch(self, prompts: list[list[int]]) -> list[ReplyScores]:
        import torch

        with torch.inference_mode():
            score = self._text_to_text_scores if self._model.is_encoder_decoder else self._causal_scores
            shares = torch.softmax(score(prompts), dim=1).tolist()
        return [
            ReplyScores(tuple(row), len(prompt), len(self._replies[row.index(max(row))]))
            for row, prompt in zip(shares, prompts, strict=True)
        ]

    def _causal_scores(self, prompts: list[list[int]]) -> Any:
        import torch

        model = self._model
        common = self._replies[0][: self._common]
        batch = model.padded_batch([prompt + common for prompt in prompts])
        positions = (batch.mask.cumsum(1) - 1).clamp(min=0)
        options = model.accepted(position_ids=positions[:, batch.shared :])
        output = model.model(
            input_ids=batch.tokens[:, batch.shared :],
            attention_mask=batch.mask,
            past_key_values=batch.cache,
            use_cache=True,
            **model.last_logits_only,
            **options,
        )
        rest = [reply[self._common :] for reply in self._replies]
        first = torch.log_softmax(output.logits[:, -1].float(), dim=1)
        scores = first[:, [tokens[0] for tokens in rest]]
        if max(map(len, rest)) == 1:
            return scores
        tokens, mask = _padded(rest, model.model.device)
        prompt_count, reply_count = len(prompts), len(rest)
        output.past_key_values.batch_repeat_interleave(reply_count)
        seen = batch.mask.repeat_interleave(reply_count, 0)
        ahead = torch.arange(tokens.shape[1] - 1, device=tokens.device)
        continuation = model.model(
            input_ids=tokens[:, :-1].repeat(prompt_count, 1),
            attention_mask=torch.cat([seen, mask[:, :-1].repeat(prompt_count, 1)], dim=1),
            past_key_values=output.past_key_values,
            use_cache=True,
            **model.accepted(position_ids=seen.sum(1, keepdim=True) + ahead),
        )
        return scores + _summed(continuation.logits, tokens[:, 1:], mask[:, 1:], prompt_count)

    def _text_to_text_scores(self, prompts: list[list[int]]) -> Any:
        """Log-probabilities of the replies: the encoder runs once per prompt, the decoder on every reply."""
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        model = self._model.model
        batch = self._model.padded_batch(prompts)
        encoded = model.get_encoder()(input_ids=batch.tokens, attention_mask=batch.mask).last_hidden_state
        tokens, mask = _padded(self._replies, model.device)
        start = torch.full_like(tokens[:, :1], model.config.decoder_start_token_id)
        prompt_count, reply_count = len(prompts), len(self._replies)
        output = model(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded.repeat_interleave(reply_count, 0)),
            attention_mask=batch.mask.repeat_interleave(reply_count, 0),
            decoder_input_ids=torch.cat([start, tokens[:, :-1]], dim=1).repeat(prompt_count, 1),
        )
        return _summed(output.logits, tokens, mask, prompt_count)


def _padded(rows: list[list[int]], device: Any) -> tuple[Any, Any]:
    import torch

    width = max(map(len, rows))
    tokens = [row + [0] * (width - len(row)) for row in rows]
    mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
    return torch.tensor(tokens, device=device), torch.tensor(mask, device=device)


def _summed(logits: Any, tokens: Any, mask: Any, prompt_count: int) -> Any:
    """Sums of the tokens' log-probabilities, of shape prompts x replies; ``logits`` has a row for each such pair."""
    import torch

    wanted = tokens.repeat(prompt_count, 1).unsqueeze(2)
    log_probabilities = torch.log_softmax(logits.float(), dim=2).gather(2, wanted).squeeze(2)
    return (log_probabilities * mask.repeat(prompt_count, 1)).sum(1).view(prompt_count, -1)
