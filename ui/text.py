"""Draw texts from outside, which are shown but never run as code, and the pages' own messages in one style.

Streamlit interprets Markdown, LaTeX and emoji codes almost everywhere, including labels and messages. So draw a text
from outside (an answer, document, query, reason or name) only with this module, in a table of ``ui.show``, or as data
of a chart.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import streamlit as st
from msgspec import Struct

from arena.present.blocks import Thread
from arena.present.files import html_block, marked
from arena.present.markup import linked
from arena.present.numbers import clipped as clipped  # noqa: PLC0414 - re-exported for the pages
from arena.present.numbers import encodable as encodable  # noqa: PLC0414

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from judges.types import Answer, Query

CLIPPED_AT: Final = 10_000
"""Number of characters of a passage that are shown at first; a click shows the rest."""

MOST_MARKUP: Final = 30_000
"""Maximum length in characters of a text that is formatted as Markdown; longer texts are shown as plain text."""

HEIGHT: Final = 320
"""Maximum height of a passage's box, in pixels; longer passages scroll inside it."""

NO_TEXTS: Final = "The answers' texts were not imported."

ALIKE: Final = 0.5
"""Minimum share of words that two texts must have in common, in the same order, for the pages to mark differences.

Answers to different questions share up to a third by chance (three sets of English answers, 11,311 pairs: maximum 0.33,
99th percentile 0.17). From a share of one half on, most words are unmarked.
"""


def plain(text: str, *, empty: str = "") -> None:
    """Draw a text in body type, wrapped, without markup; if the text is empty, draw the message ``empty``."""
    if text.strip():
        st.text(encodable(text))
    elif empty:
        st.caption(empty)


Tone: TypeAlias = Literal["good", "bad", ""]
"""Colour of a sign, a short label in a box before a line of text: good, bad or neutral."""


class TextLine(Struct, frozen=True):
    """A line of text that may come from outside.

    Attributes:
        style: ``lead`` for the main sentence of a page, ``strong`` for a name or headline, ``quiet`` for a remark,
            ``button`` for a link to the next step.
        signs: short labels to show in boxes before the line, with the colours of the boxes.
        link: address that the line links to.
    """

    style: Literal["lead", "strong", "quiet", "body", "button"]
    words: str
    signs: Sequence[tuple[str, Tone]] = ()
    link: str = ""


def lines(*text_lines: TextLine, width: Literal["stretch", "content"] = "stretch") -> None:
    """Draw lines below each other, without empty lines, as one element: browsers are slow with many elements."""
    if markup := "".join(_line(line) for line in text_lines if line.words):
        st.html(markup, width=width)


def strong(words: str, *, width: Literal["stretch", "content"] = "stretch") -> None:
    """Draw a name or headline from outside."""
    lines(TextLine("strong", words), width=width)


def label(words: str) -> str:
    """Escape a text from outside for the label of a widget, which Streamlit reads as Markdown."""
    return marked(encodable(" ".join(words.split())))


def quiet(words: str) -> None:
    """Draw a remark that contains text from outside."""
    lines(TextLine("quiet", words))


def lead(words: str) -> None:
    """Draw the main sentence of the page, such as the query."""
    lines(TextLine("lead", words))


def passage(
    text: str, key: str, *, label: str, empty: str, height: int = HEIGHT, raw: bool = False, against: str | None = None
) -> None:
    """Draw a text from outside as sanitised Markdown in a scrolling box; very long texts are clipped at first.

    Args:
        text: the text from outside.
        key: key of the box, unique on the page.
        label: name of the box for screen readers.
        empty: message to show if the text is empty.
        height: maximum height of the box in pixels.
        raw: whether to show the text unformatted.
        against: another text; if the two are similar, words of ``text`` that the other text lacks are marked.
    """
    if not text.strip():
        st.caption(empty)
        return
    whole = len(text) <= CLIPPED_AT or st.toggle(f"Show all {len(text):,} characters", key=f"all-{key}")
    shown = text if whole else text[:CLIPPED_AT] + " …"
    style = f'style="max-height: {height}px"'
    escaped_label = html.escape(encodable(label))
    other = encodable(against) if against is not None and alike(text, against) else None
    body = written(encodable(shown), raw=raw, against=other)
    st.html(
        f'<div class="passage" dir="auto" tabindex="0" role="region" aria-label="{escaped_label}" {style}>{body}</div>'
    )


def answer(agent_answer: Answer, key: str, *, raw: bool, against: str | None = None) -> None:
    """Draw an agent's answer as a ``passage``, labelled with the agent's name."""
    empty = "The agent answered nothing." if agent_answer.has_text else NO_TEXTS
    passage(agent_answer.text, key, label=f"Answer of {agent_answer.agent}", empty=empty, raw=raw, against=against)


def thread(query: Query, *, last: int = 0) -> None:
    """Draw the earlier messages of a query's conversation: the latest ``last`` messages open, the others folded."""
    if query.messages:
        st.html(html_block(Thread(query.messages, "Earlier", last) if last else Thread(query.messages)))


def reference(query: Query, *, raw: bool) -> None:
    """Draw the reference answer of a query, if it has one."""
    if query.reference is not None:
        st.caption("Reference answer")
        passage(query.reference, "reference", label="Reference answer", empty="", height=220, raw=raw)


def raw_switch() -> bool:
    """Draw the switch that shows passages unformatted; returns whether it is on."""
    return st.toggle("Raw text", key="raw", bind="query-params")


@lru_cache(256)
def alike(left: str, right: str) -> bool:
    """Whether two texts differ in so few words that marking the differences helps the reader."""
    from rapidfuzz.distance import LCSseq

    if left == right or max(len(left), len(right)) > CLIPPED_AT:
        return False
    return float(LCSseq.normalized_similarity(_words([left]), _words([right]))) >= ALIKE


@lru_cache(64)
def written(text: str, *, raw: bool = False, against: str | None = None) -> str:
    """Convert a text to HTML without links, images or styles, but with every letter and digit of the text.

    Args:
        text: the text from outside; Markdown headings, lists, quotations, tables, code and emphasis are formatted.
        raw: whether to format no Markdown, and only escape the text.
        against: another text; words of ``text`` that the other text lacks are in ``<mark>``.
    """
    parts = _parts(text, raw)
    leaves = [part for part in parts if isinstance(part, _Leaf)]
    others = [] if against is None else [part for part in _parts(against, raw) if isinstance(part, _Leaf)]
    escaped = iter(_marked(leaves, others) if others else map(html.escape, leaves))
    return "".join(next(escaped) if isinstance(part, _Leaf) else part for part in parts)


class _Leaf(str):
    """Words of a text from outside, between HTML tags that this module writes; not yet escaped."""

    __slots__ = ()


_RULES: Final = (
    *("heading", "lheading", "list", "blockquote", "fence", "hr", "table"),
    *("newline", "escape", "backticks", "emphasis", "strikethrough"),
)
"""Rules of the Markdown parser that are enabled."""
_TAGS: Final = {
    **{tag: tag for tag in ("p", "ul", "ol", "li", "blockquote", "em", "strong", "s")},
    **{tag: tag for tag in ("table", "thead", "tbody", "tr", "th", "td")},
    **dict.fromkeys(("h1", "h2"), "h4"),
    **dict.fromkeys(("h3", "h4"), "h5"),
    **dict.fromkeys(("h5", "h6"), "h6"),
}
"""Allowed HTML tags and the tags that replace them: a text's headings rank below the page's headings."""
_VOID_TAGS: Final = {"softbreak": "<br>", "hardbreak": "<br>", "hr": "<hr>"}
_CODE: Final = {"code_inline": ("<code>", "</code>"), "fence": ("<pre><code>", "</code></pre>"), "text": ("", "")}


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("zero").enable(_RULES)


def _parts(text: str, raw: bool) -> list[str]:
    """The text as a list of HTML tags and ``_Leaf`` words; in one plain ``<div>`` if Markdown loses characters."""
    if not raw and len(text) <= MOST_MARKUP:
        tokens = _markdown().parse(text)
        parts = list(_markup_of(tokens))
        drawn_texts = (*(part for part in parts if isinstance(part, _Leaf)), *(token.info for token in tokens))
        if _letters(text) == sum(
            map(_letters, drawn_texts)
        ):  # fewer if it is nested too deep, or has cells without a column
            return parts
    return ['<div class="raw">', _Leaf(text), "</div>"]


def _markup_of(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "inline":
            yield from _markup_of(token.children or ())
        elif token.type in _CODE:
            before, after = _CODE[token.type]
            yield from (before, _Leaf(token.content), after)
        elif token.type in _VOID_TAGS:
            yield _VOID_TAGS[token.type]
        elif token.tag in _TAGS and not token.hidden:
            start = f' start="{int(first)}"' if (first := token.attrGet("start")) is not None else ""
            yield f"<{'/' if token.nesting < 0 else ''}{_TAGS[token.tag]}{start}>"


def _letters(text: str) -> int:
    """Number of letters and digits in a text."""
    return sum(map(str.isalnum, text))


def _words(leaves: Iterable[str]) -> list[str]:
    return [word.casefold() for leaf in leaves for word in leaf.split()]


def _marked(leaves: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """The escaped words of ``leaves``, with ``<mark>`` around words that ``others`` does not have there."""
    from rapidfuzz.distance import LCSseq

    steps = LCSseq.opcodes(_words(leaves), _words(others))
    common = {position for step in steps if step.tag == "equal" for position in range(step.src_start, step.src_end)}
    position = 0
    for leaf in leaves:
        words = []
        for word in re.split(r"(\s+)", leaf):
            is_marked = not (word.isspace() or not word) and position not in common
            position += not (word.isspace() or not word)
            words.append(f"<mark>{html.escape(word)}</mark>" if is_marked else html.escape(word))
        yield re.sub(r"</mark>(\s+)<mark>", r"\1", "".join(words))


def _line(line: TextLine) -> str:
    scrolls = ' tabindex="0" role="region" aria-label="Text"' * (line.style == "lead" and len(line.words) > 300)
    signs = "".join(f'<span class="sign {kind}">{_escape(sign)}</span>' for sign, kind in line.signs)
    return linked(f'<p class="said {line.style}"{scrolls}>{signs}{_escape(line.words)}</p>', line.link)


def _escape(words: str) -> str:
    return html.escape(encodable(words))


def nothing(words: str) -> None:
    """Draw a message that there is nothing to show yet, or that nothing matches the filters, and what to do."""
    st.info(words, icon=":material/inbox:")


def incomplete(words: str) -> None:
    """Draw a message that says how many results are missing and what to do."""
    st.warning(f"**Incomplete:** {words}", icon=":material/warning:")


def problem(words: str, error: Exception | str) -> None:
    """Draw an error: a message of the page, then the error's own message, which may quote texts from outside."""
    st.error(words, icon=":material/error:")
    plain(str(error))
