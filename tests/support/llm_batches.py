"""The batch APIs of OpenAI (files and batches) and of Anthropic (message batches) for the scripted server.

A batch ends once it was looked at ``looks`` times, alone or in a list, and nobody holds it (``Batches.held``). Each of
its requests is then answered by the server's script, as if it had come alone, unless ``expires`` says otherwise.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Vendor = Literal["openai", "anthropic"]
Answer = tuple[int, bytes]
"""Status and body; 0 drops the connection instead."""
Execute = Callable[[str, Mapping[str, Any]], tuple[int, Mapping[str, Any]]]
"""Answers one request: path and body to status and body."""

_PATHS = re.compile(r"/v1/(files|batches|messages/batches)(?:/([\w-]+))?(?:/(content|results|cancel))?(?:\?(.*))?")


@dataclass
class Made:
    """A batch on the server; ``requests`` holds each one's id and body."""

    remote_id: str
    vendor: Vendor
    requests: list[tuple[str, dict[str, Any]]]
    metadata: Mapping[str, str]
    made_at: float = field(default_factory=time.time)
    looked: int = 0
    ended: bool = False
    outcomes: dict[str, Any] = field(default_factory=dict)
    """Status and body by request; ``None`` where it expired."""


@dataclass
class Batches:
    """What was uploaded and what became of it.

    Attributes:
        looks: how often a batch is looked at before it has ended.
        held: while set, no batch ends.
        expires: whether a request expires, by the number of its batch and its place in it.
        refuses: the error of a batch of OpenAI that validation refuses, by its number, or ``None``.
        answer_lost: how many batches are still to be made whose answer does not reach the client.
        deaf: how many are still to be lost before the server makes anything of them.
        garbled: how many looks at a batch are still answered with something that is none.
        cut: how many downloads of results still break off in the middle.
        paid: ids of the requests that were answered, again for each time.
    """

    looks: int = 1
    held: bool = False
    expires: Callable[[int, int], bool] = lambda batch, place: False
    refuses: Callable[[int], Mapping[str, str] | None] = lambda batch: None
    answer_lost: int = 0
    deaf: int = 0
    garbled: int = 0
    cut: int = 0
    made: dict[str, Made] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    paid: list[str] = field(default_factory=list)

    def answer(self, path: str, head: bytes, content: bytes, execute: Execute) -> Answer | None:
        """The answer to a request of these APIs; ``None`` if it is none of them."""
        matched = _PATHS.fullmatch(path)
        if matched is None:
            return None
        kind, name, action, _ = matched.groups()
        if kind == "files":
            return self._files(name, content) if action is None else (200, self.files[name])
        vendor: Vendor = "openai" if kind == "batches" else "anthropic"
        if name is None:
            posted = head.startswith(b"POST")
            return self._make(vendor, json.loads(content)) if posted else self._list(vendor, execute)
        made = self.made.get(name)
        if made is None:
            return 404, b'{"error": {"message": "no such batch", "type": "not_found_error"}}'
        if action == "results":
            return 200, b"\n".join(map(_encoded, self._anthropic_results(made)))
        if self.garbled:
            self.garbled -= 1
            return 200, b"<html>not JSON</html>"
        self._look(made, execute)
        return 200, _encoded(self._shown(made))

    def cuts(self, path: str) -> bool:
        """Whether the answer to this request breaks off in the middle."""
        cut = self.cut > 0 and path.endswith(("/content", "/results"))
        self.cut -= cut
        return cut

    def _files(self, name: str | None, content: bytes) -> Answer:
        assert name is None, "a file is only uploaded and read"
        boundary = content.split(b"\r\n", 1)[0]
        (part,) = (part for part in content.split(boundary) if b"filename=" in part)
        file_id = f"file-{len(self.files) + 1}"
        self.files[file_id] = part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
        return 200, _encoded(
            {
                "id": file_id,
                "object": "file",
                "bytes": len(content),
                "created_at": 1,
                "filename": "f",
                "purpose": "batch",
            }
        )

    def _make(self, vendor: Vendor, body: Mapping[str, Any]) -> Answer:
        if self.deaf:
            self.deaf -= 1
            return 0, b""
        if vendor == "openai":
            lines = map(json.loads, self.files[body["input_file_id"]].splitlines())
            requests = [(line["custom_id"], line["body"]) for line in lines]
        else:
            requests = [(request["custom_id"], request["params"]) for request in body["requests"]]
        remote_id = f"{'batch' if vendor == 'openai' else 'msgbatch'}_{len(self.made) + 1}"
        made = self.made[remote_id] = Made(remote_id, vendor, requests, body.get("metadata") or {})
        if self.answer_lost:
            self.answer_lost -= 1
            return 0, b""
        return 200, _encoded(self._shown(made))

    def _list(self, vendor: Vendor, execute: Execute) -> Answer:
        for made in self.made.values():
            self._look(made, execute)
        mine = [self._shown(made) for made in reversed(self.made.values()) if made.vendor == vendor]
        return 200, _encoded({"object": "list", "data": mine, "has_more": False, "first_id": None, "last_id": None})

    def _look(self, made: Made, execute: Execute) -> None:
        made.looked += 1
        number = list(self.made).index(made.remote_id)
        if made.ended or self.held or made.looked < self.looks or self.refuses(number):
            return
        made.ended = True
        path = "/v1/chat/completions" if made.vendor == "openai" else "/v1/messages"
        for place, (custom_id, body) in enumerate(made.requests):
            if self.expires(number, place):
                made.outcomes[custom_id] = None
                continue
            self.paid.append(custom_id)
            made.outcomes[custom_id] = execute(path, body)

    def _shown(self, made: Made) -> dict[str, Any]:
        return self._openai(made) if made.vendor == "openai" else self._anthropic(made)

    def _openai(self, made: Made) -> dict[str, Any]:
        refused = self.refuses(list(self.made).index(made.remote_id))
        lost = any(outcome is None for outcome in made.outcomes.values())
        status = "in_progress" if made.looked else "validating"
        if refused:
            status = "failed"
        elif made.ended:
            status = "expired" if lost else "completed"
        shown = {
            "id": made.remote_id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "input_file_id": "file-1",
            "created_at": int(made.made_at),
            "status": status,
            "metadata": made.metadata,
            "errors": {"object": "list", "data": [refused]} if refused else None,
        }
        if made.ended:
            for kind, good in (("output", True), ("error", False)):
                lines = [line for line in _openai_results(made) if _is_reply(line) is good]
                if lines:
                    shown[f"{kind}_file_id"] = file_id = f"{kind}-{made.remote_id}"
                    self.files[file_id] = b"\n".join(map(_encoded, reversed(lines)))
        return shown

    def _anthropic(self, made: Made) -> dict[str, Any]:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        counts["succeeded" if made.ended else "processing"] = len(made.requests)
        at = datetime.fromtimestamp(made.made_at, UTC)
        return {
            "id": made.remote_id,
            "type": "message_batch",
            "processing_status": "ended" if made.ended else "in_progress",
            "request_counts": counts,
            "created_at": at.isoformat(),
            "expires_at": at.replace(year=at.year + 1).isoformat(),
            "results_url": f"/v1/messages/batches/{made.remote_id}/results" if made.ended else None,
        }

    def _anthropic_results(self, made: Made) -> Iterator[dict[str, Any]]:
        for custom_id, outcome in reversed(made.outcomes.items()):
            if outcome is None:
                yield {"custom_id": custom_id, "result": {"type": "expired"}}
            elif outcome[0] == 200:
                yield {"custom_id": custom_id, "result": {"type": "succeeded", "message": outcome[1]}}
            else:
                kind = "invalid_request_error" if outcome[0] == 400 else "api_error"
                error = {"type": "error", "error": {"type": kind, "message": "scripted"}}
                yield {"custom_id": custom_id, "result": {"type": "errored", "error": error}}


def _openai_results(made: Made) -> Iterator[dict[str, Any]]:
    for custom_id, outcome in made.outcomes.items():
        line: dict[str, Any] = {"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": None, "error": None}
        if outcome is None:
            line["error"] = {"code": "batch_expired", "message": "not executed within the completion window"}
        else:
            line["response"] = {"status_code": outcome[0], "request_id": "r", "body": outcome[1]}
        yield line


def _is_reply(line: Mapping[str, Any]) -> bool:
    return line["response"] is not None and line["response"]["status_code"] == 200


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode()
