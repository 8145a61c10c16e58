"""Loads local models from folders or by name, and runs waiting prompts in batches that fit into memory."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from judges.errors import PROGRESS, InputError, JudgeStoppedError, MissingExtraError, ProviderError, RejectedError
from judges.masking import exception_line, one_line
from judges.spec import JudgeSpec

_SAMPLES, _SAMPLE_BYTES = 64, 65536

Model = TypeVar("Model")
Item = TypeVar("Item")
Result = TypeVar("Result")
Tokens: TypeAlias = list[int]


class LocalSource(Struct, frozen=True):
    """A local model's location and device.

    Attributes:
        source: the folder or the name on a hub, for the loader.
        name: the model's name in messages and results.
        weights: a hash of the folder's files; ``None`` for a model given by name.
        device: the device of the model; with ``device_map``, a description of the devices.
    """

    source: str
    name: str
    weights: str | None
    device: str


def local_source(spec: JudgeSpec) -> LocalSource:
    """Check on this machine the model and device that a judge declares, without loading the model.

    Raises:
        MissingExtraError: torch or transformers is not installed, or accelerate although ``device_map`` needs it.
        InputError: the folder does not exist or holds no model, or the device is not available.
    """
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("local", f"provider {spec.provider!r}")
    if spec.device_map is not None and find_spec("accelerate") is None:
        raise MissingExtraError("local", "'device_map' (by accelerate)")
    if spec.path is not None and not (spec.path / "config.json").is_file():
        problem = "holds no config.json" if spec.path.is_dir() else "is not a folder"
        raise InputError(f"{spec.path}: {problem}; name a model folder, as save_pretrained of transformers writes it")
    name = spec.model or str(spec.path and spec.path.resolve().name)
    weights = _fingerprint(spec.path) if spec.path else None
    device = _device_or_error(spec.device) if spec.device_map is None else f"the devices of {spec.device_map!r}"
    return LocalSource(str(spec.path or spec.model), name, weights, device)


def _device_or_error(declared: str | None) -> str:
    """Return the declared device if it works; by default an accelerator if there is one, else the CPU."""
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if declared is None:
        return accelerator.type if accelerator else "cpu"
    try:
        torch.empty(0, device=declared)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"device {declared!r} cannot be used: {one_line(str(error))}; name another 'device'"
        ) from error
    return declared


def _fingerprint(folder: Path) -> str:
    """A hash of a model folder's files; of a large file only samples are hashed, to avoid reading gigabytes."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        size = path.stat().st_size
        total.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as raw:
            step = max(size // _SAMPLES, _SAMPLE_BYTES)
            for start in range(0, size, step):
                raw.seek(start)
                total.update(raw.read(_SAMPLE_BYTES))
    return total.hexdigest()[:16]


_QUIET_S = 0.002
"""Seconds without a new prompt after which a batch starts even if it is not full, far less than a model needs for a
batch."""


class LocalProvider(ABC, Generic[Model, Item, Result]):
    """Runs a model from a local folder (``path``) or by name (``model``). The first prompt loads the model.

    Up to ``concurrency`` prompts are collected and run in batches of at most ``batch_size``.
    """

    judges_names = False

    def __init__(self, spec: JudgeSpec, **identity: str | int | float | None) -> None:
        """Check the judge's declaration (see ``local_source``). ``identity`` holds the settings that affect replies."""
        self._spec, self._local = spec, local_source(spec)
        self._size = spec.batch_size or spec.concurrency
        self._batcher: Batcher[Model, Item, Result] = Batcher(self._loaded, self._run_batch, spec.concurrency)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": spec.provider,
            "model": self._local.name,
            "weights": self._local.weights,
            **identity,
        }

    def _loaded(self) -> Model:
        note = self._spec.ignored_setting
        PROGRESS.info("loading model %s on %s ...%s", self._local.name, self._local.device, note and f" ({note})")
        try:
            return self._load()
        except ProviderError:
            raise
        except Exception as error:  # for broken files the libraries raise all kinds of exceptions
            problem = one_line(f"{self._local.source}: cannot be loaded: {exception_line(error)}")
            raise JudgeStoppedError("unknown_model", problem) from error

    def _run_batch(self, model: Model, items: Sequence[Item]) -> Iterator[tuple[int, Result | Exception]]:
        with without_cudnn_attention():
            yield from self._work(model, items)

    @abstractmethod
    def _load(self) -> Model: ...

    @abstractmethod
    def _work(self, model: Model, items: Sequence[Item]) -> Iterator[tuple[int, Result | Exception]]: ...

    async def close(self) -> None:
        await self._batcher.close()


class Batcher(Generic[Model, Item, Result]):
    """Collects items while the model is busy, runs them in batches, and returns each result as soon as it is ready.

    ``load`` is called when the first item arrives; if it raises, every item fails. ``work`` takes the model and a batch
    of at most ``size`` items, and yields each item's index in the batch with its result or an exception, in any order;
    if it raises, all items without a result fail. Both run in one separate thread.
    """

    def __init__(
        self,
        load: Callable[[], Model],
        work: Callable[[Model, Sequence[Item]], Iterator[tuple[int, Result | Exception]]],
        size: int,
    ) -> None:
        self._load, self._work, self._size = load, work, size
        self._model: Model | None = None
        self._load_error: ProviderError | None = None
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._running: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := await self._next_batch():
            items, futures = [item for item, _ in batch], [future for _, future in batch]
            problem = await loop.run_in_executor(self._thread, self._run_batch, items, futures, loop)
            for future in futures:
                _settle(future, problem)

    def _run_batch(
        self, items: list[Item], futures: list[asyncio.Future[Result]], loop: asyncio.AbstractEventLoop
    ) -> ProviderError:
        """Run a batch and settle the future of each item; returns the error for the items that got no result."""
        try:
            unanswered = set(range(len(items)))
            for place, result in self._work(self._loaded(), items):
                loop.call_soon_threadsafe(_settle, futures[place], result)
                unanswered.discard(place)
                if all(futures[place].done() for place in unanswered):  # the callers of the rest stopped waiting
                    break
        except BaseException as error:  # never Ctrl-C, which only the main thread gets
            return failure_of(error)  # without the exception, whose traceback may keep device memory in use
        return RejectedError("exception", "the model gave no result")

    def _loaded(self) -> Model:
        if self._load_error is not None:
            raise self._load_error
        if self._model is None:
            try:
                self._model = self._load()
            except BaseException as error:
                self._load_error = failure_of(error)
                raise
        return self._model

    async def _next_batch(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        """Return the next batch, after a pause in which callers that just got a result can add their next item."""
        before = -1
        while before < len(self._waiting) < self._size:
            before = len(self._waiting)
            await asyncio.sleep(_QUIET_S)
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        while self._waiting and len(batch) < self._size:
            item, future = self._waiting.popleft()
            if not future.done():
                batch.append((item, future))
        return batch

    async def close(self) -> None:
        """Cancel waiting items, wait for the batch being processed, and release the model's memory."""
        while self._waiting:
            self._waiting.popleft()[1].cancel()
        if self._running is not None:
            await self._running
        self._thread.shutdown()
        self._model = None


def _settle(future: asyncio.Future[Result], result: Result | Exception) -> None:
    if future.done():  # the caller stopped waiting
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


_OUT_OF_MEMORY_PHRASES = ("can't allocate memory", "not enough memory", "out of memory", "alloc_failed")
"""Phrases by which torch's ``RuntimeError`` reports lack of memory on CPU and MPS; other devices have their own
error."""


def failure_of(error: BaseException) -> ProviderError:
    """Convert an exception of a model, its tokenizer or its device to a ``ProviderError``."""
    return error if isinstance(error, ProviderError) else RejectedError("exception", exception_line(error))


def try_each(
    items: Sequence[Item], work: Callable[[Item], Result]
) -> tuple[dict[int, Result], list[tuple[int, ProviderError]]]:
    """Call ``work`` for each item; returns the results by index, and the failures of items that raised an exception."""
    results: dict[int, Result] = {}
    failures = []
    for place, item in enumerate(items):
        try:
            results[place] = work(item)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # a panic in a Rust tokenizer is no Exception
            failures.append((place, failure_of(error)))
    return results, failures


class Divider:
    """Halves a batch that raises an exception, down to single items, which then fail.

    A batch that ran out of memory is not tried again in this process, nor is any batch with at least as many items and
    at least the same longest length. Single items are always tried, since other items may have used the memory. After
    other exceptions, such as a kernel that does not support a shape, the next batch is tried as usual.
    """

    def __init__(self) -> None:
        self._too_large: list[tuple[int, int]] = []

    def parts(
        self, items: Sequence[Item], length: Callable[[Item], int], work: Callable[[Sequence[Item]], list[Result]]
    ) -> Iterator[tuple[Sequence[Item], list[Result] | ProviderError]]:
        """Run ``work`` on the items, in parts if the whole batch fails.

        Yields:
            Each part with its results, as soon as they are ready; or a single item with its failure.
        """
        pending = [items]
        while pending:
            part = pending.pop()
            size = len(part), max(map(length, part))
            if len(part) == 1 or not self._does_not_fit(*size):
                results = self._results(part, size, work)
                if len(part) == 1 or not isinstance(results, ProviderError):
                    yield part, results
                    continue
            half = len(part) // 2
            pending += [part[half:], part[:half]]

    def _does_not_fit(self, number: int, length: int) -> bool:
        return any(number >= failed_number and length >= longest for failed_number, longest in self._too_large)

    def _results(
        self, items: Sequence[Item], size: tuple[int, int], work: Callable[[Sequence[Item]], list[Result]]
    ) -> list[Result] | ProviderError:
        """Run ``work`` on the items; returns its results or the failure.

        The exception itself is not returned, since its traceback would keep memory in use.
        """
        try:
            return work(items)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if not _lacks_memory(error):
                return failure_of(error)
            self._too_large.append(size)
            return RejectedError("server_error", f"out of memory with a single prompt of {size[1]} tokens")


def _lacks_memory(error: BaseException) -> bool:
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(phrase in str(error).lower() for phrase in _OUT_OF_MEMORY_PHRASES)


_cudnn = threading.Lock()
_without_cudnn = [0, True]
"""Number of model passes that now run without cuDNN's attention, and torch's setting before the first of them."""


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Disable cuDNN's attention in torch, in the whole process, while a local model runs.

    On an H100 cuDNN makes a new plan for each new shape, and some batches of a 7B model fail with a RuntimeError.
    """
    from torch.backends import cuda

    with _cudnn:
        if not _without_cudnn[0]:
            _without_cudnn[1] = cuda.cudnn_sdp_enabled()
            cuda.enable_cudnn_sdp(False)
        _without_cudnn[0] += 1
    try:
        yield
    finally:
        with _cudnn:
            _without_cudnn[0] -= 1
            if not _without_cudnn[0]:
                cuda.enable_cudnn_sdp(_without_cudnn[1])


def shared_prefix(prompts: Sequence[Tokens]) -> int:
    """Length of the prompts' common prefix in tokens; less than any prompt's length, so that each has a last token."""
    first, last = min(prompts), max(prompts)  # in sorted order, the common prefix of first and last is that of all
    length = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return min(length, min(map(len, prompts)) - 1)


def cost(prompts: Sequence[Tokens]) -> int:
    """Tokens that a model processes for a batch: the shared prefix once, and each prompt's padded rest."""
    shared = shared_prefix(prompts)
    return shared + len(prompts) * (max(map(len, prompts)) - shared)


def arrange_batches(prompts: Sequence[Tokens], size: int) -> list[list[int]]:
    """Divide prompts into batches of at most ``size``, as lists of indices, in the cheapest of three orders.

    The orders are: the given order, by tokens (neighbours share prefixes), and by length (little padding).
    """
    places = range(len(prompts))
    orders = (places, sorted(places, key=prompts.__getitem__), sorted(places, key=lambda at: len(prompts[at])))
    divided = [[list(order[start : start + size]) for start in range(0, len(prompts), size)] for order in orders]
    return min(divided, key=lambda batches: sum(cost([prompts[at] for at in batch]) for batch in batches))
