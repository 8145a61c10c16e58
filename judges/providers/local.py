"""What local models share: where they come from, and how what waits for one goes through it in batches that fit."""

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
    """Where a model comes from.

    Attributes:
        source: a folder or a hub's name, for the loader.
        name: for people.
        weights: a hash of a folder's files.
        device: that holds the model, or in words those that share it.
        note: what of the declaration is not heeded; empty where all of it is.
    """

    source: str
    name: str
    weights: str | None
    device: str
    note: str

    def say_it_loads(self) -> None:
        """Tell whoever waits that the model is loaded now."""
        PROGRESS.info("loading model %s on %s ...%s", self.name, self.device, self.note and f" ({self.note})")


def local_source(spec: JudgeSpec) -> LocalSource:
    """What a declaration with ``path`` or ``model`` means on this machine.

    Raises:
        MissingExtraError: torch or transformers is not installed, or accelerate where ``device_map`` needs it.
        InputError: the folder is missing or holds no model, or the device is not there.
    """
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("local", f"provider {spec.provider!r}")
    if spec.device_map is not None and find_spec("accelerate") is None:
        raise MissingExtraError("local", "'device_map' (by accelerate)")
    if spec.path is not None and not (spec.path / "config.json").is_file():
        problem = "holds no config.json" if spec.path.is_dir() else "is not a folder"
        raise InputError(f"{spec.path}: {problem}; a model folder is what save_pretrained writes")
    name = spec.model or str(spec.path and spec.path.resolve().name)
    weights = _fingerprint(spec.path) if spec.path else None
    device = _device_or_error(spec.device) if spec.device_map is None else f"the devices of {spec.device_map!r}"
    return LocalSource(str(spec.path or spec.model), name, weights, device, spec.unheeded)


def _device_or_error(wanted: str | None) -> str:
    """The device to use: the one wanted, else an accelerator if there is one, else the CPU.

    Raises:
        InputError: the device is not there.
    """
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if wanted is None:
        return accelerator.type if accelerator else "cpu"
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {wanted!r} cannot be used: {one_line(str(error))}") from error
    return wanted


def _fingerprint(folder: Path) -> str:
    """Tells the models of two folders apart without reading gigabytes: a hash over all files, large ones in samples."""
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
"""A batch begins when it is full, or nobody has joined it for so long: a pass through a model takes longer."""


class LocalProvider(ABC, Generic[Model, Item, Result]):
    """Runs a model from a local folder (``path``) or by name (``model``), which is loaded with the first prompt.

    Up to ``concurrency`` prompts are handed to it at once, and go through it in batches of at most ``batch_size``.
    """

    judges_names = False

    def __init__(self, spec: JudgeSpec, **identity: str | int | float | None) -> None:
        """Check what can be checked without loading.

        Args:
            spec: the declaration.
            identity: what of the declaration decides the replies, besides the model.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            InputError: the folder is missing or holds no model, or the device is not there.
        """
        self._spec, self._local = spec, local_source(spec)
        self._size = spec.batch_size or spec.concurrency
        self._batcher: Batcher[Model, Item, Result] = Batcher(self._loaded, self._worked_off, spec.concurrency)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": spec.provider,
            "model": self._local.name,
            "weights": self._local.weights,
            **identity,
        }

    def _loaded(self) -> Model:
        self._local.say_it_loads()
        try:
            return self._load()
        except ProviderError:
            raise
        except Exception as error:  # broken files raise what the libraries below please
            problem = one_line(f"{self._local.source}: cannot be loaded: {exception_line(error)}")
            raise JudgeStoppedError("unknown_model", problem) from error

    def _worked_off(self, model: Model, items: Sequence[Item]) -> Iterator[tuple[int, Result | Exception]]:
        with without_cudnn_attention():
            yield from self._work(model, items)

    @abstractmethod
    def _load(self) -> Model: ...

    @abstractmethod
    def _work(self, model: Model, items: Sequence[Item]) -> Iterator[tuple[int, Result | Exception]]: ...

    async def close(self) -> None:
        """Release the model's memory."""
        await self._batcher.close()


class Batcher(Generic[Model, Item, Result]):
    """Collects what is waiting while the model works, and hands over each result the moment it is there.

    Args:
        load: makes the model, when the first item is there; if it raises an exception, every item gets that.
        work: takes the model and a batch; yields the place of an item in the batch and its result or an exception, in
            any order. Both run in one thread of their own. What they raise is a failure of all that have no result yet.
        size: largest batch.
    """

    def __init__(
        self,
        load: Callable[[], Model],
        work: Callable[[Model, Sequence[Item]], Iterator[tuple[int, Result | Exception]]],
        size: int,
    ) -> None:
        self._load, self._work, self._size = load, work, size
        self._model: Model | None = None
        self._unloadable: ProviderError | None = None
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._running: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """Wait for the item's result, or raise its exception."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._work_off())
        return await future

    async def _work_off(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := await self._next_batch():
            items, futures = [item for item, _ in batch], [future for _, future in batch]
            problem: ProviderError = RejectedError("exception", "the model gave no result")
            try:
                await loop.run_in_executor(self._thread, self._worked_off, items, futures, loop)
            except ProviderError as error:
                problem = error
            for future in futures:
                _settle(future, problem)

    def _worked_off(
        self, items: list[Item], futures: list[asyncio.Future[Result]], loop: asyncio.AbstractEventLoop
    ) -> None:
        try:
            left = set(range(len(items)))
            for place, result in self._work(self._loaded(), items):
                loop.call_soon_threadsafe(_settle, futures[place], result)
                left.discard(place)
                if all(futures[place].done() for place in left):  # whoever asked for the rest has given up
                    break
            return
        except BaseException as error:  # no Ctrl-C: that goes to the main thread
            failure = failure_of(error)
        raise failure  # without the exception, which may hold on to the memory of a device

    def _loaded(self) -> Model:
        if self._unloadable is not None:
            raise self._unloadable
        if self._model is None:
            try:
                self._model = self._load()
            except BaseException as error:
                self._unloadable = failure_of(error)
                raise
        return self._model

    async def _next_batch(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        """What waits; whoever has just been answered, and is about to ask again, joins it."""
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
        """End after the pass through the model that is under way, and release its memory; who waits is cancelled."""
        while self._waiting:
            self._waiting.popleft()[1].cancel()
        if self._running is not None:
            await self._running
        self._thread.shutdown()
        self._model = None


def _settle(future: asyncio.Future[Result], result: Result | Exception) -> None:
    if future.done():  # whoever asked has given up meanwhile
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


_SAID_BY_CPU_AND_MPS = ("can't allocate memory", "not enough memory", "out of memory", "alloc_failed")
"""torch has an error of its own for CUDA and XPU; elsewhere it is a ``RuntimeError`` that says so."""


def failure_of(error: BaseException) -> ProviderError:
    """The failure that an exception of a model, its tokenizer or its device is."""
    return error if isinstance(error, ProviderError) else RejectedError("exception", exception_line(error))


def attempted(
    items: Sequence[Item], work: Callable[[Item], Result]
) -> tuple[dict[int, Result], list[tuple[int, ProviderError]]]:
    """What comes of each item by its place, and the failures of those with which it raises an exception."""
    results: dict[int, Result] = {}
    failures = []
    for place, item in enumerate(items):
        try:
            results[place] = work(item)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # a tokenizer in Rust that panics raises no Exception
            failures.append((place, failure_of(error)))
    return results, failures


class Divider:
    """Divides a batch in which an exception is raised, down to single items, whose failure it then is.

    What did not fit into memory once is held not to fit again in this process, and so is anything larger: as many items
    or more, the longest of them as long or longer. Single items are always tried, since others may have held the
    memory. Other exceptions, as of a kernel that does not know a shape, tell nothing of the next batch.
    """

    def __init__(self) -> None:
        self._too_large: list[tuple[int, int]] = []

    def parts(
        self, items: Sequence[Item], length: Callable[[Item], int], work: Callable[[Sequence[Item]], list[Result]]
    ) -> Iterator[tuple[Sequence[Item], list[Result] | ProviderError]]:
        """Work on items in as few parts as succeed.

        Yields:
            Each part with its results, as soon as they are there; or a single item with its failure.
        """
        waiting = [items]
        while waiting:
            part = waiting.pop()
            size = len(part), max(map(length, part))
            if len(part) == 1 or not self._does_not_fit(*size):
                results = self._results(part, size, work)
                if len(part) == 1 or not isinstance(results, ProviderError):
                    yield part, results
                    continue
            half = len(part) // 2
            waiting += [part[half:], part[:half]]

    def _does_not_fit(self, number: int, length: int) -> bool:
        return any(number >= failed and length >= longest for failed, longest in self._too_large)

    def _results(
        self, items: Sequence[Item], size: tuple[int, int], work: Callable[[Sequence[Item]], list[Result]]
    ) -> list[Result] | ProviderError:
        """The results, or the failure. The exception, which holds on to what filled the memory, is gone."""
        try:
            return work(items)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if not _lacks_memory(error):
                return failure_of(error)
            self._too_large.append(size)
            return RejectedError("server_error", f"out of memory with {size[1]} tokens alone")


def _lacks_memory(error: BaseException) -> bool:
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(said in str(error).lower() for said in _SAID_BY_CPU_AND_MPS)


_cudnn = threading.Lock()
_without_cudnn = [0, True]
"""How many passes run without cuDNN's attention now, and whether it was on before the first of them."""


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Keep torch from cuDNN's attention while models of ours run; the switch is one for the whole process.

    On an H100 it makes a new plan for each new shape, and ends some batches of a 7B model with a RuntimeError.
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
    """How many tokens all prompts begin with alike; never the whole of one, since a reply needs something to follow."""
    first, last = min(prompts), max(prompts)  # whatever these share lies between them
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return min(alike, min(map(len, prompts)) - 1)


def cost(prompts: Sequence[Tokens]) -> int:
    """Tokens that a model works through for one batch: the shared beginning once, all else padded to the longest."""
    shared = shared_prefix(prompts)
    return shared + len(prompts) * (max(map(len, prompts)) - shared)


def arranged(prompts: Sequence[Tokens], size: int) -> list[list[int]]:
    """Batches of at most ``size`` prompts, by their places, in the order that costs least of three.

    As they came, by their tokens (so that neighbours begin alike), and by length (so that little is padded).
    """
    places = range(len(prompts))
    orders = (places, sorted(places, key=prompts.__getitem__), sorted(places, key=lambda at: len(prompts[at])))
    divided = [[list(order[start : start + size]) for start in range(0, len(prompts), size)] for order in orders]
    return min(divided, key=lambda batches: sum(cost([prompts[at] for at in batch]) for batch in batches))
