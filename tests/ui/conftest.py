"""What all tests of the pages share."""

from __future__ import annotations

import pytest

from ui.roles import EVERYBODY_VARIABLE


@pytest.fixture(autouse=True)
def everybody_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that are drawn in this process are as ``ragarena ui`` starts them on this machine, without a sign-in."""
    monkeypatch.setenv(EVERYBODY_VARIABLE, "editor")
