"""Page addresses. An address holds the values of the page's fields, so that a link shows what its sender saw."""

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
"""Name of the query parameter for the tournament, which every page has."""
GROUP: Final = "group"
"""Name of the query parameter for the group of queries; its value is ``column: value``."""
FIRST: Final = "leaderboard"
"""The page at the root address."""


def link(page: str, source: Source, **fields: str) -> str:
    """The address of a page; it keeps the choices that apply to all pages.

    Args:
        page: the page's name in addresses.
        source: the tournament to show.
        fields: values of the page's fields, as text.
    """
    return links(page, source)(**fields)


def links(page: str, source: Source) -> Callable[..., str]:
    """Make a function that returns the page's address for values of its fields; it leaves out empty values."""
    carried = {TOURNAMENT: source.tournament}
    if GROUP in st.query_params:
        carried[GROUP] = st.query_params[GROUP]
    base = f"{'./' if page == FIRST else page}?{urlencode(carried)}"

    def of(**fields: str) -> str:
        field_query = urlencode({name: value for name, value in fields.items() if value})
        return f"{base}&{field_query}" if field_query else base

    return of


def view(names: Sequence[str]) -> str:
    """The part of the page that the address names under ``view``; by default the first part."""
    note_unless("part of the page", "view", names.__contains__)
    requested = st.query_params.get("view", names[0])
    return requested if requested in names else names[0]


def forget_fields() -> None:
    """After a navigation of the browser, unbind the previous page's fields, so that the new address stays complete.

    Otherwise Streamlit removes parameters that no field of the new page is bound to, even if the page reads them
    itself.
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
    """Draw a field in which the viewer may choose an option; returns ``None`` if they choose none.

    Arguments as for ``pick``.
    """
    return pick(label, options, key, words, index=None, placeholder="any", **given)


def pick(label: str, options: Sequence[Option], key: str, words: Callable[[Option], str] = str, **given: Any) -> Option:
    """Draw a field in which the viewer chooses an option; returns it. Its text is in the address under ``key``.

    An unknown value in the address is dropped, with a note on the page (``say_what_is_unknown``).

    Args:
        label: label of the field.
        options: the options, all of one type; the first is the default.
        key: name of the field, also in the address.
        words: returns the text of an option.
        given: further arguments of ``st.selectbox``.
    """
    _note_unknown(label, key, map(words, options))
    chosen: Option = st.selectbox(label, options, format_func=words, key=key, bind="query-params", **given)
    return chosen


def switch(label: str, options: Sequence[Option], key: str, **given: Any) -> Option:
    """Like ``pick``, but shows all options; ``given`` are further arguments of ``st.segmented_control``."""
    _note_unknown(label, key, map(str, options))
    chosen: Option = st.segmented_control(
        label, options, default=options[0], required=True, key=key, bind="query-params", **given
    )
    return chosen


def unfold(label: str, key: str, *fields: str) -> ExpanderContainer:
    """Draw an expander and return it; draw its content only if it is ``open``.

    The address holds its state under ``key``. The expander is open at first if the address holds a value for one of
    the fields inside it.
    """
    if key not in st.session_state and not st.query_params.keys().isdisjoint(fields):
        st.session_state[key] = True
    return st.expander(label, key=key, on_change="rerun", bind="query-params")


def note_unless(label: str, key: str, fits: Callable[[str], object]) -> None:
    """If the field rejects the value under ``key`` in the address, make a note for ``say_what_is_unknown``."""
    value = st.query_params.get(key)
    if value and not fits(value):
        st.session_state.setdefault(_UNKNOWN, []).append(label)


def _note_unknown(label: str, key: str, known: Iterable[str]) -> None:
    note_unless(label, key, set(known).__contains__)


def say_what_is_unknown() -> None:
    """Draw a warning about unknown values in the address; call it after the fields are drawn."""
    if names := st.session_state.pop(_UNKNOWN, []):
        fields = ", ".join(names)
        st.warning(f"The address asks for something that is not here, so it was left out: {fields}.")
