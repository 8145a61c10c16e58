"""The batch APIs of OpenAI (files and batches) and of Anthropic (message batches) for the scripted server.

A batch ends once it was looked at ``looks`` times, alone or in a list, and nobody holds it (``Batches.held``). Each of
its requests is then answered by the server's script, as if it had come alone, unless ``expires`` says otherwise or the
batch was cancelled before.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct, field

Vendor = Literal["openai", "anthropic"]
Answer = tuple[int, bytes]
"""Status and body; 0 drops the connection instead."""
Execute = Callable[[str, Mapping[str, Any]], tuple[int, Mapping[str, Any]]]
"""Answers one request: path and body to status and body."""

_PATHS = re.compile(r"/v1/(files|batches|messages/batches)(?:/([\w-]+))?(?:/(content|results|cancel))?(?:\?(.*))?")


class Made(Struct):
    """A batch on the server; ``requests`` holds each one's id and body."""

    remote_id: str
    vendor: Vendor
    requests: list[tuple[str, dict[str, Any]]]
    metadata: Mapping[str, str]
    file_id: str = ""
    made_at: float = field(default_factory=time.time)
    looked: int = 0
    ended: bool = False
    cancelled: bool = False
    written: set[str] = field(default_factory=set)
    outcomes: dict[str, Any] = field(default_factory=dict)
    """Status and body by request; ``expired`` or ``canceled`` where it was not answered."""


class Batches(Struct):
    """What was uploaded and what became of it.

    Attributes:
        looks: how often a batch is looked at before it has ended.
        held: while set, no batch ends.
        expires: whether a request expires, by the number of its batch and its place in it.
        refuses: the error of a batch of OpenAI that validation refuses, by its number, or ``None``.
        answer_lost: how many batches are still to be made whose answer does not reach the client.
        deaf: how many are still to be lost before the server makes anything of them.
        busy: how many hand-ins are still answered with 429.
        fails: how many are still answered with 503.
        uploads: what is done with the next uploads of files: a status, 0 to drop the connection.
        named: the next batch's id, where it is another one than usual.
        lag: how many lists are still given without the newest batch.
        unlisted: how many requests for a list are still dropped.
        done: how many requests of a batch have been answered when it is cancelled.
        garbled: how many looks at a batch are still answered with something that is none.
        cut: how many downloads of results still break off in the middle.
        files: uploaded and made, by id, as long as they are not deleted.
        uploaded: how many were.
        paid: ids of the requests that were answered, again for each time.
    """

    looks: int = 1
    held: bool = False
    expires: Callable[[int, int], bool] = lambda batch, place: False
    refuses: Callable[[int], Mapping[str, str] | None] = lambda batch: None
    answer_lost: int = 0
    deaf: int = 0
    busy: int = 0
    fails: int = 0
    uploads: list[int] = field(default_factory=list)
    named: str = ""
    lag: int = 0
    unlisted: int = 0
    done: int = 0
    garbled: int = 0
    cut: int = 0
    made: dict[str, Made] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    uploaded: int = 0
    paid: list[str] = field(default_factory=list)

    def answer(self, path: str, head: bytes, content: bytes, execute: Execute) -> Answer | None:
        """The answer to a request of these APIs; ``None`` if it is none of them."""
        matched = _PATHS.fullmatch(path)
        if matched is None:
            return None
        kind, name, action, _ = matched.groups()
        if kind == "files":
            return self._files(head, name, content)
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
        if action == "cancel":
            return self._cancel(made)
        self._look(made, execute)
        return 200, _encoded(self._shown(made))

    def _cancel(self, made: Made) -> Answer:
        if made.ended:
            return 409, b'{"error": {"message": "the batch has ended", "type": "invalid_request_error"}}'
        made.cancelled = True
        return 200, _encoded(self._shown(made))

    def cuts(self, path: str) -> bool:
        """Whether the answer to this request breaks off in the middle."""
        cut = self.cut > 0 and path.endswith(("/content", "/results"))
        self.cut -= cut
        return cut

    def _files(self, head: bytes, name: str | None, content: bytes) -> Answer:
        if name is None and self.uploads:
            return self.uploads.pop(0), b'{"error": {"message": "no room", "type": "server_error"}}'
        if name is None:
            boundary = content.split(b"\r\n", 1)[0]
            (part,) = (part for part in content.split(boundary) if b"filename=" in part)
            self.uploaded += 1
            name = f"file-{self.uploaded}"
            self.files[name] = part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
            about = {"bytes": len(content), "created_at": 1, "filename": "f", "purpose": "batch"}
            return 200, _encoded({"id": name, "object": "file", **about})
        if name not in self.files:
            return 404, b'{"error": {"message": "no such file", "type": "invalid_request_error"}}'
        if head.startswith(b"DELETE"):
            del self.files[name]
            return 200, _encoded({"id": name, "object": "file", "deleted": True})
        return 200, self.files[name]

    def _make(self, vendor: Vendor, body: Mapping[str, Any]) -> Answer:
        if self.deaf:
            self.deaf -= 1
            return 0, b""
        if self.busy:
            self.busy -= 1
            return 429, b'{"error": {"message": "slower", "type": "rate_limit_error"}}'
        if self.fails:
            self.fails -= 1
            return 503, b'{"error": {"message": "try later", "type": "server_error"}}'
        if vendor == "openai":
            lines = map(json.loads, self.files[body["input_file_id"]].splitlines())
            requests = [(line["custom_id"], line["body"]) for line in lines]
        else:
            requests = [(request["custom_id"], request["params"]) for request in body["requests"]]
        remote_id = self.named or f"{'batch' if vendor == 'openai' else 'msgbatch'}_{len(self.made) + 1}"
        made = Made(remote_id, vendor, requests, body.get("metadata") or {}, body.get("input_file_id", ""))
        self.made[remote_id] = made
        if self.answer_lost:
            self.answer_lost -= 1
            return 0, b""
        return 200, _encoded(self._shown(made))

    def _list(self, vendor: Vendor, execute: Execute) -> Answer:
        if self.unlisted:
            self.unlisted -= 1
            return 0, b""
        for made in self.made.values():
            self._look(made, execute)
        mine = [self._shown(made) for made in reversed(self.made.values()) if made.vendor == vendor]
        if self.lag:
            self.lag -= 1
            del mine[:1]
        return 200, _encoded({"object": "list", "data": mine, "has_more": False, "first_id": None, "last_id": None})

    def _look(self, made: Made, execute: Execute) -> None:
        made.looked += 1
        number = list(self.made).index(made.remote_id)
        early = self.held or made.looked < self.looks or self.refuses(number)
        if made.ended or (early and not made.cancelled):
            return
        made.ended = True
        path = "/v1/chat/completions" if made.vendor == "openai" else "/v1/messages"
        for place, (custom_id, body) in enumerate(made.requests):
            if made.cancelled and place >= self.done:
                made.outcomes[custom_id] = "canceled"
                continue
            if self.expires(number, place):
                made.outcomes[custom_id] = "expired"
                continue
            self.paid.append(custom_id)
            made.outcomes[custom_id] = execute(path, body)

    def _shown(self, made: Made) -> dict[str, Any]:
        return self._openai(made) if made.vendor == "openai" else self._anthropic(made)

    def _openai(self, made: Made) -> dict[str, Any]:
        refused = self.refuses(list(self.made).index(made.remote_id))
        status = "in_progress" if made.looked else "validating"
        if refused:
            status = "failed"
        elif made.cancelled:
            status = "cancelled" if made.ended else "cancelling"
        elif made.ended:
            status = "expired" if "expired" in made.outcomes.values() else "completed"
        shown = {
            "id": made.remote_id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "input_file_id": made.file_id,
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
                    if file_id not in made.written:
                        made.written.add(file_id)
                        self.files[file_id] = b"\n".join(map(_encoded, reversed(lines)))
        return shown

    def _anthropic(self, made: Made) -> dict[str, Any]:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        if not made.ended:
            counts["processing"] = len(made.requests)
        for outcome in made.outcomes.values():
            counts[outcome if isinstance(outcome, str) else "succeeded" if outcome[0] == 200 else "errored"] += 1
        at = datetime.fromtimestamp(made.made_at, UTC)
        return {
            "id": made.remote_id,
            "type": "message_batch",
            "processing_status": "ended" if made.ended else "canceling" if made.cancelled else "in_progress",
            "request_counts": counts,
            "created_at": at.isoformat(),
            "expires_at": at.replace(year=at.year + 1).isoformat(),
            "results_url": f"/v1/messages/batches/{made.remote_id}/results" if made.ended else None,
        }

    def _anthropic_results(self, made: Made) -> Iterator[dict[str, Any]]:
        for custom_id, outcome in reversed(made.outcomes.items()):
            if isinstance(outcome, str):
                yield {"custom_id": custom_id, "result": {"type": outcome}}
            elif outcome[0] == 200:
                yield {"custom_id": custom_id, "result": {"type": "succeeded", "message": outcome[1]}}
            else:
                kind = "invalid_request_error" if outcome[0] == 400 else "api_error"
                error = {"type": "error", "error": {"type": kind, "message": "scripted"}}
                yield {"custom_id": custom_id, "result": {"type": "errored", "error": error}}


def _openai_results(made: Made) -> Iterator[dict[str, Any]]:
    for custom_id, outcome in made.outcomes.items():
        line: dict[str, Any] = {"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": None, "error": None}
        if outcome == "canceled":  # not told of one by one
            continue
        if outcome == "expired":
            line["error"] = {"code": "batch_expired", "message": "not executed within the completion window"}
        else:
            line["response"] = {"status_code": outcome[0], "request_id": "r", "body": outcome[1]}
        yield line


def _is_reply(line: Mapping[str, Any]) -> bool:
    return line["response"] is not None and line["response"]["status_code"] == 200


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode()
