"""Nuggets as the configuration, the store and the judges' replies spell them, and the documents held against them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arena.config.judging import NuggetAssignmentSection, NuggetsSection
from arena.data.dataset import Dataset
from judges.errors import ConfigError, DataError
from judges.types import Judgment, Task
from retrieval_eval.nuggets.files import read_banks
from retrieval_eval.nuggets.types import (
    Assignment,
    Importance,
    NuggetBank,
    Support,
    kept_nuggets,
    make_nuggets,
    updated_list,
)


def nugget_prompts(section: NuggetsSection) -> dict[Task, str]:
    """The names of the prompts that the configuration asks for."""
    named = section.assign.prompts()
    if section.create is not None:
        named |= {Task.NUGGETS: section.create.prompt, Task.IMPORTANCE: section.create.importance_prompt}
    return named


def read_bank(section: NuggetsSection, data: Dataset) -> dict[str, NuggetBank] | None:
    """The banks of the file that the configuration names, those of the queries in the data.

    Raises:
        DataError: the file cannot be read, or has nuggets for none of the queries.
    """
    if section.bank is None:
        return None
    banks = {bank.query_id: bank for bank in read_banks(section.bank) if bank.query_id in data.queries}
    if not banks:
        raise DataError(section.bank, "has nuggets for none of the queries; are the ids the same?")
    return banks


def nugget_settings(section: NuggetsSection, prompts: Mapping[str, str]) -> dict[str, Any]:
    """What of the section goes into the store: prompts by name and version, a bank by its content."""
    settings = section.model_dump(mode="json", exclude={"bank"} if section.bank is None else {"bank", "keep"})
    settings["assign"]["prompt"] = prompts.get(Task.ASSIGNMENT)
    settings["assign"]["passage_prompt"] = prompts.get(Task.PASSAGE_ASSIGNMENT)
    if section.create is not None:
        settings["create"] |= {"prompt": prompts[Task.NUGGETS], "importance_prompt": prompts[Task.IMPORTANCE]}
    if section.bank is not None:
        settings["bank"] = hashlib.sha256(section.bank.read_bytes()).hexdigest()[:12]
    return settings


def listed(judgment: Judgment) -> tuple[str, ...]:
    """The texts or labels of a judgment whose outcome is a list.

    Raises:
        TypeError: the outcome is of another task.
    """
    if not isinstance(judgment.outcome, tuple):
        raise TypeError(f"{judgment.outcome!r} is no list")
    return judgment.outcome


def listed_nuggets(said: Iterable[str], section: NuggetsSection) -> tuple[str, ...]:
    """The list after a turn, from what the judge said; a bank that was given stays as it is."""
    return tuple(said) if section.create is None else updated_list(said, most=section.create.most)


def importances_of(said: Iterable[str]) -> tuple[Importance | None, ...]:
    """Importances from what was said of them; the empty text where a bank's file says nothing."""
    return tuple(Importance(label) if label else None for label in said)


def settled_nuggets(
    texts: Sequence[str], labels: Sequence[Importance | None], section: NuggetsSection
) -> list[tuple[str, Importance | None]]:
    """The nuggets that answers are held against: all of a bank that was given, the first ones of the judge's list."""
    known = [label for label in labels if label is not None]
    if section.create is None or len(known) < len(labels):
        return list(zip(texts, labels, strict=True))
    return [(text, label) for text, label in kept_nuggets(texts, known, keep=section.keep)]


def settled_bank(
    query_id: str, query: str, texts: Sequence[str], labels: Sequence[Importance | None], section: NuggetsSection
) -> NuggetBank:
    """The same as a bank."""
    settled = settled_nuggets(texts, labels, section)
    nuggets = make_nuggets(query_id, [text for text, _ in settled], [label for _, label in settled])
    return NuggetBank(query_id, query, nuggets)


def spans(number: int, size: int) -> list[range]:
    """Places from 1 to ``number``, so many at a time."""
    return [range(start, min(start + size, number + 1)) for start in range(1, number + 1, size)]


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
