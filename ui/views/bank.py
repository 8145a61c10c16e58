"""The exam bank: its items with their effects on the scores, and its editor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import streamlit as st
from msgspec import field
from msgspec.structs import replace

from arena.boards.bank import BankEditBoard, ItemEffect, exam_effects, item_line, items_table
from arena.boards.exam import answers_table, exam_board, spurious_table, uncovered_table
from arena.boards.retrieval import WHOSE
from arena.data.safe_files import save_bank
from arena.present.blocks import Block
from arena.present.numbers import counted
from arena.present.picture import of_table
from arena.results.exam import Study
from arena.stages.exam import require_usable, with_told_items
from judges.errors import InputError
from retrieval_eval.exam.bank_files import new_item, read_bank
from retrieval_eval.exam.items import ITEM_TYPES, Bank, Item, ItemEdit, described, diff, edited_bank
from retrieval_eval.exam.oversight import EditEffect, edit_effect
from ui import data, editing, onward, text
from ui.address import choose, links, pick, unfold
from ui.editing import Session
from ui.show import draw, show_beside, show_table
from ui.text import incomplete, problem

_EXAM_YAML: Final = "exam:\n  judge: JUDGE\n  bank: bank.jsonl  # or generate: {per_query: 5}"
_BANK: Final = "bank-draft"

Edits: TypeAlias = Mapping[str, ItemEdit | Item]


def show_bank(source: data.Source) -> None:
    """Draw the exam bank with the exam's scores."""
    editing.say_saved()
    try:
        opened = editing.opened(source, "exam")
        if opened.session is not None and opened.path is not None:
            path = opened.path
            draft = editing.draft(
                _BANK, path, lambda: read_bank(path), lambda path, digest, bank: BankDraft(path, digest, bank, bank)
            )
            _edit_bank(source, opened.session, draft)
            return
    except InputError as error:
        problem("The configuration or its bank cannot be used as it is now.", error)
        return
    study = data.study(source)
    if study is None:
        words = "**This tournament has no exam.** An exam grades answers by questions with known answers."
        onward.add(words, _EXAM_YAML, source)
    elif study.bank is None or not study.bank.items:
        onward.run("A judge writes this bank, and has not yet.", source)
    else:
        bank = study.bank
        if opened.session is not None:
            folder = opened.session.folder
            kinds = (".jsonl", ".yaml", ".csv")

            def save(path: Path) -> None:
                save_bank(path, bank, folder=folder)

            editing.offer_file(opened.session, "bank.jsonl", "exam", kinds, save)
        elif opened.why_not:
            st.info(opened.why_not)
        place = _show_bank(source, bank, None)
        if place is not None:
            _show_grades(study, bank.items[place])
        _show_labels(source, study)


@data.derived("Leaving out each item in turn …")
def _exam_effects(source: data.Source) -> Mapping[str, ItemEffect]:
    study = data.study(source)
    return {} if study is None else exam_effects(study, study.usual_level, data.exam_depth(source))


class BankDraft(editing.Draft[Bank]):
    """Unsaved edits of an exam bank.

    Attributes:
        edits: edits of items by the items' ids, and new items by temporary names.
        turn: counter that increases with every change made outside the form fields, so that they are drawn anew.
    """

    edits: Edits = field(default_factory=dict)
    turn: int = 0

    @property
    def is_changed(self) -> bool:
        """Whether the draft has edits, even if they cancel each other out."""
        return bool(self.edits)

    @property
    def added(self) -> list[Item]:
        return [edit for edit in self.edits.values() if isinstance(edit, Item)]

    def edited(self, item: Item) -> Item:
        """The item with its edit applied, under the same id."""
        edit = self.edits.get(item.item_id)
        if not isinstance(edit, ItemEdit):
            return item
        changes: dict[str, Any] = {"text": edit.text, "weight": edit.weight, "retired": edit.retired}
        return replace(item, **{name: value for name, value in changes.items() if value is not None})

    @property
    def marks(self) -> dict[str, str]:
        """The mark of each edited item, ``new`` or ``changed``, by the item's id."""
        return {
            edit.item_id if isinstance(edit, Item) else item_id: "new" if isinstance(edit, Item) else "changed"
            for item_id, edit in self.edits.items()
        }

    def take(self, name: str, edit: ItemEdit | Item | None) -> None:
        """Add an edit under a name, in place of an earlier one; ``None`` removes the edit with this name.

        Raises:
            ValueError: the edit is invalid; the draft stays unchanged.
        """
        edits = {known: other for known, other in self.edits.items() if known != name}
        if edit is not None and edit != ItemEdit():
            edits[name] = edit
        changed = {item_id: item_edit for item_id, item_edit in edits.items() if isinstance(item_edit, ItemEdit)}
        self.after = edited_bank(self.before, changed, [item for item in edits.values() if isinstance(item, Item)])
        self.edits, self.fields = edits, {}
        self.turn += 1

    def rebase(self, digest: str | None, content: Bank) -> int:
        """Apply the edits to a newer version of the file; drops edits that do not fit and returns their number."""
        edits, self.digest, self.before = self.edits, digest, content
        self.edits, self.after = {}, content
        for name, edit in edits.items():
            try:
                self.take(name, edit)
            except ValueError:
                continue
        return len(edits) - len(self.edits)


def _show_bank(source: data.Source, bank: Bank, draft: BankDraft | None) -> int | None:
    """Draw the items of the bank beside the agents' scores; returns the index of the selected item."""
    study = data.study(source)
    if draft is not None:
        text.quiet(f"File: {draft.path.name}")
        exam, queries = data.settings(source).exam, data.dataset(source).queries
        if study is not None and exam is not None and study.version != with_told_items(exam, bank, queries).version:
            st.info("The file is not the version that was graded last. `ragleague run` grades what is new in it.")
    if study is not None and study.grids.ungraded:
        incomplete(f"{study.grids.ungraded:,} of {study.grids.pairs:,} pairs of passage and item have no grade.")
    query_labels = editing.query_options(source)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query_id = choose("Query", list(query_labels), "query", query_labels.__getitem__, width=420)
        retired = st.toggle("Show retired items", key="retired", bind="query-params")
    marks = {} if draft is None else draft.marks
    places = [
        place
        for place, item in enumerate(bank.items)
        if query_id in (None, item.query_id) and (retired or not item.retired or item.item_id in marks)
    ]
    items = [bank.items[place] if draft is None else draft.edited(bank.items[place]) for place in places]
    new = [] if draft is None else [item for item in draft.added if query_id in (None, item.query_id)]
    names = {
        place: f"{place + 1}. {bank.items[place].query_id}: {text.clipped(bank.items[place].open_text, 120)}"
        for place in places
    }
    to = partial(
        links("workbench", source), view="bank", query=query_labels.get(query_id or "", ""), retired="true" * retired
    )
    counting = counted(sum(not item.retired for item in bank.items), "item counts", "items count")
    effects = {} if study is None else _exam_effects(source)
    lines = [item_line(item, marks) for item in (*items, *new)]
    leads = [to(item=name) for name in names.values()]
    table = items_table(lines, effects, [f"Version {bank.version}: {counting}."], leads)
    scores = data.board(source).exam
    boards = [] if scores is None else exam_board(scores).tables()[:1]
    pictures = [
        chart for board in boards for chart in of_table(board, {"blue": "cover"}, "EXAM-Cover", "Cover of each agent.")
    ]
    show_beside(table, pictures)
    place = pick("Item", places, "item", names.__getitem__) if places else None
    if place is not None:
        text.lead(bank.items[place].open_text)
    return place


def _show_grades(study: Study | None, item: Item) -> None:
    """Draw a table of the answers that cover an exam item."""
    if study is None or item.query_id not in study.grids.grids:
        return
    answers = answers_table(study.of_query(item.query_id), item.item_id)
    if answers.rows:
        show_table(answers)
    if item.secret:
        st.caption("What was answered to a secret item is not shown: it may repeat the item.")


def _show_labels(source: data.Source, study: Study) -> None:
    """Draw an expander that shows how well the bank agrees with relevance labels by people or judges."""
    with unfold("Does the bank ask for what is relevant?", "relevant", "labels") as fold:
        if not fold.open:
            return
        labels = data.exam_labels(source)
        if not labels:
            st.caption("Not known: no graded passage has a label of relevance.")
            return
        label_source = pick("Labels of", list(labels), "labels", WHOSE.__getitem__, width=260)
        labelled, level = replace(study, labels=labels[label_source]), study.usual_level
        show_table(uncovered_table(labelled, level, 1))
        show_table(spurious_table(labelled, level, 1))


def _edit_bank(source: data.Source, session: Session, draft: BankDraft) -> None:
    """Draw the forms that edit the bank, the effect of the edits on the scores, and the save buttons."""
    place, study = _show_bank(source, draft.before, draft), data.study(source)
    forms, grades = st.columns(2)
    with forms:
        changing, adding = st.tabs(["Change the item", "Add an item"])
        with changing:
            if place is not None:
                _change_item(draft, place)
        with adding:
            _add_item(source, draft)
    with grades:
        if place is not None:
            _show_grades(study, draft.before.items[place])
    if draft.is_changed:
        st.subheader("What your edits change", anchor=False)
        draw(*_bank_effect(source, draft))
        last = [*draft.edits][-1]
        st.button("Take back the last edit", on_click=editing.attempt, args=(draft.take, last, None))
        editing.show_save(_BANK, draft, lambda by: _save_bank(source, session, draft, by))
    if study is not None:
        _show_labels(source, study)
    editing.show_history(draft.path)


def _change_item(draft: BankDraft, place: int) -> None:
    item, edited = draft.before.items[place], draft.edited(draft.before.items[place])
    key_suffix = f"{draft.digest}-{draft.turn}-{place}"
    values = {
        f"text-{key_suffix}": edited.open_text,
        f"weight-{key_suffix}": float(edited.weight),
        f"retired-{key_suffix}": edited.retired,
    }
    editing.begin_fields(_BANK, draft, values)
    with st.container(border=True, key="draft-change"):
        new_text = st.text_area(
            "Text",
            key=f"text-{key_suffix}",
            disabled=item.secret,
            help="A changed text makes a new item. The old item is retired: it keeps its grades, but no longer counts.",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            weight = st.number_input("Weight", 0.0, step=0.5, key=f"weight-{key_suffix}", width=180)
            retired = st.checkbox("Retired: kept, but not counted", key=f"retired-{key_suffix}")
        pressed = st.button("Keep this change")
    if item.secret:
        st.caption("The text of a secret item is shown nowhere: edit it in the file.")
    if item.answers and not item.secret:
        st.caption("It has gold answers, which stay with a new text; edit them in the file.")
    if pressed:
        edit = ItemEdit(
            new_text if not item.secret and new_text.strip() != item.text.strip() else None,
            weight if weight != item.weight else None,
            retired if retired != item.retired else None,
        )
        editing.attempt(draft.take, item.item_id, edit)
        st.rerun()


def _add_item(source: data.Source, draft: BankDraft) -> None:
    bank = draft.before
    keys = list(dict.fromkeys([*bank.queries, *((query_id, None) for query_id in data.queries(source))]))
    types = [item.item_type for item in bank.items]

    def query_label(key: tuple[str, str | None]) -> str:
        return key[0] if key[1] is None else f"{key[0]}, subtopic {key[1]}"

    key_suffix = f"{draft.digest}-{len(draft.added)}"
    values: dict[str, Any] = {
        f"new-query-{key_suffix}": keys[0],
        f"new-type-{key_suffix}": max(ITEM_TYPES, key=types.count),
        f"new-text-{key_suffix}": "",
    }
    values |= {f"new-answers-{key_suffix}": "", f"new-weight-{key_suffix}": 1.0, f"new-secret-{key_suffix}": False}
    editing.begin_fields(_BANK, draft, values)
    with st.container(border=True, key="draft-add"):
        with st.container(horizontal=True):
            query_id, facet = st.selectbox(
                "Query", keys, format_func=query_label, key=f"new-query-{key_suffix}", width=420
            )
            item_type = st.selectbox("Type", ITEM_TYPES, key=f"new-type-{key_suffix}", width=180)
        new_text = st.text_area("Text", key=f"new-text-{key_suffix}")
        answers = st.text_area("Gold answers, one a line; may stay empty", key=f"new-answers-{key_suffix}", height=100)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            weight = st.number_input("Weight", 0.0, step=0.5, key=f"new-weight-{key_suffix}", width=180)
            secret = st.checkbox("Secret: graded with, but shown nowhere", key=f"new-secret-{key_suffix}")
        pressed = st.button("Add it")
    if pressed:

        def add() -> None:
            gold = answers.splitlines()
            item = new_item(
                query_id, new_text, answers=gold, item_type=item_type, facet_id=facet, weight=weight, secret=secret
            )
            draft.take(f"new {id(item)}", item)

        editing.attempt(add)
        st.rerun()


def _bank_effect(source: data.Source, draft: BankDraft) -> Sequence[Block]:
    """Blocks that show how the edits change the scores, computed from the existing grades."""
    study = data.study(source)
    graded = study is not None and bool(study.grades)
    effect = _effect(source, draft.digest, draft.after.version, draft) if graded else None
    return BankEditBoard(draft.before, draft.after, effect).sections()[0].blocks


@st.cache_resource(max_entries=4, show_spinner=False)
def _effect(source: data.Source, digest: str | None, version: str, _draft: BankDraft) -> EditEffect:  # noqa: ARG001 - cache keys
    study = data.study(source)
    assert study is not None
    before, after = (bank.of_queries(data.dataset(source).queries) for bank in (_draft.before, _draft.after))
    return edit_effect(before, after, study.grades, study.rankings, level=study.usual_level, k=data.exam_depth(source))


def _save_bank(source: data.Source, session: Session, draft: BankDraft, by: str) -> None:
    section = session.config.exam
    assert section is not None
    require_usable(section, draft.after.of_queries(data.dataset(source).queries))
    changed, what = _bank_effect(source, draft), described(diff(draft.before, draft.after))
    save_bank(draft.path, draft.after, folder=session.folder, seen=draft.digest, by=by, what=what)
    st.session_state.pop("item", None)
    words = "Saved; the earlier version is kept. This grades what is new:"
    editing.note_saved(words, f"ragleague run {session.path}", changed)
