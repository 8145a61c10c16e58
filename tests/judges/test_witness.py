"""Whether a model's name in a reply is that of the model asked for, and whether a prompt was read whole."""

from __future__ import annotations

import pytest

from judges.spec import JudgeSpec
from judges.types import Completion, Document, Usage
from judges.witness import Witness, is_same_model, names_a_model
from tests.support.prompts import relevance


@pytest.mark.parametrize(
    ("asked", "replied"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("gpt-4", "gpt-4-0613"),
        ("gpt-3.5-turbo", "gpt-3.5-turbo-0125"),
        ("o1", "o1-2024-12-17"),
        ("grok-4", "grok-4-0709"),
        ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620"),
        ("claude-3.5-sonnet", "us.anthropic.claude-3-5-sonnet-20240620-v1:0"),
        ("openai/gpt-4o", "gpt-4o-2024-08-06"),
        ("gpt-4o", "openai/gpt-4o"),
        ("m:free", "m"),
        ("llama3.1", "llama3.1:latest"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct"),
        ("qwen2.5-7b-instruct", "/models/qwen2.5-7b-instruct-q4_k_m.gguf"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen2.5-7B-Instruct"),
        ("gemini-2.5-flash", "models/gemini-2.5-flash-preview-05-20"),
        ("mistral-large-latest", "mistral-large-2411"),
        ("gpt4o-prod", "gpt-4o-2024-08-06"),
    ],
)
def test_a_snapshot_a_path_or_a_format_is_the_same_model(asked: str, replied: str) -> None:
    assert is_same_model(asked, replied)


@pytest.mark.parametrize(
    ("asked", "replied"),
    [
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("gpt-4o-mini", "gpt-4o"),
        ("gpt-4", "gpt-4.1"),
        ("gpt-4", "gpt-4-turbo-2024-04-09"),
        ("gpt-4.1-2025-04-14", "gpt-4o-mini-2024-07-18"),
        ("llama3.1:70b", "llama3.1:8b"),
        ("deepseek-v3", "deepseek-v2"),
        ("claude-opus-4", "claude-sonnet-4"),
        ("o1", "o3-mini"),
        ("m", "gpt-4.1-2025-04-14"),
        ("judge", "phi"),
    ],
)
def test_another_size_or_number_is_another_model(asked: str, replied: str) -> None:
    assert not is_same_model(asked, replied)


def test_a_name_without_a_models_may_stand_for_any() -> None:
    named = ["gpt-4o", "llama3.1:8b", "openai/gpt-4.1", "o1", "claude-sonnet-4-5"]
    assert list(filter(names_a_model, [*named, "m", "judge", "prod-llm-2", "gpt-judge"])) == named


def witness(**declared: object) -> Witness:
    return Witness("j", JudgeSpec.model_validate({"provider": "openai", "model": "m", **declared}))


def replied(tokens: int | None) -> Completion:
    return Completion("A", "m", usage=Usage(tokens))


@pytest.mark.parametrize(
    ("text", "tokens", "cut"),
    [
        ("word " * 5000, 2051, True),
        ("word " * 5000, 5400, False),
        ("word " * 5000, None, False),
        ("word " * 5000, 20, False),  # no context is so short
        ("\u6cd5\u9662" * 6000, 2051, True),
        ("\u6cd5\u9662" * 6000, 9000, False),
        ("-" * 50_000, 900, False),  # a token may be a row of signs
        (" " * 50_000, 900, False),
    ],
)
def test_a_count_below_that_of_words_is_a_prompt_that_was_cut(text: str, tokens: int | None, cut: bool) -> None:
    error = witness().look(replied(tokens), relevance(Document("d", text)))
    assert (error is not None and error.cause == "prompt_cut") is cut


def test_a_server_that_has_read_as_much_before_does_not_count_its_cache() -> None:
    prompt, sees = relevance(Document("d", "word " * 5000)), witness()
    assert sees.look(replied(5900), prompt) is None
    assert sees.look(replied(300), prompt) is None
