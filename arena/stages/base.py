"""What a stage is: it says what is to be judged, how a judge is asked, and what a result leads to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from arena.store import Result, Store, Wanted
from judges.prompts import PromptTemplate
from judges.types import Judgment, Prompt, Task


@dataclass(frozen=True, slots=True)
class Release:
    """Wants that a stage begins with, or that a result leads to.

    Attributes:
        wanted: those that are known to be needed now.
        ready: those, of all that are needed, that can be asked for now.
    """

    wanted: Sequence[Wanted] = ()
    ready: Sequence[Wanted] = ()


class Asking(Protocol):
    """Renders wants: all that the queue needs of a stage."""

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt; ``None`` while something that it shows is not judged yet."""
        ...

    def free(self, want: Wanted) -> str | None:
        """The id of a judgment in the store that answers the want without a call; ``None`` where one is needed."""
        ...


class Stage:
    """One way of judging. It knows no store and asks nobody: a run and a plan drive it through the same methods.

    Attributes:
        key: its section in the configuration and in stored settings.
        templates: the prompt of each task, in the order in which tasks are done.
        waits_for_labels: whether a query's wants are asked for only when its documents have their relevance labels.
        leading: the tasks whose results lead to further wants.
        written_once: the tasks that write texts, which a judge with several samples does once.
    """

    key: str
    templates: Mapping[Task, PromptTemplate]
    waits_for_labels: bool = False
    leading: Collection[Task] = ()
    written_once: Collection[Task] = ()

    @property
    def tasks(self) -> Sequence[Task]:
        """What judges are asked to do, in this order."""
        return list(self.templates)

    def first(self, query_id: str) -> Release:
        """What is wanted of a query from the start.

        Empty while that depends on relevance labels which are not there; a run then asks again once they are.
        """
        raise NotImplementedError

    def after(self, _want: Wanted, _result: Result) -> Release:
        """What a result, which may be a failure, leads to."""
        return Release()

    def prompt(self, want: Wanted) -> Prompt | None:
        """The prompt; ``None`` while something that it shows is not judged yet."""
        raise NotImplementedError

    def free(self, _want: Wanted) -> str | None:
        """The id of a judgment in the store that answers the want without a call; ``None`` where one is needed."""
        return None

    def free_judgments(self) -> Iterable[tuple[Task, str, Judgment]]:
        """The judgments that ``free`` names, each with its task and what stands in place of the prompt's name."""
        return ()

    def check(self) -> None:
        """Find what is wrong before anything is sent, besides what rendering the first want of each task finds.

        Raises:
            InputError: the stage cannot do what the configuration asks for.
        """

    def settings(self) -> dict[str, Any]:
        """What the store keeps of the section: all that decides results; no path and no secret text."""
        raise NotImplementedError

    def resume(self, store: Store, tournament: str) -> None:
        """Read what an earlier run has settled that is no result, such as what it asked together."""

    def most(self) -> Mapping[Task, int]:
        """For each task whose number of wants depends on results: how many there may be, each sample apart."""
        return {}

    def typical_tokens(self, want: Wanted) -> int:
        """Length of a usual reply, for a plan."""
        return self.templates[want.task].reply.typical_tokens

    def stand_in(self, _want: Wanted, _prompt: Prompt) -> Result | None:
        """For a plan: a result such as may come, so that what it leads to is counted; ``None`` if nothing follows."""
        return None

    def assumptions(self) -> Iterable[str]:
        """For a plan: what its figures assume of judgments that are still to come, a sentence each."""
        return ()


class Releasing(Protocol):
    """Knows what settled wants lead to; goes once every stage is a ``Stage``."""

    def releases(self, task: Task) -> bool:
        """Whether a settled want of the task may release others."""
        ...

    def released(self, want: Wanted, result: Result) -> Release:
        """What can be asked for now that a want is settled."""
        ...
