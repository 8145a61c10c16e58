"""Bank: the items that answers are graded against, and where the pages have the configuration, their edits."""

from __future__ import annotations

import json
from pathlib import Path

import streamlit as st

from arena.boards.bank import BankBoard
from arena.data import safe_files
from arena.stages.exam.edits import save_new_bank
from judges.errors import InputError
from retrieval_eval.exam.items import Bank
from ui import data
from ui.editing import Session, session, why_not
from ui.show import show_table
from ui.text import nothing, problem
from ui.views.bank_editor import show_editor


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Test bank", anchor=False)
    try:
        found = session()
        section = found.config.exam if found is not None and found.config.name == source.tournament else None
        if found is not None and section is not None and section.bank and safe_files.within(found.folder, section.bank):
            show_editor(source, found, section.bank)
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
    if found is None:
        st.info(why_not())
    elif section is None:
        st.info("To read only: the configuration that these pages were started with has no exam for this tournament.")
    elif section.bank:
        st.info("To read only: the bank is not in the folder of the configuration. Edit the file itself.")
    show_table(BankBoard(study.version, study.bank.items).tables()[0])
    if found is not None and section is not None and not section.bank:
        _offer_file(found, study.bank)


def _offer_file(found: Session, bank: Bank) -> None:
    """Make a bank that a judge wrote a file, which can be edited."""
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
        save_new_bank(found.folder / name, bank, folder=found.folder)
    except InputError as error:
        problem("Nothing was saved.", error)
        return
    st.success("Saved. Name it in the `exam` section of the configuration in place of `generate`:")
    st.code(f"exam:\n  bank: {json.dumps(name)}", language="yaml")
    st.caption("What has been graded stays known.")
