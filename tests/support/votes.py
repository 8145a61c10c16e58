"""Votes of people, put into a store as the pages do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from itertools import combinations
from pathlib import Path

from arena.data.kinds import Annotation, texts_digest
from arena.store import Store
from arena.store.annotations import Annotations


def cast_votes(path: Path, agents: Sequence[str], *, name: str = "sample", voters: int = 2, share: float = 0.5) -> None:
    """Let people vote on a share of all games; they mostly prefer the agent that is named first in ``agents``."""
    noise = random.Random(5)
    said = []
    with closing(Store.create(str(path))) as store:
        data = store.dataset(name)
        for query_id, query in data.queries.items():
            for better, worse in combinations(agents, 2):
                if noise.random() >= share:
                    continue
                texts = texts_digest(
                    query.text, data.answers[query_id, better].text, data.answers[query_id, worse].text
                )
                for voter in range(voters):
                    verdict = noise.choices(["A", "TIE", "B"], [0.7, 0.1, 0.2])[0]
                    said.append(Annotation("verdict", f"person-{voter}", query_id, better, worse, texts, verdict))
        Annotations(store, name).add(said)
