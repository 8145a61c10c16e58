"""What a second worker on Ray brings where the server is what is slow, and what Ray costs beside this process alone.

A Ray of its own is started on this machine. The calls of one worker are bounded by its concurrency divided by the
server's delay: ``python -m benchmarks.ray_workers --concurrency 32 --delay-ms 500``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.judging import Measured, measure, write_data
from benchmarks.loopback import server

BAR = 1.6
"""Least ratio of calls per second with two workers and with one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=500)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--games", type=int, default=1000)
    given = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")

    def shown(name: str, workers: int, ran: Measured) -> float:
        rate = ran.calls / ran.judging_s
        share = rate * given.delay_ms / 1000 / (given.concurrency * workers)
        print(
            f"{name:14}  {ran.calls:5d}  {rate:14.0f}  {share:18.2f}  {1000 * ran.cpu_s / ran.calls:15.2f}", flush=True
        )
        return rate

    with tempfile.TemporaryDirectory() as name, server(given.delay_ms) as base_url:
        folder = Path(name)
        write_data(folder, 8)
        measure(folder, base_url, 8, executor={"kind": "ray", "workers": 1})  # starts Ray
        write_data(folder, given.games)
        print("executor        calls  calls a second  share of the bound  CPU ms per call")
        shown("local", 1, measure(folder, base_url, given.concurrency))
        one, two = (
            shown(
                f"ray, {workers} worker{'s' * (workers > 1)}",
                workers,
                measure(folder, base_url, given.concurrency, executor={"kind": "ray", "workers": workers}),
            )
            for workers in (1, 2)
        )
        print(f"two workers over one: {two / one:.2f} (bar {BAR:g}: {'met' if two >= BAR * one else 'missed'})")


if __name__ == "__main__":
    main()
