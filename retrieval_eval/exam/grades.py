"""Passages of responses and documents (000, 4.2; 001, section 6) and their grades by item.

An ungraded pair never counts as a grade of 0.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from judges.errors import InputError
from judges.self_rating import Compat, is_answer, similar
from judges.types import Answer, Document
from judges.writing import cut, word_spans
from retrieval_eval.exam.items import FALSE_WORDS, TRUE_WORDS, Bank, Item
from retrieval_eval.scores.metrics import Labels

UNGRADED = -1
"""Value in a ``Grid`` if a passage has no grade for an item."""

HIGHEST_GRADE = 100


Rankings: TypeAlias = Mapping[tuple[str, str], tuple[str, ...]]
"""Passage ids of each agent's response to a query, in the response's order, by (query_id, agent)."""


class Grader(NamedTuple):
    """A grading model and the name of its prompt; either is empty if the file of grades does not name it."""

    llm: str = ""
    prompt: str = ""

    def __str__(self) -> str:
        return " with ".join(part for part in (self.llm or "a grader without a name", self.prompt) if part)


class Grade(NamedTuple):
    """How well a passage answers a question or covers a nugget: 0 (not at all) to 5.

    If a program checks extracted answers against gold answers, grades are 0 (wrong) and 1 (right). ``grade`` is
    ``None`` if it is missing, or if the grader only extracted an answer.
    """

    query_id: str
    passage_id: str
    item_id: str
    grade: int | None
    answer: str = ""


class Graded(Struct, frozen=True):
    """The grades of passages in a file, with the passages' texts, rankings and labels.

    Attributes:
        grades: grades by grader, in the order of the file; each (query, passage, item) at most once per grader.
        rated: graders that rate passages on a scale; all other graders check or extract answers.
        passages: texts of the passages by query_id and passage_id; empty if the file has none.
        labels: human relevance labels by query_id and passage_id.
        direct: relevance labels that models gave to whole passages instead of grades for items, by grader.
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
        """The grader with this model and prompt; if several match, the one that rates on a scale.

        Raises:
            InputError: no grader matches, or the choice is ambiguous.
        """
        fitting = _fitting(self.grades, llm, prompt)
        rating = [grader for grader in fitting if grader in self.rated]
        if len(fitting) == 1 or len(rating) == 1:
            return (rating or fitting)[0]
        named = _options(self.labelling(llm, prompt))
        if not fitting and named:
            raise InputError(
                "this grader labelled passages and graded no items; use 'ragleague exam labels' or "
                f"'ragleague exam agreement': {named}"
            )
        if not self.grades:
            raise InputError("the file has no grades; 'ragleague make grades' has a judge grade its passages")
        which = "several graders match; choose one" if fitting else "no grader has this model and prompt; choose one"
        raise InputError(f"{which}: {_options(fitting or self.grades)}")

    def labelling(self, llm: str | None = None, prompt: str | None = None) -> list[Grader]:
        """Graders with this model and prompt that gave relevance labels to whole passages."""
        return _fitting(self.direct, llm, prompt)

    def without(self, item_ids: Collection[str]) -> tuple[Graded, int]:
        """A copy without the grades for these items, and the number of grades removed."""
        remaining = {
            grader: [entry for entry in entries if entry.item_id not in item_ids]
            for grader, entries in self.grades.items()
        }
        return replace(self, grades=remaining), sum(map(len, self.grades.values())) - sum(map(len, remaining.values()))

    def answers(self, grader: Grader) -> dict[tuple[str, str, str], str]:
        """Answers found in passages, by query, passage and item: this grader's, or else another grader's."""
        answers: dict[tuple[str, str, str], str] = {}
        for source in (grader, *(other for other in self.grades if other != grader)):
            rates = source in self.rated  # its answer is the rating, or a text without one
            for entry in self.grades[source]:
                if entry.answer and not (rates and entry.answer.strip().isdigit()):
                    key = (entry.query_id, entry.passage_id, entry.item_id)
                    answers[key] = entry.answer if source == grader and not rates else answers.get(key, entry.answer)
        return answers


def _fitting(graders: Iterable[Grader], llm: str | None, prompt: str | None) -> list[Grader]:
    return [grader for grader in graders if llm in (None, "", grader.llm) and prompt in (None, "", grader.prompt)]


def _options(graders: Iterable[Grader]) -> str:
    return "; ".join(f"--llm {grader.llm!r} --prompt {grader.prompt!r}" for grader in graders)


class Grid(Struct, frozen=True, dict=True):
    """One query's grades as a table of passages and items.

    Attributes:
        passages: passage ids, one per row.
        items: item ids, one per column.
        grades: shape (passages, items); ``UNGRADED`` without a grade.
        weights: weights of the items, shape (items,).
        asked: whether any grade of the passage was requested, shape (passages,). If so, its items without a grade are
            missing grades. All other passages only occur in a ranking; they cover nothing, like unjudged documents.
    """

    query_id: str
    passages: tuple[str, ...]
    items: tuple[str, ...]
    grades: NDArray[np.int8]
    weights: NDArray[np.float64]
    asked: NDArray[np.bool_]

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Whether a requested grade is missing, shape (passages, items)."""
        return np.asarray((self.grades == UNGRADED) & self.asked[:, np.newaxis], np.bool_)

    @property
    def ungraded(self) -> int:
        return int((self.grades == UNGRADED).sum())

    def rows(self, passages: Iterable[str]) -> NDArray[np.intp]:
        return np.array([self._places[passage] for passage in passages], np.intp)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {passage: at for at, passage in enumerate(self.passages)}


class Grids(Struct, frozen=True):
    """A ``Grid`` for each query of the topic set, even for a query without items or passages.

    ``unknown`` is the number of dropped grades whose item is retired or not in the bank.
    """

    grids: Mapping[str, Grid]
    unknown: int = 0

    @property
    def pairs(self) -> int:
        return sum(grid.grades.size for grid in self.grids.values())

    @property
    def ungraded(self) -> int:
        return sum(grid.ungraded for grid in self.grids.values())


def make_grids(grades: Iterable[Grade], bank: Bank | None = None, rankings: Rankings | None = None) -> Grids:
    """Arrange grades in one grid per query.

    Rows are all passages with a grade (even a missing one) or in a ranking. Columns are the bank's active items in
    the bank's order; without a bank, all items with a grade, as in the workbench.

    Raises:
        ValueError: a passage has two grades for one item.
    """
    query_grades: dict[str, list[Grade]] = {}
    for entry in grades:
        query_grades.setdefault(entry.query_id, []).append(entry)
    ranked: dict[str, dict[str, None]] = {}
    for (query_id, _), passages in (rankings or {}).items():
        ranked.setdefault(query_id, {}).update(dict.fromkeys(passages))
    topics = bank.query_ids if bank is not None else tuple(dict.fromkeys([*query_grades, *ranked]))
    off_topic = query_grades.keys() - set(topics)
    unknown = sum(entry.grade is not None for query_id in off_topic for entry in query_grades[query_id])
    grids: dict[str, Grid] = {}
    for query_id in topics:
        entries = query_grades.get(query_id, [])
        if bank is None:
            items = dict.fromkeys((entry.item_id for entry in entries if entry.grade is not None), 1.0)
        else:
            items = {item.item_id: item.weight for item in bank.active[query_id]}
        known = [entry for entry in entries if entry.item_id in items]
        unknown += sum(entry.grade is not None for entry in entries if entry.item_id not in items)
        rows = dict.fromkeys([*(entry.passage_id for entry in entries), *ranked.get(query_id, ())])
        grids[query_id] = _grid(query_id, tuple(rows), items, known)
    return Grids(grids, unknown)


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
"""Two answers match if their edit distance is below this share of the longer answer's length."""

_CONTRACTED_NOT = re.compile("n['\u2019]t\\b")
_NEGATIONS = frozenset({"no", "nor", "not"})
_SPACES = str.maketrans(string.punctuation, " " * len(string.punctuation))
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def checked_grade(answer: str, item: Item, *, compat: Compat | None = None) -> int:
    """Grade an answer by the item's gold answers: 1 if right, 0 if wrong, malformed, or "no answer".

    A true/false item accepts one of the words true, yes, correct, or false, no, incorrect, wrong. Multiple choice
    accepts the letter of a right choice, with or without brackets, or its text; the text of another choice is wrong
    even if it is similar. ``compat`` is explained in ``same_words``.

    Raises:
        ValueError: the item has no gold answer.
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
    """Whether two answers match, ignoring case, punctuation, stopwords, endings and a few typing errors.

    Both are converted to lower case, stripped of punctuation and English stopwords, and stemmed (Porter 1980). They
    match if they are equal or if their edit distance is below 20 % of the longer one's characters. Negations are not
    stopwords, because "rise" does not confirm "does not rise". Answers that have only stopwords must be equal word by
    word.

    With ``compat="workbench"``, negations are dropped too, and answers of at least four characters match if their
    similarity ratio is over 80.
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
    """The stems of the text's words without stopwords, joined by single spaces."""
    stem, stopwords = _english()
    ignored = stopwords if compat == "workbench" else stopwords - _NEGATIONS
    if compat == "workbench":
        words = text.lower().translate(_NO_PUNCTUATION).split()
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


MOST_WORDS = 400

_PIECE = re.compile(r"(.*)#(\d+)of(\d+)", re.DOTALL)


class Passage(Struct, frozen=True):
    """A piece of a response or document: ``text`` is its characters from ``start`` up to ``end``."""

    passage_id: str
    text: str
    start: int
    end: int


def passages_of(answer: Answer, *, most_words: int = MOST_WORDS) -> tuple[Passage, ...]:
    """Cut a response into passages of whole paragraphs with at most ``most_words`` words each, in order.

    Short paragraphs share a passage: scores use only the first k passages, and a list of short lines must not fill
    these. A paragraph that is too long is cut after a sentence, and a sentence that is too long between words. An empty
    response has no passages.
    """
    spans = cut(answer.text, word_spans(answer.text), most_words)
    return tuple(
        Passage(passage_id_of(answer.query_id, answer.agent, number), answer.text[start:end], start, end)
        for number, (start, end) in enumerate(spans, start=1)
    )


def passages_of_document(document: Document, *, most_words: int = MOST_WORDS) -> tuple[Passage, ...]:
    """Cut a document into passages as ``passages_of`` does; a document that fits into one passage keeps its id."""
    spans = list(cut(document.text, word_spans(document.text), most_words))
    return tuple(
        Passage(piece_id_of(document.doc_id, number, len(spans)), document.text[start:end], start, end)
        for number, (start, end) in enumerate(spans, start=1)
    )


def piece_id_of(doc_id: str, number: int, pieces: int) -> str:
    """Id of a document's passage, as ``doc_id#2of5``; a document of one passage keeps ``doc_id``.

    If ``doc_id`` itself has the form of a passage id, the passage is called ``doc_id#1of1``.
    """
    return doc_id if pieces == 1 and not _PIECE.fullmatch(doc_id) else f"{doc_id}#{number}of{pieces}"


def document_of(passage_id: str) -> tuple[str, int]:
    """The document that a passage belongs to, and its number of passages; other ids are ids of whole documents."""
    piece = _PIECE.fullmatch(passage_id)
    return (piece[1], int(piece[3])) if piece else (passage_id, 1)


def passage_id_of(query_id: str, agent: str, number: int) -> str:
    """Id of a response's passage: ``query_id/agent#number``, percent-encoded so that no two passages share an id."""
    return f"{quote(query_id, safe='')}/{quote(agent, safe='')}#{number}"


def origin_of(passage_id: str) -> tuple[str, str, int] | None:
    """The query_id, agent and number that ``passage_id_of`` wrote into an id; ``None`` for other ids."""
    names, _, number = passage_id.rpartition("#")
    query_id, separator, agent = names.partition("/")
    if not separator or not number.isascii() or not number.isdigit():
        return None
    origin = unquote(query_id), unquote(agent), int(number)
    return origin if passage_id_of(*origin) == passage_id else None


_CHECKED, _RATED = 1, 5
"""Highest grades: of an answer that is checked against gold answers, and of a rating on a scale."""


def by_document(graded: Graded) -> Graded:
    """Turn grades of passages into grades of documents; returns ``graded`` itself if no document was cut."""
    origins = {entry.passage_id for entries in graded.grades.values() for entry in entries}
    cut = {passage_id: origin for passage_id in origins if (origin := document_of(passage_id))[0] != passage_id}
    if not cut:
        return graded
    names = {passage_id: doc_id for passage_id, (doc_id, _) in cut.items()}
    return replace(
        graded,
        grades={
            grader: document_grades(entries, cut, highest=_RATED if grader in graded.rated else _CHECKED)
            for grader, entries in graded.grades.items()
        },
        passages={query_id: _joined(texts) for query_id, texts in graded.passages.items()},
        rankings={
            key: tuple(dict.fromkeys(names.get(passage_id, passage_id) for passage_id in ranking))
            for key, ranking in graded.rankings.items()
        },
        labels={query_id: _highest(labels, names) for query_id, labels in graded.labels.items()},
    )


def document_grades(entries: Iterable[Grade], cut: Mapping[str, tuple[str, int]], *, highest: int) -> list[Grade]:
    """For each document and item, the grade and answer of the document's passage with the highest grade.

    A document with an ungraded passage is ungraded, because the missing grade may be the highest, unless another
    passage has the highest possible grade.

    Args:
        entries: grades of one grader.
        cut: doc_id and number of pieces by passage_id, for passages that are pieces of a document.
        highest: the highest possible grade.
    """
    by_document_item: dict[tuple[str, str, str], list[Grade]] = {}
    document_pieces: dict[str, int] = {}
    for entry in entries:
        doc_id, number = cut.get(entry.passage_id, (entry.passage_id, 1))
        document_pieces[doc_id] = number
        by_document_item.setdefault((entry.query_id, doc_id, entry.item_id), []).append(entry)
    return [
        _document_grade(key, passage_grades, document_pieces[key[1]], highest)
        for key, passage_grades in by_document_item.items()
    ]


def _document_grade(key: tuple[str, str, str], entries: list[Grade], pieces: int, highest: int) -> Grade:
    grades = [entry.grade for entry in entries if entry.grade is not None]
    best = max(grades, default=None)
    answers = (entry.answer for entry in sorted(entries, key=lambda entry: entry.grade != best) if entry.answer)
    known = len(grades) == pieces or best == highest
    return Grade(*key, best if known else None, next(answers, ""))


def _joined(texts: Mapping[str, str]) -> dict[str, str]:
    pieces: dict[str, list[str]] = {}
    for passage_id, text in texts.items():
        pieces.setdefault(document_of(passage_id)[0], []).append(text)
    return {doc_id: "\n\n".join(document_texts) for doc_id, document_texts in pieces.items()}


def _highest(labels: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    document_labels: dict[str, int] = {}
    for passage_id, label in labels.items():
        doc_id = names.get(passage_id, passage_id)
        document_labels[doc_id] = max(label, document_labels.get(doc_id, label))
    return document_labels
