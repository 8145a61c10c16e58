"""Nuggets: how they are made, and what is held against them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from judges.sections import Count, PromptName, RelativePath, Section, as_list, each_once
from judges.types import Task
from retrieval_eval.nuggets.types import BATCH, KEPT, MOST, WINDOW


class NuggetCreationSection(Section):
    """How nuggets are made of relevant documents."""

    from_label: int = 1
    """Lowest label of the documents that are read."""
    window: Count = WINDOW
    """Documents to read in one turn."""
    most: Count = MOST
    """Longest list of nuggets."""
    prompt: PromptName = "nugget_create"
    """A packaged prompt, or the path of your own."""
    importance_prompt: PromptName = "nugget_importance"
    """The same for vital or okay."""


class NuggetAssignmentSection(Section):
    """How answers, and the documents that agents retrieved, are held against nuggets."""

    texts: Annotated[
        list[Literal["answers", "documents"]],
        BeforeValidator(as_list),
        Field(min_length=1),
        AfterValidator(each_once),
    ] = ["answers"]
    """``answers``, ``documents`` or both."""
    depth: Count | None = None
    """With ``documents``: how many of each agent's ranking count; 20 when left out."""
    batch: Count = BATCH
    """Nuggets in one call."""
    grades: Literal[2, 3] = 3
    """``3`` with ``partial_support``, ``2`` without."""
    prompt: PromptName | None = None
    """For answers: ``nugget_assign`` or ``nugget_assign_two_grades`` when left out, or the path of your own."""
    passage_prompt: PromptName | None = None
    """For documents: ``nugget_assign_passage`` or ``nugget_assign_passage_two_grades``, or the path of your own."""

    @model_validator(mode="after")
    def _fits(self) -> NuggetAssignmentSection:
        for key in ("depth", "passage_prompt"):
            if "documents" not in self.texts and getattr(self, key) is not None:
                raise ValueError(f"'{key}' goes with 'texts: documents' only")
        return self

    def prompts(self) -> dict[Task, str]:
        """The prompt of each task, named or not."""
        grades = "" if self.grades == 3 else "_two_grades"
        named = {
            "answers": (Task.ASSIGNMENT, self.prompt or f"nugget_assign{grades}"),
            "documents": (Task.PASSAGE_ASSIGNMENT, self.passage_prompt or f"nugget_assign_passage{grades}"),
        }
        return dict(named[what] for what in self.texts)


class NuggetsSection(Section):
    """The nugget judge. It makes each query's nuggets of its relevant documents, unless a bank of them is given."""

    judge: str
    """The judge; one with ``samples`` is refused."""
    create: NuggetCreationSection | None = None
    """How nuggets are made from documents; with its defaults when left out, unless there is a ``bank``."""
    keep: Count = KEPT
    """Nuggets to keep of those made, vital ones first."""
    bank: RelativePath | None = None
    """A file of nuggets in nuggetizer's form, in place of ``create``; all of them count."""
    assign: NuggetAssignmentSection = NuggetAssignmentSection()
    """How answers and documents are checked against nuggets."""

    @model_validator(mode="before")
    @classmethod
    def _made_unless_given(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("bank") is None and given.get("create") is None:
            return {**given, "create": {}}
        return given

    @model_validator(mode="after")
    def _made_or_given(self) -> NuggetsSection:
        if self.bank is not None and self.create is not None:
            raise ValueError("'bank' takes the place of 'create'; leave one of them out")
        if self.bank is not None and "keep" in self.model_fields_set:
            raise ValueError("'keep' goes with 'create'; of a 'bank' every nugget counts")
        return self
