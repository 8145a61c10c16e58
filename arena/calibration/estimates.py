"""A judge's figures corrected by people's labels: mean grades, win rates and ratings of each agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from arena.calibration.corrected_ratings import CorrectedRatings, ScoredGame, corrected_ratings
from arena.calibration.opinions import Item, Level, Values
from arena.calibration.prediction_powered import Corrected, corrected_mean, next_labels
from judges.errors import InputError


@dataclass(frozen=True, slots=True)
class Estimates:
    """A judge corrected by people.

    Attributes:
        figures: means, by what they are of; of verdicts win rates, ties half.
        ratings: of verdicts, Bradley-Terry's.
        no_ratings: why there are none.
        next: things to label next, each a query and what it is.
    """

    figures: Mapping[str, Corrected]
    ratings: CorrectedRatings | None
    no_ratings: str
    next: tuple[tuple[str, Item], ...]


def estimates(level: Level, judge: Values, people: Values, label_next: int = 0, seed: int = 0) -> Estimates:
    """Correct a judge.

    Args:
        level: what was judged.
        judge: the judge's value of each thing.
        people: people's consensus on some of them; they must be a random sample.
        label_next: how many things to label next.
        seed: of the draw of what to label next.
    """
    things = [(query_id, item) for query_id, own in judge.items() for item in own]
    known = [item in people.get(query_id, {}) for query_id, item in things]
    places = next_labels([query_id for query_id, _ in things], known, label_next, seed) if label_next else []
    ratings, why = _ratings(judge, people) if level == "verdicts" else (None, "")
    return Estimates(dict(_figures(level, judge, people)), ratings, why, tuple(things[at] for at in places))


def _figures(level: Level, judge: Values, people: Values) -> Iterator[tuple[str, Corrected]]:
    found: dict[str, list[tuple[float, float | None, str]]] = {}
    for query_id, own in judge.items():
        for item, value in own.items():
            human = people.get(query_id, {}).get(item)
            for name, turned in _names(level, item):
                entry = (
                    _score(level, value, turned),
                    None if human is None else _score(level, human, turned),
                    query_id,
                )
                found.setdefault(name, []).append(entry)
    for name, rows in sorted(found.items()):
        of_judge, of_people, queries = zip(*rows, strict=True)
        if any(value is not None for value in of_people):
            yield name, corrected_mean(of_judge, of_people, queries)


def _names(level: Level, item: Item) -> list[tuple[str, bool]]:
    """What a thing counts for, and whether its value is to be turned round."""
    if level == "verdicts":
        return [(item[-2], False), (item[-1], True)]
    if level == "criteria":
        return [(f"{item[-2]}, {item[-1]}", False)]
    return [(item[-2] if level == "nuggets" else "all documents", False)]


def _score(level: Level, value: float, turned: bool) -> float:
    if level != "verdicts":
        return value
    return (1 - value) / 2 if turned else (1 + value) / 2


def _ratings(judge: Values, people: Values) -> tuple[CorrectedRatings | None, str]:
    games = []
    for query_id, own in judge.items():
        for item, value in own.items():
            human = people.get(query_id, {}).get(item)
            score = None if human is None else (1 + human) / 2
            games.append(ScoredGame(query_id, item[-2], item[-1], (1 + value) / 2, score))
    try:
        return corrected_ratings(games), ""
    except InputError as error:
        return None, str(error)
