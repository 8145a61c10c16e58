"""Formats of numbers, intervals, missing values and untrusted texts for all outputs.

The width of a figure's interval determines its number of decimals (``deserved``). Without an interval the number format
does: two decimals for a score, none for a percentage or a rating. So a figure reads the same on the terminal, on pages
and in reports; programs get six decimals.
"""

from __future__ import annotations

import math
import unicodedata
from calendar import month_name
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from retrieval_eval.stats.estimate import Estimate

MISSING: Final = "-"
"""Text for a missing figure; JSON has ``null`` and CSV an empty cell."""
_MOST_DECIMALS: Final = 4


class TextForm(Struct, frozen=True):
    """Format of texts: joins lists, and writes booleans as yes or no."""

    numeric: bool = False

    def write(self, value: Any) -> str:
        if value is None:
            return MISSING
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str):
            return value or MISSING
        if isinstance(value, Iterable):
            return ", ".join(map(str, value)) or MISSING
        return str(value)

    def between(self, low: Any, high: Any) -> str:
        return MISSING if low is None or high is None else f"{low} to {high}"


class Number(Struct, frozen=True):
    """Format of numbers: fixed decimals and thousands separators.

    Attributes:
        unit: text after the number, starting with a space if needed.
        factor: number that values are multiplied by.
    """

    decimals: int = 0
    signed: bool = False
    unit: str = ""
    factor: float = 1
    numeric: bool = True

    def write(self, value: Any) -> str:
        return MISSING if _unknown(value) else self._digits(value) + self.unit

    def places(self, value: float) -> int:
        return len(self._digits(value).partition(".")[2])

    def between(self, low: Any, high: Any) -> str:
        """The interval as text; ``MISSING`` if an end is unknown, a single number if both ends read the same."""
        if _unknown(low) or _unknown(high):
            return MISSING
        return self.write(low) if self.write(low) == self.write(high) else f"{self._digits(low)} to {self.write(high)}"

    def _digits(self, value: float) -> str:
        rounded = round(self.factor * value, self.decimals) + 0.0  # -0.0 becomes 0.0
        return f"{rounded:{'+' if self.signed and rounded else ''},.{self.decimals}f}"


class Percent(Number, frozen=True):
    """Format of shares in percent; a share that would round to 0 % or 100 % reads "under 0.1" or "over 99.9"."""

    unit: str = "%"
    factor: float = 100

    def _digits(self, value: float) -> str:
        for decimals in range(self.decimals, self.decimals + 3):
            digits = f"{100 * value + 0:,.{decimals}f}"
            if 0 < abs(float(digits.replace(",", ""))) < 100 or value == 0 or abs(value) >= 1:
                return digits
        return f"{'-' if value < 0 else ''}{'over 99.9' if abs(value) > 0.5 else 'under 0.1'}"


class Count(Number, frozen=True):
    """Format of counts: no decimals, or one for fractional counts, such as games scored by probabilities."""

    def _digits(self, value: float) -> str:
        return f"{value + 0:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


class Money(Number, frozen=True):
    """Format of amounts in dollars, with at least two decimals and two significant digits."""

    def _digits(self, value: float) -> str:
        return f"{'-' if value < 0 else ''}${abs(value):,.{_decimals(abs(value), 2)}f}"


class RoughMoney(Money, frozen=True):
    """Format of estimated amounts in dollars: whole dollars with two significant digits, or below one dollar cents."""

    def _digits(self, value: float) -> str:
        if abs(value) < 0.995:
            return Money._digits(self, value)
        return f"${round(value, min(0, _decimals(value, -99))):,.0f}"


class Seconds(Number, frozen=True):
    """Format of times in seconds, or below one second in milliseconds with two significant digits."""

    def places(self, value: float) -> int:
        return 2 if value >= 1 else 3 + _decimals(1000 * value, 0)

    def between(self, low: Any, high: Any) -> str:
        return MISSING if _unknown(low) or _unknown(high) else f"{self.write(low)} to {self.write(high)}"

    def _digits(self, value: float) -> str:
        return f"{value:,.2f} s" if value >= 1 else f"{1000 * value:.{_decimals(1000 * value, 0)}f} ms"


class Duration(Number, frozen=True):
    """Format of long times: hours and minutes, or minutes and seconds."""

    def _digits(self, value: float) -> str:
        minutes, rest = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


class PValue(Number, frozen=True):
    """Format of p-values: three decimals, or "below 0.001"."""

    def _digits(self, value: float) -> str:
        return f"{value:.3f}" if value >= 0.001 else "below 0.001"


NumberForm: TypeAlias = TextForm | Number
"""Format of the values of a column; ``numeric`` formats align to the right."""

WORDS: Final = TextForm()
ALIGNED: Final = TextForm(numeric=True)
"""Format of texts with numbers, such as "3 of 4", which align to the right."""
COUNT: Final = Count(1)
POINTS: Final = Number(0)
SIGNED: Final = Number(0, signed=True)
SIGNED_2: Final = Number(2, signed=True)
FIGURE: Final = Number(2)
PERCENT: Final = Percent()
MONEY: Final = Money(4)
ROUGH_MONEY: Final = RoughMoney()
SECONDS: Final = Seconds(2)
DURATION: Final = Duration(0)
P_VALUE: Final = PValue(3)


def deserved(form: NumberForm, ends: Iterable[tuple[float | None, float | None]]) -> NumberForm:
    """The number format with as many decimals as the intervals justify; only ``Number`` and ``Percent`` change.

    The decimals show one significant digit of half the median width, or two if the first digit is 1. A number with two
    or more decimals keeps at least two, so that an end near 0 does not read as 0.
    """
    if not isinstance(form, Number) or type(form) not in (Number, Percent):
        return form
    widths = sorted(abs(high - low) for low, high in ends if low is not None and high is not None)
    half = form.factor * widths[len(widths) // 2] / 2 if widths else 0.0
    if not 10**-_MOST_DECIMALS / 2 < half < math.inf:
        return form
    fewest = 0 if isinstance(form, Percent) else min(form.decimals, 2)
    decimals = min(max(math.ceil(-math.log10(half / 2)), fewest), _MOST_DECIMALS)
    return Percent(decimals) if isinstance(form, Percent) else replace(form, decimals=decimals)


def with_interval(estimate: Estimate, form: NumberForm = FIGURE) -> str:
    """A single figure as text, with its interval in brackets if it has one; the interval sets the decimals."""
    return bracketed(estimate, deserved(form, [(estimate.low, estimate.high)]))


def bracketed(estimate: Estimate, form: NumberForm) -> str:
    """A figure as text with the decimals of ``form``, followed by its interval in brackets if it has one."""
    if estimate.low is None or estimate.high is None:
        return form.write(estimate.value)
    return f"{form.write(estimate.value)} ({form.between(estimate.low, estimate.high)})"


def counted(count: float, singular: str, plural: str = "") -> str:
    """A count with its noun, as in "1 game" and "3 games"; the default plural adds an s."""
    return f"{COUNT.write(count)} {singular if count == 1 else plural or f'{singular}s'}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def listed(words: Sequence[str], most: int | None = None) -> str:
    """Join words as in a sentence: "a, b and c"; if there are more than ``most`` words, "a, b and 3 more"."""
    if most is not None and len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def between_days(first: float, last: float) -> str:
    """The days (UTC) from one time to another, in seconds since 1970: ``26 to 27 November 2026``."""
    start, end = (datetime.fromtimestamp(at, UTC) for at in (first, last))
    parts = [(f"{each.day}", month_name[each.month], f"{each.year}") for each in (start, end)]
    if parts[0] == parts[1]:
        return " ".join(parts[1])
    same = 2 if parts[0][1:] == parts[1][1:] else 1 if parts[0][2] == parts[1][2] else 0
    return f"{' '.join(parts[0][: 3 - same])} to {' '.join(parts[1])}"


def _unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _decimals(value: float, fewest: int) -> int:
    return max(fewest, 1 - math.floor(math.log10(value))) if 0 < value < math.inf else fewest


def printable(text: str) -> str:
    """The text on one line, with line breaks, control and other unprintable characters as escapes.

    Joiners stay where they belong to a visible character: in emoji of several parts, and in scripts that need them.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or _joins(text, at) else repr(character)[1:-1]
        for at, character in enumerate(text)
    )


_JOINERS: Final = "\u200c\u200d"
_SKIN_TONES: Final = ("\U0001f3fb", "\U0001f3ff")
_FLAG_LETTERS: Final = ("\U0001f1e6", "\U0001f1ff")


def _joins(text: str, at: int) -> bool:
    """Whether the character is a joiner that its neighbours need (UTS 51; RFC 5892, A.1 and A.2)."""
    if text[at] not in _JOINERS or not 0 < at < len(text) - 1:
        return False
    before, after = text[at - 1], text[at + 1]
    if text[at] == "\u200d" and unicodedata.category(after) == "So":
        return before == "\ufe0f" or unicodedata.category(before) in ("So", "Sk")
    if unicodedata.combining(before) == _VIRAMA:
        return True
    return text[at] == "\u200c" and unicodedata.bidirectional(before) == unicodedata.bidirectional(after) == "AL"


_VIRAMA: Final = 9


def _continues(text: str, at: int) -> bool:
    """Whether the character belongs to the visible character (grapheme cluster) before it."""
    character, low, high = text[at], *_FLAG_LETTERS
    if low <= character <= high:
        begin = at
        while begin and low <= text[begin - 1] <= high:
            begin -= 1
        return (at - begin) % 2 == 1  # flags are pairs of letters
    is_part = unicodedata.category(character) in ("Mn", "Me", "Mc") or _SKIN_TONES[0] <= character <= _SKIN_TONES[1]
    return is_part or character in _JOINERS or text[at - 1] == "\u200d"


def start_of(text: str, most: int) -> str:
    """The first ``most`` characters, or fewer, so that no visible character, such as a joined emoji, is broken."""
    while 0 < most < len(text) and _continues(text, most):
        most -= 1
    return text[:most]


def encodable(text: str) -> str:
    """The text with lone surrogates replaced: JSON may contain them, but UTF-8 cannot encode them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def told_apart(names: Sequence[str], limit: int) -> list[str]:
    """Shorten names to ``limit`` characters, or to the smallest length at which different names stay different."""
    for most in range(limit, max(map(len, names), default=0)):
        for tail in (0, most // 2):
            shortened = {name: name if len(name) <= most else _shortened(name, most, tail) for name in names}
            if len(set(shortened.values())) == len(shortened):
                return [shortened[name] for name in names]
    return list(names)


def _shortened(name: str, most: int, tail: int) -> str:
    while 0 < tail < len(name) and _continues(name, len(name) - tail):
        tail -= 1
    return f"{start_of(name, most - 1 - tail)}…{name[len(name) - tail :]}"


def clipped(text: str, limit: int) -> str:
    """The text on one line, cut to ``limit`` characters."""
    line = " ".join(text[: 4 * limit].split())
    return encodable(line if len(line) <= limit else start_of(line, limit - 1) + "…")
