"""The pytest plugin: a fixture that opens a tournament. It imports ragleague only when a test uses the fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ragleague.board import Board

_HELP = "the tournament that 'ragleague_board' opens: its YAML file or its store"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add pytest's command-line option ``--ragleague`` and its configuration setting ``ragleague``."""
    parser.getgroup("ragleague").addoption("--ragleague", metavar="CONFIG|STORE", help=_HELP)
    parser.addini("ragleague", _HELP, type="string", default="")


@pytest.fixture(scope="session")
def ragleague_board(pytestconfig: pytest.Config) -> Board:
    """A fixture with the results of the tournament that ``--ragleague`` or the setting ``ragleague`` names."""
    option = pytestconfig.getoption("--ragleague")
    setting = pytestconfig.getini("ragleague")
    if not (option or setting):
        pytest.fail("name a tournament: pytest --ragleague CONFIG, or 'ragleague = CONFIG' in pytest's settings")
    import ragleague

    if option:
        return ragleague.open(option)
    return ragleague.open(setting if "://" in setting else pytestconfig.rootpath / setting)
