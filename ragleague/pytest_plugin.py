"""The pytest plugin: a fixture that opens a tournament. Nothing else is imported until a test asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ragleague.board import Board

_HELP = "the tournament that 'ragleague_board' opens: its YAML file or its store"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the tournament from the command line or from pytest's configuration."""
    parser.getgroup("ragleague").addoption("--ragleague", metavar="CONFIG|STORE", help=_HELP)
    parser.addini("ragleague", _HELP, type="string", default="")


@pytest.fixture(scope="session")
def ragleague_board(pytestconfig: pytest.Config) -> Board:
    """The results of the tournament that ``--ragleague`` or the setting ``ragleague`` names."""
    given = pytestconfig.getoption("--ragleague")
    setting = pytestconfig.getini("ragleague")
    if not (given or setting):
        pytest.fail("name a tournament: pytest --ragleague CONFIG, or 'ragleague = CONFIG' in pytest's settings")
    import ragleague

    if given:
        return ragleague.open(given)
    return ragleague.open(setting if "://" in setting else pytestconfig.rootpath / setting)
