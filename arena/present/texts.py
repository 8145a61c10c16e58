"""Text from outside, made harmless to look at."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line: what would move the cursor or command the terminal is shown as an escape."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
