"""What people said on the pages, from a tournament's store.

An annotation holds for the texts that its annotator saw. These are, in this order: the query, then the document, the
answer, the two answers of a game, or the answer and the nugget; see ``texts_digest``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from arena.calibration.opinions import Level, Opinion
from arena.data.dataset import Dataset
from arena.opinions.files import OUTCOME, SUPPORT
from arena.stages.nuggets.results import nugget_results
from arena.store import Store
from arena.store.annotations import Annotation, Annotations, Kind, texts_digest
from judges.types import Verdict
from retrieval_eval.nuggets.types import Support


def peoples_opinions(store: Store, tournament: str) -> tuple[dict[tuple[Level, str], list[Opinion]], int]:
    """Everything people said, by level; what they skipped is no opinion.

    Returns:
        Also how many annotations are of texts that have changed since, or are gone; they are left out.

    Raises:
        InputError: no such tournament.
    """
    said, outdated = said_of_texts_now(store, tournament)
    found: dict[tuple[Level, str], list[Opinion]] = {}
    for one in said:
        for level, opinion in opinions_in(one):
            found.setdefault((level, ""), []).append(opinion)
    return found, outdated


def said_of_texts_now(store: Store, tournament: str, kind: Kind | None = None) -> tuple[list[Annotation], int]:
    """The latest word of everybody, skipped things aside, on texts that are as they were.

    Args:
        store: that holds them.
        tournament: its name.
        kind: only of this kind.

    Returns:
        Also how many are of texts that have changed since, or are gone.

    Raises:
        InputError: no such tournament.
    """
    said = [one for one in Annotations(store, tournament).latest(kind) if one.value is not None]
    if not said:
        return [], 0
    data = store.dataset(tournament)
    texts = nugget_texts(store, tournament) if any(one.kind is Kind.NUGGET for one in said) else {}
    nuggets = {nugget_id: text for (_, nugget_id), text in texts.items()}
    current = [one for one in said if texts_now(one, data, nuggets) == one.texts]
    return current, len(said) - len(current)


def opinions_in(said: Annotation) -> Iterator[tuple[Level, Opinion]]:
    """What an annotation comes to, where its thing was not skipped."""
    if said.kind is Kind.VERDICT:
        pair = tuple(sorted((said.item, said.other)))
        value = OUTCOME[Verdict(said.value)]
        swapped = said.item != pair[0]
        yield "verdicts", Opinion(said.query_id, pair, said.annotator, -value if swapped else value, swapped)
    elif said.kind is Kind.RELEVANCE:
        yield "labels", Opinion(said.query_id, (said.item,), said.annotator, float(said.value))
    elif said.kind is Kind.NUGGET:
        label = SUPPORT[Support(said.value)]
        yield "nuggets", Opinion(said.query_id, (said.item, said.other), said.annotator, label)
    else:
        for criterion, grade in said.value.items():
            yield "criteria", Opinion(said.query_id, (said.item, criterion), said.annotator, float(grade))


def texts_now(said: Annotation, data: Dataset, nuggets: Mapping[str, str]) -> str | None:
    """The digest of the thing's texts as they are now, ``None`` where one is gone.

    Args:
        said: of the thing.
        data: queries, documents and answers.
        nuggets: texts by id, for what is said of nuggets.
    """
    query = data.queries.get(said.query_id)
    texts = [None if query is None else query.text]
    if said.kind is Kind.RELEVANCE:
        texts.append(data.documents[said.item].text if said.item in data.documents else None)
    else:
        agents = [said.item, *([said.other] if said.kind is Kind.VERDICT else [])]
        found = [data.answers.get((said.query_id, agent)) for agent in agents]
        texts += [None if answer is None else answer.text for answer in found]
    if said.kind is Kind.NUGGET:
        texts.append(nuggets.get(said.other))
    known = [text for text in texts if text is not None]
    return texts_digest(*known) if len(known) == len(texts) else None


def nugget_texts(store: Store, tournament: str) -> dict[tuple[str, str], str]:
    """Texts of a tournament's nuggets by query and id."""
    results = nugget_results(store, tournament)
    banks = {} if results is None else results.banks
    return {(query, nugget.nugget_id): nugget.text for query, bank in banks.items() for nugget in bank.nuggets}
