"""What a stage is: it says what is to be judged, how a judge is asked, and what a result leads to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.store import Result, Store, Wanted
from judges.prompts import PromptTemplate
from judges.types import Judgment, Prompt, Task

if TYPE_CHECKING:
    from arena.stages.labels import RelevanceLabels


class Release(Struct, frozen=True):
    """Wants that a stage begins with, or that a result leads to.

    Attributes:
        wanted: those that are known to be needed now.
        ready: those, of all that are needed, that can be asked for now.
    """

    wanted: Sequence[Wanted] = ()
    ready: Sequence[Wanted] = ()

    @classmethod
    def all(cls, wants: Iterable[Wanted]) -> Release:
        """Wants that are needed and can be asked for."""
        wants = tuple(wants)
        return cls(wants, wants)


class Asking(Protocol):
    """All that the queue needs of a stage, or of all stages together."""

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt; ``None`` while something that it shows is not judged yet."""
        ...

    def free(self, want: Wanted) -> str | None:
        """The id of a judgment in the store that answers the want without a call; ``None`` where one is needed."""
        ...


class Planned(Asking, Protocol):
    """All that a planner needs besides."""

    def leads_on(self, task: Task) -> bool:
        """Whether results of the task lead to further wants, or decide what others show."""
        ...

    def after(self, want: Wanted, result: Result) -> Release:
        """What a result leads to."""
        ...

    def stand_in(self, want: Wanted, prompt: Prompt) -> Result | None:
        """A result such as may come; ``None`` if nothing follows."""
        ...

    def free_judgments(self) -> Iterable[tuple[Task, str, Judgment]]:
        """The judgments that ``free`` names."""
        ...

    def typical_tokens(self, want: Wanted) -> int:
        """Length of a usual reply."""
        ...


class Stage:
    """One way of judging. It knows no store and asks nobody: a run and a plan drive it through the same methods.

    Attributes:
        templates: its prompts by task; where a task has several, by a name that tells them apart.
        waits_for_labels: whether a query's wants are asked for only when its documents have their relevance labels.
        leading: the tasks whose results ``after`` is told of.
        written_once: the tasks that write texts, which a judge with several samples does once.
    """

    templates: Mapping[str, PromptTemplate]
    waits_for_labels: bool = False
    leading: Collection[Task] = ()
    written_once: Collection[Task] = ()

    @property
    def tasks(self) -> Sequence[Task]:
        """What judges are asked to do, in this order."""
        return [Task(name) for name in self.templates]

    def leads_on(self, task: Task) -> bool:
        """Whether the task is ``leading``."""
        return task in self.leading

    def first(self, query_id: str) -> Release:
        """What is wanted of a query from the start.

        Empty while that depends on relevance labels which are not there; a run then asks again once they are.
        """
        raise NotImplementedError

    def after(self, want: Wanted, result: Result) -> Release:  # noqa: ARG002 - for stages that lead on
        """What a result, which may be a failure, leads to."""
        return Release()

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt; ``None`` while something that it shows is not judged yet."""
        raise NotImplementedError

    def free(self, want: Wanted) -> str | None:  # noqa: ARG002
        """The id of a judgment in the store that answers the want without a call; ``None`` where one is needed."""
        return None

    def free_judgments(self) -> Iterable[tuple[Task, str, Judgment]]:
        """The judgments that ``free`` names, each with its task and what stands in place of the prompt's name."""
        return ()

    def prompt_names(self) -> dict[str, str]:
        """The templates as ``name@version``."""
        return {name: f"{template.name}@{template.version}" for name, template in self.templates.items()}

    def most(self) -> Mapping[Task, int]:
        """For each task whose number of wants depends on results: how many there may be, each sample apart."""
        return {}

    def typical_tokens(self, want: Wanted) -> int:
        """Length of a usual reply, for a plan."""
        return self.templates[want.task].reply.typical_tokens

    def stand_in(self, want: Wanted, prompt: Prompt) -> Result | None:  # noqa: ARG002
        """For a plan: a result such as may come, so that what it leads to is counted; ``None`` if nothing follows."""
        return None


class TournamentStage(Stage):
    """A stage of a tournament.

    Args:
        config: the tournament.
        data: what is judged.
        labels: relevance labels as they come.

    Attributes:
        key: its section in the configuration and in stored settings.
    """

    key: str

    def __init__(self, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        self.config, self.data, self.labels = config, data, labels

    def check(self) -> None:
        """Render one prompt of a user's file, so that a template that fails does so before anything is sent.

        Raises:
            InputError: the stage cannot do what the configuration asks for.
        """
        self._try_prompt(want for query_id in self.data.queries for want in self.first(query_id).ready)

    def _try_prompt(self, wants: Iterable[Wanted]) -> None:
        """Render the first want's prompt where one is a user's: those of the package are held by tests."""
        if not all(template.is_packaged for template in self.templates.values()):
            for want in islice(wants, 1):
                self.prompt(want)

    def settings(self) -> dict[str, Any]:
        """What the store keeps of the section: all that decides results; no path and no secret text."""
        section = self.config.section(self.key)
        assert section is not None
        settings = section.model_dump(mode="json")
        if len(self.templates) == 1:
            settings["prompt"] = next(iter(self.prompt_names().values()))
        return settings

    def resume(self, store: Store, tournament: str) -> None:
        """Read what an earlier run has settled that is no result, such as what it asked together."""

    def assumptions(self) -> Iterable[str]:
        """For a plan: what its figures assume of judgments that are still to come, a sentence each."""
        return ()
