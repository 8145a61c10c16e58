"""A tiny real question-answering model that was taught where one word stands, and to say when it stands nowhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WINDOW = 64
FILLER = ["the", "skin", "has", "three", "layers", "and", "covers", "all", "of", "a", "body", "with", "hair", "nails"]
ANSWER = ("upper", "epidermis")
QUESTION = "which is the outermost layer"


def save_tiny_qa_model(folder: Path, steps: int = 60) -> Path:
    """Save a BERT that finds "upper epidermis" in any passage of ``FILLER``, and no answer where that is missing."""
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = _word_tokenizer()
    shape = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=WINDOW, pad_token_id=0, **shape, **dropout
    )
    model = transformers.BertForQuestionAnswering(config)
    _teach(model, tokenizer, steps)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def passage(words: int, answer_at: Sequence[int] = (), seed: int = 0) -> str:
    """Filler of so many words, with the answer before each of the given places."""
    chosen = random.Random(seed).choices(FILLER, k=words)
    for place in sorted(answer_at, reverse=True):
        chosen[place:place] = ANSWER
    return " ".join(chosen)


def _word_tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = list(dict.fromkeys([*special, *FILLER, *ANSWER, *QUESTION.split()]))
    plain = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, "[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    plain.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=WINDOW,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _teach(model: Any, tokenizer: Any, steps: int) -> None:
    import torch

    draw = random.Random(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for step in range(steps):
        there = [draw.random() < 0.6 for _ in range(16)]
        words = WINDOW - len(QUESTION.split()) - 3 - len(ANSWER)
        places = [draw.randrange(words) for _ in there]
        texts = [
            passage(words, (place,) if answered else (), seed=100 * step + number)
            for number, (answered, place) in enumerate(zip(there, places, strict=True))
        ]
        inputs = tokenizer([QUESTION] * len(texts), texts, padding=True, return_tensors="pt")
        first = len(QUESTION.split()) + 2
        starts = torch.tensor([first + place if answered else 0 for answered, place in zip(there, places, strict=True)])
        ends = torch.where(starts > 0, starts + len(ANSWER) - 1, 0)
        model(**inputs, start_positions=starts, end_positions=ends).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
