"""Things that people are asked about, one after the other."""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from typing import Protocol


class State(Enum):
    """What became of a thing that a person was asked about; one that was skipped can be taken up again."""

    OPEN = "open"
    DONE = "done"
    SKIPPED = "skipped"


class Thing(Protocol):
    """What a person is shown at once."""

    @property
    def thing_id(self) -> str:
        """Hexadecimal digits for what is read; other texts are another thing."""
        ...


def drawn(annotator: str, *names: str) -> str:
    """A random place of a thing in a person's order; it depends on nothing else, so what is added moves nothing."""
    return hashlib.sha256(json.dumps([annotator, *names]).encode()).hexdigest()


def asker(annotator: str, *names: str) -> str:
    """Whose order a thing is drawn for: on every other one, as chance has it, the one order that all people share.

    What several people are asked shows how far they agree among themselves; what each is asked alone gives more things
    a label.
    """
    return "" if int(drawn("shared", *names), 16) % 2 else annotator
