"""The nuggets of each query with their effects on the scores, and their editor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

import streamlit as st
from msgspec.structs import replace

from arena.boards.bank import ItemEffect, items_table, nugget_effects, nugget_line
from arena.boards.nuggets import edits_table, preview_table, scores_table
from arena.boards.quantities import NUGGETS
from arena.data import safe_files
from arena.data.kinds import texts_digest
from arena.present.blocks import Block
from arena.present.picture import of_table
from arena.results.nuggets import NuggetResults, preview
from retrieval_eval.nuggets.files import read_banks, write_banks
from retrieval_eval.nuggets.types import (
    EditKind,
    Importance,
    NuggetBank,
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
from ui import data, editing, onward, text
from ui.address import choose, link, links
from ui.editing import Session
from ui.show import draw, show_beside
from ui.text import incomplete

_NUGGETS_YAML: Final = "nuggets:\n  judge: JUDGE\n  bank: nuggets.jsonl  # or create: {}, from relevant documents"

Step: TypeAlias = Callable[[NuggetBank, Sequence[int], str, Importance | None], NuggetBank]
"""A function that edits the nuggets of a query.

It takes the nuggets, the indexes of the selected nuggets, and the form's text and importance; it returns the edited
nuggets.
"""


def show_nuggets(source: data.Source) -> None:
    """Draw the nuggets, of one query or all, with the agents' scores, and the form that edits them."""
    editing.say_saved()
    results = data.nuggets(source)
    if results is None:
        words = "**This tournament has no nuggets.** Nuggets are the facts that a good answer states."
        onward.add(words, _NUGGETS_YAML, source)
        return
    labels = [label for assignment in (*results.assignments, *results.passages.values()) for label in assignment.labels]
    if missing := labels.count(None):
        incomplete(
            f"{missing:,} of {len(labels):,} labels failed or are not made yet. `ragleague run` makes what is missing, "
            "with `--retry-failed` also what failed."
        )
    query_labels = editing.query_options(source)
    query_id = choose("Query", list(query_labels), "query", query_labels.__getitem__)
    opened = editing.opened(source, "nuggets")
    draft = None
    if query_id is not None and opened.path is not None:
        draft = _draft(opened.path, NuggetBank(query_id, data.queries(source)[query_id].text, ()))
    _show_lists(source, results, query_id, draft)
    if query_id is not None:
        text.lead(data.queries(source)[query_id].text)
        st.markdown(f"[All answers to this query]({link('queries', source, query=query_labels[query_id])})")
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
    """Draw the nuggets of one query, with the draft's edits, or of all queries, beside the scores."""
    banks = [bank for bank in results.banks.values() if query_id in (None, bank.query_id)]
    lines = [nugget_line(nugget) for bank in ([draft.after] if draft else banks) for nugget in bank.nuggets]
    board = data.board(source).nuggets
    scores = [scores_table("Nuggets of answers", board.answers)] if board is not None and board.answers.runs else []
    pictures = [
        chart
        for table in scores
        for chart in of_table(table, {"blue": "v_strict"}, NUGGETS["v_strict"].title, "Of each agent.")
    ]
    query_labels, to = editing.query_options(source), links("workbench", source)
    row_links = [to(view="nuggets", query=query_labels[line["query"]]) for line in lines] if query_id is None else []
    show_beside(replace(items_table(lines, _nugget_effects(source), links=row_links), name="nuggets"), pictures)
    if query_id is None:
        st.caption("Choose a query, or a line above, to edit its nuggets.")
    elif query_id not in results.banks:
        st.caption(f"No nuggets for this query: {results.without.get(query_id, 'none were made')}.")


@data.derived("Leaving out each nugget in turn …")
def _nugget_effects(source: data.Source) -> Mapping[str, ItemEffect]:
    results = data.nuggets(source)
    return {} if results is None else nugget_effects(results)


class NuggetDraft(editing.Draft[NuggetBank]):
    """Unsaved edits of one query's nuggets."""

    @property
    def is_changed(self) -> bool:
        """Whether the nuggets or their order have changed."""
        all_changes = changes(self.before, self.after)
        return is_reordered(self.before, self.after) or any(change.kind is not EditKind.KEPT for change in all_changes)

    @property
    def words(self) -> str:
        """The number of changes of each kind, as text for the file's history."""
        kinds = [change.kind for change in changes(self.before, self.after) if change.kind is not EditKind.KEPT]
        return ", ".join(f"{kinds.count(kind)} {kind.value}" for kind in dict.fromkeys(kinds)) or "reordered"

    def rebase(self, digest: str | None, content: NuggetBank) -> int:
        """Update the draft to a newer version of the file.

        Returns 0 if the query's nuggets are the same in both versions; otherwise drops the edits and returns 1.
        """
        self.digest, unchanged = digest, content == self.before
        if not unchanged:
            self.before, self.after = content, draft_of(content)
        return int(not unchanged)


def _draft(path: Path, empty: NuggetBank) -> NuggetDraft:
    """The draft of one query's nuggets; starts from ``empty`` if the file has no nuggets for this query."""
    return editing.draft(
        _key(empty.query_id),
        path,
        lambda: next((bank for bank in read_banks(path) if bank.query_id == empty.query_id), empty),
        lambda path, digest, before: NuggetDraft(path, digest, before, draft_of(before)),
    )


def _key(query_id: str) -> str:
    return f"nugget-draft-{query_id}"


def _edit_nuggets(session: Session, draft: NuggetDraft, results: NuggetResults) -> None:
    _show_steps(draft)
    run_bank = results.banks.get(draft.before.query_id)
    nuggets_by_version = [
        [(nugget.text, nugget.importance) for nugget in bank.nuggets]
        for bank in (run_bank or draft.before, draft.before)
    ]
    if nuggets_by_version[0] != nuggets_by_version[1]:
        st.info("The file has changed since the last run: `ragleague run` assigns what is new.")
    if draft.is_changed or nuggets_by_version[0] != nuggets_by_version[1]:
        draw(*_nugget_effect(draft, results))
    editing.show_save(_key(draft.before.query_id), draft, lambda by: _save_draft(session, draft, by))
    editing.show_history(draft.path)


def _nugget_effect(draft: NuggetDraft, results: NuggetResults) -> list[Block]:
    """Blocks that show how the draft changes the nuggets and the scores, computed from the existing assignments."""
    query_id = draft.after.query_id
    blocks: list[Block] = [edits_table(draft.before, draft.after)] if draft.is_changed else []
    if query_id in results.banks and results.assignments:
        blocks.append(preview_table(*preview(results.assignments, {query_id: draft.after})))
    return blocks


def _save_draft(session: Session, draft: NuggetDraft, by: str) -> None:
    edited_bank = edited(draft.before, draft.after, by=by, at=datetime.now(UTC).isoformat(timespec="seconds"))
    banks = {bank.query_id: bank for bank in read_banks(draft.path)} | {edited_bank.query_id: edited_bank}
    what = f"{edited_bank.query_id}: {draft.words}"
    _save_nuggets(session, draft.path, list(banks.values()), seen=draft.digest, by=by, what=what)
    words = "Saved; the earlier version is kept. This assigns what is new:"
    editing.note_saved(words, f"ragleague run {session.path}", [edits_table(draft.before, draft.after)])


def _save_nuggets(
    session: Session, path: Path, banks: Sequence[NuggetBank], *, seen: str | None, by: str, what: str
) -> None:
    safe_files.save(path, lambda file: write_banks(file, banks), folder=session.folder, seen=seen, by=by, what=what)


def _show_steps(draft: NuggetDraft) -> None:
    """Draw a form that selects and edits nuggets; its buttons depend on how many nuggets are selected."""
    bank = draft.after
    version = texts_digest(*(f"{nugget.text} {nugget.importance}" for nugget in bank.nuggets))
    editing.begin_fields(_key(bank.query_id), draft, {f"nuggets-{version}": []})
    selected = sorted(
        st.multiselect(
            "Nuggets to change",
            range(len(bank.nuggets)),
            format_func=lambda place: f"{place + 1}. {text.clipped(bank.nuggets[place].text, 60)}",
            placeholder="none: add a new one",
            key=f"nuggets-{version}",
        )
    )
    key_suffix = f"{version}-{'-'.join(map(str, selected))}"
    current = bank.nuggets[selected[0]].importance if selected else Importance.VITAL
    values = {
        f"wording-{key_suffix}": "; ".join(bank.nuggets[place].text for place in selected),
        f"importance-{key_suffix}": current,
    }
    editing.begin_fields(_key(bank.query_id), draft, values)
    label = "Text" if len(selected) != 1 else "Text; several lines split the nugget"
    with st.container(key="draft-nuggets"):
        st.text_area(label, key=f"wording-{key_suffix}", height=90)
    st.radio("Importance", list(Importance), horizontal=True, key=f"importance-{key_suffix}")
    with st.container(horizontal=True):
        for name, step in _STEPS[min(2, len(selected))].items():
            st.button(
                name,
                key=f"{name}-{key_suffix}",
                on_click=editing.attempt,
                args=(_apply, draft, step, selected, key_suffix),
            )


def _changed(bank: NuggetBank, places: Sequence[int], wording: str, importance: Importance | None) -> NuggetBank:
    """Give the selected nugget the form's text and importance; if the text has several lines, split the nugget."""
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
"""The form's buttons and the edits that they apply, for no, one, or several selected nuggets."""


def _apply(draft: NuggetDraft, step: Step, places: Sequence[int], key_suffix: str) -> None:
    """Apply an edit with the form's current values, which may have changed since the page was drawn."""
    wording, importance = st.session_state[f"wording-{key_suffix}"], st.session_state[f"importance-{key_suffix}"]
    draft.after, draft.fields = step(draft.after, places, wording, importance), {}
