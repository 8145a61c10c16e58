"""Functions of a user's own: found by their names, called in threads, known by their source."""

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
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tokenize import TokenError
from types import CodeType, ModuleType
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, ValidationInfo

from judges.errors import InputError, ProviderError, RagleagueError, RejectedError
from judges.masking import exception_line
from judges.sections import beside_file, nearest


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


def load_function(named: str | Callable[..., Any]) -> tuple[Callable[..., Any], str]:
    """A function, and a hash of what decides its replies.

    That is the file that holds it; of a function that was given itself its own source, with the texts and numbers that
    are bound to it: defaults, arguments of a ``partial``, variables of the function around it. What it calls, and what
    an object holds, is not seen.

    A class stands for what it makes without arguments, which must be callable.

    Raises:
        InputError: there is no such module or function, or it cannot be imported.
    """
    if not isinstance(named, str):
        return _instance(named), _digest(_source(named))
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
    source = getattr(module, "__file__", None)
    return _instance(found), _digest(Path(source).read_bytes()) if source else ""


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


def _source(function: Callable[..., Any]) -> bytes:
    """What decides what a function does, as far as it can be seen."""
    if isinstance(function, partial):
        return _source(function.func) + _bound([*enumerate(function.args), *sorted(function.keywords.items())])
    shown = function if hasattr(function, "__qualname__") else type(function)
    code = getattr(function, "__code__", getattr(getattr(shown, "__call__", None), "__code__", None))  # noqa: B004
    try:
        source = inspect.getsource(shown).encode()
    except (OSError, TypeError, SyntaxError, TokenError):  # typed at a prompt, edited since, or not written in Python
        source = name_of(function).encode() if code is None else _compiled(code)
    if not inspect.isfunction(function):
        return source
    around = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            around.append((name, cell.cell_contents))
    defaults = [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
    return source + _bound([*defaults, *around])


def _compiled(code: CodeType) -> bytes:
    inner = [_compiled(each) if isinstance(each, CodeType) else repr(each).encode() for each in code.co_consts]
    return b" ".join([code.co_code, repr(code.co_names).encode(), *inner])


def _bound(values: Sequence[tuple[object, object]]) -> bytes:
    """The texts and numbers among values; other objects change while they are used, or have no words of their own."""
    told = [(name, value) for name, value in values if isinstance(value, str | int | float)]
    return repr(told).encode() if told else b""


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
