"""What a command line names as CONFIG or STORE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from arena.store import Store
from judges.errors import InputError
from judges.types import Query, conversations

if TYPE_CHECKING:
    from retrieval_eval.stats.bootstrap import Clusters


def location_and_name(source: str) -> tuple[str, str | None]:
    """The store's location, and the tournament's name where a configuration was given."""
    if source.endswith((".yaml", ".yml")):
        from arena.config.whole import Config
        from arena.stages.queries.config import load_either

        config = load_either(Path(source))
        return config.store, config.name if isinstance(config, Config) else config.tournament
    if Path(source).is_dir():
        raise InputError(f"{source}: a folder; name the .yaml file or the store in it")
    return source, None


def asked_in(queries: Path | None) -> Mapping[str, Query] | None:
    """The queries of a file, with the conversations that they are turns of.

    Raises:
        InputError: the file cannot be read.
    """
    from arena.data.files import load_dataset

    return None if queries is None else load_dataset(queries).queries


def clusters_in(queries: Path | None) -> Clusters:
    """The conversations of a file's queries; none without one."""
    return conversations((asked_in(queries) or {}).values())


@contextmanager
def open_tournament(source: str, tournament: str | None = None) -> Iterator[tuple[Store, str]]:
    """The open store and the tournament that ``source`` names; the store is closed behind the block.

    Raises:
        InputError: no such file, store or tournament.
    """
    location, name = location_and_name(source)
    with closing(Store.open(location)) as store:
        found = tournament or name or store.only_tournament()
        store.settings(found)  # says which tournaments there are, if not this one
        yield store, found
