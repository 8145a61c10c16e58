"""Whether several judges together agree with people more than the best of them does alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arena.calibration.opinions import Values, paired
from arena.calibration.prediction_powered import numbered
from arena.ratings.games import Floats
from retrieval_eval.stats.bootstrap import jackknife_interval
from retrieval_eval.stats.estimate import Estimate

_NO_WIDTH = 1e-9


@dataclass(frozen=True, slots=True)
class PanelGain:
    """A panel against its best member.

    Attributes:
        best: the judge that agrees with people most often, on things that all judges and people judged.
        n: those things.
        agreement, best_agreement: shares of them on which the panel, and the best judge, say what people say.
        gain: the difference, clustered by query. The best was chosen on the same things, so it is flattered.
        gold_ties: of verdicts, things on which people tie, as the panel does wherever no side leads.
        gain_on_ties: the part of the difference that comes from these; ``None`` where there are none.
    """

    best: str
    n: int
    agreement: float
    best_agreement: float
    gain: Estimate
    gold_ties: int = 0
    gain_on_ties: float | None = None


def panel_gain(
    judges: Mapping[str, Values], panel: Values, people: Values, *, verdicts: bool = False
) -> PanelGain | None:
    """Compare; ``None`` with a single judge, or nothing that all judged."""
    right = {
        name: {(query, item): human == value for query, item, human, value in paired(people, values)}
        for name, values in judges.items()
    }
    of_panel = {(query, item): human == value for query, item, human, value in paired(people, panel)}
    common = [thing for thing in of_panel if all(thing in own for own in right.values())]
    if len(judges) < 2 or not common:
        return None
    shares = {name: sum(own[thing] for thing in common) / len(common) for name, own in right.items()}
    best = max(shares, key=lambda name: (shares[name], name))
    gains = np.array([float(of_panel[thing]) - float(right[best][thing]) for thing in common])
    unit = numbered([query_id for query_id, _ in common])
    totals = np.stack([np.bincount(unit, gains), np.bincount(unit).astype(np.float64)], axis=1)

    def mean(sums: Floats) -> Floats:
        return np.asarray(sums[:, 0] / sums[:, 1], np.float64)

    low, high = jackknife_interval(mean, totals) or (0.0, 0.0)
    value = float(gains.mean())
    bounds = (low, high) if high - low > _NO_WIDTH else (None, None)
    share = sum(of_panel[thing] for thing in common) / len(common)
    tied = np.array([verdicts and people[query_id][item] == 0 for query_id, item in common])
    on_ties = float(gains[tied].sum() / len(common)) if tied.any() else None
    return PanelGain(best, len(common), share, shares[best], Estimate(value, *bounds), int(tied.sum()), on_ties)
