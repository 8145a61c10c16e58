"""All stages of a tournament together, as a run and a plan drive them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations
from typing import Any

from msgspec.structs import replace

from arena.config.schema import Config
from arena.config.stages import STAGES
from arena.data.dataset import Dataset
from arena.data.warnings import ONE_AGENT, queries_by_agent
from arena.present.numbers import listed
from arena.stages.base import Release, TournamentStage
from arena.stages.labels import RelevanceLabels
from arena.stages.ratable import check_ratings
from arena.store import Result, Store, Wanted
from judges.errors import InputError
from judges.types import Judgment, Prompt, Task


class TournamentStages:
    """The stages that a configuration asks for, in the order in which they are done.

    Args:
        config: the tournament.
        data: what is judged.
        assume: for a plan, take documents without a label for relevant and games for undecided.

    Raises:
        InputError: a prompt, a bank or what else a stage needs cannot be used.
    """

    def __init__(self, config: Config, data: Dataset, *, assume: bool = False) -> None:
        self.config, self.data = config, data
        self.labels = RelevanceLabels(config, data, assume=assume)
        self.stages: list[TournamentStage] = [
            listed.load(listed.make)(section, config, data, self.labels)
            for listed in STAGES
            if (section := config.section(listed.key)) is not None
        ]
        self._by_task = {task: stage for stage in self.stages for task in stage.tasks}

    @property
    def tasks(self) -> list[Task]:
        """What judges are asked to do, in this order."""
        return list(self._by_task)

    def of(self, task: Task) -> TournamentStage:
        """The stage of a task."""
        return self._by_task[task]

    def wants(self) -> Iterator[Wanted]:
        """Everything that is known to be wanted, stage by stage and query by query."""
        return chain.from_iterable(
            self.first(stage, query_id).wanted for stage in self.stages for query_id in self.data.queries
        )

    def first(self, stage: TournamentStage, query_id: str) -> Release:
        """What a stage wants of a query from the start, as often as its judges are asked."""
        return self._repeated(stage.first(query_id))

    def leads_on(self, task: Task) -> bool:
        """Whether results of the task lead to further wants, or decide what others show."""
        return self._by_task[task].leads_on(task)

    def after(self, want: Wanted, result: Result) -> Release:
        """What a result leads to, as often as its judges are asked."""
        return self._repeated(self._by_task[want.task].after(want, result))

    def _repeated(self, release: Release) -> Release:
        wanted = self._samples(release.wanted)
        return Release(wanted, wanted if release.ready is release.wanted else self._samples(release.ready))

    def _samples(self, wants: Sequence[Wanted]) -> Sequence[Wanted]:
        """Each want as often as its judge is asked; a text that it writes, once."""
        judges = self.config.judges
        if all(judges[name].samples == 1 for name in {want.judge for want in wants}):
            return wants
        return [
            replace(want, sample=sample) if sample else want
            for want in wants
            for sample in range(1 if want.task in self.of(want.task).written_once else judges[want.judge].samples)
        ]

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt; ``None`` while something that it shows is not judged yet."""
        prompt = self._by_task[want.task].prompt(want)
        return replace(prompt, sample=want.sample) if prompt is not None and want.sample else prompt

    def free(self, want: Wanted) -> str | None:
        """The id of a judgment in the store that answers the want without a call."""
        return self._by_task[want.task].free(want)

    def free_judgments(self) -> Iterator[tuple[Task, str, Judgment]]:
        """The judgments that ``free`` names."""
        return chain.from_iterable(stage.free_judgments() for stage in self.stages)

    def stand_in(self, want: Wanted, prompt: Prompt) -> Result | None:
        """For a plan: a result such as may come."""
        return self._by_task[want.task].stand_in(want, prompt)

    def typical_tokens(self, want: Wanted) -> int:
        """Length of a usual reply."""
        return self._by_task[want.task].typical_tokens(want)

    def assumptions(self) -> Iterable[str]:
        """For a plan: what its figures assume of judgments that are still to come."""
        return chain.from_iterable(stage.assumptions() for stage in self.stages)

    def check(self, *, complete: bool = True) -> None:
        """Find what is wrong before anything is sent.

        Args:
            complete: whether all answers are there, so that there must be something to judge.

        Raises:
            PromptError: a prompt file cannot be used.
            ConfigError: a stage cannot do what the configuration asks for, or its games cannot be rated so.
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
        if complete and self.config.nuggets is None and not any(True for _ in self.wants()):
            raise InputError(f"nothing to judge: {self._why_nothing()}")

    def _require_games(self, *, complete: bool) -> None:
        """See that games can be played: else nothing would come of the run, or other stages alone would be paid."""
        answered = queries_by_agent(self.data)
        agents = {*answered, *self.config.agents}
        if len(agents) == 1 and (complete or len(self.stages) == 1):
            raise InputError(f"pairwise: {next(iter(agents))!r} is the only agent; {ONE_AGENT}")
        if not complete or self.config.agents:
            return
        if not answered:
            raise InputError("pairwise: no game can be played: there are no answers; name them under 'data'")
        if all(one.isdisjoint(other) for one, other in combinations(answered.values(), 2)):
            (one, its), (other, others) = ((agent, min(ids)) for agent, ids in list(answered.items())[:2])
            raise InputError(
                f"pairwise: no query is answered by two agents: {one} answered {self.data.called(its)}, {other} "
                f"answered {self.data.called(others)}; add answers to the same queries"
            )

    def _why_nothing(self) -> str:
        if not self.stages:
            return "the configuration has no stage; add one, such as 'pairwise: {judges: NAME}'"
        answered = queries_by_agent(self.data)
        if silent := [agent for agent in self.config.agents if agent not in answered]:
            return f"{listed(silent)} answered nothing"
        return "the data has no answers or documents for its stages; name them under 'data'"

    def resume(self, store: Store, tournament: str) -> None:
        """Read what an earlier run has settled that is no result."""
        if tournament in store.tournaments():
            for stage in self.stages:
                stage.resume(store, tournament)

    def settings(self) -> dict[str, Any]:
        """What the store keeps of the sections, and the digests of the prompts."""
        sections: dict[str, Any] = dict.fromkeys(("retrieval", "pairwise", "criteria", "nuggets"))
        prompts = {str(name): template.digest for stage in self.stages for name, template in stage.templates.items()}
        return sections | {stage.key: stage.settings() for stage in self.stages} | {"prompts": prompts}
