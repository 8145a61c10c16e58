"""The table of reply forms: what ordinary models and servers send is read, and its wrong twin is asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from judges.errors import ReplyError
from judges.judge import Judge, Request, read
from judges.parse import ParsedReply
from judges.prompts import load_prompt
from judges.prompts.tasks import (
    answerable_prompt,
    assignment_prompt,
    creation_prompt,
    extraction_prompt,
    grading_prompt,
    importance_prompt,
    questions_prompt,
)
from judges.spec import JudgeSpec
from judges.types import Completion, Finish, JudgeFailure, Judgment, Prompt, Task, Usage
from tests.support.llm_server import LLMServer, Reply
from tests.support.prompts import GOOD, QUERY, VACUUM, bracketed, criteria, pairwise, relevance

FORMS: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "reply_forms.yaml").read_text(encoding="utf-8"))
NUGGETS = ("deleted records are only marked", "segments are rebuilt")
PROMPTS: dict[str, Prompt] = {
    "pairwise": pairwise(),
    "criteria": criteria(),
    "brackets": bracketed(),
    **{name: relevance(name=name) for name in ("reasoner", "umbrela", "search_quality", "sun")},
    **{
        name: grading_prompt(load_prompt(name, Task.GRADING), QUERY, VACUUM, ["What marks a record?"])
        for name in ("self_rating_question", "self_rating_nugget")
    },
    "nugget_create": creation_prompt(load_prompt("nugget_create", Task.NUGGETS), QUERY, [VACUUM], NUGGETS, 30),
    "nugget_importance": importance_prompt(load_prompt("nugget_importance", Task.IMPORTANCE), QUERY, NUGGETS),
    "nugget_assign": assignment_prompt(load_prompt("nugget_assign", Task.ASSIGNMENT), QUERY, GOOD, NUGGETS),
    "exam_questions": questions_prompt(load_prompt("exam_questions", Task.QUESTIONS), QUERY, 4),
    "answerable": answerable_prompt(load_prompt("answerable", Task.ANSWERABLE), QUERY, [VACUUM]),
    "extraction": extraction_prompt(load_prompt("extraction", Task.EXTRACTION), QUERY, VACUUM),
}
TEXTS = [form for form in FORMS if "reply" in form]
WIRED = [form for form in FORMS if "content" in form]


def said(text: str, prompt: str, finish: Finish = Finish.STOP) -> ParsedReply:
    return read(Completion(text, "m", finish), PROMPTS[prompt])


@pytest.mark.parametrize("form", TEXTS, ids=lambda form: form["form"])
def test_a_good_reply_in_an_ordinary_form_is_read_and_its_twin_is_not(form: dict[str, Any]) -> None:
    outcome = said(form["reply"], form["prompt"]).outcome
    assert (list(outcome) if isinstance(outcome, tuple) else outcome) == form["outcome"]
    with pytest.raises(ReplyError):
        said(form["twin"], form["prompt"])


def test_a_reply_that_was_cut_off_is_asked_again() -> None:
    with pytest.raises(ReplyError, match="cut off"):
        said(TEXTS[0]["reply"], TEXTS[0]["prompt"], Finish.LENGTH)


async def over_http(form: dict[str, Any], content: object) -> Judgment | JudgeFailure | None:
    message = {"role": "assistant", "content": content, "reasoning_content": form.get("reasoning_content")}
    body = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    reply = Reply(body=body | ({"usage": form["usage"]} if "usage" in form else {}))
    with LLMServer(lambda _: reply) as server:
        judge = Judge("j", JudgeSpec(provider="openai", model="m", base_url=server.openai_url))
        try:
            return await judge.judge(Request("id", PROMPTS[form["prompt"]]))
        finally:
            await judge.close()


@pytest.mark.parametrize("form", WIRED, ids=lambda form: form["form"])
async def test_a_good_reply_in_an_ordinary_answer_over_http_counts_and_its_twin_does_not(form: dict[str, Any]) -> None:
    result = await over_http(form, form["content"])
    assert isinstance(result, Judgment)
    assert (result.outcome, result.calls) == (form["outcome"], 1)
    twin = await over_http(form, form["twin_content"])
    assert isinstance(twin, JudgeFailure)
    assert twin.cause in ("contract", "empty")


@pytest.mark.parametrize("usage", [[7, 5], "12 tokens", {"input_tokens": [7], "output_tokens": {"text": 5}}])
async def test_odd_token_counts_of_anthropics_messages_do_not_discard_the_reply(usage: object) -> None:
    content = [{"type": "text", "text": '{"explanation": "B says more.", "verdict": "B"}'}]
    body = {"model": "m", "content": content, "stop_reason": "end_turn", "usage": usage}
    with LLMServer([Reply(body=body)]) as server:
        judge = Judge("j", JudgeSpec(provider="anthropic", model="m", base_url=server.anthropic_url))
        result = await judge.judge(Request("id", pairwise()))
        await judge.close()
    assert isinstance(result, Judgment)
    assert (result.outcome, result.usage) == ("B", Usage())


def test_what_was_left_out_of_a_list_and_how_much_is_missing_is_said() -> None:
    longer = next(form for form in TEXTS if form["form"].startswith("31 nuggets"))
    assert said(longer["reply"], "nugget_create").reason == (
        "Left out, since at most 30 texts were asked for, of 31: 'n31'."
    )
    shorter = next(form for form in TEXTS if form["form"].startswith("3 questions"))
    assert said(shorter["reply"], "exam_questions").reason == "3 of the 4 texts asked for."


def test_only_questions_may_be_fewer_and_only_nuggets_more() -> None:
    create = PROMPTS["nugget_create"].contract
    assert create.listed is not None
    strict = replace(create, listed=replace(create.listed, most=1, leeway=""))
    with pytest.raises(ReplyError, match="not 2"):
        read(Completion('["a", "b"]', "m"), replace(PROMPTS["nugget_create"], contract=strict))
    with pytest.raises(ReplyError, match="exactly 4 texts, not 5"):
        said('{"questions": ["a", "b", "c", "d", "e"]}', "exam_questions")
