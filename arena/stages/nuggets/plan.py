"""What nuggets would ask at most: known turns as they are, the others with stand-ins as long as nuggets may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arena.prompting import Prompting
from arena.run.planner import Counted
from arena.run.queue import to_be_asked
from arena.stages.nuggets.stage import NuggetStages
from arena.store import Result, Wanted
from judges.types import Judgment, Prompt, Task
from retrieval_eval.nuggets.types import Importance

_TWELVE_WORDS = "a fact of the greatest length that the prompt allows a nugget"
"""Twelve words behind a number, so that no two are the same."""


def walk_nuggets(
    prompting: Prompting, stages: NuggetStages, count: Callable[[Sequence[Wanted]], Sequence[Counted]]
) -> None:
    """Go through every query's nuggets to the end.

    Args:
        prompting: knows the labels; a query without all of them counts every document as relevant.
        stages: what the nuggets want.
        count: takes wants that can be rendered, and returns each with its judgment's id, its prompt if it needs a call,
            and what the store knows of it.
    """
    free = {judgment.judgment_id: judgment for _, _, judgment in stages.free_judgments()}
    lowest = stages.lowest_label
    for query_id in prompting.data.queries:
        ranked = prompting.ranked(query_id)
        labels = prompting.labels_of(query_id)
        ready = stages.begin(query_id, ranked, dict.fromkeys(ranked, lowest) if labels is None else labels).ready
        while ready:
            results = [
                (want, free.get(ident or "") or _result(want, prompt, known, stages.most))
                for want, ident, prompt, known in count(ready)
            ]
            ready = [further for want, result in results for further in stages.released(want, result).ready]


def _result(want: Wanted, prompt: Prompt | None, known: Result | None, most: int) -> Result:
    """What is known, or a stand-in for a judgment that will be asked for."""
    if known is not None and not to_be_asked(known):
        return known
    said: tuple[str, ...] = tuple(f"{number} {_TWELVE_WORDS}" for number in range(most))
    if want.task is not Task.NUGGETS:
        assert prompt is not None
        said = (Importance.VITAL.value,) * (prompt.contract.length or 0)
    return Judgment("", said, "", "", "")
