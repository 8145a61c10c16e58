"""Generative models on this machine, run with torch and transformers: conversations in, texts out."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from judges.errors import JudgeStoppedError, ProviderError, RejectedError
from judges.masking import storable
from judges.providers.local import Divider, LocalSource, arrange_batches, shared_prefix, try_each
from judges.reply_text import with_opening
from judges.spec import JudgeSpec
from judges.types import Completion, Finish, Usage

Conversation = Sequence[Mapping[str, str]]
"""Messages with ``role`` and ``content``."""

_OPENING_TOKENS = 16
"""Tokens at the end of a prompt that may contain the opening tag of reasoning."""
_LEAST_PREFIX = 16
"""Least length of a shared prefix, in tokens, that is computed once for all prompts of a batch."""

Result = TypeVar("Result")
Indexed: TypeAlias = tuple[int, Result | ProviderError]
"""A prompt's index among the prompts of a call, and its result or failure."""


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
        """Load the model.

        Raises:
            JudgeStoppedError: the chat template does not use a declared option.
            Exception: any exception of the libraries, if the model does not exist or cannot be loaded.
        """
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

        Args:
            prompts: tokens of each prompt; prompts that do not fit the model get an error.
            size: size of the largest batch.
            room: number of tokens to reserve for the reply.
            work: takes a batch and returns a result for each prompt.

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
        """The reply in one row of a batch, up to its end token. Reasoning may begin in the prompt."""
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
        """The text of a conversation, up to the start of the reply."""
        if self.tokenizer.chat_template is None:
            return "\n\n".join(message["content"] for message in conversation)
        messages = list(conversation) if self._template_has_system else _system_folded(conversation)
        text: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **self._template_options
        )
        return text

    def accepted(self, **options: Any) -> dict[str, Any]:
        """The options that the model's forward pass accepts."""
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
    """Declared options for the model's devices and attention; transformers chooses the others."""
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
