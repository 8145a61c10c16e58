"""What answers cite, and citation precision: the share of the documents cited that are relevant to the query.

For one answer: relevant documents cited / documents cited that have a label, each document once however often it is
cited. Not defined where none of them has a label, and where an answer cites nothing: such queries are counted and in no
mean, for an answer without citations is not one with wrong ones. An agent's precision is the mean over its other ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from judges.types import Answer
from retrieval_eval.documents.passages import sentences
from retrieval_eval.stats.bootstrap import ALONE, Clusters, Floats, mean_estimates, units_of
from retrieval_eval.stats.estimate import Estimate

CITATIONS = "citations"
"""Metadata of an answer that says itself what it cites: a JSON list of ids, or of places from 1."""

_INSIDE = r"[^\[\]\n]{1,5000}"
_BRACKETS = re.compile(rf"\[({_INSIDE})\]")
_SEPARATOR = re.compile(r"[,;\uff0c\u3001&]|\band\b")
_NUMBER = re.compile(
    r"(?:(?:doc(?:ument)?|source|passage|ref(?:erence)?|citation)s?[ .:#_-]*)?"
    r"(\d{1,4})(?:\s*[-\u2013\u2014]\s*(\d{1,3}))?",
    re.ASCII | re.IGNORECASE,
)
"""One document, or those from one to another, by their numbers."""
_OTHER_BRACKETS = re.compile(
    r"[\u3010\uff3b]\s*(\d[\d\s,;\uff0c\u3001\u2013-]*)(?:\u2020[^\u3011\uff3d\n]*)?[\u3011\uff3d]"
)
"""As OpenAI's assistants write them."""
_FOOTNOTE = re.compile(r"\[\^(\d{1,3})\](:?)|(\[\d{1,3}\])\([^\s()]{1,2000}\)")
"""Footnotes and links of Markdown whose text is a number."""
_BEHIND = re.compile(rf"([.!?\u3002\uff01\uff1f][\"')]*)((?:[^\S\n]?\[{_INSIDE}\])+)")
"""Citations behind the full stop of the sentence that they belong to."""
_WIDE_STOP = re.compile(r"(?<=[\u3002\uff01\uff1f])(?=[^\s\[\u201d\u2019\u300d\u300f\uff09])")
"""Where a Chinese or Japanese sentence ends."""
_BIBLIOGRAPHY = re.compile(
    r"(?:^|\n)[^\w\n]*(?:references|sources|citations|bibliography)[^\w\n]*\n(?:[^\w\[]*\[[^\]\n]+\].*(?:\n|$))+\s*$",
    re.IGNORECASE,
)
"""A list at the end that says what the numbers stand for."""


class Cited(Struct, frozen=True):
    """What one answer cites.

    Attributes:
        doc_ids: each once, in order of appearance.
        unresolved: numbers that stand for none of the documents known.
    """

    doc_ids: tuple[str, ...]
    unresolved: int = 0


class CitationScores(Struct, frozen=True):
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
    first = _counting_from_zero(marks)
    found = {}
    for own in each:
        key = own.query_id, own.agent
        if (told := _trec_citations(own)) is not None:
            references, of_sentences = told
            found[key] = _resolved([place for _, places in of_sentences for place in places], references)
            continue
        ranking = rankings.get(key, ())
        ids = {*ranking, *labels.get(own.query_id, ())}
        found[key] = _cited_as_told(own, ranking, _resolved(_places(marks[key], ids, first[own.agent]), ranking))
    return found


class CitedSentence(Struct, frozen=True):
    """A sentence of an answer.

    Attributes:
        text: without its marks.
        citations: the documents that it cites, each once and in order; ``None`` for each number that stands for none.
    """

    text: str
    citations: tuple[str | None, ...]


def cited_sentences(
    answers: Iterable[Answer], rankings: Mapping[tuple[str, str], Sequence[str]], known: Collection[str]
) -> dict[tuple[str, str], tuple[CitedSentence, ...] | None]:
    """The sentences of answers with what each cites, by query and agent, read as ``cited_documents`` reads them.

    A citation behind a full stop, or on a line of its own, belongs to the sentence before it. In a line that begins
    with one, citations stand before their sentences. Footnotes and a list of references at the end are no sentences.

    Args:
        answers: the answers.
        rankings: by query and agent the documents that it was given, best first.
        known: documents that can be cited by their ids, too.

    Returns:
        ``None`` for an answer of which nobody knows what its sentences cite: it has numbers, and no documents that they
        could stand for; or its citations are told beside the text (``CITATIONS``) and not in it.
    """
    each = list(answers)
    first = _counting_from_zero({(own.query_id, own.agent): _marks(own.text) for own in each})
    found: dict[tuple[str, str], tuple[CitedSentence, ...] | None] = {}
    for own in each:
        key = own.query_id, own.agent
        trec, told = _trec_citations(own), _told(own) or []
        if trec is None:
            documents: Sequence[str] = rankings.get(key) or [place for place in told if isinstance(place, str)]
            parts = _parts(own.text, known, first[own.agent])
        else:
            documents, parts = trec
        places = [place for _, cited in parts for place in cited]
        if (told and not places) or (not documents and any(isinstance(place, int) for place in places)):
            found[key] = None
        else:
            found[key] = tuple(CitedSentence(text, _documents(cited, documents)) for text, cited in parts)
    return found


def _parts(text: str, ids: Collection[str], first: int) -> list[tuple[str, list[int | str]]]:
    """The sentences of a text without their marks, each with what it cites."""
    parts: list[tuple[str, list[int | str]]] = []
    for line in _usual(_BIBLIOGRAPHY.sub("", text)).splitlines():
        before = _places(_marks(line.partition("]")[0] + "]"), ids, first) if line.lstrip().startswith("[") else ()
        moved = line if before else _BEHIND.sub(r"\2\1", line)
        for piece in sentences(_WIDE_STOP.sub("\n", moved)):
            said, places = _unmarked(piece, ids), _places(_marks(piece), ids, first)
            if re.search(r"\w", said):
                parts.append((said, places))
            elif parts:
                parts[-1][1].extend(places)
    return parts


def _usual(text: str) -> str:
    """The text with citations of all kinds in square brackets, and without footnotes."""
    text = re.sub(r"^\[\^[^\]\n]+\]:.*$", "", _OTHER_BRACKETS.sub(r"[\1]", text), flags=re.MULTILINE)
    return _FOOTNOTE.sub(lambda found: found[3] or f"[{found[1]}]{found[2]}", text)


def _unmarked(text: str, ids: Collection[str]) -> str:
    """A sentence without the brackets that cite, and only these."""
    kept = _BRACKETS.sub(lambda found: "" if _places(_marks(found[0]), ids, 0) else found[0], text)
    return re.sub(r"\s+([.!?,;:])", r"\1", " ".join(re.sub(r"\([\s,;]*\)", "", kept).split()))


def _counting_from_zero(marks: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, int]:
    """The number that each agent begins to count with."""
    from_zero = {agent for (_, agent), own in marks.items() if any(0 in _numbers(mark) for mark in own)}
    return {agent: 0 if agent in from_zero else 1 for _, agent in marks}


def _places(marks: Iterable[str], ids: Collection[str], first: int) -> list[int | str]:
    """Marks in brackets as ids, and as places from 0; others are no citations."""
    found: list[int | str] = []
    for mark in marks:
        found += [mark] if mark in ids else [number - first for number in _numbers(mark)]
    return found


def _numbers(mark: str) -> range:
    """The numbers that a mark names, one as a rule."""
    if (found := _NUMBER.fullmatch(mark)) is None:
        return range(0)
    return range(int(found[1]), int(found[2] or found[1]) + 1)


_LARGEST = 999
"""Numbers above it, such as years, cite nothing in a sentence."""


def _documents(places: Iterable[int | str], documents: Sequence[str]) -> tuple[str | None, ...]:
    """Each document once, and ``None`` for each number that stands for none."""
    at = dict(enumerate(documents))
    cited = [place for place in dict.fromkeys(places) if isinstance(place, str) or place <= _LARGEST]
    found = [place if isinstance(place, str) else at.get(place) for place in cited]
    return tuple(own for place, own in enumerate(found) if own is None or own not in found[:place])


def _cited_as_told(answer: Answer, ranking: Sequence[str], in_text: Cited) -> Cited:
    """What an answer's metadata says; else what stands in its text, which may count otherwise."""
    told = _told(answer)
    if told is None:
        return in_text
    cited = _resolved([each - 1 if isinstance(each, int) else each for each in told], ranking)
    lost = in_text.unresolved if ranking else 0  # marks of an agent that names no documents count its citations
    return Cited(cited.doc_ids, max(cited.unresolved, lost))


def _told(answer: Answer) -> list[int | str] | None:
    """What an answer's metadata says that it cites."""
    try:
        told = json.loads(answer.metadata.get(CITATIONS, ""))
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, list) and all(isinstance(each, str | int) for each in told) else None


def _marks(text: str) -> list[str]:
    return [mark.strip() for inner in _BRACKETS.findall(_usual(text)) for mark in _SEPARATOR.split(inner)]


def _trec_citations(answer: Answer) -> tuple[list[str], list[tuple[str, list[int | str]]]] | None:
    """References and sentences of a TREC RAG answer; ``None`` of another one, which may have columns of these names."""
    try:
        references = [str(doc_id) for doc_id in json.loads(answer.metadata["references"])]
        return references, [
            (
                str(sentence.get("text", "")),
                [place if isinstance(place, int) else str(place) for place in sentence.get("citations", [])],
            )
            for sentence in json.loads(answer.metadata["sentences"])
        ]
    except (LookupError, ValueError, RecursionError, TypeError, AttributeError):
        return None


def references(answer: Answer) -> list[str]:
    """The documents that a TREC RAG answer refers to; none of another one."""
    told = _trec_citations(answer)
    return [] if told is None else told[0]


def _resolved(citations: Iterable[int | str], documents: Sequence[str]) -> Cited:
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
    clusters: Clusters = ALONE,
) -> dict[str, CitationScores]:
    """Score every agent; all share the draws of the bootstrap over queries.

    Args:
        cited: see ``cited_documents``.
        labels: relevance by query and document.
        relevant: the lowest label that counts as relevant.
        samples: of the bootstrap; 0 for no intervals.
        seed: of the samples.
        clusters: what queries are drawn in.
    """
    agents = sorted({agent for _, agent in cited})
    queries = sorted({query_id for query_id, _ in cited})
    counts = np.zeros((len(agents), len(queries), 3))  # cited, labelled, relevant
    rows, columns = ({name: at for at, name in enumerate(names)} for names in (agents, queries))
    for (query_id, agent), own in cited.items():
        given = [labels[query_id][doc_id] for doc_id in own.doc_ids if doc_id in labels.get(query_id, {})]
        hits = sum(label >= relevant for label in given)
        counts[rows[agent], columns[query_id]] = len(own.doc_ids), len(given), hits
    precision = _precisions(counts, units_of(queries, clusters), samples, seed)
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


def _precisions(counts: Floats, unit: NDArray[np.int64], samples: int, seed: int) -> list[Estimate]:
    """Each agent's mean over its own defined queries, which alone are drawn from; counts are (agents, queries, 3)."""
    found: list[Estimate] = []
    for own in counts:
        defined = own[:, 1] > 0
        values = own[defined, 2] / own[defined, 1]
        _, drawn_in = np.unique(unit[defined], return_inverse=True)
        found += mean_estimates(values[np.newaxis], drawn_in, samples, seed)
    return found
