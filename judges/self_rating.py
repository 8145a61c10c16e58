"""Reads ratings from 0 to 5 from a model's free text, and recognizes "unanswerable".

Small models grade a passage against a question or nugget in this way, without JSON (EXAM++ paper, sections 4.2.1 and
4.2.2; Rubric-Grading Workbench paper, table 2).
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from operator import eq
from typing import Literal, TypeAlias

from judges.errors import ReplyError

Compat: TypeAlias = Literal["workbench"]

HIGHEST_RATING = 5

UNANSWERABLE = (
    "unanswerable",
    "no",
    "no answer",
    "not enough information",
    "unknown",
    "it is not possible to tell",
    "it does not say",
    "no relevant information",
)
"""Replies that mean "no answer" (EXAM++ paper, section 4.2.1)."""

FUZZY_RATIO = 80
"""Two normalised strings count as equal if their similarity, in rounded per cent, is above this, as in the
workbench."""

NAMED = r"(?:[\s*_#]*(?:final\s+)?(?:answer|rating|grade|score|label)[*_]*[ \t]*:)?"
"""A name in front of a value, such as ``Answer:``, which models often repeat from the prompt's end."""
_WHOLE_RATING = re.compile(NAMED + r"[\s\"'`*(\[]*([0-5])[\s\"'`*)\].]*", re.IGNORECASE)
_LEVEL = re.compile(r"^[ \t]*(?:[-*][ \t]*)?([0-5]):[ \t]*(\S.*)$", re.MULTILINE)
_WITH_WORDS = re.compile(
    r"[\s*_]*([0-5])[*_]*(?:[ \t]*[:=][*_]*|[ \t]+[-\u2013\u2014][ \t]|[ \t]*\n)\s*(\S.*)", re.DOTALL
)
_NUMBER_OR_WORD = re.compile(r"\d|\b(?:zero|two|three|four|five)\b", re.IGNORECASE)  # one is also a pronoun
_DISTINCTIVE_WORDS = 3
"""A reply contradicts its rating if its first words, at least this many, are those of another rating's description."""
_NUMBER = re.compile(r"(?<!\w)\d{1,2}(?!\w)")
_LETTER = re.compile(r"[^\W\d_]")
_MARK = re.compile(r"[(\[]?(?:[a-d]|i{1,3}|iv)[)\].]?", re.IGNORECASE)
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LETTERS = ("A", "B", "C", "D", "a", "b", "c", "d", "i", "ii", "iii", "iv")
_ONE_DIGIT = re.compile(r"[^\w]*([0-9])[^\w]*")


def levels_of(prompt: str) -> dict[int, str]:
    """The description of each rating, read from a prompt's lines such as ``- 4: almost all of it``."""
    return {int(number): meaning for number, meaning in _LEVEL.findall(prompt)}


def self_rating(reply: str, *, levels: Mapping[int, str] | None = None, compat: Compat | None = None) -> int:
    """The grade, 0 to 5, of a reply to a self-rating prompt.

    A reply that is one whole number on the scale, or ``Rating: 4``, has that grade. Words may follow (``4: The answer
    is mostly complete``) if they contain no number and do not begin like another grade's meaning. A reply without a
    number is graded 0 if it means "unanswerable" or is ill-formed, and otherwise 1: the model answered instead of
    rating (EXAM++ paper, section 4.2.2). Any other number of one or two digits (``score = 10``, ``-1``, ``4 out of 5``)
    is an error, since it may be meant as a rating; longer numbers (``the 1930s``) are part of an answer.

    ``levels`` are the meanings of the grades, as the prompt explains them. ``compat="workbench"`` behaves like the code
    of the Rubric-Grading Workbench: a single digit without letters is the rating, so ``-1`` is 1; a reply without such
    a digit, or with 6 to 9, is graded 0 if it answers, and 1 if it is empty or means "unanswerable", the opposite of
    the paper.

    Raises:
        ReplyError: the reply is empty or contains a number that may be meant as a rating. Never with ``compat``.
    """
    if compat == "workbench":
        return _workbench_rating(reply)
    if rating := _WHOLE_RATING.fullmatch(reply):
        return int(rating[1])
    if (worded := _WITH_WORDS.fullmatch(reply)) and _agrees(int(worded[1]), worded[2], levels or {}):
        return int(worded[1])
    if not reply.strip():
        raise ReplyError("the reply is empty; reply with one whole number from 0 to 5")
    if _NUMBER.search(reply) or not (_LETTER.search(reply) or is_ill_formed(reply)):
        raise ReplyError("reply with one whole number from 0 to 5 and nothing else")
    return int(is_answer(reply))


def _agrees(rating: int, words: str, levels: Mapping[int, str]) -> bool:
    """Whether the words after a rating contain no number, and do not begin like the description of another rating."""
    if _NUMBER_OR_WORD.search(words) or not _LETTER.search(words):
        return False
    begins = {level: takewhile(bool, map(eq, _words(words), _words(meaning))) for level, meaning in levels.items()}
    in_common = {level: sum(equal) for level, equal in begins.items()}
    most = max(in_common.values(), default=0)
    return most < _DISTINCTIVE_WORDS or in_common.get(rating, 0) == most


def _words(text: str) -> list[str]:
    return text.casefold().translate(_PUNCTUATION).split()


def is_answer(reply: str) -> bool:
    """Whether an extracted text is an answer: not empty, not ill-formed, and not "unanswerable"."""
    return bool(reply.strip()) and not is_unanswerable(reply) and not is_ill_formed(reply)


def is_unanswerable(reply: str) -> bool:
    """Whether a reply is one of ``UNANSWERABLE``, ignoring case, punctuation and spacing."""
    return " ".join(_words(reply)) in UNANSWERABLE


def is_ill_formed(reply: str) -> bool:
    """Whether a reply is nothing but the mark of a list entry or choice, such as ``a.`` or ``(iii)``."""
    return _MARK.fullmatch(reply.strip()) is not None


def similar(first: str, second: str) -> bool:
    """The workbench's similarity of two texts, in per cent: twice the common subsequence over the total length."""
    from rapidfuzz import fuzz

    ratio: float = fuzz.ratio(first, second)
    return round(ratio) > FUZZY_RATIO


def _workbench_rating(reply: str) -> int:
    digit = _ONE_DIGIT.fullmatch(reply)
    if digit and int(digit[1]) <= HIGHEST_RATING:
        return int(digit[1])
    normal = _stemmed_whole(reply)
    answers = bool(normal) and not any(similar(normal, expression) for expression in _workbench_expressions())
    return 0 if answers else 1


@cache
def _workbench_expressions() -> frozenset[str]:
    forms = ("{})", "({})", "[{}]", "{}.", "{}")
    marks = (form.format(letter) for letter in _LETTERS for form in forms)
    return frozenset(_stemmed_whole(text) for text in (*marks, *UNANSWERABLE))


def _stemmed_whole(text: str) -> str:
    """The text in lower case, stemmed as if it were one word, as in the workbench; only its last word can change."""
    import Stemmer

    stemmed: str = Stemmer.Stemmer("porter").stemWord(text.lower())
    return stemmed
