"""The stages in which judges label documents, compare answers and grade them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from arena.config.schedule import ScheduleSection
from judges.errors import InputError
from judges.prompts.tasks import ANCHORED_CRITERIA, DEFAULT_CRITERIA, Criterion, ReferenceOptions
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
    """One judge, or a list: each labels every document."""
    prompt: PromptName = "reasoner"
    """A packaged prompt, or the path of your own."""
    depth: Count | None = None
    """Label only documents up to this rank of each agent; all when left out."""
    combine: Literal["majority", "median", "mean"] = "majority"
    """What several judges' labels of a document come to: ``majority`` (when equally frequent, the lowest), ``median``
    (the lower one) or ``mean`` (the nearest label, a half downwards)."""
    measures: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1), AfterValidator(_known_measures)] | (
        None
    ) = None
    """Measures of retrieval by ir_measures' names, the first with its interval; when left out ``nDCG@10``, reciprocal
    rank at 5 from label 1 and from the upper half of the scale, and ``Judged@10``, which is always there."""


class ReferencesSection(Section):
    """Which documents an answer judge sees."""

    include: bool = True
    """Show documents that the agents retrieved."""
    annotations: bool = True
    """With the relevance judge's reason."""
    threshold: int = 2
    """Lowest label that is shown; without a ``retrieval`` stage all documents are."""

    def options(self) -> ReferenceOptions:
        """The same for the judges."""
        return ReferenceOptions(self.include, self.annotations, self.threshold)


class PairwiseSection(Section):
    """The answer judges and their games."""

    judges: JudgeNames
    """One or more judges; each judges every game."""
    prompt: PromptName = "pairwise"
    """A packaged prompt, or the path of your own."""
    schedule: ScheduleSection = ScheduleSection()
    """Which agents meet."""
    both_orders: bool = True
    """Show each pair in both orders; else in one order drawn at random."""
    documents: ReferencesSection = ReferencesSection()
    """Which documents the judges see."""
    citations: bool = False
    """Answers cite documents by number, and the judge checks the citations."""
    factors: str = ""
    """What to weigh, in your words; the prompt has a default."""
    win_and_tie: Literal["tie", "win"] = "tie"
    """What a win in one order and a tie in the other count as: ``tie`` or ``win``."""


class CriterionSection(Section):
    """One criterion that answers are graded by, where it is more than a name."""

    description: str = ""
    """What the judge reads besides the name."""
    levels: dict[int, str] = Field(default_factory=dict)
    """What each grade of the scale means, one line each: ``{0: it is rude, 1: it is curt, 2: it is friendly}``."""


_DESCRIBED: Final[dict[str, str | CriterionSection]] = {each.name: each.description for each in DEFAULT_CRITERIA}


def _anchored(given: Any) -> Any:
    if given != "anchored":
        return given
    return {each.name: {"description": each.description, "levels": dict(each.levels)} for each in ANCHORED_CRITERIA}


class CriteriaSection(Section):
    """The pointwise answer judge."""

    judge: str
    """The judge."""
    prompt: PromptName = "criteria"
    """A packaged prompt, or the path of your own."""
    scale: tuple[int, int] = (0, 2)
    """Lowest and highest grade, whole numbers."""
    names: Annotated[list[str] | dict[str, str | CriterionSection], BeforeValidator(_anchored)] = Field(
        default_factory=lambda: dict(_DESCRIBED)
    )
    """The criteria, by default relevance, accuracy, completeness and precision: a list of names; names with
    descriptions; names with the meaning of each grade; or ``anchored``, the default ones with such meanings."""
    documents: ReferencesSection = ReferencesSection()
    """Which documents the judge sees: those of all agents, so that every answer is graded against the same ones."""

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
