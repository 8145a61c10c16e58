"""Exam stage: grades passages of answers or documents by test items, from a bank or written by a judge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from arena.config.judging import ExamSection, GenerateSection
from arena.data.dataset import Dataset
from arena.stages.base import RelevanceLabels, TournamentStage, file_digest
from arena.store import Result, Store, Wanted
from arena.store.rows import GradedSubject
from judges.errors import ConfigError, DataError
from judges.prompts import PromptTemplate, load_prompt
from judges.prompts.tasks import answer_check_prompt, extraction_prompt, grading_prompt, questions_prompt
from judges.refusals import SAYS_IT, SAYS_SO
from judges.self_rating import is_answer
from judges.types import Document, Judgment, Prompt, Query, Task
from retrieval_eval.data.table_spec import TableSpec
from retrieval_eval.exam.grades import Rankings, document_of, passages_of, passages_of_document
from retrieval_eval.exam.items import Bank, Item, ItemType, QueryInfo

if TYPE_CHECKING:
    from arena.config.schema import Config

_UNWRITTEN = "Item {} that nobody wrote yet, about as long as an item usually is?"
_EXTRACTION: Mapping[ItemType, str] = {"question": "extraction", "nugget": "extraction_nugget"}
_TOKENS_OF_A_RATING = 8
"""Number of tokens that one rating and its name take in a reply with several ratings."""


def grouped(
    items: Sequence[Item], size: int, earlier: Iterable[tuple[str, ...]], known: Mapping[str, Item]
) -> list[tuple[str, ...]]:
    """Divide items into groups to be graded in one call each; all items of a group have the same type.

    Groups of an earlier run are kept as long as the bank has all their items and at least one is not retired. Their
    stored grades then stay valid, and an edit of the bank costs calls for new items only.
    """
    left = {item.item_id: item for item in items}
    groups = []
    for group in earlier:
        if len(group) <= size and all(item_id in known for item_id in group) and any(i in left for i in group):
            groups.append(group)
            for item_id in group:
                left.pop(item_id, None)
    for item_type in dict.fromkeys(item.item_type for item in left.values()):
        of_type = [item.item_id for item in left.values() if item.item_type == item_type]
        groups += [tuple(of_type[at : at + size]) for at in range(0, len(of_type), size)]
    return groups


class ExamStage(TournamentStage):
    """Writes test items if the configuration asks for it, then grades every passage by the items of its query."""

    key = "exam"
    written_once = (Task.QUESTIONS, Task.EXTRACTION)

    def __init__(self, section: ExamSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self.section = section
        self._grading = Task.GRADING if section.grading == "self_rating" else Task.EXTRACTION
        self._earlier: dict[str, dict[tuple[str, ...], None]] = {}
        self._answers: dict[tuple[str, str], str] = {}
        self._facets: dict[str, dict[str | None, str]] = {}
        self.bank = None
        if section.generate is not None:
            self.leading = (Task.QUESTIONS,)
            self._told = told_items(section, data.queries, section.generate.kind)
            self._items: dict[str, Item] = {item.item_id: item for item in self._told.values()}
            for (query_id, facet), subtopic in subtopics(section.generate, data).items():
                if query_id not in self._told:
                    self._facets.setdefault(query_id, {})[facet] = subtopic
        else:
            self.bank = load_bank(section, data)
            self._items = dict(self.bank.by_id)
            if section.grading == "extraction_llm":
                self.leading = (Task.EXTRACTION,)
        self.templates = self._loaded()

    def _loaded(self) -> dict[str, PromptTemplate]:
        section, templates = self.section, dict[str, PromptTemplate]()
        if (generate := section.generate) is not None:
            default_prompt = "exam_nuggets" if generate.kind == "nugget" else "exam_questions"
            if generate.subtopics is not None and generate.kind == "question":
                default_prompt = "exam_questions_subtopic"
            templates["questions"] = load_prompt(generate.prompt or default_prompt, Task.QUESTIONS)
        types = {generate.kind} if generate is not None else {item.item_type for item in self._items.values()}
        for kind in sorted(types):
            if self._grading is Task.EXTRACTION:
                name = _EXTRACTION[kind]
                templates[name] = load_prompt(section.prompt or name, Task.EXTRACTION)
            else:
                templates[f"grading {kind}"] = load_prompt(section.prompt or f"self_rating_{kind}", Task.GRADING)
        if section.grading == "extraction_llm":
            templates["answer_check"] = load_prompt(section.check_prompt, Task.ANSWER_CHECK)
        return templates

    @property
    def tasks(self) -> list[Task]:
        writes = [Task.QUESTIONS] if self.section.generate is not None else []
        checks = [Task.ANSWER_CHECK] if self.section.grading == "extraction_llm" else []
        return [*writes, self._grading, *checks]

    def resume(self, store: Store, tournament: str) -> None:
        """Read from the store which items the last run graded in one call, if ``items_per_call`` is unchanged."""
        size = self.section.items_per_call
        before = store.settings(tournament).exam if size > 1 else None
        if before is not None and before.items_per_call == size:
            for want, _ in store.wanted(tournament, Task.GRADING):
                self._earlier.setdefault(want.query_id, {})[GradedSubject.of(want).by] = None

    def first(self, query_id: str) -> Sequence[Wanted]:
        generate = self.section.generate
        if self.bank is None and generate is not None:
            if query_id in self._told:
                return self._graded(query_id, [self._told[query_id]])
            judge = generate.judge or self.section.judge
            facets = self._facets.get(query_id, ())
            return [Wanted(Task.QUESTIONS, judge, query_id, facet or "") for facet in facets]
        assert self.bank is not None
        return self._graded(query_id, self.bank.active.get(query_id, ()))

    def _graded(self, query_id: str, items: Sequence[Item]) -> list[Wanted]:
        groups = grouped(items, self.section.items_per_call, self._earlier.get(query_id, ()), self._items)
        return [
            GradedSubject(query_id, passage.doc_id, group).want(self._grading, self.section.judge)
            for passage in self._material.passages.get(query_id, ())
            for group in groups
        ]

    def after(self, want: Wanted, result: Result) -> Sequence[Wanted]:
        if not isinstance(result, Judgment):
            return ()
        if want.task is Task.QUESTIONS:
            assert self.section.generate is not None
            items = written_items(self.section.generate, want, result)
            self._items.update({item.item_id: item for item in items})
            return self._graded(want.query_id, items)
        graded = GradedSubject.of(want)
        (item_id,) = graded.by
        answer = self._answers[graded.item, item_id] = str(result.outcome)
        if not is_answer(answer):
            return ()  # graded 0 without a call
        return [replace(want, task=Task.ANSWER_CHECK, judge=self.section.check_judge or want.judge)]

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt; ``None`` for checking an answer that no judge has extracted from the passage yet."""
        query = self.data.queries[want.query_id]
        template = self._template(want)
        if want.task is Task.QUESTIONS:
            subtopic = self._facets[want.query_id][want.item or None]
            return questions_prompt(template, query, self._per_query, subtopic)
        graded = GradedSubject.of(want)
        items = [self._items[item_id] for item_id in graded.by]
        passage = self._passages[want.query_id, graded.item]
        if want.task is Task.GRADING:
            return grading_prompt(template, query, passage, [item.text for item in items])
        (item,) = items
        question = Query(want.query_id, item.text)
        if want.task is Task.EXTRACTION:
            return extraction_prompt(template, question, passage)
        answer = self._answers.get((graded.item, item.item_id))
        return None if answer is None else answer_check_prompt(template, question, item.answers, answer)

    def shares(self, want: Wanted) -> bool:
        """Whether a passage is graded in several calls; items that a judge writes are taken to be as many as asked."""
        items = self._per_query if self.bank is None else len(self.bank.active.get(want.query_id, ()))
        return items > self.section.items_per_call

    def _template(self, want: Wanted) -> PromptTemplate:
        if want.task is not self._grading:
            return self.templates[want.task.value]
        first, *_ = GradedSubject.of(want).by
        kind = self._items[first].item_type
        return self.templates[_EXTRACTION[kind] if want.task is Task.EXTRACTION else f"grading {kind}"]

    def typical_tokens(self, want: Wanted) -> int:
        number = len(GradedSubject.of(want).by) if want.task is Task.GRADING else 1
        return _TOKENS_OF_A_RATING * number if number > 1 else self._template(want).reply.typical_tokens

    def stand_in(self, want: Wanted, prompt: Prompt) -> Judgment:  # noqa: ARG002
        if want.task is Task.QUESTIONS:
            texts = tuple(_UNWRITTEN.format(number + 1) for number in range(self._per_query))
            return Judgment("", texts, "", "", "")
        graded = GradedSubject.of(want)
        answers = [self._items[item_id].answers for item_id in graded.by]
        return Judgment("", f"{answers[0][0]}, as {graded.item} has it", "", "", "")

    def most(self) -> dict[Task, int]:
        """Maximum number of gradings if the judge writes the items; or of checks, if every passage has an answer."""
        passages = {query_id: len(texts) for query_id, texts in self._material.passages.items()}
        if self.section.grading == "extraction_llm":
            assert self.bank is not None
            items = self.bank.active.items()
            return {Task.ANSWER_CHECK: sum(len(entries) * passages.get(query_id, 0) for query_id, entries in items)}
        if self.section.generate is None:
            return {}
        calls = ceil(self._per_query / self.section.items_per_call) * self.config.judges[self.section.judge].samples
        facets = {query_id: len(facets) for query_id, facets in self._facets.items()} | dict.fromkeys(self._told, 1)
        return {self._grading: sum(calls * number * passages.get(query_id, 0) for query_id, number in facets.items())}

    def assumptions(self) -> Iterator[str]:
        if self.leading:
            yield "exam items not written yet are assumed to be of usual number and length, and all answers checked"

    def settings(self) -> dict[str, Any]:
        """The stage's settings as the store keeps them, without the texts of secret items."""
        settings: dict[str, Any] = self.section.model_dump(
            mode="json",
            exclude={"bank": True, "prompt": True, "check_prompt": True, "generate": {"subtopics", "prompt"}},
        )
        settings["prompts"] = self.prompt_names()
        if self.bank is not None and self.section.bank is not None:
            gold = self.section.grading == "extraction_words"
            settings |= {"bank": file_digest(self.section.bank), "content": kept_bank(self.bank, gold=gold)}
        return settings

    @property
    def _per_query(self) -> int:
        return self.section.generate.per_query if self.section.generate is not None else 0

    @cached_property
    def _material(self) -> Material:
        return material(self.data, self.section)

    @cached_property
    def _passages(self) -> dict[tuple[str, str], Document]:
        return {
            (query_id, passage.doc_id): passage
            for query_id, passages in self._material.passages.items()
            for passage in passages
        }


_KEPT = frozenset(
    {"query_id", "text", "item_type", "item_id", "facet_id", "answers", "kind", "choices", "weight", "secret"}
)
SUBTOPICS: Final = TableSpec(("qid", "facet"), ("qid", "facet", "subtopic"))
_DEFAULTS = asdict(Item("q", "t"))


def load_bank(section: ExamSection, data: Dataset) -> Bank:
    """Read the configured test bank, keep only items for queries in the dataset, and add those of ``told_items``.

    Raises:
        DataError: the file cannot be used, or has no item for any of the queries.
        ConfigError: the grading needs gold answers that an item does not have.
    """
    from retrieval_eval.exam.bank_files import read_bank  # late: results of stored judgments read no files

    assert section.bank is not None
    bank = read_bank(section.bank).of_queries(data.queries)
    require_usable(section, bank)
    return with_told_items(section, bank, data.queries)


def with_told_items(section: ExamSection, bank: Bank, queries: Mapping[str, Query]) -> Bank:
    """The items of a bank that a run grades for these queries: the bank's and those of ``told_items``."""
    bank = bank.of_queries(queries)
    kind: ItemType = "question" if any(item.item_type == "question" for item in bank.items) else "nugget"
    told = [item for name, item in told_items(section, queries, kind).items() if not bank.active.get(name)]
    return replace(bank, items=(*bank.items, *told)) if told else bank


def told_items(section: ExamSection, queries: Mapping[str, Query], kind: ItemType) -> dict[str, Item]:
    """The item of each query that nothing in the documents answers: that the answer says so.

    Only a judge that rates answers can grade it, as it has no gold answer.
    """
    if section.texts != "answers" or section.grading != "self_rating":
        return {}
    text = SAYS_IT if kind == "question" else SAYS_SO
    unanswerable = (query_id for query_id, query in queries.items() if query.answerability == "unanswerable")
    return {query_id: Item(query_id, text, kind) for query_id in unanswerable}


def require_usable(section: ExamSection, bank: Bank) -> None:
    """Raise the errors of ``load_bank`` if a bank that is already read cannot be used for grading."""
    if not any(bank.active.values()):
        raise DataError(
            str(section.bank), "has no item for any of the queries; use the query ids of the file in data.queries"
        )
    if section.grading in ("extraction_words", "extraction_llm"):
        _require_gold(section, bank.items)


def _require_gold(section: ExamSection, items: Iterable[Item]) -> None:
    for item in items:
        if not item.answers and not item.retired:
            which = "a secret item" if item.secret else f"item {item.item_id!r}"
            raise ConfigError(
                f"exam.grading: {section.grading!r} needs gold answers; {which} of {section.bank} has none, add one"
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
    section: GenerateSection, want: Wanted, result: Result | None, origin: Mapping[str, Any] | None = None
) -> tuple[Item, ...]:
    """The items in a judge's reply; empty if the judgment is missing or failed.

    Each gets ``origin`` and the model's name as metadata, if ``origin`` is given. Some items are marked as secret at
    random; the seed depends on section, query and facet.
    """
    if not isinstance(result, Judgment) or not isinstance(result.outcome, tuple):
        return ()
    texts, facet = result.outcome, want.item or None
    hidden = floor(section.secret * len(texts) + 0.5)
    draw = random.Random(f"{section.seed} {want.query_id} {facet}")  # noqa: S311 - needs no cryptographic randomness
    secret = set(draw.sample(range(len(texts)), hidden))
    metadata = {} if origin is None else {"generated": {"model": result.model, **origin}}
    return tuple(
        Item(want.query_id, text, section.kind, facet_id=facet, secret=place in secret, metadata=metadata)
        for place, text in enumerate(texts)
    )


def shorter_than_asked(section: GenerateSection, bank: Bank) -> dict[str, int]:
    """Number of written items by query or subtopic (``query/facet``), where it is below the configured number."""
    counts = Counter("/".join(filter(None, (item.query_id, item.facet_id))) for item in bank.items)
    return {name: number for name, number in counts.items() if number < section.per_query}


def generated_bank(
    queries: Mapping[str, Query], facets: Iterable[tuple[str, str | None]], items: Iterable[Item]
) -> Bank:
    """A bank of the items that judges wrote; items with the same text in two subtopics keep separate ids."""
    named = {(query_id, facet): QueryInfo(queries[query_id].text) for query_id, facet in facets}
    return Bank(tuple({item.item_id: item for item in items}.values()), named)


def kept_bank(bank: Bank, *, gold: bool) -> dict[str, Any]:
    """A bank's active items as the store keeps them: everything that scores need, but no text of a secret question.

    Args:
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
    items = tuple(Item(**{**item, "answers": tuple(item.get("answers", ()))}) for item in kept["items"])
    return Bank(items, {(query_id, None): QueryInfo() for query_id in kept["queries"]})


class Material(Struct, frozen=True):
    """The passages to grade, and which agent's response has them.

    Attributes:
        passages: the passages by query_id; a passage of several agents occurs once.
        rankings: each agent's response to each query: the passages of its answer in order, or its ranked documents.
    """

    passages: Mapping[str, tuple[Document, ...]]
    rankings: Rankings

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        return {
            query_id: {passage.doc_id: passage.text for passage in passages}
            for query_id, passages in self.passages.items()
        }

    @property
    def passage_rankings(self) -> Rankings:
        pieces: dict[tuple[str, str], list[str]] = {}
        for query_id, passages in self.passages.items():
            for passage in passages:
                pieces.setdefault((query_id, document_of(passage.doc_id)[0]), []).append(passage.doc_id)
        return {
            (query_id, agent): tuple(piece for name in ranking for piece in pieces.get((query_id, name), (name,)))
            for (query_id, agent), ranking in self.rankings.items()
        }


def material(data: Dataset, section: ExamSection) -> Material:
    return _documents(data, section) if section.texts == "documents" else _answers(data, section)


def _answers(data: Dataset, section: ExamSection) -> Material:
    """Cut each answer into passages; an empty answer has no passage, but counts as a response."""
    by_query: dict[str, list[Document]] = {}
    rankings = {}
    for (query_id, agent), answer in data.answers.items():
        passages = passages_of(answer, most_words=section.passage_words)[: section.depth]
        by_query.setdefault(query_id, []).extend(Document(passage.passage_id, passage.text) for passage in passages)
        rankings[query_id, agent] = tuple(passage.passage_id for passage in passages)
    return Material({query_id: tuple(passages) for query_id, passages in by_query.items()}, rankings)


def _documents(data: Dataset, section: ExamSection) -> Material:
    """Cut each ranked document into passages; documents without text are left out of the rankings."""
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
