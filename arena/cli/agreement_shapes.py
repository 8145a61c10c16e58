"""Agreement of labels as plain values: the JSON that other programs rely on, and flat rows for tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arena.cli.console import rounded
from arena.cli.metrics_shapes import Row, read_json
from retrieval_eval.stats.agreement import LabelAgreement
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.trec import Qrels

_NESTED = {"scale", "confusion", "binarised"}
"""Fields of an agreement that are no single figures."""


def agreement_json(
    agreements: Mapping[str, LabelAgreement], qrels: Mapping[str, Qrels], settings: Mapping[str, int]
) -> Row:
    """The shape of ``qrels agreement --json``."""
    reference = next(iter(qrels))
    shape: Row = rounded(
        {
            "reference": {"name": reference, **read_json(qrels[reference])},
            "sets": {
                name: {
                    **flattened(agreement),
                    "coverage": coverage(agreement),
                    "binarised": [flattened(one) for one in agreement.binarised],
                    **read_json(qrels[name]),
                }
                for name, agreement in agreements.items()
            },
            "settings": dict(settings),
        }
    )
    return shape


def agreement_rows(agreements: Mapping[str, LabelAgreement], qrels: Mapping[str, Qrels]) -> list[Row]:
    """One flat row per set of labels."""
    thresholds = sorted({one.threshold for agreement in agreements.values() for one in agreement.binarised})
    return [
        rounded(
            {
                "qrels": name,
                "coverage": coverage(own),
                "faulty": len(qrels[name].faulty),
                **{key: value for key, value in flattened(own).items() if key not in _NESTED},
                **_kappas_at(own, thresholds),
            }
        )
        for name, own in agreements.items()
    ]


def flattened(record: Any) -> Row:
    """A record's fields, where an estimate becomes its value, ``..._low`` and ``..._high``."""
    fields: Row = {}
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        if isinstance(value, Estimate):
            fields |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            fields[name] = value
    return fields


def coverage(own: LabelAgreement) -> float | None:
    """Share of the reference's pairs that the other set labels as well."""
    known = own.n + own.first_only
    return own.n / known if known else None


def _kappas_at(own: LabelAgreement, thresholds: list[int]) -> Row:
    kappas = {one.threshold: one.kappa.value for one in own.binarised}
    return {f"kappa_at_{threshold}": kappas.get(threshold) for threshold in thresholds}
