"""People's relevance labels beside the data, for the judges' to be held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from arena.dataset import Dataset
from judges.errors import DataError
from retrieval_eval.exam.passages import origin_of


def with_qrels(data: Dataset, sources: Sequence[Path]) -> Dataset:
    """The dataset with labels of people; those of queries that it has not are left out.

    Args:
        data: queries and the rest.
        sources: see ``retrieval_eval.trec_files.read_qrels``; several are read as one.

    Raises:
        DataError: one cannot be read or has labels for none of the queries, or two give a pair different labels.
    """
    from retrieval_eval.trec_files import read_qrels

    labels: dict[str, dict[str, int]] = {}
    for source in sources:
        read = read_qrels(source).labels
        if read.keys().isdisjoint(data.queries):
            raise DataError(source, "has labels for none of the queries, but for others", value=next(iter(read)))
        for query_id in read.keys() & data.queries.keys():
            known = labels.setdefault(query_id, {})
            for doc_id, label in read[query_id].items():
                if known.setdefault(doc_id, label) != label:
                    problem = f"query {query_id!r}, document {doc_id!r} has the label {known[doc_id]} in another file"
                    raise DataError(source, problem, value=str(label))
    return replace(data, qrels={query_id: labels[query_id] for query_id in data.queries if query_id in labels})


def of_documents(data: Dataset) -> dict[str, Mapping[str, int]]:
    """People's labels of documents, without those of passages of the answers, which an exam is held against.

    Nobody could have retrieved such a passage, so it belongs into no ideal ranking.
    """
    found = {
        query_id: {doc_id: label for doc_id, label in labels.items() if not _is_of_an_answer(data, doc_id)}
        for query_id, labels in data.qrels.items()
    }
    return {query_id: labels for query_id, labels in found.items() if labels}


def _is_of_an_answer(data: Dataset, doc_id: str) -> bool:
    origin = origin_of(doc_id)
    return origin is not None and origin[:2] in data.answers and doc_id not in data.documents
