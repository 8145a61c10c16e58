"""The store on SQLite and on PostgreSQL: what goes in comes out, and judgments stay."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.store import Store, Wanted, chunks
from arena.store.agents import AgentQuery, AgentReplies
from arena.store.runners import Runner
from arena.store.runs import Runs, Spent
from judges.errors import InputError
from judges.types import Answer, JudgeFailure, Judgment, Task, Usage
from retrieval_eval.agents.types import AgentReply
from tests.support.children import at_once
from tests.support.stores import DATA, FAILURE, GAME, JUDGMENT, LABEL, save


@pytest.fixture
def store(store_location: str) -> Iterator[Store]:
    opened = Store.create(store_location)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "result",
    [
        JUDGMENT,
        FAILURE,
        Judgment("id-2", "TIE", "", "", "m"),
        Judgment("id-3", {"tone": 2, "depth": 0}, "é 𝄞", "{}", "m", Usage(), 1, 0.0, 0.0),
        JudgeFailure("id-4", "timeout", "no reply", None),
    ],
    ids=["label", "failure", "verdict", "grades", "bare failure"],
)
def test_a_result_comes_back_equal(store: Store, result: Judgment | JudgeFailure) -> None:
    save(store, result)
    assert store.results([result.judgment_id, "unknown"]) == {result.judgment_id: result}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.text(), st.text())
def test_any_text_can_be_kept(store: Store, reason: str, reply: str, rejected: str) -> None:
    ident = uuid4().hex
    save(store, replace(JUDGMENT, judgment_id=ident, reason=reason, reply=reply, rejected=(rejected,)))
    kept = store.results([ident])[ident]
    assert isinstance(kept, Judgment)
    assert (kept.outcome, kept.rejected) == (2, (rejected,))
    if "\0" not in reason + reply:
        assert (kept.reason, kept.reply) == (reason, reply)


@pytest.mark.parametrize("text", ["half \ud800", "\udfff\ud800", "nul \0 nul"])
def test_what_no_database_holds_is_kept_with_a_replacement(store: Store, text: str) -> None:
    results = [
        replace(JUDGMENT, reason=text, reply=text),
        replace(FAILURE, judgment_id="id-2", message=text, reply=text),
    ]
    save(store, *results)
    for kept in store.results(["id-1", "id-2"]).values():
        assert "\ufffd" in str(kept.reply)


def test_a_judgment_stays_and_a_failure_does_not(store: Store) -> None:
    save(store, FAILURE)
    later = replace(FAILURE, cause="timeout", reply=None)
    save(store, later)
    assert store.results(["id-1"]) == {"id-1": later}
    save(store, JUDGMENT)
    save(store, FAILURE)
    save(store, replace(JUDGMENT, outcome=0))
    save(store, replace(JUDGMENT, outcome=1), FAILURE)
    assert store.results(["id-1"]) == {"id-1": JUDGMENT}


def test_many_results_are_found_at_once(store: Store) -> None:
    results = [replace(JUDGMENT, judgment_id=f"id-{number}") for number in range(1700)]
    save(store, *results)
    assert len(store.results([result.judgment_id for result in results])) == 1700


def test_the_data_come_back_equal(store: Store) -> None:
    store.begin("one", {"left_out": 1}, DATA, [])
    assert store.dataset("one") == DATA
    assert list(store.dataset("one").queries) == ["q2", "q1"]
    assert store.dataset("one").digest() == DATA.digest()
    changed = replace(DATA, answers={("q2", "x"): Answer("q2", "x", "so")})
    store.begin("one", {"left_out": 1}, changed, [])
    assert store.dataset("one") == changed


def test_wants_keep_their_order_and_point_to_their_results(store: Store) -> None:
    store.begin("one", {}, DATA, [GAME, LABEL, replace(GAME, order="ba")])
    assert store.wanted("one") == [(GAME, None), (LABEL, None), (replace(GAME, order="ba"), None)]
    store.assign("one", [(LABEL, "id-1"), (GAME, "id-9")])
    save(store, JUDGMENT)
    assert store.outcomes("one", Task.RELEVANCE) == [(LABEL, JUDGMENT)]
    assert store.outcomes("one", Task.PAIRWISE) == [(GAME, None), (replace(GAME, order="ba"), None)]
    assert store.wanted("one", Task.PAIRWISE)[0] == (GAME, "id-9")


def test_beginning_again_forgets_wants_and_no_judgment(store: Store) -> None:
    store.begin("one", {"left_out": 1}, DATA, [LABEL])
    store.assign("one", [(LABEL, "id-1")])
    save(store, JUDGMENT)
    store.begin("one", {"left_out": 2}, DATA, [GAME])
    assert store.wanted("one") == [(GAME, None)]
    assert store.settings("one").raw == {"left_out": 2}
    assert store.results(["id-1"]) == {"id-1": JUDGMENT}


def test_tournaments_share_judgments_and_nothing_else(store: Store) -> None:
    store.begin("one", {"left_out": 1}, DATA, [LABEL])
    store.begin("two", {"left_out": 2}, replace(DATA, answers={}), [LABEL])
    store.assign("one", [(LABEL, "id-1")])
    assert store.tournaments() == ["one", "two"]
    assert (store.wanted("one"), store.wanted("two")) == ([(LABEL, "id-1")], [(LABEL, None)])
    assert (store.dataset("one"), store.dataset("two").answers) == (DATA, {})


def test_names_that_could_run_together_stay_apart(store: Store) -> None:
    wants = [
        replace(GAME, item=item, other=other) for item, other in (("a-b", "c"), ("a", "b-c"), ("a", "b"), ("", "ab"))
    ]
    store.begin("one", {}, DATA, wants)
    store.assign("one", [(want, f"id-{number}") for number, want in enumerate(wants)])
    assert store.wanted("one") == [(want, f"id-{number}") for number, want in enumerate(wants)]


def test_a_beginning_that_fails_leaves_the_earlier_one(store: Store) -> None:
    store.begin("one", {"left_out": 1}, DATA, [LABEL])

    def wants() -> Iterator[Wanted]:
        yield GAME
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        store.begin("one", {"left_out": 2}, DATA, wants())
    assert (store.wanted("one"), store.settings("one").raw) == ([(LABEL, None)], {"left_out": 1})


def test_every_change_shows_to_other_readers(store: Store, store_location: str) -> None:
    reader = Store.open(store_location)
    seen = [reader.changes()]
    for change in (
        lambda: store.begin("one", {}, DATA, [LABEL]),
        lambda: store.assign("one", [(LABEL, "id-1")]),
        lambda: save(store, JUDGMENT),
    ):
        change()
        seen.append(reader.changes())
    assert seen == sorted(set(seen))
    assert reader.outcomes("one", Task.RELEVANCE) == [(LABEL, JUDGMENT)]
    assert [reader.changes(), reader.changes()] == [seen[-1]] * 2
    reader.close()


def test_creating_again_opens_what_is_there(store: Store, store_location: str) -> None:
    save(store, JUDGMENT)
    again = Store.create(store_location)
    assert again.results(["id-1"]) == {"id-1": JUDGMENT}
    again.close()


def test_an_unknown_tournament_is_the_users_mistake(store: Store) -> None:
    store.begin("one", {}, DATA, [])
    with pytest.raises(InputError, match="no tournament named 'two'; there are one"):
        store.settings("two")
    with pytest.raises(InputError, match="no tournament named 'two'"):
        store.wanted("two")
    with pytest.raises(InputError, match="no tournament named 'two'"):
        store.dataset("two")


WRITER = """
import sys
from arena.data.dataset import Dataset
from arena.store import Store, Wanted
from judges.types import JudgeFailure, Judgment, Query, Task
data = Dataset({"q": Query("q", "?")})
def act(who):
    for _ in range(5):
        store = Store.create(sys.argv[1])
        wants = [Wanted(Task.RELEVANCE, "judge", "q", f"d{n}") for n in range(20)]
        store.begin("shared", {}, data, wants)
        for n in range(20):
            right = (n % 2 == 0) == (who == "a")
            found = Judgment(f"id-{n}", 1, who, "", "m") if right else JudgeFailure(f"id-{n}", "empty", who)
            own = Judgment(f"{who}-{n}", 1, who, "", "m")
            store.save([(Task.RELEVANCE, "p@1", found), (Task.RELEVANCE, "p@1", own)])
            store.assign("shared", [(wants[n], f"id-{n}")])
            store.outcomes("shared", Task.RELEVANCE)
        store.close()
"""


def test_two_processes_write_one_store_at_once(store_location: str) -> None:
    """Both make it, begin the same tournament and judge the same things; nothing fails and no judgment is lost."""
    at_once(WRITER, store_location, ["a", "b"])
    store = Store.open(store_location)
    kept = store.results([f"{who}-{number}" for who in ("id", "a", "b") for number in range(20)])
    assert len(kept) == 60
    assert all(isinstance(result, Judgment) for result in kept.values())
    assert [kept[f"id-{number}"].reason for number in range(4)] == ["a", "b", "a", "b"]  # type: ignore[union-attr]
    store.close()


def test_a_crowd_of_processes_can_make_one_store(store_location: str) -> None:
    """Making tables, or turning a new file to write-ahead logging, while others do the same must not fail."""
    maker = "import sys; from arena.store import Store; act = lambda _: Store.create(sys.argv[1]).close()"
    at_once(maker, store_location, ["a", "b", "c", "d"])
    Store.open(store_location).close()


def test_chunks_hold_everything_in_order() -> None:
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(chunks([], 2)) == []


def test_beginning_again_with_nothing_changed_keeps_what_wants_are_linked_to(store: Store) -> None:
    wants = [Wanted(Task.PAIRWISE, "j", "q1", "x", other, "ab") for other in ("y", "z")]
    store.begin("t", {"a": 1}, DATA, wants)
    store.save([(Task.PAIRWISE, "p@1", Judgment("1", "A", "", "", "m"))])
    store.assign("t", [(wants[0], "1")])
    added = Wanted(Task.PAIRWISE, "j", "q1", "y", "z", "ab")
    store.begin("t", {"a": 1}, DATA, [added, wants[0]])
    assert store.wanted("t") == [(added, None), (wants[0], "1")]
    store.begin("t", {"a": 2}, DATA, [added, wants[0]])
    assert store.wanted("t") == [(added, None), (wants[0], None)]


def test_what_one_runner_is_about_to_ask_no_other_one_asks(store: Store) -> None:
    wants = [Wanted(Task.PAIRWISE, "j", "q1", "x", other, "ab") for other in ("y", "z")]
    store.begin("t", {}, DATA, wants)
    here, there = Runner(), Runner()
    links = list(zip(wants, ("1", "2"), strict=True))
    unknown = lambda known: known is None
    for runner in (here, there):
        store.beat(runner)
    assert store.claim("t", links[:1], here, unknown) == ({}, set())
    assert store.claim("t", links, there, unknown) == ({}, {"1"})
    judged = Judgment("1", "A", "", "", "m")
    store.save([(Task.PAIRWISE, "p@1", judged)])
    assert store.claim("t", links, there, unknown) == ({"1": judged}, set())
    assert store.claim("t", links, here, unknown) == ({"1": judged}, {"2"})
    store.leave(there)
    assert store.claim("t", links, here, unknown) == ({"1": judged}, set())


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    time = 1000.0
    monkeypatch.setattr("arena.store.runners.monotonic", lambda: time)

    def goes_by(seconds: float) -> None:
        nonlocal time
        time += seconds

    return goes_by


@pytest.mark.parametrize(
    ("host", "silent_s", "free"),
    [("here", 0, True), ("here", 999, True), ("elsewhere", 59, False), ("elsewhere", 61, True)],
)
def test_what_a_dead_runner_was_about_to_ask_is_free(
    store: Store, watched: Callable[[float], None], host: str, silent_s: float, free: bool
) -> None:
    """A process that is gone is known at once on its own machine, elsewhere when it has been silent for long."""
    want = Wanted(Task.PAIRWISE, "j", "q1", "x", "y", "ab")
    store.begin("t", {}, DATA, [want])
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    dead, here = Runner(host=host, pid=gone.pid), Runner(host="here")
    store.beat(dead)
    store.claim("t", [(want, "1")], dead, lambda known: True)
    store.beat(here)
    watched(silent_s)
    store.beat(here)
    assert (store.claim("t", [(want, "1")], here, lambda known: True)[1] == set()) is free


@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_a_clock_that_jumps_makes_no_live_runner_look_dead_and_no_dead_one_alive(
    store: Store, watched: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    want = Wanted(Task.PAIRWISE, "j", "q1", "x", "y", "ab")
    store.begin("t", {}, DATA, [want])
    there, here = Runner(host="elsewhere"), Runner(host="here")
    free = lambda: store.claim("t", [(want, "1")], here, lambda known: True)[1] == set()
    for runner in (there, here):
        store.beat(runner)
    store.claim("t", [(want, "1")], there, lambda known: True)
    now = time.time() + jump_s
    for _ in range(10):
        now += 10
        watched(10)
        monkeypatch.setattr("arena.store.runners.now", lambda _, now=now: now)
        for runner in (there, here):
            store.beat(runner)
        assert not free()
    watched(61)
    store.beat(here)
    assert free()


def test_containers_of_one_name_are_not_one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each counts processes by itself, so that another one's number means nothing here."""
    here = Runner()
    assert Runner().host == here.host
    monkeypatch.setattr(Path, "readlink", lambda _: Path("pid:[1]"))
    assert Runner().host != here.host


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
