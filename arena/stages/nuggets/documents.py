"""The documents that agents retrieved, held against nuggets: nugget recall of a ranking down to a depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arena.config.nuggets import NuggetAssignmentSection
from arena.data.dataset import Dataset
from judges.errors import ConfigError
from retrieval_eval.nuggets.types import Assignment, NuggetBank, Support

DEPTH = 20
"""Documents of a ranking that count where the configuration does not say, as many as an exam looks at."""


def depth_of(section: NuggetAssignmentSection) -> int:
    """The rank down to which documents are held against nuggets."""
    return section.depth or DEPTH


def retrieved_documents(data: Dataset, section: NuggetAssignmentSection) -> dict[str, list[str]]:
    """By query the documents that some agent has within the depth, each once.

    Raises:
        ConfigError: nobody retrieved any.
    """
    found = {query_id: list[str]() for query_id in data.queries}
    for (query_id, _), ranking in data.rankings.items():
        first = ranking[: depth_of(section)]
        found[query_id] += [doc_id for doc_id in first if doc_id not in found[query_id]]
    if not any(found.values()):
        raise ConfigError("nuggets.assign.texts: 'documents' are to be held against nuggets, and 'data' has none")
    return found


def recalled(
    data: Dataset,
    section: NuggetAssignmentSection,
    banks: Mapping[str, NuggetBank],
    passages: Mapping[tuple[str, str], Assignment],
) -> list[Assignment]:
    """What each agent's first documents state together: of each nugget the highest label that one of them has.

    Args:
        data: what agents retrieved.
        section: down to which rank.
        banks: by query.
        passages: by query and document.
    """
    together = []
    for (query_id, agent), ranking in data.rankings.items():
        if query_id in banks:
            own = [passages[query_id, doc_id] for doc_id in ranking[: depth_of(section)]]
            labels = tuple(_highest(said) for said in zip(*(each.labels for each in own), strict=True))
            words, bank = sum(each.words for each in own), banks[query_id]
            together.append(Assignment(query_id, agent, bank.nuggets, labels, words, query=bank.query))
    return together


def _highest(labels: Sequence[Support | None]) -> Support | None:
    if Support.FULL in labels:
        return Support.FULL
    if None in labels:  # it may have been any
        return None
    return Support.PARTIAL if Support.PARTIAL in labels else Support.NONE
