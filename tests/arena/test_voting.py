"""What people are asked: one game of each query, both sides alike, in an order that nothing else moves."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.data.dataset import Dataset
from arena.store import Store
from arena.store.annotations import Annotations
from arena.voting import documents, grades
from arena.voting.games import Ballot, Game, annotation_of, ballots
from arena.voting.things import State
from judges.types import Answer, Document, Query, Verdict
from tests.support.children import at_once

AGENTS = ("w", "x", "y", "z")
QUERIES = [f"q{number}" for number in range(60)]
DATA = Dataset(
    {query: Query(query, f"What is {query}?") for query in QUERIES},
    {f"d-{query}": Document(f"d-{query}", f"All about {query}.") for query in QUERIES},
    {(query, agent): Answer(query, agent, f"{agent} on {query}") for query in QUERIES for agent in AGENTS},
)
GAMES: list[Game] = [(query, a, b) for query in QUERIES for a, b in combinations(AGENTS, 2)]
NAMES = st.text(min_size=1, max_size=8)


def asked(annotator: str, games: list[Game] = GAMES) -> list[Ballot]:
    return ballots(games, DATA, [], annotator)


@given(NAMES, st.permutations(GAMES[:24]))
def test_nobody_is_asked_a_query_twice_and_the_plan_s_order_means_nothing(annotator: str, games: list[Game]) -> None:
    todo = asked(annotator, games)
    assert sorted(ballot.query_id for ballot in todo) == sorted({query for query, *_ in games})
    assert todo == asked(annotator, GAMES[:24])
    assert all((ballot.query_id, *sorted(ballot.agents)) in games for ballot in todo)


@given(NAMES)
def test_answers_stand_where_their_agents_do(annotator: str) -> None:
    for ballot in asked(annotator):
        assert ballot.answers == tuple(f"{agent} on {ballot.query_id}" for agent in ballot.agents)


def test_every_game_is_as_likely_to_be_asked_and_either_side_to_be_first() -> None:
    """3600 draws of 360 games and of two sides; bounds are four standard deviations."""
    whole = [ballot for number in range(60) for ballot in asked(f"person {number}")]
    pairs = Counter(tuple(sorted(ballot.agents)) for ballot in whole)
    # Half of the queries have one draw for all 60 people, so that the 30 shared draws count 60 times each.
    assert all(abs(count - 600) < 4 * (30 * 60**2 * 5 / 36 + 1800 * 5 / 36) ** 0.5 for count in pairs.values())
    first = sum(ballot.agents[0] < ballot.agents[1] for ballot in whole)
    assert abs(first - 1800) < 4 * (3600 / 4) ** 0.5


def test_about_half_of_the_queries_bring_the_same_game_to_everybody() -> None:
    games = [{(ballot.query_id, *sorted(ballot.agents)) for ballot in asked(name)} for name in ("ann", "bob", "eve")]
    same = len(set.intersection(*games))
    assert 20 <= same <= 45
    assert len(set.union(*games)) > 90


@given(NAMES, st.integers(0, 9), st.sampled_from([*Verdict, None]))
def test_what_was_said_is_found_again_at_its_place(annotator: str, place: int, verdict: Verdict | None) -> None:
    before = asked(annotator)
    said = annotation_of(before[place], verdict, annotator, 2.0)
    after = ballots(GAMES, DATA, [said], annotator)
    state = State.SKIPPED if verdict is None else State.DONE
    assert after[place] == replace(before[place], state=state, said=verdict)
    assert [*after[:place], before[place], *after[place + 1 :]] == before


def test_a_query_whose_answer_changed_is_asked_anew_and_a_new_game_does_not_bring_one_back() -> None:
    (ballot, *_) = asked("ann", GAMES[:1])
    said = annotation_of(ballot, Verdict.A, "ann")
    assert [one.state for one in ballots(GAMES[:6], DATA, [said], "ann")] == [State.DONE]
    key = ballot.query_id, ballot.agents[0]
    changed = replace(DATA, answers=DATA.answers | {key: Answer(*key, "something else")})
    assert [one.state for one in ballots(GAMES[:6], changed, [said], "ann")] == [State.OPEN]
    gone = replace(DATA, answers={found: own for found, own in DATA.answers.items() if found != key})
    rest = [game for game in GAMES[:6] if ballot.agents[0] not in game]
    assert [one.state for one in ballots(rest, gone, [said], "ann")] == [State.OPEN]


VOTER = """
import sys
from contextlib import closing
from arena.store import Store
from arena.store.annotations import Annotations, Kind
from arena.voting.games import annotation_of, ballots
from arena.voting.things import State
from judges.types import Verdict
from itertools import combinations
def act(who):
    while True:  # as the page does: what is said is read anew before each vote
        with closing(Store.open(sys.argv[1])) as store:
            kept = Annotations(store, "t")
            data, agents = store.dataset("t"), "wxyz"
            games = [(query, *pair) for query in [*data.queries][:5] for pair in combinations(agents, 2)]
            todo = ballots(games, data, kept.latest(Kind.VERDICT, who), who)
            left = [ballot for ballot in todo if ballot.state is State.OPEN]
            if not left:
                break
            kept.add([annotation_of(left[0], Verdict.A, who)])
            kept.add([annotation_of(left[0], Verdict.A, who)])
"""


def test_voters_at_once_on_one_store_lose_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    with closing(Store.create(place)) as store:
        store.begin("t", {}, DATA, [])
    at_once(VOTER, place, [f"person {i}" for i in range(6)])
    with closing(Store.open(place)) as store:
        said = Annotations(store, "t").history()
    assert Counter(own.annotator for own in said) == {f"person {i}": 5 for i in range(6)}
    assert len({(own.annotator, own.query_id) for own in said}) == 30


@pytest.mark.parametrize(("label", "state"), [(0, State.DONE), (2, State.DONE), (None, State.SKIPPED)])
def test_documents_come_in_an_order_of_one_s_own_and_keep_their_label(label: int | None, state: State) -> None:
    pairs = [(query, f"d-{query}") for query in QUERIES]
    todo = documents.slips(pairs, DATA, [], "ann")
    assert todo == documents.slips(pairs[::-1], DATA, [], "ann") != documents.slips(pairs, DATA, [], "bob")
    assert {slip.query_id for slip in todo} == set(QUERIES)
    said = documents.annotation_of(todo[3], label, "ann")
    assert documents.slips(pairs, DATA, [said], "ann")[3] == replace(todo[3], state=state, said=label)
    changed = replace(DATA, queries=DATA.queries | {todo[3].query_id: Query(todo[3].query_id, "Else?")})
    assert documents.slips(pairs, changed, [said], "ann")[3].state is State.OPEN


@pytest.mark.parametrize(("given", "state"), [({"clear": 2, "true": 0}, State.DONE), (None, State.SKIPPED)])
def test_answers_to_be_graded_are_read_once_and_keep_their_grades(given: dict[str, int] | None, state: State) -> None:
    answers = [(query, agent) for query in QUERIES for agent in AGENTS]
    same = DATA.answers | {("q7", agent): Answer("q7", agent, "the same of both") for agent in ("x", "z")}
    data = replace(DATA, answers=same)
    todo = grades.papers(answers, data, [], "ann")
    assert todo == grades.papers(answers[::-1], data, [], "ann") != grades.papers(answers, data, [], "bob")
    assert sorted((paper.query_id, agent) for paper in todo for agent in paper.agents) == sorted(answers)
    (both,) = (at for at, paper in enumerate(todo) if len(paper.agents) > 1)
    said = grades.annotations_of(todo[both], given, "ann")
    assert [own.item for own in said] == ["x", "z"]
    assert grades.papers(answers, data, said, "ann")[both] == replace(todo[both], state=state, said=given)
    anew = grades.papers(answers, DATA, said, "ann")  # their answers are others now
    assert {paper.state for paper in anew} == {State.OPEN}


def test_the_rubric_is_the_judges_own() -> None:
    named = {"criteria": {"names": ["clear", "true"], "scale": [1, 5]}}
    assert grades.rubric_of(named) == grades.Rubric({"clear": "", "true": ""}, 1, 5)
    assert grades.rubric_of({"criteria": None}) is None
