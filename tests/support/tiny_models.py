"""Tiny real models with a character tokenizer, made and, where wanted, taught a few replies on the spot."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from judges.providers import open_provider
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt

Family = Literal["causal", "text-to-text"]

CHAT_TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
NO_SYSTEM_TEMPLATE = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}" + CHAT_TEMPLATE
)
CONTEXT = 512


async def asked(spec: JudgeSpec, *prompts: Prompt) -> list[Completion]:
    provider = open_provider(spec)
    try:
        return await asyncio.gather(*(provider.complete(each) for each in prompts))
    finally:
        await provider.close()


def save_tiny_model(
    folder: Path,
    family: Family = "causal",
    *,
    chat_template: str | None = None,
    taught: Mapping[str, str] | None = None,
    steps: int = 80,
) -> Path:
    """Save a model that replies with garbage, or to each rendered prompt of ``taught`` with its reply."""
    import torch

    torch.manual_seed(0)
    tokenizer = _character_tokenizer(chat_template)
    model = _random_model(family, len(tokenizer))
    if taught:
        _teach(model, tokenizer, taught, steps, family)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_random_chat_model(folder: Path, *, width: int, layers: int, context: int, half: bool = False) -> Path:
    """Save an untaught causal model of a size that takes time; ``half`` in bfloat16."""
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = _character_tokenizer(CHAT_TEMPLATE)
    shape = {"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": layers}
    special = {"vocab_size": len(tokenizer), "eos_token_id": 1, "pad_token_id": 0, "bos_token_id": 1}
    config = transformers.LlamaConfig(
        **shape, **special, num_attention_heads=width // 64, max_position_embeddings=context
    )
    model = transformers.LlamaForCausalLM(config)
    (model.to(torch.bfloat16) if half else model).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _character_tokenizer(chat_template: str | None) -> Any:
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    characters = ["\n", *(chr(code) for code in range(32, 127))]
    vocabulary = {token: number for number, token in enumerate(["<pad>", "</s>", "<unk>", *characters])}
    plain = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    plain.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain,
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def _random_model(family: Family, vocabulary: int) -> Any:
    import transformers

    special = {"vocab_size": vocabulary, "eos_token_id": 1, "pad_token_id": 0}
    if family == "causal":
        shape = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.LlamaConfig(**shape, **special, bos_token_id=1, max_position_embeddings=CONTEXT)
        return transformers.LlamaForCausalLM(config)
    shape = {"d_model": 48, "d_kv": 24, "d_ff": 96, "num_layers": 2, "num_heads": 2, "dropout_rate": 0.0}
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**shape, **special, decoder_start_token_id=0))


def _teach(model: Any, tokenizer: Any, taught: Mapping[str, str], steps: int, family: Family) -> None:
    """Overfit: a memorised reply is a right reply, made by the real generation."""
    import torch

    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(steps):
        for prompt, reply in taught.items():
            asked = tokenizer(prompt)["input_ids"]
            wanted = [*tokenizer(reply)["input_ids"], tokenizer.eos_token_id]
            if family == "causal":
                sequence, labels = asked + wanted, [-100] * len(asked) + wanted
            else:
                sequence, labels = asked, wanted
            model(input_ids=torch.tensor([sequence]), labels=torch.tensor([labels])).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()


def save_tiny_encoder(folder: Path) -> Path:
    """Save a random BERT that reads 64 characters."""
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = _character_tokenizer(None)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, pad_token_id=0, **shape)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
