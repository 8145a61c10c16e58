"""What words and numbers in the cells of a table of verdicts mean: which agent won, or a tie."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from judges.errors import InputError
from judges.types import Verdict
from retrieval_eval.data.table_spec import TableSpec, folded, spellings

VERDICTS: Final = TableSpec(
    (
        *("qid", "agent_a", "agent_b", "verdict", "winner_ab", "winner_ba", "judge", "order", "reason"),
        *("p_a", "p_b", "p_tie", "weight"),
    ),
    ("agent_a", "agent_b"),
    {
        # A query's text identifies it better than a column 'id', which may only number the rows.
        "qid": (*(name for name in spellings("qid") if "_" in name[1:]), "prompt", "iid"),
        "agent_a": (*spellings("agent_a"), "baseline"),
        "agent_b": (*spellings("agent_b"), "model"),
        "verdict": (*spellings("verdict"), "answer"),  # RAGElo writes 'answer'
    },
    option=True,
    named_by={"verdict": "judge"},
)
"""Columns of a table of verdicts. Verdicts are in one column, in two (``BOTH_ORDERS``), or given as probabilities."""
BOTH_ORDERS: Final = ("winner_ab", "winner_ba")
"""Columns of a table with two verdicts per row: one with agent_a shown first, one with agent_b shown first."""
_LETTERS: Final = {"a": Verdict.A, "b": Verdict.B, "1": Verdict.A, "2": Verdict.B}
_COLUMN_WORDS: Final = {
    folded(name): verdict
    for column, verdict in (("agent_a", Verdict.A), ("agent_b", Verdict.B))
    for name in (column, *VERDICTS.spellings(column))
    if name.endswith(("_a", "_b", "_1", "_2"))
}
"""The verdict for a cell that names the winner by the name of the agent's column, such as ``model_a``."""
_PLACE_WORDS: Final = {
    **dict.fromkeys(("left", "leftvote", "first"), Verdict.A),
    **dict.fromkeys(("right", "rightvote", "second"), Verdict.B),
}
_BOTH: Final = re.compile(r"(?:tie)?(?:both(?:are)?(bad|poor|wrong|good|great|correct)|neither|none)(?:vote)?")
"""Matches a tie that also rates both answers; in lower case, without spaces, brackets and other signs."""
_STRENGTH: Final = re.compile(r"\[*\s*([ab])\s*(>>?|<<?|=)\s*([ab])\s*\]*")
"""Matches the verdicts of Arena-Hard, such as ``A>>B`` and ``[[A=B]]``; in lower case."""
_TIES: Final = {"tie", "tievote", "draw", "c", "n", "tie (inconsistent)", "inconsistent"}
_RANGE: Final = re.compile(r"(-?[0-9.]+)\.\.(-?[0-9.]+)")
_OPTION: Final = "--value"


class Coding(Struct, frozen=True):
    """The user's meanings of the cells in a column of verdicts (option ``--value``).

    Attributes:
        words: verdict by word, in lower case.
        numbers: ranges of numbers with their verdicts: (lowest, highest, verdict).
    """

    words: Mapping[str, str] = {}
    numbers: Sequence[tuple[float, float, str]] = ()

    @staticmethod
    def of(meanings: Mapping[str, str]) -> Coding:
        """Build a coding from verdicts by word, number or range of numbers (``-3..-1``)."""
        words, numbers = {}, []
        for word, meaning in meanings.items():
            ends = match.groups() if (match := _RANGE.fullmatch(word.strip())) is not None else (word, word)
            low, high = map(number_in, ends)
            if match is not None and not low <= high:
                raise InputError(f"{_OPTION} {word}={meaning}: write a range as LOW..HIGH, such as -3..-1")
            if math.isnan(low):
                words[word.strip().casefold()] = meaning
            else:
                numbers.append((low, high, meaning))
        return Coding(words, tuple(numbers))

    def read(self, text: str) -> str:
        """The verdict that the user gave to a cell's text; the text itself if there is none."""
        number = number_in(text)
        meaning = next((meaning for low, high, meaning in self.numbers if low <= number <= high), None)
        return self.words.get(text.casefold(), text) if meaning is None else meaning

    def lacks(self, text: str) -> bool:
        """Whether a cell is a number to which the user gave no verdict, though other numbers have one."""
        number = number_in(text)
        if not self.numbers or math.isnan(number) or self.read(text) != text:
            return False
        return not (1 <= number <= 2 and self.read("0") == "TIE")  # AlpacaEval writes 1, 2, and 0 for a tie


def meanings(entries: Iterable[str]) -> dict[str, str]:
    """Parse the values ``WORD=VERDICT`` of the option ``--value``; an empty VERDICT means that WORD is no verdict."""
    by_word: dict[str, str] = {}
    for entry in entries:
        word, separator, meaning = entry.rpartition("=")
        if not (word.strip() and separator):
            raise InputError(f"{_OPTION}: write WORD=VERDICT, as in 'A ist besser'=A, not {entry!r}")
        if by_word.setdefault(word, meaning.strip()) != meaning.strip():
            raise InputError(f"{_OPTION}: {word!r} is mapped to {by_word[word]!r} and to {meaning.strip()!r}; keep one")
    return by_word


def number_in(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def both(text: str) -> str | None:
    """``both_bad`` or ``both_good`` if a cell's text is a tie that rates both answers, else ``None``."""
    match = _BOTH.fullmatch(re.sub(r"[\s_()/.,:-]", "", text.casefold()))
    if match is None:
        return None
    return "both_good" if match[1] in {"good", "great", "correct"} else "both_bad"


def is_strong(text: str) -> bool:
    """Whether a verdict says that an answer is much better, as ``A>>B`` does."""
    match = _STRENGTH.fullmatch(text.casefold())
    return match is not None and len(match[2]) == 2


def side_of(text: str, column: str, *, swapped: bool) -> Verdict | None:
    """The verdict that a word in a cell means: A for the column agent_a, B for agent_b; ``None`` if it is no verdict.

    Args:
        text: text of the cell.
        column: name of the cell's column.
        swapped: whether agent_b was shown first; it matters for words such as ``first``.
    """
    if column == "preference" and (preferred := _preferred(text)) is not None:
        return preferred
    word = text.casefold()
    if (number := number_in(word)) in {1, 2}:  # pandas writes 1 as 1.0 in a column with gaps
        word = f"{number:.0f}"
    if (strength := _STRENGTH.fullmatch(word)) is not None:
        first, sign, second = strength.groups()
        word = "tie" if sign == "=" or first == second else first if sign[0] == ">" else second
    if word in _TIES or both(word) is not None:
        return Verdict.TIE
    side = _PLACE_WORDS.get(word) or _LETTERS.get(word) or _COLUMN_WORDS.get(folded(word))
    is_place = word in _PLACE_WORDS or (word in _LETTERS and column in BOTH_ORDERS)
    return side.swapped() if side is not None and is_place and swapped else side


def _preferred(text: str) -> Verdict | None:
    preference = number_in(text)
    if preference == 1.5:
        return Verdict.TIE
    if not 1 <= preference <= 2:
        return None
    return Verdict.A if preference < 1.5 else Verdict.B


def are_numbers(texts: Iterable[str]) -> bool:
    return not any(math.isnan(number_in(text)) for text in texts)


def problem_of(column: str, others: Collection[str]) -> str:
    """Error message for a cell that is no verdict; suggests ``--value`` options for the column's values ``others``."""
    numbers = sorted({number_in(each) for each in others}) if are_numbers(others) else []
    if 0 in numbers or len(numbers) > 1:
        which = "0 means" if 0 in numbers else "numbers mean"
        ends = f"{numbers[0]:g} to {numbers[-1]:g}"
        shown = ", ".join(f"{each:g}" for each in numbers) if len(numbers) <= 4 else ends
        how = f"say it, as in {_coded(column, numbers)}"
        return f"{column!r} holds {shown}; what {which} differs from study to study: {how}"
    words = {each.casefold() for each in others}
    how = f"{_OPTION} True=A {_OPTION} False=B" if words <= {"true", "false"} else f"{_OPTION} WORD=A"
    return f"{column!r} must be A, B, TIE, or the name of one of the two agents; or say what it means: {how}"


def _coded(column: str, numbers: Sequence[float]) -> str:
    """Suggest command-line options that give the most plausible verdicts to these numbers."""
    low, high = numbers[0], numbers[-1]
    if low >= 0 and high <= 1 and any(0 < each < 1 for each in numbers):
        return f"--column p_a={column} --set preferences=soft, if they are the chance that agent_a is better"
    if low == 0 and any(1 < each < 2 for each in numbers):
        coding = [("0", "TIE")]
    elif low == 0 and high <= 2:
        coding = [("0", "A"), ("1", "B"), *([("2", "TIE")] if high > 1 else [])]
    elif low < 0:
        coding = [(_range(low, -1 if low <= -1 else low), "A"), ("0", "TIE"), (_range(min(1, high), high), "B")]
    else:
        middle = (low + high) / 2
        below, above = math.ceil(middle) - 1, math.floor(middle) + 1
        tie = [(f"{middle:g}", "TIE")] if middle == int(middle) else []
        coding = [(_range(low, below), "A"), *tie, (_range(above, high), "B")]
    return " ".join(f"{_OPTION} {number}={verdict}" for number, verdict in coding)


def _range(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"
