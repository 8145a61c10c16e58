"""Citation precision: the share of the documents an answer cites that are relevant to its query.

For one answer: relevant documents cited / documents cited that have a label, each document once however often it is
cited. Not defined where none of them has a label, and where an answer cites nothing: such queries are counted and in no
mean, for an answer without citations is not one with wrong ones. An agent's precision is the mean over its other ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judges.types import Answer
from retrieval_eval.stats.bootstrap import Floats, estimates, query_weights
from retrieval_eval.stats.estimate import Estimate

CITATIONS = "citations"
"""Metadata of an answer that says itself what it cites: a JSON list of ids, or of places from 1."""

_BRACKETS = re.compile(r"\[([^\[\]\n]{1,200})\]")
_SEPARATOR = re.compile(r"[,;]")


@dataclass(frozen=True, slots=True)
class Cited:
    """What one answer cites.

    Attributes:
        doc_ids: each once, in order of appearance.
        unresolved: numbers that stand for none of the documents known.
    """

    doc_ids: tuple[str, ...]
    unresolved: int = 0


@dataclass(frozen=True, slots=True)
class CitationScores:
    """One agent's citations.

    Attributes:
        precision: mean over the queries where it is defined, with its 95 % interval over queries.
        queries: how many these are.
        uncited: answers that cite nothing.
        unlabelled: answers that cite only documents without a label.
        cited: documents cited, once for each answer.
        labelled: those of them with a label.
        relevant: those of them whose label is high enough.
        unresolved: numbers cited that stand for no document; in no share.
    """

    precision: Estimate
    queries: int
    uncited: int
    unlabelled: int
    cited: int
    labelled: int
    relevant: int
    unresolved: int

    @property
    def coverage(self) -> float | None:
        """Share of the documents cited that have a label."""
        return self.labelled / self.cited if self.cited else None


def cited_documents(
    answers: Iterable[Answer],
    rankings: Mapping[tuple[str, str], Sequence[str]],
    labels: Mapping[str, Mapping[str, int]],
) -> dict[tuple[str, str], Cited]:
    """What answers cite, by query and agent.

    Answers of the TREC RAG track say it with each sentence, as places in their references, which count from 0, or as
    ids. Others may have it as metadata (``CITATIONS``), as agents that we ask do. In other texts citations stand in
    square brackets, several separated by commas: a document's id, or its place in what the agent was given. Places
    count from 1, and from 0 for an agent that somewhere cites ``[0]``.

    Args:
        answers: the answers.
        rankings: by query and agent the documents that it was given, best first.
        labels: by query and document; these documents can be cited by their ids, too.
    """
    each = list(answers)
    marks = {(own.query_id, own.agent): _marks(own.text) for own in each}
    from_zero = {agent for (_, agent), own in marks.items() if "0" in own}
    found = {}
    for own in each:
        key = own.query_id, own.agent
        by_sentences = _cited_by_sentences(own)
        if by_sentences is not None:
            found[key] = by_sentences
            continue
        ranking = rankings.get(key, ())
        ids = {*ranking, *labels.get(own.query_id, ())}
        first = 0 if own.agent in from_zero else 1
        places = [mark if mark in ids else int(mark) - first for mark in marks[key] if mark in ids or _is_place(mark)]
        found[key] = _cited_as_told(own, ranking, _resolved(places, ranking))
    return found


def _cited_as_told(answer: Answer, ranking: Sequence[str], in_text: Cited) -> Cited:
    """What an answer's metadata says; else what stands in its text, which may count otherwise."""
    try:
        told = json.loads(answer.metadata.get(CITATIONS, ""))
    except (ValueError, RecursionError):
        return in_text
    if not isinstance(told, list) or not all(isinstance(each, str | int) for each in told):
        return in_text
    cited = _resolved([each - 1 if isinstance(each, int) else each for each in told], ranking)
    lost = in_text.unresolved if ranking else 0  # marks of an agent that names no documents count its citations
    return Cited(cited.doc_ids, max(cited.unresolved, lost))


def _marks(text: str) -> list[str]:
    return [mark.strip() for inner in _BRACKETS.findall(text) for mark in _SEPARATOR.split(inner)]


def _is_place(mark: str) -> bool:
    return mark.isascii() and mark.isdigit() and len(mark) <= 4


def _cited_by_sentences(answer: Answer) -> Cited | None:
    """What a TREC RAG answer says; ``None`` of another one, which may have columns of these names too."""
    try:
        references = [str(doc_id) for doc_id in json.loads(answer.metadata["references"])]
        sentences = json.loads(answer.metadata["sentences"])
        given = [place for sentence in sentences for place in sentence.get("citations", [])]
    except (LookupError, ValueError, RecursionError, TypeError, AttributeError):
        return None
    return _resolved([place if isinstance(place, int) else str(place) for place in given], references)


def _resolved(citations: Iterable[int | str], documents: Sequence[str]) -> Cited:
    """Places in ``documents``, which count from 0, and ids."""
    found: dict[str, None] = {}
    unresolved = set()
    for each in citations:
        if isinstance(each, str):
            found[each] = None
        elif 0 <= each < len(documents):
            found[documents[each]] = None
        else:
            unresolved.add(each)
    return Cited(tuple(found), len(unresolved))


def citation_scores(
    cited: Mapping[tuple[str, str], Cited],
    labels: Mapping[str, Mapping[str, int]],
    *,
    relevant: int = 1,
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, CitationScores]:
    """Score every agent; all share the draws of the bootstrap over queries.

    Args:
        cited: see ``cited_documents``.
        labels: relevance by query and document.
        relevant: the lowest label that counts as relevant.
        samples: of the bootstrap; 0 for no intervals.
        seed: of the samples.
    """
    agents = sorted({agent for _, agent in cited})
    queries = sorted({query_id for query_id, _ in cited})
    counts = np.zeros((len(agents), len(queries), 3))  # cited, labelled, relevant
    rows, columns = ({name: at for at, name in enumerate(names)} for names in (agents, queries))
    for (query_id, agent), own in cited.items():
        given = [labels[query_id][doc_id] for doc_id in own.doc_ids if doc_id in labels.get(query_id, {})]
        hits = sum(label >= relevant for label in given)
        counts[rows[agent], columns[query_id]] = len(own.doc_ids), len(given), hits
    precision = _precisions(counts, samples, seed)
    return {
        agent: CitationScores(
            precision[at],
            queries=int((counts[at, :, 1] > 0).sum()),
            uncited=sum(not own.doc_ids for (_, name), own in cited.items() if name == agent),
            unlabelled=int(((counts[at, :, 0] > 0) & (counts[at, :, 1] == 0)).sum()),
            cited=int(counts[at, :, 0].sum()),
            labelled=int(counts[at, :, 1].sum()),
            relevant=int(counts[at, :, 2].sum()),
            unresolved=sum(own.unresolved for (_, name), own in cited.items() if name == agent),
        )
        for agent, at in rows.items()
    }


def _precisions(counts: Floats, samples: int, seed: int) -> list[Estimate]:
    """Each agent's mean over its own defined queries, which alone are drawn from; counts are (agents, queries, 3)."""
    found: list[Estimate] = []
    for own in counts:
        defined = own[own[:, 1] > 0]
        values = defined[:, 2] / defined[:, 1]
        weights = query_weights(len(values), samples, seed)
        drawn = weights @ values[:, np.newaxis] / max(1, len(values))
        mean = np.array([values.mean() if len(values) else np.nan])
        found += estimates(mean, drawn, len(values))
    return found
