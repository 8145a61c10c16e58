"""Texts from servers and models, made fit for a message of one line and for a store."""

from __future__ import annotations

from judges.masking import masked

_SHOWN = 300


def one_line(text: str) -> str:
    """``text`` on one line, shortened, without any key."""
    flat = " ".join(masked(text).split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"


def storable(text: str) -> str:
    """``text`` without any key, half a surrogate pair or NUL: JSON can spell these, and no database can hold them."""
    whole = masked(text).replace("\0", "\ufffd")
    return whole if whole.isascii() else whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
