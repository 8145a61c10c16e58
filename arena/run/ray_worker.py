"""A Ray worker process: sends prompts to one judge's provider, and exchanges prompts and replies in batches."""

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
from retrieval_eval.data.trec import read_recordings

_GATHERED_S = 0.005
"""Seconds for which a worker collects replies into one message: each message costs Ray about a millisecond."""

WorkerReply: TypeAlias = Completion | Exception


class OpenedProvider(Struct, frozen=True):
    """What a worker reports about its provider; ``problem`` says why it cannot be opened, ``None`` if it can."""

    judges_names: bool = False
    identity: Mapping[str, str | int | float | None] | None = None
    problem: str | None = None
    lacking: str = ""


class Worker:
    """Receives prompts and returns replies in batches; each reply can be fetched as soon as it arrives.

    The worker reads the key from its own machine's environment and never logs texts. ``provider`` is ``None`` if it
    could not be opened.
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
        return self._opened

    async def node(self) -> str:
        """Address of the machine in the cluster on which the worker runs."""
        from ray.util import get_node_ip_address

        return str(get_node_ip_address())

    async def take(self, prompts: Sequence[tuple[int, Prompt]]) -> None:
        """Send these prompts to the provider; each has a number from the caller, which its reply will have too."""
        for number, prompt in prompts:
            task = asyncio.create_task(self._ask(number, prompt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def replies(self, turn: int) -> list[tuple[int, WorkerReply]]:
        """Return the replies that arrived since the last call; waits until there is at least one.

        Args:
            turn: number of this call. An abandoned call must not take the replies meant for a later call.
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
        except Exception as error:  # raised again in the process that sent the prompt
            reply = error
        self._replies.append((number, reply))
        self._arrived.set()
