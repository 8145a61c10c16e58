"""Splits an answer into its claims: sentences without headings, list markers, code and lists of references.

The splitter expects answers as people and language models write them. It drops all text that makes no claim: headings,
numbers and bullets of lists, header rows of tables, introductions that end with a colon, code blocks, and references at
the end. It never drops a sentence with a citation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from judges.writing import SENTENCE_STOPS

INSIDE: Final = r"[^\[\]\n]{1,5000}"
MARK: Final = rf"\[{INSIDE}\]"
"""Pattern of a citation in square brackets; ``INSIDE`` matches the text between the brackets."""

_CODE = re.compile(r"^\s*(`{3,}|~{3,})")
_RULE = re.compile(r"^\s{0,3}(?:={3,}|-{3,})\s*$")
_HASHES = re.compile(r"^\s{0,3}#{1,6}(?:\s|$)")
_BOLD = re.compile(r"(?:\*\*|__)([^*\n]{1,300})(?:\*\*|__)\s*[:\uff1a]?\s*$")
_TABLE_RULE = re.compile(r"^\s*\|\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*){0,200}\|?\s*$")
_MARKER = re.compile(
    r"\s*(?:>\s?)*\s*(?:(?:[-*+\u2022\u2023\u25e6\u25aa\u25cf\u2013\u2014]|\(?\d{1,3}[.)\u3001\uff0e]|\(?[a-z]\)|\(?[ivx]{1,5}\))"
    r"(?:\s+|(?<=[\u3001\uff0e])))?(?:\[[ xX]\]\s+)?"
)
"""Matches the marker of a quotation, a list item or a task at the start of a line."""
_WORDS_OF_REFERENCES = (
    r"references?|sources?|citations?|bibliography|works cited|further reading|quellen|quellenangaben|"
    "literaturverzeichnis|r\u00e9f\u00e9rences|referencias|fuentes|\u53c2\u8003\u6587\u732e|\u53c2\u8003\u8d44\u6599|\u53c2\u8003\u6765\u6e90"
)
_REFERENCES = re.compile(
    rf"[^\w\n]*(?:\d{{1,2}}[.)]\s*)?(?:{_WORDS_OF_REFERENCES})(?: cited| used| list)?[^\w\n]*$", re.IGNORECASE
)
_REFERENCES_BEFORE = re.compile(rf"[^\w\[\n]*(?:{_WORDS_OF_REFERENCES})[*_\s]*[:\uff1a][*_\s]*", re.IGNORECASE)
_ENTRY = re.compile(
    r"\s*(?:[-*+\u2022]\s|[-*+\u2022]?\s*(?:\(?\d{1,3}[.):\]]\s|https?://|www\.|[^\w\s\[]{0,3}\[[^\]\n]+\])|\s{2,}\S)"
)
"""Matches the start of an entry in a list of references."""
_NUMBERED = re.compile(r"\[\W{0,3}\d")
_PUBLISHED = re.compile(r"\b(?:19|20)\d\d\b|https?://|www\.")
_DEFINITION = re.compile(r"\s*\[[^\]\n]+\]:?\s*<?(?:https?://|www\.)\S*\s*(?:[\"'(].*)?$")
"""Matches the definition of a citation mark or of a Markdown link."""
_ENDS = re.compile(rf"[.!?\u2026{SENTENCE_STOPS}][\"'\u201d\u2019)\]*_]*$")

_STOP = re.compile(rf"[.!?\u2026\u203d{SENTENCE_STOPS}]+[\"'\u201d\u2019\u00bb)\]*_]*(?=\s)")
_OPENING = re.compile(r"[\s\"'\u201c\u2018\u00ab\u201e(\[*_]*")
_WIDE_STOP = re.compile(rf"[{SENTENCE_STOPS}]+(?=[^\s\[{SENTENCE_STOPS}\u201d\u2019\u300d\u300f\uff09])")
"""Matches the end of a sentence without a space after it, as in Chinese, Japanese, Khmer and Burmese."""
_NEVER_LAST = re.compile(
    r"(?:\b(?:al|cf|vs|approx|e\.g|i\.e|bzw|dr|prof|mr|mrs|ms|mx|st|messrs|gen|sen|rep|gov|lt|col|sgt|capt|rev|hon|mt|"
    r"dipl|ing|viz)|(?<![^\s.(\[\"'\u201c\u2018*_-])[^\W\d_])\.$",
    re.IGNORECASE,
)
"""Matches abbreviations and initials that never end a sentence."""
_LAST_BEFORE = re.compile(r"\b(?:co|inc|ltd|corp|bros|jr|sr|etc|dept|univ|ft|oz|lb|lbs)\.$", re.IGNORECASE)
_STARTERS = re.compile(
    r"(?:The|An?|It|Its|This|That|Th[eo]se|They|Their|He|His|She|Her|We|Our|You|Your|In|On|At|As|For|From|By|With|Of|To|"
    r"But|And|Or|So|If|When|While|After|Before|Since|However|Also|Both|Each|Some|Many|Most|Other|There|Then)\b"
)
"""Words that often begin a sentence; an abbreviation in ``_LAST_BEFORE`` ends a sentence only before one of these."""
_BEFORE_NUMBERS = re.compile(
    r"\b(?:no|nos|nr|fig|figs|eq|eqs|sec|secs|ch|chap|vol|vols|p|pp|art|arts|para|ref|refs|tab|app|pt|ed|est|c|"
    r"jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec)\.$",
    re.IGNORECASE,
)
"""Words that are abbreviations only before a number: "No. 5", but "The answer is No."."""
_LONGEST = 20
"""Number of characters before a full stop that are checked to decide whether it ends a sentence."""
_ELLIPSIS_APART = re.compile(r"\s(?:\.{3,}|\u2026|\. \. \.)$")
"""Matches an ellipsis in the middle of a sentence."""
_NUMBER_ALONE = re.compile(r"\(?\d{1,3}[.)]?")


class Parts(Struct, frozen=True):
    """An answer's lines, divided into body and references.

    Attributes:
        body: all lines except code and references.
        references: the list of references at the end.
    """

    body: tuple[str, ...]
    references: tuple[str, ...]


def parts_of(text: str) -> Parts:
    """Split an answer into its body, without code, and its list of references."""
    lines = _without_code(text.splitlines())
    start = _start_of_references(lines)
    return Parts(tuple(line for line in lines[:start] if not _DEFINITION.match(line)), tuple(lines[start:]))


def code_lines(lines: Sequence[str]) -> list[bool]:
    """Tell for each line of an answer whether it is code, that is, part of a fenced block.

    A block without a closing fence is not code. If the whole answer is code, only the fences count as code.
    """
    in_block = [False] * len(lines)
    start, opened = 0, ""
    for place, line in enumerate(lines):
        fence = _CODE.match(line)
        if fence is None:
            continue
        if not opened:
            start, opened = place, fence[1]
        elif fence[1].startswith(opened) and not line.strip().strip(opened[0]):
            in_block[start : place + 1] = [True] * (place + 1 - start)
            opened = ""
    outside = (line for line, is_code in zip(lines, in_block, strict=True) if not is_code)
    return in_block if any(map(_has_words, outside)) else [_CODE.match(line) is not None for line in lines]


def _without_code(lines: Sequence[str]) -> list[str]:
    return [line for line, is_code in zip(lines, code_lines(lines), strict=True) if not is_code]


def _start_of_references(lines: list[str]) -> int:
    """Index of the heading of the list of references at the end; the number of lines if there is none."""
    entries = 0
    for place in range(len(lines) - 1, 0, -1):
        line = lines[place]
        if _REFERENCES.match(line):
            return place if entries and any(map(_has_words, lines[:place])) else len(lines)
        if line.strip():
            if not _is_entry(line):
                break
            entries += 1
    return len(lines)


def _is_entry(line: str) -> bool:
    """Whether a line can belong to a list of references; it cannot if a citation follows its words."""
    mark = _NUMBERED.search(line)
    if mark is not None and _has_words(_without_marker(line[: mark.start()])):
        return False
    return bool(_ENTRY.match(line) or _PUBLISHED.search(line))


def _has_words(line: str) -> bool:
    return re.search(r"\w", line) is not None


def claim_lines(body: Sequence[str], cites: Callable[[str], bool]) -> Iterator[tuple[str, bool]]:
    """Yield each line that makes a claim, and whether it is a table row, which counts as one sentence.

    Drops headings, header rows of tables and list markers, but never a line with a citation.

    Args:
        body: lines of the answer's body, see ``parts_of``; citations are in square brackets.
        cites: whether a text contains a citation.
    """
    for line, following in zip(body, [*body[1:], ""], strict=True):
        if _RULE.match(line) or _TABLE_RULE.match(line):
            continue
        is_table = line.lstrip().startswith("|")
        if not cites(line) and (_is_heading(line, following) or (is_table and _TABLE_RULE.match(following))):
            continue
        if is_table:
            yield " | ".join(filter(None, (cell.strip() for cell in line.strip().strip("|").split("|")))), True
        else:
            words = _without_marker(_HASHES.sub("", line))
            label = _REFERENCES_BEFORE.match(words)
            only_marks = label is not None and not _has_words(re.sub(MARK, "", words[label.end() :]))
            yield words[label.end() :] if label is not None and only_marks else words, False


def _without_marker(line: str) -> str:
    marker = _MARKER.match(line)
    return line if marker is None else line[marker.end() :]


def _is_heading(line: str, following: str) -> bool:
    if _HASHES.match(line) or _REFERENCES.match(line):
        return True
    words = _without_marker(line).strip()
    if bold := _BOLD.match(words):
        return not _ENDS.search(bold[1].strip())
    return bool(words and _RULE.match(following) and not _ENDS.search(words) and words == line.strip())


def is_introduction(sentence: str) -> bool:
    """Whether a sentence only introduces the next one: it ends with a colon."""
    return sentence.rstrip(" *_").endswith((":", "\uff1a"))


def sentences(line: str) -> list[str]:
    """The sentences of a line; abbreviations, initials, decimals and list numbers do not end a sentence."""
    pieces: list[str] = []
    for part in _WIDE_STOP.sub(r"\g<0>\n", line).split("\n"):
        start = 0
        for stop in _STOP.finditer(part):
            if _ends_sentence(part[start : stop.end()], part[stop.end() :]):
                pieces.append(part[start : stop.end()].strip())
                start = stop.end()
        pieces.append(part[start:].strip())
    return [sentence for sentence in pieces if sentence and not _NUMBER_ALONE.fullmatch(sentence)]


def _ends_sentence(before: str, behind: str) -> bool:
    opening = _OPENING.match(behind)
    assert opening is not None
    following = behind[opening.end() : opening.end() + 1]
    if not (following.isupper() or following.istitle() or following.isdigit() or _is_wide(following)):
        return False
    end = before[-_LONGEST:]
    if _ELLIPSIS_APART.search(end) or _NEVER_LAST.search(end):
        return False
    if _LAST_BEFORE.search(end) and not _STARTERS.match(behind, opening.end()):
        return False
    return not (following.isdigit() and _BEFORE_NUMBERS.search(end))


def _is_wide(letter: str) -> bool:
    return "\u3040" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7af"
