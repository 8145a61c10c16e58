"""Assess: a person says which nuggets an answer states. Nobody's name, no model's label and no importance is shown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import streamlit as st

from arena.nuggets.people import Said, Sheet, State, annotations_of, labels_on, said_by, sheets, state_of
from arena.nuggets.results import nuggets_section
from arena.store.annotations import Kind
from judges.errors import RagarenaError
from retrieval_eval.nuggets.types import Support
from ui import data, people, text
from ui.nuggets import support_words

_HEIGHT: Final = 440
"""Pixels of the answer and of the list beside it: both are seen at once on a common screen."""
_OF_A_NUGGET: Final = 70
"""Pixels that a nugget takes at least."""
_AT: Final = "assess-at"
_PROBLEM: Final = "assess-problem"


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Which facts does the answer state?", anchor=False)
    results = data.nuggets(source)
    if results is None or not results.banks:
        st.info(
            "There are no nuggets yet. Give the YAML file a `nuggets` section and run `ragarena run`. "
            "Then people can say here which of them each answer states."
        )
        return
    who = people.annotator()
    if who is None:
        return
    said = said_by(people.latest(source, Kind.NUGGET, who), who)
    todo = sheets(results.banks, data.dataset(source).answers.values(), who)
    if not todo:
        st.info("No answer to read: every answer to a query with nuggets is empty.")
        return
    states = [state_of(sheet, said) for sheet in todo]
    skipped, open_ = (
        [sheet for sheet, own in zip(todo, states, strict=True) if own is state]
        for state in (State.SKIPPED, State.OPEN)
    )
    _show_progress(len(todo), len(open_), len(skipped))
    chosen = next((sheet for sheet in todo if sheet.sheet_id == st.session_state.get(_AT)), None)
    sheet = chosen or (open_[0] if open_ else None)
    if sheet is None:
        _show_end(skipped, len(todo))
    else:
        _show_sheet(source, sheet, said, who)
        _show_back(todo, sheet)


def _show_progress(whole: int, left: int, skipped: int) -> None:
    done = whole - left - skipped
    more = f", {skipped:,} skipped" if skipped else ""
    st.progress((whole - left) / whole, text=f"{done:,} of {whole:,} answers assessed{more}")


def _show_end(skipped: Sequence[Sheet], whole: int) -> None:
    st.success(f"You have been through all {whole:,} answers. Thank you.", icon=":material/done_all:")
    if skipped:
        st.button(f"Take up the {len(skipped):,} skipped", on_click=_go_to, args=(skipped[0].sheet_id,))


def _show_sheet(source: data.Source, sheet: Sheet, said: Said, who: str) -> None:
    """The answer beside the query's nuggets, each with its labels to choose from."""
    earlier = labels_on(sheet, said)
    own = f"{sheet.sheet_id}-{_in_a_key(who)}"
    st.session_state.setdefault(f"assess-begun-{own}", time.monotonic())
    text.lead(sheet.query, "query")
    grades = nuggets_section(data.settings(source)).assign.grades
    offered = [label for label in Support if grades == 3 or label is not Support.PARTIAL]
    partly = "; *partial support*: a part of it" if grades == 3 else ""
    st.caption(f"*Support*: the answer states the whole fact{partly}. Whether the fact is true does not matter here.")
    left, right = st.columns(2, gap="medium")
    with left:
        text.passage(sheet.answer, f"assess-{own}", empty="", height=_HEIGHT, border=True)
    with right, st.form(f"assess-form-{own}", border=False):
        keys = []
        fits = len(sheet.nuggets) * _OF_A_NUGGET < _HEIGHT
        with st.container(height="content" if fits else _HEIGHT, border=True, key=f"assess-nuggets-{own}"):
            for number, (nugget, label) in enumerate(zip(sheet.nuggets, earlier, strict=True), start=1):
                keys.append(f"assess-{own}-{number}")
                with st.container(gap="xsmall"):
                    text.strong(f"{number}. {nugget.text}", keys[-1])
                    st.radio(
                        f"Nugget {number}",
                        offered,
                        index=offered.index(label) if label in offered else None,
                        format_func=support_words,
                        horizontal=True,
                        label_visibility="collapsed",
                        key=keys[-1],
                    )
        _show_problem()
        with st.container(horizontal=True):
            st.form_submit_button(
                "Save and go on",
                type="primary",
                key=f"save-{own}",
                shortcut="Ctrl+Enter",
                on_click=_save,
                args=(source, sheet, who, keys, f"assess-begun-{own}"),
            )
            st.form_submit_button(
                "Skip", key=f"skip-{own}", on_click=_skip, args=(source, sheet, who), help="You can take it up later."
            )


def _in_a_key(who: str) -> str:
    """A name as part of a widget's key: what one person has chosen and not saved is not shown to another."""
    return who.encode("utf-8", "replace").hex()


def _show_back(todo: Sequence[Sheet], sheet: Sheet) -> None:
    place = todo.index(sheet)
    with st.container(horizontal=True):
        st.button(
            "Back to the answer before",
            on_click=_go_to,
            args=(todo[place - 1].sheet_id,),
            disabled=place == 0,
            icon=":material/arrow_back:",
        )
        if st.session_state.get(_AT) is not None:
            st.button("Go on where you stopped", on_click=_go_to, args=(None,))


def _go_to(sheet_id: str | None) -> None:
    st.session_state[_AT] = sheet_id


def _save(source: data.Source, sheet: Sheet, who: str, keys: Sequence[str], begun: str) -> None:
    labels: list[Any] = [st.session_state.get(key) for key in keys]
    if missing := labels.count(None):
        st.session_state[_PROBLEM] = f"Nuggets without a label: {missing}. Label them all, or skip the answer."
        return
    seconds = time.monotonic() - st.session_state[begun]
    _keep(source, sheet, labels, who, seconds)


def _skip(source: data.Source, sheet: Sheet, who: str) -> None:
    _keep(source, sheet, [None] * len(sheet.nuggets), who, None)


def _keep(source: data.Source, sheet: Sheet, labels: Sequence[Support | None], who: str, seconds: float | None) -> None:
    try:
        people.add(source, annotations_of(sheet, labels, who, seconds))
    except RagarenaError as error:
        st.session_state[_PROBLEM] = f"Not saved. {error}"
    else:
        st.session_state[_AT] = None


def _show_problem() -> None:
    if problem := st.session_state.pop(_PROBLEM, None):
        st.error("Not saved yet.", icon=":material/error:")
        text.plain(problem)
