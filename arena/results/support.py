"""How well an agent's citations hold, from the store: what judges said of each, and the scores."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from arena.calibration.methods import Means
from arena.results.samples import outcomes
from arena.stages.support import SUPPORT, SupportStage, SupportSubject
from arena.store import Store
from judges.types import Judgment, conversations
from retrieval_eval.scores.citations import OtherMarks, other_marks
from retrieval_eval.scores.support import AnswerSupport, CitationsChecked, SupportScores, answer_support, support_scores
from retrieval_eval.stats.missing import Gaps


class SupportResults(Struct, frozen=True, eq=False):
    """Support of a tournament's agents.

    Attributes:
        which: of a sentence's citations are checked.
        answers: by query and agent.
        scores: of agents.
        unread: by agent, answers of which nobody knows what their sentences cite.
        marks: by agent, what looks like citations and is read as none.
    """

    which: CitationsChecked
    answers: Mapping[tuple[str, str], AnswerSupport]
    scores: SupportScores
    unread: Mapping[str, int]
    marks: Mapping[str, OtherMarks]

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


def results(store: Store, tournament: str) -> SupportResults:
    """The scores by what is judged so far."""
    data, settings = store.dataset(tournament), store.settings(tournament)
    which: CitationsChecked = settings.raw[SupportStage.key]["citations"]
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
    return SupportResults(which, answers, scores, unread, marks)
