"""A file for ``ragarena synth``: a store, judges, and what to make of which documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from arena.config import StoreName
from arena.synth.section import SynthSection
from judges.errors import ConfigError
from judges.sections import Section, load_section, nearest
from judges.spec import JudgeSpec


class SynthConfig(Section):
    """The whole file.

    A tournament's configuration that has a section ``synth`` gives one with
    ``SynthConfig(name=..., store=..., judges=..., synth=...)`` of its own values.
    """

    name: Annotated[str, Field(pattern=r"^[\w][\w .-]{0,79}$")]
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
        return self

    @property
    def tournament(self) -> str:
        """What the queries' judgments are kept under, apart from those of a tournament of the same name."""
        return f"{self.name[:74]} synth"


def load_synth_config(path: Path) -> SynthConfig:
    """Read and check one YAML file.

    Raises:
        ConfigError: one line that names the file, the key and the problem.
    """
    return load_section(path, SynthConfig, ConfigError)
