"""The sections of the stages: relevance, games, criteria, the exam and nuggets."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, RootModel, ValidationInfo, model_validator

from judges.errors import ConfigError, InputError
from judges.prompts.tasks import ANCHORED_CRITERIA, DEFAULT_CRITERIA, NAMED_CRITERIA, Criterion, Need, ReferenceOptions
from judges.sections import (
    UNLESS_EMPTY,
    Count,
    ForPeople,
    JudgeNames,
    PromptName,
    RelativePath,
    Section,
    Seed,
    as_list,
    beside_file,
    each_once,
    load_section,
)
from judges.spec import Combine
from judges.types import Task
from retrieval_eval.exam.items import ItemType
from retrieval_eval.nuggets.types import BATCH, KEPT, MOST, WINDOW


class ScheduleSection(Section):
    """Which pairs of agents play on a query."""

    kind: Literal["all", "random", "baseline", "adaptive"] = "all"
    """``all`` pairs, ``random`` pairs, every agent against one ``baseline``, or
    [``adaptive``](running.md#fewer-games-the-adaptive-schedule).
    """
    games_per_query: Count | None = None
    """``random``: pairs to draw on each query."""
    baseline: str | None = None
    """``baseline``: the agent that all others play against."""
    seed: Seed = 0
    """Seed of the draws."""
    decide: Literal["order", "top"] | None = None
    """``adaptive``: stop once the whole ``order`` (default) or the ``top`` is decided."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    """``adaptive``: probability that no decided place is wrong. 0.95 when left out."""
    batch: Count | None = None
    """``adaptive``: number of games to choose at a time. 60 when left out."""
    max_games: Count | None = None
    """``adaptive``: maximum number of games; one is a pair on a query."""

    @model_validator(mode="after")
    def _fits_kind(self) -> ScheduleSection:
        if (self.kind == "random") != (self.games_per_query is not None):
            raise ValueError("'games_per_query' goes with kind 'random', and only with it")
        if (self.kind == "baseline") != (self.baseline is not None):
            raise ValueError("'baseline' goes with kind 'baseline', and only with it")
        adaptive = ("decide", "confidence", "batch", "max_games")
        if self.kind != "adaptive" and (names := [name for name in adaptive if getattr(self, name) is not None]):
            raise ValueError(f"'{names[0]}' goes with kind 'adaptive' only")
        return self


def _known_measures(names: list[str]) -> list[str]:
    from retrieval_eval.scores.metrics import parse_measures

    try:
        return list(parse_measures(names))
    except InputError as error:
        raise ValueError(str(error)) from error


class RetrievalSection(Section):
    """The judges that label retrieved documents, and the measures computed from their labels."""

    judge: JudgeNames
    """One judge, or a list: each labels every document."""
    prompt: PromptName = "reasoner"
    """A packaged prompt, or the path of your own."""
    depth: Count | None = None
    """Label each agent's documents down to this rank; all when left out."""
    combine: Combine = "majority"
    """One label from several judges: ``majority``, ``median`` or ``mean``. Ties and halves go to the lower label."""
    measures: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1), AfterValidator(_known_measures)] | (
        None
    ) = None
    """Measures by ir_measures' names; the first gets an interval. Default: ``nDCG@10``, reciprocal rank at 5 from label
    1 and from the upper half of the scale, ``Judged@10``."""
    review: ForPeople = ""
    """What people are told on the page [Review](web.md#people-vote-and-label): a line above each task."""


class ReferencesSection(Section):
    """Which documents an answer judge reads."""

    include: bool = True
    """Show documents that the agents retrieved."""
    annotations: bool = True
    """Show the relevance judge's reasons."""
    threshold: int = 2
    """Lowest label to show. Without ``retrieval`` all documents are shown."""

    def options(self) -> ReferenceOptions:
        """The section as options for prompts."""
        return ReferenceOptions(self.include, self.annotations, self.threshold)


class PairwiseSection(Section):
    """The answer judges and their games."""

    judges: JudgeNames
    """One or more; each judges every game."""
    prompt: PromptName = "pairwise"
    """A packaged prompt, or the path of your own."""
    schedule: ScheduleSection = ScheduleSection()
    """Which agents play on each query."""
    both_orders: bool = True
    """``false`` shows each pair in one order, drawn at random."""
    documents: ReferencesSection = ReferencesSection()
    """Which documents the judges read."""
    citations: bool = False
    """The judge checks citations; [marks](nuggets.md#marks) are shown as numbers of the documents in the prompt."""
    factors: str = ""
    """What the judge should weigh, in your words; the prompt has a default."""
    win_and_tie: Literal["tie", "win"] = "tie"
    """The result of a game with a win in one order and a tie in the other: ``tie`` or ``win``."""
    review: ForPeople = ""
    """What people are told on the page [Review](web.md#people-vote-and-label): a line above each task.
    ``factors`` when left out."""


class CriterionSection(Section):
    """One criterion, if it has more than a name."""

    description: str = ""
    """What the judge reads in addition to the name."""
    levels: dict[int, str] = Field(default_factory=dict)
    """What each grade means: ``{0: it is rude, 1: it is curt, 2: it is friendly}``."""
    needs: Annotated[list[Need], BeforeValidator(as_list), AfterValidator(each_once), UNLESS_EMPTY] = Field(
        default_factory=list
    )
    """What answers are checked against: the ``documents`` that the agent itself retrieved, or the ``reference``."""


_DESCRIBED: Final[dict[str, str | CriterionSection]] = {
    criterion.name: criterion.description for criterion in DEFAULT_CRITERIA
}


class _CriteriaFile(RootModel[dict[str, str | CriterionSection | None]]):
    """A YAML file of criteria, with the same content as ``names``."""


def _written_out(criteria: Iterable[Criterion], scale: tuple[int, int]) -> dict[str, Any]:
    """Criteria in the form in which a configuration file lists them; their levels describe grades from 0 to 2."""
    return {
        criterion.name: {
            "description": criterion.description,
            "levels": dict(criterion.levels) if scale == (0, 2) else {},
            "needs": list(criterion.needs),
        }
        for criterion in criteria
    }


def _named(content: Any, info: ValidationInfo) -> Any:
    """Replace names of packaged criteria, and the name of a file of criteria, by the criteria themselves."""
    if content == "anchored":
        return _written_out(ANCHORED_CRITERIA, (0, 2))
    if isinstance(content, str) and content.endswith((".yaml", ".yml")):
        try:
            content = load_section(beside_file(Path(content), info), _CriteriaFile, ConfigError).model_dump()
        except InputError as error:
            raise ValueError(str(error)) from error
    ready = _written_out(NAMED_CRITERIA, info.data.get("scale", (0, 2)))
    known = {*ready, *_DESCRIBED}
    for name in content if isinstance(content, list | dict) else ():
        unspecified = isinstance(content, list) or content[name] is None
        if unspecified and name not in known and (near := get_close_matches(str(name), known, n=1, cutoff=0.8)):
            raise ValueError(f"no criterion {name!r} comes ready; is it {near[0]!r}? Describe your own: {name}: ...")
    if isinstance(content, list) and all(isinstance(name, str) for name in content) and ready.keys() & {*content}:
        return {name: ready.get(name, {}) for name in each_once(content)}
    if isinstance(content, dict):
        return {name: ready.get(name, {}) if criterion is None else criterion for name, criterion in content.items()}
    return content


_MOST_GRADES: Final = 100


class CriteriaSection(Section):
    """The judge that grades single answers by criteria."""

    judge: str
    """The judge that grades."""
    prompt: PromptName = "criteria"
    """A packaged prompt, or the path of your own."""
    scale: tuple[int, int] = (0, 2)
    """Lowest and highest grade, whole numbers."""
    names: Annotated[list[str] | dict[str, str | CriterionSection], BeforeValidator(_named)] = Field(
        default_factory=lambda: dict(_DESCRIBED)
    )
    """The [criteria](prompts.md#criteria): a list of names, names with descriptions or levels, a YAML file that holds
    the same, or ``anchored``. Default: relevance, accuracy, completeness, precision."""
    documents: ReferencesSection = ReferencesSection()
    """Which documents the judge reads: those of all agents. If a criterion needs ``documents``: all that the answer's
    own agent retrieved.
    """
    review: ForPeople = ""
    """What people are told on the page [Review](web.md#people-vote-and-label): a line above each task."""

    @model_validator(mode="after")
    def _usable(self) -> CriteriaSection:
        if self.scale[0] >= self.scale[1]:
            raise ValueError("'scale' goes from a lower to a higher whole number")
        if self.scale[1] - self.scale[0] > _MOST_GRADES:
            raise ValueError(f"'scale' has at most {_MOST_GRADES + 1} grades; choose fewer")
        if not self.names:
            raise ValueError("'names' is empty; name at least one")
        each_once(list(self.names))
        grades = list(range(self.scale[0], self.scale[1] + 1))
        for criterion in self.listed():
            if "documents" in criterion.needs and self.documents != ReferencesSection():
                raise ValueError(
                    f"names.{criterion.name}: shows all documents that the answer's agent retrieved; "
                    "leave 'documents' out"
                )
            if criterion.levels and [grade for grade, _ in criterion.levels] != grades:
                raise ValueError(
                    f"names.{criterion.name}: 'levels' needs a line for each grade from {self.scale[0]} to "
                    f"{self.scale[1]} and no other"
                )
        return self

    @property
    def own_documents(self) -> bool:
        """Whether the judge reads the documents that the answer's own agent retrieved."""
        return any("documents" in criterion.needs for criterion in self.listed())

    def listed(self) -> list[Criterion]:
        """The criteria for the prompt."""
        if isinstance(self.names, list):
            return [Criterion(name) for name in self.names]
        return [
            Criterion(name, section)
            if isinstance(section, str)
            else Criterion(name, section.description, tuple(sorted(section.levels.items())), tuple(section.needs))
            for name, section in self.names.items()
        ]


class GenerateSection(Section):
    """How a judge writes the test bank."""

    judge: str | None = None
    """The judge that writes; the exam's judge by default."""
    kind: ItemType = "question"
    """``question`` or ``nugget``."""
    per_query: Count = 10
    """Items for each query or subtopic."""
    subtopics: RelativePath | None = None
    """A table ``qid, facet, subtopic``."""
    prompt: PromptName | None = None
    """A packaged prompt, or the path of your own."""
    secret: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the items that are secret; 0 to 1."""
    seed: Seed = 0
    """Seed of the draw of secret items."""


class ExamSection(Section):
    """An exam: passages of answers, or retrieved documents, are graded by a test bank of questions or nuggets."""

    judge: str
    """The judge that grades."""
    bank: RelativePath | None = None
    """The file of the test bank; this or ``generate``."""
    generate: GenerateSection | None = None
    """How a judge writes the bank."""
    grading: Literal["self_rating", "extraction_words", "extraction_llm", "extraction_only"] = "self_rating"
    """[How passages are graded](exam.md#a-judge-that-grades): ``self_rating``, ``extraction_words``, ``extraction_llm``
    or ``extraction_only``."""
    prompt: PromptName | None = None
    """A packaged prompt, or the path of your own."""
    check_judge: str | None = None
    """``extraction_llm``: the judge that checks; ``judge`` when left out."""
    check_prompt: PromptName = "answer_check"
    """``extraction_llm``: the prompt for checking."""
    texts: Literal["answers", "documents"] = "answers"
    """Grade ``answers``, or the ``documents`` that agents retrieved."""
    passage_words: Count = 400
    """Maximum length of a passage in words."""
    items_per_call: Count = 1
    """``self_rating``: number of items to rate in one call."""
    depth: Count = 20
    """Number of passages of each answer, or documents of each agent, to grade: the k of EXAM-Cover@k."""
    min_grade: Annotated[int, Field(ge=1, le=5)] = 4
    """Lowest grade that covers an item; 1 to 5."""
    compat: Literal["workbench"] | None = None
    """``workbench``: read and count [as the Rubric-Grading Workbench does](exam.md#the-workbench)."""

    @model_validator(mode="after")
    def _usable(self) -> ExamSection:
        if (self.bank is None) == (self.generate is None):
            raise ValueError("name the test bank with 'bank', or have it written with 'generate', one of the two")
        if self.generate is not None and self.grading in {"extraction_words", "extraction_llm"}:
            raise ValueError(f"grading {self.grading!r} needs gold answers, which only a 'bank' has")
        if self.items_per_call > 1 and (self.grading != "self_rating" or self.compat is not None):
            raise ValueError("'items_per_call' goes with grading 'self_rating' and without 'compat'")
        checks = self.check_judge is not None or "check_prompt" in self.model_fields_set
        if checks and self.grading != "extraction_llm":
            raise ValueError("'check_judge' and 'check_prompt' go with grading 'extraction_llm' only")
        return self

    def judges(self) -> list[str]:
        """The judges that write, grade and check."""
        writers = [self.generate.judge or self.judge] if self.generate is not None else []
        checkers = [self.check_judge or self.judge] if self.grading == "extraction_llm" else []
        return [*writers, self.judge, *checkers]


class NuggetCreationSection(Section):
    """How nuggets are made from relevant documents."""

    from_label: int = 1
    """Lowest label of documents to read."""
    window: Count = WINDOW
    """Number of documents in one turn."""
    most: Count = MOST
    """Maximum number of nuggets for a query."""
    prompt: PromptName = "nugget_create"
    """A packaged prompt, or the path of your own."""
    importance_prompt: PromptName = "nugget_importance"
    """The prompt that rates nuggets as vital or okay."""


class NuggetAssignmentSection(Section):
    """How answers, and the documents that agents retrieved, are checked against nuggets."""

    texts: Annotated[
        list[Literal["answers", "documents"]], BeforeValidator(as_list), Field(min_length=1), AfterValidator(each_once)
    ] = ["answers"]
    """``answers``, ``documents`` or both."""
    depth: Count | None = None
    """``documents``: number of documents of each agent to check; 20 when left out."""
    batch: Count = BATCH
    """Number of nuggets in one call."""
    grades: Literal[2, 3] = 3
    """``3`` with ``partial_support``, ``2`` without."""
    prompt: PromptName | None = None
    """For answers: a packaged prompt, or the path of your own."""
    passage_prompt: PromptName | None = None
    """For documents: a packaged prompt, or the path of your own."""

    @model_validator(mode="after")
    def _fits(self) -> NuggetAssignmentSection:
        for key in ("depth", "passage_prompt"):
            if "documents" not in self.texts and getattr(self, key) is not None:
                raise ValueError(f"'{key}' goes with 'texts: documents' only")
        return self

    def prompts(self) -> dict[Task, str]:
        """The prompt of each task, by default the packaged one."""
        grades = "" if self.grades == 3 else "_two_grades"
        task_prompts = {
            "answers": (Task.ASSIGNMENT, self.prompt or f"nugget_assign{grades}"),
            "documents": (Task.PASSAGE_ASSIGNMENT, self.passage_prompt or f"nugget_assign_passage{grades}"),
        }
        return dict(task_prompts[kind] for kind in self.texts)


class NuggetsSection(Section):
    """The nugget judge. It makes each query's nuggets from its relevant documents, unless you give a ``bank``."""

    judge: str
    """The judge, without ``samples``."""
    create: NuggetCreationSection | None = None
    """How nuggets are made from documents, if there is no ``bank``."""
    keep: Count = KEPT
    """Number of nuggets to keep, vital ones first."""
    bank: RelativePath | None = None
    """A file of nuggets, instead of ``create``."""
    assign: NuggetAssignmentSection = NuggetAssignmentSection()
    """How answers and documents are checked against nuggets."""
    review: ForPeople = ""
    """What people are told on the page [Review](web.md#people-vote-and-label): a line above each task."""

    @model_validator(mode="before")
    @classmethod
    def _made_unless_given(cls, content: Any) -> Any:
        if isinstance(content, dict) and content.get("bank") is None and content.get("create") is None:
            return {**content, "create": {}}
        return content

    @model_validator(mode="after")
    def _made_or_given(self) -> NuggetsSection:
        if self.bank is not None and self.create is not None:
            raise ValueError("'bank' takes the place of 'create'; leave one of them out")
        if self.bank is not None and "keep" in self.model_fields_set:
            raise ValueError("'keep' goes with 'create'; of a 'bank' every nugget counts")
        return self
