"""Vote, Label, Grade and Assess: a person judges texts, one task at a time, without knowing whose they are.

What a judge or another person said is never shown. A page writes to the store only where somebody pressed a button.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import streamlit as st

from arena.boards.nuggets import support_words
from arena.people import tasks
from arena.people.tasks import AnnotationTask, State, rubric_of, scale_of
from arena.stages.nuggets.results import nuggets_section
from arena.stages.samples import outcomes
from arena.store import Store
from arena.store.annotations import Annotation, Annotations, Kind, annotator_name
from judges.errors import InputError, RagleagueError
from judges.types import Judgment, Task, Verdict, label_of
from retrieval_eval.nuggets.types import Support
from ui import data, text
from ui.access import allowed, viewer
from ui.text import nothing, problem

_HEIGHT: Final = 440
"""Pixels of an answer: it and what is asked about it are seen at once on a common screen."""
_ROW: Final = 70
"""Pixels that a row of choices takes at least."""
_VERDICTS: Final = {Verdict.A: "Answer 1 is better", Verdict.B: "Answer 2 is better", Verdict.TIE: "A tie"}
"""In the order of their keys 1, 2, 3."""


@dataclass(frozen=True)
class Form:
    """One kind of task on its page; all words are our own.

    Attributes:
        kind: of what people say.
        heading: of the page.
        things: what is counted: "answers".
        done: what has become of one that is done: "graded".
        missing: said before there is anything to annotate, with the section of the YAML file that it takes, and what
            people can do then.
        judged: what judges judged; empty or ``None`` where there is nothing.
        tasks: of one person, from that and what they said.
        draw: one task with its buttons, in containers whose key begins with ``once-``, see ``ui/page.js``.
    """

    kind: Kind
    heading: str
    things: str
    done: str
    missing: tuple[str, str, str]
    judged: Callable[[data.Source], Any]
    tasks: Callable[[data.Source, Any, Sequence[Annotation], str], list[AnnotationTask]]
    draw: Callable[[Queue, AnnotationTask], None]


def show(form: Form, source: data.Source) -> None:
    """Draw the page of a form: how far the person is, the next task, and the way back to the one before."""
    st.header(form.heading, anchor=False)
    source = settled(source)
    judged = form.judged(source)
    if not judged:
        missing, section, then = form.missing
        nothing(f"{missing}. Give the YAML file a `{section}` section and run `ragleague run`. Then people can {then}.")
    elif who := _annotator():
        queue = Queue(form, source, who)
        todo = form.tasks(source, judged, queue.said(), who)
        if todo:
            queue.show(todo)
        else:
            nothing("No answer to read: every answer to a query with nuggets is empty.")


@dataclass(frozen=True)
class Queue:
    """What one person has to do on one page, and what they say of it."""

    form: Form
    source: data.Source
    who: str

    def said(self) -> list[Annotation]:
        """What they say now, read anew at every call."""
        with closing(Store.open(self.source.location)) as store:
            return Annotations(store, self.source.tournament).latest(self.form.kind, self.who)

    def show(self, todo: Sequence[AnnotationTask]) -> None:
        """Draw how far they are, and what is next."""
        open_, skipped = ([task for task in todo if task.state is state] for state in (State.OPEN, State.SKIPPED))
        more = f", {len(skipped):,} skipped" if skipped else ""
        done = f"{len(todo) - len(open_) - len(skipped):,} of {len(todo):,} {self.form.things} {self.form.done}{more}"
        st.progress(1 - len(open_) / len(todo), text=done)
        chosen = [task for task in todo if task.task_id == st.session_state.get(self._current)]
        task = next(iter([*chosen, *open_]), None)
        if task is None:
            st.success(
                f"You have been through all {len(todo):,} {self.form.things}. Thank you.", icon=":material/done_all:"
            )
            if skipped:
                st.button(f"Take up the {len(skipped):,} skipped", on_click=self._go_to, args=(skipped[0],))
            return
        st.session_state.setdefault(self._begun(task), time.monotonic())
        self.form.draw(self, task)
        place = todo.index(task)
        with st.container(horizontal=True):
            st.button(
                "Back to the one before",
                on_click=self._go_to,
                args=(todo[place - 1],),
                disabled=place == 0,
                icon=":material/arrow_back:",
            )
            if st.session_state.get(self._current) is not None:
                st.button("Go on where you stopped", on_click=self._go_to, args=(None,))

    def key(self, task: AnnotationTask) -> str:
        """Part of widgets' keys: what one person has chosen and not saved is not shown to another."""
        return f"{self.form.kind}-{task.task_id}-{self.who.encode('utf-8', 'replace').hex()}"

    def save(self, task: AnnotationTask, values: Sequence[Any] | None) -> None:
        """Save one value per part of a task, or with ``None`` skip it, and go on; said twice, it is kept once.

        Where that is refused, nothing is saved and the next drawing says why.
        """
        # Another press may end this call at any access to the session, so nothing is noted there before it is kept.
        try:
            if not allowed("vote"):
                raise InputError("Your role is to read.")
            said = task.annotations(self.who, values, time.monotonic() - float(st.session_state[self._begun(task)]))
            with closing(Store.open(self.source.location)) as store:
                Annotations(store, self.source.tournament).add(said, partial(self._check_pair, task))
        except RagleagueError as error:
            self.refuse(f"Not saved. {error}")
            return
        self._go_to(None)

    def _check_pair(self, task: AnnotationTask, said: list[Annotation]) -> None:
        """Whether no other window asked the query with another pair, of a tournament that has changed since."""
        if task.kind is not Kind.VERDICT:
            return
        game = task.query_id, task.names[0], task.parts[0]
        (asked,) = tasks.games([game], data.dataset(self.source), said, self.who)
        if {*asked.names, *asked.parts} != {*task.names, *task.parts}:
            raise InputError("You have voted on two other answers to this query meanwhile.")

    def refuse(self, why: str) -> None:
        """Say with the next drawing why nothing was saved."""
        st.session_state[self._problem] = why

    def show_problem(self) -> None:
        """Draw what was refused, if anything."""
        if refused := st.session_state.pop(self._problem, None):
            problem("Not saved yet.", refused)

    def show_choice(self, task: AnnotationTask, number: int, label: str, value: Any, shortcut: str | None) -> None:
        """A button that says this of a task."""
        st.button(
            label,
            key=f"choice-{number}-{self.key(task)}",
            type="primary" if task.value == value else "secondary",
            shortcut=shortcut,
            on_click=self.save,
            args=(task, [value]),
        )

    def show_skip(self, task: AnnotationTask) -> None:
        """The button that skips a task."""
        key = f"skip-{self.key(task)}"
        st.button("Skip", key=key, shortcut="s", type="tertiary", on_click=self.save, args=(task, None))

    def show_rows(
        self,
        task: AnnotationTask,
        rows: Sequence[tuple[str, Any]],
        offered: Sequence[Any],
        save: Callable[[list[Any]], list[Any]],
        *,
        row: str,
        refusal: str,
        worded: Callable[[Any], str] = str,
    ) -> None:
        """Draw an answer, and beside it a row of choices for each of several items, which are saved together.

        Args:
            task: what they are asked about.
            rows: what stands above each row, and what was chosen before.
            offered: the choices.
            save: the values of the task's parts, from what is chosen in each row.
            row: what a screen reader calls a row.
            refusal: said where a choice is missing, with the number of rows without one.
            worded: a choice in words.
        """
        mark = self.key(task)
        keys = [f"{row}-{number}-{mark}" for number in range(len(rows))]

        def save_rows() -> None:
            chosen = [st.session_state.get(key) for key in keys]
            if missing := chosen.count(None):
                self.refuse(refusal.format(missing))
            else:
                self.save(task, save(chosen))

        left, right = st.columns(2, gap="medium")
        with left:
            text.passage(task.texts[0], f"answer-{mark}", label="Answer", empty="This answer is empty.", height=_HEIGHT)
        with right, st.form(f"form-{mark}", border=False):
            height: int | Literal["content"] = "content" if len(rows) * _ROW < _HEIGHT else _HEIGHT
            with st.container(height=height, border=True, key=f"items-{mark}"):
                for number, (key, (words, earlier)) in enumerate(zip(keys, rows, strict=True), start=1):
                    with st.container(gap="xsmall"):
                        text.strong(words)
                        st.radio(
                            f"{row} {number}",
                            offered,
                            index=offered.index(earlier) if earlier in offered else None,
                            format_func=worded,
                            horizontal=True,
                            label_visibility="collapsed",
                            key=key,
                        )
            self.show_problem()
            with _buttons(mark):
                named: dict[str, Any] = {"type": "primary", "shortcut": "Ctrl+Enter", "on_click": save_rows}
                st.form_submit_button("Save and go on", key=f"save-{mark}", **named)
                skip = partial(self.save, task, None)
                st.form_submit_button("Skip", key=f"skip-{mark}", on_click=skip, help="You can take it up later.")

    def _go_to(self, task: AnnotationTask | None) -> None:
        """Take up this task next, or with ``None`` the first that is open."""
        st.session_state[self._current] = None if task is None else task.task_id

    @property
    def _current(self) -> str:
        return f"{self.form.kind}-at"

    @property
    def _problem(self) -> str:
        return f"{self.form.kind}-problem"

    def _begun(self, task: AnnotationTask) -> str:
        return f"begun-{self.key(task)}"


def settled(source: data.Source) -> data.Source:
    """The tournament as it was when a judge or a run last changed it; equal while people only judge.

    Every vote changes the store. What is read to vote does not change with it, and need not be read anew.
    """
    with closing(Store.open(source.location)) as store:
        return _first_seen((source.location, source.tournament, *store.judged(source.tournament)), source)


@st.cache_resource(max_entries=16, show_spinner=False)
def _first_seen(state: tuple[str, str, int, str], _source: data.Source) -> data.Source:  # noqa: ARG001 - the cache's key
    return _source


def _annotator() -> str | None:
    """Who is at work: whoever signed in, else who they say they are; ``None``, said on the page, where nobody may."""
    if not allowed("vote"):
        st.info("You can read these pages. To judge here, ask whoever runs them to make you a voter.")
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
            max_chars=80,
            width=320,
            help="Kept with what you say, to tell people apart and to go on where you stopped. It is no login.",
        )
    if not given or not given.strip():
        st.info("Enter your name or initials to begin.")
        return None
    try:
        return annotator_name(given)
    except InputError as error:
        text.plain(str(error))
        return None


def _buttons(key: str, *, horizontal: bool = True) -> AbstractContextManager[object]:
    """Where a task's buttons are: a press counts once, see ``ui/page.js``."""
    return st.container(horizontal=horizontal, gap="small" if horizontal else "xsmall", key=f"once-{key}")


def _draw_game(queue: Queue, task: AnnotationTask) -> None:
    key = queue.key(task)
    text.lead(task.query)
    st.caption("Which answer serves the one who asked better? *A tie*: they are equally good, or equally bad.")
    for number, (column, answer) in enumerate(zip(st.columns(2, gap="medium"), task.texts, strict=True), start=1):
        with column:
            st.caption(f"Answer {number}")
            text.passage(
                answer, f"{number}-{key}", label=f"Answer {number}", empty="This answer is empty.", height=_HEIGHT
            )
    if task.texts[0] == task.texts[1]:
        st.caption("Both answers are the same, word for word.")
    queue.show_problem()
    with _buttons(key):
        for number, (verdict, words) in enumerate(_VERDICTS.items(), start=1):
            queue.show_choice(task, number, words, verdict, str(number))
        queue.show_skip(task)


def _labels(source: data.Source) -> dict[tuple[str, str], int]:
    return {
        names: label_of(result.outcome) for names, result in data.labels(source).items() if isinstance(result, Judgment)
    }


def _draw_document(queue: Queue, task: AnnotationTask) -> None:
    key, source = queue.key(task), queue.source
    scale = scale_of(data.settings(source), _labels(source).values())
    text.lead(task.query)
    with st.container(gap="xsmall"):
        if title := data.dataset(source).documents[task.names[0]].metadata.get("title"):
            text.strong(title)
        empty = "This document is empty."
        text.passage(task.texts[0], f"label-{key}", label="Document", empty=empty, height=_HEIGHT)
    queue.show_problem()
    with _buttons(key, horizontal=False):
        for label, word in scale:  # the prompt's words for a label are none of ours, so they are inert text beside it
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                queue.show_choice(task, label, f"Label {label}", label, str(label) if 0 <= label <= 9 else None)
                text.plain("" if word == str(label) else word)
    if all(word == str(label) for label, word in scale):
        st.caption(f"{scale[0][0]} is not relevant at all, {scale[-1][0]} is all one could wish for.")
    with _buttons(f"skip-{key}"):
        queue.show_skip(task)


def _graded(store: Store, tournament: str) -> Sequence[tuple[str, str]]:
    """Query and agent of every answer that a judge graded."""
    judged = outcomes(store, tournament, Task.CRITERIA)
    return list(dict.fromkeys((want.query_id, want.item) for want, result in judged if isinstance(result, Judgment)))


_graded_answers = data.stored(_graded, "Reading the grades …")


def _draw_answer(queue: Queue, task: AnnotationTask) -> None:
    rubric = rubric_of(data.settings(queue.source))
    assert rubric is not None
    text.lead(task.query)
    st.caption(f"From {rubric.low}, not at all, to {rubric.high}, fully. Grade each criterion on its own.")
    earlier = task.value or {}
    queue.show_rows(
        task,
        [(f"{name}: {meaning}" if meaning else name, earlier.get(name)) for name, meaning in rubric.criteria.items()],
        range(rubric.low, rubric.high + 1),
        lambda grades: [dict(zip(rubric.criteria, grades, strict=True))],
        row="Criterion",
        refusal="Criteria without a grade: {}. Grade by all, or skip the answer.",
    )


def _draw_nuggets(queue: Queue, task: AnnotationTask) -> None:
    text.lead(task.query)
    grades = nuggets_section(data.settings(queue.source)).assign.grades
    partly = "; *partial support*: a part of it" if grades == 3 else ""
    st.caption(f"*Support*: the answer states the whole fact{partly}. Whether the fact is true does not matter here.")
    texts = [f"{number}. {nugget}" for number, nugget in enumerate(task.part_texts, start=1)]
    queue.show_rows(
        task,
        list(zip(texts, task.values, strict=True)),
        [label for label in Support if grades == 3 or label is not Support.PARTIAL],
        list,
        row="Nugget",
        refusal="Nuggets without a label: {}. Label them all, or skip the answer.",
        worded=support_words,
    )


vote = partial(
    show,
    Form(
        Kind.VERDICT,
        "Which answer is better?",
        "queries",
        "voted on",
        ("No game has a verdict yet", "pairwise", "vote here on what the judges judged"),
        data.met,
        lambda source, played, said, who: tasks.games(played, data.dataset(source), said, who),
        _draw_game,
    ),
)
label = partial(
    show,
    Form(
        Kind.RELEVANCE,
        "How relevant is the document?",
        "documents",
        "labelled",
        ("No document has a label yet", "retrieval", "label here what the judges labelled"),
        _labels,
        lambda source, labels, said, who: tasks.documents(labels, data.dataset(source), said, who),
        _draw_document,
    ),
)
grade = partial(
    show,
    Form(
        Kind.CRITERIA,
        "How good is the answer?",
        "answers",
        "graded",
        ("No answer has a grade yet", "criteria", "grade here what the judges graded"),
        lambda source: rubric_of(data.settings(source)) and _graded_answers(source),
        lambda source, graded, said, who: tasks.answers(graded, data.dataset(source), said, who),
        _draw_answer,
    ),
)
assess = partial(
    show,
    Form(
        Kind.NUGGET,
        "Which facts does the answer state?",
        "answers",
        "assessed",
        ("There are no nuggets yet", "nuggets", "say here which of them each answer states"),
        lambda source: (results := data.nuggets(source)) and results.banks,
        lambda source, banks, said, who: tasks.nuggets(banks, data.dataset(source).answers.values(), said, who),
        _draw_nuggets,
    ),
)
