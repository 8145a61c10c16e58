"""The one YAML file. Unknown keys are refused, paths are relative to the file, keys stay in the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from arena.synth.section import SynthSection
from judges.criteria import DEFAULT_CRITERIA
from judges.errors import ConfigError, InputError
from judges.pairwise import ReferenceOptions
from judges.sections import (
    JudgeNames,
    Paths,
    PromptName,
    RelativePath,
    Section,
    as_list,
    beside_file,
    each_once,
    load_section,
    nearest,
)
from judges.spec import JudgeSpec
from judges.types import Task
from retrieval_eval.agents.spec import AgentSpec, judges_of_agents, needs_corpus
from retrieval_eval.documents.passages import PassagesSection
from retrieval_eval.documents.types import Limits
from retrieval_eval.exam.items import ItemType
from retrieval_eval.irds import dataset_name
from retrieval_eval.nuggets.creation import BATCH, KEPT, MOST, WINDOW

Count = Annotated[int, Field(ge=1)]


def _store_beside_file(store: str, info: ValidationInfo) -> str:
    folder = (info.context or {}).get("folder")
    return store if "://" in store or folder is None else str(folder / Path(store).expanduser())


def _known_measures(names: list[str]) -> list[str]:
    from retrieval_eval.measures import parse_measures

    try:
        return list(parse_measures(names))
    except InputError as error:
        raise ValueError(str(error)) from error


def _source_beside_file(source: Path, info: ValidationInfo) -> Path:
    return source if dataset_name(source) is not None else beside_file(source, info)


Sources = Annotated[list[Annotated[Path, AfterValidator(_source_beside_file)]], BeforeValidator(as_list)]
"""Files, or ``irds:NAME`` for datasets of ir_datasets."""
AgentName = Annotated[str, Field(pattern=r"^\S(.*\S)?$")]
StoreName = Annotated[str, AfterValidator(_store_beside_file)]


class DataSection(Section):
    """Files of queries, documents and answers, TREC runs, the corpus of runs and agents, qrels; one or a list each."""

    queries: Sources = Field(default_factory=list)
    """Where absent, those that ``synth`` makes."""
    documents: Paths = Field(default_factory=list)
    answers: Paths = Field(default_factory=list)
    runs: Paths = Field(default_factory=list)
    corpus: Sources = Field(default_factory=list)
    """Tables of documents; folders, and files in formats that people read, are cut into passages."""
    passages: PassagesSection = PassagesSection(by="paragraph")
    limits: Limits = Limits()
    qrels: Sources = Field(default_factory=list)
    """Relevance labels of people, which the judges' are held against."""


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


class ScheduleSection(Section):
    """Which pairs of agents meet on a query."""

    kind: Literal["all", "random", "baseline", "adaptive"] = "all"
    games_per_query: Count | None = None
    baseline: str | None = None
    seed: int = 0
    decide: Literal["order", "top"] | None = None
    """Of an adaptive schedule: whether all places are to be decided, or the first one."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    batch: Count | None = None
    max_games: Count | None = None

    @model_validator(mode="after")
    def _fits_kind(self) -> ScheduleSection:
        if (self.kind == "random") != (self.games_per_query is not None):
            raise ValueError("'games_per_query' goes with kind 'random', and only with it")
        if (self.kind == "baseline") != (self.baseline is not None):
            raise ValueError("'baseline' goes with kind 'baseline', and only with it")
        adaptive = ("decide", "confidence", "batch", "max_games")
        if self.kind != "adaptive" and (given := [name for name in adaptive if getattr(self, name) is not None]):
            raise ValueError(f"'{given[0]}' goes with kind 'adaptive' only")
        return self


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


class NuggetCreationSection(Section):
    """How nuggets are made of relevant documents."""

    from_label: int = 1
    """The lowest relevance label of the documents that are read."""
    window: Count = WINDOW
    most: Count = MOST
    prompt: PromptName = "nugget_create"
    importance_prompt: PromptName = "nugget_importance"


class NuggetAssignmentSection(Section):
    """How answers, and the documents that agents retrieved, are held against nuggets."""

    texts: Annotated[
        list[Literal["answers", "documents"]],
        BeforeValidator(as_list),
        Field(min_length=1),
        AfterValidator(each_once),
    ] = ["answers"]
    depth: Count | None = None
    """Documents of each agent's ranking that are held against nuggets and count; ``DEPTH`` when absent."""
    batch: Count = BATCH
    grades: Literal[2, 3] = 3
    prompt: PromptName | None = None
    """Of answers: ``nugget_assign``, or ``nugget_assign_two_grades`` with two grades, where none is named."""
    passage_prompt: PromptName | None = None
    """Of documents: ``nugget_assign_passage``, with two grades ``nugget_assign_passage_two_grades``."""

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
    create: NuggetCreationSection | None = None
    keep: Count = KEPT
    """Nuggets that are kept of those made, vital ones first."""
    bank: RelativePath | None = None
    """A file of nuggets, in place of ``create``."""
    assign: NuggetAssignmentSection = NuggetAssignmentSection()

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


class EloSection(Section):
    """Elo over seeded random orders of all games."""

    k: Annotated[float, Field(gt=0)] = 32.0
    initial: float = 1000.0
    tournaments: Count = 500


class BradleyTerrySection(Section):
    """Bradley-Terry by maximum likelihood."""

    ties: Literal["davidson", "rao-kupper", "half"] = "davidson"


class BootstrapSection(Section):
    """Intervals by resampling whole queries, or single games."""

    by: Literal["query", "game"] = "query"
    samples: Count = 1000


class RatingsSection(Section):
    """How games become ratings."""

    elo: EloSection = EloSection()
    bradley_terry: BradleyTerrySection = BradleyTerrySection()
    bootstrap: BootstrapSection = BootstrapSection()
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of the wanted verdicts of every judge and of every agent that ratings need."""
    seed: int = 0


class Config(Section):
    """A whole tournament. Every stage is optional, data is not."""

    name: Annotated[str, Field(pattern=r"^[\w][\w .-]{0,79}$")]
    store: StoreName
    data: DataSection
    judges: dict[str, JudgeSpec] = Field(default_factory=dict)
    agents: dict[AgentName, AgentSpec] = Field(default_factory=dict)
    """Systems that are asked for answers, besides those whose answers are in files."""
    synth: SynthSection | None = None
    """How queries are made of documents."""
    retrieval: RetrievalSection | None = None
    pairwise: PairwiseSection | None = None
    criteria: CriteriaSection | None = None
    exam: ExamSection | None = None
    nuggets: NuggetsSection | None = None
    ratings: RatingsSection = RatingsSection()
    families: dict[str, str] = Field(default_factory=dict)
    """For agents, whose model wrote their answers."""

    @model_validator(mode="after")
    def _judges_are_declared(self) -> Config:
        synth = self.synth.judges() if self.synth is not None else []
        for name in [*self.judges_in_use(), *synth, *judges_of_agents(self.agents.values())]:
            if name not in self.judges:
                raise ValueError(f"judge {name!r} is not declared under 'judges'{nearest(name, self.judges)}")
        return self

    @model_validator(mode="after")
    def _queries_come_from_somewhere(self) -> Config:
        if not self.query_files:
            raise ValueError("data: say where the queries are with 'queries', or have them made with a section 'synth'")
        return self

    @model_validator(mode="after")
    def _corpus_is_searched(self) -> Config:
        if self.data.corpus and not (self.data.runs or needs_corpus(self.agents.values())):
            raise ValueError("data: 'corpus' has the documents of 'runs' or of agents that search, and there are none")
        if needs_corpus(self.agents.values()) and not self.data.corpus:
            raise ValueError("data: agents search documents; say where they are with 'corpus'")
        return self

    @model_validator(mode="after")
    def _nuggets_have_what_they_need(self) -> Config:
        if self.nuggets is None:
            return self
        if self.nuggets.create is not None and self.retrieval is None:
            raise ValueError("nuggets are made of documents with a label: 'nuggets' needs 'retrieval', or a 'bank'")
        if self.judges[self.nuggets.judge].samples > 1:
            raise ValueError(
                f"nuggets.judge: {self.nuggets.judge!r} has 'samples', and lists of nuggets cannot be averaged; "
                "declare a judge without"
            )
        return self

    @property
    def query_files(self) -> list[Path]:
        """Where the queries are: files that are named, else the one that ``synth`` writes."""
        return self.data.queries or ([self.synth.out] if self.synth is not None else [])

    def queries(self) -> list[Path]:
        """The same, to be read.

        Raises:
            InputError: the queries are to be made first.
        """
        if not self.data.queries and self.synth is not None and not self.synth.out.is_file():
            raise InputError(
                f"{self.synth.out}: not written yet; 'ragarena run CONFIG --stage synth' makes the queries"
            )
        return self.query_files

    def judges_in_use(self) -> list[str]:
        """Names of the judges that some stage asks, in the order of the stages, each once."""
        stages = [
            *(self.retrieval.judge if self.retrieval else []),
            *(self.pairwise.judges if self.pairwise else []),
            *([self.criteria.judge] if self.criteria else []),
            *(self.exam.judges() if self.exam else []),
            *([self.nuggets.judge] if self.nuggets else []),
        ]
        return list(dict.fromkeys(stages))


def load_config(path: Path) -> Config:
    """Read and check one YAML file.

    Raises:
        ConfigError: one line that names the file, the key and the problem.
    """
    return load_section(path, Config, ConfigError)
