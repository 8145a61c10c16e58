"""A judge's provider on Ray: sends prompts to workers anywhere in a cluster and receives their replies.

Prompts and replies are sent in batches, collected over a few milliseconds. One Ray task for each prompt would cost
this process, which serves all workers, a millisecond each.
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
from judges.errors import PROGRESS, InputError, TransientError
from judges.function_identity import PROCESS
from judges.masking import one_line
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt

_GATHERED_S = 0.002
_AGAIN_S = 0.5
"""Seconds between checks whether a lost worker is back, or whether missing GPUs are there."""
_MEMORY = 2**20
_SOON_S = 10.0
"""Seconds after which a message tells the user that the run waits for workers."""


class RayProvider:
    """The Ray workers of one judge; sends each prompt to the worker with the fewest prompts in flight.

    When a worker or its machine dies, its prompts go to the other workers. A dying worker may still report that it is
    alive with nothing in flight, so the same prompt is never sent to it again. If all workers are lost, the call fails
    as a lost connection and the judge retries. Ray restarts workers where it can. ``spec`` has the settings of a single
    worker.
    """

    def __init__(self, name: str, spec: JudgeSpec, executor: ExecutorSection) -> None:
        connect(executor)
        self._wait_s = executor.wait_s
        gpus = executor.gpus if spec.runs_here else 0
        # Workers reserve no CPU, since they mostly wait: with all CPUs taken, they would never start. They reserve some
        # memory, since Ray does not spread workers that reserve nothing, and all would die with one machine.
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
        """Send a prompt to a worker, and to another one if that worker dies; the judge counts this as one call."""
        lost: list[_Mailbox] = []
        while untried := [worker for worker in await self._alive() if worker not in lost]:
            worker = min(untried, key=lambda worker: worker.in_flight)
            try:
                return await worker.ask(prompt)
            except _WorkerLostError:
                lost.append(worker)
        raise TransientError("connection", "every worker of this judge was lost while it was asked")

    async def _alive(self) -> list[_Mailbox]:
        """The workers that are alive; waits until there is at least one."""
        try:
            async with asyncio.timeout(self._wait_s):
                while not (alive := [worker for worker in self._workers if worker.alive]):
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            raise TransientError("connection", "all workers of this judge are lost") from None
        return alive

    async def close(self) -> None:
        for worker in self._workers:
            await worker.close()


class _WorkerLostError(TransientError):
    """The worker that had the prompt died; the prompt can be sent to another one."""


class _Mailbox:
    """Exchanges prompts and replies with one worker, which runs on the machine with the address ``node``."""

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
        return len(self._awaited)

    async def ask(self, prompt: Prompt) -> Completion:
        """Send a prompt in the next batch, and wait for its reply."""
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
        """Hand the worker's replies to the calls that wait for them, until the mailbox is closed."""
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
        if future is None or future.done():  # the caller has given up
            return
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def _lost(self, error: RayError) -> None:
        """Let all waiting calls fail: with the worker's error, or with a lost connection if the worker died."""
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
        self._closed = True
        self.kill()  # ends the calls that wait; if they were cancelled, Ray's client would reject a late reply
        tasks = [task for task in (self._sending, self._reading) if task is not None]
        _, waiting = await asyncio.wait(tasks, timeout=_SOON_S) if tasks else ((), ())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def kill(self) -> None:
        with suppress(RayError):
            ray.kill(self.worker)


def _wait_for_gpus(name: str, needed: float, wait_s: float) -> None:
    """Wait until the cluster has enough GPUs for the workers; a cluster may start machines when they are needed."""
    began, is_announced = time.monotonic(), False
    while needed > (there := float(ray.cluster_resources().get("GPU", 0))):
        lacking = f"executor: the workers of judge {name!r} need {needed:g} GPUs, the cluster has {there:g}"
        if time.monotonic() - began >= wait_s:
            raise InputError(lacking)
        if not is_announced:
            PROGRESS.info("%s; waiting up to %g s for more (executor.wait_s)", lacking, wait_s)
            is_announced = True
        time.sleep(_AGAIN_S)


def _opened(name: str, workers: list[_Mailbox], wait_s: float) -> OpenedProvider:
    """Wait until all workers have opened their provider; raises an error if one cannot, or if their models differ."""
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
        providers: list[OpenedProvider] = ray.get(asked, timeout=max(wait_s, _SOON_S))
        nodes = ray.get([each.worker.node.remote() for each in workers], timeout=_SOON_S)
    except GetTimeoutError as error:
        raise InputError(
            f"executor: the workers of judge {name!r} did not start within {wait_s:g} s; raise executor.wait_s, or "
            "read Ray's logs on the machines (problems with 'runtime_env' are in runtime_env_setup-*.log)"
        ) from error
    except RayError as error:
        raise InputError(f"executor: the workers of judge {name!r} do not start: {cause_line(error)}") from error
    for opened in providers:
        if opened.problem is not None:
            raise InputError(f"judges.{name}, on a worker: {opened.problem}")
    providers = [replace(opened, identity=_of_this_process(opened)) for opened in providers]
    if any(opened.identity != providers[0].identity for opened in providers):
        raise InputError(
            f"judges.{name}: the Ray workers load different models under this name; install the same one on "
            "every machine"
        )
    for each, node in zip(workers, nodes, strict=True):
        each.node = node
    return providers[0]


def _of_this_process(opened: OpenedProvider) -> Mapping[str, str | int | float | None]:
    """The identity of a worker's provider; Python objects in it count as objects of this process."""
    identity = opened.identity or {}
    return {**identity, "objects": PROCESS} if "objects" in identity else identity


ANSWER_S: Final = 20.0
"""Seconds to wait until a server answers at the cluster's address; Ray itself tries for five minutes."""
_PAUSE_S: Final = 0.5
_HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""First bytes that an HTTP/2 client sends, as to Ray: the preface and empty settings (RFC 9113, section 3.4)."""
_HEAD, _SETTINGS = 9, 4
"""Length of an HTTP/2 frame's header in bytes, and the type of the frame that an HTTP/2 server sends first."""


def connect(executor: ExecutorSection) -> None:
    """Connect this process to the Ray cluster in the configuration or ``RAY_ADDRESS``, or start a local cluster."""
    if ray.is_initialized():
        return
    address, named = executor.address, "executor.address"
    if address is None:
        address, named = os.environ.get("RAY_ADDRESS") or None, "RAY_ADDRESS"
    if address is not None:
        _require_answer(address, named)
        if not address.startswith("ray://"):
            _require_cluster(address, named)
    # No usage statistics leave the machine, from here or from processes that inherit this environment.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A worker without GPUs keeps the environment unchanged; later versions of Ray do that by default.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # A failed installation is not tried again: two more tries would take minutes.
    os.environ.setdefault("RUNTIME_ENV_RETRY_TIMES", "1")
    options: dict[str, Any] = (
        {"include_dashboard": False, "object_store_memory": 200 * 2**20} if address is None else {}
    )
    if executor.runtime_env:
        options["runtime_env"] = executor.runtime_env
    try:
        with (
            signals_wait() if address is None else nullcontext()
        ):  # an interrupted start would leave Ray processes behind
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **options)
    except (ConnectionError, RuntimeError, ValueError, TypeError) as error:
        where = "on this machine" if address is None else f"at {address} ({named})"
        raise InputError(f"executor: no Ray cluster can be reached {where}: {first_line(error)}") from error
    if address is not None:
        PROGRESS.info("executor: the Ray cluster at %s (%s)", address, named)


def first_line(error: BaseException) -> str:
    """An error's first line, or the name of its class if it has no message."""
    return (str(error) or type(error).__name__).splitlines()[0]


def cause_line(error: RayError) -> str:
    """The line of a Ray error that names the cause: an installer's ``error:`` line, else the traceback's last line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return one_line([*lines[-1:], *(line for line in lines if line.lower().startswith("error: "))][-1])


def _require_answer(address: str, named: str) -> None:
    client = address.startswith("ray://")
    if client and find_spec("grpc") is None:
        raise InputError(f"executor: {address} ({named}) needs Ray's client; install 'ray[client]'")
    if address.startswith(("http://", "https://")):
        raise InputError(
            f"executor: {address} ({named}) is an address for jobs; submit the run with 'ray job submit', or set "
            "the address to HOST:6379 or ray://HOST:10001"
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
                f"executor: no Ray cluster can be reached at {address} ({named}): no server answered within "
                f"{ANSWER_S:.0f} s; start it, or fix the address"
            )
        time.sleep(_PAUSE_S)


def _require_cluster(address: str, named: str) -> None:
    """Raise an error if no Ray cluster answers; a subprocess asks, because Ray waits for any other server forever."""
    asking = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        asked = subprocess.run(asking, capture_output=True, text=True, timeout=ANSWER_S, check=False)  # noqa: S603 - a fixed command
    except subprocess.TimeoutExpired:
        problem = f"the server there is not Ray, or was not ready within {ANSWER_S:.0f} s"
    else:
        if asked.returncode == 0:
            return
        problem = one_line((asked.stderr.strip() or "it is not healthy").splitlines()[-1])
    raise InputError(
        f"executor: no Ray cluster can be reached at {address} ({named}): {problem}; start it, or fix the address"
    )


def _answers(host: str, port: int, deadline: float) -> bool:
    """Whether an HTTP/2 server answers at this address, as Ray's server would."""
    left = max(deadline - time.monotonic(), _PAUSE_S)
    try:
        with socket.create_connection((host, port), timeout=left) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":  # the server waits for a certificate
                return True
            connection.settimeout(left)
            connection.sendall(_HELLO)
            head = b""
            while len(head) < _HEAD and (more := connection.recv(_HEAD - len(head))):
                head += more
            return len(head) == _HEAD and head[3] == _SETTINGS
    except OSError:
        return False
