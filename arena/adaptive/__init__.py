"""Adaptive schedules: play the games that say most about the order, stop once it is decided.

Pure functions, as in ``arena.ratings``. ``fixtures`` fixes beforehand on which queries each pair of agents would meet,
and in which order; ``choice`` says which pairs move on along their queries; ``evidence`` and ``decision`` say what may
be claimed, at whatever moment one looks. A run judges ``next_games(fixtures, asked, outcomes, settings)`` until that
is empty.
"""

from arena.adaptive.choice import next_games
from arena.adaptive.decision import AdaptiveSettings, Decide, Decision, decision
from arena.adaptive.evidence import Outcomes, log_evidence, outcomes_of
from arena.adaptive.fixtures import Fixtures, Meeting

__all__ = [
    "AdaptiveSettings",
    "Decide",
    "Decision",
    "Fixtures",
    "Meeting",
    "Outcomes",
    "decision",
    "log_evidence",
    "next_games",
    "outcomes_of",
]
