"""The way to a Ray cluster: which one, whether it answers, and what there is to say where it does not."""

from __future__ import annotations

import logging
import os
import socket
import time
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

import ray

from arena.config.executor import ExecutorSection
from arena.run.interrupts import signals_wait
from judges.errors import InputError

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
    # Nothing is told to anybody, here or by the processes that inherit this environment.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A worker without GPUs of its own finds the environment as it is, which later versions of Ray do by themselves.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 200 * 2**20} if address is None else {}
    if executor.runtime_env:
        own["runtime_env"] = executor.runtime_env
    try:
        with signals_wait():
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **own)
    except (ConnectionError, RuntimeError, ValueError, TypeError) as error:
        where = "on this machine" if address is None else f"at {address} ({named})"
        raise InputError(f"executor: no Ray cluster can be reached {where}: {first_line(error)}") from error
    if address is not None:
        PROGRESS.info("executor: the Ray cluster at %s (%s)", address, named)


def first_line(error: BaseException) -> str:
    """An error's first line, or its kind where it says nothing."""
    return (str(error) or type(error).__name__).splitlines()[0]


def _require_answer(address: str, named: str) -> None:
    client = address.startswith("ray://")
    if client and find_spec("grpc") is None:
        raise InputError(f"executor: {address} ({named}) needs Ray's client: install 'ray[client]'")
    if address.startswith(("http://", "https://")):
        raise InputError(
            f"executor: {address} ({named}) is an address for jobs: hand the run in with 'ray job submit', or name "
            "HOST:6379 or ray://HOST:10001"
        )
    url = urlsplit(address if client else f"//{address}")
    try:
        host, port = url.hostname, url.port or (10001 if client else None)
    except ValueError:
        host, port = None, None
    if host is None or port is None:  # 'auto', or what Ray says itself cannot be an address
        return
    deadline = time.monotonic() + ANSWER_S
    while not _answers(host, port, deadline):
        if time.monotonic() + _PAUSE_S > deadline:
            raise InputError(
                f"executor: no Ray cluster can be reached at {address} ({named}): none answered within "
                f"{ANSWER_S:.0f} s; start it, or mend the address"
            )
        time.sleep(_PAUSE_S)


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
