"""Open the store of a command's argument, which names either a YAML file of a tournament or the store itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from arena.cli.console import errors, say
from arena.store import Store
from judges.errors import InputError
from judges.types import Query, conversations
from retrieval_eval.stats.bootstrap import Clusters

if TYPE_CHECKING:
    from arena.config.schema import Config


def read_source(source: str) -> tuple[str, str | None, Config | None]:
    """Return the path or address of the store, the tournament's name, and its configuration.

    The name is ``None`` if ``source`` is a store; the configuration also if the YAML file only generates queries.
    """
    if source.endswith((".yaml", ".yml")):
        from arena.stages.queries_config import SynthConfig, load_either  # late: a store needs no configuration

        config = load_either(Path(source))
        if isinstance(config, SynthConfig):
            return config.store, config.tournament, None
        return config.store, config.name, config
    if Path(source).is_dir():
        raise InputError(f"{source}: is a folder; name the .yaml file or the store in it")
    return source, None, None


def require_stored(store: Store, config: Config) -> None:
    """Check that this configuration made the stored tournament; print on standard error how it has changed since.

    Raises:
        InputError: another configuration file ran a tournament of this name, with other data, agents or judges.
    """
    from arena.run.recorder import compared_with_stored

    if remark := compared_with_stored(store, config):
        say(remark, errors)


def parts_of(store: Store, config: Config) -> list[str]:
    """Names of the stored tournaments of a configuration: its own, and the one that generated its queries.

    If neither is stored, return only the configuration's name. Raises the errors of ``require_stored``.
    """
    names, all_names = [config.name], store.tournaments()
    if config.synth is not None:
        from arena.stages.queries_config import of_tournament

        names.append(of_tournament(config).tournament)
    stored_names = [name for name in names if name in all_names]
    if config.name in stored_names or not stored_names:
        require_stored(store, config)
    return stored_names or names[:1]


def queries_in(queries: Path | None) -> Mapping[str, Query] | None:
    """Read the queries of a file, by query id; ``None`` if there is no file."""
    if queries is None:
        return None
    from arena.data.files import load_dataset

    return load_dataset(queries).queries


def clusters_in(queries: Path | None) -> Clusters:
    """Read which conversation each query of a file belongs to; empty if there is no file."""
    return conversations((queries_in(queries) or {}).values())


@contextmanager
def open_tournament(source: str, tournament: str | None = None, group: str = "") -> Iterator[tuple[Store, str]]:
    """Open the store that ``source`` names; yield it with the tournament's name, and close the store at the end.

    With a ``group``, written ``COLUMN=VALUE``, the store has only these queries.
    """
    location, name, config = read_source(source)
    with closing(Store.open(location)) as store:
        tournament_name = tournament or name or store.only_tournament()
        store.settings(tournament_name)  # raises, with the known names, if it does not exist
        if config is not None and tournament is None:
            require_stored(store, config)
        if not group:
            yield store, tournament_name
            return
        from arena.data.dataset import read_group  # late: most commands have no groups
        from arena.results.ratings import of_group

        yield of_group(store, tournament_name, read_group(group)), tournament_name
