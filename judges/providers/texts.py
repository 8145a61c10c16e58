"""Texts from servers and models, made fit for a message of one line and for a store."""

from __future__ import annotations

import re

_SHOWN = 300
_LONG = 16
"""Characters from which on a key is a secret: shorter ones (``none``, ``ollama``) are stand-ins and common words."""
_BEGINNING = 8
"""Characters of a key that vendors repeat where they mask the rest."""


def one_line(text: str, *secrets: str) -> str:
    """``text`` on one line, shortened, without ``secrets``, also where only the middle of one is masked."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
        if len(secret) >= _LONG:
            text = re.sub(re.escape(secret[:_BEGINNING]) + r"\S*", "***", text)
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"


def without(content: bytes, *secrets: str) -> bytes:
    """What a server sent, without the keys it was sent; a stand-in for a key may be part of a reply and stays."""
    for secret in secrets:
        if len(secret) >= _LONG:
            content = content.replace(secret.encode(), b"***")
    return content


def storable(text: str) -> str:
    """``text`` without what JSON can spell and neither UTF-8 nor a database can hold: half surrogate pairs and NUL."""
    whole = text.replace("\0", "\ufffd")
    return whole if whole.isascii() else whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
