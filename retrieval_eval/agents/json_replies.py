"""Extracts the answer, documents and citations from an agent's untrusted JSON reply with JMESPath expressions."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from judges.errors import ProviderError
from judges.masking import storable
from judges.providers.endpoint import token_count
from judges.types import Document, Usage
from retrieval_eval.agents.spec import MappingSpec
from retrieval_eval.agents.types import RetrievedText

_MOST_DOCUMENTS = 1000
_CITED = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_SCORE = "\0score"


class Mapped(Struct, frozen=True):
    """The answer, documents and citations that an agent's reply contains."""

    answer: str
    documents: tuple[RetrievedText, ...]
    citations: tuple[str, ...]


def read_reply(body: Any, spec: MappingSpec, corpus: Mapping[str, Document]) -> Mapped:
    """Extract the answer, documents and citations from a reply.

    Args:
        body: the decoded JSON.
        spec: the JMESPath expressions for the answer, documents and citations.
        corpus: documents by id, for the texts of documents that the reply gives by id only.

    Raises:
        ProviderError: ``empty`` if there is no answer, ``contract`` if a part has the wrong type.
    """
    answer = _answer(body, spec)
    entries = _documents(body, spec, corpus)
    citations = None if spec.citations is None else _at(body, spec.citations)
    ids = [entry.doc_id for entry in entries]
    cited = cited_numbers(answer, len(ids)) if citations is None else citations
    documents = _ranked(entries)
    # If no document has a text, they are only citations. A ranking with some texts missing could not be scored.
    without_text = [document.doc_id for document in documents if not document.text.strip()]
    if 0 < len(without_text) < len(documents):
        raise ProviderError("contract", f"document {without_text[0]!r} has no text, neither here nor in 'data.corpus'")
    return Mapped(answer, documents, _citations(cited, ids))


def read_usage(body: Any, spec: MappingSpec) -> tuple[Usage, float | None]:
    """The numbers of tokens and the dollars that a reply reports; ``None`` if it lacks them or they are invalid.

    Raises:
        ProviderError: ``contract``, for the same reasons as in ``read_reply``.
    """
    dollars = None if spec.cost_usd is None else _number(_at(body, spec.cost_usd))
    usage = Usage(_tokens(body, spec.input_tokens), None, _tokens(body, spec.output_tokens))
    return usage, dollars if dollars is None or dollars >= 0 else None


def _answer(body: Any, spec: MappingSpec) -> str:
    answer = _at(body, spec.answer)
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        raise ProviderError("empty", f"the agent gave no answer at {spec.answer!r}")
    if not isinstance(answer, str):
        raise ProviderError("contract", f"the value at {spec.answer!r} is not a text")
    return storable(answer)


def _documents(body: Any, spec: MappingSpec, corpus: Mapping[str, Document]) -> list[Document]:
    """Documents in the reply's order; ``metadata`` contains their scores until they are ranked."""
    listed = None if spec.documents is None else _at(body, spec.documents)
    if listed is None:
        return []
    if not isinstance(listed, list) or len(listed) > _MOST_DOCUMENTS:
        raise ProviderError(
            "contract", f"the value at {spec.documents!r} is not a list of at most {_MOST_DOCUMENTS} documents"
        )
    return [_document(entry, number, spec, corpus) for number, entry in enumerate(listed, start=1)]


def _document(entry: Any, number: int, spec: MappingSpec, corpus: Mapping[str, Document]) -> Document:
    if isinstance(entry, str):
        entry = {spec.doc_id: entry} if entry in corpus else {spec.text: entry}
        doc_id, text = entry.get(spec.doc_id), entry.get(spec.text)
    else:
        doc_id, text = _at(entry, spec.doc_id), _at(entry, spec.text)
    if isinstance(doc_id, int) and not isinstance(doc_id, bool):
        doc_id = str(doc_id)
    if not isinstance(doc_id, str | None) or not isinstance(text, str | None) or not (doc_id or text):
        raise ProviderError("contract", f"document {number} has neither an id at {spec.doc_id!r} nor a text")
    known = corpus.get(doc_id or "")
    text = storable(text or (known.text if known is not None else ""))
    doc_id = storable(doc_id) if doc_id else "sha256-" + hashlib.sha256(text.encode()).hexdigest()[:16]
    score, title = _number(_at(entry, spec.score)), _at(entry, spec.title)
    metadata = {} if known is None else dict(known.metadata)
    if isinstance(title, str) and title:
        metadata["title"] = storable(title)
    return Document(doc_id, text, metadata if score is None else {**metadata, _SCORE: repr(score)})


def _ranked(entries: Sequence[Document]) -> tuple[RetrievedText, ...]:
    pieces_by_id: dict[str, list[Document]] = {}
    for entry in entries:
        pieces_by_id.setdefault(entry.doc_id, []).append(entry)
    ranked = []
    for rank, (doc_id, pieces) in enumerate(pieces_by_id.items(), start=1):
        text = "\n\n".join(dict.fromkeys(piece.text for piece in pieces if piece.text))
        metadata = dict(pieces[0].metadata)
        score = metadata.pop(_SCORE, None)
        ranked.append(RetrievedText(doc_id, text, rank, None if score is None else float(score), metadata))
    return tuple(ranked)


def _citations(citations: Any, ids: Sequence[str]) -> tuple[str, ...]:
    """The doc_ids of citations, which are doc_ids or positions in ``ids`` from 1; other positions are ignored."""
    if not isinstance(citations, list | tuple):
        raise ProviderError("contract", "the citations are not a list")
    doc_ids = []
    for entry in citations:
        if isinstance(entry, str) and entry.strip():
            doc_ids.append(storable(entry))
        elif isinstance(entry, int) and not isinstance(entry, bool):
            doc_ids += [ids[entry - 1]] if 1 <= entry <= len(ids) else []
        else:
            raise ProviderError("contract", "a citation is neither a doc_id nor a number of a document")
    return tuple(dict.fromkeys(doc_ids))


def cited_numbers(text: str, passages: int) -> tuple[int, ...]:
    """Numbers of the passages that an answer cites as ``[1]`` or ``[1, 3]``, each once, by first mention.

    Args:
        text: the answer.
        passages: number of passages; higher numbers are ignored.
    """
    numbers = (int(number) for group in _CITED.findall(text) for number in re.split(r"\s*[,;]\s*", group))
    return tuple(dict.fromkeys(number for number in numbers if 1 <= number <= passages))


def _at(value: Any, expression: str) -> Any:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.search(expression, value)
    except JMESPathError as error:
        problem = str(error).splitlines()[0]
        raise ProviderError("contract", f"{expression!r} cannot be evaluated on the reply: {problem}") from None
    except RecursionError:
        raise ProviderError("contract", "the reply is nested too deeply") from None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= 1e300 and math.isfinite(value) else None


def _tokens(body: Any, expression: str | None) -> int | None:
    return None if expression is None else token_count({"count": _at(body, expression)}, "count")
