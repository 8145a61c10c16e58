"""The offline baseline: what it counts, that it is symmetric, and that no text can talk it over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judges.errors import RejectedError
from judges.parse import ParsedReply, parse_reply
from judges.prompts import load_prompt
from judges.prompts.tasks import Criterion, criteria_prompt, extraction_prompt
from judges.providers.lexical import (
    AVERAGE_LENGTH,
    FULL_SHARE,
    LexicalProvider,
    answer_scores,
    bm25_share,
    content_terms,
)
from judges.types import (
    AnnotatedDocument,
    Answer,
    Document,
    Inputs,
    Outcome,
    Prompt,
    Query,
    ReplyContract,
    Task,
    Verdict,
)
from tests.support.prompts import BAD, GOOD, VACUUM, WEATHER, bracketed, criteria, pairwise, relevance

WORDS = st.lists(st.sampled_from(["vacuum", "optimizer", "deletes", "old", "records", "rain", "the"]), max_size=12)


async def judged(prompt: Prompt) -> ParsedReply:
    completion = await LexicalProvider().complete(prompt)
    return parse_reply(completion.text, prompt.contract, prompt.inputs)


async def outcome(prompt: Prompt) -> Outcome:
    return (await judged(prompt)).outcome


def answered(text: str) -> Answer:
    return Answer("q1", "agent", text)


async def test_a_document_on_the_subject_gets_the_highest_label_and_another_the_lowest() -> None:
    assert await outcome(relevance(VACUUM)) == 2
    assert await outcome(relevance(WEATHER)) == 0


async def test_labels_are_reached_in_equal_steps_of_the_full_share() -> None:
    query = Query("q", "alpha beta gamma delta")
    filler = " ".join(f"word{number}" for number in range(AVERAGE_LENGTH))
    labels = []
    for terms in ([], ["alpha"], ["alpha", "beta"], ["alpha", "beta", "gamma", "delta"]):
        text = " ".join([*terms, *filler.split()[len(terms) :]])
        assert bm25_share(query.text, text) == pytest.approx(len(terms) / 4 / 2.2)
        labels.append(await outcome(relevance(Document("d", text), query)))
    assert labels == [0, 0, 1, 2]
    assert FULL_SHARE < 1 / 2.2


def test_words_are_compared_as_stems_without_function_words() -> None:
    assert content_terms("The deleted records of the optimizers") == content_terms("deletes record optimizer")
    assert content_terms("to be or not to be") == ("to", "be", "or", "not", "to", "be")


async def test_the_answer_that_covers_the_relevant_content_wins_in_either_place() -> None:
    assert await outcome(pairwise(GOOD, BAD)) == "A"
    assert await outcome(pairwise(BAD, GOOD)) == "B"
    assert await outcome(bracketed(GOOD, BAD)) == "A"
    assert await outcome(bracketed(BAD, GOOD)) == "B"


@given(first=WORDS, second=WORDS)
async def test_swapping_the_answers_swaps_the_verdict(first: list[str], second: list[str]) -> None:
    one, other = answered(" ".join(first)), answered(" ".join(second))
    verdict = Verdict(str(await outcome(pairwise(one, other))))
    assert await outcome(pairwise(other, one)) == verdict.swapped()


async def test_documents_weigh_by_their_label() -> None:
    rainy = Document("rainy", "Deleted records bring rain to the north, with wind from the sea.")
    about_rain = answered("Rain in the north, with wind from the sea.")

    async def winner(vacuum_label: int, rainy_label: int) -> Outcome:
        shown = (AnnotatedDocument(VACUUM, vacuum_label), AnnotatedDocument(rainy, rainy_label))
        return await outcome(pairwise(about_rain, GOOD, *shown))

    assert await winner(vacuum_label=2, rainy_label=0) == "B"
    assert await winner(vacuum_label=0, rainy_label=2) == "A"


async def test_criteria_are_graded_each_on_its_own_scale() -> None:
    good, bad = await outcome(criteria(GOOD)), await outcome(criteria(BAD))
    assert isinstance(good, dict)
    assert isinstance(bad, dict)
    assert set(good) == {"relevance", "accuracy", "completeness", "precision"}
    assert all(good[name] >= bad[name] for name in good)
    assert good["relevance"] > bad["relevance"]
    template = load_prompt("criteria", Task.CRITERIA)
    own = criteria_prompt(template, Query("q", "rain"), BAD, criteria=[Criterion("charm")], scale=(1, 5))
    assert await outcome(own) == 5


async def test_labels_are_ordered_by_value_not_by_place() -> None:
    contract = ReplyContract("why", {"label": {"very": 3, "none": 0, "some": 1}})
    assert await outcome(replace(relevance(VACUUM), contract=contract)) == 3
    assert await outcome(replace(relevance(WEATHER), contract=contract)) == 0


async def test_the_reason_says_that_it_is_a_baseline_and_gives_its_numbers() -> None:
    for prompt in (relevance(), pairwise(), criteria(), bracketed()):
        reason = (await judged(prompt)).reason
        assert "baseline, no language model" in reason
        assert any(character.isdigit() for character in reason)


async def test_an_empty_answer_or_query_is_judged_and_not_a_crash() -> None:
    assert await outcome(pairwise(answered(""), GOOD)) == "B"
    assert await outcome(relevance(VACUUM, Query("q", "?!"))) == 0
    assert answer_scores("?!", {}, "").overall == 0


async def test_a_prompt_about_nothing_it_can_count_is_rejected() -> None:
    with pytest.raises(RejectedError):
        await outcome(replace(relevance(), inputs=Inputs(Query("q", "x"))))
    with pytest.raises(RejectedError):
        await outcome(replace(pairwise(), contract=ReplyContract("why", {"better": {"left": "L", "right": "R"}})))


async def test_an_answer_in_words_is_refused_and_not_made_of_labels() -> None:
    prompt = extraction_prompt(
        load_prompt("extraction", Task.EXTRACTION), Query("q", "which layer?"), Document("d", "x")
    )
    with pytest.raises(RejectedError, match="cannot write an answer"):
        await LexicalProvider().complete(prompt)
