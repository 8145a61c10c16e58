"""Judgments found by the ids that a tournament's wants have in the store: while nothing changes, no prompt is made."""

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
"""In place of a judgment that is there, where nothing follows from what it says."""


class Assigned:
    """What was assigned and judged, for as long as the ids of judgments would come out as they stand in the store.

    They would where a run has kept that they were made from the same (``made_from``), and nothing in the store has
    changed since: whatever is judged may be shown in another prompt.

    Args:
        store: where ids and judgments are.
        tournament: its name.
        made_from: what the ids would be made from now.
        is_read: whether anything follows from what a task's judgments say.
    """

    def __init__(self, store: Store, tournament: str, made_from: str, is_read: Callable[[Task], bool]) -> None:
        self._store, self._tournament, self._made_from, self._is_read = store, tournament, made_from, is_read
        self._stand = True

    def judged(self, wants: Sequence[Wanted]) -> dict[Wanted, tuple[str, Judgment]]:
        """Those of these wants that are judged; none where ids have to be made anew. Works in any thread.

        Returns:
            By want the judgment's id, and the judgment where it is read.
        """
        ids = self._store.judged_ids(self._tournament, self._made_from, wants) if self._stand else None
        self._stand = ids is not None
        ids = ids or {}
        read = self._store.results([ident for want, ident in ids.items() if self._is_read(want.task)])
        known = {want: (ident, read.get(ident, _UNREAD)) for want, ident in ids.items()}
        return {want: (ident, each) for want, (ident, each) in known.items() if isinstance(each, Judgment)}

    def keep(self, run_id: str) -> None:
        """Keep what the ids were made from, after a run that has made all of them, and alone."""
        seen, _ = self._store.judged(self._tournament)
        if not self._stand and Runs(self._store, self._tournament).was_alone(run_id):
            self._store.keep_assigned(self._tournament, self._made_from, seen=seen)


def made_from(config: Config, settings: Mapping[str, Any], digest: str, providers: Mapping[str, Provider]) -> str:
    """A digest of all that decides prompts, and with them the ids of judgments.

    Args:
        config: the files that its sections name are read, such as a test bank whose secret texts no settings hold.
        settings: as the store keeps them, prompts among them.
        digest: of the data.
        providers: who is asked, by name of the judge.
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
    """A digest of the program that makes prompts and ids: another version may make others of the same data."""
    root, digest = Path(__file__).parents[2], hashlib.sha256()
    for file in sorted([*root.glob("judges/**/*.py"), *root.glob("arena/stages/**/*.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()
