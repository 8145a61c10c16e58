"""The exam: its test bank, and how passages are graded against it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from judges.sections import Count, PromptName, RelativePath, Section
from retrieval_eval.exam.items import ItemType


class GenerateSection(Section):
    """The test bank is written by a judge."""

    judge: str | None = None
    """Who writes; the exam's judge when absent."""
    kind: ItemType = "question"
    per_query: Count = 10
    """Items of each query, or of each of its subtopics."""
    subtopics: RelativePath | None = None
    """A table ``qid, facet, subtopic``; queries that it does not name are written for as a whole."""
    prompt: PromptName | None = None
    secret: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of each query's items that are secret."""
    seed: int = 0


class ExamSection(Section):
    """Passages of the answers, or the retrieved documents, are graded against a test bank of questions or nuggets."""

    judge: str
    bank: RelativePath | None = None
    generate: GenerateSection | None = None
    grading: Literal["self_rating", "extraction_words", "extraction_llm", "extraction_only"] = "self_rating"
    prompt: PromptName | None = None
    """Of grading or extraction; the packaged one for the item's type when absent."""
    check_judge: str | None = None
    """``extraction_llm``: who checks the answers; ``judge`` when absent."""
    check_prompt: PromptName = "answer_check"
    texts: Literal["answers", "documents"] = "answers"
    """Whose passages are graded: those of the answers, or of the documents that agents retrieved."""
    passage_words: Count = 400
    items_per_call: Count = 1
    depth: Count = 20
    """Passages of each answer, or documents of each agent, that are graded and count: the k of EXAM-Cover@k."""
    min_grade: Annotated[int, Field(ge=1, le=5)] = 4
    compat: Literal["workbench"] | None = None

    @model_validator(mode="after")
    def _usable(self) -> ExamSection:
        if (self.bank is None) == (self.generate is None):
            raise ValueError("name the test bank with 'bank', or have it written with 'generate', one of the two")
        if self.generate is not None and self.grading in {"extraction_words", "extraction_llm"}:
            raise ValueError(f"grading {self.grading!r} needs gold answers, which only a 'bank' has")
        if self.items_per_call > 1 and (self.grading != "self_rating" or self.compat is not None):
            raise ValueError("'items_per_call' goes with grading 'self_rating' and without 'compat'")
        if self.grading != "extraction_llm" and {"check_judge", "check_prompt"} & self.model_fields_set:
            raise ValueError("'check_judge' and 'check_prompt' go with grading 'extraction_llm' only")
        return self

    def judges(self) -> list[str]:
        """Who writes, grades and checks."""
        writes = [self.generate.judge or self.judge] if self.generate is not None else []
        checks = [self.check_judge or self.judge] if self.grading == "extraction_llm" else []
        return [*writes, self.judge, *checks]
