"""``plan``: count the calls, tokens and cost of a run."""

from __future__ import annotations

from pathlib import Path

from arena.boards.runs import PlanBoard
from arena.cli.inputs import ColumnsNamed, JudgeNamed, Limit, Save, Sources, are_answers, read_inputs
from arena.cli.options import Form
from arena.cli.show import show
from arena.run.plan import plan as make_plan
from arena.run.plan import plan_queries
from arena.run.preflight import preflight
from arena.stages.queries_config import SynthConfig, load_either


def plan(
    sources: Sources,
    judge: JudgeNamed = None,
    limit: Limit = None,
    column: ColumnsNamed = None,
    save: Save = None,
    form: Form = "table",
) -> None:
    """Count the calls, tokens and cost of a run. Calls nothing.

    For a file that only makes queries, it counts the calls that make them.
    """
    if judge is None and limit is None and not are_answers(sources, judge):
        loaded = load_either(Path(sources[0]))
        if isinstance(loaded, SynthConfig):
            show(PlanBoard(plan_queries(loaded)), form)
            return
    inputs = read_inputs(sources, judge, limit, column, save)
    config = inputs.config
    checked = preflight(config, inputs.data)
    if not checked.only_judges:
        checked.require()
    show(PlanBoard(make_plan(config, checked.opened)), form)
    checked.require()  # a missing key is reported below the cost of the run
