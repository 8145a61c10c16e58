"""What verdicts say of their judge, each figure with its meaning."""

from __future__ import annotations

from typing import Final

from arena.present.blocks import Figure, Figures
from arena.present.numbers import COUNT, PERCENT_1, WORDS, Number, counted
from arena.ratings.health import JudgeHealth

_WORTH: Final = Number(0, signed=True, unit=" points")


def health_figures(own: JudgeHealth) -> Figures:
    """Over all verdicts of a judge."""
    return Figures(
        [
            Figure(
                "Orders agree",
                own.order_agreement,
                PERCENT_1,
                f"Share of the {counted(own.both_orders, 'game')} judged in both orders in which both orders gave the "
                "same result. A judge that reads carefully is near 100%; low values mean it is swayed by position or "
                "guesses.",
                own.order_agreement_low,
                own.order_agreement_high,
            ),
            Figure(
                "First shown wins",
                own.first_share,
                PERCENT_1,
                f"Share of the {counted(own.decided, 'verdict')} with a winner that went to the answer shown first. "
                "Without favour for a position it is 50% where every pair is shown in both orders.",
                own.first_share_low,
                own.first_share_high,
            ),
            Figure(
                "First is worth",
                own.first_effect,
                _WORTH,
                "Rating points that an answer gains by being shown first; 0 for a fair judge.",
                own.first_effect_low,
                own.first_effect_high,
            ),
            Figure(
                "Longer wins",
                own.longer_share,
                PERCENT_1,
                f"Share of the {counted(own.lengths_compared, 'verdict')} with a winner, between answers of different "
                "length, that went to the longer one. Far above 50%, the judge may reward length, or the longer may be "
                "better: read some games.",
                own.longer_share_low,
                own.longer_share_high,
            ),
            Figure(
                "Ties",
                own.tie_rate,
                PERCENT_1,
                f"Share of the {counted(own.n, 'verdict')} that are ties. Many ties leave little to tell agents apart "
                "by.",
                own.tie_rate_low,
                own.tie_rate_high,
            ),
            Figure(
                "Circles",
                f"{COUNT.write(own.intransitive_triples)} of {COUNT.write(own.triples)}",
                WORDS,
                "Sets of three agents that beat each other in a circle, of those in which every pair has a winner. "
                "Many circles mean that one rating per agent cannot describe the games.",
            ),
        ]
    )
