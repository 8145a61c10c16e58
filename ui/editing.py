"""The editor of the pages: who may edit which files, what they have changed so far, and how that is saved.

Only files that the configuration names, in its folder, are edited; pages started on a store edit nothing. A page writes
where somebody pressed a button of it, never by its address, and only through ``arena.data.safe_files``.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import streamlit as st

from arena.config.whole import Config, load_config
from arena.data import safe_files
from arena.present.table import Table
from judges.errors import InputError, RagleagueError
from ui import text
from ui.access import allowed, viewer
from ui.address import unfold
from ui.show import show_table
from ui.text import problem

CONFIG_VARIABLE: Final = "RAGLEAGUE_UI_CONFIG"
"""Environment variable through which ``ui.serve`` tells the pages which configuration they were started with."""
_REFUSED: Final = "refused"
_SAVED: Final = "saved"


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


Content = TypeVar("Content")


@dataclass
class Draft(Generic[Content]):
    """What one person has made of a file and not saved.

    Attributes:
        path: the file.
        digest: of its bytes when they began.
        before: what it held then.
        after: what it is to hold.
    """

    path: Path
    digest: str | None
    before: Content
    after: Content

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to save."""
        return self.before != self.after


AnyDraft = TypeVar("AnyDraft", bound="Draft[Any]")


def draft(key: str, path: Path, begin: Callable[[str | None], AnyDraft]) -> AnyDraft:
    """This person's draft of a file; without changes of theirs, of the file as it is now.

    Args:
        key: of the draft in the session.
        path: of the file.
        begin: makes a draft of the file as it is, from its digest, which is taken before.
    """
    known: AnyDraft | None = st.session_state.get(key)
    digest = safe_files.digest(path)
    if known is None or known.path != path or (not known.is_changed and known.digest != digest):
        known = st.session_state[key] = begin(digest)
    return known


def new_file(session: Session, name: str, *endings: str) -> Path:
    """Where a new file of this name is to be: beside the YAML file.

    Raises:
        InputError: the name has none of these endings, or names a folder or a hidden file.
    """
    if Path(name).name != name or name.startswith(".") or not name.endswith(endings or ("",)):
        ends = f" that ends in {' or '.join(endings)}" if endings else ""
        raise InputError(f"{name!r}: a plain file name{ends} is needed, without a folder")
    return session.folder / name


def note_saved(words: str, *lines: text.Line) -> None:
    """Say with the next drawing that something was saved, in our own words, and what is to be known of it."""
    st.session_state[_SAVED] = words, lines


def say_saved() -> None:
    """Say, once, what was saved."""
    if saved := st.session_state.pop(_SAVED, None):
        words, lines = saved
        st.success(words, icon=":material/check:")
        for line in lines:
            text.lines(line)


def show_history(label: str, key: str, table: Callable[[], Table]) -> None:
    """Earlier edits behind a fold, read once it is open."""
    with unfold(label, key) as opened:
        if opened.open:
            try:
                show_table(table())
            except InputError as error:
                text.plain(str(error))


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
