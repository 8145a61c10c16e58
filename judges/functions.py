"""Functions of a user's own: found by their names, called in threads, known by what decides their replies."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import AfterValidator, ValidationInfo

from judges.errors import InputError, ProviderError, RagleagueError, RejectedError
from judges.masking import exception_line
from judges.sections import beside_file, nearest

if TYPE_CHECKING:
    from judges.function_identity import FunctionReading


def _usable(given: str | Callable[..., Any], info: ValidationInfo) -> str | Callable[..., Any]:
    if not isinstance(given, str):
        return given
    found = re.fullmatch(r"(?:(?P<file>.+\.py)|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)", given)
    if found is None:
        raise ValueError(f"is written module:function or file.py:function, not {given!r}")
    return given if found["file"] is None else f"{beside_file(Path(found['file']), info)}:{found['name']}"


Result = TypeVar("Result")

Named: TypeAlias = Annotated[str | Callable[..., Any], AfterValidator(_usable)]
"""``module:function`` or ``file.py:function`` in a configuration; in Python also the function itself."""


class UserFunction:
    """A function that can be called, and what is known of it.

    Attributes:
        call: the function, or an object that can be called.
        reading: what was read of it before it was called.
        identity: of what could be read, the same in every process.
        objects: which objects of this process could not be read and have no version in their place; often empty.
        lacking: the same in words, and what follows from it.
    """

    def __init__(self, named: str | Callable[..., Any], version: str = "") -> None:
        """Find a function, and read what decides its replies.

        A class stands for what it makes without arguments, which must be callable.

        Args:
            named: ``module:function``, ``file.py:function``, or the function itself.
            version: the user's word for what cannot be read.

        Raises:
            InputError: there is no such module or function, or it cannot be imported.
        """
        from judges.function_identity import read_function

        self._named = _looked_up(named) if isinstance(named, str) else named
        self.call = _instance(self._named)
        before = read_function(self._named)
        self.reading = _STATES.get(self._state(before), before)
        self.identity = self.reading.digest
        self.objects, self.lacking = ("", "") if version else (self.reading.objects, self.reading.lacking)

    def settle(self) -> None:
        """What calls have changed, such as a counter or a cache, makes no other function of it in this process."""
        from judges.function_identity import read_function

        _STATES[self._state(read_function(self._named))] = self.reading

    def _state(self, reading: FunctionReading) -> tuple[str, str, str]:
        from judges.function_identity import token_of

        holder = self._named.__self__ if isinstance(self._named, MethodType) else self._named
        return token_of(holder), reading.digest, reading.objects


_STATES: Final[dict[tuple[str, str, str], FunctionReading]] = {}
"""By a function's state after calls: what was read before them."""


def _looked_up(named: str) -> Callable[..., Any]:
    where, _, name = named.rpartition(":")
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except FileNotFoundError:
        raise InputError(f"{where}: no such file; check its name and folder") from None
    except (Exception, SystemExit) as error:
        raise InputError(f"{where}: cannot be imported: {exception_line(error)}; mend that first") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        own = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        raise InputError(f"{where}: no function {name!r}{nearest(name, own) if own else '; write it'}")
    function: Callable[..., Any] = found
    return function


def name_of(named: str | Callable[..., Any]) -> str:
    """How a function is called, without the place where it stands."""
    if isinstance(named, str):
        return named.rpartition(":")[2]
    if isinstance(named, partial):
        return name_of(named.func)
    return str(getattr(named, "__qualname__", type(named).__qualname__))


def _instance(found: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isclass(found):
        return found
    try:
        made = found()
    except Exception as error:
        raise InputError(f"{found.__name__}() failed: {exception_line(error)}") from error
    if not callable(made):
        raise InputError(f"{found.__name__} has no method __call__, so what it makes cannot be called")
    return made


def _from_file(path: Path) -> ModuleType:
    """The module of a file as Python would run it: known by its name, with the files beside it within reach.

    It is run once for as long as the file stays the same, so that its objects are the same.
    """
    source = path.read_bytes()
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    name = f"agent_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    loaded = sys.modules.get(name)
    if loaded is not None and _SOURCES.get(name) == source:
        return loaded
    loader = SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader, origin=str(path))
    assert spec is not None  # of a loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        exec(loader.source_to_code(source, str(path)), vars(module))  # noqa: S102 - the user's own; compiled files may be stale
    except BaseException:
        del sys.modules[name]
        raise
    _SOURCES[name] = source
    return module


_SOURCES: Final[dict[str, bytes]] = {}
"""By module, the file that was run."""


async def called(function: Callable[[Any], Any], argument: Any) -> tuple[Any, float | None]:
    """What a function returned, and its seconds where it ran beside this program's other work.

    A coroutine is awaited. Anything else runs in a daemon thread, which is left alone when the caller stops waiting:
    Python cannot end it, and one that hangs must not keep the program from ending, as a pool's would.

    Raises:
        ProviderError: the function raised an exception; the cause is ``exception``.
    """
    try:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            return await function(argument), None
        given, seconds = await _in_thread(function, argument)
        return (await given, None) if inspect.isawaitable(given) else (given, seconds)
    except Exception as error:
        raise ProviderError("exception", exception_line(error)) from error


async def contained(work: Awaitable[Result]) -> Result:
    """The result of a judge, a provider or an agent, in which any exception may arise: it ends no run.

    Errors that this project raises on purpose pass, and so do Ctrl-C and the cancellation of this task. Errors in the
    rest of this program do not come by here, and show.

    Raises:
        RejectedError: another exception was raised; the cause is ``exception``.
    """
    task = asyncio.current_task()
    try:
        return await work
    except (RagleagueError, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError:
        if task is None or task.cancelling():
            raise
        raise RejectedError("exception", "CancelledError: the call cancelled itself") from None
    except BaseException as error:  # SystemExit too, and what a library in Rust raises when it panics
        raise RejectedError("exception", exception_line(error)) from error


async def _in_thread(function: Callable[[Any], Any], argument: Any) -> tuple[Any, float]:
    """What it returned and its seconds."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_exception(error) if error is not None else future.set_result(result)

    def work() -> None:
        result, error = None, None
        started = time.perf_counter()
        try:
            result = function(argument), time.perf_counter() - started
        except Exception as raised:
            error = raised
        except BaseException as raised:  # SystemExit, of code that was written as a script
            error = RuntimeError(exception_line(raised))
        if isinstance(error, StopIteration):  # asyncio refuses it, and whoever waits would wait for ever
            error = RuntimeError(exception_line(error))
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop has ended: nobody waits

    threading.Thread(target=work, daemon=True).start()
    returned: tuple[Any, float] = await future
    return returned
