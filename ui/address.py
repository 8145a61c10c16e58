"""What a page's address says: the state of its fields, so that a link shows what its sender saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

Option = TypeVar("Option")
_UNKNOWN = "unknown-in-address"


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
    asked = st.query_params.get(key)
    if asked and asked not in {words(option) for option in options}:
        st.session_state.setdefault(_UNKNOWN, []).append(label)
    chosen: Option | None = st.selectbox(
        label, options, index=None, placeholder="any", format_func=words, key=key, bind="query-params", **given
    )
    return chosen


def say_what_is_unknown() -> None:
    """A note on what the address asked for and the page does not have; once, after the fields are drawn."""
    if names := st.session_state.pop(_UNKNOWN, []):
        fields = ", ".join(names)
        st.warning(f"The address asks for something that is not here, so it was left out: {fields}.")
