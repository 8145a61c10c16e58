"""Grades of passages against items: as records, as a grid a query, and by words without a model.

An ungraded pair is never a grade.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from judges.errors import InputError
from judges.self_rating import Compat, is_answer, similar
from retrieval_eval.exam.items import FALSE_WORDS, TRUE_WORDS, Bank, Item
from retrieval_eval.scores.metrics import Labels

UNGRADED = -1
"""In a grid: nobody graded this passage against this item."""

HIGHEST_GRADE = 100


Rankings: TypeAlias = Mapping[tuple[str, str], tuple[str, ...]]
"""For (query_id, agent) the passages of the response in their order, as ids."""


class Grader(NamedTuple):
    """Who graded: a model and the name of its prompt; either may be empty where a file does not say."""

    llm: str = ""
    prompt: str = ""

    def __str__(self) -> str:
        return " with ".join(part for part in (self.llm or "a grader without a name", self.prompt) if part)


class Grade(NamedTuple):
    """How well a passage answers a question or covers a nugget, 0 (not at all) to 5; checked answers 0 or 1.

    ``grade`` is ``None`` where it was asked for and is missing, or where only an answer was extracted.
    """

    query_id: str
    passage_id: str
    item_id: str
    grade: int | None
    answer: str = ""


class Graded(Struct, frozen=True):
    """All that a file of grades says.

    Attributes:
        grades: by grader, in the order of the file; each (query, passage, item) once per grader.
        rated: the graders that rate on a scale, and do not only check or extract an answer.
        passages: texts by query_id and passage_id, empty where the file has none.
        rankings: which passages make up which agent's response.
        labels: relevance by people.
        direct: relevance labels that a model gave without items, by grader.
        nuggets: ids of the items that are known to be nuggets and not questions.
    """

    grades: Mapping[Grader, Sequence[Grade]]
    rated: frozenset[Grader] = frozenset()
    passages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rankings: Rankings = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    direct: Mapping[Grader, Labels] = field(default_factory=dict)
    nuggets: frozenset[str] = frozenset()

    def chosen(self, llm: str | None = None, prompt: str | None = None) -> Grader:
        """The one grader that fits; where several do, the only one of them that rates on a scale.

        Raises:
            InputError: none fits, or several do.
        """
        fitting = [own for own in self.grades if (llm or own.llm) == own.llm and (prompt or own.prompt) == own.prompt]
        rating = [own for own in fitting if own in self.rated]
        if len(fitting) == 1 or len(rating) == 1:
            return (rating or fitting)[0]
        named = "; ".join(f"--llm {own.llm!r} --prompt {own.prompt!r}" for own in self.labelling(llm, prompt))
        if not fitting and named:
            raise InputError(f"relevance labels without items go with 'exam labels' and 'exam agreement': {named}")
        if not self.grades:
            raise InputError("there are no grades to choose from; has this file been graded?")
        there = "; ".join(f"--llm {own.llm!r} --prompt {own.prompt!r}" for own in fitting or self.grades)
        which = "several graders graded this; name one" if fitting else "no grader fits; there are"
        raise InputError(f"{which}: {there}")

    def labelling(self, llm: str | None = None, prompt: str | None = None) -> list[Grader]:
        """Those who labelled passages without items and fit."""
        return [own for own in self.direct if (llm or own.llm) == own.llm and (prompt or own.prompt) == own.prompt]

    def without(self, item_ids: Collection[str]) -> tuple[Graded, int]:
        """The same without the grades of some items, and how many these are."""
        left = {
            grader: [entry for entry in entries if entry.item_id not in item_ids]
            for grader, entries in self.grades.items()
        }
        return replace(self, grades=left), sum(map(len, self.grades.values())) - sum(map(len, left.values()))

    def answers(self, grader: Grader) -> dict[tuple[str, str, str], str]:
        """Extracted answers by query, passage and item: the grader's own; where it gave none, those of the others."""
        found: dict[tuple[str, str, str], str] = {}
        for own in (grader, *(other for other in self.grades if other != grader)):
            rates = own in self.rated  # its reply is the rating, or a text in place of one
            for entry in self.grades[own]:
                if entry.answer and not (rates and entry.answer.strip().isdigit()):
                    key = (entry.query_id, entry.passage_id, entry.item_id)
                    found[key] = entry.answer if own == grader and not rates else found.get(key, entry.answer)
        return found


class Grid(Struct, frozen=True, dict=True):
    """One query's grades.

    Attributes:
        query_id: the query.
        passages: ids, the rows.
        items: ids, the columns.
        grades: shape (passages, items); ``UNGRADED`` where there is none.
        weights: of the items, shape (items,).
        asked: passages for which grades were asked, shape (passages,). Where such a passage has none for an item, the
            grade is missing. Others only stand in a ranking; they cover nothing, as unjudged documents do.
    """

    query_id: str
    passages: tuple[str, ...]
    items: tuple[str, ...]
    grades: NDArray[np.int8]
    weights: NDArray[np.float64]
    asked: NDArray[np.bool_]

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Grades that were asked for and are not there, shape (passages, items)."""
        return np.asarray((self.grades == UNGRADED) & self.asked[:, np.newaxis], np.bool_)

    @property
    def ungraded(self) -> int:
        """Pairs without a grade."""
        return int((self.grades == UNGRADED).sum())

    def rows(self, passages: Iterable[str]) -> NDArray[np.intp]:
        """Places of some of the passages.

        Raises:
            KeyError: a passage is not of this grid.
        """
        return np.array([self._places[passage] for passage in passages], np.intp)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {passage: at for at, passage in enumerate(self.passages)}


class Grids(Struct, frozen=True):
    """Grids of a topic set.

    Attributes:
        grids: by query_id; every query of the topic set, also one without items or passages.
        unknown: grades that were left out since the bank has no such item, or has retired it.
    """

    grids: Mapping[str, Grid]
    unknown: int = 0

    @property
    def pairs(self) -> int:
        """Pairs of passage and item there are."""
        return sum(grid.grades.size for grid in self.grids.values())

    @property
    def ungraded(self) -> int:
        """Pairs without a grade."""
        return sum(grid.ungraded for grid in self.grids.values())


def make_grids(grades: Iterable[Grade], bank: Bank | None = None, rankings: Rankings | None = None) -> Grids:
    """Sort grades into a grid for each query.

    Rows are all passages among the grades, also missing ones, or in a ranking; columns the active items of the bank, in
    its order, or without a bank the items that have a grade, which is what the workbench counts.

    Raises:
        ValueError: one passage has two grades for one item.
    """
    given: dict[str, list[Grade]] = {}
    for entry in grades:
        given.setdefault(entry.query_id, []).append(entry)
    ranked: dict[str, dict[str, None]] = {}
    for (query_id, _), passages in (rankings or {}).items():
        ranked.setdefault(query_id, {}).update(dict.fromkeys(passages))
    topics = bank.query_ids if bank is not None else tuple(dict.fromkeys([*given, *ranked]))
    strange = given.keys() - set(topics)
    unknown = sum(entry.grade is not None for query_id in strange for entry in given[query_id])
    found: dict[str, Grid] = {}
    for query_id in topics:
        own = given.get(query_id, [])
        if bank is None:
            items = dict.fromkeys((entry.item_id for entry in own if entry.grade is not None), 1.0)
        else:
            items = {item.item_id: item.weight for item in bank.active[query_id]}
        known = [entry for entry in own if entry.item_id in items]
        unknown += sum(entry.grade is not None for entry in own if entry.item_id not in items)
        rows = dict.fromkeys([*(entry.passage_id for entry in own), *ranked.get(query_id, ())])
        found[query_id] = _grid(query_id, tuple(rows), items, known)
    return Grids(found, unknown)


def _grid(query_id: str, passages: tuple[str, ...], items: Mapping[str, float], entries: Sequence[Grade]) -> Grid:
    row = {passage: at for at, passage in enumerate(passages)}
    column = {item: at for at, item in enumerate(items)}
    table = np.full((len(row), len(column)), UNGRADED, np.int8)
    asked = np.zeros(len(row), np.bool_)
    for entry in entries:
        asked[row[entry.passage_id]] = True
        if entry.grade is None:
            continue
        place = row[entry.passage_id], column[entry.item_id]
        if table[place] not in (UNGRADED, entry.grade):
            raise ValueError(f"{entry.passage_id!r} has two grades for {entry.item_id!r}")
        table[place] = entry.grade
    return Grid(query_id, passages, tuple(items), table, np.array(list(items.values()), np.float64), asked)


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
