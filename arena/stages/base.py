"""What a settled want leads to, of stages that come about step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from arena.store import Result, Wanted
from judges.types import Task


@dataclass(frozen=True, slots=True)
class Release:
    """What one settled want leads to.

    Attributes:
        wanted: wants that are known to be needed now.
        ready: those, of all that are needed, whose prompts can be rendered now.
    """

    wanted: Sequence[Wanted] = ()
    ready: Sequence[Wanted] = ()


class Releasing(Protocol):
    """Knows what settled wants lead to."""

    def releases(self, task: Task) -> bool:
        """Whether a settled want of the task may release others."""
        ...

    def released(self, want: Wanted, result: Result) -> Release:
        """What can be asked for now that a want is settled."""
        ...
