"""Pairwise stage: judges decide which of two answers to a query is better, in games that a schedule lists."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations

from msgspec.structs import replace

from arena.config.judging import PairwiseSection, ScheduleSection
from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.stages.base import RelevanceLabels, TournamentStage, answering
from arena.stages.ratable import check_ratings
from arena.store import IDENTICAL, Result, Wanted
from arena.store.outcomes import combined, game_verdicts
from judges.errors import ConfigError
from judges.prompts import load_prompt
from judges.prompts.tasks import PairwiseOptions, pairwise_prompt, references
from judges.sections import nearest
from judges.types import Answer, Judgment, Prompt, Task, Verdict, repeat_name, repeat_of

_TIE_OF_EQUALS = Judgment(
    IDENTICAL, Verdict.TIE.value, "Both answers are the same text.", "", "none", calls=0, cost_usd=0.0
)


class PairwiseStage(TournamentStage):
    """Makes judges decide games between answers, by a schedule that lists all games at the start."""

    key = "pairwise"

    def __init__(self, section: PairwiseSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        super().__init__(config, data, labels)
        self._section = section
        self.templates = {Task.PAIRWISE: load_prompt(section.prompt, Task.PAIRWISE)}
        self.waits_for_labels = labels.are_shown(section.documents)
        self._options = PairwiseOptions(section.documents.options(), section.citations, section.factors)

    def first(self, query_id: str) -> Sequence[Wanted]:
        return self._games.get(query_id, ())

    @cached_property
    def _games(self) -> Mapping[str, list[Wanted]]:
        """The games of the schedule, by query id."""
        by_query: dict[str, list[Wanted]] = {}
        for game in self._scheduled():
            by_query.setdefault(game.query_id, []).append(game)
        return by_query

    def _scheduled(self) -> Iterable[Wanted]:
        return games(self._section, answering(self.data))

    def shown(self, want: Wanted) -> tuple[Answer, Answer]:
        first, second = want.shown
        return self.data.answers[want.query_id, first], self.data.answers[want.query_id, second]

    def prompt(self, want: Wanted) -> Prompt | None:
        documents = self.labels.shown_in_game(want.query_id, want.shown, self._section.documents)
        if documents is None:
            return None
        query, answers = self.data.queries[want.query_id], self.shown(want)
        if self._options.checks_citations:
            shown = [entry.document.doc_id for entry in references(documents, self._options.references)]
            answers = self.data.renumbered(answers[0], shown), self.data.renumbered(answers[1], shown)
        return pairwise_prompt(self.templates[Task.PAIRWISE], query, answers, documents, self._options)

    def shares(self, want: Wanted) -> bool:  # noqa: ARG002
        return self._section.documents.pool == "query" or self._section.both_orders

    def free(self, want: Wanted) -> str | None:
        """Id of the stored tie if both answers have equal texts and, if citations count, cite the same documents."""
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
        """Also check that labels can reach the threshold for documents, and that the games can be rated."""
        self.labels.check_threshold("pairwise", self._section.documents)
        check_ratings(self.config, self.data, self._planned())
        self._try_prompt(self._planned())

    def _planned(self) -> Iterator[Wanted]:
        return chain.from_iterable(self._games.values())


class AdaptiveStage(PairwiseStage):
    """Chooses games batch by batch, until the verdicts decide the order of the agents, or which one is best.

    The choice depends only on the store: a new run chooses the same games from the same verdicts and continues. If a
    verdict of a batch is missing because a judge or the run stopped, no further batch follows.
    """

    def __init__(self, section: PairwiseSection, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        from arena.stages.adaptive import AdaptiveGames  # imported late, since few schedules are adaptive

        super().__init__(section, config, data, labels)
        self.leading = () if labels.assume else (Task.PAIRWISE,)
        self._schedule = AdaptiveGames(section, data)
        self._unlabelled = set(data.queries)
        self._first: dict[str, Sequence[Wanted]] = {}
        self._batch: list[Wanted] = []
        self._results: dict[Wanted, Result] = {}

    def _scheduled(self) -> Iterable[Wanted]:
        return self._schedule.at_most()

    def first(self, query_id: str) -> Sequence[Wanted]:
        """The query's games of the first batch, once all queries have labels; in plans, the maximum number of games."""
        if self.labels.assume:
            return super().first(query_id)
        if self.waits_for_labels and self.labels.is_open(query_id):
            return ()
        if query_id in self._unlabelled:
            self._unlabelled.remove(query_id)
            if not self._unlabelled:
                self._first[query_id] = self._next()
        return self._first.get(query_id, ())

    def after(self, want: Wanted, result: Result) -> Sequence[Wanted]:
        self._results[want] = result
        if len(self._results) < len(self._batch):
            return ()
        how = {name: self.config.judges[name].combine for name in self._section.judges}
        self._schedule.learn(game_verdicts(combined([(each, self._results[each]) for each in self._batch], how)))
        return self._next()

    def _next(self) -> Sequence[Wanted]:
        wants = self._schedule.choose()
        self._batch = [replace(want, sample=at) for want in wants for at in range(self._samples(want))]
        self._results = {}
        return wants

    def _samples(self, want: Wanted) -> int:
        return self.config.judges[want.judge].samples

    def most(self) -> dict[Task, int]:
        return {Task.PAIRWISE: sum(map(self._samples, self._planned()))}

    def assumptions(self) -> Iterator[str]:
        yield "an adaptive schedule stops as soon as its question is decided: an upper bound"


def pairwise_stage(section: PairwiseSection, config: Config, data: Dataset, labels: RelevanceLabels) -> PairwiseStage:
    stage = AdaptiveStage if section.schedule.kind == "adaptive" else PairwiseStage
    return stage(section, config, data, labels)


def games(section: PairwiseSection, agents: Mapping[str, Sequence[str]]) -> Iterator[Wanted]:
    """All games of a schedule that is known from the start, query by query; ``agents`` lists who answered each query.

    Raises:
        ConfigError: the baseline agent of the schedule answered no query.
    """
    schedule = section.schedule
    assert schedule.kind != "adaptive"
    if schedule.kind == "baseline" and not any(schedule.baseline in present for present in agents.values()):
        known = nearest(schedule.baseline or "", {agent for present in agents.values() for agent in present})
        raise ConfigError(
            f"pairwise.schedule.baseline: no agent named {schedule.baseline!r} answered a query{known}; "
            "name one that did"
        )
    rng, draws = random.Random(), not section.both_orders or schedule.games_per_query is not None  # noqa: S311
    for query_id, present in agents.items():
        if draws:  # seeding takes longer than listing a query's games
            rng.seed(f"{schedule.seed}\x00{query_id}")
        for first, second in _pairs_of_repeats(schedule, sorted(present), rng):
            for swapped in (False, True) if section.both_orders else (rng.random() < 0.5,):
                for judge in section.judges:
                    yield Wanted.game(judge, query_id, first, second, swapped=swapped)


def _pairs_of_repeats(schedule: ScheduleSection, names: Sequence[str], rng: random.Random) -> Iterator[tuple[str, str]]:
    """The pairs of a query's answers that meet: repeat 1 with repeat 1, 2 with 2."""
    if not any(name.endswith(")") for name in names):
        yield from _pairs(schedule, names, rng)
        return
    by_repeat: dict[int, list[str]] = {}
    for agent, repeat in map(repeat_of, names):
        by_repeat.setdefault(repeat, []).append(agent)
    for repeat, agents in sorted(by_repeat.items()):
        for pair in _pairs(schedule, agents, rng):
            yield repeat_name(pair[0], repeat), repeat_name(pair[1], repeat)


def _pairs(schedule: ScheduleSection, agents: Sequence[str], rng: random.Random) -> Sequence[tuple[str, str]]:
    if schedule.kind == "baseline":
        present = schedule.baseline in agents
        return [(schedule.baseline or "", agent) for agent in agents if present and agent != schedule.baseline]
    pairs = list(combinations(agents, 2))
    if schedule.games_per_query is None:
        return pairs
    return rng.sample(pairs, min(schedule.games_per_query, len(pairs)))
