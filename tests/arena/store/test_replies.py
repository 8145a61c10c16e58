"""Agents' replies in the store: the same whatever they hold, an answer for good, and taken by one run at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from arena.run.answers import needs_call
from arena.store import Store
from arena.store.agents import ANSWERED, AgentQuery, AgentReplies
from arena.store.runners import Runner
from judges.types import Usage
from retrieval_eval.agents.types import AgentFailure, AgentReply, RetrievedText

REPLY = AgentReply(
    "It is <b>so</b> ☃.",
    (RetrievedText("d 1", 'Snow; "quoted"', 1, 2.5, {"title": "T"}), RetrievedText("d2", "", 2)),
    ("d2",),
    0.25,
    Usage(10, 4, 3),
    2,
    0.001,
    2.75,
)
FAILURE = AgentFailure("timeout", "no reply within 5 s", 5.0, Usage(), 3, None, 15.0)
ASKED = AgentQuery("identity", "What is it?")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(str(tmp_path / "s.db"))) as opened:
        yield opened


def claimed(replies: AgentReplies, asked: list[AgentQuery], runner: Runner) -> tuple[set[str], set[str]]:
    def to_be_asked(outcome: str | None) -> bool:
        return needs_call(outcome, retry_failed=False)

    idents = [each.reply_id for each in asked]
    known, elsewhere = replies.claim(idents, runner, to_be_asked)
    return {ident for ident in idents if to_be_asked(known.get(ident))} - elsewhere, elsewhere


def test_replies_and_failures_come_back_as_they_were(store: Store) -> None:
    replies, other = AgentReplies(store), AgentQuery("identity", "And this?")
    replies.save([(ASKED, REPLY), (other, FAILURE)])
    assert replies.replies([ASKED, other, AgentQuery("another", "What is it?")]) == {ASKED: REPLY, other: FAILURE}
    assert replies.outcomes([ASKED, other]) == {ASKED: ANSWERED, other: "timeout"}


def test_what_json_can_spell_and_no_database_can_hold_is_replaced(store: Store) -> None:
    replies = AgentReplies(store)
    odd = RetrievedText("d\0", "half \ud800 a pair", 1, None, {"title\0": "\udfff"})
    replies.save([(ASKED, AgentReply("nul \0 and \ud800", (odd,)))])
    kept = replies.replies([ASKED])[ASKED]
    assert isinstance(kept, AgentReply)
    for text in (kept.answer, kept.documents[0].doc_id, kept.documents[0].text, *kept.documents[0].metadata.values()):
        text.encode("utf-8")
        assert "\0" not in text


def test_an_answer_stays_and_a_failure_gives_way(store: Store) -> None:
    replies = AgentReplies(store)
    for saved, kept in ((FAILURE, FAILURE), (REPLY, REPLY), (FAILURE, REPLY)):
        replies.save([(ASKED, saved)])
        assert replies.replies([ASKED]) == {ASKED: kept}


def test_one_run_takes_what_another_has_not_taken(store: Store) -> None:
    replies, other = AgentReplies(store), AgentQuery("identity", "And this?")
    first, second = Runner(), Runner()
    store.beat(first)
    store.beat(second)
    before = store.changes()
    assert claimed(replies, [ASKED], first) == ({ASKED.reply_id}, set())
    assert claimed(replies, [ASKED, other], second) == ({other.reply_id}, {ASKED.reply_id})
    assert store.changes() == before, "nothing that is shown depends on who asks"
    replies.save([(ASKED, REPLY), (other, FAILURE)])
    assert claimed(replies, [ASKED, other], first) == ({other.reply_id}, set()), "a time-out may pass"
    store.leave(first)
    assert claimed(replies, [other], second) == ({other.reply_id}, set()), "who is gone holds nothing"


def test_agents_asked_anew_have_a_further_identity_and_keep_their_replies(store_location: str) -> None:
    with closing(Store.create(store_location)) as store:
        replies = AgentReplies(store)
        assert replies.newest(["one", "other"]) == {"one": "one", "other": "other"}
        replies.ask_anew(["one", "one"])
        assert replies.newest(["one", "other"]) == {"one": "one/1", "other": "other"}
        replies.ask_anew(["other", "one"])
        assert replies.newest(["one", "other"]) == {"one": "one/2", "other": "other/1"}
    with closing(Store.open(store_location)) as store:
        assert AgentReplies(store).newest(["one"]) == {"one": "one/2"}


def test_a_reply_has_the_time_at_which_it_was_saved(store_location: str) -> None:
    with closing(Store.create(store_location)) as store:
        replies, other = AgentReplies(store), AgentQuery("identity", "And this?")
        moments = []
        for saved in ([(ASKED, FAILURE)], [(ASKED, REPLY)], [(ASKED, FAILURE)]):
            moments.append(time.time())
            replies.save(saved)
        times = replies.times([ASKED, other])
        assert times.keys() == {ASKED}
        assert moments[1] <= times[ASKED] <= moments[2], "an answer takes the place of a failure, and stays"
