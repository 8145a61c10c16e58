"""Support: does each document that an answer cites say what the sentence that cites it claims."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple, Self

from arena.calibration.methods import Means
from arena.config.whole import Config
from arena.data.dataset import Dataset
from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT, FIGURE, PERCENT, counted
from arena.present.table import Column, Table
from arena.results.samples import outcomes
from arena.stages.base import Release, TournamentStage
from arena.stages.labels import Labels
from arena.store import Store, Wanted
from judges import sections
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.types import AnnotatedDocument, Inputs, Judgment, Prompt, Task, conversations
from retrieval_eval.citations import OtherMarks, other_marks
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.missing import Gaps
from retrieval_eval.support import (
    WEIGHTS,
    AnswerSupport,
    Citations,
    SupportScores,
    answer_support,
    counted_citations,
    support_scores,
)

SUPPORT: Final = Task("support")
_LEVELS: Final = {*range(len(WEIGHTS))}


class SupportSection(sections.Section):
    """The stage that holds citations against [what they cite](nuggets.md#support-do-the-citations-hold)."""

    judge: str
    """The judge."""
    prompt: sections.PromptName = "support"
    """Its [prompt](prompts.md); its choice has the values 2, 1 and 0."""
    citations: Citations = "first"
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


def checked(store: Store, tournament: str) -> dict[SupportSubject, tuple[str, int]]:
    """What judges said: the judge, and 0, 1 or 2; failures are left out."""
    return {subject: said for subject, said in _wanted(store, tournament).items() if said is not None}


def _wanted(store: Store, tournament: str) -> dict[SupportSubject, tuple[str, int] | None]:
    """The same of all that judges were to say, ``None`` where it is missing."""
    return {
        SupportSubject.of(want): (want.judge, result.outcome)
        if isinstance(result, Judgment) and isinstance(result.outcome, int)
        else None
        for want, result in outcomes(store, tournament, SUPPORT)
    }


class SupportStage(TournamentStage):
    """One call for each sentence and each document that it cites; a number that stands for no document takes none."""

    key = "support"

    def __init__(self, section: SupportSection, config: Config, data: Dataset, labels: Labels) -> None:
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


_COLUMNS: Final = (
    Column("agent", "Agent"),
    Column(
        "precision", "Precision", FIGURE, "Mean support of what it cites: full 1, partial 0.5, none 0.", "95% interval"
    ),
    Column(
        "recall", "Recall", FIGURE, "Mean support of its sentences; one that cites nothing counts 0.", "95% interval"
    ),
    Column("answers", "Answers", COUNT, "Those with a precision."),
    Column("cited_share", "Cite", PERCENT, "Share of its sentences that cite anything."),
    Column("full", "Full", COUNT, "Pairs of a sentence and a document that it cites."),
    Column("partial", "Partial", COUNT),
    Column("none", "None", COUNT),
    Column("invented", "Invented", COUNT, "Among these: numbers that stand for no document."),
    Column("missing", "Missing", COUNT, "Pairs whose judgment failed or was never made; in no score."),
    Column("unjudged", "Not judged", COUNT, "The same, and those whose document has no text."),
    Column("unread", "Not read", COUNT, "Answers of which nobody knows what their sentences cite; in no score."),
)


def _last_if_unknown(own: Estimate | None) -> tuple[bool, float]:
    return (True, 0.0) if own is None or own.value is None else (False, -own.value)


class SupportBoard(Board, frozen=True, eq=False):
    """Support of a tournament's agents.

    Attributes:
        which: of a sentence's citations are checked.
        answers: by query and agent.
        scores: of agents.
        unread: by agent, answers of which nobody knows what their sentences cite.
        marks: by agent, what looks like citations and is read as none.
    """

    which: Citations
    answers: Mapping[tuple[str, str], AnswerSupport]
    scores: SupportScores
    unread: Mapping[str, int]
    marks: Mapping[str, OtherMarks]

    def sections(self) -> list[Section]:  # noqa: D102
        lead = "Do the documents that the answers cite say what the answers claim?"
        said = "the first citation of each sentence" if self.which == "first" else "every citation"
        note = f"Of {said}. Means over the answers where a score is defined; intervals over queries."
        others = [
            f"{agent}: marks such as {own.example} are read as no citations, in {counted(own.answers, 'answer')}."
            for agent, own in self.marks.items()
        ]
        table = Table("support", "Support by agent", _COLUMNS, self._rows(), [note, *others])
        return [Section("support", "Support", lead, [table])]

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for agent in dict.fromkeys([*self.scores.agents, *self.unread]):
            own = [answer for (_, name), answer in self.answers.items() if name == agent]
            precision, recall = self.scores.of_agents.get(agent, (None, None))
            sentences = sum(answer.sentences for answer in own)
            none, partial, full = (sum(answer.pairs[level] for answer in own) for level in sorted(_LEVELS))
            rows.append(
                {
                    "agent": agent,
                    "precision": precision,
                    "recall": recall,
                    "answers": sum(answer.precision is not None for answer in own),
                    "cited_share": sum(answer.cited for answer in own) / sentences if sentences else None,
                    "full": full,
                    "partial": partial,
                    "none": none,
                    "invented": sum(answer.invented for answer in own),
                    "unjudged": sum(answer.unjudged for answer in own),
                    "missing": sum(answer.missing for answer in own),
                    "unread": self.unread.get(agent, 0),
                }
            )
        return sorted(rows, key=lambda row: _last_if_unknown(row["precision"]))

    def json(self) -> dict[str, Any]:  # noqa: D102
        return {
            "citations": self.which,
            "agents": {row["agent"]: row for row in self._rows()},
            "other_marks": dict(self.marks),
        }

    def scored(self) -> Collection[str]:
        """Agents with a score."""
        return self.scores.agents

    def columns(self, agent: str) -> dict[str, Any]:
        """An agent's scores beside its rating."""
        precision, recall = self.scores.of_agents.get(agent, (None, None))
        missing, _ = self.scores.gaps.of(agent)
        return {"support_precision": precision, "support_recall": recall, "support_missing": missing}

    @property
    def gaps(self) -> Gaps:
        """Pairs that a judge was to judge, and those that are missing."""
        return self.scores.gaps

    def means(self) -> list[Means]:
        """As ways of scoring."""
        scores = self.scores
        each = {"support_precision": scores.precision, "support_recall": scores.recall}
        return [
            Means(name, scores.agents, scores.queries, values, scores.gaps, ends)
            for (name, values), ends in zip(each.items(), scores.ends, strict=True)
        ]


def board(store: Store, tournament: str) -> SupportBoard:
    """What the stage has come to."""
    data, settings = store.dataset(tournament), store.settings(tournament)
    which: Citations = settings.raw[SupportStage.key]["citations"]
    wanted = _wanted(store, tournament)
    answers, unread = {}, dict.fromkeys(data.agents, 0)
    for (query_id, agent), sentences in data.sentences.items():
        if sentences is None:
            unread[agent] += 1
            continue

        def level(place: int, doc_id: str, query_id: str = query_id, agent: str = agent) -> int | None:
            said = wanted.get(SupportSubject(query_id, agent, place, doc_id))
            return None if said is None else said[1]

        def missing(place: int, doc_id: str, query_id: str = query_id, agent: str = agent) -> bool:
            return wanted.get(SupportSubject(query_id, agent, place, doc_id), ("", 0)) is None

        answers[query_id, agent] = answer_support(sentences, which, level, missing)
    scores = support_scores(answers, clusters=conversations(data.queries.values()))
    marks = other_marks(data.answers.values(), data.given, data.documents)
    return SupportBoard(which, answers, scores, unread, marks)
