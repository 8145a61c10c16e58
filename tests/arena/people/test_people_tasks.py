"""What people are asked: a queue of their own that nothing else moves, every text once, and nothing said is lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset
from arena.data.kinds import CRITERIA, KINDS, NUGGETS, RELEVANCE, Annotation, FormRow
from arena.people import tasks
from arena.people.tasks import AnnotationTask, GameNames, TaskProgress, TaskState
from arena.people.votes import assignments_of, imported_assignments
from arena.store import Store
from arena.store.annotations import Annotations
from judges.types import Answer, Document, Query, Verdict
from retrieval_eval.nuggets.types import Importance, NuggetBank, Support, make_nuggets
from tests.support.children import at_once

AGENTS = ("w", "x", "y", "z")
QUERIES = [f"q{number}" for number in range(60)]
DATA = Dataset(
    {query: Query(query, f"What is {query}?") for query in QUERIES},
    {f"d-{query}": Document(f"d-{query}", f"All about {query}.") for query in QUERIES},
    {(query, agent): Answer(query, agent, f"{agent} on {query}") for query in QUERIES for agent in AGENTS},
)
GAMES: list[GameNames] = [(query, a, b) for query in QUERIES for a, b in combinations(AGENTS, 2)]
BANKS = {
    query: NuggetBank(query, f"What is {query}?", make_nuggets(query, ["one", "two"], [Importance.VITAL] * 2))
    for query in QUERIES[:3]
}
LABELS = [Support.FULL, Support.NONE]
NAMES = st.text(min_size=1, max_size=8)
SAME = replace(DATA, answers=DATA.answers | {("q1", agent): Answer("q1", agent, "the same of both") for agent in "xz"})


def asked(
    kind: str, annotator: str = "ann", said: Sequence[Annotation] = (), data: Dataset = DATA
) -> list[AnnotationTask]:
    if kind == "verdict":
        return voted(GAMES, data, said, annotator)
    if kind == "relevance":
        labels = [Annotation(kind, "judge", query, f"d-{query}", "", "", 1) for query in QUERIES]
        queue = tasks.judged(RELEVANCE, labels, data).queue(annotator)
    elif kind == "criteria":
        queue = tasks.answers(data.answers, data).queue(annotator)
    else:
        queue = tasks.nuggets(BANKS, data.answers.values()).queue(annotator)
    return tasks.with_values(queue, said)


def voted(
    played: Sequence[GameNames], data: Dataset, said: Sequence[Annotation], annotator: str
) -> list[AnnotationTask]:
    return tasks.with_votes(tasks.games(played, data).queue(annotator), said, data)


VALUES: dict[str, list[Any]] = {
    "verdict": [Verdict.TIE],
    "relevance": [0],
    "criteria": [{"clear": 2, "true": 0}],
    "nuggets": LABELS,
}


@pytest.mark.parametrize("kind", VALUES)
def test_what_was_said_is_found_at_its_place_by_whom_it_was_said_until_a_text_changes(kind: str) -> None:
    before = asked(kind)
    task = before[3]
    for values, state in ((VALUES[kind], TaskState.DONE), (None, TaskState.SKIPPED)):
        said = task.annotations("ann", values)
        expected = replace(task, values=tuple(values or task.values), seen=True)
        after = asked(kind, said=said)
        assert (after[3], after[3].state, after[3].task_id) == (expected, state, task.task_id)
        assert [*after[:3], task, *after[4:]] == before
        changed = replace(DATA, queries=DATA.queries | {task.query_id: Query(task.query_id, "Else?")})
        if kind != "nuggets":  # whose queries are those of the bank
            assert {one.state for one in asked(kind, said=said, data=changed)} == {TaskState.OPEN}
    skipped = task.annotations("ann")
    assert asked(kind, said=[*skipped, *task.annotations("ann", VALUES[kind])])[3].state is TaskState.DONE


@pytest.mark.parametrize("kind", VALUES)
def test_the_order_is_one_s_own_and_nothing_that_is_added_or_stands_elsewhere_moves_it(kind: str) -> None:
    queue = asked(kind)
    backwards = replace(DATA, answers=dict(reversed(DATA.answers.items())))
    assert queue == asked(kind, data=backwards)
    assert len({tuple(task.task_id for task in asked(kind, f"person {number}")) for number in range(5)}) == 5
    more = replace(DATA, answers=DATA.answers | {("q2", "new"): Answer("q2", "new", "something else")})
    assert [task for task in asked(kind, data=more) if task.names != ("new",)] == queue


@pytest.mark.parametrize("kind", ["criteria", "nuggets"])
def test_answers_of_one_text_are_read_once_for_all_who_gave_it(kind: str) -> None:
    queue = asked(kind, data=SAME)
    (both,) = (task for task in queue if len(task.names) > 1)
    assert both.names == ("x", "z")
    said = both.annotations("ann", VALUES[kind], 9.0)
    assert sorted(one.item for one in said) == sorted("xz" * len(both.parts))
    assert {one.seconds for one in said} == {9.0 / len(both.parts)}
    assert {task.state for task in asked(kind, said=said)} == {TaskState.OPEN}, "their answers are others now"


@given(NAMES, st.permutations(GAMES[:24]))
def test_nobody_is_asked_a_query_twice_and_the_plan_s_order_means_nothing(
    annotator: str, played: list[GameNames]
) -> None:
    todo = list(tasks.games(played, DATA).queue(annotator))
    assert sorted(task.query_id for task in todo) == sorted({query for query, *_ in played})
    assert todo == list(tasks.games(GAMES[:24], DATA).queue(annotator))
    for task in todo:
        agents = (*task.names, *task.parts)
        assert (task.query_id, *sorted(agents)) in played
        assert task.texts == tuple(f"{agent} on {task.query_id}" for agent in agents), "answers stand where agents do"


def test_every_game_is_as_likely_to_be_asked_and_either_side_to_be_first() -> None:
    """3600 draws of 360 games and of two sides; bounds are four standard deviations."""
    whole = [task for number in range(60) for task in asked("verdict", f"person {number}")]
    pairs = Counter(tuple(sorted((*task.names, *task.parts))) for task in whole)
    # Half of the queries have one draw for all 60 people, so that the 30 shared draws count 60 times each.
    assert all(abs(count - 600) < 4 * (30 * 60**2 * 5 / 36 + 1800 * 5 / 36) ** 0.5 for count in pairs.values())
    first = sum(task.names < task.parts for task in whole)
    assert abs(first - 1800) < 4 * (3600 / 4) ** 0.5


def test_about_half_of_the_queries_bring_the_same_game_to_everybody() -> None:
    games = [
        {(task.query_id, *sorted((*task.names, *task.parts))) for task in asked("verdict", name)}
        for name in ("ann", "bob", "eve")
    ]
    assert 20 <= len(set.intersection(*games)) <= 45
    assert len(set.union(*games)) > 90


def test_a_query_whose_answer_changed_is_asked_anew_and_a_new_game_does_not_bring_one_back() -> None:
    (task,) = tasks.games(GAMES[:1], DATA).queue("ann")
    said = task.annotations("ann", [Verdict.A])
    assert [one.state for one in voted(GAMES[:6], DATA, said, "ann")] == [TaskState.DONE]
    key = task.query_id, task.names[0]
    changed = replace(DATA, answers=DATA.answers | {key: Answer(*key, "something else")})
    assert [one.state for one in voted(GAMES[:6], changed, said, "ann")] == [TaskState.OPEN]
    gone = replace(DATA, answers={name: answer for name, answer in DATA.answers.items() if name != key})
    rest = [game for game in GAMES[:6] if key[1] not in game]
    assert [one.state for one in voted(rest, gone, said, "ann")] == [TaskState.OPEN]


VOTER = """
import sys
from contextlib import closing
from arena.store import Store
from arena.store.annotations import Annotations
from arena.people import tasks
from judges.types import Verdict
from itertools import combinations
def act(who):
    while True:  # as the page does: what is said is read anew before each vote
        with closing(Store.open(sys.argv[1])) as store:
            annotations = Annotations(store, "t")
            data, agents = store.dataset("t"), "wxyz"
            games = [(query, *pair) for query in [*data.queries][:5] for pair in combinations(agents, 2)]
            todo = tasks.games(games, data).queue(who)
            todo = tasks.with_votes(todo, annotations.latest("verdict", who), data)
            left = [task for task in todo if task.state is tasks.TaskState.OPEN]
            if not left:
                break
            annotations.add(left[0].annotations(who, [Verdict.A]))
            annotations.add(left[0].annotations(who, [Verdict.A]))
"""


def test_voters_at_once_on_one_store_lose_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    with closing(Store.create(place)) as store:
        store.begin("t", {}, DATA, [])
    at_once(VOTER, place, [f"person {i}" for i in range(6)])
    with closing(Store.open(place)) as store:
        said = Annotations(store, "t").history()
    assert Counter(one.annotator for one in said) == {f"person {i}": 5 for i in range(6)}
    assert len({(one.annotator, one.query_id) for one in said}) == 30


def test_nuggets_are_asked_query_by_query_and_empty_answers_never() -> None:
    data = replace(DATA, answers=DATA.answers | {("q1", "z"): Answer("q1", "z", " \n")})
    queue = asked("nuggets", data=data)
    assert len(queue) == 11
    assert [query for query, _ in groupby(task.query_id for task in queue)] == list(
        dict.fromkeys(task.query_id for task in queue)
    )


def nugget_task(query_id: str, agent: str, data: Dataset = DATA) -> AnnotationTask:
    return next(one for one in asked("nuggets", data=data) if one.query_id == query_id and agent in one.names)


def test_a_changed_answer_or_nugget_inherits_no_label_and_a_late_agent_of_the_same_text_does() -> None:
    task = nugget_task("q1", "x")
    said = task.annotations("ann", LABELS)
    (same,) = tasks.with_values([replace(task, names=("late",))], said)
    assert same.values == tuple(LABELS)
    for other in (replace(task, texts=("another",)), replace(task, query=Query("q1", "another"))):
        (found,) = tasks.with_values([other], said)
        assert (found.values, found.state) == ((None, None), TaskState.OPEN)
    reworded = NuggetBank("q1", task.query.text, make_nuggets("q1", ["one", "two, reworded", "three"], [None] * 3))
    (found,) = tasks.with_values([tasks.nugget_task(reworded, task.texts[0], ("x",))], said)
    assert (found.values, found.state) == ((Support.FULL, None, None), TaskState.OPEN)


def test_assignments_go_out_and_come_back_as_they_were() -> None:
    answers = SAME.answers | {("q2", "w"): Answer("q2", "w", "")}
    said = [
        one
        for query, agent in (("q1", "x"), ("q2", "y"))
        for one in nugget_task(query, agent, SAME).annotations("ann", LABELS)
    ]
    out = assignments_of(BANKS, answers.values(), said)
    labels = {(one.query_id, one.run): one.labels for one in out}
    assert labels.pop(("q2", "w")) == (Support.NONE, Support.NONE), "an empty answer"
    assert labels == dict.fromkeys([("q1", "x"), ("q1", "z"), ("q2", "y")], tuple(LABELS))
    back = imported_assignments([one for one in out if one.run != "w"], BANKS, answers, "ann")
    assert back.left_out == {}
    assert sorted(back.annotations, key=repr) == sorted(said, key=repr)
    assert assignments_of(BANKS, answers.values(), nugget_task("q1", "x").annotations("ann")) == []


def test_what_a_file_says_of_other_texts_is_counted_and_left_out() -> None:
    (own, *_) = assignments_of(BANKS, DATA.answers.values(), nugget_task("q1", "x").annotations("ann", LABELS))
    foreign = make_nuggets("q1", ["one", "foreign"], [Importance.VITAL] * 2)
    found = imported_assignments(
        [
            replace(own, run="nobody"),
            replace(own, query_id="q9"),
            replace(own, answer="what it said last week"),
            replace(own, labels=(Support.FULL, None)),
            replace(own, run="y", answer=None, nuggets=foreign),
        ],
        BANKS,
        DATA.answers,
        "ann",
    )
    assert list(found.left_out.values()) == [2, 1, 1, 1]
    assert [(said.item, said.value) for said in found.annotations] == [("x", "support"), ("y", "support")]


def test_the_rubric_is_the_judges_own() -> None:
    named = StoredSettings.model_validate({"criteria": {"judge": "j", "names": ["clear", "true"], "scale": [1, 5]}})
    form = CRITERIA.form
    assert form is not None
    assert form.rows is not None
    assert form.rows(named) == {"clear": FormRow("clear"), "true": FormRow("true")}
    assert [choice.value for choice in form.choices(named)] == [1, 2, 3, 4, 5]
    assert [choice.meaning for choice in form.choices(named)] == ["not at all", "", "", "", "fully"]
    levels = {0: "rude", 1: "curt", 2: "kind"}
    criteria = {"judge": "j", "names": {"tone": {"description": "how it sounds", "levels": levels}}}
    described = StoredSettings.model_validate({"criteria": criteria})
    assert form.rows(described) == {"tone": FormRow("tone: how it sounds", levels)}


def test_the_time_left_is_the_annotator_s_own_pace_and_one_long_pause_does_not_count() -> None:
    assert NUGGETS.form is not None
    progress = TaskProgress(tasks.nuggets(BANKS, DATA.answers.values()).queue("ann"))
    assert len(progress.queue) == 12
    said = []
    for seconds in (40.0, 30.0, 7200.0, 30.0):
        assert "left" not in progress.words(NUGGETS.form) or len(said) > 2
        said.append(progress.next().annotations("ann", LABELS, seconds))  # type: ignore[union-attr]
        progress.add(said[-1])
    skipped = progress.next().annotations("ann")  # type: ignore[union-attr]
    progress.add(skipped)
    # Half a minute and more for each of the 7 that are open.
    assert progress.words(NUGGETS.form) == "4 of 12 answers assessed, 1 skipped, about 5 minutes left"
    imported = TaskProgress(progress.queue)
    imported.add([replace(one, seconds=None) for each in said for one in each])
    assert imported.words(NUGGETS.form) == "4 of 12 answers assessed"


def test_every_form_says_what_to_look_at_what_does_not_count_and_what_to_do_when_unsure() -> None:
    for form in (kind.form for kind in KINDS.values() if kind.form is not None):
        assert re.search(r"\bnot\b|\bonly\b", form.guide), form.guide
        assert re.search(r"style|right", form.guide), form.guide
        assert form.unsure.startswith("If ")
        assert form.view != "react"
