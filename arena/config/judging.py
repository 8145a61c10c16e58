"""The configuration's sections ``retrieval``, ``pairwise``, ``criteria``, ``exam`` and ``nuggets``, one per stage."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, RootModel, ValidationInfo, model_validator

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
    """Which pairs of agents the judges compare on each query."""

    kind: Literal["all", "random", "baseline", "adaptive"] = "all"
    """``all`` pairs, ``random`` pairs, every agent against one ``baseline``, or
    [``adaptive``](running.md#fewer-games-the-adaptive-schedule).
    """
    games_per_query: Count | None = None
    """For ``random``: number of pairs of agents to draw for each query."""
    baseline: str | None = None
    """For ``baseline``: the agent with which all others are compared."""
    seed: Seed = 0
    """Random seed for drawing pairs and orders."""
    decide: Literal["order", "top"] | None = None
    """For ``adaptive``: stop once every place (``order``, the default) or the first place (``top``) is decided."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    """For ``adaptive``: probability that no decided place is wrong; 0.95 by default."""
    batch: Count | None = None
    """For ``adaptive``: number of games that are chosen and judged at a time; 60 by default."""
    max_games: Count | None = None
    """For ``adaptive``: maximum number of games; a game compares two agents on one query."""

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
    """Name of a judge, or a list of names; each judge labels every document."""
    prompt: PromptName = "reasoner"
    """Name of a packaged prompt, or path of your own prompt file."""
    depth: Count | None = None
    """Label the documents of each agent down to this rank; by default all of them."""
    combine: Combine = "majority"
    """How several judges' labels are combined: ``majority``, ``median`` or ``mean``. The lower label wins ties."""
    measures: Annotated[list[str], BeforeValidator(as_list), Field(min_length=1), AfterValidator(_known_measures)] | (
        None
    ) = None
    """Retrieval measures, named as in ir_measures; the first is shown with a confidence interval. Default: ``nDCG@10``,
    ``Judged@10``, and the reciprocal rank at 5, once from label 1 and once from the upper half of the scale."""
    review: ForPeople = ""
    """Instructions for annotators, shown above each task on the page [Review](web.md#people-vote-and-label)."""


class ReferencesSection(Section):
    """Which retrieved documents a judge of answers reads."""

    include: bool = True
    """Show the judge the documents that the agents retrieved."""
    annotations: bool = True
    """Show the reason that the relevance judge gave for each document's label."""
    threshold: int = 2
    """Show documents with at least this relevance label. Documents without a label are always shown."""

    def options(self) -> ReferenceOptions:
        """Convert the section to the options of a judge's prompt."""
        return ReferenceOptions(self.include, self.annotations, self.threshold)


class GameDocumentsSection(ReferencesSection):
    """Which retrieved documents a judge of games reads."""

    pool: Literal["pair", "query"] = "pair"
    """The documents of a game: those that its two agents retrieved (``pair``), or the same for all games of a query
    (``query``), which [costs less](running.md#prompts-that-servers-cache) and may change verdicts."""
    pool_tokens: Count = 4_000
    """``pool: query`` shows the documents with the highest labels, by the best rank where labels are equal, as long as
    they fit into this many tokens, as estimated; at least one."""


class PairwiseSection(Section):
    """The judges that compare answers in pairs, and which pairs they compare."""

    judges: JudgeNames
    """Names of one or more judges; each judges every game."""
    prompt: PromptName = "pairwise"
    """Name of a packaged prompt, or path of your own prompt file."""
    schedule: ScheduleSection = ScheduleSection.model_construct()
    """Which pairs of agents are compared on each query."""
    both_orders: bool = True
    """Judge each pair of answers in both orders. ``false``: only in one order, drawn at random."""
    documents: GameDocumentsSection = GameDocumentsSection.model_construct()
    """Which retrieved documents the judges read."""
    citations: bool = False
    """Let judges check citations. [Citation marks](nuggets.md#marks) become numbers of the documents in the prompt."""
    factors: str = ""
    """Your instructions to the judge on what makes an answer better; the packaged prompt has a default."""
    win_and_tie: Literal["tie", "win"] = "tie"
    """The result of a game with a win in one order and a tie in the other: ``tie`` or ``win``."""
    review: ForPeople = ""
    """Instructions for annotators, shown above each task on the page [Review](web.md#people-vote-and-label).
    By default, the text of ``factors``."""


class CriterionSection(Section):
    """A criterion for grading answers: its description, its levels and what it needs."""

    description: str = ""
    """Description of the criterion, which the judge reads after the name."""
    levels: dict[int, str] = Field(default_factory=dict)
    """Meaning of each grade: ``{0: it is rude, 1: it is curt, 2: it is friendly}``."""
    needs: Annotated[list[Need], BeforeValidator(as_list), AfterValidator(each_once), UNLESS_EMPTY] = Field(
        default_factory=list
    )
    """What the judge also reads to grade: the ``documents`` that the answer's agent retrieved, or the ``reference``."""


_DESCRIBED: Final[dict[str, str | CriterionSection]] = {
    criterion.name: criterion.description for criterion in DEFAULT_CRITERIA
}


class _CriteriaFile(RootModel):  # type: ignore[type-arg]  # one with a type argument is built at once
    """A YAML file of criteria; its content has the form of the key ``criteria.names``."""

    model_config = ConfigDict(defer_build=True)
    root: dict[str, str | CriterionSection | None]


def _written_out(criteria: Iterable[Criterion], scale: tuple[int, int]) -> dict[str, Any]:
    """Packaged criteria in the form of ``criteria.names``; levels are left out unless the scale is 0 to 2."""
    return {
        criterion.name: {
            "description": criterion.description,
            "levels": dict(criterion.levels) if scale == (0, 2) else {},
            "needs": list(criterion.needs),
        }
        for criterion in criteria
    }


def _named(content: Any, info: ValidationInfo) -> Any:
    """Replace ``anchored``, names of packaged criteria, or the path of a criteria file by the criteria themselves."""
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
    """The stage in which a judge grades single answers by criteria."""

    judge: str
    """Name of the judge that grades the answers."""
    prompt: PromptName = "criteria"
    """Name of a packaged prompt, or path of your own prompt file."""
    scale: tuple[int, int] = (0, 2)
    """Lowest and highest grade; whole numbers."""
    names: Annotated[list[str] | dict[str, str | CriterionSection], BeforeValidator(_named)] = Field(
        default_factory=lambda: dict(_DESCRIBED)
    )
    """The [criteria](prompts.md#criteria): a list of names, names with descriptions or levels, a YAML file with either,
    or ``anchored``. Default: relevance, accuracy, completeness, precision."""
    documents: ReferencesSection = ReferencesSection.model_construct()
    """Which documents the judge reads, out of those that any agent retrieved. Leave it out if a criterion needs
    ``documents``: the judge then reads all documents that the answer's own agent retrieved.
    """
    review: ForPeople = ""
    """Instructions for annotators, shown above each task on the page [Review](web.md#people-vote-and-label)."""

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
        """Whether some criterion needs the documents that the answer's own agent retrieved."""
        return any("documents" in criterion.needs for criterion in self.listed())

    def listed(self) -> list[Criterion]:
        """The criteria in the form in which the judge's prompt lists them."""
        if isinstance(self.names, list):
            return [Criterion(name) for name in self.names]
        return [
            Criterion(name, section)
            if isinstance(section, str)
            else Criterion(name, section.description, tuple(sorted(section.levels.items())), tuple(section.needs))
            for name, section in self.names.items()
        ]


class GenerateSection(Section):
    """How a judge writes the exam's test bank of questions or nuggets."""

    judge: str | None = None
    """Name of the judge that writes the items; by default the exam's judge."""
    kind: ItemType = "question"
    """What the items are: ``question`` or ``nugget``."""
    per_query: Count = 10
    """Number of items for each query, or for each subtopic."""
    subtopics: RelativePath | None = None
    """A table of the queries' subtopics, with the columns ``qid, facet, subtopic``."""
    prompt: PromptName | None = None
    """Name of a packaged prompt, or path of your own prompt file."""
    secret: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the items, 0 to 1, that are secret: they count, but are not shown in the results."""
    seed: Seed = 0
    """Random seed for drawing the secret items."""


class ExamSection(Section):
    """An exam: judges grade how well passages of answers, or documents, cover a test bank of questions or nuggets."""

    judge: str
    """Name of the judge that grades the passages."""
    bank: RelativePath | None = None
    """The file of the test bank; give either ``bank`` or ``generate``."""
    generate: GenerateSection | None = None
    """How a judge writes the test bank, if you have no file."""
    grading: Literal["self_rating", "extraction_words", "extraction_llm", "extraction_only"] = "self_rating"
    """[How passages are graded](exam.md#a-judge-that-grades): ``self_rating``, ``extraction_words``, ``extraction_llm``
    or ``extraction_only``."""
    prompt: PromptName | None = None
    """Name of a packaged prompt, or path of your own prompt file."""
    check_judge: str | None = None
    """For ``extraction_llm``: the judge that checks extracted answers against gold answers; by default ``judge``."""
    check_prompt: PromptName = "answer_check"
    """For ``extraction_llm``: the prompt with which extracted answers are checked."""
    texts: Literal["answers", "documents"] = "answers"
    """What is graded: ``answers``, or the ``documents`` that agents retrieved."""
    passage_words: Count = 400
    """Maximum length of a passage in words."""
    items_per_call: Count = 1
    """For ``self_rating``: number of items that the judge rates in one call."""
    depth: Count = 20
    """Number of passages of each answer, or of documents of each agent, that are graded: the k in EXAM-Cover@k."""
    min_grade: Annotated[int, Field(ge=1, le=5)] = 4
    """Lowest grade, 1 to 5, at which a passage covers an item."""
    compat: Literal["workbench"] | None = None
    """``workbench``: read replies and count scores [as the Rubric-Grading Workbench does](exam.md#the-workbench)."""

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
        """Names of the judges that write the bank, grade passages and check extracted answers."""
        writers = [self.generate.judge or self.judge] if self.generate is not None else []
        checkers = [self.check_judge or self.judge] if self.grading == "extraction_llm" else []
        return [*writers, self.judge, *checkers]


class NuggetCreationSection(Section):
    """How the judge creates the nuggets of a query from its relevant documents."""

    from_label: int = 1
    """Read the documents with at least this relevance label."""
    window: Count = WINDOW
    """Number of documents that the judge reads in one call; each call updates the query's list of nuggets."""
    most: Count = MOST
    """Maximum number of nuggets in the list of a query."""
    prompt: PromptName = "nugget_create"
    """Name of a packaged prompt, or path of your own prompt file."""
    importance_prompt: PromptName = "nugget_importance"
    """The prompt with which the judge rates each nugget as vital or okay."""


class NuggetAssignmentSection(Section):
    """How the judge checks which nuggets are stated in answers, or in the documents that agents retrieved."""

    texts: Annotated[
        list[Literal["answers", "documents"]], BeforeValidator(as_list), Field(min_length=1), AfterValidator(each_once)
    ] = ["answers"]
    """What is checked: ``answers``, ``documents`` or both."""
    depth: Count | None = None
    """For ``documents``: number of documents of each agent that are checked; 20 by default."""
    batch: Count = BATCH
    """Number of nuggets that are checked in one call."""
    grades: Literal[2, 3] = 3
    """Number of grades: ``3`` with the grade ``partial_support``, ``2`` without it."""
    prompt: PromptName | None = None
    """For answers: name of a packaged prompt, or path of your own prompt file."""
    passage_prompt: PromptName | None = None
    """For documents: name of a packaged prompt, or path of your own prompt file."""

    @model_validator(mode="after")
    def _fits(self) -> NuggetAssignmentSection:
        for key in ("depth", "passage_prompt"):
            if "documents" not in self.texts and getattr(self, key) is not None:
                raise ValueError(f"'{key}' goes with 'texts: documents' only")
        return self

    def prompts(self) -> dict[Task, str]:
        """The prompt for checking answers and for checking documents, by task."""
        grades = "" if self.grades == 3 else "_two_grades"
        task_prompts = {
            "answers": (Task.ASSIGNMENT, self.prompt or f"nugget_assign{grades}"),
            "documents": (Task.PASSAGE_ASSIGNMENT, self.passage_prompt or f"nugget_assign_passage{grades}"),
        }
        return dict(task_prompts[kind] for kind in self.texts)


class NuggetsSection(Section):
    """The judge of nuggets. It creates each query's nuggets from relevant documents, unless you give a ``bank``."""

    judge: str
    """Name of the judge, which must be declared without ``samples``."""
    create: NuggetCreationSection | None = None
    """How nuggets are created from documents, if there is no ``bank``."""
    keep: Count = KEPT
    """Number of nuggets to keep for each query; vital nuggets come first."""
    bank: RelativePath | None = None
    """A file with the nuggets of each query, instead of ``create``."""
    assign: NuggetAssignmentSection = NuggetAssignmentSection.model_construct()
    """How answers and documents are checked against nuggets."""
    review: ForPeople = ""
    """Instructions for annotators, shown above each task on the page [Review](web.md#people-vote-and-label)."""

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
