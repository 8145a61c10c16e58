"""The exceptions of all packages, the causes of failed calls with their remedies, and when to stop calling.

A user's mistake raises ``InputError``; the command prints it on one line and exits with status 2.
"""

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
from typing import Any, Final

from judges.masking import without_passwords


class RagleagueError(Exception):
    """Base of every error this project raises on purpose. Passwords in addresses are masked in its message.

    Example:
        >>> issubclass(rl.InputError, rl.RagleagueError) and issubclass(rl.StoreError, rl.RagleagueError)
        True
    """

    def __str__(self) -> str:
        return without_passwords(super().__str__())


class InputError(RagleagueError):
    """The user's input is wrong; the message says where and what to do.

    The message can always be printed: bytes that are not UTF-8, such as in a file's name, are escaped.

    Example:
        >>> rl.open("nowhere.db")
        Traceback (most recent call last):
        judges.errors.InputError: nowhere.db: no store there; 'ragleague run' makes one
    """

    def __init__(self, message: str) -> None:
        super().__init__(message.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00"))


class ConfigError(InputError):
    """A configuration file (YAML) is invalid."""


class PromptError(InputError):
    """A prompt file is malformed, its templates fail, or its reply section does not fit its task."""


class MissingExtraError(InputError):
    """A feature needs a library that is only installed with one of this project's optional extras."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the extra '{extra}', which is not installed: {how_to_install(extra)}")


class DataError(InputError):
    """A data file is wrong; the message names the file, the line and the value."""

    def __init__(self, path: Path | str, problem: str, *, line: int | None = None, value: str | None = None) -> None:
        self.path, self.problem, self.line, self.value = str(path), problem, line, value
        where = f"{path}:{line}" if line is not None else str(path)
        short = value if value is None or len(value) <= 50 else f"{value[:49]}…"
        shown = "" if short is None else f" ({short!r})"
        super().__init__(f"{where}: {problem}{shown}")


def reason(error: OSError) -> str:
    """Why a file cannot be read or written, as the operating system says, and what to do about it."""
    help_ = _HELP.get(error.errno or 0)
    return f"{error.strerror or error}{f'; {help_}' if help_ else ''}"


def regular_file(path: Path) -> Path:
    """Return ``path`` unchanged, unless it is a pipe, a socket or a device: reading one may block for ever.

    Raises:
        OSError: the path is a pipe, a socket or a device.
    """
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.ENXIO, "this is a pipe or a device")
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
    """The connection to the store's server was lost during a run, and could not be restored in time."""


class ReplyError(RagleagueError):
    """A reply that breaks its contract. When the judge is asked again, the message tells it what was wrong."""


class UnclearReplyError(ReplyError):
    """The reply may be quoted from the texts shown. The next reply must carry a mark that occurs in none of them."""


class ProviderError(RagleagueError):
    """A call to a model, server or function returned no usable reply. ``cause`` is one of ``CAUSES``.

    Attributes:
        retry_after_s: how long the server asks to wait, in seconds.
        to_do: what the user can do, if it differs from the usual remedy for the cause (``TO_DO``); it ends the message.
        of_text: whether the text of this request caused the error, so that other requests may succeed.
    """

    def __init__(
        self, cause: str, message: str, *, retry_after_s: float | None = None, to_do: str = "", of_text: bool = False
    ) -> None:
        super().__init__(f"{message}; {to_do}" if to_do else message)
        self.cause, self.to_do = cause, to_do
        self.retry_after_s, self.of_text = retry_after_s, of_text

    @property
    def problem(self) -> str:
        """The error's message without the remedy (``to_do``)."""
        return str(self).removesuffix(f"; {self.to_do}") if self.to_do else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all attributes; by default an unpickled exception has only its message."""
        attributes = ("retry_after_s", "to_do", "of_text")
        return partial(type(self), **{name: getattr(self, name) for name in attributes}), (self.cause, self.problem)


class TransientError(ProviderError):
    """Another attempt may succeed: connection lost, timeout, rate limit, server error."""


class NoServiceError(TransientError):
    """No connection, or an answer that does not come from the expected service.

    If the service has answered before, the error may be temporary; otherwise the address is wrong or no server runs.
    """


class BrokenReplyError(TransientError):
    """The server failed while writing a reply, and says so. The reply may be billed, and the server is running."""


class RejectedError(ProviderError):
    """This request will never succeed (bad request, refusal); other requests may."""


class JudgeStoppedError(ProviderError):
    """No request to this judge can succeed (bad key, unknown model): stop asking it."""


class StillWaitingError(RagleagueError):
    """The run stopped waiting for a batch that contains this request. The next run waits for the same batch again."""


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
"""The name of each cause for which a call can fail, with its meaning."""

TO_DO = {
    "connection": "start the server, or fix {address}",
    "timeout": "raise 'timeout_s', or lower 'concurrency'",
    "rate_limit": "lower 'concurrency', or set 'requests_per_minute'",
    "server_error": "check the server and {address}",
    "bad_request": "fix the setting that the server names",
    "authentication": "check {key}",
    "other_model": "name the model that replies as 'model'",
    "prompt_cut": "raise the server's context length",
    "quota": "add credit to the account of {key}",
    "refusal": "choose another 'model'",
    "truncated": "raise 'max_tokens'",
    "too_long": "lower 'max_tokens', or choose another 'model'",
    "empty": "raise 'max_tokens', or choose another 'model'",
    "contract": "try another 'model' or prompt (see 'ragleague failures')",
    "exception": "fix {code}",
}
"""What the user can do, for each cause that affects every call. ``{address}`` and ``{key}`` stand for the settings that
hold the server's address and key, ``{code}`` for the user's function that raised an exception."""

_TEXT_CAUSES = {"bad_request", "refusal", "content_filter", "truncated", "too_long", "empty", "contract", "cancelled"}
RETRIED_NEXT_RUN = frozenset(CAUSES.keys() - _TEXT_CAUSES)
"""Causes of failures that do not depend on the texts judged; the next run calls the judge again for such judgments."""


def to_be_asked(known: object | None) -> bool:
    """Whether a run calls the judge for a judgment, given its stored result (``None`` if there is none).

    This is the rule without ``--retry-failed``.
    """
    return known is None or getattr(known, "cause", None) in RETRIED_NEXT_RUN


def remedy(cause: str) -> str:
    """What to do about judgments that failed for a cause, as a phrase: what to change first, and how to run again."""
    if cause in _RERUN_CONDITIONS:
        return f"run again, {_RERUN_CONDITIONS[cause]}"
    again = "run again" if cause in RETRIED_NEXT_RUN else "run again with --retry-failed"
    first = {**TO_DO, "content_filter": "choose another 'model', or loosen the filter"}.get(cause, "").partition(" (")[
        0
    ]
    first = first.format(address="'base_url'", key="its variable", code="the judge's code")
    return f"{first}; then {again}" if first else again


_RERUN_CONDITIONS: Final = {
    "not_recorded": "once its reply is recorded",
    "budget": "with a larger 'max_cost_usd'",
    "unknown_model": "with a 'model' that the server has",
}
"""What must have changed before another run helps, by cause, as the end of a sentence that begins "run again"."""


DISTRIBUTION = "ragleague"


def how_to_install(extra: str) -> str:
    """The command that adds an extra's libraries to this installation.

    The command names the libraries instead of ``ragleague[extra]``: this installation may come from a folder or file
    that was deleted since, and the package of this name on an index may be somebody else's.
    """
    from packaging.requirements import Requirement

    missing = []
    for line in metadata.requires(DISTRIBUTION) or ():
        requirement = Requirement(line)
        marker = requirement.marker  # markers of operating systems are true without an extra too
        if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            requirement.marker = None
            missing.append(str(requirement))
    pip = [sys.executable, "-m", "pip", "install"]
    if util.find_spec("pip") is None:  # in an environment that uv made
        pip = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*pip, *missing])


PROGRESS: Final = logging.getLogger("ragleague.progress")
"""The logger of slow steps, such as loading a model or searching for a batch; one line for each."""


ENOUGH: Final = 5
"""A judge is stopped after this many failures with the same cause and no success in between."""
_UNINFORMATIVE_CAUSES: Final = frozenset({"stopped", "budget", "cancelled", "not_recorded", "content_filter"})
"""Causes that do not count towards stopping a judge, since they do not show a wrong setting: a filter, for example, may
withhold a single text."""


class FailureCounter:
    """Counts a judge's failed calls by cause since its last success, and decides when to stop calling it.

    Args:
        patience_s: how long failures may continue after a success, in seconds. Before the first success, ``ENOUGH``
            failures for one cause suffice.
    """

    def __init__(self, patience_s: float = math.inf) -> None:
        self._patience_s, self._counts = patience_s, Counter[str]()
        self._since: float | None = None
        self.has_succeeded = False

    def add_success(self) -> None:
        self._counts.clear()
        self._since, self.has_succeeded = None, True

    def add_failure(self, cause: str) -> bool:
        """Count a failed call by its cause; returns whether the judge should be stopped."""
        if cause in _UNINFORMATIVE_CAUSES or (self.has_succeeded and cause not in RETRIED_NEXT_RUN):
            return False
        self._counts[cause] += 1
        self._since = self._since or time.monotonic()
        impatient = not self.has_succeeded or time.monotonic() - self._since >= self._patience_s
        return impatient and self._counts[cause] >= ENOUGH

    def stop_message(self, message: str) -> str:
        """Why no more calls are made: how many failures or for how long, followed by ``message``."""
        how = f"nothing but failures for {self._patience_s:g} s" if self.has_succeeded else f"{ENOUGH} failures alike"
        return f"{how}: {message}"
