"""Support stage: judges check whether each cited document supports the sentence that cites it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

from arena.calibration import ItemKey, ItemMeans
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.data.kinds import SUPPORT_WORDS, Annotation, Choice, JudgedKind, TaskForm
from arena.stages.base import RelevanceLabels, TournamentStage
from arena.store import Wanted
from judges import sections
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.types import AnnotatedDocument, Inputs, Prompt, Task
from retrieval_eval.scores.support import WEIGHTS, CitationsChecked, counted_citations

SUPPORT: Final = Task("support")
_LEVELS: Final = {*range(len(WEIGHTS))}


class SupportSection(sections.Section):
    """Checks whether documents [support the sentences that cite them](nuggets.md#support-do-the-citations-hold)."""

    judge: str
    """The judge that checks citations."""
    prompt: sections.PromptName = "support"
    """The judge's [prompt](prompts.md); its ``choice`` has the values 2, 1 and 0."""
    citations: CitationsChecked = "first"
    """Which citations of a sentence the judge checks: only the ``first``, as TREC did, or ``all``."""
    review: sections.ForPeople = ""
    """Instructions for people on the page [Review](web.md#people-vote-and-label): a line above each task."""


SECTION: Final = SupportSection


class SupportSubject(NamedTuple):
    """A citation to check: a sentence of an agent's answer, given by its index from 0, and a document that it cites."""

    query_id: str
    agent: str
    place: int
    doc_id: str

    @classmethod
    def of(cls, thing: Wanted | Annotation) -> Self:
        return cls(thing.query_id, thing.item, *json.loads(thing.other))

    @property
    def other(self) -> str:
        """The sentence's index and the document's id as JSON, for the column ``other`` of the store."""
        return json.dumps([self.place, self.doc_id])

    def want(self, judge: str) -> Wanted:
        return Wanted(SUPPORT, judge, self.query_id, self.agent, self.other)


class _Citations(JudgedKind, frozen=True):
    """Support labels of citations; an item consists of the agent, the sentence's index and the cited document."""

    def texts(self, annotation: Annotation, data: Dataset) -> list[str | None]:
        subject, query = SupportSubject.of(annotation), data.queries.get(annotation.query_id)
        sentences = data.sentences.get((subject.query_id, subject.agent)) or ()
        sentence = sentences[subject.place].text if 0 <= subject.place < len(sentences) else None
        document = data.documents.get(subject.doc_id)
        shown = sentence, None if document is None else document.text
        return [None if query is None else query.thread, *shown]

    def item(self, item: str, other: str) -> ItemKey:
        place, doc_id = json.loads(other)
        return item, str(place), doc_id

    def fields(self, item: ItemKey) -> tuple[str, str]:
        agent, place, doc_id = item
        known = place.isascii() and place.isdigit()
        return agent, json.dumps([int(place) if known else -1, doc_id])  # no sentence has -1

    def cells(self, item: ItemKey) -> Sequence[Any]:
        agent, place, doc_id = item
        return agent, int(place), doc_id


KIND: Final = _Citations(
    name="support",
    level="support",
    things="citations",
    section="support",
    task=SUPPORT,
    not_asked=("judge", "citations"),
    columns=("agent", "sentence", "did"),
    column="support",
    noun="support label",
    words=SUPPORT_WORDS,
    means=ItemMeans((-3,), (0.0, 2.0)),
    form=TaskForm(
        "check",
        "Does the document say what the statement claims?",
        "Only what the document says counts, in whatever words; what you know, length and style do not.",
        *("statement", "statements", "checked"),
        "No citation is checked yet.",
        lambda _: [Choice(2, "It says all", "1"), Choice(1, "It says a part", "2"), Choice(0, "It says none", "3")],
        names=("Statement", "Document"),
    ),
)


class SupportStage(TournamentStage):
    """Makes one judgment for each sentence and each document that it cites; skips citations of unknown documents."""

    key = "support"

    def __init__(self, section: SupportSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self.templates = {SUPPORT: load_prompt(section.prompt, SUPPORT)}
        self._sentences = data.sentences

    def first(self, query_id: str) -> Sequence[Wanted]:
        return [subject.want(self._section.judge) for subject in self._subjects(query_id)]

    def _subjects(self, query_id: str) -> Iterator[SupportSubject]:
        for agent in self.data.answerers:
            for place, sentence in enumerate(self._sentences.get((query_id, agent)) or ()):
                for doc_id in counted_citations(sentence, self._section.citations):
                    if doc_id is not None and doc_id in self.data.documents:
                        yield SupportSubject(query_id, agent, place, doc_id)

    def prompt(self, want: Wanted) -> Prompt:
        """The prompt for one citation; shows the sentence and the document, but neither the query nor the agent."""
        query_id, agent, place, doc_id = SupportSubject.of(want)
        sentences = self._sentences[query_id, agent]
        assert sentences is not None
        shown = AnnotatedDocument(self.data.documents[doc_id])
        query = self.data.queries[query_id]
        return self.templates[SUPPORT].render(Inputs(query, (shown,), items=(sentences[place].text,)))

    def shares(self, want: Wanted) -> bool:
        """Whether further statements on the query cite the same document."""
        return self._cited[want.query_id, SupportSubject.of(want).doc_id] > 1

    @cached_property
    def _cited(self) -> Counter[tuple[str, str]]:
        return Counter((each.query_id, each.doc_id) for query in self.data.queries for each in self._subjects(query))

    def check(self) -> None:
        ((_, words),) = self.templates[SUPPORT].reply.choices.items()
        if {*words.values()} != _LEVELS:
            raise ConfigError(
                f"support.prompt: the prompt's 'choice' must map words to 0, 1 and 2, not to {sorted(words.values())}"
            )
        if self.data.answers and not any(True for query_id in self.data.queries for _ in self._subjects(query_id)):
            raise ConfigError(
                "support: no answer cites a document whose text is in the data; cite by [1] for the first document "
                "that the answer's agent retrieved, or by [document id]"
            )
        super().check()
