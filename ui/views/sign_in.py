"""Sign-in: what somebody sees before they have signed in, and who they are afterwards."""

from __future__ import annotations

import sys

import streamlit as st

from judges.errors import ConfigError
from ui import roles, text
from ui.access import Role
from ui.entrance import providers


def let_in() -> bool:
    """Draw the way in, or the way out; whether the page may be drawn."""
    if not roles.signing_in():
        return roles.allowed("view")
    try:
        return _let_in()
    except ConfigError as error:
        # For whoever runs the server: nobody else is told where its files are.
        sys.stderr.write(f"error: {error}\n")
        st.error("Nobody can be let in: the roles file cannot be used as it is now.", icon=":material/error:")
        return False


def _let_in() -> bool:
    person = roles.viewer()
    if person is None:
        _show_way_in()
        return False
    role = roles.role()
    with st.container(horizontal=True, vertical_alignment="center", key="account"):
        text.quiet(person.name if role is Role.NONE else f"{person.name}, {role}")
        st.button("Sign out", key="sign-out", type="tertiary", on_click=roles.sign_out)
    if role is Role.NONE:
        st.info("You have signed in, and have no role here yet. Ask whoever runs these pages for one.")
    return role is not Role.NONE


def _show_way_in() -> None:
    st.header("Sign in", anchor=False)
    st.caption("These pages are for people who sign in. What you may do here depends on who you are.")
    for name in providers(st.secrets["auth"]):
        label = "Sign in" if name is None else f"Sign in with {name}"
        st.button(label, key=f"sign-in-{name}", type="primary", on_click=st.login, args=(name,))
