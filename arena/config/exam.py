"""The exam: its test bank, and how passages are graded against it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from judges.sections import Count, PromptName, RelativePath, Section
from retrieval_eval.exam.items import ItemType


class GenerateSection(Section):
    """The test bank is written by a judge."""

    judge: str | None = None
    """Who writes; the exam's judge when left out."""
    kind: ItemType = "question"
    """``question`` or ``nugget``."""
    per_query: Count = 10
    """Items for each query or subtopic."""
    subtopics: RelativePath | None = None
    """A table ``qid, facet, subtopic``; items for other queries are about the whole query."""
    prompt: PromptName | None = None
    """A packaged prompt, or the path of your own; by ``kind`` and ``subtopics`` when left out."""
    secret: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the items of each query or subtopic that are secret; 0 to 1."""
    seed: int = 0
    """Of the draw of secret items."""


class ExamSection(Section):
    """Passages of the answers, or the retrieved documents, are graded against a test bank of questions or nuggets."""

    judge: str
    """The judge that grades; several ``samples`` apply to ratings only."""
    bank: RelativePath | None = None
    """The file of the test bank; this or ``generate``."""
    generate: GenerateSection | None = None
    """Have the bank written."""
    grading: Literal["self_rating", "extraction_words", "extraction_llm", "extraction_only"] = "self_rating"
    """``self_rating``, ``extraction_words``, ``extraction_llm`` or ``extraction_only``."""
    prompt: PromptName | None = None
    """How texts are rated or answers extracted; the packaged prompt when left out."""
    check_judge: str | None = None
    """``extraction_llm``: who checks the extracted answers; ``judge`` when left out."""
    check_prompt: PromptName = "answer_check"
    """``extraction_llm``: how it is asked."""
    texts: Literal["answers", "documents"] = "answers"
    """Grade the agents' ``answers``, or the ``documents`` that they retrieved."""
    passage_words: Count = 400
    """Longest passage that a text is cut into."""
    items_per_call: Count = 1
    """``self_rating``: items to rate in one call."""
    depth: Count = 20
    """Passages of each answer, or documents of each agent and query, to grade: the k of EXAM-Cover@k."""
    min_grade: Annotated[int, Field(ge=1, le=5)] = 4
    """Rating from which an item counts as covered; 1 to 5."""
    compat: Literal["workbench"] | None = None
    """``workbench``: read and count as the Rubric-Grading Workbench does."""

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
