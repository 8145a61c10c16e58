"""RAGElo as a peer of the runtime benchmark: in an environment of its own, against the same server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from benchmarks.loopback import asked

REQUIREMENT = "ragelo==0.7.0"


class Peer(Struct, frozen=True):
    """What RAGElo did."""

    version: str
    calls: int
    seconds: float


def installed(folder: Path) -> Path:
    """A Python with RAGElo in a new virtual environment below ``folder``; the package index must be within reach."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", REQUIREMENT], check=True)
    return python


def measure(python: Path, folder: Path, base_url: str, concurrency: int, games: int) -> Peer:
    """Let RAGElo judge the games of a folder in both orders; its calls are counted by the server.

    Raises:
        RuntimeError: it judged less than all games, or asked more or less than twice each, and is no measure then.
    """
    before = asked(base_url)
    script = Path(__file__).with_name("ragelo_peer.py")
    command = [str(python), str(script), str(folder), base_url, str(concurrency)]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    calls = asked(base_url) - before
    if told["judged"] != games or calls != 2 * games:
        raise RuntimeError(f"RAGElo judged {told['judged']} of {games} games with {calls} calls")
    return Peer(told["version"], calls, told["seconds"])
