"""Local models through Hugging Face transformers: causal chat models and the text-to-text family (FLAN-T5)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from judges.contracts import allowed_replies, written_reply
from judges.errors import ProviderError
from judges.providers.local import LocalProvider, attempted, shared_prefix
from judges.providers.local_model import Conversation, LocalModel, Placed
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt, ReplyContract, Usage, word_per_value

_EXPLAINED = re.compile(
    r"likeliest of \d+ replies, with probability [01]\.\d{3} \(([^,]+ [01]\.\d{6}(?:, [^,]+ [01]\.\d{6})*)\)"
)


class TransformersProvider(LocalProvider[LocalModel, Prompt, Completion]):
    """Asks a model for replies that begin alike, or are alike in length, together.

    With ``labels: likeliest`` nothing is written where the reply is one label: the allowed replies are scored, and the
    likeliest is the reply, with the probabilities of all of them in place of an explanation.

    Else replies are written: greedily unless a temperature is declared; a seed then fixes the run as a whole, not the
    single reply, since what is sampled together depends on what was waiting.
    """

    def __init__(self, spec: JudgeSpec) -> None:
        """Check what can be checked without loading."""
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
        """Ask once, together with what else is waiting.

        Raises:
            RejectedError: the prompt does not fit the model, or memory, or an exception was raised with it alone.
            JudgeStoppedError: the model cannot be loaded.
        """
        return await self._batcher.submit(prompt)

    def _load(self) -> LocalModel:
        return LocalModel(self._local, self._spec)

    def _work(self, model: LocalModel, items: Sequence[Prompt]) -> Iterator[tuple[int, Completion | Exception]]:
        """Scored first: written replies take far longer."""
        conversations = [_conversation(prompt) for prompt in items]
        likeliest = self._spec.labels == "likeliest"
        allowed = [allowed_replies(prompt.contract) if likeliest else [] for prompt in items]
        to_score = [at for at, replies in enumerate(allowed) if replies]
        chosen = scored(model, [conversations[at] for at in to_score], [allowed[at] for at in to_score], self._size)
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
    """The likeliest reply with the probability of every label in place of the explanation, where there is one."""
    if contract.form != "brackets" and not (contract.form == "json" and contract.reason):
        return reply
    ((name, words),) = contract.choices.items()
    shares = zip(dict.fromkeys(words.values()), scores.probabilities, strict=True)
    each = ", ".join(f"{value} {share:.6f}" for value, share in shares)
    probability = scores.probabilities[scores.best]
    reason = f"likeliest of {len(scores.probabilities)} replies, with probability {probability:.3f} ({each})"
    return written_reply(contract, {name: word_per_value(words)[scores.best]}, reason)


def label_probabilities(reason: str) -> dict[str, float]:
    """The probability of each label, of an explanation that ``explained`` wrote; empty of any other."""
    match = _EXPLAINED.fullmatch(reason)
    if match is None:
        return {}
    pairs = (entry.rsplit(" ", 1) for entry in match[1].split(", "))
    return {value: float(share) for value, share in pairs}


def _conversation(prompt: Prompt) -> Conversation:
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    messages.append({"role": "user", "content": prompt.user})
    return [*messages, *({"role": turn.role, "content": turn.text} for turn in prompt.turns)]


_TAIL = 16
"""Characters of a prompt's end that decide how the beginning of its reply is divided into tokens."""


class ReplyScores(Struct, frozen=True):
    """How likely each reply is among those allowed, and lengths in tokens."""

    probabilities: tuple[float, ...]
    input_tokens: int
    output_tokens: int

    @property
    def best(self) -> int:
        """The likeliest, the first of equals."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)


def scored(
    model: LocalModel, conversations: Sequence[Conversation], replies: Sequence[Sequence[str]], size: int
) -> Iterator[Placed[ReplyScores]]:
    """Score the replies to each conversation, at most ``size`` of these in one batch; each as soon as that is done.

    A reply's probability is the product of its tokens', up to the token that ends it (as in Brown et al. 2020, section
    2.4, without a correction for length); the replies' probabilities are then made to sum to 1. What all replies begin
    with counts with the prompt: it changes nothing between them.
    """

    def tokens(asked: tuple[Conversation, Sequence[str]]) -> tuple[tuple[tuple[int, ...], ...], list[int]]:
        conversation, allowed = asked
        return _reply_tokens(model, model.rendered(conversation), allowed), model.tokens(conversation)

    read, failures = attempted(list(zip(conversations, replies, strict=True)), tokens)
    yield from failures
    groups: defaultdict[tuple[tuple[int, ...], ...], list[int]] = defaultdict(list)
    for at, (written, _) in read.items():
        groups[written].append(at)
    for written, places in groups.items():
        scorer = _Scorer(model, [list(reply) for reply in written])
        prompts = [read[at][1] for at in places]
        for at, scores in model.worked_off(prompts, size, max(map(len, written)), scorer.batch):
            yield places[at], scores


def _reply_tokens(model: LocalModel, prompt: str, replies: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Each reply as it would be written behind this prompt, with the token that ends it."""
    tail = prompt[-_TAIL:]
    before = _tokens(model, tail)
    sequences = []
    for reply in replies:
        joined = _tokens(model, tail + reply)
        tokens = joined[len(before) :] if joined[: len(before)] == before else _tokens(model, reply)
        sequences.append((*tokens, *model.ends[:1]))
    return tuple(sequences)


def _tokens(model: LocalModel, text: str) -> list[int]:
    tokens: list[int] = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    return tokens


class _Scorer:
    """Scores the same replies behind many prompts."""

    def __init__(self, model: LocalModel, replies: list[list[int]]) -> None:
        self._model, self._replies = model, replies
        self._common = 0 if model.is_encoder_decoder else shared_prefix(replies)

    def batch(self, prompts: list[list[int]]) -> list[ReplyScores]:
        import torch

        with torch.inference_mode():
            score = self._of_text_to_text if self._model.is_encoder_decoder else self._of_causal
            shares = torch.softmax(score(prompts), dim=1).tolist()
        return [
            ReplyScores(tuple(row), len(prompt), len(self._replies[row.index(max(row))]))
            for row, prompt in zip(shares, prompts, strict=True)
        ]

    def _of_causal(self, prompts: list[list[int]]) -> Any:
        import torch

        model = self._model
        common = self._replies[0][: self._common]
        laid = model.laid_out([prompt + common for prompt in prompts])
        positions = (laid.mask.cumsum(1) - 1).clamp(min=0)
        options = model.accepted(position_ids=positions[:, laid.shared :])
        out = model.model(
            input_ids=laid.tokens[:, laid.shared :],
            attention_mask=laid.mask,
            past_key_values=laid.cache,
            use_cache=True,
            **model.last_only,
            **options,
        )
        rest = [reply[self._common :] for reply in self._replies]
        first = torch.log_softmax(out.logits[:, -1].float(), dim=1)
        scores = first[:, [tokens[0] for tokens in rest]]
        if max(map(len, rest)) == 1:
            return scores
        tokens, mask = _padded(rest, model.model.device)
        again, each = len(prompts), len(rest)
        out.past_key_values.batch_repeat_interleave(each)
        seen = laid.mask.repeat_interleave(each, 0)
        ahead = torch.arange(tokens.shape[1] - 1, device=tokens.device)
        later = model.model(
            input_ids=tokens[:, :-1].repeat(again, 1),
            attention_mask=torch.cat([seen, mask[:, :-1].repeat(again, 1)], dim=1),
            past_key_values=out.past_key_values,
            use_cache=True,
            **model.accepted(position_ids=seen.sum(1, keepdim=True) + ahead),
        )
        return scores + _summed(later.logits, tokens[:, 1:], mask[:, 1:], again)

    def _of_text_to_text(self, prompts: list[list[int]]) -> Any:
        """The same with the prompt read once by the encoder, and every reply by the decoder."""
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        model = self._model.model
        laid = self._model.laid_out(prompts)
        read = model.get_encoder()(input_ids=laid.tokens, attention_mask=laid.mask).last_hidden_state
        tokens, mask = _padded(self._replies, model.device)
        start = torch.full_like(tokens[:, :1], model.config.decoder_start_token_id)
        again, each = len(prompts), len(self._replies)
        out = model(
            encoder_outputs=BaseModelOutput(last_hidden_state=read.repeat_interleave(each, 0)),
            attention_mask=laid.mask.repeat_interleave(each, 0),
            decoder_input_ids=torch.cat([start, tokens[:, :-1]], dim=1).repeat(again, 1),
        )
        return _summed(out.logits, tokens, mask, again)


def _padded(rows: list[list[int]], device: Any) -> tuple[Any, Any]:
    import torch

    width = max(map(len, rows))
    tokens = [row + [0] * (width - len(row)) for row in rows]
    mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
    return torch.tensor(tokens, device=device), torch.tensor(mask, device=device)


def _summed(logits: Any, tokens: Any, mask: Any, again: int) -> Any:
    """Sums of the tokens' log-probabilities, where ``logits`` has all replies for each of ``again`` prompts."""
    import torch

    wanted = tokens.repeat(again, 1).unsqueeze(2)
    logs = torch.log_softmax(logits.float(), dim=2).gather(2, wanted).squeeze(2)
    return (logs * mask.repeat(again, 1)).sum(1).view(again, -1)
