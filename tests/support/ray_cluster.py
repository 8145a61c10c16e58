"""A real Ray cluster of two nodes on this machine's loopback addresses."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.conftest import ROOT

_START = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1"]
_SMALL = ["--object-store-memory=100000000", "--disable-usage-stats"]
_HEAD, _OTHER = "127.0.0.2", "127.0.0.3"


class RayCluster:
    """A head, and a second node that may be killed.

    Attributes:
        address: for ``--address``.
        nodes: those that run, by address.
        key: ``JUDGE_KEY`` in the nodes' environment, and nowhere else.
    """

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind((_HEAD, 0))
            self.address = f"{_HEAD}:{free.getsockname()[1]}"
        self.folder, self.key = folder, "planted-on-the-nodes"
        self._environment = {
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "RAY_AUTH_MODE": "disabled",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "JUDGE_KEY": self.key,
        }
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._log_file = folder / "nodes.log"
        self._log = self._log_file.open("wb")

    def start(self) -> None:
        """Start both nodes and wait until they know each other."""
        port = self.address.rpartition(":")[2]
        self._start(_HEAD, "--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self.folder / 'ray'}")
        self._start(_OTHER, f"--address={self.address}")
        deadline = time.monotonic() + 90
        while self._log_file.read_text().count("Ray runtime started") < len(self.nodes):
            assert time.monotonic() < deadline, self._log_file.read_text()
            assert all(node.poll() is None for node in self.nodes.values()), self._log_file.read_text()
            time.sleep(0.1)

    def _start(self, node: str, *options: str) -> None:
        self.nodes[node] = subprocess.Popen(
            [*_START, *_SMALL, f"--node-ip-address={node}", *options],
            env=os.environ | self._environment,
            stdout=self._log,
            stderr=self._log,
        )

    def kill_second_node(self) -> None:
        """Kill the second node's raylet, as a machine that fails; its workers end with it."""
        _end(self.nodes.pop(_OTHER))

    def kill_worker(self, port: int) -> None:
        """Kill the process of the worker, of whichever node, that calls from this port."""
        started = [each for node in self.nodes.values() for each in psutil.Process(node.pid).children(recursive=True)]
        workers = [each for each in started if "ray::Worker" in " ".join(each.cmdline())]  # of earlier runs too
        next(each for each in workers if any(one.laddr.port == port for one in each.net_connections())).kill()

    def stop(self) -> None:
        """End every process."""
        for node in self.nodes.values():
            _end(node)
        self._log.close()


def _end(node: subprocess.Popen[bytes]) -> None:
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(node.pid).children(recursive=True)
        node.kill()
        for each in started:
            with suppress(psutil.NoSuchProcess):
                each.kill()
    node.wait()


@contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    """Two nodes, for as long as the ``with`` lasts; in a folder whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        cluster = RayCluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
