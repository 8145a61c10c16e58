"""No exception of a judge ends a run: it is a failure of the judgment in which it was raised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

import pytest

from judges import parse
from judges.errors import ProviderError, StoreError
from judges.judge import Judge, Request, Result
from judges.providers import open_provider
from judges.providers.local import without_cudnn_attention
from judges.spec import JudgeSpec
from judges.types import Completion, Document, Inputs, JudgeFailure, Judgment, Prompt, Query, ReplyContract, Task
from tests.support.listed import Listed
from tests.support.prompts import relevance
from tests.support.tiny_models import CHAT_TEMPLATE, save_tiny_model

GOOD = '{"reason": "On the subject.", "label": "very relevant"}'
POISON = "Text 3."


class Panic(BaseException): ...


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError


class Scripted:
    """A provider that replies well, and raises an exception of one text."""

    judges_names = False
    identity: ClassVar[Mapping[str, str | int | float | None]] = {"provider": "scripted"}

    def __init__(self, fail: Callable[[], Any]) -> None:
        self._fail = fail

    async def complete(self, prompt: Prompt) -> Completion:
        if POISON in prompt.user:
            self._fail()
        return Completion(GOOD, "scripted")

    async def close(self) -> None: ...


def raises(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


async def judged(judge: Judge, number: int = 6) -> dict[str, Result]:
    results: dict[str, Result] = {}

    async def keep(request: Request, result: Result) -> None:
        results[request.judgment_id] = result

    pending = (Request(str(at), relevance(Document(f"d{at}", f"Text {at}."))) for at in range(number))
    await asyncio.wait_for(Listed(pending).serve(judge, keep), 30)
    await judge.close()
    return results


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("mha_graph.execute\n is_good()"), "RuntimeError: mha_graph.execute is_good()"),
        (KeyError("label"), "KeyError: 'label'"),
        (TimeoutError(), "TimeoutError"),
        (SystemExit(3), "SystemExit: 3"),
        (Panic("index out of bounds"), "Panic: index out of bounds"),
        (MuteError(), "MuteError"),
        (asyncio.CancelledError(), "CancelledError: the call cancelled itself"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_whatever_a_provider_raises_is_a_failure_of_that_judgment(error: BaseException, message: str) -> None:
    spec = JudgeSpec(provider="openai", model="m", concurrency=2)
    results = await judged(Judge("judge", spec, Scripted(raises(error))))
    failure = results.pop("3")
    assert isinstance(failure, JudgeFailure)
    assert (failure.cause, failure.message, failure.calls) == ("exception", message, 1)
    assert len(results) == 5
    assert all(isinstance(each, Judgment) for each in results.values())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreError("the disk is full")], ids=["Ctrl-C", "the store"])
def test_ctrl_c_and_what_we_raise_on_purpose_end_the_run(error: BaseException) -> None:
    judge = Judge("judge", JudgeSpec(provider="openai", model="m"), Scripted(raises(error)))
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - an exception group or the exception itself
        asyncio.run(judged(judge))
    shown: BaseException = caught.value
    while isinstance(shown, BaseExceptionGroup):
        shown = shown.exceptions[0]
    assert shown is error


async def test_an_error_of_this_program_outside_a_judges_call_shows() -> None:
    async def broken(_request: Request, _result: Result) -> None:
        raise AttributeError("ours")

    judge = Judge("judge", JudgeSpec(provider="openai", model="m"), Scripted(raises(KeyError())))
    pending = iter([Request("0", relevance(Document("d", "Text.")))])
    with pytest.raises(ExceptionGroup) as caught:
        await Listed(pending).serve(judge, broken)
    assert caught.group_contains(AttributeError, match="ours")


FUNCTIONS = """
import sys

GOOD = {"reason": "On the subject.", "label": "very relevant"}
class Mute(Exception):
    def __str__(self): raise ValueError

def stop_iteration(prompt): return next(iter([])) if "Text 3." in prompt else GOOD
async def exits(prompt): return sys.exit(3) if "Text 3." in prompt else GOOD
def mute(prompt):
    if "Text 3." in prompt: raise Mute
    return GOOD
def circular(prompt):
    reply = dict(GOOD)
    if "Text 3." in prompt: reply["reply"] = reply
    return reply
def endless(prompt): return endless(prompt) if "Text 3." in prompt else GOOD
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("stop_iteration", "RuntimeError: StopIteration"),
        ("exits", "SystemExit: 3"),
        ("mute", "Mute"),
        ("circular", "ValueError: Circular reference detected"),
        ("endless", "RecursionError: "),
    ],
)
async def test_whatever_a_function_raises_is_a_failure_of_that_judgment(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    spec = JudgeSpec.model_validate({"provider": "python", "function": f"{tmp_path / 'mine.py'}:{name}"})
    results = await judged(Judge("judge", spec))
    failure = results.pop("3")
    assert isinstance(failure, JudgeFailure)
    assert failure.cause == "exception"
    assert failure.message.startswith(message)
    assert all(isinstance(each, Judgment) for each in results.values())


async def test_a_reply_on_which_the_parser_fails_is_asked_again_and_then_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = parse.parse_reply

    def broken(text: str, contract: ReplyContract, inputs: Inputs) -> parse.ParsedReply:
        if inputs.documents[0].document.text == POISON:
            raise LookupError("unreadable")
        return real(text, contract, inputs)

    monkeypatch.setattr(parse, "parse_reply", broken)
    judge = Judge("judge", JudgeSpec(provider="openai", model="m"), Scripted(lambda: None))
    results = await judged(judge)
    failure = results.pop("3")
    assert isinstance(failure, JudgeFailure)
    assert (failure.cause, failure.calls, failure.reply) == ("contract", 3, GOOD)
    assert failure.message == "the reply cannot be read: LookupError: unreadable"
    assert all(isinstance(each, Judgment) for each in results.values())


LABEL = ReplyContract("why", {"label": {"no": 0, "yes": 1}})


def prompt(user: str) -> Prompt:
    return Prompt(Task.RELEVANCE, "tiny", "1", "Judge.", user, LABEL, Inputs(Query("q", user)))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "causal": save_tiny_model(folder / "causal", "causal", chat_template=CHAT_TEMPLATE),
        "text-to-text": save_tiny_model(folder / "t5", "text-to-text"),
    }


@pytest.fixture
def forwards(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The models' forward pass raises an exception for more rows than ``most``, and where ``token`` is read."""
    import torch
    from transformers import LlamaForCausalLM
    from transformers.models.t5.modeling_t5 import T5Stack

    seen: dict[str, Any] = {"most": 10**9, "token": -1, "error": RuntimeError("broken"), "rows": [], "cudnn": set()}
    for kind in (LlamaForCausalLM, T5Stack):
        real = kind.forward

        def forward(self: Any, input_ids: Any, *args: Any, __real: Any = real, **options: Any) -> Any:
            seen["cudnn"].add(torch.backends.cuda.cudnn_sdp_enabled())
            seen["rows"].append(len(input_ids))
            if len(input_ids) > seen["most"] or bool((input_ids == seen["token"]).any()):
                raise seen["error"]
            return __real(self, input_ids, *args, **options)

        monkeypatch.setattr(kind, "forward", wraps(real)(forward))
    return seen


async def outcomes(path: Path, users: list[str], **options: Any) -> list[Completion | BaseException]:
    spec = JudgeSpec.model_validate({"provider": "transformers", "path": path, "max_tokens": 6, **options})
    provider = open_provider(spec)
    try:
        return await asyncio.gather(*(provider.complete(prompt(user)) for user in users), return_exceptions=True)
    finally:
        await provider.close()


USERS = ["dust", "rain", "vacuum ~", "a longer text on cleaners", "wind", "hail", "snow"]


def _reply(outcome: Any) -> str:
    """A written reply whole; of a scored one the label, since a probability's last digits depend on the batch."""
    return str(outcome.text.rpartition("label")[2])


@pytest.mark.parametrize("family", ["causal", "text-to-text"])
@pytest.mark.parametrize("labels", ["written", "likeliest"])
async def test_an_error_of_the_device_in_a_large_batch_costs_no_judgment(
    models: dict[str, Path], forwards: dict[str, Any], family: str, labels: str
) -> None:
    alone = [(await outcomes(models[family], [user], labels=labels))[0] for user in USERS]
    forwards["most"] = 4 if labels == "likeliest" else 2
    forwards["error"] = RuntimeError("mha_graph.execute(...).is_good()")
    together = await outcomes(models[family], USERS, labels=labels)
    assert all(isinstance(each, Completion) for each in together)
    assert list(map(_reply, together)) == list(map(_reply, alone))
    assert max(forwards["rows"]) > forwards["most"], "larger batches were tried"


@pytest.mark.parametrize("family", ["causal", "text-to-text"])
async def test_a_prompt_that_the_model_cannot_read_fails_alone(
    models: dict[str, Path], forwards: dict[str, Any], family: str
) -> None:
    import transformers

    tilde = transformers.AutoTokenizer.from_pretrained(models[family])("~")["input_ids"][0]
    for error in (RuntimeError("device-side assert"), IndexError("index out of range"), Panic("rust")):
        forwards.update(token=tilde, error=error)
        found = await outcomes(models[family], USERS)
        (failed,) = [each for each in found if not isinstance(each, Completion)]
        assert failed is found[2]
        assert isinstance(failed, ProviderError)
        assert (failed.cause, str(failed)) == ("exception", f"{type(error).__name__}: {error}")


async def test_a_prompt_that_the_tokenizer_or_its_template_refuses_fails_alone(tmp_path: Path) -> None:
    template = "{% if '~' in messages[-1].content %}{{ raise_exception('no tilde') }}{% endif %}" + CHAT_TEMPLATE
    path = save_tiny_model(tmp_path / "model", "causal", chat_template=template)
    for labels in ("written", "likeliest"):
        found = await outcomes(path, USERS, labels=labels)
        assert [at for at, each in enumerate(found) if not isinstance(each, Completion)] == [2]
        assert str(found[2]) == "TemplateError: no tilde"


async def test_cudnns_attention_is_off_while_a_model_works_and_as_before_afterwards(
    models: dict[str, Path], forwards: dict[str, Any]
) -> None:
    from torch.backends import cuda

    before = cuda.cudnn_sdp_enabled()
    try:
        for setting in (True, False):
            cuda.enable_cudnn_sdp(setting)
            forwards["cudnn"].clear()
            await outcomes(models["causal"], USERS)
            assert forwards["cudnn"] == {False}
            assert cuda.cudnn_sdp_enabled() is setting
        cuda.enable_cudnn_sdp(True)
        first, second = without_cudnn_attention(), without_cudnn_attention()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not cuda.cudnn_sdp_enabled(), "another model still works"
        second.__exit__(None, None, None)
        assert cuda.cudnn_sdp_enabled()
    finally:
        cuda.enable_cudnn_sdp(before)


async def test_a_model_whose_loading_raises_anything_stops_its_judge_with_one_line(tmp_path: Path) -> None:
    path = save_tiny_model(tmp_path / "model", "causal")
    (path / "tokenizer.json").write_text('{"version": "1.0", "model": {}}')
    spec = JudgeSpec.model_validate({"provider": "transformers", "path": path})
    judge = Judge("judge", spec)
    results = await judged(judge)
    assert {getattr(each, "cause", None) for each in results.values()} == {"unknown_model"}
    assert "cannot be loaded: " in str(judge.stopped)
    assert "\n" not in str(judge.stopped)
