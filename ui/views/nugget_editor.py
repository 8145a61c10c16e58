"""Editing the nuggets of a query: a draft in the page, and the file that the configuration names when it is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import streamlit as st

from arena import safe_files
from arena.boards.nugget_lists import edits_table, history_table, preview_table
from arena.nuggets.preview import preview
from arena.nuggets.results import NuggetResults
from judges.errors import InputError, RagarenaError
from retrieval_eval.nuggets.drafts import draft_of
from retrieval_eval.nuggets.editing import Kind, changes, edited
from retrieval_eval.nuggets.files import read_banks, write_banks
from retrieval_eval.nuggets.types import Importance, NuggetBank
from ui import data, editing, text
from ui.address import unfold
from ui.show import show_table
from ui.states import problem
from ui.views.nugget_steps import PROBLEM, Draft, show_steps

_NOTE: Final = "nugget-note"
_FILE: Final = "nugget-file"
_WHO: Final = "nugget-editor"


def show_editor(source: data.Source, results: NuggetResults, query_id: str) -> None:
    """Draw what can be edited of a query's nuggets, if anything."""
    st.subheader("Edit", anchor=False)
    session = editing.session()
    if session is None:
        st.caption(editing.why_not())
        return
    if session.config.name != source.tournament or session.config.nuggets is None:
        st.caption("To edit nuggets here, start the pages with the tournament's YAML file: `ragarena ui CONFIG`.")
        return
    _show_notes()
    bank = session.config.nuggets.bank
    if bank is None:
        _show_saving(session, results)
    else:
        query = data.queries(source)[query_id]
        _show_draft(session, bank, results, NuggetBank(query_id, query.text, ()))


def _show_notes() -> None:
    if note := st.session_state.pop(_NOTE, None):
        st.success("Saved.", icon=":material/check:")
        text.plain(note)
    if refused := st.session_state.pop(PROBLEM, None):
        problem("Nothing was changed.", refused)


def _show_saving(session: editing.Session, results: NuggetResults) -> None:
    """Nuggets that a judge made become a file, which can be edited."""
    st.caption(
        "The judge made these nuggets. To edit them, save them to a file beside the YAML file and name it there as "
        "`nuggets.bank`, in place of `nuggets.create` and `nuggets.keep`."
    )
    st.text_input("File", "nuggets.jsonl", key=_FILE, width=320)
    st.button("Save the nuggets", on_click=_save_all, args=(session, results), disabled=not results.banks)


def _save_all(session: editing.Session, results: NuggetResults) -> None:
    name = st.session_state[_FILE]

    def save() -> str:
        if not name.endswith((".jsonl", ".jsonl.gz")) or Path(name).name != name:
            raise InputError("a file's name ends in .jsonl and names no folder")
        path, banks = session.folder / name, list(results.banks.values())
        safe_files.save(
            path, lambda draft: write_banks(draft, banks), folder=session.folder, seen=None, by="", what="the judge's"
        )
        return (
            f"{path}: nuggets of {len(banks)} queries. In {session.path.name}, write 'bank: {name}' below 'nuggets' in "
            "place of 'create' and 'keep', and run 'ragarena run' once."
        )

    _attempt(save)


def _show_draft(session: editing.Session, path: Path, results: NuggetResults, none: NuggetBank) -> None:
    key = f"nugget-draft-{none.query_id}"
    draft: Draft = st.session_state.get(key) or _begun(path, none)
    if not draft.is_changed:
        draft = _begun(path, none)
    st.session_state[key] = draft
    if not safe_files.within(session.folder, path):
        st.caption("The file of nuggets is not in the folder of the YAML file, so it can only be edited by itself.")
        return
    show_steps(draft.after, key)
    _show_changes(draft, results)
    _show_save(session, path, draft, key)
    if (told := history_table(draft.before)).rows:
        with unfold("What was edited before", f"history-of-{none.query_id}") as opened:
            if opened.open:
                show_table(told)


def _begun(path: Path, none: NuggetBank) -> Draft:
    """The draft of what the file says now."""
    seen = safe_files.digest(path)
    before = next((bank for bank in read_banks(path) if bank.query_id == none.query_id), none)
    return Draft(seen, before, draft_of(before))


def _show_changes(draft: Draft, results: NuggetResults) -> None:
    """What the draft does to the list and, with what is known already, to the scores."""
    query_id = draft.after.query_id
    last = results.banks.get(query_id)
    if last is not None and _said(last) != _said(draft.before):
        st.info("The file has changed since the last run: `ragarena run` assigns what is new.")
    elif not draft.is_changed:
        return
    if draft.is_changed:
        show_table(edits_table(draft.before, draft.after))
    if last is not None and results.assignments:
        show_table(preview_table(preview(results.assignments, {query_id: draft.after})))


def _said(bank: NuggetBank) -> list[tuple[str, Importance | None]]:
    return [(own.text, own.importance) for own in bank.nuggets]


def _show_save(session: editing.Session, path: Path, draft: Draft, key: str) -> None:
    editing.ask_name("Your name", _WHO)
    with st.container(horizontal=True):
        st.button(
            "Save to the file",
            type="primary",
            disabled=not draft.is_changed,
            on_click=_save,
            args=(session, path, key),
        )
        st.button("Discard the changes", disabled=not draft.is_changed, on_click=_discard, args=(key,))


def _discard(key: str) -> None:
    st.session_state.pop(key, None)


def _save(session: editing.Session, path: Path, key: str) -> None:
    draft: Draft = st.session_state[key]
    who = editing.named(_WHO)

    def save() -> str:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        mine = edited(draft.before, draft.after, by=who, at=at)
        banks = {bank.query_id: bank for bank in read_banks(path)} | {mine.query_id: mine}
        counts = Counter(change.kind for change in changes(draft.before, draft.after) if change.kind is not Kind.KEPT)
        what = ", ".join(f"{number} {kind.value}" for kind, number in counts.items()) or "reordered"
        safe_files.save(
            path,
            lambda file: write_banks(file, banks.values()),
            folder=session.folder,
            seen=draft.seen,
            by=who,
            what=f"{mine.query_id}: {what}",
        )
        st.session_state.pop(key)
        return f"{path.name}: {what}. Run 'ragarena run {session.path.name}' to assign what is new."

    _attempt(save)


def _attempt(save: Callable[[], str]) -> None:
    try:
        editing.check_editor()
        st.session_state[_NOTE] = save()
    except (RagarenaError, ValueError) as error:
        st.session_state[PROBLEM] = str(error)
