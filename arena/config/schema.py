"""The model of the configuration file: its top-level keys, most of its sections, and checks across sections."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from arena.config.settings import TournamentSettings, stage_of
from arena.config.stages import further_stages, installed_stages, listed_stages
from judges.errors import ConfigError, InputError
from judges.masking import key_in
from judges.sections import (
    Count,
    JudgeNames,
    Paths,
    PromptName,
    RelativePath,
    Section,
    Seed,
    TournamentName,
    as_list,
    beside_file,
    expand_home,
    line_in,
    load_section,
    matching,
    mistake,
    nearest,
)
from judges.spec import SECRET_VARIABLE, JudgeSpec
from retrieval_eval.agents.spec import AgentSpec, judges_of_agents, needs_corpus, uses_corpus
from retrieval_eval.data.collections import irds_name as dataset_name
from retrieval_eval.data.table_spec import OF_DATA
from retrieval_eval.data.tables import has_rows
from retrieval_eval.documents.passages import PassagesSection
from retrieval_eval.documents.types import Limits

PER_PASSAGE = 10
SHOTS = 10


def _store_beside_file(store: str, info: ValidationInfo) -> str:
    folder = (info.context or {}).get("folder")
    # The message shows only the variable, because the address may hold a password.
    if (variable := re.search(r"\$\{\w*\}?", store)) is not None:
        raise ValueError(f"variables of the environment are not filled in: write the path itself, not {variable[0]!r}")
    return store if "://" in store or folder is None else str(folder / expand_home(store))


def _source_beside_file(source: Path, info: ValidationInfo) -> Path:
    return source if dataset_name(source) is not None else beside_file(source, info)


Sources = Annotated[list[Annotated[Path, AfterValidator(_source_beside_file)]], BeforeValidator(as_list)]
"""Paths of files, or ``irds:NAME`` for a dataset of the package ir_datasets."""
StoreName = Annotated[str, AfterValidator(_store_beside_file)]


class DataSection(Section):
    """The input files: queries, documents, answers, TREC runs, corpus and qrels. Each key takes one file or a list."""

    queries: Sources = Field(default_factory=list)
    """Tables of queries, TREC topics, or ``irds:NAME``. By default, the queries that ``synth`` writes, or those in
    ``answers``."""
    documents: Paths = Field(default_factory=list)
    """Tables of the documents that agents retrieved."""
    answers: Paths = Field(default_factory=list)
    """Tables of answers, one for all agents or one for each agent, or patterns such as ``answers/*.jsonl``."""
    columns: dict[str, str | list[str] | None] = Field(default_factory=dict)
    """Names in your tables for [ragleague's columns](your-data.md#columns): ``{qid: id, answer: output}``; ``null`` if
    your tables have no such column; ``{answer: [gpt, llama]}`` if each agent has a column.
    """
    limit: Count | None = None
    """Use only this number of queries, the first ones."""
    runs: Paths = Field(default_factory=list)
    """TREC runs: one for each agent, or one for all agents. They are read down to the rank ``retrieval.depth``."""
    corpus: Sources = Field(default_factory=list)
    """Texts of the documents in ``runs``, and documents for agents to search: tables or ``irds:NAME``. Agents can also
    search folders and PDF, HTML, Markdown and DOCX files."""
    passages: PassagesSection = PassagesSection.model_construct(by="paragraph")
    """How the documents in ``corpus`` are split into passages that agents search; by default, by ``paragraph``."""
    limits: Limits = Limits.model_construct()
    """Limits on size, time and memory for reading one document file."""
    qrels: Sources = Field(default_factory=list)
    """Files of people's relevance labels (TREC qrels, also of spans ``did#start-end``), or ``irds:NAME``."""

    @field_validator("columns")
    @classmethod
    def _known_columns(cls, columns: dict[str, str | list[str] | None]) -> dict[str, str | list[str] | None]:
        if unknown := [name for name in columns if name not in OF_DATA]:
            raise ValueError(f"unknown name {unknown[0]!r}{nearest(unknown[0], OF_DATA)}")
        return columns


_RUNTIME_ENV: Final = (
    "pip",
    "uv",
    "conda",
    "working_dir",
    "py_modules",
    "py_executable",
    "excludes",
    "env_vars",
    "image_uri",
    "config",
)


class ExecutorSection(Section):
    """Where judges run: ``local`` in this process, ``ray`` in worker processes on one or more machines."""

    kind: Literal["local", "ray"] = "local"
    """``local`` for this process, or ``ray`` for workers on a Ray cluster."""
    address: str | None = None
    """Address of a running Ray cluster: ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``. By default, the environment
    variable ``RAY_ADDRESS``; if that is not set either, the run starts Ray itself.
    """
    workers: Count = 2
    """Number of worker processes for each judge; each process makes up to ``concurrency`` calls at a time."""
    gpus: Annotated[float, Field(ge=0)] = 0
    """Number of GPUs for each worker of a local model; may be a fraction."""
    wait_s: Annotated[float, Field(ge=0)] = 300
    """Seconds to wait for workers to start or for a model to load."""
    runtime_env: dict[str, Any] | None = None
    """Ray's ``runtime_env`` of the workers: ``pip``, ``working_dir``, ``env_vars`` and others; no API keys."""

    @field_validator("runtime_env")
    @classmethod
    def _without_keys(cls, env: dict[str, Any] | None) -> dict[str, Any] | None:
        if env is None:
            return env
        for key in env:
            if key not in _RUNTIME_ENV:
                raise ValueError(f"unknown key {key!r}{nearest(key, _RUNTIME_ENV)}")
        variables = env.get("env_vars", {})
        if not isinstance(variables, dict) or {type(part) for pair in variables.items() for part in pair} - {str}:
            raise ValueError("env_vars: names and texts, such as {HF_HOME: /models}; put numbers in quotes")
        secret = next((("env_vars", variable) for variable in variables if SECRET_VARIABLE.search(variable)), None)
        if path := secret or key_in(env):
            raise ValueError(
                f"{'.'.join(path)} looks like a key, and Ray shows runtime_env in its logs: set it in the environment "
                "of the machines, from a secret"
            )
        return env

    @model_validator(mode="after")
    def _belongs_to_ray(self) -> ExecutorSection:
        if self.kind == "local" and (ray_keys := self.model_fields_set - {"kind"}):
            raise ValueError(f"{', '.join(sorted(ray_keys))}: only for 'kind: ray'; leave it out")
        return self


class SampleSection(Section):
    """Random samples when queries are generated. They do not depend on the order of files or replies."""

    passages: Count | None = None
    """Number of passages for which queries are generated; by default all."""
    seed: Seed = 0
    """Random seed for drawing passages, examples and queries."""


class FiltersSection(Section):
    """Which generated queries are dropped. Duplicates and queries that repeat an example are always dropped."""

    near_duplicates: Annotated[float, Field(gt=0, le=1)] | None = 0.9
    """Drop the later of two queries that share at least this fraction of their words; ``null`` keeps both."""
    mentions_source: bool = True
    """Drop queries that mention "the passage"."""
    answerable: str | None = None
    """Name of the judge that checks whether the passage answers the query; without it, there is no check."""
    prompt: PromptName = "answerable"
    """The prompt of the judge ``answerable``."""


UNANSWERABLE: Final = "(unanswerable)"
"""Name of the queries that nothing answers, where others have the name of the model that wrote them."""


class UnansweredSection(Section):
    """Queries that [the documents do not answer](from-documents.md#queries-that-nothing-answers)."""

    number: Count
    """Number of such queries to keep."""
    judge: str
    """Name of the judge that checks that the documents do not answer them; none of ``models``."""
    documents: Count = 5
    """Number of passages, those nearest to the query by BM25, that the judge reads."""
    prompt: PromptName = "unanswered_queries"
    """The prompt of the models that write them."""
    check_prompt: PromptName = "unanswered"
    """The prompt of the judge."""


class SynthSection(Section):
    """How models generate queries from documents."""

    documents: Annotated[Paths, Field(min_length=1)]
    """Folders and files of documents: PDF, HTML, Markdown, DOCX, text."""
    passages: PassagesSection = PassagesSection.model_construct(by="pages")
    """How documents are split into the passages that a model reads; by default, by ``pages``."""
    limits: Limits = Limits.model_construct()
    """Limits on size, time and memory for reading one document file."""
    models: JudgeNames
    """Names of the judges whose models write the queries."""
    per_passage: Count = PER_PASSAGE
    """Maximum number of queries that a model writes for a passage."""
    examples: RelativePath | None = None
    """Experts' queries that models see as examples: a file with one per line, or a table with a column ``query``."""
    shots: Count = SHOTS
    """Number of examples that a model sees, drawn separately for each passage."""
    prompt: PromptName = "synthetic_queries"
    """Name of a packaged prompt, or path of your own prompt file."""
    sample: SampleSection = SampleSection.model_construct()
    """Which passages are drawn at random, and the random seed."""
    quotas: dict[str, Count] = Field(default_factory=dict)
    """Number of queries to keep from each model; by default all."""
    filters: FiltersSection = FiltersSection.model_construct()
    """Which of the generated queries are dropped."""
    unanswerable: UnansweredSection | None = None
    """Also write queries that the documents do not answer; all queries then have a column ``answerable``."""
    out: RelativePath
    """The file to which the queries are written."""
    review: RelativePath | None = None
    """A file to write in which people then accept, edit or reject each query."""
    reviewed: RelativePath | None = None
    """The file ``review`` with people's decisions; only accepted and edited queries are used."""

    @model_validator(mode="after")
    def _quotas_are_of_models(self) -> SynthSection:
        for name in self.quotas:
            if name not in self.models:
                raise ValueError(f"'quotas' names {name!r}, which is none of 'models'{nearest(name, self.models)}")
        for name in self.models:
            if self.quotas and name not in self.quotas:
                raise ValueError(f"'quotas' has none for {name!r}, so its queries would be paid for and not used")
        return self

    @model_validator(mode="after")
    def _another_judge_checks(self) -> SynthSection:
        if self.unanswerable is not None and self.unanswerable.judge in self.models:
            raise ValueError(
                f"unanswerable.judge: {self.unanswerable.judge!r} writes the queries itself; name another judge"
            )
        return self

    @property
    def all_quotas(self) -> dict[str, int]:
        """The models' quotas, and the number of queries that nothing answers."""
        return self.quotas | ({} if self.unanswerable is None else {UNANSWERABLE: self.unanswerable.number})

    def judges(self) -> list[str]:
        """Names of the judges in ``models``, ``filters.answerable`` and ``unanswerable``, without repetitions."""
        checking = [self.filters.answerable, None if self.unanswerable is None else self.unanswerable.judge]
        return list(dict.fromkeys([*self.models, *filter(None, checking)]))


AgentName = Annotated[
    str,
    matching(r"^\S(.*\S)?$", "an agent's name must not be empty, nor begin or end with a blank"),
    matching(r"^[^\0\ud800-\udfff]+$", "an agent's name must hold no NUL and no half of a surrogate pair"),
]


class Config(TournamentSettings):
    """The configuration of a tournament. ``name``, ``store`` and ``data`` are required; every stage is optional."""

    name: TournamentName
    """The tournament's name in the store; may contain letters, digits, space, ``_``, ``.`` and ``-``."""
    store: StoreName
    """Where results are stored: an SQLite file, created by the first run, or the address of a PostgreSQL database."""
    data: DataSection
    """The files of queries, documents and answers."""
    executor: ExecutorSection = ExecutorSection.model_construct()
    """Where judges run: in this process or on Ray."""
    judges: dict[str, JudgeSpec] = Field(default_factory=dict)
    """The judges. Each has a name of your choice, by which other sections refer to it."""
    agents: dict[AgentName, AgentSpec] = Field(default_factory=dict)
    """Systems that a run asks for answers, each with a name of your choice. Not needed for answers in files."""
    synth: SynthSection | None = None
    """The stage that generates queries from documents."""
    families: dict[str, str] = Field(default_factory=dict)
    """For each agent, the model family that wrote its answers. With it, calibration shows whether judges favour
    answers of their own [family](calibration.md#a-tournament).
    """
    _file: Path | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        if empty := [key for key, value in content.items() if value is None and key in cls.model_fields]:
            raise mistake(f"{empty[0]}: is empty; fill it in, or remove it", empty[0])
        fields = cls.model_fields.keys() - {"further"}
        unknown = [key for key in content if key not in fields and key != "api_key" and stage_of(key) is None]
        if unknown:
            known = fields | further_stages().keys() | {*installed_stages()}
            raise mistake(f"unknown key {unknown[0]!r}{nearest(unknown[0], known)}", str(unknown[0]))
        return content

    @model_validator(mode="after")
    def _judges_are_declared(self) -> Config:
        for section, names in self._asked().items():
            for name in names:
                if name not in self.judges:
                    raise mistake(f"judge {name!r} is not declared under 'judges'{nearest(name, self.judges)}", section)
        return self

    @model_validator(mode="after")
    def _batches_are_for_judging(self) -> Config:
        synth = self.synth.judges() if self.synth is not None else []
        for name in [*synth, *judges_of_agents(self.agents.values())]:
            if self.judges[name].in_batches:
                raise ValueError(
                    f"judge {name!r} asks in batches, but agents and 'synth' need direct calls; declare another judge"
                )
        return self

    @model_validator(mode="after")
    def _queries_come_from_somewhere(self) -> Config:
        if not self.query_files and not self.data.answers:
            raise mistake("data: say where the queries are with 'queries', or the answers with 'answers'", "data")
        return self

    @model_validator(mode="after")
    def _corpus_is_searched(self) -> Config:
        if self.data.corpus and not (self.data.runs or self.data.answers or uses_corpus(self.agents.values())):
            raise mistake(
                "data: 'corpus' is only used by 'runs', 'answers' or agents that search; leave it out", "data"
            )
        if needs_corpus(self.agents.values()) and not self.data.corpus:
            raise mistake("data: agents search documents; say where they are with 'corpus'", "data")
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
    def file(self) -> Path | None:
        """The file of this configuration; ``None`` if it was not read from one."""
        return self._file

    def limited(self, limit: int) -> Config:
        """A copy of the configuration that uses only the first ``limit`` queries."""
        return self.model_copy(update={"data": self.data.model_copy(update={"limit": limit})})

    def at(self, key: str) -> str:
        """A key as shown in error messages: ``FILE:LINE: KEY``, or only the key if no file was read."""
        if self._file is None:
            return key
        line = line_in(self._file.read_text(encoding="utf-8"))(tuple(key.split("."))) if self._file.is_file() else None
        return f"{self._file}{'' if line is None else f':{line}'}: {key}"

    @property
    def query_files(self) -> list[Path]:
        """Files of queries in ``data``, else the file that ``synth`` writes; empty if queries are read from answers."""
        return self.data.queries or ([self.synth.out] if self.synth is not None else [])

    @property
    def lacks_queries(self) -> bool:
        """Whether the stage ``synth`` must generate the queries before judges can be asked."""
        if self.synth is None or has_rows(self.synth.out):
            return False
        target = self.synth.out.resolve()
        return any(path.resolve() == target for path in self.query_files)

    def queries(self) -> list[Path]:
        """Files of queries, see ``query_files``; raises ``InputError`` if ``synth`` must write them first."""
        if self.synth is not None and self.lacks_queries:
            raise InputError(
                f"{self.synth.out}: has no queries yet; write them with 'ragleague run CONFIG --stage synth'"
            )
        return self.query_files

    def judges_in_use(self) -> list[str]:
        """Names of the judges in the stages' sections, without repetitions, in the order of the stages."""
        return list(dict.fromkeys(name for stage in listed_stages() for name in self.judges_of(stage.key)))

    def judges_asked(self) -> list[str]:
        """Names of the judges in all sections (stages, ``synth`` and ``agents``), without repetitions."""
        return list(dict.fromkeys(name for names in self._asked().values() for name in names))

    def _asked(self) -> dict[str, list[str]]:
        names_by_section = {stage.key: self.judges_of(stage.key) for stage in listed_stages()}
        if self.synth is not None:
            names_by_section["synth"] = self.synth.judges()
        return names_by_section | {"agents": judges_of_agents(self.agents.values())}


def load_config(path: Path) -> Config:
    """Read and check the YAML file of a tournament.

    Raises:
        ConfigError: the file is invalid; the message is one line with the file, the key and the problem.
    """
    config = load_section(path, Config, ConfigError)
    config._file = path
    return config
