"""How sentences are taught, read and counted: by a pattern of a whole line, and a check of what the line claims.

A check answers ``True``, ``False``, or a word for what is wrong. A sentence that no pattern knows is an error.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct, field

NUMBER = r"-?[\d,]+(?:\.\d+)?"
NAMES = r"[v-z](?:(?:, | and )[v-z])*"
END = rf"(?:under |over )?[+]?{NUMBER}"
BRACKET = rf" \((?P<l>{END})(?: to (?P<h>{END}))?%?\)"

Said: TypeAlias = Mapping[str, Any]
"""The named groups of a pattern; ``None`` for a group without a match."""

Seen = TypeVar("Seen")
"""The recount that a sentence is checked against."""


class Claim(Struct, Generic[Seen], frozen=True):
    kind: str
    pattern: re.Pattern[str]
    check: Callable[[Seen, Said], bool | str]


class Finding(Struct, frozen=True):
    """A sentence's kind and text, and what is wrong with it; empty if nothing is."""

    kind: str
    line: str
    wrong: str


class Sentences(Generic[Seen]):
    """All kinds of sentences about one kind of thing; of several that fit, the first checks it."""

    def __init__(self) -> None:
        self.claims: list[Claim[Seen]] = []

    def claim(
        self, kind: str, pattern: str
    ) -> Callable[[Callable[[Seen, Said], bool | str]], Callable[[Seen, Said], bool | str]]:
        def taught(
            check: Callable[[Seen, Said], bool | str],
        ) -> Callable[[Seen, Said], bool | str]:
            self.claims.append(Claim(kind, re.compile(pattern), check))
            return check

        return taught

    def always(self, kind: str, *patterns: str) -> None:
        for pattern in patterns:
            self.claims.append(Claim(kind, re.compile(pattern), lambda _seen, _said: True))

    def read(self, seen: Seen, lines: Iterable[str]) -> Iterator[Finding]:
        for line in lines:
            for own in self.claims:
                if match := own.pattern.fullmatch(line):
                    held = own.check(seen, match.groupdict())
                    yield Finding(own.kind, line, "" if held is True else held or "not so")
                    break
            else:
                yield Finding("unknown", line, "no checker knows this sentence")


def names(said: str) -> list[str]:
    return re.findall(r"\b[v-z]\b", said)


def near(said: str, value: float, slack: float) -> bool:
    return abs(float(said.replace(",", "")) - value) <= slack


def whole(said: str) -> int:
    return int(said.replace(",", ""))


def share(said: str, part: float, all_of: float, decimals: int = 0) -> bool:
    return near(said, 100 * part / all_of, 0.51 / 10**decimals)


def rounds_to(said: str, value: float, factor: float = 1.0) -> bool:
    decimals = len(said.partition(".")[2])
    return near(said.replace("+", ""), factor * value, 0.5 / 10**decimals + 1e-9)


def is_figure(said: str, value: float | None, factor: float = 1.0) -> bool:
    return said == "-" if value is None else said != "-" and rounds_to(said, value, factor)


def first_wrong(*held: bool | str) -> bool | str:
    """The first answer that is not ``True``."""
    return next((own for own in held if own is not True), True)


def status_follows(said: Said, least: float, most: float) -> bool | str:
    """Whether a check's status follows from the interval printed, give or take its rounding."""
    low, high = said["l"], said["h"] or said["l"]
    if low is None or high is None:
        return said["status"] == "unknown" or "a verdict without an interval"
    return _follows(said["status"], float(low.split()[-1]), float(high.split()[-1]), least, most)


def _follows(status: str | None, low: float, high: float, least: float, most: float) -> bool | str:
    slack = 0.51 if high > 1.5 or most > 1.5 else 0.0051
    if status == "passed":
        return (low >= least - slack and high <= most + slack) or "passed although its interval allows a failure"
    if status == "failed":
        return high < least + slack or low > most - slack or "failed although its interval allows passing"
    return (low - slack < least or high + slack > most) and high + slack >= least and low - slack <= most


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
        return not any(self.false.values()) and all(own.wrong <= own.allowed for own in self.rates.values())

    def note(self, where: str, findings: Iterable[Finding]) -> None:
        for own in findings:
            self.said[own.kind] += 1
            if own.wrong:
                self.false.setdefault(own.kind, []).append((where, own.line, own.wrong))

    def claimed(self, what: str, level: float, *, untrue: bool, said: bool) -> None:
        rate = self.rates.setdefault(what, Rate(level))
        rate.null += untrue
        rate.wrong += untrue and said
