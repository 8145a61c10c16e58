"""A scripted LLM server on loopback that speaks OpenAI's chat completions and Anthropic's messages.

In a test it runs in a thread of its own (``LLMServer``); for benchmarks and for tests that kill processes it is its own
process: ``python -m tests.support.llm_server --delay-ms 50`` prints its port, ``GET /log`` tells what it was asked.
A bare ``asyncio.Protocol``, since a benchmark must not measure the server: about 0.1 ms of CPU per request.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import random
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from tests.support.llm_batches import Batches
from tests.support.prefix_cache import PrefixCache, Sent
from tests.support.scripted_judges import steady_text, steady_vectors

Ending = Literal["stop", "length", "refusal", "content_filter", "tool_call"]
Fault = Literal["reset", "stall", "half", "garbage"]
"""``reset`` drops the connection unanswered, ``stall`` never answers, ``half`` breaks off within the body, ``garbage``
is not JSON."""


class Reply(Struct, frozen=True):
    """What the server does with one request. ``body`` replaces the whole body, ``raw`` writes it, and ``kind`` is its
    content type; without ``usage`` it has no such block. ``model`` and ``tokens`` are what it says of itself and of the
    prompt's length, ``choice`` and ``message`` what it puts over its own in a chat completion."""

    text: str | None = ""
    delay_s: float = 0.0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = "stop"
    fault: Fault | None = None
    usage: bool = True
    body: Mapping[str, Any] | None = None
    raw: Callable[[Mapping[str, Any]], bytes] | None = None
    kind: str = "application/json"
    model: str = ""
    tokens: int | None = None
    choice: Mapping[str, Any] = field(default_factory=dict)
    message: Mapping[str, Any] = field(default_factory=dict)


class Call(Struct, frozen=True, dict=True):
    """One request as it came; ``at`` is the monotonic time of its last byte, ``port`` the sender's (0 in a batch)."""

    path: str
    head: bytes
    content: bytes
    at: float
    port: int = 0

    @cached_property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.content)
        return body

    @cached_property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


Script = Callable[[Call], Reply]


def steady_judge(call: Call) -> Reply:
    """A judge that replies the same to the same request, within its schema; vectors where those are asked."""
    if call.path.endswith("/embeddings"):
        return Reply(body=steady_vectors(call.body))
    return Reply(text=steady_text(call.body))


def by_name(call: Call) -> Reply:
    """A judge by whom agent x beats y, and y beats z; a model called contrary says the opposite."""
    text = call.body["messages"][1]["content"]
    first, second = sorted("xyz", key=lambda agent: text.find(f"Agent {agent} says") % 10**9)[:2]
    verdict = "A" if (first < second) != (call.body["model"] == "contrary") else "B"
    return Reply(json.dumps({"explanation": "By name.", "verdict": verdict}))


def hostile(script: Script, share: float) -> Script:
    """The same judge, but ``share`` of the requests go wrong, each time in the next of many ways."""
    wrong = itertools.cycle(
        [
            Reply("slower", status=429, headers={"Retry-After": "0.05"}),
            Reply("busy", status=500),
            Reply(fault="reset"),
            Reply(fault="stall"),
            Reply(fault="garbage"),
            Reply(fault="half"),
            Reply("I would say the first one is better."),
            Reply('{"reason": "r", "explanation": "r", "verdict": "C", "label": "quite relevant"}'),
            Reply('{"explanation": "cut o', ending="length"),
            Reply(""),
        ]
    )
    turns = random.Random(7)
    return lambda call: next(wrong) if turns.random() < share else script(call)


def in_turn(replies: Sequence[Reply]) -> Script:
    """The replies one after another, each once; a further request is a status 599."""
    rest = iter(replies)
    return lambda call: next(rest, Reply(status=599, text="the script is at its end"))


class LLMServer:
    """The server in a thread of its own, as a context manager.

    Args:
        script: what to reply; a sequence is replied in turn.
        port: to listen on; any free one when left out.
        tls: encrypts what comes and goes.
        cache: counts the cached tokens of prompts; without one, every prompt has a few.
    """

    def __init__(
        self,
        script: Script | Sequence[Reply] = steady_judge,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        cache: PrefixCache | None = None,
    ) -> None:
        self._tls, self.cache = tls, cache
        self.script = in_turn(script) if isinstance(script, Sequence) else script
        self.calls: list[Call] = []
        self.connections_made = 0
        self.port = port
        self.batches = Batches()

    def __enter__(self) -> LLMServer:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started.set)), daemon=True)
        self._thread.start()
        if not started.wait(10):
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> dict[str, Any]:
        calls = [{"path": call.path, "at": call.at, "sha256": call.sha256} for call in self.calls]
        log: dict[str, Any] = {"count": len(calls), "calls": calls}
        if self.cache is not None:
            log["tokens"] = asdict(self.cache.total)
        return log

    async def _serve(self, started: Callable[[], object]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._connections: set[asyncio.Transport] = set()
        server = await self._loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port, backlog=1024, ssl=self._tls
        )
        self.port = server.sockets[0].getsockname()[1]
        started()
        await self._stop.wait()
        server.close()
        for transport in list(self._connections):
            transport.abort()

    def run(self) -> None:
        """Serve in this thread until the process is ended; prints the port."""
        # Timers that are as exact as the clock: epoll's are late by up to a millisecond.
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
            runner.run(self._serve(lambda: os.write(1, f"{self.port}\n".encode())))


class _Connection(asyncio.Protocol):
    """One client connection: requests one after another, each answered before the next is read."""

    def __init__(self, server: LLMServer) -> None:
        self.server = server
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server._connections.add(transport)
        self.server.connections_made += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.server._connections.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.received.startswith(b"\x16\x03"):  # the greeting of TLS, where nothing is encrypted
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()
            return
        while (head_end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:head_end]
            body_end = head_end + 4 + _content_length(head)
            if len(self.received) < body_end:
                return
            content, self.received = self.received[head_end + 4 : body_end], self.received[body_end:]
            port = self.transport.get_extra_info("peername")[1]
            self.answer(Call(head.split(b" ", 2)[1].decode(), head, content, time.monotonic(), port))

    def answer(self, call: Call) -> None:
        if call.path == "/log":
            self.transport.write(_response(200, {}, json.dumps(self.server.log()).encode()))
            return
        batched = self.server.batches.answer(call.path, call.head, call.content, self.executed)
        if batched is not None:
            status, content = batched
            if not status:
                self.transport.abort()
            elif self.server.batches.cuts(call.path):
                self.break_off(_response(status, {}, content), content)
            else:
                self.transport.write(_response(status, {}, content))
            return
        self.server.calls.append(call)
        reply = self.server.script(call)
        begins, cache, sent = call.at + reply.delay_s, self.server.cache, None
        if cache is not None and "messages" in call.body:
            sent = cache.take(call.path, call.body, call.at, begins)
        content = _content(call, reply, sent)
        if reply.delay_s:  # from the request's last byte on
            asyncio.get_running_loop().call_at(begins, self.send, reply, content)
        else:
            self.send(reply, content)

    def executed(self, path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """One request of a batch."""
        call = Call(path, b"", json.dumps(body).encode(), time.monotonic())
        self.server.calls.append(call)
        reply = self.server.script(call)
        return reply.status, _body(call, reply)

    def send(self, reply: Reply, content: bytes) -> None:
        if reply.fault == "stall" or self.transport.is_closing():
            return
        if reply.fault == "reset":
            # Lingering for zero seconds makes the close a reset instead of a quiet end.
            linger = struct.pack("ii", 1, 0)
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.transport.abort()
            return
        response = _response(reply.status, reply.headers, content, reply.kind)
        if reply.fault == "half":
            self.break_off(response, content)
        else:
            self.transport.write(response)

    def break_off(self, response: bytes, content: bytes) -> None:
        self.transport.write(response[: -len(content) // 2])
        self.transport.close()


def _content(call: Call, reply: Reply, sent: Sent | None = None) -> bytes:
    if reply.fault in {"stall", "reset"}:
        return b""
    return b"<html>not JSON</html>" if reply.fault == "garbage" else (reply.raw or _encoded)(_body(call, reply, sent))


def as_events(body: Mapping[str, Any]) -> bytes:
    """A chat completion, or Anthropic's message, as a stream of server-sent events."""
    if "choices" in body:
        (choice,) = body["choices"]
        text = choice["message"]["content"]
        deltas: list[dict[str, Any]] = [{"content": text[at : at + 7]} for at in range(0, len(text), 7)]
        events = [{**body, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        events.append({**body, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    else:
        (block,) = body["content"]
        events = [
            {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": letter}}
                for letter in block["text"]
            ),
            {"type": "message_delta", "delta": {"stop_reason": body["stop_reason"]}, "usage": body["usage"]},
            {"type": "message_stop"},
        ]
    end = b"data: [DONE]\n\n" if "choices" in body else b""
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + end


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()


def _content_length(head: bytes) -> int:
    at = head.lower().find(b"\r\ncontent-length:")
    return int(head[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


def _response(status: int, headers: Mapping[str, str], content: bytes, kind: str = "application/json") -> bytes:
    extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} Scripted\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{extra}\r\n"
    return head.encode("latin-1") + content


def _body(call: Call, reply: Reply, sent: Sent | None = None) -> Mapping[str, Any]:
    if reply.body is not None:
        return reply.body
    if reply.status != 200:
        return {"error": {"message": reply.text, "type": "scripted", "code": None}}
    return (_anthropic_body if call.path.endswith("/messages") else _openai_body)(call, reply, sent)


def _openai_body(call: Call, reply: Reply, counted: Sent | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    finish = {"refusal": "stop", "tool_call": "tool_calls"}.get(reply.ending, reply.ending)
    if reply.ending == "refusal":
        message.update(content=None, refusal=reply.text)
    if reply.ending == "tool_call":
        function = {"name": "verdict", "arguments": reply.text}
        message.update(content=None, tool_calls=[{"id": "call_1", "type": "function", "function": function}])
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": reply.model or f"{call.body.get('model')}-2026-11",
        "choices": [{"index": 0, "message": {**message, **reply.message}, "finish_reason": finish, **reply.choice}],
    }
    if reply.usage:
        sent, written = len(call.content) // 4, len(reply.text or "") // 4
        sent = sent if reply.tokens is None else reply.tokens
        sent = sent if counted is None else counted.all
        details = {"cached_tokens": 16 if counted is None else counted.cached}
        body["usage"] = {
            "prompt_tokens": sent,
            "completion_tokens": written,
            "total_tokens": sent + written,
            "prompt_tokens_details": details,
        }
    return body


def _anthropic_body(call: Call, reply: Reply, counted: Sent | None) -> dict[str, Any]:
    endings = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "tool_call": "tool_use"}
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    if reply.ending == "tool_call":
        content = [{"type": "tool_use", "id": "toolu_1", "name": "verdict", "input": json.loads(reply.text or "{}")}]
    body: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": f"{call.body['model']}-2026-11",
        "content": content,
        "stop_reason": endings.get(reply.ending, reply.ending),
        "stop_sequence": None,
    }
    if reply.usage:
        sent = counted or Sent(len(call.content) // 4, 16, 8)
        body["usage"] = {
            "input_tokens": sent.fresh,
            "cache_read_input_tokens": sent.cached,
            "cache_creation_input_tokens": sent.written,
            "output_tokens": len(reply.text or "") // 4,
        }
    return body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--hostile", type=float, default=0.0, metavar="SHARE")
    given = parser.parse_args()
    delay_s = given.delay_ms / 1000

    def delayed(call: Call) -> Reply:
        return replace(steady_judge(call), delay_s=delay_s)

    LLMServer(hostile(delayed, given.hostile), given.port).run()


if __name__ == "__main__":
    main()
