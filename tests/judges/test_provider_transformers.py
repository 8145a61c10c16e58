"""Local models: tiny real ones, saved to a folder and run through the provider."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from judges.errors import InputError, JudgeStoppedError, MissingExtraError, RejectedError
from judges.parse import parse_reply
from judges.providers import local, open_provider
from judges.providers.transformers import LocalModel
from judges.spec import JudgeSpec
from judges.types import Completion, Finish, Inputs, Message, Prompt, Query, ReplyContract, Task
from tests.support.tiny_models import CHAT_TEMPLATE, CONTEXT, NO_SYSTEM_TEMPLATE, asked, save_tiny_model

CONTRACT = ReplyContract("why", {"label": {"no": 0, "yes": 1}})
YES, NO = '{"why": "on topic", "label": "yes"}', '{"why": "off", "label": "no"}'
BRACKETS = replace(CONTRACT, form="brackets")
IN_BRACKETS, NOT_IN_BRACKETS = "fits [[yes]]", "off [[no]]"


def prompt(user: str, system: str = "Judge.") -> Prompt:
    return Prompt(Task.RELEVANCE, "tiny", "1", system, user, CONTRACT, Inputs(Query("q", user)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def chat_model(folder: Path) -> Path:
    taught = {
        "<system>Judge.\n<user>vacuum\n<assistant>": YES,
        "<system>Judge.\n<user>tomorrow's weather\n<assistant>": NO,
    }
    return save_tiny_model(folder / "chat", "causal", chat_template=CHAT_TEMPLATE, taught=taught)


@pytest.fixture(scope="module")
def t5_model(folder: Path) -> Path:
    taught = {"Judge.\n\nvacuum": IN_BRACKETS, "Judge.\n\ntomorrow's weather": NOT_IN_BRACKETS}
    return save_tiny_model(folder / "t5", "text-to-text", taught=taught)


@pytest.fixture(scope="module")
def random_model(folder: Path) -> Path:
    return save_tiny_model(folder / "random", "causal")


def declared(path: Path, **options: object) -> JudgeSpec:
    return JudgeSpec.model_validate({"provider": "transformers", "path": path, "max_tokens": 64, **options})


@pytest.mark.parametrize(("model", "contract"), [("chat_model", CONTRACT), ("t5_model", BRACKETS)])
async def test_a_model_that_knows_the_answers_labels_a_whole_batch(
    model: str, contract: ReplyContract, request: pytest.FixtureRequest
) -> None:
    prompts = [prompt("vacuum"), prompt("tomorrow's weather"), prompt("vacuum")]
    replies = await asked(declared(request.getfixturevalue(model)), *prompts)
    assert [parse_reply(reply.text, contract, prompts[0].inputs).outcome for reply in replies] == [1, 0, 1]
    assert all(reply.finish is Finish.STOP for reply in replies)
    assert replies[0].model == {"chat_model": "chat", "t5_model": "t5"}[model]


@pytest.mark.parametrize(("model", "texts"), [("chat_model", (YES, NO)), ("t5_model", (IN_BRACKETS, NOT_IN_BRACKETS))])
async def test_tokens_are_counted_for_each_reply_of_a_batch(
    model: str, texts: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(model)
    short, long = await asked(declared(path), prompt("vacuum"), prompt("tomorrow's weather"))
    assert (short.usage.output_tokens, long.usage.output_tokens) == (len(texts[0]) + 1, len(texts[1]) + 1)
    assert (long.usage.input_tokens or 0) - (short.usage.input_tokens or 0) == len("tomorrow's weather") - len("vacuum")


async def test_a_reply_cut_at_max_tokens_says_so(chat_model: Path) -> None:
    (reply,) = await asked(declared(chat_model, max_tokens=5), prompt("vacuum"))
    assert (reply.finish, reply.text, reply.usage.output_tokens) == (Finish.LENGTH, YES[:5], 5)


async def test_a_batch_replies_what_single_prompts_reply(random_model: Path) -> None:
    prompts = [prompt("a" * length) for length in (1, 30, 7)]
    together = await asked(declared(random_model, max_tokens=12), *prompts)
    alone = [(await asked(declared(random_model, max_tokens=12, concurrency=1), each))[0] for each in prompts]
    assert [reply.text for reply in together] == [reply.text for reply in alone]


async def test_a_seed_repeats_what_is_sampled(random_model: Path) -> None:
    async def sampled(seed: int) -> str:
        spec = declared(random_model, max_tokens=12, temperature=1.0, seed=seed)
        return (await asked(spec, prompt("vacuum")))[0].text

    assert await sampled(7) == await sampled(7) != await sampled(8)


async def test_a_template_without_system_messages_gets_it_with_the_first_user_message(tmp_path: Path) -> None:
    taught = {"<user>Judge.\n\nvacuum\n<assistant>": YES}
    model = save_tiny_model(tmp_path / "m", "causal", chat_template=NO_SYSTEM_TEMPLATE, taught=taught, steps=80)
    (reply,) = await asked(declared(model), prompt("vacuum"))
    assert reply.text == YES


async def test_later_turns_are_part_of_the_conversation(chat_model: Path) -> None:
    again = replace(prompt("vacuum"), turns=(Message("assistant", "yes"), Message("user", "As JSON.")))
    plain, longer = await asked(declared(chat_model), prompt("vacuum"), again)
    added = len("<assistant>yes\n<user>As JSON.\n")
    assert (longer.usage.input_tokens or 0) - (plain.usage.input_tokens or 0) == added


async def test_a_prompt_too_long_for_the_model_is_rejected_and_the_others_are_not(chat_model: Path) -> None:
    provider = open_provider(declared(chat_model))
    long, short = await asyncio.gather(
        provider.complete(prompt("x" * CONTEXT)), provider.complete(prompt("vacuum")), return_exceptions=True
    )
    await provider.close()
    assert isinstance(long, RejectedError)
    assert "max_tokens" in str(long)
    assert isinstance(short, Completion)
    assert short.text == YES


@pytest.mark.parametrize("model", ["chat_model", "t5_model"])
async def test_what_did_not_fit_into_memory_is_divided_and_not_tried_again(
    model: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory runs out for real: torch's own allocator is asked for more than there is."""
    import torch

    path = request.getfixturevalue(model)
    prompts = [prompt(text) for text in ("vacuum", "tomorrow's weather", "vacuum")]
    plenty = await asked(declared(path), *prompts)
    real, sizes = LocalModel._batch, []

    def scarce(self: LocalModel, prompts: list[list[int]]) -> Any:
        sizes.append(len(prompts))
        torch.empty((len(prompts) - 1) * 2**60, dtype=torch.uint8)
        return real(self, prompts)

    monkeypatch.setattr(LocalModel, "_batch", scarce)
    provider = open_provider(declared(path, device="cpu"))
    assert await asyncio.gather(*map(provider.complete, prompts)) == plenty
    assert sizes == [3, 1, 2, 1, 1]
    assert await asyncio.gather(*map(provider.complete, prompts)) == plenty
    assert sizes[5:] == [1, 1, 1]
    await provider.close()


async def test_a_prompt_for_which_memory_never_suffices_fails_alone(
    chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    real = LocalModel._batch

    def scarce(self: LocalModel, prompts: list[list[int]]) -> Any:
        if max(map(len, prompts)) > 60:
            raise torch.OutOfMemoryError
        return real(self, prompts)

    monkeypatch.setattr(LocalModel, "_batch", scarce)
    provider = open_provider(declared(chat_model))
    long, short = await asyncio.gather(
        provider.complete(prompt("x" * 80)), provider.complete(prompt("vacuum")), return_exceptions=True
    )
    await provider.close()
    assert isinstance(long, RejectedError)
    assert long.cause == "server_error"
    assert isinstance(short, Completion)
    assert short.text == YES


def test_identity_tells_models_apart_by_their_weights(chat_model: Path, random_model: Path, tmp_path: Path) -> None:
    renamed = Path(shutil.copytree(chat_model, tmp_path / "elsewhere" / "chat"))
    one, same = open_provider(declared(chat_model)), open_provider(declared(renamed))
    other = open_provider(declared(Path(shutil.copytree(random_model, tmp_path / "chat"))))
    assert one.identity == same.identity != other.identity
    known = {"provider", "model", "weights", "temperature", "seed", "max_tokens"}
    assert one.identity.keys() == known, "what is not declared changes no judgment's id"
    assert str(tmp_path) not in str(same.identity)


async def test_a_folder_with_broken_weights_stops_the_judge_with_one_line(chat_model: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(chat_model, tmp_path / "broken"))
    (broken / "model.safetensors").unlink()
    with pytest.raises(JudgeStoppedError, match="cannot be loaded") as caught:
        await asked(declared(broken), prompt("vacuum"))
    assert caught.value.cause == "unknown_model"
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_no_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        open_provider(declared(tmp_path / "none"))
    with pytest.raises(InputError, match=r"config\.json"):
        open_provider(declared(tmp_path))


def test_a_device_that_is_not_there_is_one_line(random_model: Path) -> None:
    with pytest.raises(InputError, match="'cuda:99'"):
        open_provider(declared(random_model, device="cuda:99"))


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, random_model: Path) -> None:
    monkeypatch.setattr("judges.providers.local.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"extra 'local', which is not installed: .* install .*torch"):
        open_provider(declared(random_model))


async def test_what_the_chat_template_is_told_decides_the_prompt_and_the_judgments_id(
    random_model: Path, tmp_path: Path
) -> None:
    model = Path(shutil.copytree(random_model, tmp_path / "thinking"))
    switch = "{% if enable_thinking is defined and not enable_thinking %}<no_think>{% endif %}"
    (model / "chat_template.jinja").write_text(CHAT_TEMPLATE + switch, encoding="utf-8")
    plain = declared(model, max_tokens=4)
    off = declared(model, max_tokens=4, chat_template_kwargs={"enable_thinking": False}, attention="eager")
    usual, told = (await asked(plain, prompt("vacuum")))[0], (await asked(off, prompt("vacuum")))[0]
    assert (told.usage.input_tokens or 0) - (usual.usage.input_tokens or 0) == len("<no_think>")
    assert open_provider(off).identity == {
        **open_provider(plain).identity,
        "chat_template_kwargs": '{"enable_thinking": false}',
    }
    with pytest.raises(JudgeStoppedError, match="'thinking': its chat template does not know it"):
        await asked(declared(model, chat_template_kwargs={"thinking": False}), prompt("vacuum"))
    with pytest.raises(JudgeStoppedError, match="'thinking': the model has no chat template"):
        await asked(declared(random_model, chat_template_kwargs={"thinking": False}), prompt("vacuum"))
    with pytest.raises(JudgeStoppedError, match="cannot be loaded"):
        await asked(declared(model, attention="flash_attention_9"), prompt("vacuum"))


def test_a_map_of_devices_needs_accelerate(random_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = local.find_spec
    monkeypatch.setattr(local, "find_spec", lambda name: None if name == "accelerate" else real(name))
    with pytest.raises(MissingExtraError, match=r"'device_map' \(by accelerate\) needs the extra 'local'"):
        open_provider(declared(random_model, device_map="auto"))


async def test_a_model_spread_over_devices_replies_the_same(random_model: Path) -> None:
    pytest.importorskip("accelerate")
    one = await asked(declared(random_model, max_tokens=8), prompt("vacuum"))
    assert await asked(declared(random_model, max_tokens=8, device_map={"": "cpu"}), prompt("vacuum")) == one
