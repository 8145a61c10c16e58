"""The page Review: annotators vote, label, grade or assess one task at a time.

The page hides agents' names and the results of judges and other annotators, and shows the annotator's agreement with
the judges only after the last task. ``page.js`` handles the keyboard: a key chooses an option in a row of the task or
presses a button. Later keys wait until the next task is drawn; the script sees that in the attributes of the status
line.
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
    FormRow,
    JudgedKind,
    TaskForm,
    texts_digest,
)
from arena.people import tasks
from arena.people.tasks import AnnotationTask, TaskPool, TaskProgress, TaskState
from arena.present.numbers import PERCENT, counted, with_interval
from arena.results.opinions import agreement_with_judges, judgments_of
from arena.store import Store
from arena.store.annotations import Annotations
from judges.errors import InputError, RagleagueError
from judges.types import Document, Judgment, Query
from ui import data, editing, onward, text
from ui.access import allowed, annotator_field, owner, viewer
from ui.text import problem


@st.fragment
def show(kind: JudgedKind, source: data.Source) -> None:
    """Draw the page for annotations of one kind, such as verdicts or relevance labels."""
    form = form_of(kind)
    if not allowed("vote"):
        st.info("You can read here. To judge, ask whoever runs these pages to make you a voter.")
        return
    guide = text.TextLine("quiet", f"{form.guide} {form.unsure} Skip what you do not understand.")
    text.lines(text.TextLine("strong", form.question), text.TextLine("body", _instructions(kind, source)), guide)
    top = st.container(horizontal=True, vertical_alignment="bottom", key="review-top")
    pool = _pool(source, kind.name)
    if not pool.queries:
        onward.tasks(f"{form.missing} Once judges have judged, people are asked here.", source)
        return
    with top:
        annotator = annotator_field(placeholder="Your name or initials", label_visibility="collapsed", width=170)
    if not annotator:
        st.info(f"Enter your name or initials to begin. {_STORED}")
        return
    if (person := viewer()) is not None:
        with top:
            text.quiet(f"You are {person.name}; what you say is kept under this name.")
    Review(kind, source, annotator).show(pool, top)


def existing(source: data.Source) -> list[str]:
    """Names of the page's parts that have tasks; if none has any, the name of the first part."""
    return [form_of(kind).view for kind in with_tasks(source) or [VERDICT]]


def with_tasks(source: data.Source) -> list[JudgedKind]:
    """The kinds of judgments that have tasks for annotators."""
    return [kind for kind in KINDS.values() if kind.form is not None and _has_tasks(kind, source)]


def _has_tasks(kind: JudgedKind, source: data.Source) -> bool:
    if kind is not VERDICT and data.settings(source).section(kind.section) is None:
        return False
    return bool(_pool(source, kind.name).queries) if kind in (VERDICT, NUGGETS) else _is_judged(source, kind.name)


def _any_judgment(store: Store, tournament: str, kind: str) -> bool:
    return any(isinstance(result, Judgment) for _, result in store.each_outcome(tournament, KINDS[kind].task))


_is_judged = data.judged(_any_judgment)


def _instructions(kind: JudgedKind, source: data.Source) -> str:
    """The instructions for annotators in the YAML file; for games, by default the factors that their judges weigh."""
    config, settings = editing.configured(), data.settings(source)
    section = (config if config is not None and config.name == source.tournament else settings).section(kind.section)
    factors = getattr(section, "factors", "")
    return getattr(section, "review", "") or (f"Weigh {factors}" if factors else "")


@data.derived("Drawing the tasks …")
def _pool(source: data.Source, kind: str) -> TaskPool:
    """The annotation tasks of one kind; empty until a judge has given a judgment."""
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
        seen: id of the annotator's latest annotation that the page has read from the store.
        begun: time at which each task was first shown, by task id.
        undone: ids of tasks to show again, because the annotator took the answer back or takes up skipped tasks; the
            page shows the last of them.
        turn: number of button presses so far that saved an answer, skipped a task or took an answer back, or failed to.
        note: message about the last button that was pressed.
        refused: message that says why the last answer was not saved; shown when the page is drawn again.
        pressed: task id and value of an answer that was not saved, so that its button stays marked.
    """

    progress: TaskProgress | None = None
    seen: int = 0
    begun: dict[str, float] = field(default_factory=dict)
    undone: list[str] = field(default_factory=list)
    turn: int = 0
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

    def _digest(self, *more: str) -> str:
        return texts_digest(self.source.location, self.source.tournament, self.kind.name, self.annotator, *more)[:16]

    @property
    def _state(self) -> _State:
        if (state := st.session_state.get(key := f"review-{self._digest()}")) is None:
            state = st.session_state[key] = _State(undone=[*_POSITIONS.get(self._place, ())])
        assert isinstance(state, _State)
        return state

    @property
    def _place(self) -> tuple[bytes, str]:
        return owner(), self._digest()

    def _go_to(self, task_ids: list[str]) -> None:
        """Make the page show the last of these tasks next, also after a reload."""
        self._state.undone = task_ids
        _POSITIONS.pop(self._place, None)
        if task_ids and self._place[0]:
            _POSITIONS[self._place] = task_ids
        while len(_POSITIONS) > _MOST_POSITIONS:
            _POSITIONS.pop(next(iter(_POSITIONS)))

    def _key(self, task: AnnotationTask) -> str:
        """A part of the keys of a task's widgets that differs between tasks, annotators and tournaments.

        So a pressed button always belongs to the task that is shown.
        """
        return self._digest(task.task_id)

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
        """Draw the annotator's progress and their next task."""
        progress, state = self._progress(pool), self._state
        done, skipped, total = progress.of(TaskState.DONE), progress.of(TaskState.SKIPPED), len(progress.queue)
        with top:
            st.progress((len(done) + len(skipped)) / total, text=progress.words(self.form))
        task = (progress.find(state.undone[-1]) if state.undone else None) or progress.next()
        if task is None:
            self._show_end(progress.annotations, total, skipped)
            return
        if not done and not skipped:
            text.quiet(_STORED)
        state.begun.setdefault(task.task_id, time.monotonic())
        choices = self.form.choices(data.settings(self.source))
        with top:
            raw = text.raw_switch()
            answers = task.texts if len(task.texts) == 2 and not self.form.names else ("", "")
            marked = text.alike(*answers) and st.toggle("Mark differences", True, key=f"marks-{self._key(task)}")
        query = data.dataset(self.source).queries[task.query_id]
        reference = query.reference is not None and tasks.judge_saw_reference(task.kind, data.settings(self.source))
        documents = self._documents(task)
        text.lead(task.query.text)
        has_drawer = bool(reference or documents or query.messages)
        with st.container(key="judged" if has_drawer else "judged-alone"):
            texts, drawer = st.columns([3, 1], gap="medium") if has_drawer else (st.container(), None)
        with texts:
            self._show_texts(task, choices, raw=raw, marks=marked)
        if drawer is not None:
            with drawer, st.container(key="drawer"):
                self._show_drawer(task, query, documents, raw=raw, reference=reference)
        with st.container(key=f"once-{self._key(task)}", horizontal=True, vertical_alignment="center", gap="small"):
            self._show_bar(task, choices, progress.before({*state.undone, task.task_id}))

    def _documents(self, task: AnnotationTask) -> list[Document]:
        if task.kind not in tasks.READ_WITH_DOCUMENTS:
            return []
        labels = data.labels_of_query(self.source, task.query_id)
        return tasks.documents_seen(task, data.dataset(self.source), labels, data.settings(self.source))

    def _show_drawer(
        self, task: AnnotationTask, query: Query, documents: Sequence[Document], *, raw: bool, reference: bool
    ) -> None:
        """Draw what judges read besides the answers (reference, documents); the expander stays open or closed."""
        parts = ["conversation"] * bool(query.messages) + ["reference"] * reference
        parts += [counted(len(documents), "document")] * bool(documents)
        with st.expander(", ".join(parts).capitalize(), expanded=True, key="beside", on_change="rerun") as fold:
            if not fold.open:
                return
            text.thread(query, last=_LAST_MESSAGES)
            if reference:
                text.reference(query, raw=raw)
            several = len(documents) > _DOCUMENTS
            if several and not st.toggle(f"Show all {len(documents):,} documents", key=f"all-{self._key(task)}"):
                documents = documents[:_DOCUMENTS]
            for number, document in enumerate(documents):
                title = document.metadata.get("title", "") or document.doc_id
                text.strong(title.strip())
                key = f"document-{number}-{self._key(task)}"
                text.passage(document.text, key, label=f"Document: {title}", empty="This document is empty.", raw=raw)

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

    def _show_rows(self, task: AnnotationTask, choices: Sequence[Choice]) -> None:
        """Draw a field with the choices for each row of a task; the browser keeps the selection until it is saved."""
        values, earlier = [choice.value for choice in choices], self._earlier(task)
        rows = self._words(task)
        with st.container(key=f"rows-{self._key(task)}", gap="small"):
            for number, (name, key) in enumerate(self._rows(task).items(), start=1):
                row = rows[name]
                st.session_state.setdefault(key, next((value for value in values if value == earlier.get(name)), None))
                labels = [
                    _label(choice, row.meanings.get(choice.value, choice.meaning), in_row=True) for choice in choices
                ]
                with st.container(gap="xsmall"):
                    text.strong(f"{number}. {row.text}")
                    st.radio(
                        f"{self.form.row} {number}",
                        values,
                        format_func=dict(zip(values, labels, strict=True)).__getitem__,
                        horizontal=not row.meanings,
                        label_visibility="collapsed",
                        key=key,
                        on_change="ignore",
                    )

    def _earlier(self, task: AnnotationTask) -> Mapping[str, Any]:
        """The choices in the annotator's earlier answer to the task, by row."""
        return (task.value or {}) if task.parts == ("",) else dict(zip(task.parts, task.values, strict=True))

    def _rows(self, task: AnnotationTask) -> dict[str, str]:
        """The keys of the rows' widgets, by the rows' names."""
        key = self._key(task)
        return {name: f"row-{n}-{key}" for n, name in enumerate(self._words(task))}

    def _words(self, task: AnnotationTask) -> Mapping[str, FormRow]:
        """The rows of a task's form, by name; empty for a task with a single choice."""
        if self.form.rows is not None:
            return self.form.rows(data.settings(self.source))
        return dict(zip(task.parts, map(FormRow, task.part_texts), strict=True)) if self.form.row else {}

    def _show_bar(self, task: AnnotationTask, choices: Sequence[Choice], before: AnnotationTask | None) -> None:
        task_key, state = self._key(task), self._state
        pressed_task, pressed = state.pressed
        chosen = pressed if pressed_task == task.task_id else None if self.form.row else task.value
        for number, choice in enumerate(() if self.form.row else choices):
            st.button(
                _label(choice, choice.meaning),
                key=f"choice-{number}-{task_key}",
                type="primary" if chosen == choice.value else "secondary",
                shortcut=choice.key,
                on_click=self._save,
                args=(task, [choice.value], choice.label),
                wrap=True,
            )
        if self.form.row:
            button_options: dict[str, Any] = {"type": "primary", "shortcut": "Ctrl+Enter", "on_click": self._save_rows}
            st.button("Save", key=f"save-{task_key}", args=(task,), **button_options)
        st.button("Skip", key=f"skip-{task_key}", shortcut="s", type="tertiary", on_click=self._save, args=(task, None))
        undo = partial(self._undo, before) if before is not None else None
        st.button("Undo", key=f"undo-{task_key}", shortcut="u", type="tertiary", on_click=undo, disabled=undo is None)
        keys = " ".join(choice.key or "-" for choice in choices)
        st.html(
            f'<p role="status" class="note" data-form="{self._digest()}" data-task="{task_key}" data-keys="{keys}" '
            f'data-turn="{state.turn}"{" data-refused=yes" * bool(state.refused)}>{state.note}</p>'
        )
        if refused := state.refused:
            state.refused = ""
            problem("Not saved.", refused)

    def _save_rows(self, task: AnnotationTask) -> None:
        chosen = {name: st.session_state.get(key) for name, key in self._rows(task).items()}
        if missing := [*chosen.values()].count(None):
            self._state.turn += 1
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
            state.turn += 1
            return
        state.pressed, state.turn = ("", None), state.turn + 1
        state.note = "Skipped" if values is None else f"✓ Saved: {words}"
        self._go_to([task_id for task_id in state.undone if task_id != task.task_id])

    def _store(self, task: AnnotationTask, values: Sequence[Any] | None) -> None:
        editing.check("vote")
        seconds = time.monotonic() - self._state.begun.get(task.task_id, time.monotonic())
        with data.shared(self.source.location) as store:
            annotations = task.annotations(self.annotator, values, seconds)
            Annotations(store, self.source.tournament).add(annotations, partial(self._check_pair, task))

    def _check_pair(self, task: AnnotationTask, annotations: list[Annotation]) -> None:
        """Check that the annotator has not voted meanwhile, in another window, on two other answers to the same query.

        Raises:
            InputError: the annotator has; the tournament changed between the two votes.
        """
        if task.kind is VERDICT:
            (current,) = tasks.with_votes([task], annotations, data.dataset(self.source))
            if {*current.names, *current.parts} != {*task.names, *task.parts}:
                raise InputError(
                    "You have meanwhile voted on two other answers to this query, in another window. Reload the page."
                )

    def _undo(self, task: AnnotationTask) -> None:
        """Take back the answer to a task and show the task again; if it is not answered again, it counts as skipped."""
        state = self._state
        try:
            if task.state is TaskState.DONE:
                self._store(task, None)
        except RagleagueError as error:
            state.refused, state.note, state.turn = str(error), "", state.turn + 1
            return
        state.note, state.turn = "Taken back", state.turn + 1
        self._go_to([*state.undone, task.task_id])
        earlier = self._earlier(task) if self.form.row else {}
        st.session_state.update({self._rows(task)[name]: value for name, value in earlier.items()})

    def _show_end(self, annotations: Sequence[Annotation], count: int, skipped: Sequence[AnnotationTask]) -> None:
        """Draw the annotator's agreement with the judges; if it were shown earlier, it could influence the answers."""
        st.success(f"You have been through all {count:,} {self.form.things}. Thank you.", icon=":material/done_all:")
        with data.shared(self.source.location) as store, st.spinner("Comparing with the judge …"):
            games = data.games(self.source)
            for judge, agreement in agreement_with_judges(store, self.source.tournament, annotations, games).items():
                share, pairs = with_interval(agreement.share, PERCENT), counted(agreement.pairs, "judgment")
                per_order = ", each order of a game counted" if self.kind is VERDICT else ""
                text.lead(f"You agree with {judge} on {share} of its {pairs}{per_order}.")
        if skipped:
            st.button(f"Take up the {len(skipped):,} skipped", on_click=self._take_up, args=(skipped,))

    def _take_up(self, skipped: Sequence[AnnotationTask]) -> None:
        self._state.note = ""
        self._go_to([task.task_id for task in reversed(skipped)])


_ANSWER_SWITCH: Final = (
    '<fieldset class="which"><legend>Show</legend>'
    '<label><input type="radio" name="which" checked>Both</label>'
    '<label><input type="radio" name="which" id="which-1">Answer 1</label>'
    '<label><input type="radio" name="which" id="which-2">Answer 2</label></fieldset>'
)
"""Radio buttons that choose which of the two answers to show in a narrow window; see ``ui/page.css``."""


_STORED: Final = (
    "What you choose is stored with your name and the time, and Undo takes it back. It is compared with what judges "
    "say; it changes no rating."
)
_LAST_MESSAGES: Final = 4
"""Number of a conversation's latest messages that are shown unfolded."""
_DOCUMENTS: Final = 10
"""Number of a task's documents that are drawn at first."""
_MOST_POSITIONS: Final = 1000
_POSITIONS: Final[dict[tuple[bytes, str], list[str]]] = {}
"""Ids of tasks that were taken back or taken up again, by browser (or person) and form, to survive a reload."""


def _label(choice: Choice, meaning: str, *, in_row: bool = False) -> str:
    """The text of a button or option: the choice's label with its meaning and, in a row, its keyboard key."""
    key = f"`{choice.key}` " if in_row and choice.key not in (None, choice.label) else ""
    return f"{key}{choice.label}" + (f": {text.label(meaning)}" if meaning else "")


VIEWS: Final = {kind.form.view: partial(show, kind) for kind in KINDS.values() if kind.form is not None}
"""The functions that draw the parts of the page, by name, in the order of the menu."""
