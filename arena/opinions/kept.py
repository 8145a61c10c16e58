"""What of a calibration only judges decide: made once, then kept in the store until something is judged or begun anew.

People vote while others read the page, and nobody should wait for thousands of Elo tournaments after each vote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from arena.boards.cache import Cache
from arena.calibration.calibrated import Calibrated
from arena.calibration.methods import Method, Played
from arena.calibration.orders import table_health
from arena.calibration.style import answer_qualities, style_effects
from arena.data.dataset import Dataset
from arena.games.table import GameTable
from arena.opinions.stored import spending
from arena.ratings.games import Floats
from arena.ratings.judges import of_judge
from arena.store import Store

WORTH_KEEPING: Final = 20_000
"""Games; figures of fewer are made in about a second."""


@dataclass(frozen=True, slots=True, eq=False)
class _KeptRatings:
    """Ratings as a method of comparison, kept under the settings, games and weights that they are made of."""

    method: Played
    cache: Cache

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def agents(self) -> tuple[str, ...]:
        return self.method.agents

    @property
    def queries(self) -> tuple[str, ...]:
        return self.method.queries

    def points(self) -> Floats:
        return self._kept(f"calibration: {self.name}", np.empty(0), self.method.points)

    def drawn(self, weights: Floats) -> Floats:
        return self._kept(f"calibration: {self.name} of samples", weights, lambda: self.method.drawn(weights))

    def _kept(self, kind: str, weights: Floats, make: Callable[[], Floats]) -> Floats:
        games = self.method.games
        made_of = [games.a, games.b, games.score, games.cluster, weights]
        settings = repr(self.method.settings).encode()
        return self.cache.made(kind, make, settings + b"".join(np.asarray(own).tobytes() for own in made_of))


def judges_alone(
    store: Store, tournament: str, cache: Cache, games: GameTable, data: Callable[[], Dataset]
) -> Calibrated:
    """What answer judges show in all games without people: what they cost, what places sway, and what style does.

    ``data`` reads the tournament's, where the figures are not kept.
    """

    def made() -> Calibrated:
        verdicts = games.verdicts()
        by_judge = {judge: of_judge(verdicts, judge) for judge in verdicts.judges}
        answers = answer_qualities({key: own.text for key, own in data().answers.items()} if by_judge else {})
        return Calibrated(
            tournament=tournament,
            spent=spending(store, tournament),
            orders={judge: table_health(own) for judge, own in by_judge.items()},
            styles=tuple(effect for judge, own in by_judge.items() for effect in style_effects(judge, own, answers)),
        )

    if len(games) < WORTH_KEEPING:
        return made()
    return cache.made("calibration: judges", made)


def with_kept_scores(method: Method, cache: Cache) -> Method:
    """The same method, its scores kept where they take long."""
    if isinstance(method, Played) and len(method.games) >= WORTH_KEEPING:
        return _KeptRatings(method, cache)
    return method
