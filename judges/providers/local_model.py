"""A model on this machine: conversations in, texts out. Everything that touches torch is here."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judges.errors import InputError, JudgeStoppedError, RejectedError
from judges.providers.texts import one_line
from judges.types import Finish

Conversation = Sequence[Mapping[str, str]]
"""Messages with ``role`` and ``content``."""

_SAMPLES, _SAMPLE_BYTES = 64, 65536


@dataclass(frozen=True, slots=True)
class Decoding:
    """How replies are written: greedily, unless a temperature above 0 is given. Never by beams."""

    max_new_tokens: int
    temperature: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """One reply with its lengths in tokens."""

    text: str
    finish: Finish
    input_tokens: int
    output_tokens: int


class LocalModel:
    """A causal or a text-to-text (T5, BART) model with its tokenizer.

    Chat models get their own chat template, others the messages one after another. Loaded as the checkpoint is stored,
    without running code that comes with it.
    """

    def __init__(self, source: str, device: str, decoding: Decoding) -> None:
        """Load.

        Raises:
            JudgeStoppedError: there is no such model, or it cannot be loaded.
        """
        import torch
        import transformers

        transformers.utils.logging.disable_progress_bar()  # it would write across ours
        try:
            config = transformers.AutoConfig.from_pretrained(source)
            family = (
                transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
            )
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(source)
            self._model = family.from_pretrained(source, dtype="auto").to(device).eval()
        except (OSError, ValueError, RuntimeError) as error:
            raise JudgeStoppedError("unknown_model", one_line(f"{source}: cannot be loaded: {error}")) from error
        if decoding.seed is not None:
            torch.manual_seed(decoding.seed)
        self._is_encoder_decoder = bool(config.is_encoder_decoder)
        self._context = getattr(config.get_text_config(), "max_position_embeddings", None)
        self._max_new_tokens = decoding.max_new_tokens
        self._tokenizer.padding_side = "right" if self._is_encoder_decoder else "left"
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token or self._tokenizer.unk_token
        self._generation = _generation_config(self._model.generation_config, decoding, self._tokenizer.pad_token_id)
        self._template_has_system = self._accepts_system_messages()

    def generate(self, conversations: Sequence[Conversation]) -> list[Generation | RejectedError]:
        """Reply to each conversation, all in one batch; to one that does not fit the model with an error."""
        texts = [self._rendered(conversation) for conversation in conversations]
        lengths = [len(ids) for ids in self._tokenized(texts)["input_ids"]]
        fitting = [index for index, length in enumerate(lengths) if self._fits(length)]
        replies: list[Generation | RejectedError] = [self._too_long(length) for length in lengths]
        written = self._generated([texts[index] for index in fitting], [lengths[index] for index in fitting])
        for index, reply in zip(fitting, written, strict=True):
            replies[index] = reply
        return replies

    def _generated(self, texts: Sequence[str], lengths: Sequence[int]) -> list[Generation | RejectedError]:
        import torch

        if not texts:
            return []
        try:
            return self._batch(texts, lengths)
        except torch.OutOfMemoryError:
            if len(texts) == 1:
                return [RejectedError("server_error", f"out of memory with a prompt of {lengths[0]} tokens")]
        half = len(texts) // 2
        return self._generated(texts[:half], lengths[:half]) + self._generated(texts[half:], lengths[half:])

    def _batch(self, texts: Sequence[str], lengths: Sequence[int]) -> list[Generation | RejectedError]:
        import torch

        inputs = self._tokenized(texts, padding=True, return_tensors="pt").to(self._model.device)
        with torch.inference_mode():
            sequences = self._model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                generation_config=self._generation,
            )
        prefix = 1 if self._is_encoder_decoder else inputs["input_ids"].shape[1]
        written = sequences[:, prefix:].tolist()
        return [self._read(tokens, length) for tokens, length in zip(written, lengths, strict=True)]

    def _read(self, tokens: list[int], input_tokens: int) -> Generation:
        """One row of a batch up to its end token; behind it is padding."""
        ends = self._generation.eos_token_id
        ends = {ends} if isinstance(ends, int) else set(ends or ())
        end = next((index for index, token in enumerate(tokens) if token in ends), None)
        kept = tokens if end is None else tokens[:end]
        text = self._tokenizer.decode(kept, skip_special_tokens=True)
        finish = Finish.LENGTH if end is None else Finish.STOP
        return Generation(text, finish, input_tokens, len(kept) + (end is not None))

    def _rendered(self, conversation: Conversation) -> str:
        if self._tokenizer.chat_template is None:
            return "\n\n".join(message["content"] for message in conversation)
        messages = list(conversation) if self._template_has_system else _system_folded(conversation)
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text

    def _tokenized(self, texts: Sequence[str], **options: Any) -> Any:
        # A chat template writes the special tokens itself.
        plain = self._tokenizer.chat_template is None
        return self._tokenizer(list(texts), add_special_tokens=plain, **options)

    def _accepts_system_messages(self) -> bool:
        """Some templates, Gemma's for one, raise an error on a system message."""
        import jinja2

        if self._tokenizer.chat_template is None:
            return True
        messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
        try:
            self._tokenizer.apply_chat_template(messages, tokenize=False)
        except jinja2.TemplateError:
            return False
        return True

    def _fits(self, length: int) -> bool:
        reply = 0 if self._is_encoder_decoder else self._max_new_tokens
        return self._context is None or length + reply <= self._context

    def _too_long(self, length: int) -> RejectedError:
        return RejectedError(
            "bad_request",
            f"a prompt of {length} tokens and a reply of up to {self._max_new_tokens} do not fit the model's "
            f"{self._context}; lower max_tokens or show fewer documents",
        )


def device_or_error(wanted: str | None) -> str:
    """The device to use: the one wanted, else an accelerator if there is one, else the CPU.

    Raises:
        InputError: the device is not there.
    """
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if wanted is None:
        return accelerator.type if accelerator else "cpu"
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {wanted!r} cannot be used: {one_line(str(error))}") from error
    return wanted


def fingerprint(folder: Path) -> str:
    """Tells the models of two folders apart without reading gigabytes: a hash over all files, large ones in samples."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        size = path.stat().st_size
        total.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as raw:
            step = max(size // _SAMPLES, _SAMPLE_BYTES)
            for start in range(0, size, step):
                raw.seek(start)
                total.update(raw.read(_SAMPLE_BYTES))
    return total.hexdigest()[:16]


def _generation_config(own: Any, decoding: Decoding, pad_token_id: int | None) -> Any:
    """The model's own settings (end tokens, penalties) with our way of decoding."""
    config = copy.deepcopy(own)
    config.max_length, config.max_new_tokens, config.num_beams = None, decoding.max_new_tokens, 1
    config.pad_token_id = pad_token_id
    config.do_sample = bool(decoding.temperature)
    if config.do_sample:
        config.temperature = decoding.temperature
    else:
        config.temperature = config.top_p = config.top_k = None
    return config


def _system_folded(conversation: Conversation) -> list[Mapping[str, str]]:
    """The same conversation with the system message at the head of the first user message."""
    first, second, *rest = conversation
    if first["role"] != "system":
        return list(conversation)
    return [{"role": "user", "content": f"{first['content']}\n\n{second['content']}"}, *rest]
