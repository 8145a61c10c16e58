"""The stages in which judges label documents, compare answers and grade them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from arena.config.schedule import ScheduleSection
from judges.criteria import ANCHORED_CRITERIA, DEFAULT_CRITERIA, Criterion
from judges.errors import InputError
from judges.pairwise import ReferenceOptions
from judges.sections import Count, JudgeNames, PromptName, Section, as_list, each_once


def _known_measures(names: list[str]) -> list[str]:
    from retrieval_eval.metrics import parse_measures

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


class CriterionSection(Section):
    """One criterion that answers are graded by, where it is more than a name."""

    description: str = ""
    levels: dict[int, str] = Field(default_factory=dict)
    """What each grade of the scale stands for; the judge reads it."""


_DESCRIBED: Final[dict[str, str | CriterionSection]] = {each.name: each.description for each in DEFAULT_CRITERIA}


def _anchored(given: Any) -> Any:
    if given != "anchored":
        return given
    return {each.name: {"description": each.description, "levels": dict(each.levels)} for each in ANCHORED_CRITERIA}


class CriteriaSection(Section):
    """The pointwise answer judge."""

    judge: str
    prompt: PromptName = "criteria"
    scale: tuple[int, int] = (0, 2)
    names: Annotated[list[str] | dict[str, str | CriterionSection], BeforeValidator(_anchored)] = Field(
        default_factory=lambda: dict(_DESCRIBED)
    )
    """Names, or names with a description each that the judge reads, or with what each grade stands for; ``anchored``
    takes the four packaged criteria with such levels."""
    documents: ReferencesSection = ReferencesSection()

    @model_validator(mode="after")
    def _usable(self) -> CriteriaSection:
        if self.scale[0] >= self.scale[1]:
            raise ValueError("'scale' goes from a lower to a higher whole number")
        if not self.names:
            raise ValueError("'names' is empty")
        each_once(list(self.names))
        grades = list(range(self.scale[0], self.scale[1] + 1))
        for each in self.listed():
            if each.levels and [grade for grade, _ in each.levels] != grades:
                raise ValueError(
                    f"names.{each.name}: 'levels' needs a line for each grade from {self.scale[0]} to "
                    f"{self.scale[1]} and no other"
                )
        return self

    def listed(self) -> list[Criterion]:
        """The same for the judges."""
        if isinstance(self.names, list):
            return [Criterion(name) for name in self.names]
        return [
            Criterion(name, said)
            if isinstance(said, str)
            else Criterion(name, said.description, tuple(sorted(said.levels.items())))
            for name, said in self.names.items()
        ]
