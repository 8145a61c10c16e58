"""Local models at speed: batches that memory holds, labels scored instead of written, beginnings read once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judges.contracts import allowed_replies
from judges.errors import ProviderError
from judges.parse import parse_reply
from judges.providers import open_provider
from judges.providers.local import Batcher, Divider, arrange_batches, cost, local_source, shared_prefix
from judges.providers.transformers import LocalModel, ReplyScores, label_probabilities, score_replies
from judges.spec import JudgeSpec
from judges.types import Form, Inputs, Prompt, Query, ReplyContract, Task
from tests.support.tiny_models import CHAT_TEMPLATE, Family, asked, save_tiny_model


async def test_what_waits_or_has_just_been_answered_is_worked_off_together_up_to_the_batch_size() -> None:
    sizes: list[int] = []

    def work(factor: int, items: Sequence[int]) -> Iterator[tuple[int, int | Exception]]:
        sizes.append(len(items))
        yield from ((place, item * factor) for place, item in enumerate(items))

    batcher: Batcher[int, int, int] = Batcher(lambda: 10, work, 4)
    assert await asyncio.gather(*(batcher.submit(item) for item in range(10))) == [item * 10 for item in range(10)]
    assert sizes == [4, 4, 2]
    await batcher.close()
    batcher = Batcher(lambda: 1, work, 8)
    del sizes[:]

    async def ask_on(turns: int) -> None:
        for _ in range(3):
            await batcher.submit(turns)
            for _ in range(turns):  # some are kept and replaced later than others
                await asyncio.sleep(0)

    await asyncio.gather(*map(ask_on, range(8)))
    assert sizes == [8, 8, 8]
    await batcher.close()


async def test_each_result_is_there_the_moment_it_is_made() -> None:
    go_on = Event()

    def work(_: None, items: Sequence[int]) -> Iterator[tuple[int, int | Exception]]:
        yield 1, items[1]
        go_on.wait(10)
        yield 0, items[0]

    batcher: Batcher[None, int, int] = Batcher(lambda: None, work, 4)
    last, first = (asyncio.ensure_future(batcher.submit(item)) for item in (1, 2))
    assert await asyncio.wait_for(first, 10) == 2
    assert not last.done()
    go_on.set()
    assert await last == 1
    await batcher.close()


async def test_whoever_gives_up_is_left_out_and_an_error_reaches_everyone_else() -> None:
    seen: list[int] = []

    def work(_: None, items: Sequence[int]) -> Iterator[tuple[int, int | Exception]]:
        seen.extend(items)
        yield 0, items[0]
        raise RuntimeError("out of order")

    batcher: Batcher[None, int, int] = Batcher(lambda: None, work, 4)
    impatient, lucky, patient = (asyncio.ensure_future(batcher.submit(item)) for item in (1, 2, 3))
    await asyncio.sleep(0)
    impatient.cancel()
    with pytest.raises(ProviderError, match="RuntimeError: out of order"):
        await patient
    assert await lucky == 2
    assert seen == [2, 3]
    await batcher.close()


async def test_a_model_that_cannot_be_loaded_is_not_tried_for_everyone_who_asks() -> None:
    tried: list[str] = []

    def load() -> None:
        tried.append("loaded")
        raise RuntimeError("no such model")

    batcher: Batcher[None, int, int] = Batcher(load, lambda _, items: enumerate(items), 4)
    for item in (1, 2):
        with pytest.raises(ProviderError, match="no such model"):
            await batcher.submit(item)
    assert tried == ["loaded"]
    await batcher.close()


async def test_work_that_nobody_waits_for_any_more_is_not_begun() -> None:
    begun: list[int] = []
    under_way = asyncio.Event()
    loop = asyncio.get_running_loop()
    go_on = Event()

    def work(_: None, items: Sequence[int]) -> Iterator[tuple[int, int | Exception]]:
        for place, item in enumerate(items):
            begun.append(item)
            loop.call_soon_threadsafe(under_way.set)
            go_on.wait(10)
            yield place, item

    batcher: Batcher[None, int, int] = Batcher(lambda: None, work, 4)
    waiting = [asyncio.ensure_future(batcher.submit(item)) for item in (1, 2, 3)]
    await under_way.wait()
    for each in waiting[1:]:
        each.cancel()
    go_on.set()
    assert await waiting[0] == 1
    await batcher.close()
    assert begun == [1]


@pytest.mark.parametrize("failure", [MemoryError(), RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling x")])
def test_a_size_that_failed_bars_what_is_larger_and_nothing_else(failure: Exception) -> None:
    tried: list[tuple[int, int]] = []

    def work(items: Sequence[int]) -> list[int]:
        tried.append((len(items), max(items)))
        if len(items) * max(items) > 80:
            raise failure
        return [item * 10 for item in items]

    divider = Divider()

    def done(items: list[int]) -> list[int | None]:
        parts = divider.parts(items, lambda item: item, work)
        return [result for _, results in parts for result in ([None] if isinstance(results, Exception) else results)]

    assert done([50] * 4) == [500] * 4, "in the order they came"
    assert tried == [(4, 50), (2, 50), *[(1, 50)] * 4], "the other two of the four are not tried together"
    del tried[:]
    done([20, 20, 20, 20])
    assert tried == [(4, 20)], "shorter ones may fit"
    done([60, 20, 20])
    assert tried[1:] == [(1, 60), (2, 20)], "as long and as many as what failed before"
    assert done([90]) == [None], "a single one is always tried"


class Panic(BaseException): ...


@pytest.mark.parametrize("raised", [RuntimeError("mha_graph.execute is_good()"), IndexError("token 9"), Panic("rust")])
def test_another_exception_divides_the_batch_and_bars_no_later_one(raised: BaseException) -> None:
    tried: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        tried.append(len(items))
        if 7 in items:
            raise raised
        return [item * 10 for item in items]

    divider = Divider()
    parts = [(list(part), results) for part, results in divider.parts([1, 2, 3, 7, 5], lambda item: item, work)]
    failures = [(part, str(results)) for part, results in parts if isinstance(results, ProviderError)]
    assert failures == [([7], f"{type(raised).__name__}: {raised}")]
    assert [part for part, _ in parts] == [[1, 2], [3], [7], [5]]
    del tried[:]
    ((whole, _),) = divider.parts([1, 2, 3, 8, 5], lambda item: item, work)
    assert whole == [1, 2, 3, 8, 5]
    assert tried == [5]


LABEL = ReplyContract("why", {"label": {"no": 0, "partly": 1, "yes, fully": 2, "irrelevant": 0}})
BEGINNING = "A judge reads a passage and says how well it answers. "
USERS = ["dust", "a much longer passage on vacuum cleaners", "rain", "tomorrow's weather"]


def prompt(user: str, contract: ReplyContract = LABEL) -> Prompt:
    return Prompt(Task.RELEVANCE, "tiny", "1", BEGINNING, user, contract, Inputs(Query("q", user)))


@pytest.fixture(scope="module", params=["causal", "chat", "text-to-text"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    family: Family = "text-to-text" if request.param == "text-to-text" else "causal"
    template = CHAT_TEMPLATE if request.param == "chat" else None
    return save_tiny_model(tmp_path_factory.mktemp("models") / request.param, family, chat_template=template)


@pytest.fixture(scope="module")
def model(path: Path) -> LocalModel:
    spec = JudgeSpec(provider="transformers", path=path, max_tokens=12)
    return LocalModel(local_source(spec), spec)


def conversation(user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": BEGINNING}, {"role": "user", "content": user}]


def naive(model: LocalModel, user: str, replies: Sequence[str]) -> list[float]:
    """Log-probability of each reply with its end, from a pass over the whole text of each."""
    import torch

    asked, found = model.tokens(conversation(user)), []
    for reply in replies:
        written = [*model.tokenizer(reply)["input_ids"], model.tokenizer.eos_token_id]
        if model.is_encoder_decoder:
            read = {"input_ids": asked, "decoder_input_ids": [model.model.config.decoder_start_token_id, *written[:-1]]}
        else:
            read = {"input_ids": [*asked, *written[:-1]]}
        with torch.inference_mode():
            logits = model.model(**{name: torch.tensor([tokens]) for name, tokens in read.items()}).logits
        likely = torch.log_softmax(logits[0, -len(written) :], dim=1)
        found.append(sum(float(likely[at, token]) for at, token in enumerate(written)))
    return found


@pytest.mark.parametrize("form", ["json", "brackets", "word"])
def test_scores_are_those_of_each_reply_read_alone_in_full(model: LocalModel, form: Form) -> None:
    allowed = allowed_replies(replace(LABEL, form=form))
    together = dict(score_replies(model, [conversation(user) for user in USERS], [allowed] * len(USERS), 3))
    for place, user in enumerate(USERS):
        scores = together[place]
        assert isinstance(scores, ReplyScores)
        logs = naive(model, user, allowed)
        weights = [math.exp(log - max(logs)) for log in logs]
        assert scores.probabilities == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-5)
        assert scores.best == logs.index(max(logs))
        assert scores.input_tokens == len(model.tokens(conversation(user)))
        assert scores.output_tokens == len(allowed[scores.best]) + 1, "a character a token, and the end"


def test_replies_written_behind_a_shared_beginning_are_those_written_alone(model: LocalModel) -> None:
    together = dict(model.generate([conversation(user) for user in USERS], len(USERS)))
    alone = [reply for user in USERS for _, reply in model.generate([conversation(user)], 1)]
    assert [together[place] for place in range(len(USERS))] == alone
    prompts = [model.tokens(conversation(user)) for user in USERS]
    assert (model.padded_batch(prompts).shared == 0) is model.is_encoder_decoder


@pytest.mark.parametrize(
    ("contract", "replies"),
    [
        (LABEL, ['{"why": "", "label": "no"}', '{"why": "", "label": "partly"}', '{"why": "", "label": "yes, fully"}']),
        (replace(LABEL, form="brackets"), ["[[no]]", "[[partly]]", "[[yes, fully]]"]),
        (replace(LABEL, form="word"), ["no", "partly", "yes, fully"]),
        (ReplyContract("", {}, "rating"), ["0", "1", "2", "3", "4", "5"]),
        (ReplyContract("", {"label": {1: 1, 2: 2}}), ['{"label": 1}', '{"label": 2}']),
        (ReplyContract("why", {"a": {"x": 1}, "b": {"y": 1}}), []),
        (ReplyContract("why", {"label": {"x": 1}}, texts=("quote",)), []),
        (ReplyContract("", {"words": {"unanswerable": ""}}, "text"), []),
    ],
)
def test_a_reply_that_is_one_label_has_one_spelling_for_each_value(contract: ReplyContract, replies: list[str]) -> None:
    assert allowed_replies(contract) == replies


async def test_a_judge_that_scores_says_so_and_keeps_the_probability(path: Path) -> None:
    spec = JudgeSpec.model_validate({"provider": "transformers", "path": path, "max_tokens": 8, "labels": "likeliest"})
    two = ReplyContract("why", {"a": {"x": 1}, "b": {"y": 1}})
    label, rating, written = await asked(
        spec, prompt("dust"), prompt("rain", ReplyContract("", {}, "rating")), prompt("dust", two)
    )
    parsed = parse_reply(label.text, LABEL, prompt("dust").inputs)
    assert label.probability is not None
    assert parsed.reason.startswith(f"likeliest of 3 replies, with probability {label.probability:.3f} (")
    by_label = label_probabilities(parsed.reason)
    assert by_label.keys() == {"0", "1", "2"}
    assert by_label[str(parsed.outcome)] == pytest.approx(label.probability, abs=1e-6)
    assert sum(by_label.values()) == pytest.approx(1, abs=1e-5)
    assert label_probabilities("likeliest of 3 replies, with probability 0.712") == {}, "as earlier versions wrote it"
    assert label_probabilities(f"I say: {parsed.reason}") == {}
    assert label.probability >= 1 / 3
    assert rating.text in {"0", "1", "2", "3", "4", "5"}
    assert written.probability is None, "several fields are not one label"
    plain = spec.model_copy(update={"labels": "written"})
    assert open_provider(spec).identity == {**open_provider(plain).identity, "labels": "likeliest"}


PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=12)


@given(PROMPTS, st.integers(1, 5))
def test_batches_hold_everything_once_and_cost_no_more_than_in_the_order_they_came(
    prompts: list[list[int]], size: int
) -> None:
    batches = arrange_batches(prompts, size)
    assert sorted(at for batch in batches for at in batch) == list(range(len(prompts)))
    assert max(map(len, batches)) <= size
    as_they_came = [prompts[start : start + size] for start in range(0, len(prompts), size)]
    assert sum(cost([prompts[at] for at in batch]) for batch in batches) <= sum(map(cost, as_they_came))


@given(PROMPTS)
def test_a_shared_beginning_is_shared_and_leaves_something_of_each(prompts: list[list[int]]) -> None:
    shared = shared_prefix(prompts)
    assert len({tuple(prompt[:shared]) for prompt in prompts}) == 1
    assert shared < min(map(len, prompts))
    assert shared == min(map(len, prompts)) - 1 or len({prompt[shared] for prompt in prompts}) > 1


def test_games_of_one_query_go_together_and_so_do_passages_of_one_length() -> None:
    games = [[1, query, 5, 5, 5, game] for game in range(2) for query in range(2)]
    assert arrange_batches(games, 2) == [[0, 2], [1, 3]]
    passages = [[at] * length for at, length in enumerate([9, 1, 8, 2])]
    assert arrange_batches(passages, 2) == [[1, 3], [2, 0]]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"labels": "likeliest"}, "provider 'openai' has no 'labels: likeliest'"),
        ({"batch_size": 4}, "provider 'openai' has no 'batch_size'"),
        ({"device_map": "auto"}, "provider 'openai' has no 'device_map'"),
        ({"chat_template_kwargs": {"x": 1}}, "has no 'chat_template_kwargs'; it goes into 'extra_body'"),
        ({"provider": "extractive_qa", "attention": "eager"}, "provider 'extractive_qa' has no 'attention'"),
        ({"provider": "transformers", "device": "cpu", "device_map": "auto"}, "give one of them"),
        ({"provider": "transformers", "chat_template_kwargs": {"tools": []}}, "may not hold tools"),
        ({"provider": "transformers", "chat_template_kwargs": {"api_key": "k"}}, "may not hold 'api_key'"),
    ],
)
def test_options_of_local_models_are_refused_where_they_mean_nothing(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JudgeSpec.model_validate({"provider": "openai", "model": "m", **option})
