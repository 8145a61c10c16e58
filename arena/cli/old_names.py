"""Names of commands and options of the version before: each still works, and one line says today's.

This module goes with the next version, with its one call in ``arena.cli.app``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field


class Old(Struct, frozen=True):
    """What became of a command.

    Attributes:
        now: today's words for it, with the options that it is today.
        options: its options that have other names today. ``{}`` stands for the value; an option without it is a flag;
            of a choice what each value is today. ``{}`` alone is an argument, the last; ``""`` is an option that went.
        arguments: its arguments that are options today, by their place.
    """

    now: str
    options: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    arguments: Mapping[int, str] = field(default_factory=dict)


EVERYWHERE: Final = {"--json": "--format json", "--bootstrap": "--samples {}"}
"""Options that had other names, of whatever command."""

_LIMITS: Final = {"mb": "megabytes", "pages": "pages", "seconds": "seconds"}
_OF_RETRIEVAL: Final = {"--model-path": "--set path={}"} | {
    f"--{key.replace('_', '-')}": f"--set {key}={{}}" for key in ("rrf_k", "model", "base_url", "api_key_env")
}
_FINE: Final = ("ties", "preferences", "intervals", "anchor", "initial", "scale", "k", "tournaments")
_OF_RATINGS: Final = {
    "--position": "--set position=true",
    "--skip-empty": "--skip-faulty",
    "--skip-self-play": "--skip-faulty",
    **{f"--{key}": f"--set {key}={{}}" for key in _FINE},
}
OLD: Final[Mapping[str, Old]] = {
    "demo": Old("demo", {"--dir": "--out {}"}),
    "synth": Old("make queries"),
    "agents run": Old("make answers"),
    "agents retrieve": Old("retrieve", _OF_RETRIEVAL),
    "retrieve": Old("retrieve", _OF_RETRIEVAL),
    "documents": Old("documents", {f"--max-{name}": f"--set {key}={{}}" for name, key in _LIMITS.items()}),
    "rate": Old("rate", _OF_RATINGS),
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
"""What had another name, by its words then."""

_FLAGS: Final = frozenset({"--help", "--retry-failed", "--force", "--secret"})
"""Options without a value that commands with ``arguments`` have, and had."""


def renewed(words: Sequence[str]) -> list[str]:
    """A command line in today's names; says on standard error what it changes."""
    name = next((" ".join(words[:count]) for count in (2, 1) if " ".join(words[:count]) in OLD), words[0])
    old = OLD.get(name, Old(name))
    said = {} if name == old.now else {f"'{name}'": f"'{old.now}'"}
    rest = list(_translated(words[len(name.split()) :], old, said))
    moved: list[str] = []
    if old.arguments:
        rest, moved = _moved(rest, old)
    if said:
        told = ", ".join(f"{then} is now {now}" for then, now in said.items())
        print(f"note: {told}; the old names work until the next version", file=sys.stderr)
    return [*old.now.split(), *rest, *moved]


def _translated(words: Sequence[str], old: Old, said: dict[str, str]) -> Iterator[str]:
    left, last = iter(words), list[str]()
    for word in left:
        if word == "--":
            yield from (word, *left)
            return
        option, equals, value = word.partition("=")
        today = old.options.get(option, EVERYWHERE.get(option))
        if today is None:
            yield word
            continue
        if not equals and (isinstance(today, Mapping) or "{}" in today):
            value = next(left, "")
        if isinstance(today, Mapping):
            option, today = f"{option} {value}", today.get(value, option)
        said[option] = today.replace("={}", "=...").removesuffix(" {}") if today != "{}" else "the last argument"
        said[option] = said[option] or "not needed"
        if today == "{}":
            last.append(value)
        else:
            yield from (part.replace("{}", value) for part in today.split())
    yield from last


def _moved(words: Sequence[str], old: Old) -> tuple[list[str], list[str]]:
    """The words that stay, and the arguments that are options today."""
    stay: list[str] = []
    moved: list[str] = []
    place, left = 0, iter(words)
    for word in left:
        if word.startswith("-"):
            stay.append(word)
            if "=" not in word and word not in _FLAGS:
                stay += [value for value in [next(left, None)] if value is not None]
            continue
        if place in old.arguments:
            moved += old.arguments[place].format(word).split(" ", 1)
        else:
            stay.append(word)
        place += 1
    return stay, moved
