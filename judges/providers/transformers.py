"""The provider ``transformers``: generative models of Hugging Face (causal, or text-to-text such as FLAN-T5)."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from judges.contracts import allowed_replies, written_reply
from judges.errors import JudgeStoppedError, ProviderError, RejectedError
from judges.masking import storable
from judges.providers.local import Divider, LocalProvider, LocalSource, arrange_batches, shared_prefix, try_each
from judges.reply_text import with_opening
from judges.spec import JudgeSpec
from judges.types import Completion, Finish, Prompt, ReplyContract, Usage, word_per_value

Conversation = Sequence[Mapping[str, str]]
"""The messages of one prompt, each with ``role`` and ``content``."""

_OPENING_TOKENS = 16
"""Number of tokens at a prompt's end in which an opening tag of reasoning is looked for."""
_LEAST_PREFIX = 16
"""Shortest common prefix of a batch's prompts, in tokens, that is processed once for the whole batch."""

Result = TypeVar("Result")
Indexed: TypeAlias = tuple[int, Result | ProviderError]
"""The index of a prompt in the list passed to a method, and the prompt's result or failure."""


class PaddedBatch(Struct, frozen=True):
    """One batch of prompts as tensors of shape rows x tokens.

    Attributes:
        tokens: the tokens, with padding between the shared prefix and the rest (at the end for text-to-text models).
        mask: 1 for tokens, 0 for padding.
        shared: length of the prefix that all rows share.
        cache: the model's key-value cache of the prefix for each row; ``None`` without a prefix.
    """

    tokens: Any
    mask: Any
    shared: int
    cache: Any


class LocalModel:
    """A causal or a text-to-text (T5, BART) model with its tokenizer.

    Chat models use their chat template, others get the joined messages. The weights keep the checkpoint's data type.
    Code in the checkpoint is not run.
    """

    def __init__(self, local: LocalSource, spec: JudgeSpec) -> None:
        import torch
        import transformers

        source = local.source
        transformers.utils.logging.disable_progress_bar()  # it would overwrite ours
        config = transformers.AutoConfig.from_pretrained(source)
        family = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(source)
        model = family.from_pretrained(source, dtype="auto", **_placement_options(spec))
        self.model = (model if spec.device_map else model.to(local.device)).eval()
        self._name = local.name
        self._template_options = dict(spec.chat_template_kwargs)
        self._check_template(source)
        if spec.seed is not None:
            torch.manual_seed(spec.seed)
        self.is_encoder_decoder = bool(config.is_encoder_decoder)
        self._context = getattr(config.get_text_config(), "max_position_embeddings", None)
        self._max_new_tokens = spec.max_tokens
        self._divider = Divider()
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token
        self._pad = self.tokenizer.pad_token_id
        self._generation = _generation_config(self.model.generation_config, spec, self._pad)
        end_tokens = self._generation.eos_token_id
        self.end_tokens: Sequence[int] = [end_tokens] if isinstance(end_tokens, int) else list(end_tokens or ())
        self.last_logits_only = self.accepted(logits_to_keep=1)
        self._template_has_system = self._accepts_system_messages()

    def generate(self, conversations: Sequence[Conversation], size: int) -> Iterator[Indexed[Completion]]:
        """Reply to each conversation in batches of at most ``size``; overlong ones get an error."""
        prompts, failures = try_each(conversations, self.tokens)
        yield from failures
        places, room = list(prompts), 0 if self.is_encoder_decoder else self._max_new_tokens
        for at, reply in self.run_batches(list(prompts.values()), size, room, self._batch):
            yield places[at], reply

    def run_batches(
        self, prompts: Sequence[list[int]], size: int, room: int, work: Callable[[list[list[int]]], list[Result]]
    ) -> Iterator[Indexed[Result]]:
        """Run prompts in batches that cost little to compute, and in smaller batches if one fails.

        ``work`` takes the tokens of a batch of at most ``size`` prompts and returns their results. A prompt that does
        not fit the model with ``room`` tokens for the reply gets an error.

        Yields:
            Each prompt's index with its result, as soon as its batch is done.
        """
        lengths = [len(prompt) + room for prompt in prompts]
        for place, prompt in enumerate(prompts):
            if not self._fits(lengths[place]):
                yield place, self._too_long(len(prompt), room)
        fitting = [place for place, length in enumerate(lengths) if self._fits(length)]

        def batch(places: Sequence[int]) -> list[Result]:
            return work([prompts[place] for place in places])

        for chosen in arrange_batches([prompts[place] for place in fitting], size):
            places = [fitting[at] for at in chosen]
            for part, results in self._divider.parts(places, lengths.__getitem__, batch):
                yield from zip(part, [results] if isinstance(results, ProviderError) else results, strict=True)

    def _batch(self, prompts: list[list[int]]) -> list[Completion]:
        import torch

        with torch.inference_mode():
            batch = self.padded_batch(prompts)
            cache_options = {} if batch.cache is None else {"past_key_values": batch.cache}
            sequences = self.model.generate(
                input_ids=batch.tokens, attention_mask=batch.mask, generation_config=self._generation, **cache_options
            )
        prefix = 1 if self.is_encoder_decoder else batch.tokens.shape[1]
        written = sequences[:, prefix:].tolist()
        return [self._read(tokens, prompt) for tokens, prompt in zip(written, prompts, strict=True)]

    def padded_batch(self, prompts: list[list[int]]) -> PaddedBatch:
        """Pad one batch to tensors. For causal models, the prompts' common prefix is computed once for all rows."""
        import torch

        shared = 0 if self.is_encoder_decoder or len(prompts) == 1 else shared_prefix(prompts)
        shared = shared if shared >= _LEAST_PREFIX else 0
        width = max(map(len, prompts)) - shared
        rows, masks = [], []
        for prompt in prompts:
            rest, padding = prompt[shared:], [self._pad] * (width + shared - len(prompt))
            seen, unseen = [1] * len(rest), [0] * len(padding)
            left = not self.is_encoder_decoder
            rows.append([*prompt[:shared], *(padding + rest if left else rest + padding)])
            masks.append([1] * shared + (unseen + seen if left else seen + unseen))
        tokens = torch.tensor(rows, device=self.model.device)
        cache = None
        if shared:
            cache = self.model(input_ids=tokens[:1, :shared], use_cache=True, **self.last_logits_only).past_key_values
            cache.batch_repeat_interleave(len(prompts))
        return PaddedBatch(tokens, torch.tensor(masks, device=self.model.device), shared, cache)

    def _read(self, tokens: list[int], prompt: list[int]) -> Completion:
        """Decode the reply in one row of a batch, up to its end token.

        If the prompt's end opens reasoning that the reply closes, the opening tag is put before the reply.
        """
        end = next((index for index, token in enumerate(tokens) if token in self.end_tokens), None)
        written = tokens if end is None else tokens[:end]
        text = storable(self.tokenizer.decode(written, skip_special_tokens=True))
        text = with_opening(self.tokenizer.decode(prompt[-_OPENING_TOKENS:]), text)
        finish = Finish.LENGTH if end is None else Finish.STOP
        return Completion(text, self._name, finish, Usage(len(prompt), None, len(written) + (end is not None)))

    def tokens(self, conversation: Conversation) -> list[int]:
        """The tokens of a conversation, up to the start of the reply."""
        # Chat templates add the special tokens themselves.
        plain = self.tokenizer.chat_template is None
        tokens: list[int] = self.tokenizer(self.rendered(conversation), add_special_tokens=plain)["input_ids"]
        return tokens

    def rendered(self, conversation: Conversation) -> str:
        if self.tokenizer.chat_template is None:
            return "\n\n".join(message["content"] for message in conversation)
        messages = list(conversation) if self._template_has_system else _system_folded(conversation)
        text: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **self._template_options
        )
        return text

    def accepted(self, **options: Any) -> dict[str, Any]:
        """Those of ``options`` that are parameters of the model's forward pass."""
        known = inspect.signature(self.model.forward).parameters
        return {name: value for name, value in options.items() if name in known}

    def _check_template(self, source: str) -> None:
        """Refuse options that the chat template does not use, since templates silently ignore unknown ones."""
        template = str(self.tokenizer.chat_template or "")
        if unknown := [name for name in self._template_options if not re.search(rf"\b{re.escape(name)}\b", template)]:
            problem = "its chat template does not know it" if template else "the model has no chat template"
            raise JudgeStoppedError("unknown_model", f"{source}: chat_template_kwargs: {unknown[0]!r}: {problem}")

    def _accepts_system_messages(self) -> bool:
        """Whether the chat template accepts a system message; some, such as Gemma's, raise an error."""
        import jinja2

        if self.tokenizer.chat_template is None:
            return True
        messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
        try:
            self.tokenizer.apply_chat_template(messages, tokenize=False, **self._template_options)
        except jinja2.TemplateError:
            return False
        return True

    def _fits(self, length: int) -> bool:
        return self._context is None or length <= self._context

    def _too_long(self, length: int, room: int) -> RejectedError:
        return RejectedError(
            "bad_request",
            f"a prompt of {length} tokens and a reply of up to {room} do not fit the model's "
            f"{self._context}; lower max_tokens or show fewer documents",
        )


def _placement_options(spec: JudgeSpec) -> dict[str, Any]:
    """The declared options for the model's devices and attention, as arguments for loading the model."""
    options = {"device_map": spec.device_map, "attn_implementation": spec.attention}
    return {name: value for name, value in options.items() if value is not None}


def _generation_config(defaults: Any, spec: JudgeSpec, pad_token_id: int | None) -> Any:
    """The model's generation settings (end tokens, penalties), with greedy decoding or sampling at a temperature."""
    config = copy.deepcopy(defaults)
    config.max_length, config.max_new_tokens, config.num_beams = None, spec.max_tokens, 1
    config.pad_token_id = pad_token_id
    config.do_sample = bool(spec.temperature)
    if config.do_sample:
        config.temperature = spec.temperature
    else:
        config.temperature = config.top_p = config.top_k = None
    return config


def _system_folded(conversation: Conversation) -> list[Mapping[str, str]]:
    """The conversation with its system message moved to the start of the first user message."""
    first, second, *rest = conversation
    if first["role"] != "system":
        return list(conversation)
    return [{"role": "user", "content": f"{first['content']}\n\n{second['content']}"}, *rest]


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
        return await self._batcher.submit(prompt)

    def _load(self) -> LocalModel:
        return LocalModel(self._local, self._spec)

    def _work(self, model: LocalModel, items: Sequence[Prompt]) -> Iterator[tuple[int, Completion | Exception]]:
        """First answer, by scoring, the prompts that allow only certain replies; generating takes far longer."""
        conversations = [prompt.messages(prompt.system, prompt.user) for prompt in items]
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
    """Write the most probable reply. If replies have an explanation, it lists the probability of every label."""
    if contract.form != "brackets" and not (contract.form == "json" and contract.reason):
        return reply
    ((name, words),) = contract.choices.items()
    shares = zip(dict.fromkeys(words.values()), scores.probabilities, strict=True)
    each = ", ".join(f"{value} {share:.6f}" for value, share in shares)
    probability = scores.probabilities[scores.best]
    reason = f"likeliest of {len(scores.probabilities)} replies, with probability {probability:.3f} ({each})"
    return written_reply(contract, {name: word_per_value(words)[scores.best]}, reason)


def label_probabilities(reason: str) -> dict[str, float]:
    """The probability of each label, read from an explanation that ``explained`` wrote; empty for any other text."""
    match = _EXPLAINED.fullmatch(reason)
    if match is None:
        return {}
    pairs = (entry.rsplit(" ", 1) for entry in match[1].split(", "))
    return {value: float(share) for value, share in pairs}


_TAIL_CHARACTERS = 16
"""How many characters at a prompt's end are tokenized together with a reply, whose first token may depend on them."""


class ReplyScores(Struct, frozen=True):
    """The probability of each allowed reply to a prompt, and the numbers of tokens that were processed."""

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
    """The tokens that each reply has after this prompt, with the end token."""
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
    """Computes the probabilities of a fixed set of replies to each of many prompts."""

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
        """Log-probabilities of the replies, of shape prompts x replies, by an encoder-decoder model.

        The encoder runs once per prompt, the decoder on every reply.
        """
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
    """Sum each reply's token log-probabilities, to shape prompts x replies; ``logits`` has a row for each such pair."""
    import torch

    wanted = tokens.repeat(prompt_count, 1).unsqueeze(2)
    log_probabilities = torch.log_softmax(logits.float(), dim=2).gather(2, wanted).squeeze(2)
    return (log_probabilities * mask.repeat(prompt_count, 1)).sum(1).view(prompt_count, -1)
