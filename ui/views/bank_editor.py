"""The part of the page "Bank" that edits: nothing is written before somebody presses the button that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import streamlit as st

from arena.boards.bank import BankBoard, BankEditBoard, history_table
from arena.data import safe_files
from arena.stages.exam.bank import of_queries
from arena.stages.exam.edits import BankFile, read_bank_file, save_edited_bank
from judges.errors import InputError
from retrieval_eval.exam.bank_files import new_item
from retrieval_eval.exam.items import ITEM_TYPES, Bank, Item, ItemEdit, edited_bank
from retrieval_eval.exam.oversight import EditEffect, edit_effect
from ui import data, text
from ui.address import unfold
from ui.editing import Session, ask_name, named
from ui.show import show_block, show_table
from ui.text import problem

Edits: TypeAlias = Mapping[str, ItemEdit | Item]


@dataclass
class Draft:
    """Edits that are not saved.

    Attributes:
        file: the bank that they start from.
        edits: of its items, by id; and new items, by names of their own.
        turn: grows with every change from outside the fields, which then start anew.
    """

    file: BankFile
    edits: Edits = field(default_factory=dict)
    turn: int = 0

    @property
    def added(self) -> list[Item]:
        """The new items."""
        return [own for own in self.edits.values() if isinstance(own, Item)]

    @property
    def bank(self) -> Bank:
        """The next version."""
        return self._bank(self.edits)

    def _bank(self, edits: Edits) -> Bank:
        changed = {item_id: own for item_id, own in edits.items() if isinstance(own, ItemEdit)}
        return edited_bank(self.file.bank, changed, [own for own in edits.values() if isinstance(own, Item)])

    def edited(self, item: Item) -> Item:
        """An item as it would be, in its place and under its id."""
        edit = self.edits.get(item.item_id)
        if not isinstance(edit, ItemEdit):
            return item
        given: dict[str, Any] = {"text": edit.text, "weight": edit.weight, "retired": edit.retired}
        return replace(item, **{name: value for name, value in given.items() if value is not None})

    @property
    def marks(self) -> dict[str, str]:
        """What is new or changed, by the item's id."""
        return {
            own.item_id if isinstance(own, Item) else item_id: "new" if isinstance(own, Item) else "changed"
            for item_id, own in self.edits.items()
        }

    def take(self, name: str, edit: ItemEdit | Item | None) -> None:
        """Take an edit in place of an earlier one of this name, or take it back.

        Raises:
            ValueError: it cannot be made; the draft stays as it was.
        """
        edits = {known: own for known, own in self.edits.items() if known != name}
        if edit is not None and edit != ItemEdit():
            edits[name] = edit
        self._bank(edits)
        self.edits = edits

    def add(self, item: Item) -> None:
        """Take a new item; raises as ``take`` does."""
        self.take(f"new {id(item)}", item)

    def clear(self) -> None:
        """Start again from the file."""
        self.edits = {}
        self.turn += 1

    def rebase(self, file: BankFile) -> int:
        """Put the edits on a newer version of the file; returns how many do not fit it and are dropped."""
        edits, self.file = self.edits, file
        self.clear()
        for name, edit in edits.items():
            try:
                self.take(name, edit)
            except ValueError:
                continue
        return len(edits) - len(self.edits)


def effect(source: data.Source, draft: Draft) -> EditEffect | None:
    """What the edits change before anything is graded anew; ``None`` before anything is graded."""
    study = data.study(source)
    if study is None or not study.grades:
        return None
    return _effect(source, draft.file.digest, draft.bank.version, draft)


@st.cache_resource(max_entries=4, show_spinner=False)
def _effect(source: data.Source, digest: str | None, version: str, _draft: Draft) -> EditEffect:  # noqa: ARG001 - keys
    study = data.study(source)
    assert study is not None
    before, after = (of_queries(bank, data.dataset(source)) for bank in (_draft.file.bank, _draft.bank))
    return edit_effect(before, after, study.grades, study.rankings, level=study.usual_level, k=data.exam_depth(source))


_DRAFT: Final = "bank-draft"
_SAVED: Final = "bank-saved"
_CHOSEN: Final = "bank-item"
_WHO: Final = "bank-editor"


def show_editor(source: data.Source, found: Session, path: Path) -> None:
    """Draw the bank of a file, what of it is being edited, and what that changes."""
    draft = _draft(path)
    _say_what_was_saved(found)
    _say_what_stands_there(source, draft)
    _warn_of_another_version(draft, path)
    shown = _choose(draft)
    changing, adding = st.tabs(["Change an item", "Add an item"])
    with changing:
        _change(draft, shown)
    with adding:
        _add(source, draft)
    if draft.edits:
        _show_preview(source, draft)
        _save(source, found, draft)
    _show_history(path)


def _draft(path: Path) -> Draft:
    """The edits of this reader so far. Without any, the file as it is now."""
    known: Draft | None = st.session_state.get(_DRAFT)
    if known is None or known.file.path != path or (not known.edits and known.file.digest != safe_files.digest(path)):
        known = Draft(read_bank_file(path), turn=known.turn + 1 if known is not None else 0)
        st.session_state[_DRAFT] = known
    return known


def _say_what_was_saved(found: Session) -> None:
    if saved := st.session_state.pop(_SAVED, None):
        st.success("Saved. The earlier version is kept beside the file. What is new is graded by the next run:")
        text.plain(f"ragleague run {found.path}")
        text.quiet(f"Earlier version: {saved}")


def _say_what_stands_there(source: data.Source, draft: Draft) -> None:
    bank = draft.file.bank
    text.quiet(f"File: {draft.file.path.name}")
    study = data.study(source)
    if study is not None and study.version != of_queries(bank, data.dataset(source)).version:
        st.info("The file is not the version that was graded last. `ragleague run` grades what is new in it.")


def _warn_of_another_version(draft: Draft, path: Path) -> None:
    if safe_files.digest(path) == draft.file.digest:
        return
    st.warning("**The file was changed by somebody else** since you began to edit it.", icon=":material/warning:")
    with st.container(horizontal=True):
        if st.button("Put my edits on their version"):
            dropped = draft.rebase(read_bank_file(path))
            if dropped:
                st.toast(f"{dropped} of your edits do not fit it and were dropped.")
            st.rerun()
        if st.button("Drop my edits"):
            draft.clear()
            st.rerun()


def _choose(draft: Draft) -> list[int]:
    """The table of items; returns the places in the bank of those that are shown."""
    bank = draft.file.bank
    retired = st.toggle("Show retired items", key="bank-retired", bind="query-params")
    items = [*map(draft.edited, bank.items), *draft.added]
    board = BankBoard(bank.version, items, retired=retired, marks=draft.marks)
    places = {item.item_id: place for place, item in enumerate(bank.items)}
    shown = [places[item.item_id] for item in board.shown if item.item_id in places]  # new ones stand behind them

    def take(row: int) -> None:
        if row < len(shown):
            st.session_state[_CHOSEN] = shown[row]

    show_table(board.tables()[0], choose=take)
    return shown


def _change(draft: Draft, shown: list[int]) -> None:
    items = draft.file.bank.items
    if not shown:
        st.caption("No item to change.")
        return

    def name(place: int) -> str:
        return f"{items[place].query_id}: {text.clipped(items[place].open_text, 120)}"

    place = st.selectbox("Item, or click its line above", shown, format_func=name, key=_CHOSEN)
    item, now = items[place], draft.edited(items[place])
    at = f"{draft.turn}-{place}"
    with st.form(f"change-{at}"):
        new_text = st.text_area(
            "Text",
            now.open_text,
            key=f"text-{at}",
            disabled=item.secret,
            help="A new text makes a new item in the place of the old one, which is kept, retired, with its grades.",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            weight = st.number_input(
                "Weight", min_value=0.0, step=0.5, value=float(now.weight), key=f"weight-{at}", width=180
            )
            retired = st.checkbox("Retired: kept, but not counted", now.retired, key=f"retired-{at}")
        pressed = st.form_submit_button("Keep this change")
    if item.secret:
        st.caption("The text of a secret item is shown nowhere: edit it in the file.")
    if item.answers and not item.secret:
        st.caption("It has gold answers, which stay with a new text; edit them in the file.")
    if pressed:
        wanted = ItemEdit(
            new_text if not item.secret and new_text.strip() != item.text.strip() else None,
            weight if weight != item.weight else None,
            retired if retired != item.retired else None,
        )
        _attempt(lambda: draft.take(item.item_id, wanted))


def _add(source: data.Source, draft: Draft) -> None:
    bank = draft.file.bank
    keys = list(dict.fromkeys([*bank.queries, *((query_id, None) for query_id in data.queries(source))]))
    types = [item.item_type for item in bank.items]

    def name(key: tuple[str, str | None]) -> str:
        return key[0] if key[1] is None else f"{key[0]}, subtopic {key[1]}"

    at = f"{draft.turn}-{len(draft.added)}"
    with st.form(f"add-{at}"):
        with st.container(horizontal=True):
            query_id, facet = st.selectbox("Query", keys, format_func=name, key=f"new-query-{at}", width=420)
            usual = max(ITEM_TYPES, key=types.count)
            kind = st.selectbox("Type", ITEM_TYPES, index=ITEM_TYPES.index(usual), key=f"new-type-{at}", width=180)
        new_text = st.text_area("Text", key=f"new-text-{at}")
        answers = st.text_area("Gold answers, one a line; may stay empty", key=f"new-answers-{at}", height=100)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            weight = st.number_input("Weight", min_value=0.0, value=1.0, step=0.5, key=f"new-weight-{at}", width=180)
            secret = st.checkbox("Secret: graded with, but shown nowhere", key=f"new-secret-{at}")
        pressed = st.form_submit_button("Add it")
    if pressed:
        given: dict[str, Any] = {"item_type": kind, "facet_id": facet, "weight": weight, "secret": secret}
        _attempt(lambda: draft.add(new_item(query_id, new_text, answers=answers.splitlines(), **given)))


def _save(source: data.Source, found: Session, draft: Draft) -> None:
    assert found.config.exam is not None
    with st.form("save"):
        ask_name("Your name, for the history", _WHO)
        pressed = st.form_submit_button("Save the bank", type="primary")
    if not pressed:
        return
    try:
        earlier = save_edited_bank(
            draft.file, draft.bank, found.config.exam, data.dataset(source), folder=found.folder, by=named(_WHO)
        )
    except InputError as error:
        problem("Nothing was saved.", error)
        return
    st.session_state[_SAVED] = str(earlier)
    draft.clear()
    st.rerun()


def _show_history(path: Path) -> None:
    with unfold("Earlier versions", "earlier-versions") as opened:
        if not opened.open:
            return
        try:
            show_table(history_table(safe_files.history(path), safe_files.history_folder(path)))
        except InputError as error:
            text.plain(str(error))


def _attempt(change: Callable[[], None]) -> None:
    """Make a change of the draft and draw the page with it, or say why it cannot be made."""
    try:
        change()
    except (ValueError, InputError) as error:
        problem("This cannot be done.", error)
        return
    st.rerun()


def _show_preview(source: data.Source, draft: Draft) -> None:
    """What the edits change, before they are saved and before anything is graded anew."""
    found = effect(source, draft)
    st.subheader("What your edits change", anchor=False)
    for block in BankEditBoard(draft.file.bank, draft.bank, found).sections()[0].blocks:
        show_block(block)
    if found is None:
        st.caption("Nothing is graded yet, so no score changes.")
    _take_back(draft)


def _take_back(draft: Draft) -> None:
    """One edit at a time, or all of them."""
    names = list(draft.edits)

    def words(place: int) -> str:
        edit = draft.edits[names[place]]
        item = edit if isinstance(edit, Item) else draft.file.bank.by_id[names[place]]
        return f"{item.query_id}: {text.clipped(item.open_text, 120)}"

    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = st.selectbox("Take back", range(len(names)), format_func=words, key=f"back-{len(names)}", width=420)
        if st.button("Take this one back"):
            draft.turn += 1
            _attempt(lambda: draft.take(names[place], None))
        if st.button("Take all back"):
            draft.clear()
            st.rerun()
