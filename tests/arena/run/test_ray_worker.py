"""A worker's mailbox, without Ray."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from arena.run.ray_worker import Worker
from judges.errors import JudgeStoppedError, ProviderError, TransientError
from judges.spec import JudgeSpec
from judges.types import Allowance, Completion
from tests.support.llm_server import LLMServer, Reply
from tests.support.prompts import relevance


async def test_a_question_that_was_given_up_takes_no_later_reply() -> None:
    worker = Worker(JudgeSpec(provider="lexical"))
    given_up = asyncio.create_task(worker.replies(1))
    await asyncio.sleep(0)
    asked = asyncio.create_task(worker.replies(2))
    await asyncio.sleep(0)
    await worker.take([(7, relevance())])
    assert await given_up == []
    [(number, reply)] = await asked
    assert number == 7
    assert isinstance(reply, Completion)


async def test_each_reply_comes_when_it_is_there_and_an_error_is_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "none")
    script = [Reply("late", delay_s=0.3), Reply(status=401, text="no such key")]
    with LLMServer(script) as server:
        spec = JudgeSpec(provider="openai", model="m", base_url=server.openai_url, api_key_env="JUDGE_KEY")
        worker = Worker(spec)
        await worker.take([(1, relevance())])
        await asyncio.sleep(0.1)
        await worker.take([(2, relevance())])
        first, second = await worker.replies(1), await worker.replies(2)
        assert worker.provider is not None
        await worker.provider.close()
    assert [type(reply) for _, reply in [*first, *second]] == [JudgeStoppedError, Completion]


async def test_a_worker_without_its_key_says_so_and_stops_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    worker = Worker(JudgeSpec(provider="openai", model="m", api_key_env="JUDGE_KEY"))
    assert "JUDGE_KEY" in ((await worker.opened()).problem or "")
    await worker.take([(1, relevance())])
    [(_, reply)] = await worker.replies(1)
    assert isinstance(reply, JudgeStoppedError)
    assert "JUDGE_KEY" in str(reply)


@pytest.mark.parametrize("kind", [TransientError, JudgeStoppedError])
def test_an_error_of_a_provider_travels_whole(kind: type[ProviderError]) -> None:
    error = kind("rate_limit", "slow down", retry_after_s=3.0, allowance=Allowance(0, 1.0, None, None))
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is kind
    assert (str(arrived), vars(arrived)) == (str(error), vars(error))
