"""The section ``synth``: how queries are made from documents (004, section 4).

The module imports nothing from ``arena.config``, so that the configuration of a tournament can include it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from judges.sections import Count, JudgeNames, Paths, PromptName, RelativePath, Section, Seed, nearest
from retrieval_eval.documents.passages import PassagesSection
from retrieval_eval.documents.types import Limits

PER_PASSAGE = 10
SHOTS = 10


class SampleSection(Section):
    """What is drawn at random by seed; the order of files and replies makes no difference."""

    passages: Count | None = None
    """Passages to ask about; all when left out."""
    seed: Seed = 0
    """Seed for passages, examples and queries."""


class FiltersSection(Section):
    """Which queries are dropped. Duplicates and queries that repeat an example are always dropped."""

    near_duplicates: Annotated[float, Field(gt=0, le=1)] | None = 0.9
    """Drop the later of two queries that share at least this fraction of their words; ``null`` keeps both."""
    mentions_source: bool = True
    """Drop queries that mention "the passage"."""
    answerable: str | None = None
    """The judge that checks whether the passage answers the query."""
    prompt: PromptName = "answerable"
    """The prompt for that judge."""


class SynthSection(Section):
    """How queries are made from documents."""

    documents: Annotated[Paths, Field(min_length=1)]
    """Folders and files: PDF, HTML, Markdown, DOCX, text."""
    passages: PassagesSection = PassagesSection(by="pages")
    """How to cut documents into the passages that a model reads, by default by ``pages``."""
    limits: Limits = Limits()
    """Limits for reading one file."""
    models: JudgeNames
    """Judges that write queries."""
    per_passage: Count = PER_PASSAGE
    """Maximum number of queries that a model writes for a passage."""
    examples: RelativePath | None = None
    """Experts' queries to show as examples: a file with one a line, or a table with a column ``query``."""
    shots: Count = SHOTS
    """Number of examples to show, drawn separately for each passage."""
    prompt: PromptName = "synthetic_queries"
    """A packaged prompt, or the path of your own."""
    sample: SampleSection = SampleSection()
    """What is drawn at random by seed."""
    quotas: dict[str, Count] = Field(default_factory=dict)
    """Number of queries to keep from each model; all when left out."""
    filters: FiltersSection = FiltersSection()
    """Which queries are dropped."""
    out: RelativePath
    """The file of queries to write."""
    review: RelativePath | None = None
    """A file to write for people to accept, edit and reject queries."""
    reviewed: RelativePath | None = None
    """That file with decisions: only accepted and edited queries are used."""

    @model_validator(mode="after")
    def _quotas_are_of_models(self) -> SynthSection:
        for name in self.quotas:
            if name not in self.models:
                raise ValueError(f"'quotas' names {name!r}, which is none of 'models'{nearest(name, self.models)}")
        for name in self.models:
            if self.quotas and name not in self.quotas:
                raise ValueError(f"'quotas' has none for {name!r}, so its queries would be paid for and not used")
        return self

    def judges(self) -> list[str]:
        """Names of the models and of the judge for ``answerable``, without repetitions."""
        names = [*self.models, *([self.filters.answerable] if self.filters.answerable else [])]
        return list(dict.fromkeys(names))
