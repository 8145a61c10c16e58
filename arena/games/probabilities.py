"""How sure a judge is of its verdict, where it gives the probability of each label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judges.providers.transformers import label_probabilities
from judges.types import Judgment, Verdict

PROBABILITIES: Final = {"p_a": Verdict.A.value, "p_b": Verdict.B.value, "p_tie": Verdict.TIE.value}
"""Columns of a table of verdicts: the probability that each answer is the better one, and that neither is."""

_SCORING: Final = "transformers"
"""The provider whose judges give probabilities; nobody else's explanation is taken for them."""


def gives_probabilities(settings: Mapping[str, Any], judge: str) -> bool:
    """Whether a judge of a tournament may give probabilities, from the tournament's stored settings."""
    spec: Mapping[str, Any] = (settings.get("judges") or {}).get(judge) or {}
    return spec.get("provider") == _SCORING


def verdict_probabilities(judgment: Judgment) -> dict[str, float]:
    """The probability of each of ``PROBABILITIES``, from what the judge's reply says; empty where it says none."""
    by_label = label_probabilities(judgment.reason)
    if not by_label or by_label.get(str(judgment.outcome)) != max(by_label.values()):
        return {}
    return {column: by_label.get(label, 0.0) for column, label in PROBABILITIES.items()}


def preference(judgment: Judgment) -> float | None:
    """Probability that the answer shown first is the better one, a tie counted as half; ``None`` without any."""
    found = verdict_probabilities(judgment)
    total = sum(found.values())
    return (found["p_a"] + found["p_tie"] / 2) / total if total else None
