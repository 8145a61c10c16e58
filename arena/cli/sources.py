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
    from arena.config.schema import Config
    from retrieval_eval.stats.bootstrap import Clusters


def location_and_name(source: str) -> tuple[str, str | None]:
    """The store's location, and the tournament's name where a configuration was given."""
    location, name, _ = _read(source)
    return location, name


def _read(source: str) -> tuple[str, str | None, Config | None]:
    """The same, and the configuration where it is a tournament's."""
    if source.endswith((".yaml", ".yml")):
        from arena.config.schema import Config
        from arena.stages.queries.config import load_either

        config = load_either(Path(source))
        if isinstance(config, Config):
            return config.store, config.name, config
        return config.store, config.tournament, None
    if Path(source).is_dir():
        raise InputError(f"{source}: a folder; name the .yaml file or the store in it")
    return source, None, None


def configured_in(source: str) -> Config | None:
    """A tournament's configuration, where one is named."""
    return _read(source)[2]


def require_stored(store: Store, config: Config) -> None:
    """See that a configuration's tournament in the store is its own; say on standard error what is not in it yet.

    Raises:
        InputError: another file has run a tournament of this name, with other data, agents or judges.
    """
    from arena.cli.console import errors, say
    from arena.run.origin import compared_with_stored

    if remark := compared_with_stored(store, config):
        say(remark, errors)


def parts_of(store: Store, config: Config) -> list[str]:
    """The tournaments in the store that a configuration made: its own, and that of its synthetic queries.

    Raises:
        InputError: there is none; or as ``require_stored``.
    """
    made, known = [config.name], store.tournaments()
    if config.synth is not None:
        from arena.stages.queries.config import of_tournament

        made.append(of_tournament(config).tournament)
    found = [name for name in made if name in known]
    if config.name in found or not found:
        require_stored(store, config)
    return found or made[:1]


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
        InputError: no such file, store or tournament; or the store has that of another file under this name.
    """
    location, name, config = _read(source)
    with closing(Store.open(location)) as store:
        found = tournament or name or store.only_tournament()
        store.settings(found)  # says which tournaments there are, if not this one
        if config is not None and tournament is None:
            require_stored(store, config)
        yield store, found
