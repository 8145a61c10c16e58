"""What runs in a worker process of Ray: one judge's provider, with a mailbox for prompts and replies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from judges.errors import InputError, JudgeStoppedError, TransientError
from judges.functions import contained
from judges.providers import Provider, open_provider
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt
from retrieval_eval.data.recordings import read_recordings

_GATHERED_S = 0.005
"""How long replies are gathered: a message costs Ray about a millisecond, however much it holds."""

WorkerReply: TypeAlias = Completion | Exception


class OpenedProvider(Struct, frozen=True):
    """What a worker says of its provider; ``problem`` is why it cannot be used, ``lacking`` see ``UserFunction``."""

    judges_names: bool = False
    identity: Mapping[str, str | int | float | None] | None = None
    problem: str | None = None
    lacking: str = ""


class Worker:
    """Takes prompts in batches and hands replies out in batches, each as soon as it is there.

    Args:
        spec: the judge's declaration. A key is read from this machine's environment, and nothing here logs texts.

    Attributes:
        provider: ``None`` where it cannot be opened.
    """

    def __init__(self, spec: JudgeSpec) -> None:
        self._timeout_s = spec.reply_s
        self.provider: Provider | None = None
        self._opened = OpenedProvider()
        self._replies: list[tuple[int, WorkerReply]] = []
        self._arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = 0
        try:
            self.provider = open_provider(spec, read_recordings)
        except InputError as error:
            self._opened = OpenedProvider(problem=str(error))
        else:
            self._opened = OpenedProvider(
                self.provider.judges_names, self.provider.identity, lacking=getattr(self.provider, "lacking", "")
            )

    async def opened(self) -> OpenedProvider:
        """Whether it can be used, and as what its judgments are known."""
        return self._opened

    async def node(self) -> str:
        """The address of the machine that it runs on, as the cluster knows it."""
        from ray.util import get_node_ip_address

        return str(get_node_ip_address())

    async def take(self, prompts: Sequence[tuple[int, Prompt]]) -> None:
        """Begin to ask these, each under a number of the caller's."""
        for number, prompt in prompts:
            task = asyncio.create_task(self._ask(number, prompt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def replies(self, turn: int) -> list[tuple[int, WorkerReply]]:
        """What has come since the last time, as soon as that is something.

        Args:
            turn: counts the caller's questions: one that was given up must not take what a later one waits for.
        """
        self._turn = turn
        while turn == self._turn and not self._replies:
            await self._arrived.wait()
            self._arrived.clear()
        await asyncio.sleep(_GATHERED_S)
        if turn != self._turn:
            self._arrived.set()
            return []
        replies, self._replies = self._replies, []
        return replies

    async def _ask(self, number: int, prompt: Prompt) -> None:
        reply: WorkerReply
        try:
            if self.provider is None:
                raise JudgeStoppedError("stopped", self._opened.problem or "the provider cannot be opened")
            async with asyncio.timeout(self._timeout_s):
                reply = await contained(self.provider.complete(prompt))
        except TimeoutError:
            reply = TransientError("timeout", f"no reply within {self._timeout_s:g} s")
        except Exception as error:  # raised again where the prompt came from
            reply = error
        self._replies.append((number, reply))
        self._arrived.set()
