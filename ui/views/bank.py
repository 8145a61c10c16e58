"""Bank: the items that answers are graded against, and where the pages have the configuration, their edits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import streamlit as st

from arena.boards.bank import BankBoard, BankEditBoard, history_table
from arena.data import safe_files
from arena.stages.exam.bank import of_queries, require_usable
from arena.stages.exam.edits import save_bank
from judges.errors import InputError
from retrieval_eval.exam.bank_files import new_item, read_bank
from retrieval_eval.exam.items import ITEM_TYPES, Bank, Item, ItemEdit, described, diff, edited_bank
from retrieval_eval.exam.oversight import EditEffect, edit_effect
from ui import data, editing, text
from ui.editing import Session
from ui.show import show_block, show_table
from ui.text import Line, nothing, problem

Edits: TypeAlias = Mapping[str, ItemEdit | Item]

_CHOSEN: Final = "bank-item"
_WHO: Final = "bank-editor"


@dataclass
class BankDraft(editing.Draft[Bank]):
    """Edits of a bank that are not saved.

    Attributes:
        edits: of its items, by id; and new items, by names of their own.
        turn: grows with every change from outside the fields, which then start anew.
    """

    edits: Edits = field(default_factory=dict)
    turn: int = 0

    @property
    def is_changed(self) -> bool:
        """Whether there are edits, be it that they change nothing together."""
        return bool(self.edits)

    @property
    def added(self) -> list[Item]:
        """The new items."""
        return [edit for edit in self.edits.values() if isinstance(edit, Item)]

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
            edit.item_id if isinstance(edit, Item) else item_id: "new" if isinstance(edit, Item) else "changed"
            for item_id, edit in self.edits.items()
        }

    def take(self, name: str, edit: ItemEdit | Item | None) -> None:
        """Take an edit in place of an earlier one of this name, or take it back.

        Raises:
            ValueError: it cannot be made; the draft stays as it was.
        """
        edits = {known: other for known, other in self.edits.items() if known != name}
        if edit is not None and edit != ItemEdit():
            edits[name] = edit
        changed = {item_id: one for item_id, one in edits.items() if isinstance(one, ItemEdit)}
        self.after = edited_bank(self.before, changed, [one for one in edits.values() if isinstance(one, Item)])
        self.edits = edits

    def clear(self) -> None:
        """Start again from the file."""
        self.edits, self.after = {}, self.before
        self.turn += 1

    def rebase(self, digest: str | None, bank: Bank) -> int:
        """Put the edits on a newer version of the file; returns how many do not fit it and are dropped."""
        edits, self.digest, self.before = self.edits, digest, bank
        self.clear()
        for name, edit in edits.items():
            try:
                self.take(name, edit)
            except ValueError:
                continue
        return len(edits) - len(self.edits)


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Test bank", anchor=False)
    try:
        session = editing.session()
        section = session.config.exam if session is not None and session.config.name == source.tournament else None
        path = None if section is None else section.bank
        if session is not None and path and safe_files.within(session.folder, path):
            _show_editor(source, session, path)
            return
    except InputError as error:
        problem("The configuration or its bank cannot be used as it is now.", error)
        return
    study = data.study(source)
    if study is None:
        nothing("This tournament has no test bank. Give its YAML file an `exam` section and run `ragleague run`.")
        return
    if study.bank is None or not study.bank.items:
        nothing("A judge writes this bank, and has not yet: `ragleague run` or `ragleague exam generate` asks it.")
        return
    if session is None:
        st.info(editing.why_not())
    elif section is None:
        st.info("To read only: the configuration that these pages were started with has no exam for this tournament.")
    elif path:
        st.info("To read only: the bank is not in the folder of the configuration. Edit the file itself.")
    show_table(BankBoard(study.version, study.bank.items).tables()[0])
    if session is not None and section is not None and not path:
        _offer_file(session, study.bank)


def _offer_file(session: Session, bank: Bank) -> None:
    """Make a bank that a judge wrote a file, which can be edited."""
    st.subheader("Make it yours", anchor=False)
    st.caption("A judge wrote this bank. Saved as a file beside the configuration, it can be edited here.")
    with st.form("save-written"):
        name = st.text_input("File name", "bank.jsonl", help="Ends in .jsonl, .yaml or .csv; a new file.")
        pressed = st.form_submit_button("Save as a file", type="primary")
    if not pressed:
        return
    try:
        save_bank(editing.new_file(session, name), bank, folder=session.folder)
    except InputError as error:
        problem("Nothing was saved.", error)
        return
    st.success("Saved. Name it in the `exam` section of the configuration in place of `generate`:")
    st.code(f"exam:\n  bank: {json.dumps(name)}", language="yaml")
    st.caption("What has been graded stays known.")


def _show_editor(source: data.Source, session: Session, path: Path) -> None:
    """The bank of a file, what of it is being edited, and what that changes."""

    def begin(digest: str | None) -> BankDraft:
        bank = read_bank(path)
        return BankDraft(path, digest, bank, bank)

    draft = editing.draft("bank-draft", path, begin)
    editing.say_saved()
    text.quiet(f"File: {path.name}")
    study = data.study(source)
    if study is not None and study.version != of_queries(draft.before, data.dataset(source)).version:
        st.info("The file is not the version that was graded last. `ragleague run` grades what is new in it.")
    _warn_of_another_version(draft)
    shown = _choose(draft)
    changing, adding = st.tabs(["Change an item", "Add an item"])
    with changing:
        _change(draft, shown)
    with adding:
        _add(source, draft)
    if draft.edits:
        _show_preview(source, draft)
        _save(source, session, draft)
    editing.show_history(
        "Earlier versions",
        "earlier-versions",
        lambda: history_table(safe_files.history(path), safe_files.history_folder(path)),
    )


def _warn_of_another_version(draft: BankDraft) -> None:
    digest = safe_files.digest(draft.path)
    if digest == draft.digest:
        return
    st.warning("**The file was changed by somebody else** since you began to edit it.", icon=":material/warning:")
    with st.container(horizontal=True):
        if st.button("Put my edits on their version"):
            if dropped := draft.rebase(digest, read_bank(draft.path)):
                st.toast(f"{dropped} of your edits do not fit it and were dropped.")
            st.rerun()
        if st.button("Drop my edits"):
            draft.clear()
            st.rerun()


def _choose(draft: BankDraft) -> list[int]:
    """The table of items; returns the places in the bank of those that are shown."""
    bank = draft.before
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


def _change(draft: BankDraft, shown: list[int]) -> None:
    items = draft.before.items
    if not shown:
        st.caption("No item to change.")
        return

    def name(place: int) -> str:
        return f"{items[place].query_id}: {text.clipped(items[place].open_text, 120)}"

    place = st.selectbox("Item, or click its line above", shown, format_func=name, key=_CHOSEN)
    item, now = items[place], draft.edited(items[place])
    at = f"{draft.digest}-{draft.turn}-{place}"
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


def _add(source: data.Source, draft: BankDraft) -> None:
    bank = draft.before
    keys = list(dict.fromkeys([*bank.queries, *((query_id, None) for query_id in data.queries(source))]))
    types = [item.item_type for item in bank.items]

    def name(key: tuple[str, str | None]) -> str:
        return key[0] if key[1] is None else f"{key[0]}, subtopic {key[1]}"

    at = f"{draft.digest}-{draft.turn}-{len(draft.added)}"
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

        def add() -> None:
            item = new_item(query_id, new_text, answers=answers.splitlines(), **given)
            draft.take(f"new {id(item)}", item)

        _attempt(add)


def _save(source: data.Source, session: Session, draft: BankDraft) -> None:
    section = session.config.exam
    assert section is not None
    with st.form("save"):
        editing.ask_name("Your name, for the history", _WHO)
        pressed = st.form_submit_button("Save the bank", type="primary")
    if not pressed:
        return
    try:
        require_usable(section, of_queries(draft.after, data.dataset(source)))
        what, by = described(diff(draft.before, draft.after)), editing.named(_WHO)
        earlier = save_bank(draft.path, draft.after, folder=session.folder, seen=draft.digest, by=by, what=what)
    except InputError as error:
        problem("Nothing was saved.", error)
        return
    editing.note_saved(
        "Saved. The earlier version is kept beside the file. What is new is graded by the next run:",
        Line("body", f"ragleague run {session.path}"),
        Line("quiet", f"Earlier version: {earlier}"),
    )
    draft.clear()
    st.rerun()


def _attempt(change: Callable[[], None]) -> None:
    """Make a change of the draft and draw the page with it, or say why it cannot be made."""
    try:
        change()
    except (ValueError, InputError) as error:
        problem("This cannot be done.", error)
        return
    st.rerun()


def _show_preview(source: data.Source, draft: BankDraft) -> None:
    """What the edits change, before they are saved and graded; and the way to take them back."""
    study = data.study(source)
    effect = None
    if study is not None and study.grades:
        effect = _effect(source, draft.digest, draft.after.version, draft)
    st.subheader("What your edits change", anchor=False)
    for block in BankEditBoard(draft.before, draft.after, effect).sections()[0].blocks:
        show_block(block)
    if effect is None:
        st.caption("Nothing is graded yet, so no score changes.")
    names = list(draft.edits)

    def words(place: int) -> str:
        edit = draft.edits[names[place]]
        item = edit if isinstance(edit, Item) else draft.before.by_id[names[place]]
        return f"{item.query_id}: {text.clipped(item.open_text, 120)}"

    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = st.selectbox("Take back", range(len(names)), format_func=words, key=f"back-{len(names)}", width=420)
        if st.button("Take this one back"):
            draft.turn += 1
            _attempt(lambda: draft.take(names[place], None))
        if st.button("Take all back"):
            draft.clear()
            st.rerun()


@st.cache_resource(max_entries=4, show_spinner=False)
def _effect(source: data.Source, digest: str | None, version: str, _draft: BankDraft) -> EditEffect:  # noqa: ARG001 - keys
    study = data.study(source)
    assert study is not None
    before, after = (of_queries(bank, data.dataset(source)) for bank in (_draft.before, _draft.after))
    return edit_effect(before, after, study.grades, study.rankings, level=study.usual_level, k=data.exam_depth(source))
