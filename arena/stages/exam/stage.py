"""What the exam stage of a tournament wants judged, each want's prompt, and what a settled want releases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from arena.config.exam import ExamSection
from arena.data.dataset import Dataset
from arena.stages.base import Release
from arena.stages.exam.bank import kept_bank, load_bank, subtopics, written_items
from arena.stages.exam.passages import Material, material
from arena.store import Result, Store, Wanted
from judges.prompts import PromptTemplate, load_prompt
from judges.prompts.tasks import answer_check_prompt, extraction_prompt, grading_prompt, questions_prompt
from judges.self_rating import is_answer
from judges.types import Document, Judgment, Prompt, Query, Task
from retrieval_eval.exam.items import Item

_UNWRITTEN = "Item {} that nobody wrote yet, about as long as an item usually is?"
_TOKENS_OF_A_RATING = 8
"""Of one rating among several, with its name."""


def item_ids(want: Wanted) -> tuple[str, ...]:
    """The items that a want of grading, extraction or checking is about."""
    return _ids(want.other)


@lru_cache(maxsize=4096)
def _ids(written: str) -> tuple[str, ...]:
    """All passages of a query have the same ones."""
    return tuple(json.loads(written))


def grouped(
    items: Sequence[Item], size: int, earlier: Iterable[tuple[str, ...]], known: Mapping[str, Item]
) -> list[tuple[str, ...]]:
    """Items that are graded in one call, as ids; each of ``items`` in one group, of one type each.

    A group that was asked for earlier stays together as long as the bank has all its items, retired ones among them,
    and not all are retired: then its grades are known, and an edit of the bank costs calls for what is new only.
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


@dataclass
class ExamWants:
    """Knows what the exam wants.

    Attributes:
        section: of the configuration.
        data: whose answers or documents are graded.
        assume: count what is not known yet: items that nobody wrote, answers that nobody extracted.
        earlier: by query the groups of items that were graded together before.
        bank: the file's, ``None`` where a judge writes the items.
    """

    section: ExamSection
    data: Dataset
    assume: bool = False
    earlier: dict[str, dict[tuple[str, ...], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        section = self.section
        self._items: dict[str, Item] = {}
        self._active: dict[tuple[str, str | None], tuple[Item, ...]] = {}
        self._answers: dict[tuple[str, str], str] = {}
        self._facets = subtopics(section.generate, self.data) if section.generate is not None else {}
        self.bank = load_bank(section, self.data) if section.generate is None else None
        if self.bank is not None:
            self._items.update(self.bank.by_id)
            self._active.update({(query_id, None): items for query_id, items in self.bank.active.items()})
        elif self.assume:
            for query_id, facet in self._facets:
                self._write(query_id, facet, [_UNWRITTEN.format(number + 1) for number in range(self._per_query)])

    @property
    def _per_query(self) -> int:
        return self.section.generate.per_query if self.section.generate is not None else 0

    def _write(self, query_id: str, facet: str | None, texts: Sequence[str]) -> tuple[Item, ...]:
        """Take these texts for the items of a query or subtopic."""
        assert self.section.generate is not None
        items = written_items(self.section.generate, query_id, facet, texts)
        self._items.update({item.item_id: item for item in items})
        self._active[query_id, facet] = items
        return items

    def tasks(self) -> list[Task]:
        """In the order they are done."""
        writes = [Task.QUESTIONS] if self.section.generate is not None else []
        checks = [Task.ANSWER_CHECK] if self.section.grading == "extraction_llm" else []
        return [*writes, self._grading, *checks]

    @property
    def _grading(self) -> Task:
        return Task.GRADING if self.section.grading == "self_rating" else Task.EXTRACTION

    def releases(self, task: Task) -> bool:
        """Whether a settled want of the task may release others."""
        return task is Task.QUESTIONS or (task is Task.EXTRACTION and self.section.grading == "extraction_llm")

    def keep_groups(self, store: Store, tournament: str) -> None:
        """Put items together as the last run of the tournament did, where it put together as many."""
        if tournament not in store.tournaments():
            return
        before = store.settings(tournament).get("exam") or {}
        if before.get("items_per_call") != self.section.items_per_call:
            return
        for want, _ in store.wanted(tournament, Task.GRADING):
            groups = self.earlier.setdefault(want.query_id, {})
            groups[item_ids(want)] = None

    def wants(self, task: Task) -> Iterator[Wanted]:
        """What can be asked for from the start, and with ``assume`` the rest as well."""
        generate, section = self.section.generate, self.section
        if task is Task.QUESTIONS and generate is not None:
            for query_id, facet in self._facets:
                yield Wanted(task, generate.judge or section.judge, query_id, facet or "")
        elif task is self._grading or self.assume:
            judge = section.judge if task is self._grading else section.check_judge or section.judge
            by_query: dict[str, list[Item]] = {}
            for (query_id, _), items in self._active.items():
                by_query.setdefault(query_id, []).extend(items)
            for query_id, own in by_query.items():
                yield from self._of_query(task, judge, query_id, own)

    def released(self, want: Wanted, result: Result) -> Release:
        """What can be asked for now that a want is settled."""
        wants = self._after(want, result) if isinstance(result, Judgment) else []
        return Release(wants, wants)

    def _after(self, want: Wanted, result: Judgment) -> list[Wanted]:
        if want.task is Task.QUESTIONS:
            assert isinstance(result.outcome, tuple)
            items = self._write(want.query_id, want.item or None, result.outcome)
            return list(self._of_query(self._grading, self.section.judge, want.query_id, items))
        if want.task is Task.EXTRACTION and self.section.grading == "extraction_llm":
            return self._release_check(want, str(result.outcome))
        return []

    def _release_check(self, want: Wanted, answer: str) -> list[Wanted]:
        (item_id,) = item_ids(want)
        self._answers[want.item, item_id] = answer
        if not is_answer(answer):
            return []  # graded 0 without a call
        return [replace(want, task=Task.ANSWER_CHECK, judge=self.section.check_judge or self.section.judge)]

    def _of_query(self, task: Task, judge: str, query_id: str, items: Sequence[Item]) -> Iterator[Wanted]:
        """Every passage of the query with every group of items."""
        groups = grouped(items, self.section.items_per_call, self.earlier.get(query_id, ()), self._items)
        written = [json.dumps(group) for group in groups]
        for passage in self._material.passages.get(query_id, ()):
            for ids in written:
                yield Wanted(task, judge, query_id, passage.doc_id, ids)

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt of one want; ``None`` while an answer that it is to check is not extracted."""
        query = self.data.queries[want.query_id]
        template = self.template(want)
        if want.task is Task.QUESTIONS:
            return questions_prompt(template, query, self._per_query, self._facets[want.query_id, want.item or None])
        items = [self._items[item_id] for item_id in item_ids(want)]
        passage = self._passages[want.query_id, want.item]
        if want.task is Task.GRADING:
            return grading_prompt(template, query, passage, [item.text for item in items])
        (item,) = items
        question = Query(want.query_id, item.text)
        if want.task is Task.EXTRACTION:
            return extraction_prompt(template, question, passage)
        answer = self._answers.get((want.item, item.item_id))
        if answer is None and self.assume:
            answer = f"{item.answers[0]}, as {want.item} has it"
        return None if answer is None else answer_check_prompt(template, question, item.answers, answer)

    def template(self, want: Wanted) -> PromptTemplate:
        """The prompt file of a want."""
        if want.task is Task.GRADING:
            return self.templates[f"grading {self._items[item_ids(want)[0]].item_type}"]
        return self.templates[want.task.value]

    def typical_tokens(self, want: Wanted) -> int:
        """Length of a usual reply to a want."""
        number = len(item_ids(want)) if want.task is Task.GRADING else 1
        return _TOKENS_OF_A_RATING * number if number > 1 else self.template(want).reply.typical_tokens

    @cached_property
    def templates(self) -> dict[str, PromptTemplate]:
        """The prompt files in use, by task and, of grading, type of item.

        Raises:
            PromptError: a file cannot be used.
        """
        section, found = self.section, {}
        if (generate := section.generate) is not None:
            usual = "exam_nuggets" if generate.kind == "nugget" else "exam_questions"
            if generate.subtopics is not None and generate.kind == "question":
                usual = "exam_questions_subtopic"
            found["questions"] = load_prompt(generate.prompt or usual, Task.QUESTIONS)
        if self._grading is Task.EXTRACTION:
            found["extraction"] = load_prompt(section.prompt or "extraction", Task.EXTRACTION)
        else:
            types = {generate.kind} if generate is not None else {item.item_type for item in self._items.values()}
            for kind in sorted(types):
                found[f"grading {kind}"] = load_prompt(section.prompt or f"self_rating_{kind}", Task.GRADING)
        if section.grading == "extraction_llm":
            found["answer_check"] = load_prompt(section.check_prompt, Task.ANSWER_CHECK)
        return found

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


def exam_settings(wants: ExamWants) -> dict[str, Any]:
    """What a store keeps of the exam's configuration: all that decides the results, but no path and no secret text."""
    kept: dict[str, Any] = wants.section.model_dump(
        mode="json",
        exclude={"bank": True, "prompt": True, "check_prompt": True, "generate": {"subtopics", "prompt"}},
    )
    kept["prompts"] = {name: f"{template.name}@{template.version}" for name, template in wants.templates.items()}
    gold = wants.section.grading == "extraction_words"
    kept["bank"] = kept_bank(wants.bank, gold=gold) if wants.bank is not None else None
    return kept
