"""Is an extracted answer right? Checked against the gold answers by words (000, 4.2.1), without a model."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from functools import cache

from judges.self_rating import Compat, is_answer, similar
from retrieval_eval.exam.items import FALSE_WORDS, TRUE_WORDS, Item

MOST_EDITS = 0.2
"""Of the longer string's characters; as many are too many."""

_CONTRACTED_NOT = re.compile("n['\u2019]t\\b")
_NEGATIONS = frozenset({"no", "nor", "not"})
_SPACES = str.maketrans(string.punctuation, " " * len(string.punctuation))
_NOTHING = str.maketrans("", "", string.punctuation)


def checked_grade(answer: str, item: Item, *, compat: Compat | None = None) -> int:
    """Grade 1 if the answer is right, 0 if it is wrong, ill-formed, or says that there is none.

    A true/false item accepts true, yes, correct and false, no, incorrect, wrong, alone. Multiple choice accepts the
    letter of a right choice, bare or as ``(b)``, or its text; the text of another choice is wrong however close.

    Args:
        answer: as the grader extracted it from a passage.
        item: with at least one gold answer.
        compat: ``workbench`` compares by ``same_words(compat="workbench")``.

    Raises:
        ValueError: the item has no gold answer; there is nothing to check against.
    """
    if not item.answers:
        raise ValueError(f"item {item.item_id!r} has no gold answer to check against")
    if item.kind == "true_false":
        word = _plain(answer)
        return int(word in (TRUE_WORDS if "true" in item.answers else FALSE_WORDS))
    if item.kind == "multiple_choice":
        return int(_chosen(answer, item, compat))
    return int(is_answer(answer) and any(same_words(answer, gold, compat=compat) for gold in item.answers))


def same_words(answer: str, gold: str, *, compat: Compat | None = None) -> bool:
    """Whether two answers are the same but for case, punctuation, stopwords, endings and a few typing errors.

    Both are lowered, freed of punctuation and English stopwords, and stemmed (Porter 1980). They match if they are
    equal or if their edit distance is less than 20 % of the longer one's characters. Negations are not stopwords here,
    since "rise" does not confirm "does not rise". What consists of stopwords alone must be equal word by word.

    Args:
        answer: the answer found.
        gold: the right one.
        compat: ``workbench`` drops negations too, and takes four characters or more with a ratio over 80 for a match.
    """
    normal, right = normalised(answer, compat=compat), normalised(gold, compat=compat)
    if not normal or not right:
        return _plain(answer) == _plain(gold) != ""
    if normal == right:
        return True
    if compat == "workbench":
        return len(normal) >= 4 and similar(normal, right)
    from rapidfuzz.distance import Levenshtein

    edits: int = Levenshtein.distance(normal, right)
    return edits < MOST_EDITS * max(len(normal), len(right))


def normalised(text: str, *, compat: Compat | None = None) -> str:
    """Stems of the words that count, with single spaces between them."""
    stem, stopwords = _english()
    ignored = stopwords if compat == "workbench" else stopwords - _NEGATIONS
    if compat == "workbench":
        words = text.lower().translate(_NOTHING).split()
    else:
        words = _CONTRACTED_NOT.sub(" not", text.lower()).translate(_SPACES).split()
    return " ".join(stem([word for word in words if word not in ignored]))


def _chosen(answer: str, item: Item, compat: Compat | None) -> bool:
    letter = answer.strip().strip("()[].").casefold()
    for key in item.choices:
        if key.casefold() == letter:
            return key in item.answers
    named = [key for key, text in item.choices.items() if _plain(text) == _plain(answer)]
    if named:
        return any(key in item.answers for key in named)
    return is_answer(answer) and any(same_words(answer, item.choices[key], compat=compat) for key in item.answers)


def _plain(text: str) -> str:
    return " ".join(text.lower().translate(_SPACES).split())


@cache
def _english() -> tuple[Callable[[list[str]], list[str]], frozenset[str]]:
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return Stemmer.Stemmer("porter").stemWords, frozenset(STOPWORDS_EN_PLUS)
