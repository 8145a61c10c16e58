"""What can be counted of an answer's text, and that judges may like besides its quality."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+", re.MULTILINE)
_CITATION = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_CONFIDENT = re.compile(
    r"\b(?:certainly|clearly|definitely|obviously|undoubtedly|always|never|surely|without (?:a )?doubt|of course)\b",
    re.I,
)

QUALITIES: Final[Mapping[str, Callable[[str], float]]] = {
    "log_length": lambda text: float(np.log(max(1, len(text.split())))),
    "list_items": lambda text: float(len(_LIST_ITEM.findall(text))),
    "citations": lambda text: float(len(_CITATION.findall(text))),
    "confident_words": lambda text: float(len(_CONFIDENT.findall(text))),
}
"""By name, of an answer's text; lengths are in words."""
