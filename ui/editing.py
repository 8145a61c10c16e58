"""What the pages may edit: files that the configuration names, in its folder. Started on a store, nothing.

A page writes only where somebody pressed a button of it, never by its address, and only through
``arena.data.safe_files``.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from arena.config.whole import Config, load_config
from judges.errors import InputError, RagleagueError
from ui import text
from ui.access import allowed, viewer
from ui.text import problem

CONFIG_VARIABLE: Final = "RAGLEAGUE_UI_CONFIG"
"""Environment variable through which ``ui.serve`` tells the pages which configuration they were started with."""
_REFUSED: Final = "refused"


@dataclass(frozen=True)
class Session:
    """The configuration that the pages were started with, as it is now.

    Attributes:
        path: the YAML file.
        config: what it says.
    """

    path: Path
    config: Config

    @property
    def folder(self) -> Path:
        """Nothing outside of it is written."""
        return self.path.resolve().parent


def session() -> Session | None:
    """The configuration, read anew at every call; ``None`` where the pages were started on a store, or not for editors.

    Raises:
        ConfigError: it cannot be used any more.
    """
    given = os.environ.get(CONFIG_VARIABLE)
    return Session(Path(given), load_config(Path(given))) if given and allowed("edit") else None


def check_editor() -> None:
    """For what a button calls, which was drawn before: whether the viewer may still edit.

    Raises:
        InputError: they may not.
    """
    if not allowed("edit"):
        raise InputError("your role does not allow edits any more")


def attempt(action: Callable[..., None], *given: object) -> None:
    """Do what an editor's button says, or let ``say_refused`` say with the next drawing why not."""
    try:
        check_editor()
        action(*given)
    except (RagleagueError, ValueError) as error:
        st.session_state[_REFUSED] = str(error)


def say_refused(words: str) -> None:
    """Say, once, why what the viewer's last press asked for was not done, if it was not."""
    if refused := st.session_state.pop(_REFUSED, None):
        problem(words, refused)


def why_not() -> str:
    """Where there is no session, why, and what to do; our own words."""
    if not allowed("edit"):
        return "To read only: your role does not include edits."
    return "To read only: these pages were started on a store. `ragleague ui CONFIG` opens them for edits."


def ask_name(label: str, key: str) -> None:
    """Draw who edits, where nobody has signed in to be asked: the user of this machine, if they change nothing."""
    person = viewer()
    if person is None:
        st.text_input(label, _user(), key=key, max_chars=80, width=320)
    else:
        text.quiet(f"Kept under your name: {person.name}")


def named(key: str) -> str:
    """Who edits: whoever has signed in, else the name given there."""
    person = viewer()
    return str(st.session_state[key]).strip() if person is None else person.name


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return ""
