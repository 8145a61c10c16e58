"""A judge's provider on Ray: prompts go to workers anywhere in a cluster, and replies come back.

Prompts and replies travel in batches, whatever has come within a few milliseconds. One task of Ray for each prompt
would cost a millisecond of this process's time, which alone feeds all workers.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

import ray
from msgspec.structs import replace
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from arena.config.schema import ExecutorSection
from arena.run.interrupts import signals_wait
from arena.run.ray_worker import OpenedProvider, Worker, WorkerReply
from judges.errors import InputError, TransientError
from judges.function_identity import PROCESS
from judges.masking import one_line
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

    A worker that dies, alone or with its machine, leaves its prompts to the others. One that is dying may still say
    that it lives, and has nothing in flight: it must not draw the same prompt again. Where all are lost, that fails as
    a lost connection does, and the judge asks again. Ray starts workers anew where it can.

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
        self.judges_names, self.lacking = opened.judges_names, opened.lacking
        self.identity: Mapping[str, str | int | float | None] = opened.identity or {}

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask one worker, and each of the others that live where it is lost: that is no attempt of the judge's.

        Raises:
            ProviderError: as the provider does; ``TransientError`` too where every worker is lost.
        """
        lost: list[_Mailbox] = []
        while untried := [worker for worker in await self._alive() if worker not in lost]:
            worker = min(untried, key=lambda worker: worker.in_flight)
            try:
                return await worker.ask(prompt)
            except _WorkerLostError:
                lost.append(worker)
        raise TransientError("connection", "every worker of this judge was lost while it was asked")

    async def _alive(self) -> list[_Mailbox]:
        """The workers that live, as soon as there are any."""
        try:
            async with asyncio.timeout(self._wait_s):
                while not (alive := [worker for worker in self._workers if worker.alive]):
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            raise TransientError("connection", "all workers of this judge are lost") from None
        return alive

    async def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            await worker.close()


class _WorkerLostError(TransientError):
    """The worker that was asked is gone; what it was asked may be asked of another one."""


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

    def _hand_out(self, number: int, reply: WorkerReply) -> None:
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
            gone = _WorkerLostError("connection", f"a worker of this judge was lost ({type(error).__name__})")
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


def _opened(name: str, workers: list[_Mailbox], wait_s: float) -> OpenedProvider:
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
        told: list[OpenedProvider] = ray.get(asked, timeout=max(wait_s, _SOON_S))
        nodes = ray.get([each.worker.node.remote() for each in workers], timeout=_SOON_S)
    except GetTimeoutError as error:
        raise InputError(
            f"executor: the workers of judge {name!r} did not start within {wait_s:g} s; raise executor.wait_s, or "
            "look into Ray's logs on the machines (of 'runtime_env': runtime_env_setup-*.log)"
        ) from error
    except RayError as error:
        raise InputError(f"executor: the workers of judge {name!r} do not start: {telling_line(error)}") from error
    for opened in told:
        if opened.problem is not None:
            raise InputError(f"judges.{name}, on a worker: {opened.problem}")
    told = [replace(opened, identity=_of_this_process(opened)) for opened in told]
    if any(opened.identity != told[0].identity for opened in told):
        raise InputError(f"judges.{name}: the workers' machines have different models under this name")
    for each, node in zip(workers, nodes, strict=True):
        each.node = node
    return told[0]


def _of_this_process(opened: OpenedProvider) -> Mapping[str, str | int | float | None]:
    """An identity in which the objects of a worker's process are this run's."""
    identity = opened.identity or {}
    return {**identity, "objects": PROCESS} if "objects" in identity else identity


PROGRESS: Final = logging.getLogger("ragleague.progress")
ANSWER_S: Final = 20.0
"""How long an address may take to answer. Ray itself tries for five minutes."""
_PAUSE_S: Final = 0.5
_HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client of HTTP/2, which Ray speaks, begins (RFC 9113, section 3.4): the preface and empty settings."""
_HEAD, _SETTINGS = 9, 4
"""Bytes before a frame's content, and the type of the frame that a server sends first."""


def connect(executor: ExecutorSection) -> None:
    """Connect this process to the cluster that the configuration or ``RAY_ADDRESS`` names, or start one here.

    Raises:
        InputError: there is no cluster at the address, or it refuses.
    """
    if ray.is_initialized():
        return
    address, named = executor.address, "executor.address"
    if address is None:
        address, named = os.environ.get("RAY_ADDRESS") or None, "RAY_ADDRESS"
    if address is not None:
        _require_answer(address, named)
        if not address.startswith("ray://"):
            _require_cluster(address, named)
    # Nothing is told to anybody, here or by the processes that inherit this environment.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A worker without GPUs of its own finds the environment as it is, which later versions of Ray do by themselves.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Whatever cannot be installed fails at once, and not a third time after minutes.
    os.environ.setdefault("RUNTIME_ENV_RETRY_TIMES", "1")
    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 200 * 2**20} if address is None else {}
    if executor.runtime_env:
        own["runtime_env"] = executor.runtime_env
    try:
        with signals_wait() if address is None else nullcontext():  # a Ray that is started here would be left behind
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **own)
    except (ConnectionError, RuntimeError, ValueError, TypeError) as error:
        where = "on this machine" if address is None else f"at {address} ({named})"
        raise InputError(f"executor: no Ray cluster can be reached {where}: {first_line(error)}") from error
    if address is not None:
        PROGRESS.info("executor: the Ray cluster at %s (%s)", address, named)


def first_line(error: BaseException) -> str:
    """An error's first line, or its kind where it says nothing."""
    return (str(error) or type(error).__name__).splitlines()[0]


def telling_line(error: RayError) -> str:
    """The line that says why: that of a failed installer, else the last one, where a traceback ends."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return one_line([*lines[-1:], *(line for line in lines if line.lower().startswith("error: "))][-1])


def _require_answer(address: str, named: str) -> None:
    client = address.startswith("ray://")
    if client and find_spec("grpc") is None:
        raise InputError(f"executor: {address} ({named}) needs Ray's client: install 'ray[client]'")
    if address.startswith(("http://", "https://")):
        raise InputError(
            f"executor: {address} ({named}) is an address for jobs: hand the run in with 'ray job submit', or name "
            "HOST:6379 or ray://HOST:10001"
        )
    if address == "auto":
        return
    try:
        url = urlsplit(address if client else f"//{address}")
        host, port = url.hostname, url.port or (10001 if client else None)
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise InputError(
            f"executor: no Ray cluster can be reached at {address} ({named}): name HOST:PORT, such as head:6379"
        )
    deadline = time.monotonic() + ANSWER_S
    while not _answers(host, port, deadline):
        if time.monotonic() + _PAUSE_S > deadline:
            raise InputError(
                f"executor: no Ray cluster can be reached at {address} ({named}): none answered within "
                f"{ANSWER_S:.0f} s; start it, or mend the address"
            )
        time.sleep(_PAUSE_S)


def _require_cluster(address: str, named: str) -> None:
    """Ask in a process that can be ended: where another server answers, Ray waits for good and heeds no Ctrl-C."""
    asking = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        asked = subprocess.run(asking, capture_output=True, text=True, timeout=ANSWER_S, check=False)  # noqa: S603 - our words
    except subprocess.TimeoutExpired:
        problem = f"what answers there is none, or was not ready within {ANSWER_S:.0f} s"
    else:
        if asked.returncode == 0:
            return
        problem = one_line((asked.stderr.strip() or "it is not healthy").splitlines()[-1])
    raise InputError(
        f"executor: no Ray cluster can be reached at {address} ({named}): {problem}; start it, or mend the address"
    )


def _answers(host: str, port: int, deadline: float) -> bool:
    """Whether a server of Ray's kind answers there."""
    left = max(deadline - time.monotonic(), _PAUSE_S)
    try:
        with socket.create_connection((host, port), timeout=left) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":  # whoever is there waits for a certificate
                return True
            connection.settimeout(left)
            connection.sendall(_HELLO)
            head = b""
            while len(head) < _HEAD and (more := connection.recv(_HEAD - len(head))):
                head += more
            return len(head) == _HEAD and head[3] == _SETTINGS
    except OSError:
        return False
