"""The test bank of an exam, from a file or a judge, and the passages of answers or documents to grade."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import floor
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from arena.config.judging import ExamSection, GenerateSection
from arena.data import safe_files
from arena.data.dataset import Dataset
from judges.errors import ConfigError, DataError
from judges.types import Document, Query
from retrieval_eval.data.table_spec import TableSpec
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.grades import Rankings, document_of, passages_of, passages_of_document
from retrieval_eval.exam.items import Bank, Item, QueryInfo

_KEPT = frozenset(
    {"query_id", "text", "item_type", "item_id", "facet_id", "answers", "kind", "choices", "weight", "secret"}
)
SUBTOPICS: Final = TableSpec(("qid", "facet"), ("qid", "facet", "subtopic"))
_DEFAULTS = asdict(Item("q", "t"))


def load_bank(section: ExamSection, data: Dataset) -> Bank:
    """The configured bank, limited to the queries of the data.

    Raises:
        DataError: the file cannot be used, or has no item for any of the queries.
        ConfigError: the grading needs gold answers that an item does not have.
    """
    assert section.bank is not None
    bank = of_queries(read_bank(section.bank), data)
    require_usable(section, bank)
    return bank


def of_queries(bank: Bank, data: Dataset) -> Bank:
    """A copy of the bank that contains only items of queries in the data."""
    items = tuple(item for item in bank.items if item.query_id in data.queries)
    return Bank(items, {key: info for key, info in bank.queries.items() if key[0] in data.queries})


def require_usable(section: ExamSection, bank: Bank) -> None:
    """Raise the same errors as ``load_bank`` if the bank cannot be used for grading."""
    if not any(bank.active.values()):
        raise DataError(str(section.bank), "has no item for any of the queries; use the ids of data.queries")
    if section.grading in ("extraction_words", "extraction_llm"):
        _require_gold(section, bank.items)


def _require_gold(section: ExamSection, items: Iterable[Item]) -> None:
    for item in items:
        if not item.answers and not item.retired:
            which = "a secret item" if item.secret else f"item {item.item_id!r}"
            raise ConfigError(
                f"exam.grading: {section.grading!r} checks against gold answers, and {which} of {section.bank} has none"
            )


def subtopics(section: GenerateSection, data: Dataset) -> dict[tuple[str, str | None], str]:
    """The subtopics to write items for, by query and facet; a query without any has facet ``None`` and an empty text.

    Raises:
        DataError: the table of subtopics cannot be used.
    """
    texts: dict[tuple[str, str | None], str] = {}
    if section.subtopics is not None:
        for row in SUBTOPICS.rows(section.subtopics):
            key = row.identifier("qid"), row.identifier("facet")
            if key[0] not in data.queries:
                raise row.error("no query has this id", key[0])
            if key in texts:
                raise row.error("this facet is repeated", " ".join(key))
            texts[key] = row.identifier("subtopic")
    named = {query_id for query_id, _ in texts}
    return {**{(query_id, None): "" for query_id in data.queries if query_id not in named}, **texts}


def written_items(
    section: GenerateSection,
    query_id: str,
    facet: str | None,
    texts: Sequence[str],
    origin: Mapping[str, Any] | None = None,
) -> tuple[Item, ...]:
    """Make items of the texts in one reply, each with ``origin`` as metadata if given.

    Some items are marked as secret at random; the seed depends on section, query and facet.
    """
    hidden = floor(section.secret * len(texts) + 0.5)
    draw = random.Random(f"{section.seed} {query_id} {facet}")  # noqa: S311 - needs no cryptographic randomness
    secret = set(draw.sample(range(len(texts)), hidden))
    return tuple(
        Item(
            query_id,
            text,
            section.kind,
            facet_id=facet,
            secret=place in secret,
            metadata={"generated": dict(origin)} if origin else {},
        )
        for place, text in enumerate(texts)
    )


def shorter_than_asked(section: GenerateSection, bank: Bank) -> dict[str, int]:
    """Queries or subtopics (as ``query/facet``) with fewer items than requested, with their number of items."""
    counts = Counter("/".join(filter(None, (item.query_id, item.facet_id))) for item in bank.items)
    return {name: number for name, number in counts.items() if number < section.per_query}


def generated_bank(
    queries: Mapping[str, Query], facets: Iterable[tuple[str, str | None]], items: Iterable[Item]
) -> Bank:
    """A bank of written items; if two subtopics have the same text, each keeps it under a separate id."""
    named = {(query_id, facet): QueryInfo(queries[query_id].text) for query_id, facet in facets}
    return Bank(tuple({item.item_id: item for item in items}.values()), named)


def kept_bank(bank: Bank, *, gold: bool) -> dict[str, Any]:
    """A bank's active items as stored: everything that scores need, but no text of a secret question.

    Args:
        bank: the tournament's bank.
        gold: whether scores use gold answers; if not, the answers and choices of secret items are left out.
    """
    items = [
        {name: value for name, value in asdict(item).items() if name in _KEPT and value != _DEFAULTS.get(name)}
        | {"text": item.open_text}
        for items in bank.active.values()
        for item in (entry if gold or not entry.secret else _without_gold(entry) for entry in items)
    ]
    return {"version": bank.version, "queries": list(bank.query_ids), "items": items}


def _without_gold(item: Item) -> Item:
    return replace(item, answers=(), kind="free", choices={})


def bank_kept(kept: Mapping[str, Any]) -> Bank:
    """The bank that ``kept_bank`` stored; it keeps the stored version number."""
    items = tuple(Item(**{**item, "answers": tuple(item.get("answers", ()))}) for item in kept["items"])
    return Bank(items, {(query_id, None): QueryInfo() for query_id in kept["queries"]})


class Material(Struct, frozen=True):
    """The passages to grade.

    Attributes:
        passages: the passages by query_id; a passage of several agents occurs once.
        rankings: each agent's response: the passages of its answer in order, or its ranked documents.
    """

    passages: Mapping[str, tuple[Document, ...]]
    rankings: Rankings

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        """The passages' texts, by query_id and passage_id."""
        return {
            query_id: {passage.doc_id: passage.text for passage in passages}
            for query_id, passages in self.passages.items()
        }

    @property
    def passage_rankings(self) -> Rankings:
        """The rankings with each document replaced by its passages."""
        pieces: dict[tuple[str, str], list[str]] = {}
        for query_id, passages in self.passages.items():
            for passage in passages:
                pieces.setdefault((query_id, document_of(passage.doc_id)[0]), []).append(passage.doc_id)
        return {
            (query_id, agent): tuple(piece for name in ranking for piece in pieces.get((query_id, name), (name,)))
            for (query_id, agent), ranking in self.rankings.items()
        }


def material(data: Dataset, section: ExamSection) -> Material:
    """Cut answers or documents into the passages to grade, down to the depth for each agent."""
    return _documents(data, section) if section.texts == "documents" else _answers(data, section)


def _answers(data: Dataset, section: ExamSection) -> Material:
    """Cut answers into passages; an empty answer has none, but counts as a response."""
    by_query: dict[str, list[Document]] = {}
    rankings = {}
    for (query_id, agent), answer in data.answers.items():
        passages = passages_of(answer, most_words=section.passage_words)[: section.depth]
        by_query.setdefault(query_id, []).extend(Document(passage.passage_id, passage.text) for passage in passages)
        rankings[query_id, agent] = tuple(passage.passage_id for passage in passages)
    return Material({query_id: tuple(passages) for query_id, passages in by_query.items()}, rankings)


def _documents(data: Dataset, section: ExamSection) -> Material:
    """Cut documents into passages; documents without text are left out of the rankings."""
    pieces: dict[str, dict[str, tuple[Document, ...]]] = {query_id: {} for query_id in data.retrieved}
    ranked: dict[tuple[str, str], list[str]] = {key: [] for key in data.rankings}
    for key, ranking in data.rankings.items():
        query_pieces, doc_ids = pieces[key[0]], ranked[key]
        for doc_id in ranking:
            if len(doc_ids) == section.depth:
                break
            if doc_id not in query_pieces:
                query_pieces[doc_id] = _pieces(data.documents[doc_id], section.passage_words)
            if query_pieces[doc_id]:
                doc_ids.append(doc_id)
    passages = {
        query_id: tuple(piece for doc_ids in query_pieces.values() for piece in doc_ids)
        for query_id, query_pieces in pieces.items()
    }
    return Material(passages, {key: tuple(doc_ids) for key, doc_ids in ranked.items()})


def _pieces(document: Document, most_words: int) -> tuple[Document, ...]:
    return tuple(
        Document(piece.passage_id, piece.text, document.metadata)
        for piece in passages_of_document(document, most_words=most_words)
    )


def save_bank(
    path: Path, bank: Bank, *, folder: Path | None = None, seen: str | None = None, by: str = "", what: str = ""
) -> Path | None:
    """Write a bank, including its secret items.

    Args:
        path: path of the file.
        bank: the bank; items are never deleted from it, only retired.
        folder: the folder that must contain the file; ``None`` to allow any.
        seen: ``safe_files.digest`` of the version that was edited; ``None`` for a new file.
        by: name of the editor.
        what: description of the change.

    Returns:
        Path of the previous version in the file's history, if there is one.

    Raises:
        InputError: the file has changed since, exists already, is outside the folder, or cannot be written.
    """
    inside = path.parent if folder is None else folder
    return safe_files.save(path, lambda draft: _write(draft, path, bank), folder=inside, seen=seen, by=by, what=what)


def _write(draft: Path, path: Path, bank: Bank) -> None:
    """Write the draft and read it back, since a file format may be unable to hold some text."""
    try:
        write_bank(draft, bank, secret=True)
        again = read_bank(draft)
    except DataError as error:
        raise DataError(path, error.problem, line=error.line, value=error.value) from error
    if again.by_id != {item.item_id: replace(item, text=item.text.strip()) for item in bank.items}:
        raise DataError(path, "cannot hold this bank; nothing was saved. Convert it with 'ragleague convert bank'")
