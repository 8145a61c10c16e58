"""What can be done to a query's nuggets: one step changes the draft, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import streamlit as st

from arena.store.annotations import texts_digest
from retrieval_eval.nuggets.drafts import added, merged, moved, removed, weighed, worded
from retrieval_eval.nuggets.editing import Kind, changes, is_reordered
from retrieval_eval.nuggets.types import Importance, NuggetBank
from ui import text

PROBLEM: Final = "nugget-problem"
"""Where the page keeps why a step was not done."""

Step = Callable[[NuggetBank, Sequence[int], str, Importance | None], NuggetBank]


@dataclass(frozen=True)
class Draft:
    """One query's nuggets as they are being edited; ``seen`` is the digest of the file that ``before`` is from."""

    seen: str | None
    before: NuggetBank
    after: NuggetBank

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to save."""
        return is_reordered(self.before, self.after) or any(
            change.kind is not Kind.KEPT for change in changes(self.before, self.after)
        )


def show_steps(bank: NuggetBank, key: str) -> None:
    """What can be done, by how many nuggets are chosen."""
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
    words = [bank.nuggets[place].text for place in chosen]
    st.text_area(
        "Text" if len(chosen) != 1 else "Text; several lines split the nugget",
        "; ".join(words),
        key=f"wording-{own}",
        height=90,
    )
    current = bank.nuggets[chosen[0]].importance if chosen else Importance.VITAL
    st.radio(
        "Importance",
        list(Importance),
        index=None if current is None else list(Importance).index(current),
        horizontal=True,
        key=f"importance-{own}",
    )
    with st.container(horizontal=True):
        for label, step in _steps(len(chosen)).items():
            st.button(label, key=f"{label}-{own}", on_click=_do, args=(key, step, chosen, own))


def _steps(chosen: int) -> dict[str, Step]:
    """The buttons for so many nuggets, and what they do with the draft, the places, the text and the importance."""
    if chosen == 0:
        return {"Add": lambda bank, _, wording, importance: added(bank, wording, importance)}
    both: dict[str, Step] = {
        "Set importance": lambda bank, places, _, importance: weighed(bank, places, importance),
        "Remove": lambda bank, places, *_: removed(bank, places),
    }
    if chosen > 1:
        return {"Merge": lambda bank, places, wording, _: merged(bank, places, wording), **both}
    return {
        "Set text": lambda bank, places, wording, _: worded(bank, places[0], _lines(wording)),
        **both,
        "Move up": lambda bank, places, *_: moved(bank, places[0], -1),
        "Move down": lambda bank, places, *_: moved(bank, places[0], 1),
    }


def _lines(wording: str) -> list[str]:
    return [line for line in wording.splitlines() if line.strip()] or [""]


def _do(key: str, step: Step, places: Sequence[int], own: str) -> None:
    """One step, with the text as it is now: it may have been typed after the page was drawn."""
    draft: Draft = st.session_state[key]
    wording, importance = st.session_state[f"wording-{own}"], st.session_state[f"importance-{own}"]
    try:
        st.session_state[key] = Draft(draft.seen, draft.before, step(draft.after, places, wording, importance))
    except ValueError as error:
        st.session_state[PROBLEM] = f"{error}."
