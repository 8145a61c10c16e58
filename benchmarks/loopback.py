"""A scripted server on this machine, in a process of its own, that answers every call after a fixed delay.

It speaks what the tests' server speaks, and of OpenAI's responses endpoint what RAGElo asks: a verdict by its schema.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.prefix_cache import PrefixCache

_WORDS = "Read with care."


@contextmanager
def server(delay_ms: float, *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.loopback", "--delay-ms", str(delay_ms), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def log(base_url: str) -> dict[str, Any]:
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/log", timeout=60) as answer:
        counted: dict[str, Any] = json.load(answer)
    return counted


def asked(base_url: str) -> int:
    return int(log(base_url)["count"])


def replied(call: Call, delay_s: float) -> Reply:
    if not call.path.endswith("/responses"):
        return replace(steady_judge(call), delay_s=delay_s)
    rule = call.body["text"]["format"]["schema"]
    said = {name: _value(name, field) for name, field in rule["properties"].items()}
    return Reply(body=_response(call.body["model"], json.dumps(said)), delay_s=delay_s)


def _value(name: str, field: dict[str, Any]) -> Any:
    if name == "winner":
        return "A"
    return [_WORDS] if field.get("type") == "array" else _WORDS


def _response(model: str, text: str) -> dict[str, Any]:
    content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [content]}
    usage = {
        "input_tokens": 500,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 550,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": model,
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
        "usage": usage,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--cached", action="store_true", help="cache prefixes as vendors do, and count them")
    given = parser.parse_args()
    delay_s = given.delay_ms / 1000
    gc.disable()  # no reply is to wait for it
    LLMServer(lambda call: replied(call, delay_s), cache=PrefixCache() if given.cached else None).run()


if __name__ == "__main__":
    main()
