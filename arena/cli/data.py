"""``import`` and ``export``: judgments and data as tables of other tools."""

from __future__ import annotations
