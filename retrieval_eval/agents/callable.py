"""An agent that is a Python function of one's own."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from judges.errors import InputError, ProviderError
from judges.providers.texts import one_line
from judges.types import Document, Query
from retrieval_eval.agents.mapping import read_reply, read_usage
from retrieval_eval.agents.meter import Meter
from retrieval_eval.agents.spec import AgentSpec, MappingSpec
from retrieval_eval.agents.types import Reply

_MAPPING = MappingSpec(
    answer="answer",
    documents="documents",
    citations="citations",
    input_tokens="input_tokens",
    output_tokens="output_tokens",
    cost_usd="cost_usd",
)

Function = Callable[[Query], Any]


class CallableAgent:
    """Calls ``function(query)``; an exception is a failure.

    The function gives a text, or a mapping with ``answer`` and whatever it has of ``documents`` (``id``, ``text``,
    ``score``), ``citations``, ``input_tokens``, ``output_tokens`` and ``cost_usd``. One that is no coroutine is called
    in a thread; when its time is up it is left alone there, since Python cannot end it.
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self, name: str, spec: AgentSpec, function: Function, corpus: Mapping[str, Document], identity: str
    ) -> None:
        self.name, self.identity = name, identity
        self._function, self._corpus, self._timeout_s = function, corpus, spec.timeout_s
        self._free = asyncio.Semaphore(spec.concurrency)

    async def reply(self, query: Query) -> Reply:
        """Call the function."""
        meter = Meter()
        async with self._free:
            try:
                with meter.timed():
                    given, seconds = await self._called(query)
                if seconds is not None:
                    meter.latency_s = meter.tried_s = seconds
                return self._read(given, meter)
            except ProviderError as error:
                return meter.failure(error)

    async def _called(self, query: Query) -> tuple[Any, float | None]:
        """What the function returned, and its seconds where it ran beside this program's other work."""
        waiting = asyncio.timeout(self._timeout_s)
        try:
            async with waiting:
                if inspect.iscoroutinefunction(self._function):
                    return await self._function(query), None
                given, seconds = await _in_thread(self._function, query)
                return (await given, None) if inspect.isawaitable(given) else (given, seconds)
        except Exception as error:
            if waiting.expired():
                raise ProviderError("timeout", f"no reply within {self._timeout_s:g} s") from None
            raise ProviderError("exception", one_line(f"{type(error).__name__}: {error}")) from error

    def _read(self, given: Any, meter: Meter) -> Reply:
        if isinstance(given, str):
            given = {"answer": given}
        if given is None:
            raise ProviderError("empty", "the function returned None")
        if not isinstance(given, Mapping):
            message = f"the function returned a {type(given).__name__}, not a text or a mapping"
            raise ProviderError("contract", message)
        body = dict(given)
        meter.usage, meter.cost_usd = read_usage(body, _MAPPING)
        found = read_reply(body, _MAPPING, self._corpus)
        return meter.reply(found.answer, found.documents, found.citations)

    async def close(self) -> None:
        """Nothing is held."""


async def _in_thread(function: Function, query: Query) -> tuple[Any, float]:
    """What it returned and its seconds.

    In a daemon thread: one that hangs must not keep the program from ending, as a pool's would.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_exception(error) if error is not None else future.set_result(result)

    def work() -> None:
        result, error = None, None
        started = time.perf_counter()
        try:
            result = function(query), time.perf_counter() - started
        except Exception as raised:
            error = raised
        except BaseException as raised:  # SystemExit, of code that was written as a script
            error = RuntimeError(f"{type(raised).__name__}: {raised}")
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop has ended: nobody waits

    threading.Thread(target=work, daemon=True).start()
    returned: tuple[Any, float] = await future
    return returned


def load_function(named: str) -> tuple[Function, str]:
    """The function that ``module:function`` or ``file.py:function`` names, and a hash of the file that holds it.

    Raises:
        InputError: there is no such module or function, or it cannot be imported.
    """
    where, _, name = named.rpartition(":")
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except FileNotFoundError:
        raise InputError(f"{where}: no such file") from None
    except Exception as error:
        raise InputError(f"{where} cannot be imported: {one_line(f'{type(error).__name__}: {error}')}") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InputError(f"{where} has no function {name!r}")
    source = getattr(module, "__file__", None)
    return found, _digest(Path(source).read_bytes()) if source else ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _from_file(path: Path) -> ModuleType:
    """The module of a file as Python would run it: known by its name, with the files beside it within reach."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    found = importlib.util.spec_from_file_location(f"agent_{_digest(str(path).encode())}", path)
    assert found is not None  # of a name that ends in .py
    assert found.loader is not None
    module = sys.modules[found.name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
