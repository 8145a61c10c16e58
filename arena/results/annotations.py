"""Whether what people said is of the texts as they are now."""

from __future__ import annotations

from collections.abc import Mapping

from arena.data.dataset import Dataset
from arena.stages.support import SupportSubject, cited_texts
from arena.store.annotations import Annotation, Kind, texts_digest


def texts_now(said: Annotation, data: Dataset, nugget_texts: Mapping[str, str]) -> str | None:
    """The digest of an annotation's texts as they are now, ``None`` where one is gone.

    The texts are, in this order: the query's thread (of nuggets its own text), then the document, the answer, the two
    answers of a game, the answer and the nugget, or the sentence and the document; see ``texts_digest``. Of a flag the
    judge's name belongs to them.

    Args:
        said: the annotation.
        data: queries, documents and answers.
        nugget_texts: texts by nugget id, for annotations of nuggets.
    """
    query = data.queries.get(said.query_id)
    texts = [None if query is None else query.text if said.kind is Kind.NUGGET else query.thread]
    if said.kind is Kind.RELEVANCE:
        texts.append(data.documents[said.item].text if said.item in data.documents else None)
    elif said.kind is Kind.SUPPORT:
        texts += cited_texts(SupportSubject.named(said.query_id, said.item, said.other), data)
    else:
        agents = [said.item, *([said.other] if said.kind in {Kind.VERDICT, Kind.FLAG} else [])]
        given = [data.answers.get((said.query_id, agent)) for agent in agents]
        texts += [None if answer is None else answer.text for answer in given]
    if said.kind is Kind.NUGGET:
        texts.append(nugget_texts.get(said.other))
    elif said.kind is Kind.FLAG:
        texts.append(said.value["judge"])
    known = [text for text in texts if text is not None]
    return texts_digest(*known) if len(known) == len(texts) else None
