"""A judge that says again what was recorded: replies, tables of verdicts, relevance labels, qrels."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from judges.errors import InputError, RejectedError
from judges.providers.recordings import ReadRecords, Recordings, reply_of, says_nothing
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt


class ReplayProvider:
    """Looks a prompt up by the names of query, document and agents; see ``recordings`` for what a row is about.

    Attributes:
        judges_names: what is recorded belongs to names, not texts: two agents with equal answers may have different
            verdicts, so names must enter the ids of these judgments.
    """

    judges_names = True

    def __init__(self, spec: JudgeSpec, read_records: ReadRecords) -> None:
        """Read the file.

        Raises:
            InputError: there is no such file, or it is malformed or contradicts itself.
        """
        if spec.path is None:
            raise InputError("provider 'replay' needs a 'path' to recorded replies or verdicts")
        self._path = spec.path
        self._recordings = Recordings(read_records(spec.path))
        self._name = spec.model or "recorded"
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "replay",
            "model": self._name,
            "sha256": _sha256(spec.path),
        }

    async def complete(self, prompt: Prompt) -> Completion:
        """Say what was recorded.

        Raises:
            RejectedError: nothing was.
        """
        row = self._recordings.find(prompt)
        if row is None or says_nothing(row, prompt.contract):
            raise RejectedError("not_recorded", f"{self._path.name} has nothing on {_about(prompt)}")
        return Completion(reply_of(row, prompt.contract), row.text("model") or self._name)

    async def close(self) -> None:
        """Nothing is held open."""


def _about(prompt: Prompt) -> str:
    inputs = prompt.inputs
    names = [answer.agent for answer in inputs.answers] or [entry.document.doc_id for entry in inputs.documents]
    return f"query {inputs.query.query_id!r}: {' before '.join(repr(name) for name in names)}"


def _sha256(path: Path) -> str:
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()
