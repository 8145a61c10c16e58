"""User functions: imported by name, called in threads, and identified by the code and values that they use."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from judges.contracts import written_reply
from judges.errors import InputError, ProviderError, RagleagueError, RejectedError
from judges.masking import exception_line
from judges.sections import nearest
from judges.types import Completion, Prompt, ReplyContract

if TYPE_CHECKING:
    from judges.function_identity import FunctionReading


Result = TypeVar("Result")


class UserFunction:
    """A user's function, with a hash of its code by which its replies are found in the cache.

    Attributes:
        call: the function, or a callable object.
        reading: the hash of the function's code and values, computed before the first call.
        objects: hash of the objects of this process that could not be read; empty if there are none or a version was
            given for them.
        lacking: a message that names the unreadable objects and the consequence; empty if there are none.
    """

    def __init__(self, named: str | Callable[..., Any], version: str = "") -> None:
        """Import a function, and read the code and values that its replies depend on.

        A class is instantiated without arguments. The user declares a ``version`` for the parts that cannot be read.

        Raises:
            InputError: the module or function does not exist or cannot be imported.
        """
        from judges.function_identity import read_function

        self._named = _resolve(named) if isinstance(named, str) else named
        self.call = _instance(self._named)
        reading = read_function(self._named)
        self.reading = _STATES.get(self._state(reading), reading)
        self.objects, self.lacking = ("", "") if version else (self.reading.objects, self.reading.lacking)

    def settle(self) -> None:
        """Remember the first hash of the function under its present state, such as a counter that its calls changed.

        If a later run in this process passes the function again, its cached replies are still found.
        """
        from judges.function_identity import read_function

        _STATES[self._state(read_function(self._named))] = self.reading

    def _state(self, reading: FunctionReading) -> tuple[str, str, str]:
        from judges.function_identity import token_of

        holder = self._named.__self__ if isinstance(self._named, MethodType) else self._named
        return token_of(holder), reading.digest, reading.objects


_STATES: Final[dict[tuple[str, str, str], FunctionReading]] = {}
"""The hash made before a function's first call, by the function's state after its calls (see
``UserFunction.settle``)."""


def _resolve(named: str) -> Callable[..., Any]:
    where, _, name = named.rpartition(":")
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except FileNotFoundError:
        raise InputError(f"{where}: no such file; check its name and folder") from None
    except (Exception, SystemExit) as error:
        raise InputError(f"{where}: cannot be imported: {exception_line(error)}; fix that error") from error
    target: Any = module
    for part in name.split("."):
        target = getattr(target, part, None)
    if not callable(target):
        public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise InputError(f"{where}: no function {name!r}{nearest(name, public) if public else '; define it there'}")
    function: Callable[..., Any] = target
    return function


def name_of(named: str | Callable[..., Any]) -> str:
    """The name of a user's function, without its module or file."""
    if isinstance(named, str):
        return named.rpartition(":")[2]
    if isinstance(named, partial):
        return name_of(named.func)
    return str(getattr(named, "__qualname__", type(named).__qualname__))


def _instance(callable_: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isclass(callable_):
        return callable_
    try:
        instance = callable_()
    except Exception as error:
        raise InputError(
            f"the class {callable_.__name__} cannot be created without arguments: {exception_line(error)}; "
            "fix that error, or name a function"
        ) from error
    if not callable(instance):
        raise InputError(f"{callable_.__name__} has no method __call__; add it, or name a function")
    return instance


def _from_file(path: Path) -> ModuleType:
    """Import a user's file as a module, with its folder on the import path.

    The module is cached until the file changes, so that its objects stay the same.
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
    assert spec is not None  # never None with a loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        exec(loader.source_to_code(source, str(path)), vars(module))  # noqa: S102 - the user's own; compiled files may be stale
    except BaseException:
        del sys.modules[name]
        raise
    _SOURCES[name] = source
    return module


_SOURCES: Final[dict[str, bytes]] = {}
"""The contents of each user's file that was imported, by its module name; a changed file is imported again."""


async def called(function: Callable[[Any], Any], argument: Any) -> tuple[Any, float | None]:
    """Call a user's function; return its result, and the seconds it took if it ran in a thread (else ``None``).

    A coroutine is awaited. Anything else runs in a daemon thread: Python cannot stop a thread, and a hanging thread
    must not keep the program from exiting, as a pool's thread would.

    Raises:
        ProviderError: the function raised an exception; the cause is ``exception``.
    """
    try:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            return await function(argument), None
        returned, seconds = await _in_thread(function, argument)
        return (await returned, None) if inspect.isawaitable(returned) else (returned, seconds)
    except Exception as error:
        raise ProviderError("exception", exception_line(error)) from error


async def contained(work: Awaitable[Result]) -> Result:
    """Await a call to a judge, a provider or an agent, so that an exception in it fails only this call, not the run.

    This project's own errors are raised unchanged, and so are Ctrl-C and the cancellation of this task.

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
    except BaseException as error:  # includes SystemExit, and the exception of a Rust library that panics
        raise RejectedError("exception", exception_line(error)) from error


async def _in_thread(function: Callable[[Any], Any], argument: Any) -> tuple[Any, float]:
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
        except BaseException as raised:
            # A future refuses StopIteration, and code that was written as a script may raise SystemExit.
            is_usual = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
            error = raised if is_usual else RuntimeError(exception_line(raised))
        with suppress(RuntimeError):  # the event loop is closed: nobody waits for the result
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True).start()
    returned: tuple[Any, float] = await future
    return returned


class PromptText(str):
    """A prompt as one text, with everything that a model would see.

    Attributes:
        asked: the prompt's parts: ``system``, ``user``, ``turns``, the texts judged (``inputs``), and the contract with
            the allowed words (``contract``).

    Example:
        >>> def shorter(prompt: rl.PromptText) -> str:
        ...     answers = [answer.text for answer in prompt.asked.inputs.answers]
        ...     return "A" if len(answers[0]) < len(answers[1]) else "B"
        >>> data = rl.load({name: [{"question": "Why?", "answer": name * 3}] for name in ("yes", "maybe")})
        >>> rl.run(data, judge=shorter, store="shorter.db", progress=False).games()["verdict"].tolist()
        ['B', 'A']
    """

    asked: Prompt

    @classmethod
    def of(cls, prompt: Prompt) -> PromptText:
        turns = [f"{turn.role}: {turn.text}" for turn in prompt.turns]
        text = cls("\n\n".join([prompt.system, prompt.user, *turns]))
        text.asked = prompt
        return text


class PythonProvider:
    """Calls ``function(prompt)`` with a ``PromptText``.

    The function returns a model's reply as text, a mapping, which becomes JSON, or, for a contract with one choice, the
    label or verdict alone: ``"A"``, ``2``. A mapping or label cannot be quoted from the texts judged, so it is marked
    as the judge's own reply. An exception or a value of any other type is a failure.

    Attributes:
        lacking: a message about the parts of the function that cannot be hashed; see ``UserFunction``.
    """

    judges_names = False

    def __init__(self, function: str | Callable[..., Any], model: str = "", version: str = "") -> None:
        self._function = UserFunction(function, version)
        self.lacking = self._function.lacking
        self._model = model or name_of(function)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "python",
            "model": self._model,
            "source": self._function.reading.digest,
            **({"objects": self._function.objects} if self._function.objects else {}),
        }

    async def complete(self, prompt: Prompt) -> Completion:
        try:
            returned, _ = await called(self._function.call, PromptText.of(prompt))
        except ProviderError as error:
            raise RejectedError(error.cause, str(error)) from error
        return Completion(_reply(returned, prompt.contract), self._model)

    async def close(self) -> None:
        """Keep cached replies valid, even if the function's calls changed its state (``UserFunction.settle``)."""
        self._function.settle()


def _reply(returned: object, contract: ReplyContract) -> str:
    if isinstance(returned, Mapping):
        return json.dumps({**returned, **contract.mark_field}, ensure_ascii=False, default=str)
    if contract.form == "json" and len(contract.choices) == 1 and isinstance(returned, str | int):
        ((name, words),) = contract.choices.items()
        if returned in words:
            return written_reply(contract, {name: returned})
    if not isinstance(returned, str):
        message = f"the function returned a {type(returned).__name__}, not a text or a mapping"
        raise RejectedError("contract", message)
    return returned
