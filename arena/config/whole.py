"""The whole file, and what its sections ask of each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, model_validator

from arena.config.data import DataSection, StoreName
from arena.config.exam import ExamSection
from arena.config.executor import ExecutorSection
from arena.config.judging import CriteriaSection, PairwiseSection, RetrievalSection
from arena.config.nuggets import NuggetsSection
from arena.config.ratings import RatingsSection
from arena.config.synth import SynthSection
from arena.stages import FURTHER, STAGES
from judges.errors import ConfigError, InputError
from judges.sections import Section, describe, load_section, nearest
from judges.spec import JudgeSpec
from retrieval_eval.agents.spec import AgentSpec, judges_of_agents, needs_corpus, uses_corpus

AgentName = Annotated[str, Field(pattern=r"^\S(.*\S)?$")]


class Config(Section):
    """A whole tournament. Every stage is optional, data is not."""

    name: Annotated[str, Field(pattern=r"^[\w][\w .-]{0,79}$")]
    """The tournament's name in its store: letters, digits, space, ``_``, ``.`` and ``-``; at most 80 characters."""
    store: StoreName
    """Where everything is kept: an SQLite file, which the first run makes, or a PostgreSQL address."""
    data: DataSection
    """The files of queries, documents and answers."""
    executor: ExecutorSection = ExecutorSection()
    """Where judges are called."""
    judges: dict[str, JudgeSpec] = Field(default_factory=dict)
    """The judges, by names of your choice."""
    agents: dict[AgentName, AgentSpec] = Field(default_factory=dict)
    """Systems that are asked for answers, by names of your choice; answers in files need none."""
    synth: SynthSection | None = None
    """Makes queries from documents."""
    retrieval: RetrievalSection | None = None
    """The stage that labels documents."""
    pairwise: PairwiseSection | None = None
    """The stage that plays games."""
    criteria: CriteriaSection | None = None
    """The stage that grades single answers."""
    exam: ExamSection | None = None
    """The stage that grades answers or documents by a test bank."""
    nuggets: NuggetsSection | None = None
    """The stages that make nuggets and check which ones answers state."""
    ratings: RatingsSection = RatingsSection()
    """How games become ratings."""
    families: dict[str, str] = Field(default_factory=dict)
    """For each agent, whose model wrote its answers; shows whether judges favour their own family."""
    further: dict[str, Any] = Field(default_factory=dict, exclude=True)
    """By key, the sections of stages that bring them along; a file has them beside the others."""
    _file: Path | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _further_sections(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, dict):
            return given
        known = (cls.model_fields.keys() - {"further"}) | FURTHER.keys()
        if unknown := [key for key in given if key not in known and key != "api_key"]:
            raise ValueError(f"unknown key {unknown[0]!r}{nearest(unknown[0], known)}")
        further = {}
        for key in given.keys() & FURTHER.keys():
            try:
                further[key] = FURTHER[key].load("SECTION").model_validate(given[key], context=info.context)
            except ValidationError as problem:
                raise ValueError(f"{key}.{describe(problem)}") from problem
        return {key: value for key, value in given.items() if key not in further} | {"further": further}

    @model_validator(mode="after")
    def _judges_are_declared(self) -> Config:
        synth = self.synth.judges() if self.synth is not None else []
        for name in [*self.judges_in_use(), *synth, *judges_of_agents(self.agents.values())]:
            if name not in self.judges:
                raise ValueError(f"judge {name!r} is not declared under 'judges'{nearest(name, self.judges)}")
        return self

    @model_validator(mode="after")
    def _batches_are_for_judging(self) -> Config:
        synth = self.synth.judges() if self.synth is not None else []
        for name in [*synth, *judges_of_agents(self.agents.values())]:
            if self.judges[name].in_batches:
                raise ValueError(
                    f"judge {name!r} asks in batches, and agents and 'synth' ask directly; declare another"
                )
        return self

    @model_validator(mode="after")
    def _queries_come_from_somewhere(self) -> Config:
        if not self.query_files:
            raise ValueError("data: say where the queries are with 'queries', or have them made with a section 'synth'")
        return self

    @model_validator(mode="after")
    def _corpus_is_searched(self) -> Config:
        if self.data.corpus and not (self.data.runs or uses_corpus(self.agents.values())):
            raise ValueError("data: 'corpus' has the documents of 'runs' or of agents, and none takes any from it")
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

    def at(self, key: str) -> str:
        """A key as errors name it: behind the file, where the configuration was read from one."""
        return key if self._file is None else f"{self._file}: {key}"

    @property
    def query_files(self) -> list[Path]:
        """Where the queries are: files that are named, else the one that ``synth`` writes."""
        return self.data.queries or ([self.synth.out] if self.synth is not None else [])

    @property
    def lacks_queries(self) -> bool:
        """Whether the queries are to be made first."""
        return not self.data.queries and self.synth is not None and not self.synth.out.is_file()

    def queries(self) -> list[Path]:
        """The same, to be read.

        Raises:
            InputError: the queries are to be made first.
        """
        if self.synth is not None and self.lacks_queries:
            raise InputError(
                f"{self.synth.out}: not written yet; 'ragleague run CONFIG --stage synth' makes the queries"
            )
        return self.query_files

    def judges_in_use(self) -> list[str]:
        """Names of the judges that some stage asks, in the order of the stages, each once."""
        sections = (self.section(stage.key) for stage in STAGES)
        return list(dict.fromkeys(name for section in sections if section is not None for name in _judges_of(section)))

    def section(self, key: str) -> Section | None:
        """The section of a stage, ``None`` where the file has none."""
        section: Section | None = self.further.get(key) if key in FURTHER else getattr(self, key)
        return section


def _judges_of(section: Any) -> list[str]:
    """The judges that a stage's section names."""
    named = section.judges if hasattr(section, "judges") else section.judge
    named = named() if callable(named) else named
    return [named] if isinstance(named, str) else named


def load_config(path: Path) -> Config:
    """Read and check one YAML file.

    Raises:
        ConfigError: one line that names the file, the key and the problem.
    """
    config = load_section(path, Config, ConfigError)
    config._file = path
    return config
