"""Base classes of stages: what to judge, how to ask a judge, and which judgments follow from a result."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
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
    """Judgments that a stage needs at the start, or because of a result.

    Attributes:
        wanted: judgments now known to be needed.
        ready: judgments from this or an earlier release that can be made now.
    """

    wanted: Sequence[Wanted] = ()
    ready: Sequence[Wanted] = ()

    @classmethod
    def all(cls, wants: Iterable[Wanted]) -> Release:
        """A release of judgments that can all be made now."""
        wants = tuple(wants)
        return cls(wants, wants)


class Asking(Protocol):
    """The interface of a stage, or of all stages together, to the queue."""

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt for a wanted judgment; ``None`` as long as judgments that it shows are missing."""
        ...

    def free(self, want: Wanted) -> str | None:
        """Id of a stored judgment that needs no call; ``None`` if a call is needed."""
        ...


class Planned(Asking, Protocol):
    """The interface of a stage, or of all stages together, to the planner."""

    def leads_on(self, task: Task) -> bool:
        """Whether results of the task lead to further judgments, or appear in other prompts."""
        ...

    def after(self, want: Wanted, result: Result) -> Release:
        """The judgments needed because of this result."""
        ...

    def stand_in(self, want: Wanted, prompt: Prompt) -> Result | None:
        """A plausible result, for plans; ``None`` if no further judgment depends on it."""
        ...

    def free_judgments(self) -> Iterable[tuple[Task, str, Judgment]]:
        """The judgments that ``free`` refers to."""
        ...

    def typical_tokens(self, want: Wanted) -> int:
        """Length of a typical reply in tokens."""
        ...


class Stage:
    """One way of judging. A stage never uses the store or a judge; runs and plans call its methods.

    Attributes:
        templates: the stage's prompts, by task, or by a more specific name if a task has several prompts.
        waits_for_labels: whether a query's judgments are made only after its documents have relevance labels.
        leading: the tasks whose results are passed to ``after``.
        written_once: tasks that write texts; they are done once even if the judge takes several samples.
    """

    templates: Mapping[str, PromptTemplate]
    waits_for_labels: bool = False
    leading: Collection[Task] = ()
    written_once: Collection[Task] = ()

    @property
    def tasks(self) -> Sequence[Task]:
        """The stage's judging tasks, in order."""
        return [Task(name) for name in self.templates]

    def leads_on(self, task: Task) -> bool:
        return task in self.leading

    def first(self, query_id: str) -> Release:
        """The judgments of a query that are needed from the start.

        Empty if they depend on relevance labels that are missing; a run calls again once the labels are there.
        """
        raise NotImplementedError

    def after(self, want: Wanted, result: Result) -> Release:  # noqa: ARG002 - for stages that lead on
        """The judgments needed because of this result, which may be a failure."""
        return Release()

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt for a wanted judgment; ``None`` as long as judgments that it shows are missing."""
        raise NotImplementedError

    def free(self, want: Wanted) -> str | None:  # noqa: ARG002
        """Id of a stored judgment that needs no call; ``None`` if a call is needed."""
        return None

    def free_judgments(self) -> Iterable[tuple[Task, str, Judgment]]:
        """The judgments that ``free`` refers to, each with its task and a label instead of a prompt name."""
        return ()

    def prompt_names(self) -> dict[str, str]:
        """The label ``name@version`` of each prompt, by its key in ``templates``."""
        return {name: f"{template.name}@{template.version}" for name, template in self.templates.items()}

    def most(self) -> Mapping[Task, int]:
        """Maximum number of judgments, samples included, by task; only for tasks whose number depends on results."""
        return {}

    def typical_tokens(self, want: Wanted) -> int:
        """Length of a typical reply in tokens, for plans."""
        return self.templates[want.task].reply.typical_tokens

    def stand_in(self, want: Wanted, prompt: Prompt) -> Result | None:  # noqa: ARG002
        """A plausible result, so that plans can count the judgments it leads to; ``None`` if there are none."""
        return None


def file_digest(path: Path) -> str:
    """Digest of a file's content, stored in the settings instead of the file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


class TournamentStage(Stage):
    """Base class of stages that have a section in the configuration of a tournament.

    Args:
        config: the tournament.
        data: the queries, answers and documents to judge.
        labels: the relevance labels of the run.

    Attributes:
        key: name of the stage's section in the configuration and in stored settings.
    """

    key: str

    def __init__(self, config: Config, data: Dataset, labels: RelevanceLabels) -> None:
        self.config, self.data, self.labels = config, data, labels

    def check(self) -> None:
        """Render one prompt if the user wrote a template, so that errors in it appear before any call.

        Raises:
            InputError: the stage cannot do what the configuration asks for.
        """
        self._try_prompt(want for query_id in self.data.queries for want in self.first(query_id).ready)

    def _try_prompt(self, wants: Iterable[Wanted]) -> None:
        """Render the first prompt if the user wrote a template; packaged templates have tests."""
        if not all(template.is_packaged for template in self.templates.values()):
            for want in islice(wants, 1):
                self.prompt(want)

    def settings(self) -> dict[str, Any]:
        """The settings that determine results, as stored; without paths or secret texts."""
        section = self.config.section(self.key)
        assert section is not None
        settings = section.model_dump(mode="json")
        if len(self.templates) == 1 and "prompt" in settings:
            settings["prompt"] = next(iter(self.prompt_names().values()))
        return settings

    def resume(self, store: Store, tournament: str) -> None:
        """Read choices of an earlier run that results do not contain, such as which items one call graded together."""

    def assumptions(self) -> Iterable[str]:
        """Sentences that tell readers of a plan what its figures assume about future judgments."""
        return ()
