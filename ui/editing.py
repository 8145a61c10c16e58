"""The editor of the pages: who may edit which files, what they have changed so far, and how that is saved.

Only files that the configuration names, in its folder, are edited; pages started on a store edit nothing. A page writes
where somebody pressed a button of it, never by its address, and only through ``arena.data.safe_files``.
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
from arena.config.schema import Config, load_config
from arena.data import safe_files
from arena.present.blocks import Block
from arena.present.table import Table
from arena.results import cache
from arena.run.origin import compared_with_stored
from arena.stages.queries.config import load_either
from arena.store import Store
from judges.errors import InputError, RagleagueError
from ui import data, text
from ui.access import Action, allowed, viewer
from ui.address import unfold
from ui.show import draw, show_table
from ui.text import problem

CONFIG_VARIABLE: Final = "RAGLEAGUE_UI_CONFIG"
"""Environment variable through which ``ui.serve`` tells the pages which configuration they were started with."""
_REFUSED: Final = "refused"
_SAVED: Final = "saved"


class Session(Struct, frozen=True):
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


def configured() -> Config | None:
    """The tournament that the pages were started for, whoever looks at them; ``None`` where it cannot be read."""
    given = os.environ.get(CONFIG_VARIABLE)
    try:
        return _as_of(Path(given), Path(given).stat().st_mtime_ns) if given else None
    except (InputError, OSError):
        return None


@lru_cache(maxsize=1)
def _as_of(path: Path, _changed_ns: int) -> Config | None:
    config = load_either(path)
    return config if isinstance(config, Config) else None


def remark_on_stored(version: tuple[int, int, int]) -> str:
    """What the store holds in place of the configuration's own tournament, or lacks of it; often empty.

    Args:
        version: of the store.
    """
    config = configured()
    if config is None or config.file is None:
        return ""
    return _compared(data.location(), version, config.file, config.file.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _compared(location: str, _version: tuple[int, int, int], path: Path, changed_ns: int) -> str:
    config = _as_of(path, changed_ns)
    with closing(Store.open(location)) as store:
        try:
            return "" if config is None else compared_with_stored(store, config)
        except InputError as error:
            return str(error)


def check(may: Action = "edit") -> None:
    """For what a button calls, which was drawn before: whether the viewer may still do so.

    Raises:
        InputError: they may not.
    """
    if not allowed(may):
        raise InputError(f"your role does not allow to {may} any more")


def attempt(action: Callable[..., None], *given: object, may: Action = "edit") -> None:
    """Do what a button says, or let ``say_refused`` say with the next drawing why not."""
    try:
        check(may)
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


class OpenedSection(Struct, frozen=True):
    """What of a section of the configuration can be edited.

    Attributes:
        session: of who may edit it; ``None`` where nobody here may.
        path: the section's file; ``None`` where a judge makes its content, or nobody may edit.
        why_not: why nobody may; our own words.
    """

    session: Session | None = None
    path: Path | None = None
    why_not: str = ""


def opened(source: data.Source, name: str) -> OpenedSection:
    """The file that a section of the configuration names as its ``bank``, if it can be edited."""
    own = session()
    if own is None:
        return OpenedSection(why_not=why_not())
    section = getattr(own.config, name) if own.config.name == source.tournament else None
    if section is None:
        return OpenedSection(
            why_not=f"To read only: the pages were started with a YAML file that has no `{name}` for this."
        )
    if section.bank is not None and not safe_files.within(own.folder, section.bank):
        return OpenedSection(
            why_not="To read only: the file is not in the folder of the YAML file. Edit the file itself."
        )
    return OpenedSection(own, section.bank)


Content = TypeVar("Content")


class Draft(Struct, Generic[Content]):
    """What one person has made of a file and not saved.

    Attributes:
        path: the file.
        digest: of its bytes when they began.
        before: what it held then.
        after: what it is to hold.
        fields: what stands in fields, by their keys, and no button has taken over yet.
    """

    path: Path
    digest: str | None
    before: Content
    after: Content
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to save."""
        return self.before != self.after

    def rebase(self, digest: str | None, content: Content) -> int:
        """Put the changes on a newer version of the file; returns how many do not fit it and are dropped."""
        raise NotImplementedError


AnyDraft = TypeVar("AnyDraft", bound="Draft[Any]")


def draft(
    key: str, path: Path, read: Callable[[], Any], begin: Callable[[Path, str | None, Any], AnyDraft]
) -> AnyDraft:
    """This person's draft of a file; without changes of theirs, of the file as it is now.

    Where somebody else changed the file meanwhile, it says so and offers to put the changes on their version.

    Args:
        key: of the draft in the session.
        path: of the file.
        read: what the file holds now.
        begin: makes a draft of a file with its digest and its content.
    """
    known: AnyDraft | None = st.session_state.get(key)
    digest = safe_files.digest(path)
    if known is None:
        known = st.session_state[key] = begin(path, digest, read())
        _resume(key, known)
    if known.path != path or (not known.is_changed and known.digest != digest):
        known = st.session_state[key] = begin(path, digest, read())
    elif known.digest != digest:
        st.warning("**The file was changed by somebody else** since you began to edit it.", icon=":material/warning:")
        with st.container(horizontal=True):
            st.button("Put my edits on their version", on_click=attempt, args=(_rebase, known, digest, read))
            st.button("Drop my edits", on_click=_drop, args=(key, known))
    _keep(key, known)
    return known


def _kept(key: str, known: Draft[Any]) -> Path | None:
    """The file, beside earlier versions, of a draft of this person, or of this browser where nobody signs in."""
    from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

    person, cookie = viewer(), st.context.cookies.get("_streamlit_xsrf", "")
    who = decode_xsrf_token_string(cookie)[0] if person is None else person.name.encode()
    if not who:
        return None
    name = hashlib.sha256(key.encode() + b" " + who).hexdigest()[:32]
    return safe_files.history_folder(known.path) / f"draft-{name}"


def _resume(key: str, known: Draft[Any]) -> None:
    """Give a new draft what was kept of it before the page was loaded anew, or the server started anew."""
    if (file := _kept(key, known)) is not None and file.is_file():
        with suppress(OSError, ValueError):
            kept = cache.read(file.read_bytes())
            for name in kept.keys() & set(known.__struct_fields__):
                setattr(known, name, kept[name])


def _keep(key: str, known: Draft[Any], *, dropped: bool = False) -> None:
    """Keep a draft as long as it is changed, readable for the server alone; where that cannot be written, in memory."""
    if (file := _kept(key, known)) is None:
        return
    with suppress(OSError):
        if (known.is_changed or known.fields) and not dropped:
            file.parent.mkdir(exist_ok=True)
            file.touch(mode=0o600)
            file.write_bytes(cache.written({name: own for name, own in asdict(known).items() if name != "path"}))
        else:
            file.unlink(missing_ok=True)


def begin_fields(key: str, known: Draft[Any], values: Mapping[str, Any]) -> None:
    """Give fields that are drawn next their values, by their keys: what stood in them before, be it before a reload."""
    for name, value in values.items():
        st.session_state.setdefault(name, known.fields.get(name, value))
    now = {name: st.session_state[name] for name in values}
    others = {name: value for name, value in known.fields.items() if name not in now}
    known.fields = others | {name: value for name, value in now.items() if value != values[name]}
    _keep(key, known)


def _drop(key: str, known: Draft[Any]) -> None:
    st.session_state.pop(key, None)
    _keep(key, known, dropped=True)


def _rebase(known: Draft[Any], digest: str | None, read: Callable[[], Any]) -> None:
    if dropped := known.rebase(digest, read()):
        st.toast(f"{dropped} of your edits do not fit it and were dropped.")


def show_save(key: str, known: Draft[Any], save: Callable[[str], None]) -> None:
    """Draw who edits, and the buttons that save a draft or drop it.

    Args:
        key: of the draft in the session.
        known: the draft.
        save: called with the name of who edits; says with ``note_saved`` what was saved.
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
        same = not known.is_changed
        st.button("Save", type="primary", disabled=same, on_click=attempt, args=(saved,), key=f"{key}-save")
        st.button("Drop my changes", disabled=same, on_click=_drop, args=(key, known))


def offer_file(own: Session, name: str, section: str, endings: tuple[str, ...], save: Callable[[Path], object]) -> None:
    """Offer to make what a judge wrote a file, which can be edited.

    Args:
        own: whose folder the file is put in.
        name: offered for it.
        section: of the configuration, which is to name it.
        endings: that its name may have.
        save: writes it.
    """
    st.caption(f"A judge wrote these. Saved as a file, which ends in {' or '.join(endings)}, they can be edited here.")

    def saved() -> None:
        path = new_file(own, st.session_state[f"{section}-file"], *endings)
        save(path)
        yaml = f"{section}:\n  bank: {json.dumps(path.name)}"
        note_saved("Saved. Name it in the YAML file in place of what has them made. What is judged stays known.", yaml)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("File name", name, key=f"{section}-file", width=320)
        st.button("Save as a file", on_click=attempt, args=(saved,))


def new_file(session: Session, name: str, *endings: str) -> Path:
    """Where a new file of this name is to be: beside the YAML file.

    Raises:
        InputError: the name has none of these endings, or names a folder or a hidden file.
    """
    if Path(name).name != name or name.startswith(".") or not name.endswith(endings or ("",)):
        ends = f" that ends in {' or '.join(endings)}" if endings else ""
        raise InputError(f"{name!r}: a plain file name{ends} is needed, without a folder")
    return session.folder / name


def note_saved(words: str, code: str = "", blocks: Sequence[Block] = ()) -> None:
    """Say with the next drawing that something was saved, in our own words, what to do next, and what it changed."""
    st.session_state[_SAVED] = words, code, blocks


def say_saved() -> None:
    """Say, once, what was saved, or why it was not."""
    say_refused("Nothing was changed.")
    if saved := st.session_state.pop(_SAVED, None):
        words, code, blocks = saved
        st.success(words, icon=":material/check:")
        if code:
            st.code(code, language=None)
        for block in blocks:
            draw(replace(block, name=f"saved-{block.name}") if isinstance(block, Table) else block)


def show_history(path: Path) -> None:
    """Earlier versions of a file behind a fold, read once it is open."""
    with unfold("Earlier versions", "earlier-versions") as fold:
        if fold.open:
            try:
                show_table(history_table(safe_files.history(path), safe_files.history_folder(path)))
            except InputError as error:
                text.plain(str(error))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return ""


def query_options(source: data.Source) -> dict[str, str]:
    """Queries as options, by id."""
    return {query_id: text.query_label(query_id, query.text) for query_id, query in data.queries(source).items()}
