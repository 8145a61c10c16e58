"""Pairwise stage: judges decide which of two answers to a query is better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from arena.config.judging import PairwiseSection
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import Release, TournamentStage
from arena.stages.labels import RelevanceLabels
from arena.stages.ratable import check_ratings
from arena.stages.schedule import Game, Schedule, answering, games
from arena.store import IDENTICAL, Result, Wanted
from arena.store.outcomes import combined, game_verdicts
from arena.store.subjects import GameSubject
from judges.prompts import load_prompt
from judges.prompts.tasks import PairwiseOptions, pairwise_prompt, references
from judges.types import Answer, Judgment, Prompt, Task, Verdict

_TIE_OF_EQUALS = Judgment(
    IDENTICAL, Verdict.TIE.value, "Both answers are the same text.", "", "none", calls=0, cost_usd=0.0
)


class PairwiseStage(TournamentStage):
    """Has judges decide the games of a schedule that is known from the start."""

    key = "pairwise"

    def __init__(self, section: PairwiseSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self.templates = {Task.PAIRWISE: load_prompt(section.prompt, Task.PAIRWISE)}
        self.waits_for_labels = labels.are_shown(section.documents)
        self._options = PairwiseOptions(section.documents.options(), section.citations, section.factors)

    def first(self, query_id: str) -> Release:
        return Release.all(self._wants(self._games.get(query_id, ())))

    @cached_property
    def _games(self) -> Mapping[str, list[Game]]:
        plan = self._section.schedule
        assert plan.kind != "adaptive"
        schedule = Schedule(plan.kind, plan.games_per_query, plan.baseline, self._section.both_orders, plan.seed)
        by_query: dict[str, list[Game]] = {}
        for game in games(schedule, answering(self.data)):
            by_query.setdefault(game.query_id, []).append(game)
        return by_query

    def _wants(self, chosen: Iterable[Game]) -> Iterator[Wanted]:
        for game in chosen:
            agents = (game.agent_b, game.agent_a) if game.swapped else (game.agent_a, game.agent_b)
            shown = GameSubject(game.query_id, *agents, game.swapped)
            for judge in self._section.judges:
                yield shown.want(judge)

    def shown(self, want: Wanted) -> tuple[Answer, Answer]:
        """The two answers of a game, in the order shown."""
        game = GameSubject.of(want)
        return self.data.answers[want.query_id, game.first], self.data.answers[want.query_id, game.second]

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt, with both answers and the documents that the two agents retrieved."""
        game = GameSubject.of(want)
        documents = self.labels.shown(want.query_id, {game.first, game.second}, self._section.documents)
        if documents is None:
            return None
        query, answers = self.data.queries[want.query_id], self.shown(want)
        if self._options.checks_citations:
            shown = [entry.document.doc_id for entry in references(documents, self._options.references)]
            answers = self.data.renumbered(answers[0], shown), self.data.renumbered(answers[1], shown)
        return pairwise_prompt(self.templates[Task.PAIRWISE], query, answers, documents, self._options)

    def free(self, want: Wanted) -> str | None:
        """Id of the stored tie if both texts are equal and, where citations are checked, cite the same documents."""
        first, second = self.shown(want)
        if first.text == second.text and self._options.checks_citations:
            doc_ids = [*dict.fromkeys(doc_id for answer in (first, second) for doc_id in self._given(answer))]
            first, second = self.data.renumbered(first, doc_ids), self.data.renumbered(second, doc_ids)
        return IDENTICAL if first.text == second.text else None

    def _given(self, answer: Answer) -> Sequence[str]:
        return self.data.given.get((answer.query_id, answer.agent), ())

    def free_judgments(self) -> Iterator[tuple[Task, str, Judgment]]:
        yield Task.PAIRWISE, "none", _TIE_OF_EQUALS

    def check(self) -> None:
        """Also check that labels can reach the threshold, and that ``ratings`` can rate the games."""
        self.labels.check_threshold("pairwise", self._section.documents)
        check_ratings(self.config, self.data, self._planned())
        self._try_prompt(self._planned())

    def _planned(self) -> Iterator[Wanted]:
        return self._wants(game for games in self._games.values() for game in games)


class AdaptiveStage(PairwiseStage):
    """Chooses games batch by batch, until the verdicts decide the question of the schedule.

    The choice depends only on the store: a new run chooses the same games from the same verdicts and continues. If a
    verdict of a batch is missing because a judge or the run stopped, no further batch follows.
    """

    def __init__(self, section: PairwiseSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        from arena.stages.adaptive import AdaptiveGames  # imported late, since few schedules are adaptive

        super().__init__(section, config, data, labels)
        self.leading = () if labels.assume else (Task.PAIRWISE,)
        self._schedule = AdaptiveGames(section, data)
        self._unlabelled = set(data.queries)
        self._first: dict[str, Release] = {}
        self._batch: list[Wanted] = []
        self._results: dict[Wanted, Result] = {}

    @cached_property
    def _games(self) -> Mapping[str, list[Game]]:
        by_query: dict[str, list[Game]] = {}
        for game in self._schedule.at_most():
            by_query.setdefault(game.query_id, []).append(game)
        return by_query

    def first(self, query_id: str) -> Release:
        """The query's part of the first batch, once all queries have labels; in plans, the maximum number of games."""
        if self.labels.assume:
            return super().first(query_id)
        if self.waits_for_labels and self.labels.is_open(query_id):
            return Release()
        if query_id in self._unlabelled:
            self._unlabelled.remove(query_id)
            if not self._unlabelled:
                self._first[query_id] = self._next()
        return self._first.get(query_id, Release())

    def after(self, want: Wanted, result: Result) -> Release:
        """The next batch of games, once all verdicts of the current batch have arrived."""
        self._results[want] = result
        if len(self._results) < len(self._batch):
            return Release()
        how = {name: self.config.judges[name].combine for name in self._section.judges}
        self._schedule.learn(game_verdicts(combined([(each, self._results[each]) for each in self._batch], how)))
        return self._next()

    def _next(self) -> Release:
        wants = list(self._wants(self._schedule.choose()))
        self._batch = [replace(want, sample=at) for want in wants for at in range(self._samples(want))]
        self._results = {}
        return Release(wants, wants)

    def _samples(self, want: Wanted) -> int:
        return self.config.judges[want.judge].samples

    def most(self) -> dict[Task, int]:
        return {Task.PAIRWISE: sum(map(self._samples, self._planned()))}

    def assumptions(self) -> Iterator[str]:
        yield "an adaptive schedule stops as soon as its question is decided: an upper bound"


def pairwise_stage(section: PairwiseSection, config: Config, data: Dataset, labels: RelevanceLabels) -> PairwiseStage:
    """Create the stage that fits the section's kind of schedule."""
    stage = AdaptiveStage if section.schedule.kind == "adaptive" else PairwiseStage
    return stage(section, config, data, labels)
