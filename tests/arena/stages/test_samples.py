"""Several samples of one judgment: what they come to, and how far they agree."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.results.outcomes import outcomes
from arena.results.ratings import leaderboard
from arena.store import Store, Wanted
from arena.store.outcomes import Consistency, combine, combined, consistency
from judges.types import JudgeFailure, Judgment, Task
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.scripted_judges import steady_text
from tests.support.tournaments import configured, run, write_data

FAILURE = JudgeFailure("f", "contract", "no label", "?")


def judged(outcome: Any, reason: str = "") -> Judgment:
    return Judgment("id", outcome, reason, "", "m")


@pytest.mark.parametrize(
    ("said", "majority", "median", "mean"),
    [
        (["A", "A", "B"], "A", "A", "A"),
        (["A", "B"], "TIE", "TIE", "TIE"),
        (["A", "TIE", "TIE"], "TIE", "TIE", "A"),
        (["B", "TIE", "A", "B"], "B", "B", "B"),
        ([0, 2, 2], 2, 2, 1),
        ([0, 2], 0, 0, 1),
        ([1, 2], 1, 1, 1),
        ([0, 1, 3, 3], 3, 1, 2),
        ([{"tone": 0, "depth": 2}, {"tone": 1, "depth": 2}], *[{"tone": 0, "depth": 2}] * 2, {"tone": 0.5, "depth": 2}),
        (
            [{"label": label, "steps": text} for label, text in ((1, "a"), (2, "b"), (2, "c"))],
            *[{"label": 2, "steps": "b"}] * 3,
        ),
    ],
)
def test_samples_become_one_outcome(said: list[Any], majority: Any, median: Any, mean: Any) -> None:
    samples = [judged(outcome) for outcome in said]
    for how, expected in (("majority", majority), ("median", median), ("mean", mean)):
        whole = combine(samples, how)  # type: ignore[arg-type]
        assert isinstance(whole, Judgment)
        assert whole.outcome == expected


def test_the_words_are_those_of_a_sample_that_says_so() -> None:
    whole = combine([judged("B", "b"), judged("A", "a"), judged("A", "also a")], "majority")
    assert isinstance(whole, Judgment)
    assert whole.reason == "a"


def test_a_missing_sample_leaves_it_open_and_failures_outvote_judgments() -> None:
    assert combine([judged("A"), None], "majority") is None
    assert combine([judged("A"), FAILURE], "majority") == judged("A")
    assert combine([judged("A"), FAILURE, FAILURE], "majority") == FAILURE


@given(
    st.lists(st.sampled_from(["A", "B", "TIE"]), min_size=1, max_size=9),
    st.sampled_from(["majority", "median", "mean"]),
)
def test_neither_the_order_of_samples_nor_the_side_of_an_answer_matters(said: list[str], how: Any) -> None:
    other_side = {"A": "B", "B": "A", "TIE": "TIE"}
    whole, backwards = (combine([judged(o) for o in order], how) for order in (said, said[::-1]))
    swapped = combine([judged(other_side[o]) for o in said], how)
    assert isinstance(whole, Judgment)
    assert isinstance(backwards, Judgment)
    assert isinstance(swapped, Judgment)
    assert whole.outcome == backwards.outcome == other_side[str(swapped.outcome)]


def test_self_consistency_is_the_share_of_pairs_that_agree() -> None:
    samples = [(Wanted(Task.RELEVANCE, "j", "q", "d", sample=n), judged(label)) for n, label in enumerate((2, 2, 1))]
    once = [(Wanted(Task.RELEVANCE, "k", "q", "d"), judged(0))]
    failed = [(Wanted(Task.RELEVANCE, "j", "q", "e", sample=n), FAILURE) for n in range(3)]
    assert consistency([*samples, *once, *failed]) == {"j": Consistency(1 / 3, 1)}
    assert [result for _, result in combined([*samples, *once], {})] == [judged(2), judged(0)]


def test_a_judge_is_asked_as_often_as_it_says_and_its_consistency_is_reported(tmp_path: Path) -> None:
    write_data(tmp_path)
    seen: dict[str, int] = {}

    def script(call: Any) -> Reply:
        user = call.body["messages"][1]["content"]
        seen[user] = seen.get(user, -1) + 1
        return Reply(f'{{"explanation": "r", "verdict": "{"AAB"[seen[user]]}"}}')

    with LLMServer(script) as server:
        config = configured(tmp_path, server.openai_url, retrieval=None, criteria=None, judge={"samples": 3, "seed": 5})
        summary = run(config)
        assert (summary.stages[Task.PAIRWISE].wanted, len(server.calls)) == (36, 36)
        assert {call.body["seed"] for call in server.calls} == {5, 6, 7}
        assert run(config).stages[Task.PAIRWISE].known == 36
    store = Store.open(config.store)
    board = leaderboard(store)
    assert {result.outcome for _, result in outcomes(store, config.name, Task.PAIRWISE)} == {"A"}  # type: ignore[union-attr]
    store.close()
    assert board.consistency == {Task.PAIRWISE: {"judge": Consistency(1 / 3, 12)}}
    assert (board.coverage[Task.PAIRWISE].wanted, board.coverage[Task.PAIRWISE].judged) == (12, 12)


def test_samples_that_come_out_of_turn_ask_nothing_anew(tmp_path: Path) -> None:
    """Which sample's reason an answer judge reads must not depend on which reply came first."""
    write_data(tmp_path)
    asked = count()

    def slower_first(call: Call) -> Reply:
        number = next(asked)
        said = json.loads(steady_text(call.body))
        text = {
            name: f"Reason {number}." if name in ("reason", "explanation") else given for name, given in said.items()
        }
        return Reply(json.dumps(text), delay_s=0.0 if number % 3 else 0.1)

    with LLMServer(slower_first) as server:
        config = configured(tmp_path, server.openai_url, judge={"samples": 3, "temperature": 1})
        assert run(config).complete
        sent = len(server.calls)
        assert run(config).complete
        assert len(server.calls) == sent
