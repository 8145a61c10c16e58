"""URLs of the pages. A URL holds the values of the page's fields, so that a link shows what its sender saw."""

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
"""Name of the URL parameter for the tournament, which every page has."""
GROUP: Final = "group"
"""Name of the URL parameter for the selected group of queries; its value is ``column: value``."""
FIRST: Final = "leaderboard"
"""Name of the page that is shown at the root URL."""


def link(page: str, source: Source, **fields: str) -> str:
    """The URL of a page; it keeps the tournament and the selected group of queries.

    Args:
        page: the page's name in URLs.
        source: the tournament to show.
        fields: values of the page's fields, as text, by the fields' names.
    """
    return links(page, source)(**fields)


def links(page: str, source: Source) -> Callable[..., str]:
    """Return a function that makes the page's URL from values of its fields; it leaves out empty values."""
    carried = {TOURNAMENT: source.tournament}
    if GROUP in st.query_params:
        carried[GROUP] = st.query_params[GROUP]
    base = f"{'./' if page == FIRST else page}?{urlencode(carried)}"

    def of(**fields: str) -> str:
        field_query = urlencode({name: value for name, value in fields.items() if value})
        return f"{base}&{field_query}" if field_query else base

    return of


def view(names: Sequence[str]) -> str:
    """Name of the page's part that the URL selects with ``view``; by default the first part."""
    note_unless("part of the page", "view", names.__contains__)
    requested = st.query_params.get("view", names[0])
    return requested if requested in names else names[0]


def forget_fields() -> None:
    """After the browser goes back or forward, unbind the previous page's fields, so that the URL stays complete.

    Otherwise Streamlit removes URL parameters that no field of the new page is bound to, even if the page reads them
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
    """Like ``pick``, for a field that may stay empty; returns ``None`` if the viewer chooses no option.

    Arguments as for ``pick``.
    """
    return pick(label, options, key, words, index=None, placeholder="any", **given)


def pick(label: str, options: Sequence[Option], key: str, words: Callable[[Option], str] = str, **given: Any) -> Option:
    """Draw a field in which the viewer chooses an option; returns the option. The URL holds its text under ``key``.

    An unknown value in the URL is dropped, with a note on the page (``say_what_is_unknown``).

    Args:
        label: label of the field.
        options: the options, all of one type; the first is the default.
        key: name of the field, also in the URL.
        words: returns the text to show for an option.
        given: further arguments of ``st.selectbox``.
    """
    _note_unknown(label, key, map(words, options))
    chosen: Option = st.selectbox(label, options, format_func=words, key=key, bind="query-params", **given)
    return chosen


def switch(label: str, options: Sequence[Option], key: str, **given: Any) -> Option:
    """Like ``pick``, but show all options side by side; ``given`` are further arguments of ``st.segmented_control``."""
    _note_unknown(label, key, map(str, options))
    chosen: Option = st.segmented_control(
        label, options, default=options[0], required=True, key=key, bind="query-params", **given
    )
    return chosen


def unfold(label: str, key: str, *fields: str) -> ExpanderContainer:
    """Draw an expander and return it; callers draw the content only while the expander is ``open``.

    The URL holds under ``key`` whether it is open. It is open at first if the URL has a value for one of ``fields``,
    the fields inside the expander.
    """
    if key not in st.session_state and not st.query_params.keys().isdisjoint(fields):
        st.session_state[key] = True
    return st.expander(label, key=key, on_change="rerun", bind="query-params")


def note_unless(label: str, key: str, fits: Callable[[str], object]) -> None:
    """If ``fits`` rejects the URL's value of ``key``, remember the field's ``label`` for ``say_what_is_unknown``."""
    value = st.query_params.get(key)
    if value and not fits(value):
        st.session_state.setdefault(_UNKNOWN, []).append(label)


def _note_unknown(label: str, key: str, known: Iterable[str]) -> None:
    note_unless(label, key, set(known).__contains__)


def say_what_is_unknown() -> None:
    """Draw a warning that names the fields with unknown values in the URL; call it after the fields are drawn."""
    if names := st.session_state.pop(_UNKNOWN, []):
        fields = ", ".join(names)
        st.warning(f"The address asks for something that is not here, so it was left out: {fields}.")
