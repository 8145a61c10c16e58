"""Review: a person votes, labels, grades or assesses, one task at a time, without knowing whose texts these are.

What judges and other people said is not shown; how often the person agrees with the judges is, at the end of a batch.
The page writes to the store only where somebody pressed a button, and a press redraws nothing but its fragment.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import streamlit as st
from msgspec import Struct, field

from arena.data.kinds import (
    CRITERIA,
    KINDS,
    NUGGETS,
    RELEVANCE,
    VERDICT,
    Annotation,
    Choice,
    JudgedKind,
    TaskForm,
    texts_digest,
)
from arena.people import tasks
from arena.people.tasks import AnnotationTask, TaskPool, TaskProgress, TaskState
from arena.present.numbers import PERCENT, counted
from arena.results.opinions import agreement_with_judges, judgments_of
from arena.store.annotations import Annotations, annotator_name
from judges.errors import InputError, RagleagueError
from ui import data, text
from ui.access import allowed, viewer
from ui.editing import check
from ui.text import lacking, nothing, problem


@st.fragment
def show(kind: JudgedKind, source: data.Source) -> None:
    """Draw the page of a kind."""
    form = form_of(kind)
    st.html(f'<h2 class="question">{form.question}</h2>')
    top = st.container(horizontal=True, vertical_alignment="bottom", key="review-top")
    with top:
        who = _annotator()
    pool = _pool(source, kind.name)
    if not pool.queries and kind is VERDICT and data.met(source):
        nothing(text.NO_TEXTS)
    elif not pool.queries:
        lacking(form.missing, form.section, data.settings(source))
    elif who == "":
        st.info("Enter your name or initials to begin.")
    elif who:
        Review(kind, source, who).show(pool, top)


@data.derived("Drawing the tasks …")
def _pool(source: data.Source, kind: str) -> TaskPool:
    """What people can be asked; nothing before a judge judged anything."""
    texts = data.dataset(source)
    if kind == VERDICT.name:
        return tasks.games(data.met(source), texts)
    if kind == NUGGETS.name:
        results = data.nuggets(source)
        return tasks.nuggets({} if results is None else results.banks, texts.answers.values())
    judgments = _judgments(source, kind)
    if kind == CRITERIA.name:
        return tasks.answers(dict.fromkeys((own.query_id, own.item) for own in judgments), texts)
    return tasks.judged(KINDS[kind], judgments, texts)


_judgments = data.judged(judgments_of, "Reading the judgments …")


def form_of(kind: JudgedKind) -> TaskForm:
    """The form of a kind that has one."""
    assert kind.form is not None
    return kind.form


class _State(Struct):
    """What the session knows of one person's tasks of one kind in one tournament.

    Attributes:
        progress: how far they are with their queue.
        seen: the store's number of the last that they said.
        begun: when each task was shown first.
        undone: tasks taken back, the last of which is shown.
        note: what became of the last press.
        refused: why nothing was saved, for the next drawing.
        pressed: the task and the choice that were refused, which stays marked.
    """

    progress: TaskProgress | None = None
    seen: int = 0
    begun: dict[str, float] = field(default_factory=dict)
    undone: list[str] = field(default_factory=list)
    note: str = ""
    refused: str = ""
    pressed: tuple[str, Any] = ("", None)


class Review(Struct, frozen=True):
    """What one person has to do in one tournament, and what they say of it."""

    kind: JudgedKind
    source: data.Source
    who: str

    @property
    def form(self) -> TaskForm:
        return form_of(self.kind)

    @property
    def _state(self) -> _State:
        mine = texts_digest(self.source.location, self.source.tournament, self.kind.name, self.who)
        state: _State = st.session_state.setdefault(f"review-{mine}", _State())
        return state

    def _key(self, task: AnnotationTask) -> str:
        """Part of widgets' keys. A press on a task of another person or tournament is not taken for this one's."""
        return texts_digest(self.source.location, self.source.tournament, self.kind.name, self.who, task.task_id)[:16]

    def _progress(self, pool: TaskPool) -> TaskProgress:
        """How far the person is; only what they said since the last drawing is read."""
        state = self._state
        if state.progress is None or state.progress.queue.pool is not pool:
            state.progress, state.seen = TaskProgress(pool.queue(self.who)), 0
        with data.shared(self.source.location) as store:
            news, seen = Annotations(store, self.source.tournament).news(self.kind.name, self.who, state.seen)
        state.progress.add(news)
        state.seen = seen
        return state.progress

    def show(self, pool: TaskPool, top: Any) -> None:
        """Draw how far the person is, and what is next."""
        progress, state = self._progress(pool), self._state
        done, skipped, count = progress.of(TaskState.DONE), progress.of(TaskState.SKIPPED), len(progress.queue)
        more = f", {len(skipped):,} skipped" if skipped else ""
        with top:
            far = f"{len(done):,} of {count:,} {self.form.things} {self.form.done}{more}"
            st.progress((len(done) + len(skipped)) / count, text=far, width=200)
        task = (progress.find(state.undone[-1]) if state.undone else None) or progress.next()
        if task is None:
            self._show_end(progress.annotations, count, skipped)
            return
        state.begun.setdefault(task.task_id, time.monotonic())
        choices = self.form.choices(data.settings(self.source))
        with top:
            raw = text.raw_switch()
            pair = task.texts if len(task.texts) == 2 and not self.form.names else ("", "")
            marks = text.alike(*pair) and st.toggle("Mark differences", True, key=f"marks-{self._key(task)}")
        query = data.dataset(self.source).queries[task.query_id]
        text.thread(query)
        text.lead(task.query.text)
        if tasks.judge_saw_reference(task.kind, data.settings(self.source)):
            text.reference(query, raw=raw)
        self._show_texts(task, choices, raw=raw, marks=marks)
        with st.container(key=f"once-{self._key(task)}", horizontal=True, vertical_alignment="center", gap="small"):
            self._show_bar(task, choices, progress.before({*state.undone, task.task_id}))

    def _show_texts(self, task: AnnotationTask, choices: Sequence[Choice], *, raw: bool, marks: bool) -> None:
        others = task.texts[::-1] if marks else (None,) * len(task.texts)
        if task.kind is RELEVANCE:
            text.strong(data.dataset(self.source).documents[task.names[0]].metadata.get("title", ""))
        several = len(task.texts) > 1
        if several and not self.form.names:
            st.html(_WHICH)
        with st.container(key="texts"):
            columns = st.columns(2, gap="medium") if several or self.form.row else [st.container()]
            for number, (column, own, other) in enumerate(zip(columns, task.texts, others, strict=False), start=1):
                name = self.form.thing.capitalize() + (f" {number}" if several else "")
                name = self.form.names[number - 1] if self.form.names else name
                with column, st.container(key=f"side-{number}", gap="xsmall"):
                    st.caption(name)
                    empty = f"This {name.split()[0].lower()} is empty."
                    key = f"{number}-{self._key(task)}"
                    text.passage(own, key, label=name, empty=empty, raw=raw, against=other)
            if self.form.row:
                with columns[1]:
                    self._show_rows(task, choices)
        if several and not self.form.names and task.texts[0] == task.texts[1]:
            st.caption("Both answers are the same, word for word.")
        text.lines(*(text.TextLine("quiet", f"{own.label}: {own.meaning}") for own in choices if own.meaning))

    def _show_rows(self, task: AnnotationTask, choices: Sequence[Choice]) -> None:
        """A choice for each row; the bar's keys go to the first row without one."""
        labels = {own.value: own.label for own in choices}
        words = self._words(task)
        earlier = self._earlier(task)
        with st.container(key="rows", gap="small"):
            for number, (name, key) in enumerate(self._rows(task).items(), start=1):
                st.session_state.setdefault(key, next((own for own in labels if own == earlier.get(name)), None))
                with st.container(gap="xsmall"):
                    text.strong(f"{number}. {words[name]}")
                    st.radio(
                        f"{self.form.row} {number}",
                        list(labels),
                        format_func=labels.__getitem__,
                        horizontal=True,
                        label_visibility="collapsed",
                        key=key,
                    )

    def _earlier(self, task: AnnotationTask) -> Mapping[str, Any]:
        """What the person said of each row."""
        return (task.value or {}) if task.parts == ("",) else dict(zip(task.parts, task.values, strict=True))

    def _rows(self, task: AnnotationTask) -> dict[str, str]:
        """Keys of the rows' fields."""
        mark = self._key(task)
        return {name: f"row-{n}-{mark}" for n, name in enumerate(self._words(task))}

    def _words(self, task: AnnotationTask) -> Mapping[str, str]:
        """Words of the rows by name; empty for a task of one choice."""
        if self.form.rows is not None:
            return self.form.rows(data.settings(self.source))
        return dict(zip(task.parts, task.part_texts, strict=True)) if self.form.row else {}

    def _show_bar(self, task: AnnotationTask, choices: Sequence[Choice], before: AnnotationTask | None) -> None:
        mark, rows = self._key(task), list(self._rows(task).values())
        left = [key for key in rows if st.session_state[key] is None]
        of, pressed = self._state.pressed
        chosen = None if rows else pressed if of == task.task_id else task.value
        for number, own in enumerate(choices):
            st.button(
                own.label,
                key=f"choice-{number}-{mark}",
                type="primary" if chosen == own.value else "secondary",
                shortcut=own.key,
                disabled=bool(rows) and not left,
                on_click=partial(st.session_state.update, {left[0]: own.value}) if left else self._save,
                args=() if left else (task, [own.value], own.label),
            )
        if rows:
            named: dict[str, Any] = {"type": "primary", "shortcut": "Ctrl+Enter", "on_click": self._save_rows}
            st.button("Save", key=f"save-{mark}", args=(task,), **named)
        st.button("Skip", key=f"skip-{mark}", shortcut="s", type="tertiary", on_click=self._save, args=(task, None))
        undo = partial(self._undo, before) if before is not None else None
        st.button("Undo", key=f"undo-{mark}", shortcut="u", type="tertiary", on_click=undo, disabled=undo is None)
        state = self._state
        place = f"{self.form.row} {rows.index(left[0]) + 1} of {len(rows)}" if left else ""
        st.html(f'<p role="status" class="note">{" · ".join(filter(None, (place, state.note)))}</p>')
        if refused := state.refused:
            state.refused = ""
            problem("Not saved.", refused)

    def _save_rows(self, task: AnnotationTask) -> None:
        chosen = {name: st.session_state.get(key) for name, key in self._rows(task).items()}
        if missing := [*chosen.values()].count(None):
            self._state.refused = f"Without a choice: {missing}. Choose for each, or skip."
        else:
            self._save(task, [chosen] if task.parts == ("",) else [*chosen.values()], f"{len(chosen)} choices")

    def _save(self, task: AnnotationTask, values: Sequence[Any] | None, words: str = "") -> None:
        """Save one value per part of a task, or with ``None`` skip it, and go on; said twice, it is kept once.

        Where that is refused, nothing is saved and the next drawing says why.
        """
        state = self._state
        # Another press may end this call at any access to the session, so nothing is noted there before it is kept.
        try:
            self._keep(task, values)
        except RagleagueError as error:
            state.refused, state.note = str(error), ""
            state.pressed = task.task_id, None if values is None else values[0]
            return
        state.pressed = "", None
        state.note = "Skipped" if values is None else f"✓ Saved: {words}"
        state.undone = [own for own in state.undone if own != task.task_id]

    def _keep(self, task: AnnotationTask, values: Sequence[Any] | None) -> None:
        check("vote")
        seconds = time.monotonic() - self._state.begun.get(task.task_id, time.monotonic())
        with data.shared(self.source.location) as store:
            said = task.annotations(self.who, values, seconds)
            Annotations(store, self.source.tournament).add(said, partial(self._check_pair, task))

    def _check_pair(self, task: AnnotationTask, said: list[Annotation]) -> None:
        """Whether no other window asked the query with another pair, of a tournament that has changed since."""
        if task.kind is VERDICT:
            (asked,) = tasks.with_votes([task], said, data.dataset(self.source))
            if {*asked.names, *asked.parts} != {*task.names, *task.parts}:
                raise InputError("You have voted on two other answers to this query meanwhile.")

    def _undo(self, task: AnnotationTask) -> None:
        """Take back what was said of a task, and show it again; left like that, it counts as skipped."""
        state = self._state
        try:
            if task.state is TaskState.DONE:
                self._keep(task, None)
        except RagleagueError as error:
            state.refused, state.note = str(error), ""
            return
        state.undone, state.note = [*state.undone, task.task_id], "Taken back"
        earlier = self._earlier(task) if self.form.row else {}
        st.session_state.update({self._rows(task)[name]: value for name, value in earlier.items()})

    def _show_end(self, said: Sequence[Annotation], count: int, skipped: Sequence[AnnotationTask]) -> None:
        """How often the person agrees with the judges: told earlier, it could sway what they say next."""
        st.success(f"You have been through all {count:,} {self.form.things}. Thank you.", icon=":material/done_all:")
        with data.shared(self.source.location) as store, st.spinner("Comparing with the judge …"):
            games = data.games(self.source)
            for judge, found in agreement_with_judges(store, self.source.tournament, said, games).items():
                share = found.share
                between = f" (95% interval {PERCENT.between(share.low, share.high)})" if share.low is not None else ""
                its = counted(found.pairs, "judgment")
                both = ", each order of a game counted" if self.kind is VERDICT else ""
                text.lead(f"You agree with {judge} on {PERCENT.write(share.value)} of its {its}{both}{between}.")
        if skipped:
            st.button(f"Take up the {len(skipped):,} skipped", on_click=self._take_up, args=(skipped,))

    def _take_up(self, skipped: Sequence[AnnotationTask]) -> None:
        self._state.note, self._state.undone = "", [task.task_id for task in reversed(skipped)]


_WHICH: Final = (
    '<fieldset class="which"><legend>Show</legend>'
    '<label><input type="radio" name="which" checked>Both</label>'
    '<label><input type="radio" name="which" id="which-1">Answer 1</label>'
    '<label><input type="radio" name="which" id="which-2">Answer 2</label></fieldset>'
)
"""On a narrow window, which of two answers is shown; see ``ui/page.css``."""


_NAMED: Final = "annotator-named"
"""In the session: somebody has just said who they are."""


def _annotator() -> str | None:
    """Who is at work: whoever signed in, else who they say they are, empty until they do.

    ``None``, said on the page, where nobody may.
    """
    if not allowed("vote"):
        st.info("You can read here. To judge, ask whoever runs these pages to make you a voter.")
        return None
    person = viewer()
    if person is not None:
        text.quiet(f"You are {person.name}; what you say is kept under this name.")
        given: str | None = person.name
    else:
        given = st.text_input(
            "Your name or initials",
            key="annotator",
            bind="query-params",  # so that a reload goes on where they stopped
            on_change=partial(st.session_state.update, {_NAMED: True}),
            placeholder="Your name or initials",
            label_visibility="collapsed",
            max_chars=80,
            width=140,
            help="Kept with what you say, to tell people apart and to go on where you stopped. It is no login.",
        )
        if st.session_state.pop(_NAMED, False):
            st.rerun()  # the whole page, whose links carry the name
    if not given or not given.strip():
        return ""
    try:
        return annotator_name(given)
    except InputError as error:
        text.plain(str(error))
        return None


VIEWS: Final = {kind.form.view: partial(show, kind) for kind in KINDS.values() if kind.form is not None}
"""The pages by name, in the order of the menu."""
