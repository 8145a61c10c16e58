"""Estimates as flat fields."""

from __future__ import annotations

from arena.present.plain import flat as flattened

__all__ = ["flattened"]
