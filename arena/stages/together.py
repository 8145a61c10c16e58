"""Combines all stages of a tournament in one object, which runs and plans use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations
from typing import Any

from msgspec.structs import replace

from arena.config.schema import Config
from arena.config.stages import listed_stages, unasked
from arena.data.dataset import ONE_AGENT, Dataset, queries_by_agent
from arena.present.numbers import listed
from arena.stages.base import RelevanceLabels, Stage, TournamentStage
from arena.stages.ratable import check_ratings
from arena.store import Result, Store, Wanted
from judges.errors import InputError
from judges.prompts import shared_length
from judges.types import Judgment, Prompt, Task


class TournamentStages(Stage):
    """The stages that a configuration asks for, in the order in which they run.

    Args:
        assume: for plans: whether to count unlabelled documents as relevant and games as undecided.

    Raises:
        InputError: a prompt, a bank or another input of a stage cannot be used.
    """

    def __init__(self, config: Config, data: Dataset, *, assume: bool = False) -> None:
        self.config, self.data = config, data
        self.labels = RelevanceLabels(config, data, assume=assume)
        self.stages: list[TournamentStage] = [
            listed.load(listed.make)(section, config, data, self.labels)
            for listed in listed_stages()
            if (section := config.section(listed.key)) is not None
        ]
        for stage in self.stages:
            stage.join(self.stages)
        self._by_task = {task: stage for stage in self.stages for task in stage.tasks}

    @property
    def tasks(self) -> list[Task]:
        return list(self._by_task)

    def of(self, task: Task) -> TournamentStage:
        return self._by_task[task]

    def wants(self) -> Iterator[Wanted]:
        """All judgments planned from the start, stage by stage and query by query."""
        return chain.from_iterable(
            self.begin(stage, query_id) for stage in self.stages for query_id in self.data.queries
        )

    def begin(self, stage: TournamentStage, query_id: str) -> Sequence[Wanted]:
        return self._samples(self._with_more(stage.first(query_id)))

    def leads_on(self, task: Task) -> bool:
        return self._by_task[task].leads_on(task)

    def after(self, want: Wanted, result: Result) -> Sequence[Wanted]:
        return self._samples(self._with_more(self._by_task[want.task].after(want, result), want))

    def _with_more(self, wants: Sequence[Wanted], cause: Wanted | None = None) -> Sequence[Wanted]:
        more = [want for stage in self.stages for want in stage.also(wants, cause)]
        return [*wants, *more] if more else wants

    def _samples(self, wants: Sequence[Wanted]) -> Sequence[Wanted]:
        """Repeat each planned judgment for every sample of its judge, unless its task is ``written_once``."""
        judges = self.config.judges
        if all(judges[name].samples == 1 for name in {want.judge for want in wants}):
            return wants
        return [
            replace(want, sample=sample) if sample else want
            for want in wants
            for sample in range(1 if want.task in self.of(want.task).written_once else judges[want.judge].samples)
        ]

    def prompt(self, want: Wanted) -> Prompt | None:
        stage = self._by_task[want.task]
        prompt = stage.prompt(want)
        if prompt is None:
            return None
        return replace(prompt, sample=want.sample, shared=shared_length(prompt) if stage.shares(want) else 0)

    def free(self, want: Wanted) -> str | None:
        return self._by_task[want.task].free(want)

    def free_judgments(self) -> Iterator[tuple[Task, str, Judgment]]:
        return chain.from_iterable(stage.free_judgments() for stage in self.stages)

    def stand_in(self, want: Wanted, prompt: Prompt) -> Result | None:
        return self._by_task[want.task].stand_in(want, prompt)

    def typical_tokens(self, want: Wanted) -> int:
        return self._by_task[want.task].typical_tokens(want)

    def assumptions(self) -> Iterable[str]:
        return chain.from_iterable(stage.assumptions() for stage in self.stages)

    def check(self, *, complete: bool = True) -> None:
        """Find errors in prompts, settings and data before any request is sent.

        Args:
            complete: whether all answers exist; there must then be something to judge.

        Raises:
            PromptError: a prompt file cannot be used.
            ConfigError: a stage cannot do what the configuration asks for, or its games cannot be rated.
            InputError: there is nothing to judge.
        """
        assume, self.labels.assume = self.labels.assume, True
        if self.config.pairwise is None:
            check_ratings(self.config, self.data, ())
        for stage in self.stages:
            stage.check()
            if self.data.has_messages:
                for template in stage.templates.values():
                    template.require_messages()
        self.labels.assume = assume
        if self.config.pairwise is not None:
            self._require_games(complete=complete)
        without = self.config.nuggets is not None or bool(unasked(self.config.further))
        if complete and not without and not any(True for _ in self.wants()):
            raise InputError(f"nothing to judge: {self._why_nothing()}")

    def _require_games(self, *, complete: bool) -> None:
        """Raise an error if no game can be played on this data, since a run would only pay for the other stages."""
        answered = queries_by_agent(self.data)
        agents = {*answered, *self.config.agents}
        if len(agents) == 1 and (complete or len(self.stages) == 1):
            raise InputError(f"pairwise: {next(iter(agents))!r} is the only agent; {ONE_AGENT}")
        if not complete or self.config.agents:
            return
        if not answered:
            raise InputError("pairwise: no game can be played: there are no answers; name them under 'data'")
        if all(first.isdisjoint(second) for first, second in combinations(answered.values(), 2)):
            (first_agent, first_query), (second_agent, second_query) = (
                (agent, min(ids)) for agent, ids in list(answered.items())[:2]
            )
            raise InputError(
                f"pairwise: no query is answered by two agents: {first_agent} answered "
                f"{self.data.called(first_query)}, {second_agent} answered "
                f"{self.data.called(second_query)}; add answers to the same queries"
            )

    def _why_nothing(self) -> str:
        if not self.stages:
            return "the configuration has no stage; add one, such as 'pairwise: {judges: NAME}'"
        answered = queries_by_agent(self.data)
        if silent := [agent for agent in self.config.agents if agent not in answered]:
            return f"{listed(silent)} answered nothing"
        return "the data has no answers or documents for its stages; name them under 'data'"

    def resume(self, store: Store, tournament: str) -> None:
        if tournament in store.tournaments():
            for stage in self.stages:
                stage.resume(store, tournament)

    def settings(self) -> dict[str, Any]:
        sections: dict[str, Any] = dict.fromkeys(("retrieval", "pairwise", "criteria", "nuggets"))
        prompts = {str(name): template.digest for stage in self.stages for name, template in stage.templates.items()}
        settings = sections | {stage.key: stage.settings() for stage in self.stages} | {"prompts": prompts}
        origins = {
            stage.key: stage.origin for stage in listed_stages() if stage.origin and self.config.section(stage.key)
        }
        return settings | ({"stages": origins} if origins else {})
