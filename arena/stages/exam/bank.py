"""What an exam grades: the test bank, of a file or of what a judge wrote, and passages of answers or documents."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import floor
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from arena.config.judging import ExamSection, GenerateSection
from arena.data import safe_files
from arena.data.dataset import Dataset
from judges.errors import ConfigError, DataError
from judges.types import Document, Query
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.vocabulary import names_of
from retrieval_eval.exam.bank_files import read_bank, write_bank
from retrieval_eval.exam.grades import Rankings
from retrieval_eval.exam.items import Bank, Item, QueryInfo
from retrieval_eval.exam.passages import document_of, passages_of, passages_of_document

_KEPT = frozenset(
    {"query_id", "text", "item_type", "item_id", "facet_id", "answers", "kind", "choices", "weight", "secret"}
)
_DEFAULTS = asdict(Item("q", "t"))


def load_bank(section: ExamSection, data: Dataset) -> Bank:
    """The bank that a configuration names, as far as it is about the tournament's queries.

    Raises:
        DataError: the file cannot be used, or has no item for any of the queries.
        ConfigError: the grading needs gold answers that an item does not have.
    """
    assert section.bank is not None
    bank = of_queries(read_bank(section.bank), data)
    require_usable(section, bank)
    return bank


def of_queries(bank: Bank, data: Dataset) -> Bank:
    """The bank as far as it is about the queries of the data."""
    items = tuple(item for item in bank.items if item.query_id in data.queries)
    return Bank(items, {key: info for key, info in bank.queries.items() if key[0] in data.queries})


def require_usable(section: ExamSection, bank: Bank) -> None:
    """Raise what ``load_bank`` says of a bank, ``of_queries``, that cannot be graded with."""
    if not any(bank.active.values()):
        raise DataError(str(section.bank), "has no item for any of the queries; are the ids those of data.queries?")
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
    """What items are written for, by query and facet: the subtopics, and queries that have none as a whole.

    Raises:
        DataError: the table of subtopics cannot be used.
    """
    found: dict[tuple[str, str | None], str] = {}
    if section.subtopics is not None:
        for row in read_rows(section.subtopics, ("qid", "facet", "subtopic"), names_of("qid")):
            key = row.identifier("qid"), row.identifier("facet")
            if key[0] not in data.queries:
                raise row.error("no query has this id", key[0])
            if key in found:
                raise row.error("this facet stands there twice", " ".join(key))
            found[key] = row.identifier("subtopic")
    named = {query_id for query_id, _ in found}
    return {**{(query_id, None): "" for query_id in data.queries if query_id not in named}, **found}


def written_items(
    section: GenerateSection,
    query_id: str,
    facet: str | None,
    texts: Sequence[str],
    origin: Mapping[str, Any] | None = None,
) -> tuple[Item, ...]:
    """The items of one reply, each with its ``origin`` where that is known.

    Which of them are secret is drawn by seed, query and facet.
    """
    hidden = floor(section.secret * len(texts) + 0.5)
    draw = random.Random(f"{section.seed} {query_id} {facet}")  # noqa: S311 - no secret hangs on it
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
    """How many items a query, or a subtopic of one as ``query/facet``, has where the judge wrote fewer than asked."""
    written = Counter("/".join(filter(None, (item.query_id, item.facet_id))) for item in bank.items)
    return {name: number for name, number in written.items() if number < section.per_query}


def generated_bank(
    queries: Mapping[str, Query], facets: Iterable[tuple[str, str | None]], items: Iterable[Item]
) -> Bank:
    """A bank of written items. Two subtopics may ask the same; such a text stands once in each, under its own id."""
    named = {(query_id, facet): QueryInfo(queries[query_id].text) for query_id, facet in facets}
    return Bank(tuple({item.item_id: item for item in items}.values()), named)


def kept_bank(bank: Bank, *, gold: bool) -> dict[str, Any]:
    """What a store keeps of a bank's active items: all that scores need, but no text of a secret question.

    Args:
        bank: of the tournament.
        gold: whether scores are made with gold answers; otherwise those of secret items, and their choices, stay out.
    """
    items = [
        {name: value for name, value in asdict(item).items() if name in _KEPT and value != _DEFAULTS.get(name)}
        | {"text": item.open_text}
        for items in bank.active.values()
        for item in (own if gold or not own.secret else _without_gold(own) for own in items)
    ]
    return {"version": bank.version, "queries": list(bank.query_ids), "items": items}


def _without_gold(item: Item) -> Item:
    return replace(item, answers=(), kind="free", choices={})


def bank_kept(kept: Mapping[str, Any]) -> Bank:
    """The bank of ``kept_bank``; its version is the kept one, not that of its own items."""
    items = tuple(Item(**{**item, "answers": tuple(item.get("answers", ()))}) for item in kept["items"])
    return Bank(items, {(query_id, None): QueryInfo() for query_id in kept["queries"]})


class Material(Struct, frozen=True):
    """What is graded.

    Attributes:
        passages: by query_id; a passage that several agents have stands there once.
        rankings: what makes up each agent's response, in order: passages of its answer, or documents.
    """

    passages: Mapping[str, tuple[Document, ...]]
    rankings: Rankings

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        """By query_id and passage_id."""
        return {query_id: {own.doc_id: own.text for own in passages} for query_id, passages in self.passages.items()}

    @property
    def passage_rankings(self) -> Rankings:
        """The rankings with each document as its passages."""
        pieces: dict[tuple[str, str], list[str]] = {}
        for query_id, passages in self.passages.items():
            for passage in passages:
                pieces.setdefault((query_id, document_of(passage.doc_id)[0]), []).append(passage.doc_id)
        return {
            (query_id, agent): tuple(piece for name in ranking for piece in pieces.get((query_id, name), (name,)))
            for (query_id, agent), ranking in self.rankings.items()
        }


def material(data: Dataset, section: ExamSection) -> Material:
    """Cut what is to be graded, down to the depth of each agent."""
    return _documents(data, section) if section.texts == "documents" else _answers(data, section)


def _answers(data: Dataset, section: ExamSection) -> Material:
    """None of an empty answer, which is a response all the same."""
    found: dict[str, list[Document]] = {}
    rankings = {}
    for (query_id, agent), answer in data.answers.items():
        own = passages_of(answer, most_words=section.passage_words)[: section.depth]
        found.setdefault(query_id, []).extend(Document(passage.passage_id, passage.text) for passage in own)
        rankings[query_id, agent] = tuple(passage.passage_id for passage in own)
    return Material({query_id: tuple(own) for query_id, own in found.items()}, rankings)


def _documents(data: Dataset, section: ExamSection) -> Material:
    """A document without text has nothing to grade, and is none of a ranking."""
    found: dict[str, dict[str, tuple[Document, ...]]] = {query_id: {} for query_id in data.retrieved}
    ranked: dict[tuple[str, str], list[str]] = {key: [] for key in data.rankings}
    for key, ranking in data.rankings.items():
        cut, own = found[key[0]], ranked[key]
        for doc_id in ranking:
            if len(own) == section.depth:
                break
            if doc_id not in cut:
                cut[doc_id] = _pieces(data.documents[doc_id], section.passage_words)
            if cut[doc_id]:
                own.append(doc_id)
    passages = {query_id: tuple(piece for own in cut.values() for piece in own) for query_id, cut in found.items()}
    return Material(passages, {key: tuple(own) for key, own in ranked.items()})


def _pieces(document: Document, most_words: int) -> tuple[Document, ...]:
    return tuple(
        Document(piece.passage_id, piece.text, document.metadata)
        for piece in passages_of_document(document, most_words=most_words)
    )


def save_bank(
    path: Path, bank: Bank, *, folder: Path | None = None, seen: str | None = None, by: str = "", what: str = ""
) -> Path | None:
    """Write a bank, its secret items too.

    Args:
        path: of the file.
        bank: what to write; items of an earlier version are never missing from it, only retired.
        folder: where the file must be; anywhere when ``None``.
        seen: ``safe_files.digest`` of the version that was edited; ``None`` for a file that is not there yet.
        by: who edits.
        what: they changed, in words.

    Returns:
        The earlier version in the file's history, if there is one.

    Raises:
        InputError: the file changed meanwhile, is there already, is outside the folder, or cannot be written.
    """
    inside = path.parent if folder is None else folder
    return safe_files.save(path, lambda draft: _write(draft, path, bank), folder=inside, seen=seen, by=by, what=what)


def _write(draft: Path, path: Path, bank: Bank) -> None:
    """Write it and read it again: what a file of its kind cannot hold is not lost in silence."""
    try:
        write_bank(draft, bank, secret=True)
        again = read_bank(draft)
    except DataError as error:
        raise DataError(path, error.problem, line=error.line, value=error.value) from error
    if again.by_id != {item.item_id: replace(item, text=item.text.strip()) for item in bank.items}:
        raise DataError(path, "cannot hold this bank; nothing was saved. Convert it with 'ragleague convert'")
