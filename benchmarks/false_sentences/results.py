"""What a search came to: sentences by kind, those that are false, and how often chance made a claim that is untrue."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field

from benchmarks.false_sentences.sentences import Finding


class Rate(Struct):
    """How often something is said that is not true of the world.

    Attributes:
        level: at which it may be said.
        null: worlds of which it is not true, and could have been said.
        wrong: those of which it is said.
    """

    level: float
    null: int = 0
    wrong: int = 0

    @property
    def allowed(self) -> int:
        """How many chance explains at that level, in 99 of 100 searches."""
        return math.ceil(self.level * self.null + 2.33 * math.sqrt(self.level * (1 - self.level) * self.null))


class Result(Struct):
    """What a search came to.

    Attributes:
        worlds: tables and tournaments read, by kind.
        said: sentences by kind.
        false: by kind, the world, the line and what is wrong.
        rates: claims about the world, each with how often it is untrue.
        leaders, could_lead: tables in which an agent is said to lead, and those with a best agent and queries enough.
    """

    worlds: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    false: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    rates: dict[str, Rate] = field(default_factory=dict)
    leaders: int = 0
    could_lead: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing is false, and nothing untrue more often than chance allows."""
        return not any(self.false.values()) and all(own.wrong <= own.allowed for own in self.rates.values())

    def note(self, where: str, findings: Iterable[Finding]) -> None:
        """Count sentences."""
        for own in findings:
            self.said[own.kind] += 1
            if own.wrong:
                self.false.setdefault(own.kind, []).append((where, own.line, own.wrong))

    def claimed(self, what: str, level: float, *, untrue: bool, said: bool) -> None:
        """Count a claim that could have been made."""
        rate = self.rates.setdefault(what, Rate(level))
        rate.null += untrue
        rate.wrong += untrue and said
