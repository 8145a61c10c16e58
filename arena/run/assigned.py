"""Finds stored judgments by the ids that an earlier run recorded, instead of rendering every prompt again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from arena.config.schema import Config
from arena.store import Store, Wanted
from arena.store.runs import Runs
from judges.providers import Provider
from judges.types import Judgment, Task

_UNREAD: Final = Judgment("", "", "", "", "")
"""Placeholder for a stored judgment whose outcome is not needed."""


class Assigned:
    """Finds stored judgments by the ids that an earlier run recorded for them, while these ids are still valid.

    The ids are valid if the earlier run recorded the same ``made_from`` digest and the store has not changed since: any
    new judgment may appear in another prompt and so change that prompt's id. ``is_read`` says for which tasks the
    outcomes of judgments are needed.
    """

    def __init__(self, store: Store, tournament: str, made_from: str, is_read: Callable[[Task], bool]) -> None:
        self._store, self._tournament, self._made_from, self._is_read = store, tournament, made_from, is_read
        self._is_valid = True

    def judged(self, wants: Sequence[Wanted]) -> dict[Wanted, tuple[str, Judgment]]:
        """Look up which of these judgments are stored; finds none if the recorded ids are no longer valid. Thread-safe.

        Returns:
            Each stored judgment with its id; a placeholder stands for a judgment if ``is_read`` is false for its task.
        """
        ids = self._store.judged_ids(self._tournament, self._made_from, wants) if self._is_valid else None
        self._is_valid = ids is not None
        ids = ids or {}
        read = self._store.results([ident for want, ident in ids.items() if self._is_read(want.task)])
        known = {want: (ident, read.get(ident, _UNREAD)) for want, ident in ids.items()}
        return {want: (ident, judgment) for want, (ident, judgment) in known.items() if isinstance(judgment, Judgment)}

    def keep(self, run_id: str) -> None:
        """Record that the ids are valid for ``made_from``, if this run assigned them anew and no other was active."""
        seen, _ = self._store.judged(self._tournament)
        if not self._is_valid and Runs(self._store, self._tournament).was_alone(run_id):
            self._store.keep_assigned(self._tournament, self._made_from, seen=seen)


def made_from(config: Config, settings: Mapping[str, Any], digest: str, providers: Mapping[str, Provider]) -> str:
    """Digest of everything that determines prompts and so judgment ids; ``digest`` is the digest of the dataset.

    It covers the content of all files named in the configuration, since secret items of a bank are not in ``settings``.
    """
    asked = {name: [dict(each.identity), each.judges_names] for name, each in providers.items()}
    sections = config.model_dump(exclude={"data", "store", "judges", "agents", "synth"})
    files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in _paths(sections) if path.is_file()]
    whole = json.dumps([settings, digest, asked, files, _code()], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _paths(section: Any) -> Iterator[Path]:
    if isinstance(section, Path):
        yield section
    elif isinstance(section, Mapping | list | tuple):
        for each in section.values() if isinstance(section, Mapping) else section:
            yield from _paths(each)


@cache
def _code() -> str:
    """Digest of the code that makes prompts and ids, since another version may make different ones."""
    root, digest = Path(__file__).parents[2], hashlib.sha256()
    for file in sorted([*root.glob("judges/**/*.py"), *root.glob("arena/stages/**/*.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()
