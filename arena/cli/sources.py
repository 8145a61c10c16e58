"""What a command line names as CONFIG or STORE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from arena.config import load_config
from arena.store import Store
from arena.synth.config import load_synth_config
from arena.which import only_tournament
from judges.errors import ConfigError, InputError
from judges.sections import load_section


class _Keys(BaseModel):
    """Whether a file is a tournament's, or of synthetic queries alone."""

    data: Any = None
    synth: Any = None


def location_and_name(source: str) -> tuple[str, str | None]:
    """The store's location, and the tournament's name where a configuration was given."""
    if source.endswith((".yaml", ".yml")):
        keys = load_section(Path(source), _Keys, ConfigError)
        if keys.data is None and keys.synth is not None:
            synth = load_synth_config(Path(source))
            return synth.store, synth.tournament
        config = load_config(Path(source))
        return config.store, config.name
    if Path(source).is_dir():
        raise InputError(f"{source}: a folder; name the .yaml file or the store in it")
    return source, None


def open_tournament(source: str, tournament: str | None = None) -> tuple[Store, str]:
    """The open store and the tournament that ``source`` names.

    Raises:
        InputError: no such file, store or tournament.
    """
    location, name = location_and_name(source)
    store = Store.open(location)
    found = tournament or name or only_tournament(store)
    store.settings(found)  # says which tournaments there are, if not this one
    return store, found
