"""Frozen values as JSON has them, alike on every machine."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from retrieval_eval.stats.estimate import PROVENANCE, Coefficient, Estimate

_DECIMALS = 6
"""Fewer than floating point has, so that equal figures are equal bytes on every machine."""


class Exact(float):
    """A number written with all digits that it has, such as a tiny probability."""


def plain(value: Any, decimals: int = _DECIMALS) -> Any:
    """A value without our own types: fields of dataclasses by name, arrays as lists, NaN as nothing.

    Numbers that shall have more ``decimals`` than others keep them from then on.
    """
    if value is None or isinstance(value, bool | str | int | Enum | Exact):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        shown = round(value, decimals) + 0.0  # -0.0 becomes 0.0
        return None if math.isnan(value) else Exact(shown) if decimals > _DECIMALS else shown
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(inner, decimals) for key, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        left_out = PROVENANCE if isinstance(value, Estimate) else ()
        return {
            own.name: plain(getattr(value, own.name), decimals) for own in fields(value) if own.name not in left_out
        }
    values = value.tolist() if hasattr(value, "tolist") else value  # of numpy
    if not isinstance(values, Iterable):
        return plain(values, decimals)
    return [plain(inner, decimals) for inner in (sorted(values) if isinstance(values, set | frozenset) else values)]


def flat(record: Any) -> dict[str, Any]:
    """The fields of a dataclass or mapping, where an estimate becomes ``KEY``, ``KEY_low`` and ``KEY_high``.

    A correlation has ``KEY_p`` as well.
    """
    own = (
        record.items()
        if isinstance(record, Mapping)
        else ((at.name, getattr(record, at.name)) for at in fields(record))
    )
    found: dict[str, Any] = {}
    for name, value in own:
        if isinstance(value, Estimate):
            found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            if isinstance(value, Coefficient):
                found[f"{name}_p"] = value.p_value
        else:
            found[name] = value
    return found


def json_text(value: Any) -> str:
    """Machine output: sorted keys and plain ASCII, so that equal values are equal bytes."""
    return json.dumps(plain(value), indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False)
