"""Pictures, defined once and drawn everywhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture.

    Attributes:
        name: of its file, unique among those shown together.
        title: for people.
        words: in place of it for those who do not see it.
        caption: how to read it.
    """

    name: str
    title: str
    words: str
    caption: str
