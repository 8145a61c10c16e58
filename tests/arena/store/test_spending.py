"""What a run has spent is what it asked for itself, to the last result, whatever becomes of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import text

from arena.store import Store
from arena.store.agents import AgentQuery, AgentReplies
from arena.store.runners import Runner
from arena.store.runs import Runs, Spent
from judges.errors import InputError
from judges.types import Task, Usage
from retrieval_eval.agents.types import AgentReply
from tests.support.stores import FAILURE, JUDGMENT, save


def test_each_result_is_on_the_account_of_the_run_that_asked_for_it(store_location: str) -> None:
    here, there, gone = Runner(), Runner(), replace(Runner(), pid=2**22 + 1)
    second, unpriced = replace(JUDGMENT, judgment_id="id-2"), replace(JUDGMENT, judgment_id="id-3", cost_usd=None)
    with closing(Store.create(store_location)) as store:
        store.announce("t")
        for runner in (here, there, gone):
            Runs(store, "t").begin(runner)
        store.save([(Task.RELEVANCE, "p", JUDGMENT), (Task.PAIRWISE, "p", second)], here)
        store.save([(Task.RELEVANCE, "p", unpriced)], here)
        store.save([(Task.RELEVANCE, "p", FAILURE)], there)  # asked once more in vain; the judgment stays
        reply = AgentReply("yes", usage=Usage(None, None, 40), calls=1, cost_usd=0.25)
        AgentReplies(store).save([(AgentQuery("agent", "why?"), reply)], gone)
        save(store, replace(JUDGMENT, judgment_id="imported"))
        killed, beside, first = Runs(store, "t").all()
        assert [run.run_id for run in Runs(store, "t").at_work()] == [beside.run_id, first.run_id]
    once = Spent(judged=1, calls=2, input_tokens=10, output_tokens=5, cost_usd=0.001)
    unknown = replace(once, cost_usd=0.0, cost_unknown=1)
    assert first.spent == {"relevance": once + unknown, "pairwise": once}
    assert beside.spent == {"relevance": Spent(failed=1, calls=3, input_tokens=10, output_tokens=5, cost_unknown=1)}
    assert killed.state == "killed"
    assert killed.spent == {"agents": Spent(judged=1, calls=1, tokens_unknown=1, cost_usd=0.25)}


def test_a_tournament_whose_agents_are_asked_first_has_runs_and_is_not_shown_yet(store_location: str) -> None:
    with closing(Store.create(store_location)) as store:
        store.announce("t")
        store.announce("t")
        Runs(store, "t").begin(Runner())
        assert len(Runs(store, "t").all()) == 1
        assert store.tournaments() == []
        with pytest.raises(InputError, match="no tournament named 't'; there are none"):
            store.settings("t")
        assert Runs(store, "another").all() == []


def test_a_run_from_before_spending_was_kept_shows_what_it_told(tmp_path: str) -> None:
    told = {"wanted": 9, "judged": 5, "known": 2, "failed": 2, "calls": 8, "cost_usd": 0.5, "cost_unknown": 1}
    with closing(Store.create(f"{tmp_path}/s.db")) as store:
        store.announce("t")
        of = Runs(store, "t")
        of.end(of.begin(Runner()), "incomplete", {"pairwise": told, "criteria": {**told, "calls": 0}})
        with store._write() as connection:
            connection.execute(text("DROP TABLE spending"))
        (run,) = of.all()
    assert run.spent == {"pairwise": Spent(judged=5, failed=2, calls=8, tokens_unknown=7, cost_usd=0.5, cost_unknown=1)}
