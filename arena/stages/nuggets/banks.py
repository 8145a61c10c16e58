"""Converts nuggets between configuration, store and replies, and selects the documents to assign them to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arena.config.judging import NuggetAssignmentSection, NuggetsSection
from arena.data.dataset import Dataset
from arena.stages.base import file_digest
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
    """Names of the configured prompts, by task."""
    named = section.assign.prompts()
    if section.create is not None:
        named |= {Task.NUGGETS: section.create.prompt, Task.IMPORTANCE: section.create.importance_prompt}
    return named


def read_bank(section: NuggetsSection, data: Dataset) -> dict[str, NuggetBank] | None:
    """The nugget banks in the configured file, by query of the data; ``None`` if no file is configured.

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
    """The section as stored in settings: each prompt as name and version, a bank as the digest of its file."""
    settings = section.model_dump(mode="json", exclude={"bank"} if section.bank is None else {"bank", "keep"})
    settings["assign"]["prompt"] = prompts.get(Task.ASSIGNMENT)
    settings["assign"]["passage_prompt"] = prompts.get(Task.PASSAGE_ASSIGNMENT)
    if section.create is not None:
        settings["create"] |= {"prompt": prompts[Task.NUGGETS], "importance_prompt": prompts[Task.IMPORTANCE]}
    if section.bank is not None:
        settings["bank"] = file_digest(section.bank)
    return settings


def listed(judgment: Judgment) -> tuple[str, ...]:
    """The texts or labels of a judgment whose outcome is a list.

    Raises:
        TypeError: the outcome is not a list.
    """
    if not isinstance(judgment.outcome, tuple):
        raise TypeError(f"{judgment.outcome!r} is no list")
    return judgment.outcome


def listed_nuggets(texts: Iterable[str], section: NuggetsSection) -> tuple[str, ...]:
    """The nuggets that are kept after one turn of the judge; a bank's list stays unchanged."""
    return tuple(texts) if section.create is None else updated_list(texts, most=section.create.most)


def importances_of(labels: Iterable[str]) -> tuple[Importance | None, ...]:
    """The importances for these labels; ``None`` for an empty label, which a file of nuggets may have."""
    return tuple(Importance(label) if label else None for label in labels)


def settled_nuggets(
    texts: Sequence[str], labels: Sequence[Importance | None], section: NuggetsSection
) -> list[tuple[str, Importance | None]]:
    """The final nuggets with their importance: all nuggets of a file's bank, or the first nuggets of a judge's list."""
    known = [label for label in labels if label is not None]
    if section.create is None or len(known) < len(labels):
        return list(zip(texts, labels, strict=True))
    return [(text, label) for text, label in kept_nuggets(texts, known, keep=section.keep)]


def settled_bank(
    query_id: str, query: str, texts: Sequence[str], labels: Sequence[Importance | None], section: NuggetsSection
) -> NuggetBank:
    """The final nuggets of a query, as a ``NuggetBank``."""
    settled = settled_nuggets(texts, labels, section)
    nuggets = make_nuggets(query_id, [text for text, _ in settled], [label for _, label in settled])
    return NuggetBank(query_id, query, nuggets)


def spans(number: int, size: int) -> list[range]:
    """Ranges of at most ``size`` numbers that cover 1 to ``number``."""
    return [range(start, min(start + size, number + 1)) for start in range(1, number + 1, size)]


DEPTH = 20
"""Default depth of a ranking, the same as for exams."""


def depth_of(section: NuggetAssignmentSection) -> int:
    """Maximum rank of documents that nuggets are assigned to."""
    return section.depth or DEPTH


def retrieved_documents(data: Dataset, section: NuggetAssignmentSection) -> dict[str, list[str]]:
    """Ids of the documents that agents retrieved within the depth, by query; each document occurs once.

    Raises:
        ConfigError: no agent retrieved any document.
    """
    documents = {query_id: list[str]() for query_id in data.queries}
    for (query_id, _), ranking in data.rankings.items():
        first = ranking[: depth_of(section)]
        documents[query_id] += [doc_id for doc_id in first if doc_id not in documents[query_id]]
    if not any(documents.values()):
        raise ConfigError("nuggets.assign.texts: nuggets are to be assigned to 'documents', and 'data' has none")
    return documents


def recalled(
    data: Dataset,
    section: NuggetAssignmentSection,
    banks: Mapping[str, NuggetBank],
    passages: Mapping[tuple[str, str], Assignment],
) -> list[Assignment]:
    """Combine the assignments of an agent's top documents: each nugget gets its best label over the documents.

    Args:
        data: the data with the retrieved documents.
        section: the configuration; its depth limits the documents' rank.
        banks: the nugget banks by query.
        passages: the assignment of each document, by query and document.
    """
    recalls = []
    for (query_id, agent), ranking in data.rankings.items():
        if query_id in banks:
            assignments = [passages[query_id, doc_id] for doc_id in ranking[: depth_of(section)]]
            labels = tuple(
                _highest(nugget_labels) for nugget_labels in zip(*(each.labels for each in assignments), strict=True)
            )
            words, bank = sum(each.words for each in assignments), banks[query_id]
            recalls.append(Assignment(query_id, agent, bank.nuggets, labels, words, query=bank.query))
    return recalls


def _highest(labels: Sequence[Support | None]) -> Support | None:
    if Support.FULL in labels:
        return Support.FULL
    if None in labels:  # a missing label may have been any
        return None
    return Support.PARTIAL if Support.PARTIAL in labels else Support.NONE
