"""What waits for a local model goes through it in batches that memory holds, and each reply comes when it is made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from threading import Event

import pytest

from judges.providers.local import Batcher, Memory


async def test_what_waits_together_is_worked_off_together_and_no_more_than_the_batch_size() -> None:
    sizes: list[int] = []

    def work(factor: int, items: Sequence[int]) -> Iterator[tuple[int, int | Exception]]:
        sizes.append(len(items))
        yield from ((place, item * factor) for place, item in enumerate(items))

    batcher: Batcher[int, int, int] = Batcher(lambda: 10, work, 4)
    assert await asyncio.gather(*(batcher.submit(item) for item in range(10))) == [item * 10 for item in range(10)]
    assert sizes == [4, 4, 2]
    await batcher.close()


async def test_whoever_has_just_been_answered_joins_the_next_batch() -> None:
    sizes: list[int] = []

    def work(_: None, items: Sequence[int]) -> Iterator[tuple[int, int | Exception]]:
        sizes.append(len(items))
        yield from enumerate(items)

    batcher: Batcher[None, int, int] = Batcher(lambda: None, work, 8)

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
    with pytest.raises(RuntimeError, match="out of order"):
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
        with pytest.raises(RuntimeError, match="no such model"):
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

    memory = Memory()

    def done(items: list[int]) -> list[int | None]:
        parts = memory.parts(items, lambda item: item, work)
        return [result for part, results in parts for result in results or [None] * len(part)]

    assert done([50] * 4) == [500] * 4, "in the order they came"
    assert tried == [(4, 50), (2, 50), *[(1, 50)] * 4], "the other two of the four are not tried together"
    del tried[:]
    done([20, 20, 20, 20])
    assert tried == [(4, 20)], "shorter ones may fit"
    done([60, 20, 20])
    assert tried[1:] == [(1, 60), (2, 20)], "as long and as many as what failed before"
    assert done([90]) == [None], "a single one is always tried"


def test_another_error_of_the_model_is_not_taken_for_a_lack_of_memory() -> None:
    def work(items: Sequence[int]) -> list[int]:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        list(Memory().parts([1, 2], lambda item: item, work))
