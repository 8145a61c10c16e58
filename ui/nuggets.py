"""Nuggets as a reader looks at them: tables of support, scores and edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from arena.boards.nuggets import SCORES
from arena.nuggets.preview import Preview
from retrieval_eval.nuggets.editing import HISTORY, Change, Kind
from retrieval_eval.nuggets.run_scores import Mean, RunScores
from retrieval_eval.nuggets.types import Assignment, NuggetBank, Support

_WORDS: Final = {
    Support.FULL: "support",
    Support.PARTIAL: "partial support",
    Support.NONE: "no support",
    None: "not known",
}


def support_words(label: Support | None) -> str:
    """A label in words."""
    return _WORDS[label]


def support_frame(bank: NuggetBank, labels: Mapping[str, Assignment], agents: Sequence[str]) -> pd.DataFrame:
    """A line for each nugget and agent, as the chart draws it; ``symbol`` tells labels apart without colour."""
    symbols = {Support.FULL: "●", Support.PARTIAL: "◐", Support.NONE: "○", None: "?"}
    return pd.DataFrame(
        [
            {
                "number": place + 1,
                "nugget": nugget.text,
                "agent": agent,
                "label": support_words(labels[agent].labels[place]),
                "symbol": symbols[labels[agent].labels[place]],
            }
            for place, nugget in enumerate(bank.nuggets)
            for agent in agents
        ],
        columns=["number", "nugget", "agent", "label", "symbol"],
    )


def nuggets_frame(bank: NuggetBank, labels: Mapping[str, Assignment], agents: Sequence[str]) -> pd.DataFrame:
    """A line for each nugget: how many answers state it, and what each agent's does."""
    columns: dict[str, list[Any]] = {
        "Number": list(range(1, len(bank.nuggets) + 1)),
        "Nugget": [nugget.text for nugget in bank.nuggets],
        "Importance": [nugget.importance or "not known" for nugget in bank.nuggets],
        "Stated by": [
            sum(labels[agent].labels[place] is Support.FULL for agent in agents) for place in range(len(bank.nuggets))
        ],
    }
    for agent in agents:
        columns[f"agent {agent}"] = [support_words(label) for label in labels[agent].labels]
    return pd.DataFrame(columns)


def preview_frame(previews: Sequence[Preview]) -> pd.DataFrame:
    """V strict and All of each agent before and after an edit; both ends where labels are still to be assigned."""
    columns: dict[str, list[Any]] = {"Agent": [own.agent for own in previews]}
    for column in ("v_strict", "a"):
        columns[f"{SCORES[column][0]} before"] = [_mean(own.before, column) for own in previews]
        columns[f"{SCORES[column][0]} after"] = [_mean(own.after, column) for own in previews]
    columns["To be assigned"] = [own.after.labels - own.after.assigned for own in previews]
    return pd.DataFrame(columns)


def changes_frame(changes: Sequence[Change]) -> pd.DataFrame:
    """What an edit does, without what it keeps."""
    return pd.DataFrame(
        [
            {
                "Change": change.kind.value,
                "Before": " + ".join(change.before),
                "After": change.after or "",
                "Importance": _importance(change.importance_before, change.importance),
            }
            for change in changes
            if change.kind is not Kind.KEPT
        ],
        columns=["Change", "Before", "After", "Importance"],
    )


def history_frame(bank: NuggetBank) -> pd.DataFrame:
    """The edits that a file tells of a query's nuggets, the latest first; what is no edit is left out."""
    edits = bank.details.get(HISTORY)
    rows = []
    for edit in reversed(edits if isinstance(edits, list) else []):
        if not isinstance(edit, Mapping):
            continue
        who = {"When": str(edit.get("at", "")), "Who": str(edit.get("by", ""))}
        done = edit.get("changes")
        for change in done if isinstance(done, list) else []:
            if isinstance(change, Mapping):
                rows.append({**who, **_of_history(change)})
        if edit.get("reordered") is True:
            rows.append({**who, "Change": "reordered", "Before": "", "After": "", "Importance": ""})
    return pd.DataFrame(rows, columns=["When", "Who", "Change", "Before", "After", "Importance"])


def _of_history(change: Mapping[str, Any]) -> dict[str, str]:
    before = change.get("before")
    return {
        "Change": str(change.get("kind", "")),
        "Before": " + ".join(map(str, before)) if isinstance(before, list) else str(before or ""),
        "After": str(change.get("after") or ""),
        "Importance": _importance(change.get("importance_before"), change.get("importance")),
    }


def _importance(before: object, after: object) -> str:
    if before is None or after is None or before == after:
        return str(after or before or "not known")
    return f"{before} to {after}"


def _mean(own: RunScores, column: str) -> str:
    mean: Mean = own.means[column]
    if own.assigned == own.labels:
        return "none" if mean.value is None else f"{mean.value:.3f}"
    return _span(mean.lowest, mean.highest)


def _span(low: float | None, high: float | None) -> str:
    return "none" if low is None or high is None else f"{low:.3f} to {high:.3f}"
