"""Cuts documents into passages, short for retrieval or long for writing questions, and detects near-duplicates."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import quote

from msgspec import Struct
from pydantic import Field, model_validator

from judges.sections import Section
from judges.types import Document
from judges.writing import SENTENCE_STOPS, Span, cut, token_spans, word_spans, words_of
from retrieval_eval.documents.types import DocumentPart, SourceDocument, Whole

_SENTENCE_BREAK = re.compile(
    rf"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])|(?<=[{SENTENCE_STOPS}])[\"'\u201d\u2019\u300d\u300f\uff09)\]]*\s*(?![{SENTENCE_STOPS}])"
)
_ABBREVIATION = re.compile(r"(?:\b(?:al|cf|eq|fig|sec|vs)|\b[A-Za-z]|\be\.g|\bi\.e)\.$", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """The sentences of a text in order; a line break always ends one, an abbreviation never does."""
    parts: list[str] = []
    for line in text.splitlines():
        pieces = _pieces(line)
        start = 0
        for position, piece in enumerate(pieces):
            last = position == len(pieces) - 1
            if last or not _ABBREVIATION.search(piece.rstrip()):
                parts.append("".join(pieces[start : position + 1]).strip())
                start = position + 1
    return [sentence for sentence in parts if sentence]


def _pieces(line: str) -> list[str]:
    """Split a line after each place where a sentence may end; the joined pieces are the line again."""
    ends = [match.end() for match in _SENTENCE_BREAK.finditer(line)]
    return [line[start:end] for start, end in zip([0, *ends], [*ends, len(line)], strict=True)]


CutBy: TypeAlias = Literal["paragraph", "tokens", "sentences", "pages"]
SIZES: dict[CutBy, int] = {"paragraph": 400, "tokens": 256, "sentences": 10, "pages": 2000}
"""Default of the greatest passage size for each way of cutting: words, tokens, sentences (as in MS MARCO 2.1), and
tokens (Rackauckas et al. 2024, section 4)."""
OVERLAPS: dict[CutBy, int] = {"sentences": 5}
"""Default number of units that neighbouring passages share: windows of 10 sentences start every 5 sentences."""

_SEPARATOR = "\n\n"


class PassagesSection(Section):
    """How documents are cut into passages."""

    by: CutBy
    """How a document is divided: by [``paragraph``, ``tokens``, ``sentences`` or
    ``pages``](from-documents.md#documents-as-a-corpus)."""
    size: Whole | None = None
    """Greatest size of a passage: in words by ``paragraph`` (default 400), in tokens by ``tokens`` (256) and ``pages``
    (2000), in sentences by ``sentences`` (10)."""
    overlap: Annotated[int, Field(ge=0)] | None = None
    """``tokens``, ``sentences``: number of tokens or sentences that neighbouring passages share; 0 tokens and 5
    sentences when left out."""
    pages: Whole = 10
    """``pages``: most pages of a PDF in one passage."""
    near_duplicates: Annotated[float, Field(gt=0, le=1)] | None = 0.8
    """Leave out a passage if its similarity to an earlier one reaches this value (Jaccard index of five-word shingles);
    ``null`` keeps all passages."""

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
        return self.size or SIZES[self.by]

    @property
    def most_shared(self) -> int:
        """Number of units that neighbouring passages share: ``overlap``, or a default of at most half the size."""
        usual = min(OVERLAPS.get(self.by, 0), self.most // 2)
        return usual if self.overlap is None else self.overlap


def passages_of(document: SourceDocument, how: PassagesSection) -> Iterator[Document]:
    """The passages of a document, in order.

    The metadata of a passage are ``title`` ("Document: Section", or "Document" if the passage has several sections),
    ``source`` (the file), and for a PDF ``page`` ("3", or "3-5").

    Ids contain the file and the passage's position in it, have no white space, and do not change when you add another
    file:

    - by paragraph ``FILE#section-2``, or ``FILE#p7-2`` on page 7: numbered within the section or page, so that an edit
      in one leaves the ids of the others unchanged;
    - ``FILE#t2`` by tokens, ``FILE#s6-15`` by sentences (the sixth to the fifteenth), ``FILE#l2`` by pages: numbered
      from the beginning of the file.
    """
    if how.by == "paragraph":
        return _by_paragraph(document, how.most)
    whole = _DocumentText(document, with_headings=how.by == "pages")
    if how.by == "tokens":
        spans = cut(whole.text, token_spans(whole.text), how.most, how.most_shared)
        return (whole.passage(f"t{number}", span) for number, span in enumerate(spans, start=1))
    if how.by == "sentences":
        return _windows(whole, how.most, how.most - how.most_shared)
    return (whole.passage(f"l{number}", span) for number, span in enumerate(_long_spans(whole, how), start=1))


def passage_id(source: str, place: str) -> str:
    """A passage id from the file's name and the passage's place; white space, forbidden in TREC files, is encoded."""
    file = re.sub(r"[\s%#]", lambda match: quote(match[0]), source)
    return f"{file}#{place}"


def _by_paragraph(document: SourceDocument, most: int) -> Iterator[Document]:
    numbers: Counter[str] = Counter()
    for part in document.parts:
        slug = re.sub(r"\W+", "-", part.heading.lower()).strip("-")
        slug = f"section-{slug}" if slug.isdecimal() else slug  # else the id would look like a span of characters
        place = slug if part.page is None else f"p{part.page}"
        for paragraph in part.paragraphs:
            for start, end in cut(paragraph, word_spans(paragraph), most):
                numbers[place] += 1
                place_and_number = f"{place}-{numbers[place]}" if place else str(numbers[place])
                yield _document(document, place_and_number, paragraph[start:end], (part,))


def _document(document: SourceDocument, place: str, text: str, parts: Sequence[DocumentPart]) -> Document:
    heading = parts[0].heading if len(parts) == 1 else ""
    metadata = {"title": ": ".join(filter(None, (document.title, heading))), "source": document.source}
    first, last = parts[0].page, parts[-1].page
    if first is not None:
        metadata["page"] = str(first) if first == last else f"{first}-{last}"
    return Document(passage_id(document.source, place), text, metadata)


class _DocumentText:
    """A document's text as one string, with the part (section or page) that each position belongs to.

    ``with_headings`` adds each heading to the paragraph after it.
    """

    def __init__(self, document: SourceDocument, *, with_headings: bool) -> None:
        self._document = document
        self._starts: list[int] = []
        self.paragraphs: list[tuple[DocumentPart, Span]] = []
        pieces: list[str] = []
        at = 0
        for part in document.parts:
            self._starts.append(at)
            heading = f"{part.heading}{_SEPARATOR}" if with_headings and part.heading else ""
            for paragraph in (heading + part.paragraphs[0], *part.paragraphs[1:]):
                self.paragraphs.append((part, (at, at + len(paragraph))))
                pieces.append(paragraph)
                at += len(paragraph) + len(_SEPARATOR)
        self.text = _SEPARATOR.join(pieces)

    def passage(self, place: str, span: Span) -> Document:
        first, last = (bisect_right(self._starts, at) - 1 for at in (span[0], span[1] - 1))
        return _document(self._document, place, self.text[slice(*span)], self._document.parts[first : last + 1])


def _windows(whole: _DocumentText, size: int, stride: int) -> Iterator[Document]:
    spans: list[Span] = []
    for _, (start, end) in whole.paragraphs:
        position = start
        for sentence in sentences(whole.text[start:end]):
            position = whole.text.index(sentence, position)
            spans.append((position, position + len(sentence)))
            position += len(sentence)
    for first_sentence in range(0, len(spans), stride):
        last_sentence = min(first_sentence + size, len(spans))
        yield whole.passage(
            f"s{first_sentence + 1}-{last_sentence}", (spans[first_sentence][0], spans[last_sentence - 1][1])
        )
        if last_sentence == len(spans):
            return


def _long_spans(whole: _DocumentText, how: PassagesSection) -> Iterator[Span]:
    """Yields spans of as many whole paragraphs as a passage can contain; cuts paragraphs that are longer than that."""
    start, end, used, page = 0, 0, 0, 0
    for part, (first, last) in whole.paragraphs:
        text = whole.text[first:last]
        for start_in_text, end_in_text in cut(text, token_spans(text), how.most):
            length = len(token_spans(text[start_in_text:end_in_text]))
            page_here = part.page or 0
            if used and (used + length > how.most or page_here - page >= how.pages):
                yield start, end
                used = 0
            if not used:
                start, page = first + start_in_text, page_here
            used, end = used + length, first + end_in_text
    if used:
        yield start, end


PERMUTATIONS = 128
_DIGIT = re.compile(r"\d")


class Twin(Struct, frozen=True):
    """Ids of a text and of an earlier, nearly equal text (``kept``), and the Jaccard index of their shingles."""

    ident: str
    kept: str
    similarity: float


class NearDuplicates:
    """Detects near-duplicates in a stream of texts: finds for each text its twin, the most similar earlier text.

    MinHash proposes pairs of texts, and the exact Jaccard index of their shingles decides. So every reported pair
    reaches the threshold, but MinHash with 128 permutations may miss a pair near the threshold. A text without words
    has no twin; a text shorter than a shingle is one shingle.

    Args:
        threshold: least Jaccard index of a text and its twin, above 0 and at most 1.
        shingle: number of words in a shingle, which are lower-cased; with 1 the order of words does not matter.
        same_numbers: whether twins must have the same words with digits, so that "TLE4971" is not "TLE4972".
    """

    def __init__(self, threshold: float, shingle: int = 5, *, same_numbers: bool = False) -> None:
        from datasketch import MinHash, MinHashLSH

        self._empty = MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=int)
        self._threshold, self._shingle, self._same_numbers = threshold, shingle, same_numbers
        # MinHash only estimates: a slightly lower threshold misses fewer pairs.
        self._index = MinHashLSH(threshold=max(0.05, threshold - 0.1), num_perm=PERMUTATIONS)
        self._indexed: dict[str, tuple[frozenset[int], frozenset[str]]] = {}

    def twin(self, ident: str, text: str) -> Twin | None:
        """Find the most similar indexed text if it reaches the threshold; else index the text and return ``None``."""
        words = words_of(text)
        if not words:
            return None
        shingles = self._shingles(words)
        numbers = frozenset(filter(_DIGIT.search, words)) if self._same_numbers else frozenset()
        sketch = self._empty.copy()  # a copy, since a new MinHash would draw its permutations again
        sketch.update_batch(sorted(shingles))
        alike = (
            (other, self._indexed[other][0])
            for other in sorted(self._index.query(sketch))
            if self._indexed[other][1] == numbers
        )
        candidates = [(len(shingles & held) / len(shingles | held), other) for other, held in alike]
        best = max(candidates, key=lambda pair: pair[0], default=(0.0, ""))
        if best[0] >= self._threshold:
            return Twin(ident, best[1], best[0])
        self._index.insert(ident, sketch)
        self._indexed[ident] = shingles, numbers
        return None

    def _shingles(self, words: Sequence[str]) -> frozenset[int]:
        """32-bit hashes of a text's shingles; a shingle's hash is a polynomial in the hashes of its words."""
        import numpy as np

        hashes = np.fromiter(map(_hash, words), np.uint64, len(words))
        size = min(self._shingle, len(words))
        values = np.zeros(len(words) - size + 1, np.uint64)
        for shift in range(size):
            values = values * np.uint64(_FACTOR) + hashes[shift : shift + len(values)]  # modulo 2**64
        return frozenset((values >> np.uint64(32)).tolist())


_FACTOR: Final = 0x9E3779B97F4A7C15
"""Factor of the polynomial hash of a shingle; odd, so that multiplying modulo 2**64 loses no bits of a hash."""


@lru_cache(2**16)
def _hash(word: str) -> int:
    """64-bit hash of a word, the same in every process and on every machine."""
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest())
