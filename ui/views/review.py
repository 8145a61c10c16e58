"""The page Review: annotators vote, label, grade or assess one task at a time; agents' names are hidden.

The page also hides the results of judges and other annotators, and shows the annotator's agreement with the judges
only after the last task. It writes to the store only when the annotator presses a button, and then redraws only this
fragment.
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
    """Draw the page for annotations of one kind, such as verdicts or relevance labels."""
    form = form_of(kind)
    st.html(f'<h2 class="question">{form.question}</h2>')
    top = st.container(horizontal=True, vertical_alignment="bottom", key="review-top")
    with top:
        annotator = _annotator()
    pool = _pool(source, kind.name)
    if not pool.queries and kind is VERDICT and data.played(source):
        nothing(text.NO_TEXTS)
    elif not pool.queries:
        lacking(form.missing, form.section, data.settings(source))
    elif annotator == "":
        st.info("Enter your name or initials to begin.")
    elif annotator:
        Review(kind, source, annotator).show(pool, top)


@data.derived("Drawing the tasks …")
def _pool(source: data.Source, kind: str) -> TaskPool:
    """The annotation tasks of one kind; empty until a judge has judged something."""
    texts = data.dataset(source)
    if kind == VERDICT.name:
        return tasks.games(data.played(source), texts)
    if kind == NUGGETS.name:
        results = data.nuggets(source)
        return tasks.nuggets({} if results is None else results.banks, texts.answers.values())
    judgments = _judgments(source, kind)
    if kind == CRITERIA.name:
        return tasks.answers(dict.fromkeys((judgment.query_id, judgment.item) for judgment in judgments), texts)
    return tasks.judged(KINDS[kind], judgments, texts)


_judgments = data.judged(judgments_of, "Reading the judgments …")


def form_of(kind: JudgedKind) -> TaskForm:
    """The annotation form of a kind of judgment; the kind must have one."""
    assert kind.form is not None
    return kind.form


class _State(Struct):
    """Session state for one annotator's tasks of one kind in one tournament.

    Attributes:
        progress: the annotator's progress through the tasks.
        seen: the store's number of the last of their annotations that the page has read.
        begun: time at which each task was first shown.
        undone: ids of the tasks whose answers were taken back; the page shows the last of these tasks.
        note: message about the last button that was pressed.
        refused: message that says why the last answer was not saved; shown when the page is drawn again.
        pressed: task id and value of an answer that was not saved, so that its button stays marked.
    """

    progress: TaskProgress | None = None
    seen: int = 0
    begun: dict[str, float] = field(default_factory=dict)
    undone: list[str] = field(default_factory=list)
    note: str = ""
    refused: str = ""
    pressed: tuple[str, Any] = ("", None)


class Review(Struct, frozen=True):
    """Draws one annotator's tasks of one kind in one tournament, and saves the answers."""

    kind: JudgedKind
    source: data.Source
    annotator: str

    @property
    def form(self) -> TaskForm:
        return form_of(self.kind)

    @property
    def _state(self) -> _State:
        digest = texts_digest(self.source.location, self.source.tournament, self.kind.name, self.annotator)
        state: _State = st.session_state.setdefault(f"review-{digest}", _State())
        return state

    def _key(self, task: AnnotationTask) -> str:
        """Part of a task's widget keys that differs between tasks, annotators and tournaments.

        So a pressed button always belongs to the task that is shown.
        """
        return texts_digest(self.source.location, self.source.tournament, self.kind.name, self.annotator, task.task_id)[
            :16
        ]

    def _progress(self, pool: TaskPool) -> TaskProgress:
        """The annotator's progress; reads only annotations that were added since the page was last rendered."""
        state = self._state
        if state.progress is None or state.progress.queue.pool is not pool:
            state.progress, state.seen = TaskProgress(pool.queue(self.annotator)), 0
        with data.shared(self.source.location) as store:
            news, seen = Annotations(store, self.source.tournament).news(self.kind.name, self.annotator, state.seen)
        state.progress.add(news)
        state.seen = seen
        return state.progress

    def show(self, pool: TaskPool, top: Any) -> None:
        """Draw the progress and the next task."""
        progress, state = self._progress(pool), self._state
        done, skipped, total = progress.of(TaskState.DONE), progress.of(TaskState.SKIPPED), len(progress.queue)
        skipped_words = f", {len(skipped):,} skipped" if skipped else ""
        with top:
            label = f"{len(done):,} of {total:,} {self.form.things} {self.form.done}{skipped_words}"
            st.progress((len(done) + len(skipped)) / total, text=label, width=200)
        task = (progress.find(state.undone[-1]) if state.undone else None) or progress.next()
        if task is None:
            self._show_end(progress.annotations, total, skipped)
            return
        state.begun.setdefault(task.task_id, time.monotonic())
        choices = self.form.choices(data.settings(self.source))
        with top:
            raw = text.raw_switch()
            answers = task.texts if len(task.texts) == 2 and not self.form.names else ("", "")
            marked = text.alike(*answers) and st.toggle("Mark differences", True, key=f"marks-{self._key(task)}")
        query = data.dataset(self.source).queries[task.query_id]
        text.thread(query)
        text.lead(task.query.text)
        if tasks.judge_saw_reference(task.kind, data.settings(self.source)):
            text.reference(query, raw=raw)
        self._show_texts(task, choices, raw=raw, marks=marked)
        with st.container(key=f"once-{self._key(task)}", horizontal=True, vertical_alignment="center", gap="small"):
            self._show_bar(task, choices, progress.before({*state.undone, task.task_id}))

    def _show_texts(self, task: AnnotationTask, choices: Sequence[Choice], *, raw: bool, marks: bool) -> None:
        others = task.texts[::-1] if marks else (None,) * len(task.texts)
        if task.kind is RELEVANCE:
            text.strong(data.dataset(self.source).documents[task.names[0]].metadata.get("title", ""))
        several = len(task.texts) > 1
        if several and not self.form.names:
            st.html(_ANSWER_SWITCH)
        with st.container(key="texts"):
            columns = st.columns(2, gap="medium") if several or self.form.row else [st.container()]
            for number, (column, words, other) in enumerate(zip(columns, task.texts, others, strict=False), start=1):
                name = self.form.thing.capitalize() + (f" {number}" if several else "")
                name = self.form.names[number - 1] if self.form.names else name
                with column, st.container(key=f"side-{number}", gap="xsmall"):
                    st.caption(name)
                    empty = f"This {name.split()[0].lower()} is empty."
                    key = f"{number}-{self._key(task)}"
                    text.passage(words, key, label=name, empty=empty, raw=raw, against=other)
            if self.form.row:
                with columns[1]:
                    self._show_rows(task, choices)
        if several and not self.form.names and task.texts[0] == task.texts[1]:
            st.caption("Both answers are the same, word for word.")
        text.lines(
            *(text.TextLine("quiet", f"{choice.label}: {choice.meaning}") for choice in choices if choice.meaning)
        )

    def _show_rows(self, task: AnnotationTask, choices: Sequence[Choice]) -> None:
        """Draw a field with the choices for each row; keyboard shortcuts apply to the first row without a choice."""
        labels = {choice.value: choice.label for choice in choices}
        words = self._words(task)
        earlier = self._earlier(task)
        with st.container(key="rows", gap="small"):
            for number, (name, key) in enumerate(self._rows(task).items(), start=1):
                st.session_state.setdefault(key, next((value for value in labels if value == earlier.get(name)), None))
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
        """The annotator's earlier choices, by row."""
        return (task.value or {}) if task.parts == ("",) else dict(zip(task.parts, task.values, strict=True))

    def _rows(self, task: AnnotationTask) -> dict[str, str]:
        """Widget keys of the rows, by row name."""
        key = self._key(task)
        return {name: f"row-{n}-{key}" for n, name in enumerate(self._words(task))}

    def _words(self, task: AnnotationTask) -> Mapping[str, str]:
        """Texts of the rows, by row name; empty for a task with a single choice."""
        if self.form.rows is not None:
            return self.form.rows(data.settings(self.source))
        return dict(zip(task.parts, task.part_texts, strict=True)) if self.form.row else {}

    def _show_bar(self, task: AnnotationTask, choices: Sequence[Choice], before: AnnotationTask | None) -> None:
        task_key, rows = self._key(task), list(self._rows(task).values())
        open_rows = [key for key in rows if st.session_state[key] is None]
        pressed_task, pressed = self._state.pressed
        chosen = None if rows else pressed if pressed_task == task.task_id else task.value
        for number, choice in enumerate(choices):
            st.button(
                choice.label,
                key=f"choice-{number}-{task_key}",
                type="primary" if chosen == choice.value else "secondary",
                shortcut=choice.key,
                disabled=bool(rows) and not open_rows,
                on_click=partial(st.session_state.update, {open_rows[0]: choice.value}) if open_rows else self._save,
                args=() if open_rows else (task, [choice.value], choice.label),
            )
        if rows:
            button_options: dict[str, Any] = {"type": "primary", "shortcut": "Ctrl+Enter", "on_click": self._save_rows}
            st.button("Save", key=f"save-{task_key}", args=(task,), **button_options)
        st.button("Skip", key=f"skip-{task_key}", shortcut="s", type="tertiary", on_click=self._save, args=(task, None))
        undo = partial(self._undo, before) if before is not None else None
        st.button("Undo", key=f"undo-{task_key}", shortcut="u", type="tertiary", on_click=undo, disabled=undo is None)
        state = self._state
        position = f"{self.form.row} {rows.index(open_rows[0]) + 1} of {len(rows)}" if open_rows else ""
        st.html(f'<p role="status" class="note">{" · ".join(filter(None, (position, state.note)))}</p>')
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
        """Save one value per part of a task (``None`` skips the task), and go on to the next task.

        If the annotator presses a button twice, the answer is stored once. If saving fails, the page shows the reason
        when it is drawn again.
        """
        state = self._state
        # Another press may stop this call at any access to the session, so the store is written first.
        try:
            self._store(task, values)
        except RagleagueError as error:
            state.refused, state.note = str(error), ""
            state.pressed = task.task_id, None if values is None else values[0]
            return
        state.pressed = "", None
        state.note = "Skipped" if values is None else f"✓ Saved: {words}"
        state.undone = [task_id for task_id in state.undone if task_id != task.task_id]

    def _store(self, task: AnnotationTask, values: Sequence[Any] | None) -> None:
        check("vote")
        seconds = time.monotonic() - self._state.begun.get(task.task_id, time.monotonic())
        with data.shared(self.source.location) as store:
            annotations = task.annotations(self.annotator, values, seconds)
            Annotations(store, self.source.tournament).add(annotations, partial(self._check_pair, task))

    def _check_pair(self, task: AnnotationTask, annotations: list[Annotation]) -> None:
        """Check that the annotator has not voted meanwhile, in another window, on two other answers to the same query.

        Raises:
            InputError: they have; the tournament changed between the two votes.
        """
        if task.kind is VERDICT:
            (current,) = tasks.with_votes([task], annotations, data.dataset(self.source))
            if {*current.names, *current.parts} != {*task.names, *task.parts}:
                raise InputError("You have voted on two other answers to this query meanwhile.")

    def _undo(self, task: AnnotationTask) -> None:
        """Take back the answer to a task and show the task again; if it is not answered again, it counts as skipped."""
        state = self._state
        try:
            if task.state is TaskState.DONE:
                self._store(task, None)
        except RagleagueError as error:
            state.refused, state.note = str(error), ""
            return
        state.undone, state.note = [*state.undone, task.task_id], "Taken back"
        earlier = self._earlier(task) if self.form.row else {}
        st.session_state.update({self._rows(task)[name]: value for name, value in earlier.items()})

    def _show_end(self, annotations: Sequence[Annotation], count: int, skipped: Sequence[AnnotationTask]) -> None:
        """Draw the annotator's agreement with the judges; if it were shown earlier, it could influence the answers."""
        st.success(f"You have been through all {count:,} {self.form.things}. Thank you.", icon=":material/done_all:")
        with data.shared(self.source.location) as store, st.spinner("Comparing with the judge …"):
            games = data.games(self.source)
            for judge, agreement in agreement_with_judges(store, self.source.tournament, annotations, games).items():
                estimate = agreement.share
                interval = (
                    f" (95% interval {PERCENT.between(estimate.low, estimate.high)})"
                    if estimate.low is not None
                    else ""
                )
                pairs = counted(agreement.pairs, "judgment")
                per_order = ", each order of a game counted" if self.kind is VERDICT else ""
                text.lead(
                    f"You agree with {judge} on {PERCENT.write(estimate.value)} of its {pairs}{per_order}{interval}."
                )
        if skipped:
            st.button(f"Take up the {len(skipped):,} skipped", on_click=self._take_up, args=(skipped,))

    def _take_up(self, skipped: Sequence[AnnotationTask]) -> None:
        self._state.note, self._state.undone = "", [task.task_id for task in reversed(skipped)]


_ANSWER_SWITCH: Final = (
    '<fieldset class="which"><legend>Show</legend>'
    '<label><input type="radio" name="which" checked>Both</label>'
    '<label><input type="radio" name="which" id="which-1">Answer 1</label>'
    '<label><input type="radio" name="which" id="which-2">Answer 2</label></fieldset>'
)
"""Radio buttons that choose which of the two answers to show in a narrow window; see ``ui/page.css``."""


_NAMED: Final = "annotator-named"
"""Session key that says that the annotator has just entered a name."""


def _annotator() -> str | None:
    """The annotator's name, from the sign-in or, without sign-in, from the name field; empty until they enter one.

    ``None``, with a message on the page, if the viewer may not annotate or the name cannot be used.
    """
    if not allowed("vote"):
        st.info("You can read here. To judge, ask whoever runs these pages to make you a voter.")
        return None
    person = viewer()
    if person is not None:
        text.quiet(f"You are {person.name}; what you say is kept under this name.")
        name: str | None = person.name
    else:
        name = st.text_input(
            "Your name or initials",
            key="annotator",
            bind="query-params",  # so that the name survives a reload
            on_change=partial(st.session_state.update, {_NAMED: True}),
            placeholder="Your name or initials",
            label_visibility="collapsed",
            max_chars=80,
            width=140,
            help="Kept with what you say, to tell people apart and to go on where you stopped. It is no login.",
        )
        if st.session_state.pop(_NAMED, False):
            st.rerun()  # redraw the whole page, as its links contain the name
    if not name or not name.strip():
        return ""
    try:
        return annotator_name(name)
    except InputError as error:
        text.plain(str(error))
        return None


VIEWS: Final = {kind.form.view: partial(show, kind) for kind in KINDS.values() if kind.form is not None}
"""The functions that draw the parts of the page, by name, in the order of the menu."""
