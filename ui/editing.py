"""Editing on the pages: which files a viewer may edit, drafts of unsaved edits, and saving with a history.

People can edit only files that the configuration names and that lie in its folder; if the pages were started on a
store, they can edit nothing. Pages write only when somebody presses a button, never because of an address, and only
through ``arena.data.safe_files``.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import streamlit as st
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from arena.boards.bank import history_table
from arena.boards.queries import label_of_query
from arena.config.schema import Config, load_config
from arena.data import safe_files
from arena.present.blocks import Block
from arena.present.table import Table
from arena.results import cache
from arena.run.recorder import compared_with_stored
from arena.stages.queries_config import load_either
from arena.store import Store
from judges.errors import InputError, RagleagueError
from ui import data, text
from ui.access import Action, allowed, owner, viewer
from ui.address import unfold
from ui.show import draw, show_table
from ui.text import problem

CONFIG_VARIABLE: Final = "RAGLEAGUE_UI_CONFIG"
"""Environment variable with the path of the YAML file that the pages were started with, set by ``ui.serve``."""
_REFUSED: Final = "refused"
_SAVED: Final = "saved"


class Session(Struct, frozen=True):
    """The configuration that the pages were started with, in its current version.

    Attributes:
        path: the YAML file.
        config: the parsed content of the file.
    """

    path: Path
    config: Config

    @property
    def folder(self) -> Path:
        """The folder of the YAML file; pages write only inside it."""
        return self.path.resolve().parent


def session() -> Session | None:
    """The configuration, read again at every call; ``None`` if the pages have none or the viewer may not edit.

    Raises:
        ConfigError: the YAML file can no longer be read or has become invalid.
    """
    path = config_file()
    return Session(path, load_config(path)) if path and allowed("edit") else None


def config_file() -> Path | None:
    """The YAML file that the pages were started with; ``None`` if they were started on a store."""
    return Path(path) if (path := os.environ.get(CONFIG_VARIABLE)) else None


def configured() -> Config | None:
    """The tournament's configuration, whatever the viewer's role; ``None`` if there is none or it cannot be read."""
    path = config_file()
    try:
        return _load_cached(path, path.stat().st_mtime_ns) if path else None
    except (InputError, OSError):
        return None


@lru_cache(maxsize=1)
def _load_cached(path: Path, _changed_ns: int) -> Config | None:
    config = load_either(path)
    return config if isinstance(config, Config) else None


def remark_on_stored(version: tuple[int, int, int]) -> str:
    """A remark on how the stored tournament differs from the YAML file or which parts it lacks; usually empty.

    Args:
        version: the store's version, which is part of the cache key.
    """
    config = configured()
    if config is None or config.file is None:
        return ""
    return _compared(data.location(), version, config.file, config.file.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _compared(location: str, _version: tuple[int, int, int], path: Path, changed_ns: int) -> str:
    config = _load_cached(path, changed_ns)
    with closing(Store.open(location)) as store:
        try:
            return "" if config is None else compared_with_stored(store, config)
        except InputError as error:
            return str(error)


def check(may: Action = "edit") -> None:
    """Check that the viewer's role still allows this action: it may have changed since the page was drawn.

    Raises:
        InputError: the role does not allow the action.
    """
    if not allowed(may):
        raise InputError(f"your role no longer allows you to {may}; ask whoever assigns the roles")


def attempt(action: Callable[..., None], *arguments: object, may: Action = "edit") -> None:
    """Run a button's action if the viewer's role allows it; ``say_refused`` later shows why it failed."""
    try:
        check(may)
        action(*arguments)
    except (RagleagueError, ValueError) as error:
        st.session_state[_REFUSED] = str(error)


def say_refused(words: str) -> None:
    """If the last action was refused, show the reason once, below the message ``words``."""
    if refused := st.session_state.pop(_REFUSED, None):
        problem(words, refused)


def why_not() -> str:
    """Message that says why the viewer cannot edit and what to do; it quotes no text from a file or a user."""
    if not allowed("edit"):
        return "To read only: your role does not include edits."
    return "To read only: these pages were started on a store. `ragleague ui CONFIG` opens them for edits."


class OpenedSection(Struct, frozen=True):
    """The file to edit for a section of the configuration (nuggets or exam), or why it cannot be edited.

    Attributes:
        session: the configuration; ``None`` if the viewer cannot edit the section.
        path: the file that the section's ``bank`` names; ``None`` if a judge writes the content, or the file cannot be
            edited.
        why_not: message that says why the viewer cannot edit the file; it quotes no text from a file or a user.
    """

    session: Session | None = None
    path: Path | None = None
    why_not: str = ""


def opened(source: data.Source, name: str) -> OpenedSection:
    """The file that ``bank`` names in the section ``name`` of the configuration, or why it cannot be edited."""
    current = session()
    if current is None:
        return OpenedSection(why_not=why_not())
    section = getattr(current.config, name) if current.config.name == source.tournament else None
    if section is None:
        return OpenedSection(
            why_not=f"To read only: the pages were started with a YAML file that has no `{name}` for this."
        )
    if section.bank is not None and not safe_files.within(current.folder, section.bank):
        return OpenedSection(
            why_not="To read only: the file is not in the folder of the YAML file. Edit the file itself."
        )
    return OpenedSection(current, section.bank)


Content = TypeVar("Content")


class Draft(Struct, Generic[Content]):
    """One person's unsaved edits of a file.

    Attributes:
        path: the file.
        digest: digest of the file's bytes when the draft began.
        before: the file's content when the draft began.
        after: the edited content.
        fields: values by key of form fields that the person has filled in but not yet applied with a button.
    """

    path: Path
    digest: str | None
    before: Content
    after: Content
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def is_changed(self) -> bool:
        return self.before != self.after

    def rebase(self, digest: str | None, content: Content) -> int:
        """Apply the edits to a newer version of the file; drops edits that do not fit and returns their number."""
        raise NotImplementedError


AnyDraft = TypeVar("AnyDraft", bound="Draft[Any]")


def draft(
    key: str, path: Path, read: Callable[[], Any], begin: Callable[[Path, str | None, Any], AnyDraft]
) -> AnyDraft:
    """The viewer's draft of a file; if they have not edited it, a draft of the file's current version.

    If somebody else has changed the file meanwhile, this function draws a warning and offers to apply the viewer's
    edits to the new version.

    Args:
        key: the draft's key in Streamlit's session state.
        path: path of the file.
        read: returns the file's current content.
        begin: makes a draft from the path, the digest and the content.
    """
    current: AnyDraft | None = st.session_state.get(key)
    digest = safe_files.digest(path)
    if current is None:
        current = st.session_state[key] = begin(path, digest, read())
        _resume(key, current)
    if current.path != path or (not current.is_changed and current.digest != digest):
        current = st.session_state[key] = begin(path, digest, read())
    elif current.digest != digest:
        st.warning("**The file was changed by somebody else** since you began to edit it.", icon=":material/warning:")
        with st.container(horizontal=True):
            st.button("Put my edits on their version", on_click=attempt, args=(_rebase, current, digest, read))
            st.button("Drop my edits", on_click=_drop, args=(key, current))
    _store_draft(key, current)
    return current


def _draft_file(key: str, unsaved: Draft[Any]) -> Path | None:
    """Path of the stored draft's file, per person or, without sign-in, per browser; ``None`` if neither is known."""
    if not (owned_by := owner()):
        return None
    name = hashlib.sha256(key.encode() + b" " + owned_by).hexdigest()[:32]
    return safe_files.history_folder(unsaved.path) / f"draft-{name}"


def _resume(key: str, unsaved: Draft[Any]) -> None:
    """Restore the edits of a stored draft, after a reload of the page or a restart of the server."""
    if (file := _draft_file(key, unsaved)) is not None and file.is_file():
        with suppress(OSError, ValueError):
            saved = cache.read(file.read_bytes())
            for name in saved.keys() & set(unsaved.__struct_fields__):
                setattr(unsaved, name, saved[name])


def _store_draft(key: str, unsaved: Draft[Any], *, dropped: bool = False) -> None:
    """Write a changed draft to a file that only the server can read; if that fails, the draft stays in memory only."""
    if (file := _draft_file(key, unsaved)) is None:
        return
    with suppress(OSError):
        if (unsaved.is_changed or unsaved.fields) and not dropped:
            file.parent.mkdir(exist_ok=True)
            file.touch(mode=0o600)
            file.write_bytes(cache.written({name: value for name, value in asdict(unsaved).items() if name != "path"}))
        else:
            file.unlink(missing_ok=True)


def begin_fields(key: str, unsaved: Draft[Any], values: Mapping[str, Any]) -> None:
    """Before fields are drawn, set them to the draft's values or, by default, to ``values`` (by the fields' keys)."""
    for name, value in values.items():
        st.session_state.setdefault(name, unsaved.fields.get(name, value))
    current = {name: st.session_state[name] for name in values}
    others = {name: value for name, value in unsaved.fields.items() if name not in current}
    unsaved.fields = others | {name: value for name, value in current.items() if value != values[name]}
    _store_draft(key, unsaved)


def _drop(key: str, unsaved: Draft[Any]) -> None:
    st.session_state.pop(key, None)
    _store_draft(key, unsaved, dropped=True)


def _rebase(unsaved: Draft[Any], digest: str | None, read: Callable[[], Any]) -> None:
    if dropped := unsaved.rebase(digest, read()):
        st.toast(f"{dropped} of your edits do not fit it and were dropped.")


def show_save(key: str, known: Draft[Any], save: Callable[[str], None]) -> None:
    """Draw a field for the editor's name, and the buttons that save or drop a draft.

    Args:
        key: the draft's key in Streamlit's session state.
        known: the draft to save or drop.
        save: function that saves the draft under the editor's name and reports with ``note_saved``.
    """
    person, name = viewer(), f"{key}-by"
    if person is None:
        st.text_input("Your name, for the history", _user(), key=name, max_chars=80, width=320)
    else:
        text.quiet(f"Kept under your name: {person.name}")

    def saved() -> None:
        save(str(st.session_state[name]).strip() if person is None else person.name)
        _drop(key, known)

    with st.container(horizontal=True):
        unchanged = not known.is_changed
        st.button("Save", type="primary", disabled=unchanged, on_click=attempt, args=(saved,), key=f"{key}-save")
        st.button("Drop my changes", disabled=unchanged, on_click=_drop, args=(key, known))


def offer_file(
    session: Session, name: str, section: str, endings: tuple[str, ...], save: Callable[[Path], object]
) -> None:
    """Draw a form that saves a judge's nuggets or test bank as a file, so that people can edit it.

    Args:
        session: the configuration; the file is written into its folder.
        name: suggested file name.
        section: the section of the YAML file in which the user then has to name the new file.
        endings: allowed endings of the file name.
        save: function that writes the file.
    """
    st.caption(f"A judge wrote these. Saved as a file, which ends in {' or '.join(endings)}, they can be edited here.")

    def saved() -> None:
        path = new_file(session, st.session_state[f"{section}-file"], *endings)
        save(path)
        yaml = f"{section}:\n  bank: {json.dumps(path.name)}"
        note_saved("Saved. Name it in the YAML file in place of what has them made. What is judged stays known.", yaml)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("File name", name, key=f"{section}-file", width=320)
        st.button("Save as a file", on_click=attempt, args=(saved,))


def new_file(session: Session, name: str, *endings: str) -> Path:
    """Path of a new file beside the YAML file.

    Raises:
        InputError: the name has none of the allowed endings, or names a folder or a hidden file.
    """
    if Path(name).name != name or name.startswith(".") or not name.endswith(endings or ("",)):
        ends = f" that ends in {' or '.join(endings)}" if endings else ""
        raise InputError(f"{name!r}: give a plain file name{ends}, without a folder")
    return session.folder / name


def note_saved(words: str, code: str = "", blocks: Sequence[Block] = ()) -> None:
    """When the page is drawn next, show a message, and code and blocks that say what to do next and what changed."""
    st.session_state[_SAVED] = words, code, blocks


def say_saved() -> None:
    """Show once the message of ``note_saved``, or the reason why the last action was refused."""
    say_refused("Nothing was changed.")
    if message := st.session_state.pop(_SAVED, None):
        words, code, blocks = message
        st.success(words, icon=":material/check:")
        if code:
            st.code(code, language=None)
        for block in blocks:
            draw(replace(block, name=f"saved-{block.name}") if isinstance(block, Table) else block)


def show_history(path: Path) -> None:
    """Draw an expander with earlier versions of a file; it reads them only while it is open."""
    with unfold("Earlier versions", "earlier-versions") as fold:
        if fold.open:
            try:
                show_table(history_table(safe_files.history(path), safe_files.history_folder(path)))
            except InputError as error:
                text.plain(str(error))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user in a container may have no name
        return ""


def query_options(source: data.Source) -> dict[str, str]:
    """The text of each query as an option of a select field, by the query's id."""
    return {query_id: label_of_query(query_id, query, 60) for query_id, query in data.queries(source).items()}
