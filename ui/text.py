"""Texts on the page: those from outside, shown as they are and never run, and our own messages, alike on every page.

Streamlit reads Markdown, LaTeX and emoji codes in most of what it draws, labels and messages included. So a text from
outside (an answer, document, query, reason or name) goes through this module, into a cell of ``st.dataframe``, or into
a chart's data; never anywhere else.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import streamlit as st

from arena.present.numbers import clipped as clipped  # noqa: PLC0414 - offered here to all pages
from arena.present.numbers import encodable as encodable  # noqa: PLC0414

CLIPPED_AT: Final = 4000
"""Characters of a passage shown at first; the rest is one click away."""

HEIGHT: Final = 320
"""Pixels of a passage's box; longer ones scroll inside it."""


def plain(text: str, *, empty: str = "") -> None:
    """A text in body type, wrapped, without any markup; ``empty`` (our own words) where there is none."""
    if text.strip():
        st.text(encodable(text))
    elif empty:
        st.caption(empty)


Kind: TypeAlias = Literal["good", "bad", ""]
"""Colours a sign."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of words from outside.

    Attributes:
        style: ``lead`` is the sentence a page is about, ``strong`` a name or headline, ``quiet`` a remark.
        signs: in boxes before the words.
    """

    style: Literal["lead", "strong", "quiet", "body"]
    words: str
    signs: Sequence[tuple[str, Kind]] = ()


def lines(*own: Line) -> None:
    """Lines below each other, but empty ones: one element of the page, as a browser takes long over many."""
    if drawn := "".join(_line(line) for line in own if line.words):
        st.html(drawn)


def strong(words: str) -> None:
    """A name or headline from outside."""
    lines(Line("strong", words))


def quiet(words: str) -> None:
    """A remark that holds text from outside."""
    lines(Line("quiet", words))


def lead(words: str) -> None:
    """The sentence a page is about."""
    lines(Line("lead", words))


def passage(text: str, key: str, *, empty: str, height: int = HEIGHT, border: bool | None = None) -> None:
    """A text of any length in a box of bounded height; a very long one is clipped until asked for.

    Args:
        text: from outside.
        key: unique on the page.
        empty: our own words where there is no text.
        height: of the box, in pixels; a short text gets a lower box.
        border: around the box; ``None`` draws it where the text may scroll.
    """
    is_long = len(text) > CLIPPED_AT
    whole = is_long and st.toggle(f"Show all {len(text):,} characters", key=f"all-{key}")
    shown = text if whole or not is_long else text[:CLIPPED_AT] + " …"
    with st.container(border=border, height=height if _fills(text, height) else "content", key=f"passage-{key}"):
        plain(shown, empty=empty)


def marked_passage(marked: str, key: str) -> None:
    """A text as ``ui.views.game.marked`` escapes it, in a box like that of ``passage``."""
    with st.container(border=True, height=HEIGHT if _fills(marked, HEIGHT) else "content", key=f"passage-{key}"):
        st.html(f'<div class="marked">{encodable(marked)}</div>')


def _line(own: Line) -> str:
    signs = "".join(f'<span class="sign {kind}">{_inert(sign)}</span>' for sign, kind in own.signs)
    return f'<p class="said {own.style}">{signs}{_inert(own.words)}</p>'


def _inert(words: str) -> str:
    return html.escape(encodable(words))


def query_label(query_id: str, query: str) -> str:
    """A query as an option; a page's address holds it like this."""
    return f"{query_id}: {clipped(query, 60)}"


def _fills(text: str, height: int) -> bool:
    """Whether a text may need more than the height, with lines of some 45 characters as on a phone."""
    lines = sum(1 + len(line) // 45 for line in text[: CLIPPED_AT + 1].splitlines())
    return lines * 24 > height


def nothing(words: str, *, yaml: str = "") -> None:
    """There is nothing to show yet, or nothing that passes the filters; the words, our own, say what to do.

    Args:
        words: what is not there, and what to do.
        yaml: what to add to the tournament's YAML file, where that is what is missing.
    """
    if not yaml:
        st.info(words, icon=":material/inbox:")
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
