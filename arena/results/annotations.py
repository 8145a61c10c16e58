"""Digest of an annotation's current texts, which shows whether the annotation is outdated."""

from __future__ import annotations

from collections.abc import Mapping

from arena.data.dataset import Dataset
from arena.stages.support import SupportSubject, cited_texts
from arena.store.annotations import Annotation, Kind, texts_digest


def texts_now(annotation: Annotation, data: Dataset, nugget_texts: Mapping[str, str]) -> str | None:
    """Digest of an annotation's texts as they are now, ``None`` if one of them is gone.

    The texts are, in this order: the query's thread (its own text for nuggets), then the document; the answer; the two
    answers of a game; the answer and the nugget; or the sentence and the document. See ``texts_digest``. The
    judge's name is added for a flag.

    Args:
        annotation: the annotation.
        data: queries, documents and answers.
        nugget_texts: nugget texts by nugget id, for annotations of nuggets.
    """
    query = data.queries.get(annotation.query_id)
    texts = [None if query is None else query.text if annotation.kind is Kind.NUGGET else query.thread]
    if annotation.kind is Kind.RELEVANCE:
        texts.append(data.documents[annotation.item].text if annotation.item in data.documents else None)
    elif annotation.kind is Kind.SUPPORT:
        texts += cited_texts(SupportSubject.named(annotation.query_id, annotation.item, annotation.other), data)
    else:
        agents = [annotation.item, *([annotation.other] if annotation.kind in {Kind.VERDICT, Kind.FLAG} else [])]
        answers = [data.answers.get((annotation.query_id, agent)) for agent in agents]
        texts += [None if answer is None else answer.text for answer in answers]
    if annotation.kind is Kind.NUGGET:
        texts.append(nugget_texts.get(annotation.other))
    elif annotation.kind is Kind.FLAG:
        texts.append(annotation.value["judge"])
    known = [text for text in texts if text is not None]
    return texts_digest(*known) if len(known) == len(texts) else None
