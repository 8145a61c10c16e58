"""The section ``synth``: how queries are made of documents (004, section 4). Knows no store and no judges.

It imports nothing of ``arena.config``, so that a tournament's configuration can have it as one of its sections.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from judges.mistakes import nearest
from judges.sections import Count, JudgeNames, Paths, PromptName, RelativePath, Section, Seed
from retrieval_eval.documents.passages import PassagesSection
from retrieval_eval.documents.types import Limits

PER_PASSAGE = 10
SHOTS = 10


class SampleSection(Section):
    """What is drawn, by seed; the order of files and replies makes no difference."""

    passages: Count | None = None
    """Passages to ask about; all when left out."""
    seed: Seed = 0
    """For passages, examples and queries."""


class FiltersSection(Section):
    """Which queries are dropped. Equal ones always are, and those that repeat an example."""

    near_duplicates: Annotated[float, Field(gt=0, le=1)] | None = 0.9
    """Of two queries that share this share of their words, the later one is dropped; ``null`` keeps both."""
    mentions_source: bool = True
    """Drop queries that speak of "the passage", which a user does not see."""
    answerable: str | None = None
    """The judge that says whether the passage answers the query; nobody is asked when left out."""
    prompt: PromptName = "answerable"
    """How that judge is asked."""


class SynthSection(Section):
    """From documents to queries."""

    documents: Annotated[Paths, Field(min_length=1)]
    """Folders and files: PDF, HTML, Markdown, DOCX, text."""
    passages: PassagesSection = PassagesSection(by="pages")
    """What a model sees at a time; by ``pages`` when left out."""
    limits: Limits = Limits()
    """How much one file may take."""
    models: JudgeNames
    """Judges that write queries."""
    per_passage: Count = PER_PASSAGE
    """Most queries that a model may write about a passage."""
    examples: RelativePath | None = None
    """A file of experts' queries, some of which are shown with every passage."""
    shots: Count = SHOTS
    """How many of them, drawn anew for each passage."""
    prompt: PromptName = "synthetic_queries"
    """How models are asked."""
    sample: SampleSection = SampleSection()
    """What is drawn by seed."""
    quotas: dict[str, Count] = Field(default_factory=dict)
    """Queries to keep of each model; all when left out."""
    filters: FiltersSection = FiltersSection()
    """Which queries are dropped."""
    out: RelativePath
    """The file of queries to write, which the tournament then reads."""
    review: RelativePath | None = None
    """A file with all queries, for people to accept, edit and reject."""
    reviewed: RelativePath | None = None
    """That file with decisions: only accepted and edited queries are used, and nobody is asked."""

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
        """Who is asked, each once."""
        asked = [*self.models, *([self.filters.answerable] if self.filters.answerable else [])]
        return list(dict.fromkeys(asked))
