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
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, ValidationInfo

from judges.errors import InputError, ProviderError
from judges.masking import one_line
from judges.sections import beside_file


def _usable(given: str | Callable[..., Any], info: ValidationInfo) -> str | Callable[..., Any]:
    if not isinstance(given, str):
        return given
    found = re.fullmatch(r"(?:(?P<file>.+\.py)|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)", given)
    if found is None:
        raise ValueError("is written module:function or file.py:function")
    return given if found["file"] is None else f"{beside_file(Path(found['file']), info)}:{found['name']}"


Named: TypeAlias = Annotated[str | Callable[..., Any], AfterValidator(_usable)]
"""``module:function`` or ``file.py:function`` in a configuration; in Python also the function itself."""


def load_function(named: str | Callable[..., Any]) -> tuple[Callable[..., Any], str]:
    """A function, and a hash of the file that holds it, or of its own source where it was given itself.

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
        raise InputError(f"{where}: no such file") from None
    except Exception as error:
        raise InputError(f"{where} cannot be imported: {one_line(f'{type(error).__name__}: {error}')}") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InputError(f"{where} has no function {name!r}")
    source = getattr(module, "__file__", None)
    return _instance(found), _digest(Path(source).read_bytes()) if source else ""


def name_of(named: str | Callable[..., Any]) -> str:
    """How a function is called, without the place where it stands."""
    if isinstance(named, str):
        return named.rpartition(":")[2]
    return str(getattr(named, "__qualname__", type(named).__qualname__))


def _instance(found: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isclass(found):
        return found
    try:
        made = found()
    except Exception as error:
        raise InputError(f"{found.__name__}() failed: {one_line(f'{type(error).__name__}: {error}')}") from error
    if not callable(made):
        raise InputError(f"{found.__name__} has no method __call__, so what it makes cannot be called")
    return made


def _source(function: Callable[..., Any]) -> bytes:
    """What decides what a function does, as far as it can be seen."""
    shown = function if hasattr(function, "__qualname__") else type(function)
    try:
        return inspect.getsource(shown).encode()
    except (OSError, TypeError):  # typed at a prompt, or not written in Python
        code = getattr(function, "__code__", getattr(getattr(shown, "__call__", None), "__code__", None))  # noqa: B004
        return name_of(function).encode() if code is None else code.co_code + repr(code.co_consts).encode()


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
        raise ProviderError("exception", one_line(f"{type(error).__name__}: {error}")) from error


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
            error = RuntimeError(f"{type(raised).__name__}: {raised}")
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop has ended: nobody waits

    threading.Thread(target=work, daemon=True).start()
    returned: tuple[Any, float] = await future
    return returned
