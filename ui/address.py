"""What a page's address says: the state of its fields, so that a link shows what its sender saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

import streamlit as st

from ui import text

if TYPE_CHECKING:
    from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

    from ui.data import Source

Option = TypeVar("Option")
_UNKNOWN = "unknown-in-address"

TOURNAMENT: Final = "tournament"
"""In the address of every page: the tournament that it shows."""
GROUP: Final = "group"
"""In addresses: the group of queries that is shown, as ``column: value``."""
_TOURNAMENT_SHOWN: Final = "tournament-shown"
"""In the session: the tournament that the viewer saw last, for a page that the menu opens without saying which."""
_TOURNAMENT_FIELD: Final = "tournament-field"


def tournament(names: Sequence[str]) -> str | None:
    """The tournament that the page shows; with several the viewer can choose.

    Args:
        names: of all there are, the newest last.

    Returns:
        The one that the address names, else the one that the viewer saw last, else the newest. ``None`` if the address
        names one that is not here, which is said: no other one is shown in its place.
    """
    asked = st.query_params.get(TOURNAMENT)
    name = asked or st.session_state.get(_TOURNAMENT_SHOWN, names[-1])
    if name not in names:
        st.error("The address asks for a tournament that this store does not hold.", icon=":material/error:")
        text.plain(name)
    if len(names) > 1 or name not in names:
        st.session_state[_TOURNAMENT_FIELD] = name if name in names else None
        st.selectbox("Tournament", names, key=_TOURNAMENT_FIELD, on_change=_choose_tournament, width=420)
    else:
        text.quiet(f"Tournament: {name}")
    if name not in names:
        return None
    st.session_state[_TOURNAMENT_SHOWN] = name
    if asked != name:
        st.query_params[TOURNAMENT] = name
    return name


def _choose_tournament() -> None:
    if chosen := st.session_state[_TOURNAMENT_FIELD]:
        st.query_params[TOURNAMENT] = chosen


def view(names: Sequence[str]) -> str:
    """Which part of the page the address names under ``view``, else the first; with several the viewer can choose."""
    if len(names) == 1:
        return names[0]
    return switch("Part of the page", names, "view", format_func=str.capitalize, label_visibility="collapsed")


def link(page: str, source: Source, **fields: str) -> str:
    """The address of a page, from any other; it carries what the viewer has chosen for all pages.

    Args:
        page: as addresses call it.
        source: what is shown.
        fields: what the page's own fields say, as they spell it.
    """
    everywhere = {TOURNAMENT: source.tournament}
    if source.group is not None:
        everywhere[GROUP] = ": ".join(source.group)
    return f"{page}?{urlencode(everywhere | fields)}"


def choose(
    label: str, options: Sequence[Option], key: str, words: Callable[[Option], str] = str, **given: Any
) -> Option | None:
    """One of the options, or none of them: any. The address holds it under ``key``, as ``words`` spells it.

    A value of the address that is no option is left out, with a note on the page (``say_what_is_unknown``).

    Args:
        label: of the field.
        options: all of one kind.
        key: of the field, and in the address.
        words: an option as it is shown.
        given: further arguments of ``st.selectbox``.
    """
    _note_unknown(label, key, map(words, options))
    chosen: Option | None = st.selectbox(
        label, options, index=None, placeholder="any", format_func=words, key=key, bind="query-params", **given
    )
    return chosen


def pick(label: str, options: Sequence[Option], key: str, words: Callable[[Option], str] = str, **given: Any) -> Option:
    """One of the options, the first if the address names none; arguments as for ``choose``."""
    _note_unknown(label, key, map(words, options))
    chosen: Option = st.selectbox(label, options, format_func=words, key=key, bind="query-params", **given)
    return chosen


def switch(label: str, options: Sequence[Option], key: str, **given: Any) -> Option:
    """As ``pick``, all of a few options in sight; ``given`` are further arguments of ``st.segmented_control``."""
    _note_unknown(label, key, map(str, options))
    chosen: Option = st.segmented_control(
        label, options, default=options[0], required=True, key=key, bind="query-params", **given
    )
    return chosen


def unfold(label: str, key: str, *fields: str) -> ExpanderContainer:
    """An expander whose content is to be drawn only if it is ``open``; the address holds under ``key`` whether it is.

    It begins open where the address holds one of the fields in it.
    """
    if key not in st.session_state and not st.query_params.keys().isdisjoint(fields):
        st.session_state[key] = True
    return st.expander(label, key=key, on_change="rerun", bind="query-params")


def note_unless(label: str, key: str, fits: Callable[[str], object]) -> None:
    """Remember that the address holds something under ``key`` that does not fit the field of this label, if so."""
    asked = st.query_params.get(key)
    if asked and not fits(asked):
        st.session_state.setdefault(_UNKNOWN, []).append(label)


def _note_unknown(label: str, key: str, known: Iterable[str]) -> None:
    note_unless(label, key, set(known).__contains__)


def say_what_is_unknown() -> None:
    """A note on what the address asked for and the page does not have; after some fields are drawn."""
    if names := st.session_state.pop(_UNKNOWN, []):
        fields = ", ".join(names)
        st.warning(f"The address asks for something that is not here, so it was left out: {fields}.")
