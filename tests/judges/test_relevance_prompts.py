"""The packaged relevance prompts: their scales, their inputs, and which replies they take for a label."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.contracts import json_schema
from judges.errors import ReplyError
from judges.parse import parse_reply
from judges.prompts import load_prompt, moment
from judges.types import Document, Inputs, Outcome, Prompt, Query, ReplyContract, Task, details_of, label_of
from tests.support.prompts import QUERY, RELEVANCE_PROMPTS, VACUUM, WORD_PROMPTS, relevance

SCALES = {"reasoner": 2, "thomas": 2, "umbrela": 3, "search_quality": 3} | dict.fromkeys(WORD_PROMPTS, 1)
FIELDS = {"steps": "All of it.", "recency": 1, "match": 3, "trustworthy": 0, "overall": 2}

WRONG = [
    "score = 10",
    "-1",
    "I would say 2 out of 3",
    "relevant, published in 2021",
    "4",
    "1.0",
    ".1",
    "No. 1",
    "1/2",
    "1 or 2",
    "The passage is a 3, although others gave score: 1",
    "Yes, published in 2021",
    "yes and no",
    "Not yes",
    "yes no",
    "yes\nno",
    "Yes?",
    "Answer: yes or no",
    "The answer: yes",
    "[[yes]]",
    '"1.',
    "true = 1",
    "",
]
"""What peers turn into labels (methods.md, section 3; peers.md), and their like for replies of one word."""


def outcome(text: str, prompt: Prompt) -> Outcome:
    return parse_reply(text, prompt.contract, prompt.inputs).outcome


def label_name(contract: ReplyContract) -> str:
    return contract.label or next(iter(contract.choices))


def reply(prompt: Prompt, label: object, why: str = "because") -> str:
    """A JSON reply within the contract except perhaps for its label; the other choices have their last word."""
    contract = prompt.contract
    rest = {name: list(words)[-1] for name, words in contract.choices.items()}
    return json.dumps({contract.reason: why, **rest, label_name(contract): label})


@pytest.mark.parametrize("name", RELEVANCE_PROMPTS)
def test_labels_are_the_source_s(name: str) -> None:
    contract = relevance(name=name).contract
    assert sorted(set(contract.choices[label_name(contract)].values())) == list(range(SCALES[name] + 1))
    assert load_prompt(name, Task.RELEVANCE).reply.highest_label() == SCALES[name]


@pytest.mark.parametrize("name", RELEVANCE_PROMPTS)
@pytest.mark.parametrize("text", WRONG)
def test_a_reply_that_peers_take_for_a_label_is_none(name: str, text: str) -> None:
    with pytest.raises(ReplyError):
        outcome(text, relevance(name=name))


@pytest.mark.parametrize("name", WORD_PROMPTS)
@pytest.mark.parametrize(
    ("text", "label"),
    [
        *[(text, 1) for text in ("yes", "Yes.", "**YES**", "`yes`\n", "“Yes”", "```\nyes\n```", "correct", "True")],
        *[(text, 0) for text in ("no", "No!", "# No", "(no)", "incorrect", "false")],
        *[(text, 1) for text in ("Answer: Yes", "**Answer:** yes.", "Final answer: yes", "Label: correct")],
        *[("1", 1), ("Answer: 0", 0)],
    ],
)
def test_one_word_is_read_whatever_its_case_and_punctuation(name: str, text: str, label: int) -> None:
    assert outcome(text, relevance(name=name)) == label


@given(st.text())
def test_no_other_text_is_a_word(text: str) -> None:
    known = {"yes", "correct", "true", "no", "incorrect", "false", "0", "1"}
    letters = re.sub(r"[^\w]|_", "", text).casefold()
    prompt = relevance(name="sun")
    if letters not in known:
        with pytest.raises(ReplyError, match="one word: yes or no"):
            outcome(text, prompt)


@pytest.mark.parametrize("name", ["thomas", "umbrela"])
def test_a_whole_number_alone_is_a_label_where_the_labels_are_whole_numbers(name: str) -> None:
    """What the published prompts ask for, which end in "Answer:"."""
    for text in ("2", " 2\n", "**2**", "2.", "Answer: 2", "Score: 2", "\\boxed{2}"):
        assert outcome(text, relevance(name=name)) == 2
    with pytest.raises(ReplyError):
        outcome("2", relevance(name="reasoner"))


@pytest.mark.parametrize(("word", "label"), [("Yes", 1), ("**no**", 0)])
def test_a_word_alone_is_the_judges_even_where_it_is_the_whole_of_a_text(word: str, label: int) -> None:
    for prompt in (relevance(Document("d", word), name="sun"), relevance(query=Query("q", word), name="sun")):
        assert outcome(word.strip("*"), prompt) == label


def test_the_yes_no_prompts_ask_for_yes_or_no_and_understand_more() -> None:
    for name in WORD_PROMPTS:
        assert "one word and nothing else: yes or no." in relevance(name=name).system


def test_few_shot_prompts_are_the_plain_ones_with_the_same_examples() -> None:
    examples = []
    for name in ("sun", "faggioli_b"):
        plain, few = relevance(name=name).system, relevance(name=f"{name}_few_shot").system
        task = plain.partition("\n")[0]
        assert few.startswith(task)
        examples.append(few.removeprefix(task))
    assert examples[0] == examples[1]
    assert re.findall(r"^Reply: (.*)$", examples[0], re.MULTILINE) == ["yes", "no", "no", "yes"]


def test_search_quality_gives_its_overall_as_label_and_keeps_the_rest() -> None:
    prompt = relevance(name="search_quality")
    parsed = parse_reply(json.dumps(FIELDS), prompt.contract, prompt.inputs)
    assert parsed.reason == FIELDS["steps"]
    assert label_of(parsed.outcome) == 2
    assert details_of(parsed.outcome) == {"recency": 1, "match": 3, "trustworthy": 0}
    schema = json_schema(prompt.contract)
    assert list(schema["properties"]) == list(FIELDS)
    assert schema["properties"]["trustworthy"] == {"type": "integer", "enum": [0, 1]}


def test_the_examples_of_search_quality_are_replies_within_its_contract() -> None:
    prompt = relevance(name="search_quality")
    examples = re.findall(r"^Reply: (\{.*?\})$", prompt.system, re.MULTILINE | re.DOTALL)
    found = [outcome(example, prompt) for example in examples]
    assert [label_of(value) for value in found] == [0, 1, 2, 3]
    assert {details_of(value)["recency"] for value in found} == {details_of(value)["trustworthy"] for value in found}


def test_search_quality_shows_query_time_title_site_and_publish_time() -> None:
    metadata = {"title": "Vacuum", "website": "docs.example", "publish_time": "1607891040000", "internal": "secret"}
    document, query = Document("d", VACUUM.text, metadata), Query("q", QUERY.text, {"time": "2025-03-05 10:00:00"})
    user = relevance(document, query, "search_quality").user
    for name, text in {
        "query time": "2025-03-05 10:00:00",
        "title": "Vacuum",
        "website": "docs.example",
        "publish time": "2020-12-13 20:24:00 UTC",
    }.items():
        assert re.search(rf"<<<{name} [0-9a-f]{{12}}>>>\n{re.escape(text)}\n", user), name
    assert "not known" not in user
    assert "secret" not in user


def test_what_search_quality_is_not_told_is_said_to_be_not_known_and_never_taken_from_the_clock() -> None:
    prompt = relevance(name="search_quality")
    for name in ("query time", "title", "website", "publish time"):
        assert f"The {name} is not known." in prompt.user
    assert str(datetime.now(UTC).year) not in prompt.user


@pytest.mark.parametrize(
    ("given_time", "read"),
    [
        ("1607891040000", "2020-12-13 20:24:00 UTC"),
        ("1607891040", "2020-12-13 20:24:00 UTC"),
        ("2025-03-05", "2025-03-05"),
        ("2024", "2024"),
        ("20240305", "20240305"),
        ("202403051230", "202403051230"),
        ("last week", "last week"),
        ("", ""),
    ],
)
def test_times_since_1970_are_written_as_dates(given_time: str, read: str) -> None:
    assert moment(given_time) == read


def test_labels_and_details_of_other_outcomes() -> None:
    assert (label_of(2), details_of(2)) == (2, {})
    for other in ("A", {"accuracy": 1}, {"label": "2"}):
        with pytest.raises(TypeError):
            label_of(other)


def test_a_reply_may_hold_further_texts_which_are_kept() -> None:
    contract = ReplyContract("why", {"grade": {0: 0, 1: 1}}, texts=("quote",), label="grade")
    given_reply = {"why": "On it.", "quote": " 'so' ", "grade": 1}
    parsed = parse_reply(json.dumps(given_reply), contract, Inputs(QUERY))
    assert (parsed.outcome, parsed.reason) == ({"label": 1, "quote": "'so'"}, "On it.")
    assert list(json_schema(contract)["properties"]) == ["why", "quote", "grade"]
    for wrong in (None, 3, ["so"]):
        with pytest.raises(ReplyError, match="'quote' must be text"):
            parse_reply(json.dumps(given_reply | {"quote": wrong}), contract, Inputs(QUERY))


def test_a_scale_goes_up_and_has_the_first_word_for_each_label() -> None:
    words = {name: load_prompt(name, Task.RELEVANCE).reply.label_words() for name in ("reasoner", "helm", "umbrela")}
    assert list(words["reasoner"].items()) == [(0, "not relevant"), (1, "somewhat relevant"), (2, "very relevant")]
    assert list(words["helm"].items()) == [(0, "no"), (1, "yes")]
    assert list(words["umbrela"].items()) == [(0, 0), (1, 1), (2, 2), (3, 3)]
