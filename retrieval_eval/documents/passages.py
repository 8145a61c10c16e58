"""Documents -> passages: short ones to be retrieved, long ones to ask questions about."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import quote

from msgspec import Struct
from pydantic import Field, model_validator

from judges.sections import Section
from judges.types import Document
from judges.writing import SENTENCE_STOPS, Span, token_spans, word_spans, words_of
from retrieval_eval.documents.types import DocumentPart, SourceDocument, Whole

_SENTENCE_BREAK = re.compile(
    rf"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])|(?<=[{SENTENCE_STOPS}])[\"'\u201d\u2019\u300d\u300f\uff09)\]]*\s*(?![{SENTENCE_STOPS}])"
)
_ABBREVIATION = re.compile(r"(?:\b(?:al|cf|eq|fig|sec|vs)|\b[A-Za-z]|\be\.g|\bi\.e)\.$", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """Sentences in the order of the text; a line break always ends one, an abbreviation never does."""
    found: list[str] = []
    for line in text.splitlines():
        pieces = _pieces(line)
        start = 0
        for position, piece in enumerate(pieces):
            last = position == len(pieces) - 1
            if last or not _ABBREVIATION.search(piece.rstrip()):
                found.append("".join(pieces[start : position + 1]).strip())
                start = position + 1
    return [sentence for sentence in found if sentence]


def _pieces(line: str) -> list[str]:
    """The line cut behind everything that may be the end of a sentence; nothing is lost."""
    ends = [match.end() for match in _SENTENCE_BREAK.finditer(line)]
    return [line[start:end] for start, end in zip([0, *ends], [*ends, len(line)], strict=True)]


_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_SENTENCE_END = re.compile(f"[.!?{SENTENCE_STOPS}][\"'\u201d\u2019\u300d\u300f\uff09)\\]]*$")


def cut(text: str, units: Sequence[Span], most: int, overlap: int = 0) -> Iterator[Span]:
    """Spans of at most ``most`` units, which follow each other or share ``overlap`` units.

    Raises:
        ValueError: there is no room for one unit, or the overlap leaves no way forward.
    """
    if most < 1 or not 0 <= overlap < most:
        raise ValueError(f"a passage has one unit at least and fewer in common with the next, not {most} and {overlap}")
    first = 0
    while first < len(units):
        last = _last_unit(text, units, first, most, overlap)
        yield units[first][0], units[last][1]
        first = last + 1 if last == len(units) - 1 else last + 1 - overlap


def _last_unit(text: str, units: Sequence[Span], first: int, most: int, overlap: int) -> int:
    """Number of the span's last unit: the rest, or the last place to cut that leaves at most ``most``.

    Best between paragraphs, else behind a sentence, else between words.
    """
    full = first + most - 1
    if full >= len(units) - 1:
        return len(units) - 1
    window = range(full, first + overlap - 1, -1)
    between = (place for place in window if _PARAGRAPH.search(text, units[place][1], units[place + 1][0]))
    behind = (place for place in window if _SENTENCE_END.search(text, *units[place]))
    apart = (place for place in window if units[place][1] < units[place + 1][0])
    return next(chain(between, behind, apart), full)


CutBy: TypeAlias = Literal["paragraph", "tokens", "sentences", "pages"]
SIZES: dict[CutBy, int] = {"paragraph": 400, "tokens": 256, "sentences": 10, "pages": 2000}
"""Words, tokens, sentences (002, section 2.2) and tokens (004, section 4) of a passage at most."""
OVERLAPS: dict[CutBy, int] = {"sentences": 5}
"""Windows of 10 sentences with a stride of 5."""

_BETWEEN = "\n\n"


class PassagesSection(Section):
    """How documents are cut."""

    by: CutBy
    """[``paragraph``, ``tokens``, ``sentences`` or ``pages``](from-documents.md#documents-as-a-corpus)."""
    size: Whole | None = None
    """Most words of a paragraph (400), tokens (256), sentences (10), or tokens by pages (2000)."""
    overlap: Annotated[int, Field(ge=0)] | None = None
    """``tokens``, ``sentences``: what two neighbours share; 0 and 5 when left out."""
    pages: Whole = 10
    """``pages``: how many pages of a PDF a passage may span."""
    near_duplicates: Annotated[float, Field(gt=0, le=1)] | None = 0.8
    """Leave out passages this similar to an earlier one (Jaccard index of five-word shingles); ``null`` keeps all."""

    @model_validator(mode="after")
    def _usable(self) -> PassagesSection:
        if self.by not in ("tokens", "sentences") and self.overlap is not None:
            raise ValueError("'overlap' goes with 'tokens' and 'sentences' only")
        if self.by != "pages" and "pages" in self.model_fields_set:
            raise ValueError("'pages' goes with passages by 'pages' only")
        if self.most_shared >= self.most:
            raise ValueError("'overlap' must be less than 'size'")
        return self

    @property
    def most(self) -> int:
        """The size, given or usual."""
        return self.size or SIZES[self.by]

    @property
    def most_shared(self) -> int:
        """The overlap, given or usual; half the size where a usual one would not fit."""
        usual = min(OVERLAPS.get(self.by, 0), self.most // 2)
        return usual if self.overlap is None else self.overlap


def passages_of(document: SourceDocument, how: PassagesSection) -> Iterator[Document]:
    """The passages of a document, in its order.

    Metadata: ``title`` ("Document: Section", or "Document" of a passage out of several), ``source`` (the file) and, of
    a PDF, ``page`` ("3", or "3-5").

    Ids tell the file and the place in it, have no white space, and do not change when another file is added:

    - by paragraph ``FILE#section-2``, or ``FILE#p7-2`` on page 7: counted within the section or page, so that an edit
      in one leaves the ids of the others alone;
    - ``FILE#t2`` by tokens, ``FILE#s6-15`` by sentences (the sixth to the fifteenth), ``FILE#l2`` by pages: counted
      from the beginning of the file.
    """
    if how.by == "paragraph":
        return _by_paragraph(document, how.most)
    whole = _Whole(document, with_headings=how.by == "pages")
    if how.by == "tokens":
        spans = cut(whole.text, token_spans(whole.text), how.most, how.most_shared)
        return (whole.passage(f"t{number}", span) for number, span in enumerate(spans, start=1))
    if how.by == "sentences":
        return _windows(whole, how.most, how.most - how.most_shared)
    return (whole.passage(f"l{number}", span) for number, span in enumerate(_long(whole, how), start=1))


def passage_id(source: str, place: str) -> str:
    """An id without white space, which TREC files do not allow, and never the same for two passages."""
    page = re.sub(r"[\s%#]", lambda match: quote(match[0]), source)
    return f"{page}#{place}"


def _by_paragraph(document: SourceDocument, most: int) -> Iterator[Document]:
    numbers: Counter[str] = Counter()
    for part in document.parts:
        place = f"p{part.page}" if part.page is not None else _slug(part.heading)
        for paragraph in part.paragraphs:
            for start, end in cut(paragraph, word_spans(paragraph), most):
                numbers[place] += 1
                numbered = f"{place}-{numbers[place]}" if place else str(numbers[place])
                yield _document(document, numbered, paragraph[start:end], (part,))


def _slug(heading: str) -> str:
    return re.sub(r"\W+", "-", heading.lower()).strip("-")


def _document(document: SourceDocument, place: str, text: str, parts: Sequence[DocumentPart]) -> Document:
    heading = parts[0].heading if len(parts) == 1 else ""
    metadata = {"title": ": ".join(filter(None, (document.title, heading))), "source": document.source}
    first, last = parts[0].page, parts[-1].page
    if first is not None:
        metadata["page"] = str(first) if first == last else f"{first}-{last}"
    return Document(passage_id(document.source, place), text, metadata)


class _Whole:
    """A document as one text that remembers which part each place is of; a heading is of the paragraph behind it."""

    def __init__(self, document: SourceDocument, *, with_headings: bool) -> None:
        self._document = document
        self._starts: list[int] = []
        self.paragraphs: list[tuple[DocumentPart, Span]] = []
        pieces: list[str] = []
        at = 0
        for part in document.parts:
            self._starts.append(at)
            heading = f"{part.heading}{_BETWEEN}" if with_headings and part.heading else ""
            for paragraph in (heading + part.paragraphs[0], *part.paragraphs[1:]):
                self.paragraphs.append((part, (at, at + len(paragraph))))
                pieces.append(paragraph)
                at += len(paragraph) + len(_BETWEEN)
        self.text = _BETWEEN.join(pieces)

    def passage(self, place: str, span: Span) -> Document:
        """The passage of a span."""
        first, last = (bisect_right(self._starts, at) - 1 for at in (span[0], span[1] - 1))
        return _document(self._document, place, self.text[slice(*span)], self._document.parts[first : last + 1])


def _windows(whole: _Whole, size: int, stride: int) -> Iterator[Document]:
    found: list[Span] = []
    for _, (start, end) in whole.paragraphs:
        at = start
        for sentence in sentences(whole.text[start:end]):
            at = whole.text.index(sentence, at)
            found.append((at, at + len(sentence)))
            at += len(sentence)
    for first in range(0, len(found), stride):
        last = min(first + size, len(found))
        yield whole.passage(f"s{first + 1}-{last}", (found[first][0], found[last - 1][1]))
        if last == len(found):
            return


def _long(whole: _Whole, how: PassagesSection) -> Iterator[Span]:
    """Whole paragraphs, as many as fit; one that does not fit by itself is cut."""
    start, end, used, page = 0, 0, 0, 0
    for part, (first, last) in whole.paragraphs:
        text = whole.text[first:last]
        for a, b in cut(text, token_spans(text), how.most):
            length = len(token_spans(text[a:b]))
            here = part.page or 0
            if used and (used + length > how.most or here - page >= how.pages):
                yield start, end
                used = 0
            if not used:
                start, page = first + a, here
            used, end = used + length, first + b
    if used:
        yield start, end


PERMUTATIONS = 128
_DIGIT = re.compile(r"\d")


class Twin(Struct, frozen=True):
    """A text and an earlier one that is nearly the same; ``similarity`` is the Jaccard index of their shingles."""

    ident: str
    kept: str
    similarity: float


class NearDuplicates:
    """Takes texts one by one and says which of the earlier ones each repeats.

    MinHash proposes pairs and the Jaccard index of the shingles themselves decides, so that no pair is reported that is
    not as alike as asked; with 128 permutations a pair at the threshold may be missed. A text without a word is no
    twin of any, a text shorter than a shingle is one shingle.

    Args:
        threshold: the least Jaccard index of twins, above 0 and at most 1.
        shingle: words of a shingle, lower-case; with 1 the order of words does not matter.
        same_numbers: whether twins have the same words with a digit: "TLE4971" is not "TLE4972".
    """

    def __init__(self, threshold: float, shingle: int = 5, *, same_numbers: bool = False) -> None:
        from datasketch import MinHash, MinHashLSH

        self._empty = MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=_same)
        self._threshold, self._shingle, self._same_numbers = threshold, shingle, same_numbers
        # MinHash estimates; a little below the threshold fewer pairs are missed.
        self._index = MinHashLSH(threshold=max(0.05, threshold - 0.1), num_perm=PERMUTATIONS)
        self._kept: dict[str, tuple[frozenset[int], frozenset[str]]] = {}

    def twin(self, ident: str, text: str) -> Twin | None:
        """The earlier text most like this one, of those that were kept; without one, this one is kept."""
        words = words_of(text)
        if not words:
            return None
        shingles = self._shingles(words)
        numbers = frozenset(filter(_DIGIT.search, words)) if self._same_numbers else frozenset()
        sketch = self._sketch(shingles)
        alike = [
            (_jaccard(shingles, self._kept[other][0]), other)
            for other in sorted(self._index.query(sketch))
            if self._kept[other][1] == numbers
        ]
        found = max(alike, key=lambda pair: pair[0], default=(0.0, ""))
        if found[0] >= self._threshold:
            return Twin(ident, found[1], found[0])
        self._index.insert(ident, sketch)
        self._kept[ident] = shingles, numbers
        return None

    def _shingles(self, words: Sequence[str]) -> frozenset[int]:
        """Hashes of 32 bits: of the words' own, as a polynomial."""
        import numpy as np

        hashes = np.fromiter(map(_hash, words), np.uint64, len(words))
        size = min(self._shingle, len(words))
        found = np.zeros(len(words) - size + 1, np.uint64)
        for at in range(size):
            found = found * np.uint64(_FACTOR) + hashes[at : at + len(found)]  # modulo 2**64
        return frozenset((found >> np.uint64(32)).tolist())

    def _sketch(self, shingles: frozenset[int]) -> Any:
        sketch = self._empty.copy()  # which draws no permutations of its own
        sketch.update_batch(sorted(shingles))
        return sketch


_FACTOR: Final = 0x9E3779B97F4A7C15
"""Odd, so that no word's hash loses a bit by it."""


@lru_cache(2**16)
def _hash(word: str) -> int:
    """The same in every process and on every machine."""
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest())


def _same(value: int) -> int:
    return value


def _jaccard(left: frozenset[int], right: frozenset[int]) -> float:
    return len(left & right) / len(left | right)
