"""A local judge beside plain ``generate``, and what makes it fast, in one run: ``python -m benchmarks.local_judges``.

The model is random and made on the spot, as large as ``--parameters`` says, on an accelerator if there is one. It
writes every reply to its full length: ``--written`` tokens. Prompts are games: instructions that all share, a query
with documents that its games share, and two answers of their own.

First the whole provider, as a run asks it, with labels written and scored, beside what transformers' own ``generate``
does with the same prompts in batches of the same size as they come. Then scoring and writing alone, with and without
what prompts share and batches that fit; the verdicts with and without are held against each other.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from judges.contracts import allowed_replies
from judges.providers import open_provider, transformers
from judges.providers.local import local_source
from judges.providers.transformers import Conversation, LocalModel, ReplyScores, score_replies
from judges.spec import JudgeSpec
from judges.types import Completion, Inputs, Prompt, Query, ReplyContract, Task
from tests.support.tiny_models import save_random_chat_model

VERDICT = ReplyContract("explanation", {"verdict": {"A": "A", "B": "B", "C": "TIE"}})
INSTRUCTIONS, DOCUMENTS, ANSWERS = 900, 600, (50, 500)
"""Characters, each a token: of the instructions, of a query's documents, and of both answers of a game."""
CONTEXT = 4096
OF_A_LAYER = 13
"""Parameters of a layer, in squares of its width: four of attention, nine of the rest at three times the width."""


def shape(parameters: float) -> tuple[int, int]:
    """Width and layers of a model with about so many parameters, in the proportions of models in use."""
    width = max(64, round((parameters * 128 / OF_A_LAYER) ** (1 / 3) / 64) * 64)
    return width, max(1, round(parameters / OF_A_LAYER / width**2))


def games(queries: int, each: int) -> list[Conversation]:
    draw = random.Random(0)

    def text(length: int) -> str:
        return "".join(draw.choices("abcdefghij ", k=length))

    instructions, documents = text(INSTRUCTIONS), [text(DOCUMENTS) for _ in range(queries)]
    asked = [documents[at] + text(draw.randint(*ANSWERS)) for at in range(queries) for _ in range(each)]
    draw.shuffle(asked)
    return [[{"role": "system", "content": instructions}, {"role": "user", "content": user}] for user in asked]


def as_they_come(prompts: Sequence[list[int]], size: int) -> list[list[int]]:
    return [list(range(start, min(start + size, len(prompts)))) for start in range(0, len(prompts), size)]


def timed(work: Callable[[], object]) -> float:
    """Seconds of this process' own on the CPU, so that others at work do not count; on an accelerator until it ends."""
    import torch

    on_accelerator = torch.accelerator.is_available()
    clock = time.perf_counter if on_accelerator else time.process_time
    started = clock()
    work()
    if on_accelerator:
        torch.accelerator.synchronize()
    return clock() - started


def plainly(model: LocalModel, asked: Sequence[Conversation], size: int, written: int) -> None:
    """Transformers by itself: batches as they come, padded to their longest, each written to the end."""
    model.tokenizer.padding_side = "left"
    for start in range(0, len(asked), size):
        texts = [model.rendered(each) for each in asked[start : start + size]]
        batch = model.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        rows: dict[str, Any] = {name: batch[name].to(model.model.device) for name in ("input_ids", "attention_mask")}
        replies = model.model.generate(
            **rows, max_new_tokens=written, do_sample=False, pad_token_id=model.tokenizer.pad_token_id
        )
        model.tokenizer.batch_decode(replies[:, rows["input_ids"].shape[1] :], skip_special_tokens=True)


def through_provider(folder: str, asked: Sequence[Conversation], **declared: Any) -> float:
    """Seconds for all prompts, asked at once as a run asks them; the model is loaded before."""
    spec = JudgeSpec.model_validate({"provider": "transformers", "path": folder, "concurrency": len(asked), **declared})
    prompts = [
        Prompt(Task.PAIRWISE, "game", "1", system["content"], user["content"], VERDICT, Inputs(Query("q", "")))
        for system, user in asked
    ]
    with asyncio.Runner() as runner:
        provider = open_provider(spec)

        async def ask(some: Sequence[Prompt]) -> list[Completion]:
            return await asyncio.gather(*map(provider.complete, some))

        runner.run(ask(prompts[:1]))
        seconds = timed(lambda: runner.run(ask(prompts)))
        runner.run(provider.close())
    return seconds


def compared(model: LocalModel, folder: str, asked: Sequence[Conversation], given: argparse.Namespace) -> None:
    declared = {"batch_size": given.size, "max_tokens": given.written, "device": given.device}
    plainly(model, asked[: given.size], given.size, 1)
    seconds = {
        "plain generate": timed(lambda: plainly(model, asked, given.size, given.written)),
        "labels: written": through_provider(folder, asked, **declared),
        "labels: likeliest": through_provider(folder, asked, labels="likeliest", **declared),
    }
    for name, taken in seconds.items():
        print(f"{name}: {len(asked) / taken:.2f} prompts/s, {seconds['plain generate'] / taken:.2f} x plain generate")


def dissected(model: LocalModel, asked: Sequence[Conversation], size: int) -> None:
    replies = [allowed_replies(VERDICT)] * len(asked)

    def score() -> dict[int, ReplyScores]:
        found = score_replies(model, asked, replies, size)
        return {place: each for place, each in found if isinstance(each, ReplyScores)}

    def write() -> object:
        return list(model.generate(asked, size))

    shares = score()
    plain: dict[str, Any] = {"_WORTH_SHARING": CONTEXT}
    fifo: dict[str, Any] = {"arranged": as_they_come}
    seconds = {"scored": timed(score), "written": timed(write)}
    with mock.patch.multiple(transformers, **plain):
        seconds |= {"scored, nothing shared": timed(score), "written, nothing shared": timed(write)}
    with mock.patch.multiple(transformers, **fifo):
        seconds["scored, as they come"] = timed(score)
    with mock.patch.multiple(transformers, **plain, **fifo):
        seconds["scored, nothing shared, as they come"] = timed(score)
        alone = score()
        seconds["written, nothing shared, as they come"] = timed(write)
    for name, taken in seconds.items():
        print(f"{name}: {len(asked) / taken:.2f} prompts/s, {taken / seconds['scored']:.2f} of scored")
    furthest = max(
        abs(one - other)
        for place, with_all in shares.items()
        for one, other in zip(with_all.probabilities, alone[place].probabilities, strict=True)
    )
    same = sum(one.best == alone[place].best for place, one in shares.items())
    print(f"verdicts with and without: {same} of {len(asked)} the same, probabilities apart by at most {furthest:.1g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--games", type=int, default=8, help="of each query")
    parser.add_argument("--size", type=int, default=8, help="of a batch")
    parser.add_argument("--written", type=int, default=64, help="tokens of a reply")
    parser.add_argument("--parameters", type=float, default=3.5e6, help="of the model; 7e9 for one of 7B")
    parser.add_argument("--device", help="an accelerator if there is one, else the CPU")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    on_accelerator = torch.accelerator.is_available()
    accelerator = torch.accelerator.current_accelerator() if on_accelerator else None
    given.device = given.device or (accelerator.type if accelerator else "cpu")
    width, layers = shape(given.parameters)
    with tempfile.TemporaryDirectory() as folder:
        save_random_chat_model(Path(folder), width=width, layers=layers, context=CONTEXT, half=given.device != "cpu")
        asked = games(given.queries, given.games)
        spec = JudgeSpec(provider="transformers", path=Path(folder), device=given.device, max_tokens=given.written)
        model = LocalModel(local_source(spec), spec)
        parameters = sum(each.numel() for each in model.model.parameters())
        print(f"{parameters / 1e6:,.1f} million parameters, {width} wide, {layers} layers, on {given.device}")
        print(f"{len(asked)} games in batches of {given.size}, replies of {given.written} tokens")
        compared(model, folder, asked, given)
        dissected(model, asked, given.size)


if __name__ == "__main__":
    main()
