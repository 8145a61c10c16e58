"""Configuration files of ``ragleague make queries``: a store, judges, and how to write queries about documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, model_validator

from arena.config.schema import Config, StoreName, SynthSection, load_config
from judges.errors import ConfigError
from judges.sections import Section, TournamentName, load_section, nearest
from judges.spec import JudgeSpec


class SynthConfig(Section):
    """A configuration that only writes synthetic queries; ``of_tournament`` takes it from a tournament's."""

    name: TournamentName
    store: StoreName
    judges: dict[str, JudgeSpec]
    synth: SynthSection

    @model_validator(mode="after")
    def _models_are_declared(self) -> SynthConfig:
        for name in self.synth.judges():
            if name not in self.judges:
                raise ValueError(f"judge {name!r} is not declared under 'judges'{nearest(name, self.judges)}")
            if self.judges[name].samples > 1:
                raise ValueError(f"judge {name!r} has 'samples', and lists of queries cannot be averaged")
            if self.judges[name].in_batches:
                raise ValueError(f"judge {name!r} asks in batches, and 'synth' asks directly; declare another")
        return self

    @property
    def tournament(self) -> str:
        """Name under which the store keeps judgments on synthetic queries; it differs from the tournament's name."""
        return f"{self.name[:74]} synth"


def of_tournament(config: Config) -> SynthConfig:
    """The part of a tournament's configuration that says how to write synthetic queries.

    Raises:
        ConfigError: the configuration has no section ``synth``.
    """
    if config.synth is None:
        raise ConfigError(
            f"{config.name}: the configuration has no section 'synth'; add it to say how to write queries"
        )
    return SynthConfig(name=config.name, store=config.store, judges=config.judges, synth=config.synth)


class _Peek(BaseModel):
    """The two keys of a configuration file that show whether it is a tournament's or only writes synthetic queries."""

    data: Any = None
    synth: Any = None


def load_synth_config(path: Path) -> SynthConfig:
    """Read and check a file that only writes synthetic queries, or the section ``synth`` of a tournament's file.

    Raises:
        ConfigError: names the file, the key and the problem in one line.
    """
    if load_section(path, _Peek, ConfigError).data is not None:
        return of_tournament(load_config(path))
    return load_section(path, SynthConfig, ConfigError)


def load_either(path: Path) -> SynthConfig | Config:
    """Read and check a configuration file: one that only writes synthetic queries, or a tournament's.

    Raises:
        ConfigError: names the file, the key and the problem in one line.
    """
    peeked = load_section(path, _Peek, ConfigError)
    if peeked.data is None and peeked.synth is not None:
        return load_section(path, SynthConfig, ConfigError)
    return load_config(path)
