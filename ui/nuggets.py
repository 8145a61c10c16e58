"""Nuggets as a reader looks at them."""

from __future__ import annotations

from retrieval_eval.nuggets.types import Support

_WORDS = {Support.FULL: "support", Support.PARTIAL: "partial support", Support.NONE: "no support", None: "not known"}


def support_words(label: Support | None) -> str:
    """A label in words."""
    return _WORDS[label]
