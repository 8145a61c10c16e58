"""Support: does each document that an answer cites say what the sentence that cites it claims."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import Release, TournamentStage
from arena.stages.labels import RelevanceLabels
from arena.store import Wanted
from judges import sections
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.types import AnnotatedDocument, Inputs, Prompt, Task
from retrieval_eval.scores.support import WEIGHTS, CitationsChecked, counted_citations

SUPPORT: Final = Task("support")
_LEVELS: Final = {*range(len(WEIGHTS))}


class SupportSection(sections.Section):
    """The stage that holds citations against [what they cite](nuggets.md#support-do-the-citations-hold)."""

    judge: str
    """The judge."""
    prompt: sections.PromptName = "support"
    """Its [prompt](prompts.md); its choice has the values 2, 1 and 0."""
    citations: CitationsChecked = "first"
    """Which citations of a sentence are checked: the ``first``, as TREC did, or ``all``."""


SECTION: Final = SupportSection


class SupportSubject(NamedTuple):
    """A sentence of an agent's answer, by its place from 0, and a document that it cites."""

    query_id: str
    agent: str
    place: int
    doc_id: str

    @classmethod
    def of(cls, want: Wanted) -> Self:
        """That of a want."""
        return cls.named(want.query_id, want.item, want.other)

    @classmethod
    def named(cls, query_id: str, agent: str, other: str) -> Self:
        """That of a want's, or an annotation's, columns."""
        return cls(query_id, agent, *json.loads(other))

    @property
    def other(self) -> str:
        """The sentence and the document, as one column."""
        return json.dumps([self.place, self.doc_id])

    def want(self, judge: str) -> Wanted:
        """A want about it."""
        return Wanted(SUPPORT, judge, self.query_id, self.agent, self.other)


def cited_texts(subject: SupportSubject, data: Dataset) -> tuple[str | None, str | None]:
    """The sentence and the document as they are now, ``None`` where one is gone."""
    said, document = data.sentences.get((subject.query_id, subject.agent)) or (), data.documents.get(subject.doc_id)
    sentence = said[subject.place].text if subject.place < len(said) else None
    return sentence, None if document is None else document.text


class SupportStage(TournamentStage):
    """One call for each sentence and each document that it cites; a number that stands for no document takes none."""

    key = "support"

    def __init__(self, section: SupportSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self.templates = {SUPPORT: load_prompt(section.prompt, SUPPORT)}
        self._sentences = data.sentences

    def first(self, query_id: str) -> Release:
        """All sentences of all answers at once."""
        return Release.all(subject.want(self._section.judge) for subject in self._subjects(query_id))

    def _subjects(self, query_id: str) -> Iterator[SupportSubject]:
        for agent in self.data.agents:
            for place, sentence in enumerate(self._sentences.get((query_id, agent)) or ()):
                for doc_id in counted_citations(sentence, self._section.citations):
                    if doc_id is not None and doc_id in self.data.documents:
                        yield SupportSubject(query_id, agent, place, doc_id)

    def prompt(self, want: Wanted) -> Prompt:
        """The sentence and the document, and neither the query nor the agent."""
        query_id, agent, place, doc_id = SupportSubject.of(want)
        sentences = self._sentences[query_id, agent]
        assert sentences is not None
        shown = AnnotatedDocument(self.data.documents[doc_id])
        query = self.data.queries[query_id]
        return self.templates[SUPPORT].render(Inputs(query, (shown,), items=(sentences[place].text,)))

    def check(self) -> None:
        """Besides the prompt: is there anything to check."""
        ((_, words),) = self.templates[SUPPORT].reply.choices.items()
        if {*words.values()} != _LEVELS:
            raise ConfigError(
                f"support.prompt: the values of its choice must be 0, 1 and 2, not {sorted(words.values())}"
            )
        if self.data.answers and not any(True for query_id in self.data.queries for _ in self._subjects(query_id)):
            raise ConfigError(
                "support: no answer cites a document whose text is there; answers cite by [1] for the first document "
                "that their agent retrieved, or by [document id]"
            )
        super().check()
