"""What of a tournament is judged, what is missing and why: a part of the overview and of the runs."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from arena.agents.board import CostBoard
from arena.coverage import Coverage
from arena.wording import STAGES
from judges.errors import CAUSES
from judges.types import Task
from ui.states import incomplete, nothing
from ui.tables import show_table


def say_what_is_missing(stages: Mapping[Task, Coverage], costs: CostBoard) -> None:
    """A warning for each kind of thing that is not there."""
    if not stages:
        nothing("Nothing is planned in this tournament. Give its YAML file a stage and run `ragarena run`.")
        return
    if gaps := [own for own in costs.gaps if own.missing]:
        owed = sum(own.queries - own.answered for own in gaps)
        incomplete(
            f"answers are missing, {owed:,} in all, of {len(gaps)} of the agents; the table below says whose. "
            "Games are played where both agents answered. `ragarena run` asks again."
        )
    if all(stage.judged == stage.wanted for stage in stages.values()):
        return
    failed = sum(stage.failed for stage in stages.values())
    left = sum(stage.left for stage in stages.values())
    wanted = sum(stage.wanted for stage in stages.values())
    incomplete(
        f"{failed + left:,} of {wanted:,} judgments are missing: {failed:,} failed, {left:,} not made "
        "yet. Figures below use what is there. `ragarena run` makes the missing ones; with `--retry-failed` it also "
        "asks again where a judge gave an unusable reply."
    )


def show_coverage(stages: Mapping[Task, Coverage], causes: Mapping[str, int]) -> None:
    """Draw how far each stage is, and how often judgments failed for which cause."""
    if not stages:
        return
    st.subheader("Coverage", anchor=False)
    found = stages.values()
    frame = pd.DataFrame(
        {
            "Stage": [STAGES[task] for task in stages],
            "Done": [100 * stage.share for stage in found],
            "Wanted": [stage.wanted for stage in found],
            "Judged": [stage.judged for stage in found],
            "Failed": [stage.failed for stage in found],
            "Left": [stage.left for stage in found],
            "Without a call": [stage.identical for stage in found],
        }
    )
    show_table(
        frame,
        "Coverage",
        {
            "Done": st.column_config.ProgressColumn(format="%.1f %%", min_value=0, max_value=100),
            "Left": st.column_config.NumberColumn(help="Not asked yet, or waiting for documents to be labelled."),
            "Without a call": st.column_config.NumberColumn(
                help="Among the judged: ties because both answers are the same text."
            ),
        },
    )
    if causes:
        failures = [{"Failures": count, "Cause": CAUSES.get(cause, cause)} for cause, count in causes.items()]
        show_table(pd.DataFrame(failures), "Causes of failures")
