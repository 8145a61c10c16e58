"""Below ratings: what the judge favours, how few games carry the order, and how far judges agree."""

from __future__ import annotations

from collections.abc import Sequence

from arena.cli.console import output, printable
from arena.cli.figures import percent
from arena.conclusion import Conclusion
from arena.present.numbers import counted
from arena.ratings.health import JudgeHealth
from arena.ratings.rate import Ratings
from arena.ratings.results import Fragility
from arena.wording import more_needed
from retrieval_eval.stats.estimate import Estimate

_MOST_PAIRS = 15
"""Pairs of judges that a person can take in; those with the most games in common come first."""

_FEWEST_GAMES = 10
"""Below so many games in common a kappa is noise."""

_UNITS = {"game": ("game", "games"), "query": ("query", "queries")}
"""What is left out or needed: one, and many."""

_MOST_ALIKE = 3
"""Notes on the same matter, such as one per agent, that are printed."""


def print_health(ratings: Ratings, conclusion: Conclusion) -> None:
    """Write what may be concluded of these ratings, and what their reader must know of the judge and of the games."""
    output.print("\n" + printable(f"conclusion: {conclusion.sentence}"))
    if ratings.judge_health is not None:
        output.print("judge: " + ", ".join(_health_words(ratings.judge_health)))
    _print_doubts(ratings, conclusion)
    for note in few_alike(ratings.notes):
        output.print(printable(f"note: {note}"))


def few_alike(notes: Sequence[str]) -> list[str]:
    """Notes of which no matter, what stands before the colon, fills the screen; agents they name have flags above."""
    matter = [note.partition(": ")[0] for note in notes]
    told = []
    for place, note in enumerate(notes):
        before, alike = matter[:place].count(matter[place]), matter.count(matter[place])
        if before < _MOST_ALIKE:
            told.append(note)
        elif before == _MOST_ALIKE:
            told.append(f"{matter[place]}: {alike - before} more, all in --json; flags mark their agents.")
    return told


def _print_doubts(ratings: Ratings, conclusion: Conclusion) -> None:
    """How few games carry the order, what would separate neighbours, and how far the judges agree."""
    if conclusion.ordered:
        _print_order(ratings)
    if ratings.judges is not None:
        agreed = ratings.judges
        number = counted(agreed.games, "game")
        output.print(f"judges: Krippendorff's alpha {_coefficient(agreed.alpha)} on {number} judged by several")
        common = sorted((two for two in agreed.pairs if two.games >= _FEWEST_GAMES), key=lambda two: -two.games)
        for two in common[:_MOST_PAIRS]:
            line = (
                f"judges {two.first} and {two.second}: kappa {_coefficient(two.kappa)} on {counted(two.games, 'game')}"
            )
            output.print(printable(line))
        left = sum(two.games > 0 for two in agreed.pairs) - len(common[:_MOST_PAIRS])
        if left:
            output.print(f"... and {left} more {'pair' if left == 1 else 'pairs'} of judges, all in --json")


def _print_order(ratings: Ratings) -> None:
    """What would change the order of the ratings."""
    for found in ratings.flips:
        if found.change == "leader" and found.count:
            number = counted(found.units, *_UNITS[found.unit])
            output.print(
                printable(f"fragility: without {found.count} of {number} {found.behind} would be rated highest")
            )
    if pairs := _neighbour_flips(ratings.flips, [row.agent for row in ratings.by_rank[:2]]):
        output.print(printable("neighbours would change places without: " + ", ".join(pairs)))
    for pair in ratings.neighbours[:1]:
        if more := more_needed(pair, _UNITS[ratings.unit][1]):
            output.print(printable(f"to tell {pair.better} from {pair.worse}: about {more} like these"))


def _neighbour_flips(flips: Sequence[Fragility], first: Sequence[str]) -> list[str]:
    """For each two neighbours below the lead the fewest games and queries, as ``a over b 3 games or 2 queries``.

    Neighbours that are rated equal have no places to change, and of those that many games hold apart nothing is said.
    """
    told: dict[tuple[str, str], list[str]] = {}
    for found in flips:
        if found.change == "neighbours" and {found.ahead, found.behind} != {*first}:
            said = told.setdefault((found.ahead, found.behind), [])
            if found.count:
                said.append(counted(found.count, *_UNITS[found.unit]))
    return [f"{ahead} over {behind} {' or '.join(numbers)}" for (ahead, behind), numbers in told.items() if numbers]


def _coefficient(found: Estimate) -> str:
    if found.value is None:
        return "unknown"
    interval = "" if found.low is None or found.high is None else f" ({found.low:.2f} .. {found.high:.2f})"
    return f"{found.value:.2f}{interval}"


def _health_words(health: JudgeHealth) -> list[str]:
    words = [
        f"order agreement {percent(health.order_agreement)} of {counted(health.both_orders, 'game')}",
        f"first shown wins {percent(health.first_share)}",
    ]
    if health.first_effect is not None:
        low, high = health.first_effect_low, health.first_effect_high
        interval = "" if low is None or high is None else f" ({_points(low)} .. {_points(high)})"
        words.append(f"worth {_points(health.first_effect, '+')} points{interval}")
    return [
        *words,
        f"longer wins {percent(health.longer_share)}",
        f"ties {percent(health.tie_rate)}",
        f"intransitive triples {health.intransitive_triples} of {health.triples}",
    ]


def _points(points: float, sign: str = "-") -> str:
    return f"{round(points):{sign}d}"
