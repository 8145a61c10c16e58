"""Reads citation support from the store: the judges' label of each citation, and the agents' scores from the labels."""

from __future__ import annotations

from collections.abc import Mapping

from arena.results.outcomes import StageResults, outcomes
from arena.stages.support import SUPPORT, SupportSection, SupportStage, SupportSubject
from arena.store import Store
from judges.types import Judgment, conversations, repeat_of
from retrieval_eval.scores.citations import OtherMarks, other_marks
from retrieval_eval.scores.support import AnswerSupport, CitationsChecked, answer_support, support_scores


class SupportResults(StageResults, frozen=True, eq=False, kw_only=True):
    """Citation support of a tournament's agents: precision and recall.

    Attributes:
        which: which citations of a sentence judges check, the first or all.
        answers: support of each answer's citations, by (query_id, agent).
        unread: by agent, the number of answers that do not say which sentence cites what.
        marks: by agent, marks in answers that look like citations but are not read as such.
    """

    which: CitationsChecked
    answers: Mapping[tuple[str, str], AnswerSupport]
    unread: Mapping[str, int]
    marks: Mapping[str, OtherMarks]


def _wanted(store: Store, tournament: str) -> dict[SupportSubject, int | None]:
    return {
        SupportSubject.of(want): result.outcome
        if isinstance(result, Judgment) and isinstance(result.outcome, int)
        else None
        for want, result in outcomes(store, tournament, SUPPORT)
    }


def results(store: Store, tournament: str) -> SupportResults:
    data, settings = store.dataset(tournament), store.settings(tournament)
    section: SupportSection = settings.further[SupportStage.key]
    which = section.citations
    wanted = _wanted(store, tournament)
    answers, unread = {}, dict.fromkeys(data.agents, 0)
    for (query_id, agent), sentences in data.sentences.items():
        if sentences is None:
            unread[repeat_of(agent)[0]] += 1
            continue

        def level(place: int, doc_id: str, query_id: str = query_id, agent: str = agent) -> int | None:
            return wanted.get(SupportSubject(query_id, agent, place, doc_id))

        def missing(place: int, doc_id: str, query_id: str = query_id, agent: str = agent) -> bool:
            return wanted.get(SupportSubject(query_id, agent, place, doc_id), 0) is None

        answers[query_id, agent] = answer_support(sentences, which, level, missing)
    scores = support_scores(answers, clusters=conversations(data.queries.values()))
    marks = other_marks(data.answers.values(), data.given, data.documents)
    return SupportResults(scores=scores, which=which, answers=answers, unread=unread, marks=marks)
