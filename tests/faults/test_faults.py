"""Every faulty input ends with a plain line and a status other than 0, before any call where that can be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arena.config.schema import load_config
from judges.errors import InputError
from tests.faults.table import FAULTS
from tests.faults.world import FILES, Fault, meet

FEW = 30
"""Calls that a fault of a server may cost: five judgments, each asked three times, and those under way."""


LONGEST = 160
"""Maximum number of characters of a message: two lines of a terminal."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.group}: {fault.what}")
def test_a_fault_is_told_in_a_plain_line(fault: Fault, tmp_path: Path) -> None:
    met = meet(fault, tmp_path)
    expected = re.escape(fault.says).replace(re.escape("..."), ".*")
    assert re.fullmatch(expected, met.says), met.says
    assert len(met.says) <= LONGEST
    assert met.status == (2 if fault.before else 3), met.err
    assert "Traceback" not in met.out + met.err
    assert met.calls == 0 if fault.before else met.calls <= FEW
    assert "sk-secret" not in met.out + met.err
    if fault.group in {"settings", "data"} and fault.command == "run t.yaml" and _can_be_loaded(tmp_path / "t.yaml"):
        words = met.says.removeprefix("error: ")
        planned = meet(fault, tmp_path, "plan t.yaml")
        assert (planned.status, planned.says.removeprefix("error: "), planned.calls) == (2, words, 0)
        looked_at = meet(fault, tmp_path, "doctor t.yaml")
        assert looked_at.status == 2
        assert words in looked_at.out


def _can_be_loaded(config: Path) -> bool:
    try:
        load_config(config)
    except (InputError, OSError):
        return False
    return True


def test_there_are_many_and_each_once() -> None:
    assert len(FAULTS) >= 300
    assert len({(fault.group, fault.what) for fault in FAULTS}) == len(FAULTS)


def test_without_a_fault_the_tournament_is_judged(tmp_path: Path) -> None:
    met = meet(Fault("settings", "nothing", ""), tmp_path)
    assert (met.status, set(FILES) - {path.name for path in tmp_path.iterdir()}) == (0, set()), met.err
    assert met.calls > 0
