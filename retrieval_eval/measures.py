"""Retrieval measures by the names that ir_measures gives them, such as ``nDCG@10`` or ``RR(rel=2)@5``."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable
from typing import Any, TypeAlias

from judges.errors import InputError

Measure: TypeAlias = Any
"""A measure of ir_measures, which has no types."""

DEFAULT_MEASURES = ("nDCG@10", "RR(rel=1)@5", "RR(rel=2)@5", "AP", "P@5", "Judged@10")
"""Reciprocal rank counts a document from "somewhat" (1) and from "very" relevant (2) on."""

_EXAMPLES = "measures are written as nDCG@10, RR(rel=2)@5, P@5, AP, Rprec, R@100"

_DEEPEST = 1_000_000
"""A cutoff beyond this is a slip; the library would take memory for it."""


def parse_measures(names: Iterable[str]) -> dict[str, Measure]:
    """The measures of these names, in the order given, each name once.

    Raises:
        InputError: a name is no measure, has a parameter that the measure does not take, or no installed library
            computes it.
    """
    return {name: _parsed(name) for name in (given.strip() for given in names)}


def default_measures(highest: int) -> list[str]:
    """Measures for labels from 0 to ``highest``; reciprocal rank from 1 on, and from the upper half of the scale on.

    On three labels that is "somewhat" and "very", on UMBRELA's four "related" and "partly answers", TREC's own line.
    """
    thresholds = dict.fromkeys((1, highest // 2 + 1))
    return ["nDCG@10", *(f"RR(rel={threshold})@5" for threshold in thresholds), "Judged@10"]


def is_judged(measure: Measure) -> bool:
    """Whether the measure says how many documents have a label, and nothing of how good they are."""
    return bool(measure.NAME == "Judged")


def judged_at(measures: Iterable[Measure]) -> dict[str, Measure]:
    """Judged@k at the largest cutoff of the measures; of the whole ranking where none has a cutoff."""
    from ir_measures import Judged

    cutoffs = [measure.params["cutoff"] for measure in measures if "cutoff" in measure.params]
    judged = Judged @ max(cutoffs) if cutoffs else Judged
    return {str(judged): judged}


def _parsed(name: str) -> Measure:
    import ir_measures

    try:
        measure = ir_measures.parse_measure(name)
    except NameError:
        raise InputError(f"{name}: no such measure; {_hint(name)}") from None
    except (ValueError, TypeError, AttributeError):
        raise InputError(f"{name!r} is not how a measure is written; {_EXAMPLES}") from None
    _check_parameters(name, measure)
    try:
        ir_measures.evaluator([measure], {"query": {"document": 1}})
    except TypeError as error:
        raise InputError(f"{name}: {str(error)[:1].lower()}{str(error)[1:].rstrip('.')}") from None
    except ValueError as error:
        _, *libraries = str(error).splitlines()
        how = f"it needs {libraries[0].strip(' -')}" if libraries else "no library computes it with these parameters"
        raise InputError(f"{name}: cannot be computed here: {how}") from None
    return measure


def _check_parameters(name: str, measure: Measure) -> None:
    known = measure.SUPPORTED_PARAMS
    for parameter, value in measure.params.items():
        if parameter not in known:
            raise InputError(f"{name}: {measure.NAME} takes no {parameter!r}, only {', '.join(known) or 'its name'}")
        if not known[parameter].validate(value):
            raise InputError(f"{name}: {parameter} cannot be {value!r}")
    if missing := [parameter for parameter, info in known.items() if info.required and parameter not in measure.params]:
        raise InputError(f"{name}: {measure.NAME} needs {' and '.join(missing)}, as in {measure.NAME}({missing[0]}=10)")
    cutoff = measure.params.get("cutoff", 1)
    if isinstance(cutoff, bool) or not 1 <= cutoff <= _DEEPEST:
        raise InputError(f"{name}: the cutoff must be a whole number from 1 to {_DEEPEST:,}")


def _hint(name: str) -> str:
    """What may be meant: a name of trec_eval's (map, ndcg_cut_10), or one that is nearly right."""
    import ir_measures
    from pytrec_eval import supported_nicknames

    meant: list[str] = []
    if name not in supported_nicknames:  # the library would print what it skips of these
        with contextlib.suppress(ValueError):
            meant = [str(measure) for measure in ir_measures.parse_trec_measure(name)]
    base = name.partition("@")[0].partition("(")[0]
    folded = {measure.casefold(): measure for measure in reversed(ir_measures.measures.registry)}
    near = difflib.get_close_matches(base.casefold(), folded, n=3)
    meant = meant[:3] or [name.replace(base, folded[found], 1) for found in near]
    return f"is it {' or '.join(meant)}?" if meant else _EXAMPLES
