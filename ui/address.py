"""What a page's address says: the state of its fields, so that a link shows what its sender saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

if TYPE_CHECKING:
    from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

    from ui.data import Source

Option = TypeVar("Option")
_UNKNOWN = "unknown-in-address"

TOURNAMENT: Final = "tournament"
"""In the address of every page: the tournament that it shows."""
GROUP: Final = "group"
"""In addresses: the group of queries that is shown, as ``column: value``."""
_KEPT: Final = (GROUP, "annotator")
"""What every link carries besides the tournament, where the address has it."""
FIRST: Final = "leaderboard"
"""The page at the root."""


def link(page: str, source: Source, **fields: str) -> str:
    """The address of a page, from any other; it carries what the viewer has chosen for all pages.

    Args:
        page: as addresses call it.
        source: what is shown.
        fields: what the page's own fields say, as they spell it.
    """
    return links(page, source)(**fields)


def links(page: str, source: Source) -> Callable[..., str]:
    """Makes many such addresses of one page: what is carried is read once. Fields without a value are left out."""
    asked = st.query_params.to_dict()
    carried = {TOURNAMENT: source.tournament} | {name: asked[name] for name in _KEPT if name in asked}
    before = f"{'./' if page == FIRST else page}?{urlencode(carried)}"

    def of(**fields: str) -> str:
        given = urlencode({name: value for name, value in fields.items() if value})
        return f"{before}&{given}" if given else before

    return of


def view(names: Sequence[str]) -> str:
    """Which part of the page the address names under ``view``, else the first."""
    note_unless("part of the page", "view", names.__contains__)
    asked = st.query_params.get("view", names[0])
    return asked if asked in names else names[0]


def forget_fields() -> None:
    """Let fields of the page before take nothing out of the address that a link or the browser's history led to.

    Streamlit takes out what no field of the new page is bound to, although that page may read it itself.
    """
    context = get_script_run_ctx()
    if context is not None and context.is_history_navigation:
        with context.session_state.query_params() as parameters:
            for name in parameters.to_dict():
                if (binding := parameters.get_binding_for_param(name)) is not None:
                    parameters.unbind_widget(binding.widget_id)


def choose(
    label: str, options: Sequence[Option], key: str, words: Callable[[Option], str] = str, **given: Any
) -> Option | None:
    """One of the options, or none of them: any; arguments as for ``pick``."""
    return pick(label, options, key, words, index=None, placeholder="any", **given)


def pick(label: str, options: Sequence[Option], key: str, words: Callable[[Option], str] = str, **given: Any) -> Option:
    """One of the options, the first if the address names none. It holds it under ``key``, as ``words`` spells it.

    A value of the address that is no option is left out, with a note on the page (``say_what_is_unknown``).

    Args:
        label: of the field.
        options: all of one kind.
        key: of the field, and in the address.
        words: an option as it is shown.
        given: further arguments of ``st.selectbox``.
    """
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
    """A note on what the address asked for and the page does not have; once its fields are drawn."""
    if names := st.session_state.pop(_UNKNOWN, []):
        fields = ", ".join(names)
        st.warning(f"The address asks for something that is not here, so it was left out: {fields}.")
