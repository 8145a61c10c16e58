"""Old names of commands and options: each still works, and a note on standard error gives the new one.

Delete this module in the next version, with its one call in ``arena.cli.app``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field


class Old(Struct, frozen=True):
    """The replacement of an old command.

    Attributes:
        now: the new command, including options.
        options: its renamed options. ``{}`` stands for the value; without it the new option is a flag. A mapping gives
            the replacement of each choice. ``{}`` alone makes the value the last argument; ``""`` drops the option.
        arguments: its arguments that became options, by position.
    """

    now: str
    options: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    arguments: Mapping[int, str] = field(default_factory=dict)


COMMON_OPTIONS: Final = {"--json": "--format json", "--bootstrap": "--samples {}"}
"""Options that were renamed in every command."""

_LIMITS: Final = {"mb": "megabytes", "pages": "pages", "seconds": "seconds"}
_RETRIEVAL_OPTIONS: Final = {"--model-path": "--set path={}"} | {
    f"--{key.replace('_', '-')}": f"--set {key}={{}}" for key in ("rrf_k", "model", "base_url", "api_key_env")
}
_RATING_SETTINGS: Final = ("ties", "preferences", "intervals", "anchor", "initial", "scale", "k", "tournaments")
_RATING_OPTIONS: Final = {
    "--position": "--set position=true",
    "--skip-empty": "--skip-faulty",
    "--skip-self-play": "--skip-faulty",
    **{f"--{key}": f"--set {key}={{}}" for key in _RATING_SETTINGS},
}
OLD: Final[Mapping[str, Old]] = {
    "demo": Old("demo", {"--dir": "--out {}"}),
    "synth": Old("make queries"),
    "agents run": Old("make answers"),
    "agents retrieve": Old("retrieve", _RETRIEVAL_OPTIONS),
    "retrieve": Old("retrieve", _RETRIEVAL_OPTIONS),
    "documents": Old("documents", {f"--max-{name}": f"--set {key}={{}}" for name, key in _LIMITS.items()}),
    "rate": Old("rate", _RATING_OPTIONS),
    "leaderboard": Old("leaderboard", {"--quick": ""}),
    "batches": Old("failures --batches"),
    "pool": Old("metrics", {"--depth": "--pool {}"}),
    "qrels agreement": Old("calibrate", arguments={0: "--people {}"}),
    "qrels export": Old("export --what qrels", {"--out": "{}"}),
    "votes list": Old("export --what votes"),
    "votes export": Old("export --what votes"),
    "votes import": Old("import", arguments={0: "--store {}"}),
    "import": Old("import", {"--name": "--tournament {}"}),
    "exam generate": Old("make bank", arguments={1: "--out {}"}),
    "exam grade": Old("make grades"),
    "exam score": Old("exam"),
    "exam qrels": Old("exam --show labels", arguments={1: "--out {}"}),
    "exam agreement": Old("exam --show agreement"),
    "exam oversight": Old("exam --show summary"),
    "exam import": Old("convert"),
    "exam export": Old("convert"),
    "bank show": Old("bank"),
    "bank diff": Old("bank"),
    "bank convert": Old("convert"),
    "nuggets create": Old("make nuggets"),
    "nuggets assign": Old("make assignments"),
    "nuggets edit": Old("bank", {"--by": "--editor {}"}),
    "nuggets score": Old("nuggets", {"--relevant": "--min-label {}"}),
    "nuggets correlate": Old("nuggets", {"--column": "--score {}"}, {1: "--with {}"}),
    "calibrate": Old(
        "calibrate",
        {
            "--people-column": "--column people:{}",
            "--skip-empty": "--skip-faulty",
            "--games": {"ordered": "--as-games", "reconciled": "--reconcile"},
        },
    ),
}
"""Replacements by old command."""

_FLAGS: Final = frozenset({"--help", "--retry-failed", "--force", "--secret"})
"""Flags, old and new, of the commands with ``arguments``."""


def translate_old_names(words: Sequence[str]) -> list[str]:
    """A command line with old names replaced; prints a note about each on standard error."""
    name = next((" ".join(words[:count]) for count in (2, 1) if " ".join(words[:count]) in OLD), words[0])
    old = OLD.get(name, Old(name))
    replacements = {} if name == old.now else {f"'{name}'": f"'{old.now}'"}
    rest = list(_translate_options(words[len(name.split()) :], old, replacements))
    moved: list[str] = []
    if old.arguments:
        rest, moved = _move_arguments(rest, old)
    if replacements:
        notes = ", ".join(f"{then} is now {now}" for then, now in replacements.items())
        print(f"note: {notes}; the old names work until the next version", file=sys.stderr)
    return [*old.now.split(), *rest, *moved]


def _translate_options(words: Sequence[str], old: Old, replacements: dict[str, str]) -> Iterator[str]:
    remaining, last_arguments = iter(words), list[str]()
    for word in remaining:
        if word == "--":
            yield from (word, *remaining)
            return
        option, equals, value = word.partition("=")
        new_option = old.options.get(option, COMMON_OPTIONS.get(option))
        if new_option is None:
            yield word
            continue
        if not equals and (isinstance(new_option, Mapping) or "{}" in new_option):
            value = next(remaining, "")
        if isinstance(new_option, Mapping):
            option, new_option = f"{option} {value}", new_option.get(value, option)
        replacements[option] = (
            new_option.replace("={}", "=...").removesuffix(" {}") if new_option != "{}" else "the last argument"
        )
        replacements[option] = replacements[option] or "not needed"
        if new_option == "{}":
            last_arguments.append(value)
        else:
            yield from (part.replace("{}", value) for part in new_option.split())
    yield from last_arguments


def _move_arguments(words: Sequence[str], old: Old) -> tuple[list[str], list[str]]:
    """Split the words into those that stay and the options that replace arguments."""
    unchanged: list[str] = []
    moved: list[str] = []
    position, remaining = 0, iter(words)
    for word in remaining:
        if word.startswith("-"):
            unchanged.append(word)
            if "=" not in word and word not in _FLAGS:
                unchanged += [value for value in [next(remaining, None)] if value is not None]
            continue
        if position in old.arguments:
            moved += old.arguments[position].format(word).split(" ", 1)
        else:
            unchanged.append(word)
        position += 1
    return unchanged, moved
