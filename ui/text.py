"""Texts on the page: those from outside, shown as they are and never run, and our own messages, alike on every page.

Streamlit reads Markdown, LaTeX and emoji codes in most of what it draws, labels and messages included. So a text from
outside (an answer, document, query, reason or name) goes through this module, into a table of ``ui.show``, or into
a chart's data; never anywhere else.
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
from arena.present.files import html_block
from arena.present.markup import linked
from arena.present.numbers import clipped as clipped  # noqa: PLC0414 - offered here to all pages
from arena.present.numbers import encodable as encodable  # noqa: PLC0414

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from arena.config.settings import StoredSettings
    from judges.types import Answer, Query

CLIPPED_AT: Final = 10_000
"""Characters of a passage shown at first; the rest is one click away."""

MOST_MARKUP: Final = 30_000
"""Characters of a text that is read as Markdown; longer ones are shown as they are."""

HEIGHT: Final = 320
"""Pixels of a passage's box; longer ones scroll inside it."""

NO_TEXTS: Final = (
    "The answers' texts were not imported: `ragleague import` takes them with `--queries` and `--answers`."
)
IMPORTED: Final = "These verdicts were imported: a run brings the rest, of a YAML file that `ragleague init` writes."

ALIKE: Final = 0.5
"""Share of words that two texts have in the same order, from which their differences are marked.

Answers to different questions share up to a third by chance (three sets of English answers, 11,311 pairs: at most 0.33,
99 % of them 0.17). From a half on, what is marked is the smaller part.
"""


def plain(text: str, *, empty: str = "") -> None:
    """A text in body type, wrapped, without any markup; ``empty`` (our own words) where there is none."""
    if text.strip():
        st.text(encodable(text))
    elif empty:
        st.caption(empty)


Tone: TypeAlias = Literal["good", "bad", ""]
"""Colours a sign."""


class TextLine(Struct, frozen=True):
    """A line of words from outside.

    Attributes:
        style: ``lead`` is the sentence a page is about, ``strong`` a name or headline, ``quiet`` a remark.
        signs: in boxes before the words.
        link: address that the words lead to.
    """

    style: Literal["lead", "strong", "quiet", "body"]
    words: str
    signs: Sequence[tuple[str, Tone]] = ()
    link: str = ""


def lines(*own: TextLine, width: Literal["stretch", "content"] = "stretch") -> None:
    """Lines below each other, but empty ones: one element of the page, as a browser takes long over many."""
    if drawn := "".join(_line(line) for line in own if line.words):
        st.html(drawn, width=width)


def strong(words: str, *, width: Literal["stretch", "content"] = "stretch") -> None:
    """A name or headline from outside."""
    lines(TextLine("strong", words), width=width)


def quiet(words: str) -> None:
    """A remark that holds text from outside."""
    lines(TextLine("quiet", words))


def lead(words: str) -> None:
    """The sentence a page is about."""
    lines(TextLine("lead", words))


def passage(
    text: str, key: str, *, label: str, empty: str, height: int = HEIGHT, raw: bool = False, against: str | None = None
) -> None:
    """A text from outside, as sanitised Markdown in a box that scrolls; a very long one is clipped until asked for.

    Args:
        text: from outside.
        key: unique on the page.
        label: what a screen reader calls the box.
        empty: our own words where there is no text.
        height: most pixels of the box.
        raw: show the text as it was written.
        against: another text; where they are alike, the words that it lacks are marked.
    """
    if not text.strip():
        st.caption(empty)
        return
    whole = len(text) <= CLIPPED_AT or st.toggle(f"Show all {len(text):,} characters", key=f"all-{key}")
    shown = text if whole else text[:CLIPPED_AT] + " …"
    style = f'style="max-height: {height}px"'
    named = html.escape(encodable(label))
    other = encodable(against) if against is not None and alike(text, against) else None
    body = written(encodable(shown), raw=raw, against=other)
    st.html(f'<div class="passage" dir="auto" tabindex="0" role="region" aria-label="{named}" {style}>{body}</div>')


def answer(own: Answer, key: str, *, raw: bool, against: str | None = None) -> None:
    """An agent's answer as a ``passage``, under its name."""
    empty = "The agent answered nothing." if own.has_text else NO_TEXTS
    passage(own.text, key, label=f"Answer of {own.agent}", empty=empty, raw=raw, against=against)


def thread(query: Query) -> None:
    """What was said before a query in its conversation, folded, where anything was."""
    if query.messages:
        st.html(html_block(Thread(query.messages)))


def reference(query: Query, *, raw: bool) -> None:
    """The reference answer of a query, where it has one."""
    if query.reference is not None:
        st.caption("Reference answer")
        passage(query.reference, "reference", label="Reference answer", empty="", height=220, raw=raw)


def raw_switch() -> bool:
    """Whether a page's passages are shown as they were written; for a page that has some."""
    return st.toggle("Raw text", key="raw", bind="query-params", help="Show texts as they were written, not formatted.")


@lru_cache(256)
def alike(left: str, right: str) -> bool:
    """Whether two texts differ, and in so few words that marking them says something."""
    from rapidfuzz.distance import LCSseq

    if left == right or max(len(left), len(right)) > CLIPPED_AT:
        return False
    return float(LCSseq.normalized_similarity(_words([left]), _words([right]))) >= ALIKE


@lru_cache(64)
def written(text: str, *, raw: bool = False, against: str | None = None) -> str:
    """A text as HTML that asks for nothing: no link, image or style, and every letter and digit of the text.

    Args:
        text: from outside; its headings, lists, quotations, tables, code and emphasis are read as Markdown.
        raw: read none, escape it only.
        against: another text; words that it lacks are in ``<mark>``.
    """
    parts = _parts(text, raw)
    leaves = [part for part in parts if isinstance(part, _Leaf)]
    others = [] if against is None else [part for part in _parts(against, raw) if isinstance(part, _Leaf)]
    drawn = iter(_marked(leaves, others) if others else map(html.escape, leaves))
    return "".join(next(drawn) if isinstance(part, _Leaf) else part for part in parts)


class _Leaf(str):
    """Words of a text between our own tags, not yet escaped."""

    __slots__ = ()


_RULES: Final = (
    *("heading", "lheading", "list", "blockquote", "fence", "hr", "table"),
    *("newline", "escape", "backticks", "emphasis", "strikethrough"),
)
"""What is read of Markdown; nothing else is."""
_TAGS: Final = {
    **{tag: tag for tag in ("p", "ul", "ol", "li", "blockquote", "em", "strong", "s")},
    **{tag: tag for tag in ("table", "thead", "tbody", "tr", "th", "td")},
    **dict.fromkeys(("h1", "h2"), "h4"),
    **dict.fromkeys(("h3", "h4"), "h5"),
    **dict.fromkeys(("h5", "h6"), "h6"),
}
"""Tags that are drawn; headings of a text stand below those of the page."""
_ALONE: Final = {"softbreak": "<br>", "hardbreak": "<br>", "hr": "<hr>"}
_CODE: Final = {"code_inline": ("<code>", "</code>"), "fence": ("<pre><code>", "</code></pre>"), "text": ("", "")}


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("zero").enable(_RULES)


def _parts(text: str, raw: bool) -> list[str]:
    """Our own tags and the words between them."""
    if not raw and len(text) <= MOST_MARKUP:
        tokens = _markdown().parse(text)
        parts = list(_drawn(tokens))
        kept = (*(part for part in parts if isinstance(part, _Leaf)), *(token.info for token in tokens))
        if _letters(text) == sum(map(_letters, kept)):  # else it is nested too deep, or has cells without a column
            return parts
    return ['<div class="raw">', _Leaf(text), "</div>"]


def _drawn(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "inline":
            yield from _drawn(token.children or ())
        elif token.type in _CODE:
            before, after = _CODE[token.type]
            yield from (before, _Leaf(token.content), after)
        elif token.type in _ALONE:
            yield _ALONE[token.type]
        elif token.tag in _TAGS and not token.hidden:
            start = f' start="{int(first)}"' if (first := token.attrGet("start")) is not None else ""
            yield f"<{'/' if token.nesting < 0 else ''}{_TAGS[token.tag]}{start}>"


def _letters(text: str) -> int:
    """How many letters and digits a text has."""
    return sum(map(str.isalnum, text))


def _words(leaves: Iterable[str]) -> list[str]:
    return [word.casefold() for leaf in leaves for word in leaf.split()]


def _marked(leaves: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """The leaves, escaped, with marks around runs of words that the others lack there."""
    from rapidfuzz.distance import LCSseq

    steps = LCSseq.opcodes(_words(leaves), _words(others))
    common = {place for step in steps if step.tag == "equal" for place in range(step.src_start, step.src_end)}
    place = 0
    for leaf in leaves:
        drawn = []
        for word in re.split(r"(\s+)", leaf):
            is_apart = not (word.isspace() or not word) and place not in common
            place += not (word.isspace() or not word)
            drawn.append(f"<mark>{html.escape(word)}</mark>" if is_apart else html.escape(word))
        yield re.sub(r"</mark>(\s+)<mark>", r"\1", "".join(drawn))


def _line(own: TextLine) -> str:
    signs = "".join(f'<span class="sign {kind}">{_inert(sign)}</span>' for sign, kind in own.signs)
    return linked(f'<p class="said {own.style}">{signs}{_inert(own.words)}</p>', own.link)


def _inert(words: str) -> str:
    return html.escape(encodable(words))


def query_label(query_id: str, query: str) -> str:
    """A query as an option; a page's address holds it like this."""
    return f"{query_id}: {clipped(query, 60)}"


def nothing(words: str) -> None:
    """There is nothing to show yet, or nothing that passes the filters; the words, our own, say what to do."""
    st.info(words, icon=":material/inbox:")


def lacking(words: str, yaml: str, settings: StoredSettings) -> None:
    """A tournament lacks what a section of its YAML file would bring.

    Args:
        words: what is not there; our own.
        yaml: the section.
        settings: the tournament's; where it has the section a run is missing, and imported verdicts have no file.
    """
    if settings.imported:
        nothing(f"{words} {IMPORTED}")
        return
    if settings.section(yaml.partition(":")[0]) is not None:
        nothing(f"{words} Judges come first: `ragleague run` asks them.")
        return
    with st.container(border=True):
        st.markdown(words)
        st.code(yaml, language="yaml")
        st.caption("Add this to the tournament's YAML file, then run `ragleague run`.")


def no_tournament() -> None:
    """The store is empty, and what to do."""
    nothing("This store holds no tournament yet. Run `ragleague run` with your YAML file and come back.")


def incomplete(words: str) -> None:
    """Something is missing from what is shown; the words, our own, say how much and what to do."""
    st.warning(f"**Incomplete:** {words}", icon=":material/warning:")


def problem(words: str, error: Exception | str) -> None:
    """Something cannot be done, or was not; the words are our own, those of the error may quote texts from outside."""
    st.error(words, icon=":material/error:")
    plain(str(error))
