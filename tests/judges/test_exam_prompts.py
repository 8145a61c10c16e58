"""Prompts of exam questions and nuggets: what they show, what they ask for, and how replies become grades."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judges.contracts import json_schema
from judges.errors import ReplyError
from judges.parse import parse_reply
from judges.prompts import load_prompt
from judges.prompts.tasks import answer_check_prompt, grades_of, grading_prompt, questions_prompt
from judges.providers.lexical import LexicalProvider
from judges.types import Document, Outcome, Prompt, Query, Task
from tests.support.prompts import own_prompt

QUERY = Query("skin", "The integumentary system")
PASSAGE = Document("p", "The epidermis is the outer layer of the skin.")
LAYER, SWEAT = "Which is the outer layer of the skin?", "What does sweat do?"


def rating(*items: str, name: str = "self_rating_question") -> Prompt:
    return grading_prompt(load_prompt(name, Task.GRADING), QUERY, PASSAGE, items)


def outcome(prompt: Prompt, reply: str) -> Outcome:
    return parse_reply(reply, prompt.contract, prompt.inputs).outcome


@pytest.mark.parametrize("name", ["self_rating_question", "self_rating_nugget"])
def test_a_rating_prompt_shows_passage_and_item_and_not_the_query(name: str) -> None:
    prompt = rating(LAYER, name=name)
    assert PASSAGE.text in prompt.user
    assert LAYER in prompt.user
    assert QUERY.text not in prompt.system + prompt.user
    assert all(f"- {grade}: " in prompt.system for grade in range(6))
    assert prompt.system.endswith("Reply with one whole number from 0 to 5 and nothing else.")


def test_all_items_of_a_passage_share_the_beginning() -> None:
    first, second = rating(LAYER), rating(SWEAT)
    assert first.system == second.system
    assert first.user.partition("<<<question")[0] == second.user.partition("<<<question")[0]


def test_several_items_get_a_grade_each_in_one_object() -> None:
    prompt = rating(LAYER, SWEAT)
    assert list(json_schema(prompt.contract)["properties"]) == ["item_1", "item_2"]
    found = outcome(prompt, '{"item_1": 5, "item_2": 0}')
    assert grades_of(found, 2) == (5, 0)
    for wrong in ('{"item_1": 5}', '{"item_1": 5, "item_2": 6}', '{"item_1": 5, "item_2": 0, "item_3": 1}', "5, 0"):
        with pytest.raises(ReplyError):
            outcome(prompt, wrong)


def test_grades_are_whole_numbers_also_where_samples_were_averaged() -> None:
    assert grades_of(3, 1) == (3,)
    assert grades_of({"item_1": 2.5, "item_2": 2.6}, 2) == (2, 3)
    for other in ("epidermis", {"item_1": 3}, ("a", "b")):
        with pytest.raises(TypeError, match="does not hold 2 grades"):
            grades_of(other, 2)


@pytest.mark.parametrize("name", ["exam_questions", "exam_questions_subtopic", "exam_nuggets"])
def test_a_prompt_for_questions_asks_for_exactly_as_many(name: str) -> None:
    prompt = questions_prompt(load_prompt(name, Task.QUESTIONS), QUERY, 2, "sweat glands")
    assert "exactly 2 texts" in prompt.system
    assert QUERY.text in prompt.user
    assert ("sweat glands" in prompt.user) is (name != "exam_questions")
    field = prompt.contract.outcome_fields[0]
    assert outcome(prompt, json.dumps({field: [LAYER, SWEAT]})) == (LAYER, SWEAT)
    with pytest.raises(ReplyError, match="exactly 2 texts, not 3"):
        outcome(prompt, json.dumps({field: [LAYER, SWEAT, "Which glands?"]}))


def test_an_answer_is_checked_by_yes_or_no() -> None:
    prompt = answer_check_prompt(load_prompt("answer_check", Task.ANSWER_CHECK), Query("q", LAYER), ["epidermis"], "it")
    assert "epidermis" in prompt.user
    assert (outcome(prompt, "Yes."), outcome(prompt, "no")) == (1, 0)
    with pytest.raises(ReplyError):
        outcome(prompt, "yes, equally")


async def test_the_offline_judge_rates_items_by_their_words() -> None:
    judge = LexicalProvider()
    one = await judge.complete(rating("What covers the outer epidermis of skin?"))
    assert one.text in set("12345")
    both = outcome(rating(LAYER, SWEAT), (await judge.complete(rating(LAYER, SWEAT))).text)
    assert grades_of(both, 2) == (int((await judge.complete(rating(LAYER))).text), 0)


def test_a_grading_prompt_of_ones_own_may_ask_for_a_reason(tmp_path: Path) -> None:
    path = own_prompt(tmp_path, "grading", "{choices: {grade: {min: 0, max: 5}}}")
    template = load_prompt(path, Task.GRADING)
    one = grading_prompt(template, QUERY, PASSAGE, [LAYER])
    assert outcome(one, '{"reason": "it says so", "grade": 5}') == 5
    two = grading_prompt(template, QUERY, PASSAGE, [LAYER, SWEAT])
    assert list(json_schema(two.contract)["properties"]) == ["reason", "item_1", "item_2"]
