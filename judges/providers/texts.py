"""Texts from servers and models, made fit for a message of one line and for a store."""

from __future__ import annotations

_SHOWN = 300


def one_line(text: str, secret: str = "") -> str:
    """``text`` on one line, shortened, without ``secret``."""
    flat = " ".join((text.replace(secret, "***") if secret else text).split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"


def storable(text: str) -> str:
    """``text`` without what JSON can spell and neither UTF-8 nor a database can hold: half surrogate pairs and NUL."""
    whole = text.replace("\0", "\ufffd")
    return whole if whole.isascii() else whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
