"""Exam stage: judges write items, unless a bank has them, and grade passages against them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import ceil
from typing import Any

from msgspec.structs import replace

from arena.config.judging import ExamSection
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import Release, RelevanceLabels, TournamentStage, file_digest
from arena.stages.exam_bank import Material, kept_bank, load_bank, material, subtopics, written_items
from arena.store import Result, Store, Wanted
from arena.store.rows import GradedSubject
from judges.prompts import PromptTemplate, load_prompt
from judges.prompts.tasks import answer_check_prompt, extraction_prompt, grading_prompt, questions_prompt
from judges.self_rating import is_answer
from judges.types import Document, Judgment, Prompt, Query, Task
from retrieval_eval.exam.items import Item, ItemType

_UNWRITTEN = "Item {} that nobody wrote yet, about as long as an item usually is?"
_EXTRACTION: Mapping[ItemType, str] = {"question": "extraction", "nugget": "extraction_nugget"}
_TOKENS_OF_A_RATING = 8
"""Number of tokens of one rating, with its name, in a reply that contains several."""


def grouped(
    items: Sequence[Item], size: int, earlier: Iterable[tuple[str, ...]], known: Mapping[str, Item]
) -> list[tuple[str, ...]]:
    """Group item ids for grading in one call; each item is in one group, and all items of a group have the same type.

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
    """Writes items if the configuration asks for it, then grades every passage against its query's items."""

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
            self._items: dict[str, Item] = {}
            for (query_id, facet), subtopic in subtopics(section.generate, data).items():
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
        """Read from the store how the last run grouped items into calls, if ``items_per_call`` is unchanged."""
        size = self.section.items_per_call
        before = store.settings(tournament).exam if size > 1 else None
        if before is not None and before.items_per_call == size:
            for want, _ in store.wanted(tournament, Task.GRADING):
                self._earlier.setdefault(want.query_id, {})[GradedSubject.of(want).by] = None

    def first(self, query_id: str) -> Release:
        generate = self.section.generate
        if self.bank is None and generate is not None:
            judge = generate.judge or self.section.judge
            facets = self._facets.get(query_id, ())
            return Release.all(Wanted(Task.QUESTIONS, judge, query_id, facet or "") for facet in facets)
        assert self.bank is not None
        return Release.all(self._graded(query_id, self.bank.active.get(query_id, ())))

    def _graded(self, query_id: str, items: Sequence[Item]) -> Iterator[Wanted]:
        groups = grouped(items, self.section.items_per_call, self._earlier.get(query_id, ()), self._items)
        for passage in self._material.passages.get(query_id, ()):
            for group in groups:
                yield GradedSubject(query_id, passage.doc_id, group).want(self._grading, self.section.judge)

    def after(self, want: Wanted, result: Result) -> Release:
        if not isinstance(result, Judgment):
            return Release()
        if want.task is Task.QUESTIONS:
            assert self.section.generate is not None
            items = written_items(self.section.generate, want, result)
            self._items.update({item.item_id: item for item in items})
            return Release.all(self._graded(want.query_id, items))
        graded = GradedSubject.of(want)
        (item_id,) = graded.by
        answer = self._answers[graded.item, item_id] = str(result.outcome)
        if not is_answer(answer):
            return Release()  # graded 0 without a call
        return Release.all([replace(want, task=Task.ANSWER_CHECK, judge=self.section.check_judge or want.judge)])

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt; ``None`` for the check of an answer that is not yet extracted."""
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
        """Number of gradings if the judge writes all items, or of checks if every passage has an answer."""
        passages = {query_id: len(texts) for query_id, texts in self._material.passages.items()}
        if self.section.grading == "extraction_llm":
            assert self.bank is not None
            items = self.bank.active.items()
            return {Task.ANSWER_CHECK: sum(len(entries) * passages.get(query_id, 0) for query_id, entries in items)}
        if self.section.generate is None:
            return {}
        calls = ceil(self._per_query / self.section.items_per_call) * self.config.judges[self.section.judge].samples
        return {
            self._grading: sum(calls * len(facets) * passages.get(query, 0) for query, facets in self._facets.items())
        }

    def assumptions(self) -> Iterator[str]:
        if self.leading:
            yield "exam items not written yet are assumed to be of usual number and length, and all answers checked"

    def settings(self) -> dict[str, Any]:
        """The stage's settings, without texts of secret items."""
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
