"""The provider ``replay``: returns recorded replies, verdicts, relevance labels or qrels from a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

from judges.contracts import written_reply
from judges.errors import InputError, RejectedError
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt, ReplyContract, Verdict


class ReplayProvider:
    """Looks up a prompt by its hash or by the names of query, document and agents.

    A row belongs to a prompt by its hash (column ``prompt_sha256``), to two answers (``qid``, ``agent_a``,
    ``agent_b``), to a document (``qid``, ``did``) or to an answer (``qid``, ``agent``).

    Attributes:
        judges_names: true, since rows are found by names, not by texts. Two agents with equal answers may have
            different verdicts, so the ids of these judgments must contain the names.
    """

    judges_names = True

    def __init__(self, spec: JudgeSpec, read_records: ReadRecords) -> None:
        """Read the file; raises ``InputError`` if it does not exist, is malformed, or has contradictory rows."""
        assert spec.path is not None  # JudgeSpec requires it
        self._path = spec.path
        self._rows: dict[Key, Recorded] = {}
        for row in read_records(spec.path):
            key = _key(row)
            earlier = self._rows.setdefault(key, row)
            if earlier is not row and _outcome(earlier) != _outcome(row):
                raise row.error(f"contradicts line {earlier.line} on the same", " ".join(key[1:]))
        self._name = spec.model or "recorded"
        with spec.path.open("rb") as raw:
            digest = hashlib.file_digest(raw, "sha256").hexdigest()
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "replay",
            "model": self._name,
            "sha256": digest,
        }

    async def complete(self, prompt: Prompt) -> Completion:
        row = self._rows.get(("prompt", prompt_sha256(prompt))) or self._rows.get(_key_of_inputs(prompt))
        reply = None if row is None else recorded_reply(row, prompt.contract)
        if row is None or reply is None:
            inputs = prompt.inputs
            names = [answer.agent for answer in inputs.answers] or [each.document.doc_id for each in inputs.documents]
            about = f"query {inputs.query.query_id!r}: {' before '.join(map(repr, names))}"
            raise RejectedError("not_recorded", f"{self._path.name} has nothing on {about}")
        return Completion(reply, row.text("model") or self._name)

    async def close(self) -> None:
        pass


VERDICT_WORDS: Mapping[str, Verdict] = {
    **dict.fromkeys(("a", "model_a"), Verdict.A),
    **dict.fromkeys(("b", "model_b"), Verdict.B),
    **dict.fromkeys(("c", "tie", "draw"), Verdict.TIE),
}
"""Spellings of verdicts in tables, in lower case."""

_OUTCOMES = ("reply", "verdict", "label")
_SINGLE = ("verdict", "label", "score")
_EXPLANATIONS = frozenset({"reason", "raw_answer"})

Key: TypeAlias = tuple[str, ...]


class Recorded(Protocol):
    """One row of a file of recorded replies. Column ``agent_a`` names the agent whose answer was shown first."""

    @property
    def line(self) -> int:
        """The row's line in its file, from 1."""

    @property
    def values(self) -> Mapping[str, object]:
        """The row's cells by column name."""

    def text(self, column: str) -> str:
        """The cell in a column as text; ``""`` if the row has no such cell."""

    def identifier(self, column: str) -> str:
        """The cell in a column that holds ids or names; raises ``InputError`` if it is no valid name."""

    def error(self, problem: str, value: str | None = None) -> InputError:
        """An error about this row, for the caller to raise."""


ReadRecords: TypeAlias = Callable[[Path], Iterable[Recorded]]
"""A function that yields the rows of a file of recorded replies; raises ``InputError`` if the file is malformed."""


def prompt_sha256(prompt: Prompt) -> str:
    """SHA-256 of the JSON list of a prompt's system message, user message and later turns."""
    shown = [prompt.system, prompt.user, *([turn.role, turn.text] for turn in prompt.turns)]
    return hashlib.sha256(json.dumps(shown, separators=(",", ":")).encode()).hexdigest()


def recorded_reply(row: Recorded, contract: ReplyContract) -> str | None:
    """The reply in a row, or a reply written from the row's verdict or labels; ``None`` if the row has neither.

    A ``reply`` is returned unchanged, and so is a ``raw_answer`` (RAGElo's column) if the contract's form is
    ``brackets``; in other forms the raw answer becomes the explanation. Values outside the contract are not corrected.
    """
    raw = row.text("raw_answer")
    if whole := row.text("reply") or (raw if contract.form == "brackets" else ""):
        return whole
    cells = {name: _cell(row, name, contract) for name in contract.choices}
    if not cells or not all(cells.values()):
        return None
    reason = row.text(contract.reason) or row.text("reason") or raw or "Recorded without an explanation."
    chosen = {name: _word(cell, contract.choices[name]) for name, cell in cells.items()}
    return written_reply(contract, chosen, reason, {name: row.text(name) for name in contract.texts})


def _key(row: Recorded) -> Key:
    if row.text("prompt_sha256"):
        return ("prompt", row.text("prompt_sha256"))
    for names in (("agent_a", "agent_b"), ("did",), ("agent",)):
        if all(name in row.values for name in names):
            return (names[0], row.identifier("qid"), *(row.identifier(name) for name in names))
    raise row.error("the row must have prompt_sha256, or qid with agent_a and agent_b, with did, or with agent")


def _key_of_inputs(prompt: Prompt) -> Key:
    inputs = prompt.inputs
    agents = [answer.agent for answer in inputs.answers]
    if len(agents) == 2:
        return ("agent_a", inputs.query.query_id, *agents)
    if len(agents) == 1:
        return ("agent", inputs.query.query_id, *agents)
    return ("did", inputs.query.query_id, *(entry.document.doc_id for entry in inputs.documents))


def _outcome(row: Recorded) -> Mapping[str, object]:
    """The cells in which two rows for the same prompt must agree: the outcomes; without any, all but explanations."""
    known = {name: row.values[name] for name in _OUTCOMES if name in row.values}
    return known or {name: cell for name, cell in row.values.items() if name not in _EXPLANATIONS}


def _cell(row: Recorded, name: str, contract: ReplyContract) -> str:
    usual = _SINGLE if len(contract.choices) == 1 or name == contract.label else ()
    return next((row.text(column) for column in (name, *usual) if column in row.values), "")


def _word(cell: str, words: Mapping[str | int, int | str]) -> str | int:
    value_text = cell.strip()
    for word, value in words.items():
        if value_text in (str(word), str(value)):
            return word
    verdict = VERDICT_WORDS.get(value_text.casefold())
    return next((word for word, value in words.items() if value == verdict), value_text)
