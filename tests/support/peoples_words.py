"""People who judged a part of a store's tournament on the pages: they say what the judge says, or err now and then."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from arena.data.kinds import Annotation, texts_digest
from arena.store import Store, Wanted
from arena.store.annotations import Annotations
from judges.types import Judgment, Task

PEOPLE: Final = ("ann", "bob")
_KINDS: Final = {Task.PAIRWISE: "verdict", Task.CRITERIA: "criteria"}


def add_people(path: Path, tournament: str, *, share: float = 0.5, error: float = 0.15) -> int:
    """Let two people judge games and answers.

    Args:
        path: of the store.
        tournament: its name.
        share: of the games, and of the answers graded, that each of them judges.
        error: how often they say something by chance instead of what the judge says.

    Returns:
        How much was said.
    """
    with closing(Store.create(str(path))) as store:
        data, said = store.dataset(tournament), []
        for want, result in (row for task in _KINDS for row in store.outcomes(tournament, task)):
            if not isinstance(result, Judgment) or want.order == "ba":
                continue
            answers = [data.answers[want.query_id, agent].text for agent in (want.item, want.other) if agent]
            texts = texts_digest(data.queries[want.query_id].text, *answers)
            for person in PEOPLE:
                chance = random.Random(f"{person} {want}")
                if chance.random() < share:
                    value = _said(want, result.outcome, chance, error)
                    said.append(
                        Annotation(_KINDS[want.task], person, want.query_id, want.item, want.other, texts, value)
                    )
        return Annotations(store, tournament).add(said)


def _said(want: Wanted, outcome: Any, chance: random.Random, error: float) -> Any:
    if want.task is Task.PAIRWISE:
        return chance.choice(("A", "B", "TIE")) if chance.random() < error else str(outcome)
    return {name: chance.choice((0, 1, 2)) if chance.random() < error else grade for name, grade in outcome.items()}
