"""The extractive question-answering head: a tiny real model, saved to a folder and run through the provider."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from judges.errors import InputError, JudgeStoppedError, MissingExtraError, RejectedError
from judges.parse import parse_reply
from judges.prompts import load_prompt
from judges.prompts.tasks import extraction_prompt
from judges.providers import open_provider
from judges.providers.extractive_qa import SpanModel
from judges.spec import JudgeSpec
from judges.types import Answer, Completion, Document, Prompt, Query, Task
from tests.support.prompts import pairwise, relevance
from tests.support.tiny_models import asked, save_tiny_model
from tests.support.tiny_qa import QUESTION, WINDOW, passage

FOUND = "upper epidermis"


@pytest.fixture
def model(skin_qa_model: Path) -> Path:
    return skin_qa_model


def declared(path: Path, **options: object) -> JudgeSpec:
    return JudgeSpec.model_validate({"provider": "extractive_qa", "path": path, **options})


def asking(text: str, question: str = QUESTION) -> Prompt:
    return extraction_prompt(load_prompt("extraction", Task.EXTRACTION), Query("q", question), Document("d", text))


def outcome(reply: Completion) -> Any:
    return parse_reply(reply.text, asking("x").contract, asking("x").inputs).outcome


async def test_the_span_that_answers_is_found_in_each_passage_of_a_batch(model: Path) -> None:
    texts = [passage(40, (place,), seed=place) for place in (0, 7, 40)]
    replies = await asked(declared(model, device="cpu"), *map(asking, texts))
    assert [outcome(reply) for reply in replies] == [FOUND] * 3
    assert all(0.5 < (reply.probability or 0) <= 1 for reply in replies)
    assert {reply.model for reply in replies} == {"skin"}
    assert [reply.usage.output_tokens for reply in replies] == [2, 2, 2]


async def test_a_passage_without_an_answer_is_unanswerable(model: Path) -> None:
    (reply,) = await asked(declared(model), asking(passage(40)))
    assert reply.text == "unanswerable"
    assert outcome(reply) == ""
    assert (reply.probability or 0) > 0.5


@pytest.mark.parametrize("place", [0, 111, 300])
async def test_a_long_passage_is_read_in_windows_wherever_the_answer_stands(model: Path, place: int) -> None:
    (reply,) = await asked(declared(model), asking(passage(300, (place,))))
    assert outcome(reply) == FOUND
    assert (reply.usage.input_tokens or 0) > 300 + 5 * len(QUESTION.split())


async def test_a_long_passage_without_an_answer_is_unanswerable_in_all_its_windows(model: Path) -> None:
    assert outcome((await asked(declared(model), asking(passage(300))))[0]) == ""


async def test_a_batch_answers_what_single_passages_answer(model: Path) -> None:
    prompts = [asking(passage(words, (words // 2,), seed=words)) for words in (5, 200, 41)]
    together = await asked(declared(model), *prompts)
    alone = [(await asked(declared(model, concurrency=1), each))[0] for each in prompts]
    assert [reply.text for reply in together] == [reply.text for reply in alone]
    assert [reply.probability for reply in together] == pytest.approx([reply.probability for reply in alone], abs=1e-4)


async def test_the_span_is_the_passages_own_text(model: Path) -> None:
    text = passage(20, (9,)).replace("upper epidermis", "upper\n  epidermis")
    assert outcome((await asked(declared(model), asking(text)))[0]) == "upper\n  epidermis"


async def test_an_answer_as_passage_is_read_as_well(model: Path) -> None:
    template = load_prompt("extraction", Task.EXTRACTION)
    prompt = extraction_prompt(template, Query("q", QUESTION), Answer("q", "agent", passage(30, (4,))))
    assert outcome((await asked(declared(model), prompt))[0]) == FOUND


async def test_max_tokens_bounds_the_span(model: Path) -> None:
    (reply,) = await asked(declared(model, max_tokens=1), asking(passage(40, (7,))))
    assert len(reply.text.split()) == 1
    assert reply.usage.output_tokens in {0, 1}


async def test_a_question_that_fills_the_window_is_rejected_and_the_others_are_not(model: Path) -> None:
    provider = open_provider(declared(model))
    long, short = await asyncio.gather(
        provider.complete(asking(passage(40), question="skin " * WINDOW)),
        provider.complete(asking(passage(40, (3,)))),
        return_exceptions=True,
    )
    await provider.close()
    assert isinstance(long, RejectedError)
    assert f"model's {WINDOW}" in str(long)
    assert isinstance(short, Completion)
    assert outcome(short) == FOUND


@pytest.mark.parametrize("failure", ["memory", "device"])
async def test_where_many_windows_fail_together_they_are_read_a_few_at_a_time(
    model: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    import torch

    error = torch.OutOfMemoryError() if failure == "memory" else RuntimeError("mha_graph.execute is_good()")
    real, sizes = SpanModel._batch, []

    def scarce(self: SpanModel, windows: Any, rows: list[int]) -> Any:
        sizes.append(len(rows))
        if len(rows) > 2:
            raise error
        return real(self, windows, rows)

    monkeypatch.setattr(SpanModel, "_batch", scarce)
    (reply,) = await asked(declared(model), asking(passage(300, (170,))))
    assert outcome(reply) == FOUND
    assert max(sizes) > 2
    assert sizes[-1] <= 2


async def test_other_tasks_are_refused(model: Path) -> None:
    for prompt in (relevance(), pairwise()):
        with pytest.raises(RejectedError, match="one passage"):
            await asked(declared(model), prompt)


async def test_a_text_to_text_model_with_such_a_head_serves_too(tmp_path: Path) -> None:
    import transformers

    plain = save_tiny_model(tmp_path / "t5", "text-to-text")
    config = transformers.AutoConfig.from_pretrained(plain)
    transformers.T5ForQuestionAnswering(config).save_pretrained(plain)
    (reply,) = await asked(declared(plain), asking(text := passage(40)))
    assert reply.text in {*text.split(), "unanswerable"} or reply.text in text


async def test_a_model_without_a_trained_head_is_refused_and_not_run_at_random(tmp_path: Path) -> None:
    plain = save_tiny_model(tmp_path / "t5", "text-to-text")
    with pytest.raises(JudgeStoppedError, match="no trained head") as caught:
        await asked(declared(plain), asking("a passage"))
    assert caught.value.cause == "unknown_model"
    assert "\n" not in str(caught.value)


def test_identity_tells_weights_and_span_lengths_apart(model: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(model, tmp_path / "skin"))
    one, same = open_provider(declared(model)), open_provider(declared(moved, concurrency=2))
    assert one.identity == same.identity != open_provider(declared(model, max_tokens=5)).identity
    assert str(tmp_path) not in str(same.identity)


def test_what_is_missing_is_one_line(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        open_provider(declared(tmp_path / "none"))
    with pytest.raises(ValueError, match="'extractive_qa' needs a 'model' name or a 'path'"):
        JudgeSpec(provider="extractive_qa")
    monkeypatch.setattr("judges.providers.local.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"'extractive_qa' needs the extra 'local'"):
        open_provider(declared(model))
