"""Replaying recorded replies, verdicts and labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from judges.errors import DataError, InputError, RejectedError, ReplyError
from judges.identity import judgment_id
from judges.parse import ParsedReply, parse_reply
from judges.providers import open_provider
from judges.providers.replay import ReplayProvider, prompt_sha256
from judges.spec import JudgeSpec
from judges.types import Answer, Prompt
from retrieval_eval.data.trec import read_recordings
from tests.support.prompts import BAD, GOOD, criteria, pairwise, relevance


def recorded(folder: Path, name: str, text: str) -> JudgeSpec:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return JudgeSpec(provider="replay", path=path)


async def judged(spec: JudgeSpec, prompt: Prompt) -> ParsedReply:
    completion = await open_provider(spec, read_recordings).complete(prompt)
    return parse_reply(completion.text, prompt.contract, prompt.inputs)


@pytest.mark.parametrize(
    ("written", "outcome"),
    [("A", "A"), ("B", "B"), ("TIE", "TIE"), ("C", "TIE"), ("tie", "TIE"), ("draw", "TIE"), ("model_b", "B")],
)
async def test_a_table_of_verdicts_is_read_in_the_words_that_tables_use(
    tmp_path: Path, written: str, outcome: str
) -> None:
    spec = recorded(tmp_path, "verdicts.csv", f"qid,agent_a,agent_b,verdict,reason\nq1,good,bad,{written},so it is\n")
    assert await judged(spec, pairwise(GOOD, BAD)) == ParsedReply(outcome, "so it is")


async def test_a_verdict_belongs_to_the_order_that_was_shown(tmp_path: Path) -> None:
    spec = recorded(tmp_path, "v.jsonl", '{"query_id": "q1", "agent_a": "good", "agent_b": "bad", "verdict": "A"}\n')
    assert (await judged(spec, pairwise(GOOD, BAD))).outcome == "A"
    with pytest.raises(RejectedError, match="'bad' before 'good'") as caught:
        await judged(spec, pairwise(BAD, GOOD))
    assert caught.value.cause == "not_recorded"


async def test_a_table_that_names_the_order_is_read_as_it_was_shown(tmp_path: Path) -> None:
    text = "qid,agent_a,agent_b,order,verdict\nq1,good,bad,ab,A\nq1,good,bad,ba,A\n"
    spec = recorded(tmp_path, "v.csv", text)
    assert (await judged(spec, pairwise(GOOD, BAD))).outcome == "A"
    assert (await judged(spec, pairwise(BAD, GOOD))).outcome == "B"


async def test_labels_come_from_a_table_or_from_qrels(tmp_path: Path) -> None:
    table = recorded(tmp_path, "labels.csv", "qid,did,label\nq1,vacuum,1\nq1,weather,0\n")
    qrels = recorded(tmp_path, "human.qrels", "q1 0 vacuum 1\n\nq1 0 weather 0\n")
    for spec in (table, qrels):
        assert (await judged(spec, relevance())).outcome == 1


async def test_labels_of_several_fields_come_from_columns_of_their_names(tmp_path: Path) -> None:
    """The label's own column may be called ``label``, as in an exported table."""
    for label in ("overall", "label"):
        text = f"qid,did,{label},match,trustworthy,recency,reason\nq1,vacuum,2,3,1,0,so it is\n"
        found = await judged(recorded(tmp_path, "labels.csv", text), relevance(name="search_quality"))
        assert found == ParsedReply({"label": 2, "match": 3, "trustworthy": 1, "recency": 0}, "so it is")
    lacking = recorded(tmp_path, "human.qrels", "q1 0 vacuum 1\n")
    with pytest.raises(RejectedError, match="has nothing on"):
        await judged(lacking, relevance(name="search_quality"))


async def test_labels_of_one_word_come_from_words_or_values(tmp_path: Path) -> None:
    for written, outcome in (("1", 1), ("0", 0), ("yes", 1), ("correct", 1)):
        spec = recorded(tmp_path, "labels.csv", f"qid,did,label\nq1,vacuum,{written}\n")
        assert (await judged(spec, relevance(name="sun"))).outcome == outcome
    with pytest.raises(ReplyError):
        await judged(recorded(tmp_path, "labels.csv", "qid,did,label\nq1,vacuum,2\n"), relevance(name="sun"))


async def test_criteria_come_from_columns_of_their_names(tmp_path: Path) -> None:
    text = "qid,agent,relevance,accuracy,completeness,precision\nq1,good,2,1,0,2\n"
    graded = await judged(recorded(tmp_path, "grades.csv", text), criteria())
    assert graded.outcome == {"relevance": 2, "accuracy": 1, "completeness": 0, "precision": 2}


async def test_a_recorded_reply_is_returned_whole(tmp_path: Path) -> None:
    reply = 'Thinking first.\n{"explanation": "closer", "verdict": "B"}'
    row = {"qid": "q1", "agent_a": "good", "agent_b": "bad", "reply": reply, "verdict": "A"}
    completion = await open_provider(recorded(tmp_path, "r.jsonl", json.dumps(row)), read_recordings).complete(
        pairwise()
    )
    assert completion.text == reply


async def test_a_reply_can_be_recorded_for_one_exact_prompt(tmp_path: Path) -> None:
    prompt = pairwise()
    row = {"prompt_sha256": prompt_sha256(prompt), "reply": '{"explanation": "x", "verdict": "TIE"}'}
    spec = recorded(tmp_path, "r.jsonl", json.dumps(row))
    assert (await judged(spec, prompt)).outcome == "TIE"
    with pytest.raises(RejectedError):
        await judged(spec, replace(prompt, user=prompt.user + "."))


async def test_what_is_recorded_outside_the_contract_is_refused_by_the_parser(tmp_path: Path) -> None:
    with pytest.raises(ReplyError):
        await judged(recorded(tmp_path, "labels.csv", "qid,did,label\nq1,vacuum,7\n"), relevance())


async def test_an_empty_verdict_is_one_that_was_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(RejectedError) as caught:
        await judged(recorded(tmp_path, "v.csv", "qid,agent_a,agent_b,verdict\nq1,good,bad,\n"), pairwise())
    assert caught.value.cause == "not_recorded"


def test_a_contradiction_names_file_and_lines(tmp_path: Path) -> None:
    text = "qid,agent_a,agent_b,verdict\nq1,good,bad,A\nq1,bad,good,B\nq1,good,bad,B\n"
    with pytest.raises(InputError, match=r"v\.csv:4: contradicts line 2 on the same \('q1 good bad'\)"):
        open_provider(recorded(tmp_path, "v.csv", text), read_recordings)


async def test_the_same_verdict_twice_is_no_contradiction(tmp_path: Path) -> None:
    text = "qid,agent_a,agent_b,verdict,reason\nq1,good,bad,A,first\nq1,good,bad,A,second\n"
    assert await judged(recorded(tmp_path, "v.csv", text), pairwise()) == ParsedReply("A", "first")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.csv", "qid,verdict\nq1,A\n", r"v\.csv:2: the row must have"),
        ("v.csv", "qid,agent_a,agent_b,verdict\n,x,y,A\n", r"v\.csv:2: 'qid' is empty"),
        ("v.csv", "qid,agent_a,agent_b,order,verdict\nq1,x,y,so,A\n", r"v\.csv:2: 'order' must be"),
        ("human.qrels", "q1 0 d1\n", r"human\.qrels:1: a line must have 4 fields"),
    ],
)
def test_a_malformed_file_names_the_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_provider(recorded(tmp_path, name, text), read_recordings)


def test_identity_follows_the_content_of_the_file(tmp_path: Path) -> None:
    one = open_provider(recorded(tmp_path, "a.qrels", "q1 0 d1 1\n"), read_recordings)
    same = open_provider(recorded(tmp_path, "b.qrels", "q1 0 d1 1\n"), read_recordings)
    other = open_provider(recorded(tmp_path, "c.qrels", "q1 0 d1 2\n"), read_recordings)
    assert one.identity == same.identity != other.identity


def test_equal_answers_of_two_agents_keep_their_own_verdicts(tmp_path: Path) -> None:
    spec = recorded(tmp_path, "v.csv", "qid,agent_a,agent_b,verdict\nq1,good,bad,A\nq1,twin,bad,B\n")
    provider = ReplayProvider(spec, read_recordings)
    twin = Answer("q1", "twin", GOOD.text)
    ids = {
        judgment_id(prompt, provider.identity, by_name=provider.judges_names)
        for prompt in (pairwise(GOOD, BAD), pairwise(twin, BAD))
    }
    assert len(ids) == 2
