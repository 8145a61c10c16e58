"""Bank: the items that answers are graded against, and where the pages have the configuration, their edits."""

from __future__ import annotations

import json
from pathlib import Path

import streamlit as st

from arena import safe_files
from arena.boards.bank import BankBoard
from arena.exam.edits import save_new_bank
from arena.exam.study import Study
from judges.errors import InputError
from ui import data, exam, text
from ui.editing import Session, session, why_not
from ui.show import show_table
from ui.states import nothing, problem
from ui.views.bank_editor import HEIGHT, show_editor


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Test bank", anchor=False)
    try:
        found = session()
        if found is not None and found.config.exam is not None and found.config.name == source.tournament:
            if found.config.exam.bank is not None:
                _show_file(source, found, found.config.exam.bank)
            else:
                _show_written(source, found)
            return
    except InputError as error:
        problem("The configuration or its bank cannot be used as it is now.", error)
        return
    _show_kept(source, found)


def _show_kept(source: data.Source, found: Session | None) -> None:
    """The bank as the store has it, to be read."""
    study = exam.study(source)
    if study is None or study.bank is None:
        nothing("This tournament has no test bank. Give its YAML file an `exam` section and run `ragarena run`.")
        return
    if found is None:
        st.info(why_not())
    else:
        st.info("To read only: the configuration that these pages were started with has no exam for this tournament.")
    _show_items(study)


def _show_file(source: data.Source, found: Session, path: Path) -> None:
    if safe_files.within(found.folder, path):
        show_editor(source, found, path)
        return
    st.info("To read only: the bank is not in the folder of the configuration. Edit the file itself.")
    text.quiet(str(path))
    study = exam.study(source)
    if study is not None:
        _show_items(study)


def _show_written(source: data.Source, found: Session) -> None:
    """A bank that a judge writes, and the offer to make it a file."""
    study = exam.study(source)
    if study is None or study.bank is None or not study.bank.items:
        nothing("A judge writes this bank, and has not yet: `ragarena run` or `ragarena exam generate` asks it.")
        return
    _show_items(study)
    st.subheader("Make it yours", anchor=False)
    st.caption("A judge wrote this bank. Saved as a file beside the configuration, it can be edited here.")
    with st.form("save-written"):
        name = st.text_input("File name", "bank.jsonl", help="Ends in .jsonl, .yaml or .csv; a new file.")
        pressed = st.form_submit_button("Save as a file", type="primary")
    if not pressed:
        return
    try:
        if Path(name).name != name or name.startswith("."):
            raise InputError(f"{name!r}: a plain file name is needed, without a folder")
        save_new_bank(found.folder / name, study.bank, folder=found.folder)
    except InputError as error:
        problem("Nothing was saved.", error)
        return
    st.success("Saved. Name it in the `exam` section of the configuration in place of `generate`:")
    st.code(f"exam:\n  bank: {json.dumps(name)}", language="yaml")
    st.caption("What has been graded stays known.")


def _show_items(study: Study) -> None:
    """Draw the items of a tournament, to be read."""
    if study.bank is not None:
        show_table(BankBoard(study.version, study.bank.items).tables()[0], height=HEIGHT)
