"""Support of citations, from the store: the judges' labels of each citation, and the agents' scores."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from arena.calibration.methods import Means
from arena.results.samples import outcomes
from arena.stages.support import SUPPORT, SupportSection, SupportStage, SupportSubject
from arena.store import Store
from judges.types import Judgment, conversations
from retrieval_eval.scores.citations import OtherMarks, other_marks
from retrieval_eval.scores.support import AnswerSupport, CitationsChecked, SupportScores, answer_support, support_scores
from retrieval_eval.stats.missing import Gaps


class SupportResults(Struct, frozen=True, eq=False):
    """Citation support of a tournament's agents.

    Attributes:
        which: which of a sentence's citations are checked.
        answers: support of each answer, by query and agent.
        scores: scores of the agents.
        unread: by agent, the number of answers whose citations per sentence are not known.
        marks: by agent, marks that look like citations but are not read as such.
    """

    which: CitationsChecked
    answers: Mapping[tuple[str, str], AnswerSupport]
    scores: SupportScores
    unread: Mapping[str, int]
    marks: Mapping[str, OtherMarks]

    @property
    def gaps(self) -> Gaps:
        """Numbers of wanted and of missing labels of sentence-document pairs."""
        return self.scores.gaps

    def means(self) -> list[Means]:
        """The two support scores as ways of scoring agents."""
        scores = self.scores
        values_by_name = {"support_precision": scores.precision, "support_recall": scores.recall}
        return [
            Means(name, scores.agents, scores.queries, values, scores.gaps, ends)
            for (name, values), ends in zip(values_by_name.items(), scores.ends, strict=True)
        ]


def _wanted(store: Store, tournament: str) -> dict[SupportSubject, int | None]:
    """The label of each citation to be judged; ``None`` if the label is missing."""
    return {
        SupportSubject.of(want): result.outcome
        if isinstance(result, Judgment) and isinstance(result.outcome, int)
        else None
        for want, result in outcomes(store, tournament, SUPPORT)
    }


def results(store: Store, tournament: str) -> SupportResults:
    """Support scores of what has been judged so far."""
    data, settings = store.dataset(tournament), store.settings(tournament)
    section: SupportSection = settings.further[SupportStage.key]
    which = section.citations
    wanted = _wanted(store, tournament)
    answers, unread = {}, dict.fromkeys(data.agents, 0)
    for (query_id, agent), sentences in data.sentences.items():
        if sentences is None:
            unread[agent] += 1
            continue

        def level(place: int, doc_id: str, query_id: str = query_id, agent: str = agent) -> int | None:
            return wanted.get(SupportSubject(query_id, agent, place, doc_id))

        def missing(place: int, doc_id: str, query_id: str = query_id, agent: str = agent) -> bool:
            return wanted.get(SupportSubject(query_id, agent, place, doc_id), 0) is None

        answers[query_id, agent] = answer_support(sentences, which, level, missing)
    scores = support_scores(answers, clusters=conversations(data.queries.values()))
    marks = other_marks(data.answers.values(), data.given, data.documents)
    return SupportResults(which, answers, scores, unread, marks)
