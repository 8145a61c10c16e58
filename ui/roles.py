"""The present viewer of a page: who they are and what they may do. Asked at every action, not only at drawing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import streamlit as st

from judges.errors import InputError
from ui.access import Access, Action, Person, Role, SignIns, load_access, person_of

ROLES_VARIABLE: Final = "RAGLEAGUE_UI_ROLES"
"""Environment variable through which ``ui.serve`` says that people sign in, and which file gives them their roles."""
EVERYBODY_VARIABLE: Final = "RAGLEAGUE_UI_EVERYBODY"
"""Environment variable through which ``ui.serve`` says which role everybody has where nobody signs in."""

_SIGN_INS: Final = SignIns(time.time())


def allowed(action: Action) -> bool:
    """Whether the present viewer may do this now.

    Raises:
        InputError: nobody said who may do what, or the roles file cannot be used. Then nobody may do anything.
    """
    return role().may(action)


def viewer() -> Person | None:
    """Who has signed in; ``None`` where nobody has, or nobody needs to.

    Raises:
        InputError: the roles file cannot be used.
    """
    access = _access()
    return None if access is None else _person(access)


def signing_in() -> bool:
    """Whether people have to sign in."""
    return ROLES_VARIABLE in os.environ


def role() -> Role:
    """The present viewer's role; nobody's is ``none``.

    Raises:
        InputError: see ``allowed``.
    """
    access = _access()
    if access is not None:
        person = _person(access)
        return Role.NONE if person is None else access.role_of(person)
    if EVERYBODY_VARIABLE not in os.environ:
        raise InputError(f"{EVERYBODY_VARIABLE} gives nobody a role: start the pages with 'ragleague ui'")
    return Role(os.environ[EVERYBODY_VARIABLE])


def sign_out() -> None:
    """End all sign-ins of the present viewer, in other tabs and browsers too.

    Raises:
        InputError: the roles file cannot be used.
    """
    if (person := viewer()) is not None:
        _SIGN_INS.end(person)
    st.logout()


def _person(access: Access) -> Person | None:
    person = person_of(st.user.to_dict(), access)
    return person if person is not None and _SIGN_INS.counts(person) else None


def _access() -> Access | None:
    return load_access(Path(os.environ[ROLES_VARIABLE])) if signing_in() else None
