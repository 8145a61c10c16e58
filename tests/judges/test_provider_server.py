"""The scripted server as a process of its own, as benchmarks and crash tests use it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from judges.providers import open_provider
from judges.spec import JudgeSpec
from tests.support.prompts import pairwise


@pytest.fixture
def port() -> Iterator[int]:
    command = [sys.executable, "-m", "tests.support.llm_server", "--delay-ms", "20"]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


async def test_it_answers_after_its_delay_and_counts_what_it_was_asked(port: int) -> None:
    base_url = f"http://127.0.0.1:{port}/v1"
    provider = open_provider(JudgeSpec(provider="openai", model="gpt-x", base_url=base_url))
    started = time.monotonic()
    completions = [await provider.complete(pairwise()) for _ in range(3)]
    assert time.monotonic() - started > 0.06
    await provider.close()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/log") as answer:
        log = json.load(answer)
    assert log["count"] == 3
    assert len({call["sha256"] for call in log["calls"]}) == 1
    assert len({completion.text for completion in completions}) == 1
