"""A judge's provider on Ray: prompts go to workers anywhere in a cluster, and replies come back.

Prompts and replies travel in batches, whatever has come within a few milliseconds. One task of Ray for each prompt
would cost a millisecond of this process's time, which alone feeds all workers.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from arena.config import ExecutorSection
from arena.executors.worker import Opened, Reply, Worker
from arena.runtime.interrupts import signals_wait
from judges.errors import InputError, TransientError
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt

_GATHERED_S = 0.002
_AGAIN_S = 0.5
"""How often a worker that was lost is asked whether it is back."""
_STARTED_S = 120.0


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
        _connect(executor.address)
        gpus = executor.gpus if spec.runs_here else 0
        _require_gpus(name, gpus * executor.workers)
        # No CPU is asked for, since a worker mostly waits: it would never start where others hold them all.
        actor = ray.remote(num_cpus=0, num_gpus=gpus, max_restarts=-1, scheduling_strategy="SPREAD")(Worker)
        self._workers = [_Mailbox(actor.remote(spec)) for _ in range(executor.workers)]
        opened = _opened(name, self._workers)
        self.judges_names = opened.judges_names
        self.identity: Mapping[str, str | int | float | None] = opened.identity or {}

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask one worker.

        Raises:
            ProviderError: as the provider does; ``TransientError`` too where the worker is lost.
        """
        alive = [worker for worker in self._workers if worker.alive]
        if not alive:
            raise TransientError("connection", "all workers of this judge are lost")
        return await min(alive, key=lambda worker: worker.in_flight).ask(prompt)

    async def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            await worker.close()


class _Mailbox:
    """This side of one worker."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self.alive = True
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
                    await self.worker.opened.remote()
                    self.alive = True
                for number, reply in await self.worker.replies.remote(next(self._turns)):
                    self._hand_out(number, reply)
            except RayError as error:
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
        self.alive = self.alive and mistake
        for number in list(self._awaited):
            gone = TransientError("connection", f"a worker of this judge was lost ({type(error).__name__})")
            self._hand_out(number, error if mistake else gone)

    async def close(self) -> None:
        """End the worker and whatever waits for it."""
        tasks = [task for task in (self._sending, self._reading) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(RayError):
            ray.kill(self.worker)


def _connect(address: str | None) -> None:
    if ray.is_initialized():
        return
    # Nothing is told to anybody, here or by the processes that inherit this environment.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A worker without GPUs of its own finds the environment as it is, which later versions of Ray do by themselves.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    own = {"include_dashboard": False, "object_store_memory": 200 * 2**20} if address is None else {}
    try:
        with signals_wait():
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"executor: no Ray cluster can be reached at {address or 'this machine'}: {reason}") from error


def _require_gpus(name: str, needed: float) -> None:
    there = float(ray.cluster_resources().get("GPU", 0))
    if needed > there:
        raise InputError(f"executor: the workers of judge {name!r} need {needed:g} GPUs, the cluster has {there:g}")


def _opened(name: str, workers: list[_Mailbox]) -> Opened:
    """What all workers say of their provider, which must be the same."""
    try:
        told: list[Opened] = ray.get([each.worker.opened.remote() for each in workers], timeout=_STARTED_S)
    except (RayError, GetTimeoutError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"executor: the workers of judge {name!r} do not start: {reason}") from error
    for opened in told:
        if opened.problem is not None:
            raise InputError(f"judges.{name}, on a worker: {opened.problem}")
    if any(opened.identity != told[0].identity for opened in told):
        raise InputError(f"judges.{name}: the workers' machines have different models under this name")
    return told[0]
