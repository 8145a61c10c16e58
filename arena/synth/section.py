"""The section ``synth``: how queries are made of documents (004, section 4). Knows no store and no judges.

It imports nothing of ``arena.config``, so that a tournament's configuration can have it as one of its sections.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from judges.sections import Count, JudgeNames, Paths, PromptName, RelativePath, Section, nearest
from retrieval_eval.documents.passages import PassagesSection
from retrieval_eval.documents.types import Limits

PER_PASSAGE = 10
SHOTS = 10


class SampleSection(Section):
    """What is drawn, by seed; the order of files and replies makes no difference."""

    passages: Count | None = None
    """Passages that models are asked about; all when absent."""
    seed: int = 0
    """Of passages, of examples and of queries."""


class FiltersSection(Section):
    """Which queries are dropped. Equal ones always are, and those that repeat an example."""

    near_duplicates: Annotated[float, Field(gt=0, le=1)] | None = 0.9
    """Least share of words that two queries have in common for the later one to go; ``null`` keeps both."""
    mentions_source: bool = True
    """Whether queries go that speak of "the passage" or "the text", which a user does not see."""
    answerable: str | None = None
    """The judge who is asked whether the passage answers the query; nobody is when absent."""
    prompt: PromptName = "answerable"


class SynthSection(Section):
    """From documents to queries."""

    documents: Annotated[Paths, Field(min_length=1)]
    """Folders and files: PDF, HTML, Markdown, DOCX, text."""
    passages: PassagesSection = PassagesSection(by="pages")
    """What a model is shown at a time."""
    limits: Limits = Limits()
    models: JudgeNames
    """Who writes queries: names declared under ``judges``."""
    per_passage: Count = PER_PASSAGE
    """Queries that a model may write about a passage at most."""
    examples: RelativePath | None = None
    """Queries of experts, as a file of queries; some are shown with every passage."""
    shots: Count = SHOTS
    """How many examples are shown, drawn anew for each passage."""
    prompt: PromptName = "synthetic_queries"
    sample: SampleSection = SampleSection()
    quotas: dict[str, Count] = Field(default_factory=dict)
    """How many queries of each model are kept; all when empty."""
    filters: FiltersSection = FiltersSection()
    out: RelativePath
    """Where the queries go."""
    review: RelativePath | None = None
    """Where all queries go for people to accept, edit and reject."""
    reviewed: RelativePath | None = None
    """That file with their decisions: only what they accepted or edited is drawn from, and nobody is asked."""

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
