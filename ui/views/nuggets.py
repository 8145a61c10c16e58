"""Nuggets: what each agent's answers state, query by query, and where the configuration names a file, their edits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import streamlit as st

from arena.boards.nuggets import Nuggets, edits_table, history_table, preview_table, support_blocks
from arena.data import safe_files
from arena.stages.nuggets.results import NuggetResults, preview
from arena.store.annotations import texts_digest
from retrieval_eval.nuggets.drafts import added, draft_of, merged, moved, removed, weighed, worded
from retrieval_eval.nuggets.editing import Kind, changes, edited, is_reordered
from retrieval_eval.nuggets.files import read_banks, write_banks
from retrieval_eval.nuggets.types import Importance, NuggetBank
from ui import data, editing, text
from ui.address import link, pick, say_what_is_unknown
from ui.show import show_block, show_sections, show_table
from ui.text import Line, incomplete, nothing

_FILE: Final = "nugget-file"
_WHO: Final = "nugget-editor"

Step = Callable[[NuggetBank, Sequence[int], str, Importance | None], NuggetBank]
"""What a button does with the draft, the places chosen, the text and the importance."""


class NuggetDraft(editing.Draft[NuggetBank]):
    """One query's nuggets as they are being edited."""

    @property
    def is_changed(self) -> bool:
        """Whether a nugget is another one, or stands elsewhere."""
        return is_reordered(self.before, self.after) or bool(self.counts)

    @property
    def counts(self) -> Counter[Kind]:
        """Changes by kind."""
        done = changes(self.before, self.after)
        return Counter(change.kind for change in done if change.kind is not Kind.KEPT)


def show(source: data.Source) -> None:
    """Draw the page."""
    st.header("Nuggets", anchor=False)
    results, board = data.nuggets(source), data.board(source)
    if results is None or board.nuggets is None:
        nothing(
            "This tournament has no nuggets. Give its YAML file a section `nuggets`, with a `bank` or with a judge "
            "that makes them, and run `ragleague run`."
        )
        return
    scores = Nuggets(board.nuggets, [row.agent for row in board.ratings.agents] if board.ratings else [])
    agents = scores.scored()
    _say_what_is_missing(results)
    show_sections(scores.sections())
    if results.banks and not agents:
        nothing("Nothing to a query with nuggets is there to be scored.")
    queries = data.queries(source)
    named = {query_id: text.query_label(query_id, query.text) for query_id, query in queries.items()}
    st.subheader("Nuggets of a query", anchor=False)
    query_id = pick("Query", list(named), "query", named.__getitem__)
    say_what_is_unknown()
    text.lead(queries[query_id].text)
    if query_id in results.banks:
        _show_support(results.banks[query_id], results, agents)
        st.markdown(f"[Games on this query]({link('queries', source, view='games', query=named[query_id])})")
    else:
        st.caption(f"No nuggets for this query: {results.without.get(query_id, 'none were made')}.")
    _show_editor(source, results, query_id)


def _say_what_is_missing(results: NuggetResults) -> None:
    labels = [label for own in (*results.assignments, *results.passages.values()) for label in own.labels]
    if open_ := labels.count(None):
        incomplete(
            f"{open_:,} of {len(labels):,} labels failed or are not made yet. A score that needs "
            "one of them is in no mean. `ragleague run` makes what is missing, with `--retry-failed` also what failed."
        )


def _show_support(bank: NuggetBank, results: NuggetResults, order: Sequence[str]) -> None:
    labels = {own.run: own for own in results.assignments if own.query_id == bank.query_id}
    agents = [agent for agent in order if agent in labels]
    for block in support_blocks(bank, labels, agents):
        show_block(block)


def _show_editor(source: data.Source, results: NuggetResults, query_id: str) -> None:
    """What can be edited of a query's nuggets, if anything."""
    st.subheader("Edit", anchor=False)
    session = editing.session()
    if session is None:
        st.caption(editing.why_not())
        return
    if session.config.name != source.tournament or session.config.nuggets is None:
        st.caption("To edit nuggets here, start the pages with the tournament's YAML file: `ragleague ui CONFIG`.")
        return
    editing.say_saved()
    editing.say_refused("Nothing was changed.")
    path = session.config.nuggets.bank
    if path is not None:
        _show_draft(session, path, results, NuggetBank(query_id, data.queries(source)[query_id].text, ()))
        return
    st.caption(
        "The judge made these nuggets. To edit them, save them to a file beside the YAML file and name it there as "
        "`nuggets.bank`, in place of `nuggets.create` and `nuggets.keep`."
    )
    st.text_input("File", "nuggets.jsonl", key=_FILE, width=320)
    st.button(
        "Save the nuggets", on_click=editing.attempt, args=(_save_all, session, results), disabled=not results.banks
    )


def _save_all(session: editing.Session, results: NuggetResults) -> None:
    """Nuggets that a judge made become a file, which can be edited."""
    path, banks = editing.new_file(session, st.session_state[_FILE], ".jsonl", ".jsonl.gz"), results.banks.values()
    _save_file(session, path, list(banks), seen=None, by="", what="the judge's")
    note = (
        f"{path}: nuggets of {len(banks)} queries. In {session.path.name}, write 'bank: {path.name}' below "
        "'nuggets' in place of 'create' and 'keep', and run 'ragleague run' once."
    )
    editing.note_saved("Saved.", Line("body", note))


def _show_draft(session: editing.Session, path: Path, results: NuggetResults, none: NuggetBank) -> None:
    def begin(digest: str | None) -> NuggetDraft:
        before = next((bank for bank in read_banks(path) if bank.query_id == none.query_id), none)
        return NuggetDraft(path, digest, before, draft_of(before))

    key = f"nugget-draft-{none.query_id}"
    draft = editing.draft(key, path, begin)
    if not safe_files.within(session.folder, path):
        st.caption("The file of nuggets is not in the folder of the YAML file, so it can only be edited by itself.")
        return
    _show_steps(draft)
    _show_changes(draft, results)
    editing.ask_name("Your name", _WHO)
    with st.container(horizontal=True):
        same = not draft.is_changed
        args = (_save, session, draft, key)
        st.button("Save to the file", type="primary", disabled=same, on_click=editing.attempt, args=args)
        st.button("Discard the changes", disabled=same, on_click=st.session_state.pop, args=(key, None))
    if (earlier := history_table(draft.before)).rows:
        editing.show_history("What was edited before", f"history-of-{none.query_id}", lambda: earlier)


def _show_changes(draft: NuggetDraft, results: NuggetResults) -> None:
    """What the draft does to the list and, with what is known already, to the scores."""
    query_id = draft.after.query_id
    last = results.banks.get(query_id)
    said = [[(own.text, own.importance) for own in bank.nuggets] for bank in (last or draft.before, draft.before)]
    if said[0] != said[1]:
        st.info("The file has changed since the last run: `ragleague run` assigns what is new.")
    elif not draft.is_changed:
        return
    if draft.is_changed:
        show_table(edits_table(draft.before, draft.after))
    if last is not None and results.assignments:
        show_table(preview_table(preview(results.assignments, {query_id: draft.after})))


def _save(session: editing.Session, draft: NuggetDraft, key: str) -> None:
    who, path = editing.named(_WHO), draft.path
    mine = edited(draft.before, draft.after, by=who, at=datetime.now(UTC).isoformat(timespec="seconds"))
    banks = {bank.query_id: bank for bank in read_banks(path)} | {mine.query_id: mine}
    what = ", ".join(f"{number} {kind.value}" for kind, number in draft.counts.items()) or "reordered"
    _save_file(session, path, list(banks.values()), seen=draft.digest, by=who, what=f"{mine.query_id}: {what}")
    st.session_state.pop(key)
    note = f"{path.name}: {what}. Run 'ragleague run {session.path.name}' to assign what is new."
    editing.note_saved("Saved.", Line("body", note))


def _save_file(
    session: editing.Session, path: Path, banks: Sequence[NuggetBank], *, seen: str | None, by: str, what: str
) -> None:
    safe_files.save(path, lambda file: write_banks(file, banks), folder=session.folder, seen=seen, by=by, what=what)


def _show_steps(draft: NuggetDraft) -> None:
    """The list, and what can be done, by how many nuggets are chosen."""
    bank = draft.after
    version = texts_digest(*(f"{own.text} {own.importance}" for own in bank.nuggets))
    with st.container(gap="xxsmall"):
        for number, nugget in enumerate(bank.nuggets, start=1):
            text.plain(f"{number}. {nugget.text} ({nugget.importance or 'importance not known'})")
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
    label = "Text" if len(chosen) != 1 else "Text; several lines split the nugget"
    st.text_area(label, "; ".join(bank.nuggets[place].text for place in chosen), key=f"wording-{own}", height=90)
    offered = list(Importance)
    current = bank.nuggets[chosen[0]].importance if chosen else Importance.VITAL
    index = None if current is None else offered.index(current)
    st.radio("Importance", offered, index=index, horizontal=True, key=f"importance-{own}")
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
    draft.after = step(draft.after, places, wording, importance)
