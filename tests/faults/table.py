"""Faulty inputs, and what is said of each, from ``table.yaml``."""

from __future__ import annotations

from pathlib import Path

import yaml

from judges.sections import QuickKeys
from tests.faults.world import Fault

_GROUPS = yaml.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), Loader=QuickKeys)

FAULTS = [Fault(group, what, **fault) for group, faults in _GROUPS.items() for what, fault in faults.items()]
