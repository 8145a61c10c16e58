"""What people say on the pages, into the store and out of it; only a button that somebody pressed puts anything in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar

import streamlit as st

from arena.store import Store
from arena.store.annotations import Annotation, Annotations, Kind, annotator_name
from arena.voting.things import State, Thing
from judges.errors import InputError, RagleagueError
from ui import data, text
from ui.roles import allowed, viewer
from ui.states import problem

AnyThing = TypeVar("AnyThing", bound=Thing)

HEIGHT: Final = 440
"""Pixels of an answer: it and what is asked about it are seen at once on a common screen."""
_OF_AN_ITEM: Final = 70
"""Pixels that an item takes at least."""
_NAME: Final = "annotator"
"""Query parameter that holds the annotator's name, so that a reload goes on where they stopped."""


def annotator() -> str | None:
    """Who is at work: whoever signed in, else who they say they are; ``None``, said on the page, where nobody may."""
    if not allowed("vote"):
        st.info("You can read these pages. To judge here, ask whoever runs them to make you a voter.")
        return None
    person = viewer()
    if person is not None:
        text.quiet(f"You are {person.name}; what you say is kept under this name.")
    given = _asked_name() if person is None else person.name
    if not given.strip():
        st.info("Enter your name or initials to begin.")
        return None
    try:
        return annotator_name(given)
    except InputError as error:
        text.plain(str(error))
        return None


def _asked_name() -> str:
    given = st.text_input(
        "Your name or initials",
        key=_NAME,
        bind="query-params",
        max_chars=80,
        width=320,
        help="Kept with what you say, to tell people apart and to go on where you stopped. It is no login.",
    )
    return given or ""


def buttons(key: str, *, horizontal: bool = True) -> AbstractContextManager[object]:
    """Where a thing's buttons are: a press counts once, see ``ui/page.js``."""
    return st.container(horizontal=horizontal, gap="small" if horizontal else "xsmall", key=f"once-{key}")


def skip_button(key: str, on_click: Callable[..., None], *args: object) -> None:
    """The button that says nothing of a thing: what a choice calls, with ``None`` for the choice."""
    st.button("Skip", key=f"skip-{key}", shortcut="s", type="tertiary", on_click=on_click, args=(*args, None))


def settled(source: data.Source) -> data.Source:
    """The tournament as it was when a judge or a run last changed it; equal while people only judge.

    Every vote changes the store. What is read to vote does not change with it, and need not be read anew.
    """
    with closing(Store.open(source.location)) as store:
        return _first_seen((source.location, source.tournament, *store.judged(source.tournament)), source)


@st.cache_resource(max_entries=16, show_spinner=False)
def _first_seen(state: tuple[str, str, int, str], _source: data.Source) -> data.Source:  # noqa: ARG001 - the cache's key
    return _source


@dataclass(frozen=True)
class Desk(Generic[AnyThing]):
    """Where one person takes up one thing after the other on one page.

    Attributes:
        source: what they work on.
        who: their name.
        kind: of what they say.
        things: what is counted, in our own words: "answers".
        done: what has become of one that is done: "assessed".
    """

    source: data.Source
    who: str
    kind: Kind
    things: str
    done: str

    def said(self) -> list[Annotation]:
        """What they say now, read anew at every call."""
        with closing(Store.open(self.source.location)) as store:
            return Annotations(store, self.source.tournament).latest(self.kind, self.who)

    def go_through(
        self, todo: Sequence[AnyThing], states: Sequence[State], show: Callable[[Desk[AnyThing], AnyThing], None]
    ) -> None:
        """Draw how far they are, and what is next.

        Args:
            todo: at least one thing, in their order.
            states: of each.
            show: draws one thing with its buttons, in containers whose key begins with ``once-``.
        """
        thing = self._take_up(todo, states)
        if thing is not None:
            show(self, thing)
            self._show_back(todo, thing)

    def _take_up(self, todo: Sequence[AnyThing], states: Sequence[State]) -> AnyThing | None:
        """Draw how far they are; the thing to be shown, or ``None`` after the last, which is said."""
        skipped, left = (
            [thing for thing, own in zip(todo, states, strict=True) if own is state]
            for state in (State.SKIPPED, State.OPEN)
        )
        more = f", {len(skipped):,} skipped" if skipped else ""
        done = len(todo) - len(left) - len(skipped)
        st.progress(1 - len(left) / len(todo), text=f"{done:,} of {len(todo):,} {self.things} {self.done}{more}")
        chosen = next((thing for thing in todo if thing.thing_id == st.session_state.get(self._at)), None)
        thing = chosen or (left[0] if left else None)
        if thing is not None:
            st.session_state.setdefault(self._begun(thing), time.monotonic())
            return thing
        st.success(f"You have been through all {len(todo):,} {self.things}. Thank you.", icon=":material/done_all:")
        if skipped:
            st.button(f"Take up the {len(skipped):,} skipped", on_click=self.go_to, args=(skipped[0],))
        return None

    def key(self, thing: AnyThing) -> str:
        """Part of widgets' keys: what one person has chosen and not saved is not shown to another."""
        return f"{self.kind}-{thing.thing_id}-{self.who.encode('utf-8', 'replace').hex()}"

    def seconds(self, thing: AnyThing) -> float:
        """How long they have had the thing."""
        return time.monotonic() - float(st.session_state[self._begun(thing)])

    def keep(self, said: Iterable[Annotation], check: Callable[[list[Annotation]], None] | None = None) -> None:
        """Keep what they said of the thing that was shown, and go on; said twice, it is kept once.

        What ``check`` raises of what they say now (``Annotations.add``) is shown, and nothing kept.
        """
        # Another press may end this call at any access to the session, so nothing is noted there before it is kept.
        try:
            if not allowed("vote"):
                raise InputError("Your role is to read.")
            with closing(Store.open(self.source.location)) as store:
                Annotations(store, self.source.tournament).add(said, check)
        except RagleagueError as error:
            self.refuse(f"Not saved. {error}")
            return
        self.go_to(None)

    def show_form(
        self,
        thing: AnyThing,
        answer: str,
        items: Sequence[tuple[str, Any]],
        offered: Sequence[Any],
        annotations: Callable[[Sequence[Any] | None, float | None], Iterable[Annotation]],
        *,
        item: str,
        refusal: str,
        worded: Callable[[Any], str] = str,
    ) -> None:
        """Draw an answer, and beside it a row of labels for each of several items, which are saved together.

        Args:
            thing: what they are asked about.
            answer: its text.
            items: what stands above each row, and the label that was chosen before.
            offered: the labels.
            annotations: of the labels, one an item, or ``None`` for all where they skip, and of the seconds it took.
            item: what a screen reader calls a row, in our own words.
            refusal: said where labels are missing, with their number.
            worded: a label in words.
        """
        mark = self.key(thing)
        keys = [f"{item}-{number}-{mark}" for number in range(len(items))]

        def save() -> None:
            chosen = [st.session_state.get(key) for key in keys]
            if missing := chosen.count(None):
                self.refuse(refusal.format(missing))
            else:
                self.keep(annotations(chosen, round(self.seconds(thing), 2)))

        left, right = st.columns(2, gap="medium")
        with left:
            text.passage(answer, f"answer-{mark}", empty="This answer is empty.", height=HEIGHT, border=True)
        with right, st.form(f"form-{mark}", border=False):
            height: int | Literal["content"] = "content" if len(items) * _OF_AN_ITEM < HEIGHT else HEIGHT
            with st.container(height=height, border=True, key=f"items-{mark}"):
                for number, (key, (words, earlier)) in enumerate(zip(keys, items, strict=True), start=1):
                    with st.container(gap="xsmall"):
                        text.strong(words)
                        st.radio(
                            f"{item} {number}",
                            offered,
                            index=offered.index(earlier) if earlier in offered else None,
                            format_func=worded,
                            horizontal=True,
                            label_visibility="collapsed",
                            key=key,
                        )
            self.show_problem()
            with buttons(mark):
                named: dict[str, Any] = {"type": "primary", "shortcut": "Ctrl+Enter", "on_click": save}
                st.form_submit_button("Save and go on", key=f"save-{mark}", **named)
                skip = partial(self.keep, annotations(None, None))
                st.form_submit_button("Skip", key=f"skip-{mark}", on_click=skip, help="You can take it up later.")

    def refuse(self, why: str) -> None:
        """Say with the next drawing why nothing was kept."""
        st.session_state[self._problem] = why

    def show_problem(self) -> None:
        """Draw what was refused, if anything."""
        if refused := st.session_state.pop(self._problem, None):
            problem("Not saved yet.", refused)

    def _show_back(self, todo: Sequence[AnyThing], thing: AnyThing) -> None:
        """Draw the way back to the thing before, and from there to where they stopped."""
        place = todo.index(thing)
        with st.container(horizontal=True):
            st.button(
                "Back to the one before",
                on_click=self.go_to,
                args=(todo[place - 1],),
                disabled=place == 0,
                icon=":material/arrow_back:",
            )
            if st.session_state.get(self._at) is not None:
                st.button("Go on where you stopped", on_click=self.go_to, args=(None,))

    def go_to(self, thing: AnyThing | None) -> None:
        """Take up this thing next, or with ``None`` the first that is open."""
        st.session_state[self._at] = None if thing is None else thing.thing_id

    @property
    def _at(self) -> str:
        return f"{self.kind}-at"

    @property
    def _problem(self) -> str:
        return f"{self.kind}-problem"

    def _begun(self, thing: AnyThing) -> str:
        return f"begun-{self.key(thing)}"
