"""The stages in which judges label documents, compare answers and grade them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from arena.config.schedule import ScheduleSection
from judges.criteria import DEFAULT_CRITERIA
from judges.errors import InputError
from judges.pairwise import ReferenceOptions
from judges.sections import JudgeNames, PromptName, Section, as_list, each_once
from judges.spec import Count


def _known_measures(names: list[str]) -> list[str]:
    from retrieval_eval.measures import parse_measures

    try:
        return list(parse_measures(names))
    except InputError as error:
        raise ValueError(str(error)) from error


class RetrievalSection(Section):
    """The pointwise judges that label retrieved documents, and what their labels are measured by."""

    judge: JudgeNames
    """One or more; each labels every document."""
    prompt: PromptName = "reasoner"
    depth: Count | None = None
    """Only documents up to this rank of each agent; all when absent."""
    combine: Literal["majority", "median", "mean"] = "majority"
    """What several judges' labels of one document come to."""
    measures: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1), AfterValidator(_known_measures)] | (
        None
    ) = None
    """By ir_measures' names; chosen by the prompt's scale when absent."""


class ReferencesSection(Section):
    """Which documents an answer judge sees."""

    include: bool = True
    annotations: bool = True
    threshold: int = 2

    def options(self) -> ReferenceOptions:
        """The same for the judges."""
        return ReferenceOptions(self.include, self.annotations, self.threshold)


class PairwiseSection(Section):
    """The answer judges and their games."""

    judges: JudgeNames
    prompt: PromptName = "pairwise"
    schedule: ScheduleSection = ScheduleSection()
    both_orders: bool = True
    documents: ReferencesSection = ReferencesSection()
    citations: bool = False
    factors: str = ""
    win_and_tie: Literal["tie", "win"] = "tie"
    """What a game counts as when one order says win and the other tie."""


class CriteriaSection(Section):
    """The pointwise answer judge."""

    judge: str
    prompt: PromptName = "criteria"
    scale: tuple[int, int] = (0, 2)
    names: list[str] | dict[str, str] = Field(default_factory=lambda: {c.name: c.description for c in DEFAULT_CRITERIA})
    """Names, or names with a description each that the judge reads."""
    documents: ReferencesSection = ReferencesSection()

    @model_validator(mode="after")
    def _usable(self) -> CriteriaSection:
        if self.scale[0] >= self.scale[1]:
            raise ValueError("'scale' goes from a lower to a higher whole number")
        if not self.names:
            raise ValueError("'names' is empty")
        each_once(list(self.names))
        return self
