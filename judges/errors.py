"""One tree of errors, and when to stop asking. What a user can cause is an ``InputError``: one line, exit status 2."""

from __future__ import annotations

import errno
import logging
import math
import shlex
import stat
import sys
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from judges.masking import without_passwords

if TYPE_CHECKING:
    from judges.types import Allowance


class RagleagueError(Exception):
    """Base of every error that ragleague raises on purpose. Messages never show a password.

    Example:
        >>> issubclass(rl.InputError, rl.RagleagueError) and issubclass(rl.StoreError, rl.RagleagueError)
        True
    """

    def __str__(self) -> str:
        return without_passwords(super().__str__())


class InputError(RagleagueError):
    """The user's input is wrong; the message says where and what to do.

    The message can always be printed, even if it quotes a file name that is not UTF-8.

    Example:
        >>> rl.open("nowhere.db")
        Traceback (most recent call last):
        judges.errors.InputError: nowhere.db: no store there; 'ragleague run' makes one
    """

    def __init__(self, message: str) -> None:
        super().__init__(message.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00"))


class ConfigError(InputError):
    """The YAML file does not say what it must."""


class PromptError(InputError):
    """A prompt file is malformed or asks for something a judge cannot give."""


class MissingExtraError(InputError):
    """A library of an optional extra is not installed."""

    def __init__(self, extra: str, purpose: str) -> None:

        super().__init__(f"{purpose} needs the extra '{extra}', which is not installed: {how_to_install(extra)}")


class DataError(InputError):
    """A data file is wrong; names the file, the line and the value."""

    def __init__(self, path: Path | str, problem: str, *, line: int | None = None, value: str | None = None) -> None:
        self.path, self.problem, self.line, self.value = str(path), problem, line, value
        where = f"{path}:{line}" if line is not None else str(path)
        shown = "" if value is None else f" ({_shortened(value)!r})"
        super().__init__(f"{where}: {problem}{shown}")


def reason(error: OSError) -> str:
    """Why a file cannot be read or written, in the system's words, and what to do."""
    help_ = _HELP.get(error.errno or 0)
    return f"{error.strerror or error}{f'; {help_}' if help_ else ''}"


def a_file(path: Path) -> Path:
    """The path again, if what stands there ends: reading a pipe or a device may wait for ever.

    Raises:
        OSError: it is a pipe, a socket or a device.
    """
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.ENXIO, "a pipe or a device stands there")
    return path


_HELP: Final = {
    errno.EACCES: "allow it, or name another",
    errno.EEXIST: "a file stands where the folder should; name another",
    errno.EISDIR: "name a file",
    errno.ELOOP: "the link leads to itself; name a file",
    errno.ENAMETOOLONG: "shorten it",
    errno.ENOENT: "make its folder, or name another",
    errno.ENOSPC: "make room, or name another disk",
    errno.ENOTDIR: "a file stands where its folder should",
    errno.ENXIO: "name a file",
    errno.EROFS: "name another place",
}


class StoreError(RagleagueError):
    """The store cannot be read or written; the message names the store and says what to do.

    Example:
        >>> from pathlib import Path
        >>> Path("broken.db").write_text("no database")
        11
        >>> rl.open("broken.db")
        Traceback (most recent call last):
        judges.errors.StoreError: broken.db: not a ragleague store, or damaged; name another, or restore it
    """


class StoreGoneError(StoreError):
    """The store's server went away during a run, and did not come back in time."""


class ReplyError(RagleagueError):
    """A reply outside its contract. The message is what the judge is told when it is asked again."""


class UnclearReplyError(ReplyError):
    """A reply that may be a quotation of the texts shown. The next one must carry a mark that no text holds."""


class ProviderError(RagleagueError):
    """A call brought no reply. ``cause`` is one of ``CAUSES``.

    Attributes:
        retry_after_s: how long the server asks to wait.
        allowance: what it says is left of its rate limits.
        to_do: what mends it, where that is not what mends the cause (``TO_DO``); the message ends with it.
        of_text: whether it is about what this request says, so that it tells nothing of others.
    """

    def __init__(
        self,
        cause: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        allowance: Allowance | None = None,
        to_do: str = "",
        of_text: bool = False,
    ) -> None:
        super().__init__(f"{message}; {to_do}" if to_do else message)
        self.cause = cause
        self.retry_after_s = retry_after_s
        self.allowance = allowance
        self.to_do = to_do
        self.of_text = of_text

    @property
    def problem(self) -> str:
        """The message without ``to_do``."""
        return str(self).removesuffix(f"; {self.to_do}") if self.to_do else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels between processes whole; an exception by itself would be made again from its message alone."""
        named = ("retry_after_s", "allowance", "to_do", "of_text")
        return partial(type(self), **{name: getattr(self, name) for name in named}), (self.cause, self.problem)


class TransientError(ProviderError):
    """Worth another attempt: connection lost, time out, rate limit, server error."""


class NoServiceError(TransientError):
    """No connection, or an answer that is none of such a service.

    That may pass where the service has answered before; where it never has, the address is wrong or nothing runs there.
    """


class BrokenReplyError(TransientError):
    """A reply that the server itself calls failed. It may be paid for, and the server is up: it is not waited for."""


class RejectedError(ProviderError):
    """This request will never succeed (bad request, refusal); others may."""


class JudgeStoppedError(ProviderError):
    """No request to this judge can succeed (bad key, unknown model): stop asking it."""


class StillWaitingError(RagleagueError):
    """The request is in a batch, or was to go into one, and nobody waits for it any more. No fault of the judgment."""


CAUSES = {
    "connection": "the server could not be reached or dropped the connection",
    "timeout": "the server did not answer in time",
    "rate_limit": "the server asked to slow down",
    "server_error": "the server failed",
    "bad_request": "the server refused the request as malformed",
    "authentication": "the key is missing or wrong",
    "quota": "the account has no credit left",
    "unknown_model": "the server does not know the model or the address",
    "other_model": "another model replied than the judge's",
    "prompt_cut": "the server read only a part of the prompt",
    "refusal": "the model refused to answer",
    "content_filter": "the provider's filter withheld the reply",
    "truncated": "the reply was cut off before it ended",
    "too_long": "the reply was longer than any that can be used",
    "empty": "the reply was empty",
    "contract": "the reply was outside the contract, also when asked again",
    "not_recorded": "no reply is recorded for this prompt",
    "exception": "the judge's code, or its model's, raised an exception",
    "budget": "the judge's max_cost_usd was spent",
    "stopped": "the judge was stopped before this call",
    "cancelled": "the batch that held this request was cancelled",
}
"""Every cause a failure can have, with its meaning."""

TO_DO = {
    "connection": "start the server, or mend {address}",
    "timeout": "raise 'timeout_s', or lower 'concurrency'",
    "rate_limit": "lower 'concurrency', or set 'requests_per_minute'",
    "server_error": "check the server and {address}",
    "bad_request": "mend the setting that the server names",
    "authentication": "check {key}",
    "other_model": "name the model that replies as 'model'",
    "prompt_cut": "raise the server's context length",
    "quota": "add credit to the account of {key}",
    "refusal": "choose another 'model'",
    "truncated": "raise 'max_tokens'",
    "too_long": "lower 'max_tokens', or choose another 'model'",
    "empty": "raise 'max_tokens', or choose another 'model'",
    "contract": "try another 'model' or prompt (see 'ragleague failures')",
    "exception": "mend {code}",
}
"""What mends a cause that holds for every call; ``{address}`` and ``{key}`` are what the judge has them from,
``{code}`` is what raised an exception."""

_OF_THE_TEXTS = {"bad_request", "refusal", "content_filter", "truncated", "too_long", "empty", "contract", "cancelled"}
RETRIED_NEXT_RUN = frozenset(CAUSES.keys() - _OF_THE_TEXTS)
"""Causes under which nothing was said about the texts judged: the next run asks again."""


def to_be_asked(known: object | None) -> bool:
    """Whether a judgment of which the store knows this result needs a call, unless somebody retries every failure."""
    return known is None or getattr(known, "cause", None) in RETRIED_NEXT_RUN


def remedy(cause: str) -> str:
    """What brings a judgment that failed for a cause, a phrase: what to mend first, and how to ask again."""
    if cause in _FIRST:
        return f"run again, {_FIRST[cause]}"
    again = "run again" if cause in RETRIED_NEXT_RUN else "run again with --retry-failed"
    first = {**TO_DO, **_OF_SOME}.get(cause, "").partition(" (")[0]
    first = first.format(address="'base_url'", key="its variable", code="the judge's code")
    return f"{first}; then {again}" if first else again


_OF_SOME: Final = {"content_filter": "choose another 'model', or loosen the filter"}
"""What mends a cause that is about single texts."""
_FIRST: Final = {
    "not_recorded": "once its reply is recorded",
    "budget": "with a larger 'max_cost_usd'",
    "unknown_model": "with a 'model' that the server has",
}
"""Causes under which running again helps only after something else."""


def _shortened(value: str, limit: int = 50) -> str:
    return value if len(value) <= limit else value[: limit - 1] + "…"


DISTRIBUTION = "ragleague"


def how_to_install(extra: str) -> str:
    """The command that adds an extra's libraries to this installation.

    It names the libraries and not us: an installation may come from a folder or a file that is not there any more, and
    what an index offers under our name may be somebody else's.
    """
    from packaging.requirements import Requirement

    wanted = []
    for line in metadata.requires(DISTRIBUTION) or ():
        requirement = Requirement(line)
        marker = requirement.marker  # some are of systems, and hold without an extra
        if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            requirement.marker = None
            wanted.append(str(requirement))
    pip = [sys.executable, "-m", "pip", "install"]
    if util.find_spec("pip") is None:  # as where uv made the environment
        pip = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*pip, *wanted])


PROGRESS: Final = logging.getLogger("ragleague.progress")
"""A line for each thing that takes time: a model that is loaded, a batch that is looked for."""


FEW: Final = 5
"""Calls, or judgments, that may fail for one cause."""
_SAY_NOTHING: Final = frozenset({"stopped", "budget", "cancelled", "not_recorded", "content_filter"})
"""Causes that tell nothing of the settings: recordings need not hold every prompt, a filter withholds one text."""


class Misses:
    """Counts failures by their cause since the last success.

    Args:
        patience_s: how long failures may go on after a success; before any, a few are enough.
    """

    def __init__(self, patience_s: float = math.inf) -> None:
        self._patience_s, self._counts = patience_s, Counter[str]()
        self._since: float | None = None
        self.over = False
        """Whether something has succeeded."""

    def hit(self) -> None:
        """Something succeeded."""
        self._counts.clear()
        self._since, self.over = None, True

    def miss(self, cause: str) -> bool:
        """Count a failure; returns whether it is time to stop."""
        if cause in _SAY_NOTHING or (self.over and cause not in RETRIED_NEXT_RUN):
            return False
        self._counts[cause] += 1
        self._since = self._since or time.monotonic()
        long = not self.over or time.monotonic() - self._since >= self._patience_s
        return long and self._counts[cause] >= FEW

    def alike(self, message: str) -> str:
        """Why somebody is not asked any more: the last of the failures, and how many there were or for how long."""
        how = f"nothing but failures for {self._patience_s:g} s" if self.over else f"{FEW} failures alike"
        return f"{how}: {message}"
