"""What makes a local judge fast, each beside its absence in the same run: ``python -m benchmarks.local_judges``.

The model is random and made on the spot, so it writes every reply to its full length: ``--written`` tokens. Prompts are
games: instructions that all share, a query with documents that its games share, and two answers of their own. Verdicts
with and without sharing are held against each other.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

from judges.providers import local_model
from judges.providers.likeliest import allowed_replies
from judges.providers.local_model import Conversation, Decoding, Layout, LocalModel
from judges.providers.local_scores import Scores, scored
from judges.types import ReplyContract
from tests.support.tiny_models import save_random_chat_model

VERDICT = ReplyContract("explanation", {"verdict": {"A": "A", "B": "B", "C": "TIE"}})
INSTRUCTIONS, DOCUMENTS, ANSWERS = 900, 600, (50, 500)
"""Characters, each a token: of the instructions, of a query's documents, and of both answers of a game."""
CONTEXT = 4096


def games(queries: int, each: int) -> list[Conversation]:
    """Games in the order of a schedule that draws queries and agents at random."""
    draw = random.Random(0)

    def text(length: int) -> str:
        return "".join(draw.choices("abcdefghij ", k=length))

    instructions, documents = text(INSTRUCTIONS), [text(DOCUMENTS) for _ in range(queries)]
    asked = [documents[at] + text(draw.randint(*ANSWERS)) for at in range(queries) for _ in range(each)]
    draw.shuffle(asked)
    return [[{"role": "system", "content": instructions}, {"role": "user", "content": user}] for user in asked]


def as_they_come(prompts: Sequence[list[int]], size: int) -> list[list[int]]:
    """Batches without any arrangement."""
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


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--games", type=int, default=8, help="of each query")
    parser.add_argument("--size", type=int, default=8, help="of a batch")
    parser.add_argument("--written", type=int, default=64, help="tokens of a reply")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        save_random_chat_model(Path(folder), width=given.width, layers=given.layers, context=CONTEXT)
        model = LocalModel(folder, Layout(given.device), Decoding(given.written))
        asked = games(given.queries, given.games)
        replies = [allowed_replies(VERDICT)] * len(asked)

        def score() -> list[Scores]:
            return [each for each in scored(model, asked, replies, given.size) if isinstance(each, Scores)]

        def write() -> object:
            return model.generate(asked, given.size)

        score()  # pays what is paid only once
        shares = score()
        plain = {"_WORTH_SHARING": CONTEXT}
        fifo = {"arranged": as_they_come}
        seconds = {"scored": timed(score), "written": timed(write)}
        with mock.patch.multiple(local_model, **plain):
            seconds |= {"scored, nothing shared": timed(score), "written, nothing shared": timed(write)}
        with mock.patch.multiple(local_model, **fifo):
            seconds["scored, as they come"] = timed(score)
        with mock.patch.multiple(local_model, **plain, **fifo):
            seconds["scored, nothing shared, as they come"] = timed(score)
            alone = score()
            seconds["written, nothing shared, as they come"] = timed(write)
    for name, taken in seconds.items():
        print(f"{name}: {len(asked) / taken:.1f} prompts/s, {taken / seconds['scored']:.2f} of scored")
    furthest = max(
        abs(one - other)
        for with_all, without in zip(shares, alone, strict=True)
        for one, other in zip(with_all.probabilities, without.probabilities, strict=True)
    )
    same = sum(one.best == other.best for one, other in zip(shares, alone, strict=True))
    print(f"verdicts with and without: {same} of {len(asked)} the same, probabilities apart by at most {furthest:.1g}")


if __name__ == "__main__":
    main()
