"""What makes two judgments the same: texts, prompt, judge and sample; names only where a judge goes by names."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judges.identity import judgment_id
from judges.providers import open_provider
from judges.spec import JudgeSpec
from judges.types import AnnotatedDocument, Answer, Document, ListRule, Prompt, Query, ReplyContract, Task
from tests.support.prompts import BAD, GOOD, QUERY, VACUUM, bracketed, criteria, pairwise, relevance

JUDGE = {"provider": "openai", "model": "gpt-x", "temperature": 0.0, "seed": None}


def ident(prompt: Prompt, judge: Mapping[str, str | int | float | None] = JUDGE, **options: object) -> str:
    return judgment_id(prompt, judge, **options)  # type: ignore[arg-type]


def test_it_is_stable() -> None:
    """A change of this value makes every judgment ever stored unknown."""
    prompt = Prompt(Task.RELEVANCE, "p", "1", "s", "u", ReplyContract("r", {"l": {"no": 0, 1: 1}}), relevance().inputs)
    assert ident(prompt) == "9881fa032906414c96a4968c1a2a52f1"


TWO = ReplyContract("reason", {"match": {0: 0, 1: 1}, "label": {0: 0, 1: 1}})
CHANGES = {
    "question": relevance(query=replace(QUERY, text=QUERY.text + " ")),
    "document": relevance(replace(VACUUM, text=VACUUM.text.upper())),
    "title": relevance(replace(VACUUM, metadata={"title": "Vacuum"})),
    "name of the prompt": replace(relevance(), name="other"),
    "version": replace(relevance(), version="2"),
    "system": replace(relevance(), system=relevance().system + "."),
    "task": replace(relevance(), task=Task.PAIRWISE),
    "values": replace(relevance(), contract=ReplyContract("reason", {"label": {"a": 0, "b": 1}})),
    "values swapped": replace(relevance(), contract=ReplyContract("reason", {"label": {"a": 1, "b": 0}})),
    "words that are numbers": replace(relevance(), contract=ReplyContract("reason", {"label": {"0": 0, "1": 1}})),
    "numbers": replace(relevance(), contract=ReplyContract("reason", {"label": {0: 0, 1: 1}})),
    "reason": replace(relevance(), contract=ReplyContract("why", relevance().contract.choices)),
    "texts": replace(relevance(), contract=replace(relevance().contract, texts=("quote",), label="label")),
    "label of two": replace(relevance(), contract=replace(TWO, label="label")),
    "other label of two": replace(relevance(), contract=replace(TWO, label="match")),
    "form": replace(relevance(), contract=replace(relevance().contract, form="brackets")),
    "list": replace(relevance(), contract=ReplyContract("", {}, "list", listed=ListRule("questions", 10, 10))),
    "longer list": replace(relevance(), contract=ReplyContract("", {}, "list", listed=ListRule("questions", 10, 20))),
    "nothing": relevance(),
}


def test_every_change_of_what_is_asked_is_another_judgment() -> None:
    assert len({ident(prompt) for prompt in CHANGES.values()}) == len(CHANGES)


def test_games_differ_by_their_answers_order_and_documents() -> None:
    other = AnnotatedDocument(VACUUM, 2, "off the subject")
    prompts = [pairwise(GOOD, BAD), pairwise(BAD, GOOD), pairwise(GOOD, GOOD), pairwise(GOOD, BAD, other), bracketed()]
    assert len({ident(prompt) for prompt in prompts}) == len(prompts)
    assert ident(criteria(GOOD)) != ident(criteria(BAD))


@pytest.mark.parametrize(
    "change", [{"model": "gpt-y"}, {"temperature": 0.1}, {"temperature": None}, {"seed": 0}, {"provider": "anthropic"}]
)
def test_another_judge_or_parameter_is_another_judgment(change: dict[str, str | float]) -> None:
    assert ident(relevance(), JUDGE | change) != ident(relevance())
    assert ident(relevance(), dict(reversed(JUDGE.items()))) == ident(relevance())


def test_every_sample_is_a_judgment_of_its_own() -> None:
    assert len({ident(replace(relevance(), sample=sample)) for sample in range(5)}) == 5
    assert ident(replace(relevance(), sample=0)) == ident(relevance())


def test_the_providers_parameters_enter_and_its_limits_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("OTHER_KEY", "sk-other")

    def of(**options: object) -> str:
        spec = JudgeSpec.model_validate({"provider": "openai", "model": "gpt-x", **options})
        identity = open_provider(spec).identity
        assert "planted" not in repr(identity)
        return ident(relevance(), identity)

    limits = [
        {"concurrency": 2},
        {"timeout_s": 9},
        {"max_attempts": 1},
        {"base_url": "http://127.0.0.1:1/v1"},
        {"api_key_env": "OTHER_KEY"},
        {"price": {"input": 1, "output": 1}},
        {"max_cost_usd": 5, "price": {"input": 1, "output": 1}},
    ]
    assert {of(**options) for options in limits} == {of()}
    decisive = [{"model": "y"}, {"temperature": 1}, {"seed": 1}, {"max_tokens": 9}, {"structured_output": False}]
    assert len({of(**options) for options in decisive} | {of()}) == len(decisive) + 1


def test_names_do_not_enter_unless_the_judge_goes_by_them() -> None:
    plain, named = ident(pairwise(GOOD, BAD)), ident(pairwise(GOOD, BAD), by_name=True)
    renamed = pairwise(replace(GOOD, agent="renamed"), replace(BAD, agent="too"))
    assert ident(renamed) == plain
    assert ident(renamed, by_name=True) != named
    assert plain != named
    moved = replace(renamed, inputs=replace(pairwise(GOOD, BAD).inputs, query=replace(QUERY, query_id="other")))
    assert ident(moved) == plain
    assert ident(moved, by_name=True) != named
    document = relevance(replace(VACUUM, doc_id="renamed"))
    assert ident(document) == ident(relevance())
    assert ident(document, by_name=True) != ident(relevance(), by_name=True)


def test_names_cannot_run_together() -> None:
    def named(first: str, second: str) -> str:
        return ident(pairwise(replace(GOOD, agent=first), replace(BAD, agent=second)), by_name=True)

    assert len({named("a-b", "c"), named("a", "b-c"), named("a,b", "c"), named('a","b', "c"), named("a", 'b","c')}) == 5


@given(st.text(), st.text())
def test_any_text_has_an_id_and_texts_do_not_run_together(first: str, second: str) -> None:
    one = pairwise(Answer("q1", "x", first + second), Answer("q1", "y", ""))
    two = pairwise(Answer("q1", "x", first), Answer("q1", "y", second))
    assert (ident(one) == ident(two)) == (second == "")
    assert len(ident(one)) == 32
    assert ident(relevance(Document("d", "\ud800"), Query("q", "\udfff")))
