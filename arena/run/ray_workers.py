"""A judge's provider on Ray: prompts go to workers anywhere in a cluster, and replies come back.

Prompts and replies travel in batches, whatever has come within a few milliseconds. One task of Ray for each prompt
would cost a millisecond of this process's time, which alone feeds all workers.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from arena.config.executor import ExecutorSection
from arena.run.ray_cluster import PROGRESS, connect, first_line
from arena.run.ray_worker import Opened, Reply, Worker
from judges.errors import InputError, TransientError
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt

_GATHERED_S = 0.002
_AGAIN_S = 0.5
"""How often a worker that was lost is asked whether it is back."""
_MEMORY = 2**20
_SOON_S = 10.0
"""After this time you are told that workers are waited for."""


class RayProvider:
    """One judge's workers; each prompt goes to the one with the fewest in flight.

    A worker that dies, alone or with its machine, fails its prompts as a lost connection would: the judge asks again,
    and another worker gets them. Ray starts it anew where it can.

    Args:
        name: of the judge, for messages.
        spec: its declaration, as one worker sees it.
        executor: where the workers are to be.

    Raises:
        InputError: the cluster cannot be reached, or a worker cannot open the provider.
    """

    def __init__(self, name: str, spec: JudgeSpec, executor: ExecutorSection) -> None:
        connect(executor)
        self._wait_s = executor.wait_s
        gpus = executor.gpus if spec.runs_here else 0
        # No CPU is asked for, since a worker mostly waits: it would never start where others hold them all. Ray
        # does not spread workers that ask for nothing at all, and all would die with one machine.
        actor = ray.remote(num_cpus=0, num_gpus=gpus, memory=_MEMORY, max_restarts=-1, scheduling_strategy="SPREAD")(
            Worker
        )
        self._workers = [_Mailbox(actor.remote(spec), name) for _ in range(executor.workers)]
        try:
            _wait_for_gpus(name, gpus * executor.workers, executor.wait_s)
            opened = _opened(name, self._workers, executor.wait_s)
        except BaseException:
            for worker in self._workers:
                worker.kill()
            raise
        self.judges_names = opened.judges_names
        self.identity: Mapping[str, str | int | float | None] = opened.identity or {}

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask one worker.

        Raises:
            ProviderError: as the provider does; ``TransientError`` too where the worker is lost.
        """
        try:
            async with asyncio.timeout(self._wait_s):
                while not (alive := [worker for worker in self._workers if worker.alive]):
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            raise TransientError("connection", "all workers of this judge are lost") from None
        return await min(alive, key=lambda worker: worker.in_flight).ask(prompt)

    async def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            await worker.close()


class _Mailbox:
    """This side of one worker.

    Attributes:
        worker: the other side.
        node: the address of its machine, as the cluster knows it.
    """

    def __init__(self, worker: Any, judge: str) -> None:
        self.worker, self.node, self._judge = worker, "", judge
        self.alive, self._closed = True, False
        self._numbers, self._turns = itertools.count(), itertools.count(1)
        self._awaited: dict[int, asyncio.Future[Completion]] = {}
        self._outgoing: list[tuple[int, Prompt]] = []
        self._sending: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        """Prompts without a reply."""
        return len(self._awaited)

    async def ask(self, prompt: Prompt) -> Completion:
        """Send a prompt together with others, and wait for its reply."""
        number = next(self._numbers)
        reply: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._awaited[number] = reply
        self._outgoing.append((number, prompt))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        try:
            return await reply
        finally:
            self._awaited.pop(number, None)

    async def _send(self) -> None:
        while self._outgoing:
            await asyncio.sleep(_GATHERED_S)
            batch, self._outgoing = self._outgoing, []
            try:
                await self.worker.take.remote(batch)
            except RayError as error:
                self._lost(error)

    async def _read(self) -> None:
        """Hand out replies until closed."""
        while True:
            try:
                if not self.alive:
                    self.node = await self.worker.node.remote()
                    self.alive = True
                for number, reply in await self.worker.replies.remote(next(self._turns)):
                    self._hand_out(number, reply)
            except RayError as error:
                if self._closed:
                    return
                self._lost(error)
                await asyncio.sleep(_AGAIN_S)

    def _hand_out(self, number: int, reply: Reply) -> None:
        future = self._awaited.get(number)
        if future is None or future.done():  # whoever asked has given up meanwhile
            return
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def _lost(self, error: RayError) -> None:
        """Fail what waits: a worker's own mistake as what it is, a worker that is gone as a lost connection."""
        mistake = isinstance(error, RayTaskError)
        if self.alive and not (mistake or self._closed):
            waiting = sum(not future.done() for future in self._awaited.values())
            PROGRESS.warning(
                "executor: a worker of judge %r died on node %s; its %d judgments are asked again",
                self._judge,
                self.node,
                waiting,
            )
        self.alive = self.alive and mistake
        for number in list(self._awaited):
            gone = TransientError("connection", f"a worker of this judge was lost ({type(error).__name__})")
            self._hand_out(number, error if mistake else gone)

    async def close(self) -> None:
        """End the worker and whatever waits for it."""
        self._closed = True
        self.kill()  # which ends what waits for it; broken off, Ray's client would not take a late reply
        tasks = [task for task in (self._sending, self._reading) if task is not None]
        _, waiting = await asyncio.wait(tasks, timeout=_SOON_S) if tasks else ((), ())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def kill(self) -> None:
        """End the worker."""
        with suppress(RayError):
            ray.kill(self.worker)


def _wait_for_gpus(name: str, needed: float, wait_s: float) -> None:
    """Wait for the machines that a cluster starts when workers ask for them."""
    began, told = time.monotonic(), False
    while needed > (there := float(ray.cluster_resources().get("GPU", 0))):
        lacking = f"executor: the workers of judge {name!r} need {needed:g} GPUs, the cluster has {there:g}"
        if time.monotonic() - began >= wait_s:
            raise InputError(lacking)
        if not told:
            PROGRESS.info("%s; waiting up to %g s for more (executor.wait_s)", lacking, wait_s)
            told = True
        time.sleep(_AGAIN_S)


def _opened(name: str, workers: list[_Mailbox], wait_s: float) -> Opened:
    """What all workers say of their provider, which must be the same."""
    asked = [each.worker.opened.remote() for each in workers]
    try:
        started, waiting = ray.wait(asked, num_returns=len(asked), timeout=_SOON_S)
        if waiting:
            PROGRESS.info(
                "executor: %d of %d workers of judge %r have started; waiting up to %g s for the others",
                len(started),
                len(asked),
                name,
                wait_s,
            )
        told: list[Opened] = ray.get(asked, timeout=max(wait_s, _SOON_S))
        nodes = ray.get([each.worker.node.remote() for each in workers], timeout=_SOON_S)
    except (RayError, GetTimeoutError) as error:
        raise InputError(f"executor: the workers of judge {name!r} do not start: {first_line(error)}") from error
    for opened in told:
        if opened.problem is not None:
            raise InputError(f"judges.{name}, on a worker: {opened.problem}")
    if any(opened.identity != told[0].identity for opened in told):
        raise InputError(f"judges.{name}: the workers' machines have different models under this name")
    for each, node in zip(workers, nodes, strict=True):
        each.node = node
    return told[0]
