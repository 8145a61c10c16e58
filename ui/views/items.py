"""The exam bank and the lists of nuggets, each item beside what it does to the scores; and their edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import streamlit as st
from msgspec import field
from msgspec.structs import replace

from arena.boards.bank import BankEditBoard, Effect, exam_effects, item_line, items_table, nugget_effects, nugget_line
from arena.boards.exam import ExamBoard
from arena.boards.exam_oversight import answers_table, spurious_table, uncovered_table
from arena.boards.metrics import WHOSE
from arena.boards.nuggets import edits_table, preview_table, scores_table
from arena.data import safe_files
from arena.present.blocks import Block
from arena.present.numbers import counted
from arena.present.picture import of_table
from arena.present.table import Table
from arena.results.exam_evaluation import Study
from arena.results.nuggets import NuggetResults, preview
from arena.stages.exam.bank import of_queries, require_usable, save_bank
from arena.store.annotations import texts_digest
from judges.errors import InputError
from retrieval_eval.exam.bank_files import new_item, read_bank
from retrieval_eval.exam.items import ITEM_TYPES, Bank, Item, ItemEdit, described, diff, edited_bank
from retrieval_eval.exam.oversight import EditEffect, edit_effect
from retrieval_eval.nuggets.editing import (
    Kind,
    added,
    changes,
    draft_of,
    edited,
    is_reordered,
    merged,
    moved,
    removed,
    weighed,
    worded,
)
from retrieval_eval.nuggets.files import read_banks, write_banks
from retrieval_eval.nuggets.types import Importance, NuggetBank
from ui import data, editing, text
from ui.address import choose, link, links, pick, unfold
from ui.editing import Session
from ui.show import draw, show_table
from ui.text import incomplete, lacking, nothing, problem

_EXAM_YAML: Final = "exam:\n  judge: JUDGE\n  bank: bank.jsonl  # or generate: {per_query: 5}"
_NUGGETS_YAML: Final = "nuggets:\n  judge: JUDGE\n  bank: nuggets.jsonl  # or create: {}, from relevant documents"

_BANK: Final = "bank-draft"

Edits: TypeAlias = Mapping[str, ItemEdit | Item]
Step: TypeAlias = Callable[[NuggetBank, Sequence[int], str, Importance | None], NuggetBank]
"""What a button does with the draft, the places chosen, the text and the importance."""


def show_bank(source: data.Source) -> None:
    """Draw the exam bank beside the exam's scores."""
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
        lacking(words, _EXAM_YAML, data.settings(source))
    elif study.bank is None or not study.bank.items:
        nothing("A judge writes this bank, and has not yet: `ragleague run` or `ragleague make bank` asks it.")
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


def show_nuggets(source: data.Source) -> None:
    """Draw the lists of nuggets beside their scores."""
    editing.say_saved()
    results = data.nuggets(source)
    if results is None:
        words = "**This tournament has no nuggets.** Nuggets are the facts that a good answer states."
        lacking(words, _NUGGETS_YAML, data.settings(source))
        return
    labels = [label for own in (*results.assignments, *results.passages.values()) for label in own.labels]
    if open_ := labels.count(None):
        incomplete(
            f"{open_:,} of {len(labels):,} labels failed or are not made yet. `ragleague run` makes what is missing, "
            "with `--retry-failed` also what failed."
        )
    named = _queries(source)
    query_id = choose("Query", list(named), "query", named.__getitem__)
    opened = editing.opened(source, "nuggets")
    draft = None
    if query_id is not None and opened.path is not None:
        draft = _draft(opened.path, NuggetBank(query_id, data.queries(source)[query_id].text, ()))
    _show_lists(source, results, query_id, draft)
    if query_id is not None:
        text.lead(data.queries(source)[query_id].text)
        st.markdown(f"[All answers to this query]({link('queries', source, query=named[query_id])})")
    if opened.session is None:
        st.info(opened.why_not)
    elif opened.path is None:
        session, banks = opened.session, list(results.banks.values())

        def save(path: Path) -> None:
            _save_nuggets(session, path, banks, seen=None, by="", what="the judge's")

        editing.offer_file(session, "nuggets.jsonl", "nuggets", (".jsonl", ".jsonl.gz"), save)
    elif draft is not None:
        _edit_nuggets(opened.session, draft, results)


def _show_lists(source: data.Source, results: NuggetResults, query_id: str | None, draft: NuggetDraft | None) -> None:
    """The nuggets of a query, as they are drafted, or of all, beside the scores."""
    shown = [bank for bank in results.banks.values() if query_id in (None, bank.query_id)]
    lines = [nugget_line(nugget) for bank in ([draft.after] if draft else shown) for nugget in bank.nuggets]
    board = data.board(source).nuggets
    scores = [scores_table("", board.answers)] if board is not None and board.answers.runs else []
    pictures = [
        own for one in scores for own in of_table(one, {"blue": "v_strict"}, "V strict", "V strict of each agent.")
    ]
    named, to = _queries(source), links("workbench", source)
    leads = [to(view="nuggets", query=named[line.query]) for line in lines] if query_id is None else []
    _show_beside(replace(items_table(lines, _nugget_effects(source), links=leads), name="nuggets"), pictures)
    if query_id is None:
        st.caption("Choose a query, or a line above, to edit its nuggets.")
    elif query_id not in results.banks:
        st.caption(f"No nuggets for this query: {results.without.get(query_id, 'none were made')}.")


def _show_beside(table: Table, scores: Sequence[Block]) -> None:
    """A table of items, and the scores that they make."""
    with st.container(key="beside"):
        items, beside = st.columns([2, 1]) if scores else (st.container(), None)
    with items:
        show_table(table)
    if beside is not None:
        with beside:
            draw(*scores)


def _queries(source: data.Source) -> dict[str, str]:
    """Queries as options, by id."""
    return {query_id: text.query_label(query_id, query.text) for query_id, query in data.queries(source).items()}


@data.derived("Leaving out each nugget in turn …")
def _nugget_effects(source: data.Source) -> Mapping[str, Effect]:
    results = data.nuggets(source)
    return {} if results is None else nugget_effects(results)


@data.derived("Leaving out each item in turn …")
def _exam_effects(source: data.Source) -> Mapping[str, Effect]:
    study = data.study(source)
    return {} if study is None else exam_effects(study, study.usual_level, data.exam_depth(source))


# The exam bank


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
        self.edits, self.fields = edits, {}
        self.turn += 1

    def rebase(self, digest: str | None, content: Bank) -> int:
        """Put the edits on a newer version of the file; returns how many do not fit it and are dropped."""
        edits, self.digest, self.before = self.edits, digest, content
        self.edits, self.after = {}, content
        for name, edit in edits.items():
            try:
                self.take(name, edit)
            except ValueError:
                continue
        return len(edits) - len(self.edits)


def _show_bank(source: data.Source, bank: Bank, draft: BankDraft | None) -> int | None:
    """The items beside the scores; returns the place of the one that is chosen."""
    study = data.study(source)
    if draft is not None:
        text.quiet(f"File: {draft.path.name}")
        if study is not None and study.version != of_queries(bank, data.dataset(source)).version:
            st.info("The file is not the version that was graded last. `ragleague run` grades what is new in it.")
    if study is not None and study.grids.ungraded:
        incomplete(f"{study.grids.ungraded:,} of {study.grids.pairs:,} pairs of passage and item have no grade.")
    named = _queries(source)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query_id = choose("Query", list(named), "query", named.__getitem__, width=420)
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
    to = partial(links("workbench", source), view="bank", query=named.get(query_id or "", ""), retired="true" * retired)
    counting = counted(sum(not item.retired for item in bank.items), "item counts", "items count")
    effects = {} if study is None else _exam_effects(source)
    lines = [item_line(item, marks) for item in (*items, *new)]
    leads = [to(item=name) for name in names.values()]
    table = items_table(lines, effects, [f"Version {bank.version}: {counting}."], leads)
    scores = data.board(source).exam
    boards = [] if scores is None else ExamBoard(scores).tables()[:1]
    pictures = [
        own for board in boards for own in of_table(board, {"blue": "cover"}, "EXAM-Cover", "Cover of each agent.")
    ]
    _show_beside(table, pictures)
    place = pick("Item", places, "item", names.__getitem__) if places else None
    if place is not None:
        text.lead(bank.items[place].open_text)
    return place


def _show_grades(study: Study | None, item: Item) -> None:
    """Who covers an item, with what."""
    if study is None or item.query_id not in study.grids.grids:
        return
    answers = answers_table(study.of_query(item.query_id), item.item_id)
    if answers.rows:
        show_table(answers)
    if item.secret:
        st.caption("What was answered to a secret item is not shown: it may repeat the item.")


def _show_labels(source: data.Source, study: Study) -> None:
    """What people's or judges' labels say of the bank, behind a fold."""
    with unfold("Does the bank ask for what is relevant?", "relevant", "labels") as fold:
        if not fold.open:
            return
        labels = data.exam_labels(source)
        if not labels:
            st.caption("Not known: no graded passage has a label of relevance.")
            return
        whose = pick("Labels of", list(labels), "labels", WHOSE.__getitem__, width=260)
        labelled, level = replace(study, labels=labels[whose]), study.usual_level
        show_table(uncovered_table(labelled, level, 1))
        show_table(spurious_table(labelled, level, 1))


def _edit_bank(source: data.Source, session: Session, draft: BankDraft) -> None:
    """The forms, what the edits change, and the way to save them."""
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
    item, now = draft.before.items[place], draft.edited(draft.before.items[place])
    at = f"{draft.digest}-{draft.turn}-{place}"
    values = {f"text-{at}": now.open_text, f"weight-{at}": float(now.weight), f"retired-{at}": now.retired}
    editing.begin_fields(_BANK, draft, values)
    with st.container(border=True, key="draft-change"):
        new_text = st.text_area(
            "Text",
            key=f"text-{at}",
            disabled=item.secret,
            help="A new text makes a new item in the place of the old one, which is kept, retired, with its grades.",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            weight = st.number_input("Weight", 0.0, step=0.5, key=f"weight-{at}", width=180)
            retired = st.checkbox("Retired: kept, but not counted", key=f"retired-{at}")
        pressed = st.button("Keep this change")
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
        editing.attempt(draft.take, item.item_id, wanted)
        st.rerun()


def _add_item(source: data.Source, draft: BankDraft) -> None:
    bank = draft.before
    keys = list(dict.fromkeys([*bank.queries, *((query_id, None) for query_id in data.queries(source))]))
    types = [item.item_type for item in bank.items]

    def name(key: tuple[str, str | None]) -> str:
        return key[0] if key[1] is None else f"{key[0]}, subtopic {key[1]}"

    at = f"{draft.digest}-{len(draft.added)}"
    values: dict[str, Any] = {
        f"new-query-{at}": keys[0],
        f"new-type-{at}": max(ITEM_TYPES, key=types.count),
        f"new-text-{at}": "",
    }
    values |= {f"new-answers-{at}": "", f"new-weight-{at}": 1.0, f"new-secret-{at}": False}
    editing.begin_fields(_BANK, draft, values)
    with st.container(border=True, key="draft-add"):
        with st.container(horizontal=True):
            query_id, facet = st.selectbox("Query", keys, format_func=name, key=f"new-query-{at}", width=420)
            kind = st.selectbox("Type", ITEM_TYPES, key=f"new-type-{at}", width=180)
        new_text = st.text_area("Text", key=f"new-text-{at}")
        answers = st.text_area("Gold answers, one a line; may stay empty", key=f"new-answers-{at}", height=100)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            weight = st.number_input("Weight", 0.0, step=0.5, key=f"new-weight-{at}", width=180)
            secret = st.checkbox("Secret: graded with, but shown nowhere", key=f"new-secret-{at}")
        pressed = st.button("Add it")
    if pressed:

        def add() -> None:
            gold = answers.splitlines()
            item = new_item(
                query_id, new_text, answers=gold, item_type=kind, facet_id=facet, weight=weight, secret=secret
            )
            draft.take(f"new {id(item)}", item)

        editing.attempt(add)
        st.rerun()


def _bank_effect(source: data.Source, draft: BankDraft) -> Sequence[Block]:
    """What the edits change, with the grades that are known."""
    study = data.study(source)
    graded = study is not None and bool(study.grades)
    effect = _effect(source, draft.digest, draft.after.version, draft) if graded else None
    return BankEditBoard(draft.before, draft.after, effect).sections()[0].blocks


@st.cache_resource(max_entries=4, show_spinner=False)
def _effect(source: data.Source, digest: str | None, version: str, _draft: BankDraft) -> EditEffect:  # noqa: ARG001 - keys
    study = data.study(source)
    assert study is not None
    before, after = (of_queries(bank, data.dataset(source)) for bank in (_draft.before, _draft.after))
    return edit_effect(before, after, study.grades, study.rankings, level=study.usual_level, k=data.exam_depth(source))


def _save_bank(source: data.Source, session: Session, draft: BankDraft, by: str) -> None:
    section = session.config.exam
    assert section is not None
    require_usable(section, of_queries(draft.after, data.dataset(source)))
    changed, what = _bank_effect(source, draft), described(diff(draft.before, draft.after))
    save_bank(draft.path, draft.after, folder=session.folder, seen=draft.digest, by=by, what=what)
    st.session_state.pop("item", None)
    words = "Saved; the earlier version is kept. This grades what is new:"
    editing.note_saved(words, f"ragleague run {session.path}", changed)


# Lists of nuggets


class NuggetDraft(editing.Draft[NuggetBank]):
    """One query's nuggets as they are being edited."""

    @property
    def is_changed(self) -> bool:
        """Whether a nugget is another one, or stands elsewhere."""
        done = changes(self.before, self.after)
        return is_reordered(self.before, self.after) or any(change.kind is not Kind.KEPT for change in done)

    @property
    def words(self) -> str:
        """The changes, counted by kind."""
        kinds = [change.kind for change in changes(self.before, self.after) if change.kind is not Kind.KEPT]
        return ", ".join(f"{kinds.count(kind)} {kind.value}" for kind in dict.fromkeys(kinds)) or "reordered"

    def rebase(self, digest: str | None, content: NuggetBank) -> int:
        """Keep the edits where this query's list is as it was; where it is not, they are dropped."""
        self.digest, same = digest, content == self.before
        if not same:
            self.before, self.after = content, draft_of(content)
        return int(not same)


def _draft(path: Path, none: NuggetBank) -> NuggetDraft:
    """The draft of one query's list, which has no nugget where the file has none of it."""
    return editing.draft(
        _key(none.query_id),
        path,
        lambda: next((bank for bank in read_banks(path) if bank.query_id == none.query_id), none),
        lambda path, digest, before: NuggetDraft(path, digest, before, draft_of(before)),
    )


def _key(query_id: str) -> str:
    return f"nugget-draft-{query_id}"


def _edit_nuggets(session: Session, draft: NuggetDraft, results: NuggetResults) -> None:
    _show_steps(draft)
    last = results.banks.get(draft.before.query_id)
    said = [[(own.text, own.importance) for own in bank.nuggets] for bank in (last or draft.before, draft.before)]
    if said[0] != said[1]:
        st.info("The file has changed since the last run: `ragleague run` assigns what is new.")
    if draft.is_changed or said[0] != said[1]:
        draw(*_nugget_effect(draft, results))
    editing.show_save(_key(draft.before.query_id), draft, lambda by: _save_draft(session, draft, by))
    editing.show_history(draft.path)


def _nugget_effect(draft: NuggetDraft, results: NuggetResults) -> list[Block]:
    """What the draft does to the list and, with what is known already, to the scores."""
    query_id = draft.after.query_id
    blocks: list[Block] = [edits_table(draft.before, draft.after)] if draft.is_changed else []
    if query_id in results.banks and results.assignments:
        blocks.append(preview_table(preview(results.assignments, {query_id: draft.after})))
    return blocks


def _save_draft(session: Session, draft: NuggetDraft, by: str) -> None:
    mine = edited(draft.before, draft.after, by=by, at=datetime.now(UTC).isoformat(timespec="seconds"))
    banks = {bank.query_id: bank for bank in read_banks(draft.path)} | {mine.query_id: mine}
    what = f"{mine.query_id}: {draft.words}"
    _save_nuggets(session, draft.path, list(banks.values()), seen=draft.digest, by=by, what=what)
    words = "Saved; the earlier version is kept. This assigns what is new:"
    editing.note_saved(words, f"ragleague run {session.path}", [edits_table(draft.before, draft.after)])


def _save_nuggets(
    session: Session, path: Path, banks: Sequence[NuggetBank], *, seen: str | None, by: str, what: str
) -> None:
    safe_files.save(path, lambda file: write_banks(file, banks), folder=session.folder, seen=seen, by=by, what=what)


def _show_steps(draft: NuggetDraft) -> None:
    """What can be done, by how many nuggets are chosen."""
    bank = draft.after
    version = texts_digest(*(f"{own.text} {own.importance}" for own in bank.nuggets))
    editing.begin_fields(_key(bank.query_id), draft, {f"nuggets-{version}": []})
    chosen = sorted(
        st.multiselect(
            "Nuggets to change",
            range(len(bank.nuggets)),
            format_func=lambda place: f"{place + 1}. {text.clipped(bank.nuggets[place].text, 60)}",
            placeholder="none: add a new one",
            key=f"nuggets-{version}",
        )
    )
    own = f"{version}-{'-'.join(map(str, chosen))}"
    current = bank.nuggets[chosen[0]].importance if chosen else Importance.VITAL
    values = {f"wording-{own}": "; ".join(bank.nuggets[place].text for place in chosen), f"importance-{own}": current}
    editing.begin_fields(_key(bank.query_id), draft, values)
    label = "Text" if len(chosen) != 1 else "Text; several lines split the nugget"
    with st.container(key="draft-nuggets"):
        st.text_area(label, key=f"wording-{own}", height=90)
    st.radio("Importance", list(Importance), horizontal=True, key=f"importance-{own}")
    with st.container(horizontal=True):
        for name, step in _STEPS[min(2, len(chosen))].items():
            st.button(name, key=f"{name}-{own}", on_click=editing.attempt, args=(_do, draft, step, chosen, own))


def _changed(bank: NuggetBank, places: Sequence[int], wording: str, importance: Importance | None) -> NuggetBank:
    """One nugget with the text and the importance as they stand there; several lines split it."""
    lines = [line for line in wording.splitlines() if line.strip()] or [""]
    parts = range(places[0], places[0] + len(lines))
    return weighed(worded(bank, places[0], lines), parts, importance)


def _remove(bank: NuggetBank, places: Sequence[int], *_: object) -> NuggetBank:
    return removed(bank, places)


_STEPS: Final[Sequence[dict[str, Step]]] = (
    {"Add": lambda bank, _, wording, importance: added(bank, wording, importance)},
    {
        "Change": _changed,
        "Remove": _remove,
        "Move up": lambda bank, places, *_: moved(bank, places[0], -1),
        "Move down": lambda bank, places, *_: moved(bank, places[0], 1),
    },
    {
        "Merge": lambda bank, places, wording, _: merged(bank, places, wording),
        "Set importance": lambda bank, places, _, importance: weighed(bank, places, importance),
        "Remove": _remove,
    },
)
"""The buttons for no nugget chosen, for one and for several."""


def _do(draft: NuggetDraft, step: Step, places: Sequence[int], own: str) -> None:
    """One step, with the text as it is now: it may have been typed after the page was drawn."""
    wording, importance = st.session_state[f"wording-{own}"], st.session_state[f"importance-{own}"]
    draft.after, draft.fields = step(draft.after, places, wording, importance), {}
