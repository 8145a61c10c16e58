"""Extras: libraries that only some installations need."""

from __future__ import annotations

import shlex
import sys
from importlib import metadata, util

from packaging.requirements import Requirement

DISTRIBUTION = "ragleague"


def how_to_install(extra: str) -> str:
    """The command that adds an extra's libraries to this installation.

    It names the libraries and not us: an installation may come from a folder or a file that is not there any more, and
    what an index offers under our name may be somebody else's.
    """
    wanted = []
    for line in metadata.requires(DISTRIBUTION) or ():
        requirement = Requirement(line)
        if requirement.marker is not None and requirement.marker.evaluate({"extra": extra}):
            requirement.marker = None
            wanted.append(str(requirement))
    pip = [sys.executable, "-m", "pip", "install"]
    if util.find_spec("pip") is None:  # as where uv made the environment
        pip = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*pip, *wanted])
