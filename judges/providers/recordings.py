"""Recorded replies, verdicts and labels, looked up by what they are about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from judges.tables import Cell, Row, cell_text, known_format, read_rows
from judges.trec_lines import QRELS_FIELDS, read_trec_lines
from judges.types import Prompt, ReplyContract, Verdict

VERDICT_WORDS: Mapping[str, Verdict] = {
    "a": Verdict.A,
    "model_a": Verdict.A,
    "b": Verdict.B,
    "model_b": Verdict.B,
    "c": Verdict.TIE,
    "tie": Verdict.TIE,
    "draw": Verdict.TIE,
}
"""How tables of verdicts write them, in lower case."""

ALIASES = {
    "qid": ("query_id", "question_id"),
    "did": ("doc_id", "docid", "document_id"),
    "agent_a": ("model_a",),
    "agent_b": ("model_b",),
}

_SHOWN_SWAPPED = {"": False, "ab": False, "1": False, "first": False, "ba": True, "2": True, "second": True}

_OUTCOMES = ("reply", "verdict", "label")
_SINGLE = ("verdict", "label", "score")
_EXPLANATIONS = frozenset({"reason", "raw_answer"})

Key: TypeAlias = tuple[str, ...]


class Recordings:
    """The rows of one file by key.

    A row is about the prompt with a hash (column ``prompt_sha256``), else about two answers (``qid``, ``agent_a``,
    ``agent_b``), a document (``qid``, ``did``) or an answer (``qid``, ``agent``). ``agent_a`` was shown first unless
    ``order`` is ``ba``; a verdict is about the columns, whatever the order. A file whose name is no table's is read as
    TREC qrels.
    """

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            DataError: a row says not what it is about, or contradicts an earlier one.
        """
        self._rows: dict[Key, Row] = {}
        for row in map(_as_shown, _rows(path)):
            key = _key(row)
            earlier = self._rows.setdefault(key, row)
            if earlier is not row and _outcome(earlier) != _outcome(row):
                raise row.error(f"contradicts line {earlier.line} on the same", " ".join(key[1:]))

    def find(self, prompt: Prompt) -> Row | None:
        """The row that is about a prompt."""
        found = self._rows.get(("prompt", prompt_sha256(prompt)))
        return found or self._rows.get(_key_of_inputs(prompt))


def prompt_sha256(prompt: Prompt) -> str:
    """Hash of all that a judge is shown: the JSON list of the system message, the user message and later turns."""
    shown = [prompt.system, prompt.user, *([turn.role, turn.text] for turn in prompt.turns)]
    return hashlib.sha256(json.dumps(shown, separators=(",", ":")).encode()).hexdigest()


def reply_of(row: Row, contract: ReplyContract) -> str:
    """The recorded reply, or one that says what was recorded in the contract's form.

    A ``reply`` is returned whole. So is a ``raw_answer``, RAGElo's column, to a contract of its form, ``brackets``; to
    others it is the explanation of the row's verdict. What is recorded outside the contract comes out outside it.
    """
    raw = row.text("raw_answer")
    if whole := row.text("reply") or (raw if contract.form == "brackets" else ""):
        return whole
    reason = row.text(contract.reason) or row.text("reason") or raw or "Recorded without an explanation."
    chosen = {name: _word(_cell(row, name, contract), words) for name, words in contract.choices.items()}
    if contract.form == "word":
        return str(next(iter(chosen.values())))
    if contract.form == "brackets":
        return f"{reason}\n[[{next(iter(chosen.values()))}]]"
    texts = {name: reason if name == contract.reason else row.text(name) for name in contract.spoken}
    return json.dumps({**texts, **chosen}, ensure_ascii=False)


def says_nothing(row: Row, contract: ReplyContract) -> bool:
    """Whether a row has neither a reply nor an outcome for this contract."""
    cells = [cell_text(_cell(row, name, contract)) for name in contract.choices]
    whole = row.text("reply") or (row.text("raw_answer") if contract.form == "brackets" else "")
    return not whole and not (cells and all(cells))


def _rows(path: Path) -> Iterator[Row]:
    if known_format(path) is not None:
        return read_rows(path, aliases=ALIASES)
    lines = read_trec_lines(path, QRELS_FIELDS)
    return (Row(path, number, {"qid": query, "did": doc, "label": label}) for number, (query, _, doc, label) in lines)


def _as_shown(row: Row) -> Row:
    """The row with ``agent_a`` shown first."""
    order = row.text("order").casefold()
    if order not in _SHOWN_SWAPPED:
        raise row.error("'order' must be ab, ba or empty", order)
    if not _SHOWN_SWAPPED[order] or "agent_a" not in row.values or "agent_b" not in row.values:
        return row
    swapped = {"agent_a": row.values["agent_b"], "agent_b": row.values["agent_a"], "order": "ab"}
    if (verdict := VERDICT_WORDS.get(row.text("verdict").strip().casefold())) is not None:
        swapped["verdict"] = verdict.swapped()
    return Row(row.path, row.line, {**row.values, **swapped})


def _key(row: Row) -> Key:
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


def _outcome(row: Row) -> Mapping[str, Cell]:
    """What two rows on the same must agree on: the outcome columns, else all but explanations."""
    known = {name: row.values[name] for name in _OUTCOMES if name in row.values}
    return known or {name: cell for name, cell in row.values.items() if name not in _EXPLANATIONS}


def _cell(row: Row, name: str, contract: ReplyContract) -> Cell:
    """The cell of one choice: its own column, or the usual one where it is the only choice or the label."""
    usual = _SINGLE if len(contract.choices) == 1 or name == contract.label else ()
    return next((row.values[column] for column in (name, *usual) if column in row.values), None)


def _word(cell: Cell, words: Mapping[str | int, int | str]) -> str | int:
    """The contract's word for what was recorded, by word or by value; what it does not know stays as it is."""
    recorded = cell_text(cell).strip()
    for word, value in words.items():
        if recorded in (str(word), str(value)):
            return word
    verdict = VERDICT_WORDS.get(recorded.casefold())
    return next((word for word, value in words.items() if value == verdict), recorded)
