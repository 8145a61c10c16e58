"""How a number, an interval, a missing value and a text from outside are written, wherever they are shown.

A figure has the decimals that its interval deserves (``deserved``); one without an interval those of its form: a score
two, a share in percent and a rating none. So it reads the same on terminal, page and report; programs get six decimals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from retrieval_eval.stats.estimate import Estimate

MISSING: Final = "-"
"""In place of a figure that does not exist. In JSON it is ``null``, in CSV nothing."""


class TextForm(Struct, frozen=True):
    """Texts; several are joined, a truth is yes or no."""

    separator: str = ", "
    numeric: bool = False

    def write(self, value: Any) -> str:
        """The value as text; ``MISSING`` where there is none."""
        if value is None:
            return MISSING
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str):
            return value or MISSING
        if isinstance(value, Iterable):
            return self.separator.join(map(str, value)) or MISSING
        return str(value)

    def between(self, low: Any, high: Any) -> str:
        """An interval as text; ``MISSING`` where an end is not known."""
        return MISSING if low is None or high is None else f"{low} to {high}"


class Number(Struct, frozen=True):
    """A number with so many decimals, thousands set apart.

    Attributes:
        decimals: always written.
        signed: a sign also where it is positive.
        unit: behind it, with its own space.
        factor: what it is multiplied by.
    """

    decimals: int = 0
    signed: bool = False
    unit: str = ""
    factor: float = 1
    numeric: bool = True

    def write(self, value: Any) -> str:
        """The value as text; ``MISSING`` where there is none."""
        return MISSING if _unknown(value) else self._digits(value) + self.unit

    def places(self, value: float) -> int:
        """Decimals that say of the value, times ``factor``, what ``write`` says."""
        return len(self._digits(value).partition(".")[2])

    def between(self, low: Any, high: Any) -> str:
        """An interval as text; ``MISSING`` where an end is not known."""
        if _unknown(low) or _unknown(high):
            return MISSING
        return self.write(low) if self.write(low) == self.write(high) else f"{self._digits(low)} to {self.write(high)}"

    def _digits(self, value: float) -> str:
        rounded = round(self.factor * value, self.decimals) + 0.0  # -0.0 becomes 0.0
        return f"{rounded:{'+' if self.signed and rounded else ''},.{self.decimals}f}"


class Percent(Number, frozen=True):
    """A share in percent. Less than all is never written as all, nor anything as nothing."""

    unit: str = "%"
    factor: float = 100

    def _digits(self, value: float) -> str:
        for decimals in range(self.decimals, self.decimals + 3):
            written = f"{100 * value + 0:,.{decimals}f}"
            if 0 < abs(float(written.replace(",", ""))) < 100 or value == 0 or abs(value) >= 1:
                return written
        return f"{'-' if value < 0 else ''}{'over 99.9' if abs(value) > 0.5 else 'under 0.1'}"


class Count(Number, frozen=True):
    """A whole number; one with fractions, as of games judged by probabilities, with one decimal."""

    def _digits(self, value: float) -> str:
        return f"{value + 0:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


class Money(Number, frozen=True):
    """Dollars, with two digits that count at least."""

    def _digits(self, value: float) -> str:
        return f"{'-' if value < 0 else ''}${abs(value):,.{_decimals(abs(value), 2)}f}"


class Seconds(Number, frozen=True):
    """A time; short ones in milliseconds, with two digits that count."""

    def places(self, value: float) -> int:
        return 2 if value >= 1 else 3 + _decimals(1000 * value, 0)

    def between(self, low: Any, high: Any) -> str:
        return MISSING if _unknown(low) or _unknown(high) else f"{self.write(low)} to {self.write(high)}"

    def _digits(self, value: float) -> str:
        return f"{value:,.2f} s" if value >= 1 else f"{1000 * value:.{_decimals(1000 * value, 0)}f} ms"


class Duration(Number, frozen=True):
    """A time that is waited for, in hours and minutes, or minutes and seconds."""

    def _digits(self, value: float) -> str:
        minutes, rest = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


class PValue(Number, frozen=True):
    """The probability of a test; a tiny one is below 0.001."""

    def _digits(self, value: float) -> str:
        return f"{value:.3f}" if value >= 0.001 else "below 0.001"


NumberForm: TypeAlias = TextForm | Number
"""How the values of a column are written. What is ``numeric`` stands to the right."""

WORDS: Final = TextForm()
ALIGNED: Final = TextForm(numeric=True)
"""Of texts that hold numbers, such as "3 of 4"."""
COUNT: Final = Count(1)
POINTS: Final = Number(0)
SIGNED: Final = Number(0, signed=True)
SIGNED_2: Final = Number(2, signed=True)
FIGURE: Final = Number(2)
PERCENT: Final = Percent()
MONEY: Final = Money(4)
SECONDS: Final = Seconds(2)
DURATION: Final = Duration(0)
P_VALUE: Final = PValue(3)


def deserved(form: NumberForm, ends: Iterable[tuple[float | None, float | None]]) -> NumberForm:
    """The form with as many decimals as intervals of these ends deserve.

    They show one digit of half the usual width, or two where it begins with 1; of numbers below 1 two decimals, so that
    an end beside 0 is not taken for it. Forms other than plain numbers and shares stay as they are.
    """
    if not isinstance(form, Number) or type(form) not in (Number, Percent):
        return form
    widths = sorted(abs(high - low) for low, high in ends if low is not None and high is not None)
    half = form.factor * widths[len(widths) // 2] / 2 if widths else 0.0
    if not 0 < half < math.inf:
        return form
    fewest = 0 if isinstance(form, Percent) else min(form.decimals, 2)
    decimals = min(max(math.ceil(-math.log10(half / 2)), fewest), 4)
    return Percent(decimals) if isinstance(form, Percent) else replace(form, decimals=decimals)


def with_interval(estimate: Estimate, form: NumberForm = FIGURE) -> str:
    """A figure that stands for itself, its interval in brackets where it has one."""
    return bracketed(estimate, deserved(form, [(estimate.low, estimate.high)]))


def bracketed(estimate: Estimate, form: NumberForm) -> str:
    """The same in a form that it shares with others of its column."""
    if estimate.low is None or estimate.high is None:
        return form.write(estimate.value)
    return f"{form.write(estimate.value)} ({form.between(estimate.low, estimate.high)})"


def counted(count: float, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{COUNT.write(count)} {one if count == 1 else many or f'{one}s'}"


def listed(words: Sequence[str], most: int | None = None) -> str:
    """One or more, as a sentence names them: "a, b and c"; those behind the first ``most`` are counted."""
    if most is not None and len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _decimals(value: float, fewest: int) -> int:
    return max(fewest, 1 - math.floor(math.log10(value))) if 0 < value < math.inf else fewest


def printable(text: str) -> str:
    """The text on one line: what would move the cursor or command the terminal is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON can smuggle in and no protocol carries, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def told_apart(names: Sequence[str], limit: int) -> list[str]:
    """Names of at most so many characters, or as many more as it takes that different ones stay different."""
    for most in range(limit, max(map(len, names), default=0)):
        for tail in (0, most // 2):
            found = {name: name if len(name) <= most else _middle_out(name, most, tail) for name in names}
            if len(set(found.values())) == len(found):
                return [found[name] for name in names]
    return list(names)


def _middle_out(name: str, most: int, tail: int) -> str:
    return f"{name[: most - 1 - tail]}…{name[-tail:] if tail else ''}"


def clipped(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters, for cells and options."""
    line = " ".join(text[: 4 * limit].split())
    return encodable(line if len(line) <= limit else line[: limit - 1] + "…")
