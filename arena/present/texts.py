"""Text from outside, made harmless to look at."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line: what would move the cursor or command the terminal is shown as an escape."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON can smuggle in and no protocol carries, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def clipped(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters, for cells and options."""
    line = " ".join(text[: 4 * limit].split())
    return encodable(line if len(line) <= limit else line[: limit - 1] + "…")
