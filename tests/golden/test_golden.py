"""JSON and CSV of every command stay byte for byte, and tables as text change only where somebody changed a form.

``python -m tests.golden --write`` writes those for people anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.cases import WORLDS
from tests.golden.check import World, differences, written


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_commands_write_what_they_wrote(world: World, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    shared = request.getfixturevalue("shared").resolve() if world.recorded else None
    found = list(differences(world, written(world, tmp_path, shared)))
    assert not found, "\n\n".join([f"{len(found)} golden files differ ('python -m tests.golden')", *found])
