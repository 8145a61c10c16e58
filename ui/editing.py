"""What the pages may edit: files that the configuration names, in its folder. Started on a store, nothing.

A page writes only where somebody pressed a button of it, never by its address, and only through ``arena.safe_files``.
"""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from arena.config import Config, load_config

CONFIG_VARIABLE: Final = "RAGARENA_UI_CONFIG"
"""Environment variable through which ``ui.serve`` tells the pages which configuration they were started with."""


@dataclass(frozen=True)
class Session:
    """The configuration that the pages were started with, as it is now.

    Attributes:
        path: the YAML file.
        config: what it says.
    """

    path: Path
    config: Config

    @property
    def folder(self) -> Path:
        """Nothing outside of it is written."""
        return self.path.resolve().parent


def session() -> Session | None:
    """The configuration, read anew at every call; ``None`` where the pages were started on a store.

    Raises:
        ConfigError: it cannot be used any more.
    """
    given = os.environ.get(CONFIG_VARIABLE)
    return Session(Path(given), load_config(Path(given))) if given else None


def usual_name() -> str:
    """Who probably edits: the user of this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return ""
