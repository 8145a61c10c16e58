"""What runs have asked for and what that took: in a sentence, and stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from arena.agents.front import money
from arena.store.runs import Run
from arena.store.spending import AGENTS, Spent
from arena.wording import AGENTS_ASKED, STAGES
from ui import runs
from ui.address import pick, say_what_is_unknown
from ui.tables import show_table

_WORDS: Mapping[str, str] = {AGENTS: AGENTS_ASKED, **{task.value: words for task, words in STAGES.items()}}


def total(run: Run) -> Spent:
    """Of all stages."""
    return sum(run.spent.values(), Spent())


def failures(run: Run) -> int:
    """Of all stages: its own, and as far as it told earlier ones that it did not ask for again."""
    stages = run.stages.keys() | run.spent.keys()
    return sum(_ended(run.stages.get(stage, {}), run.spent.get(stage, Spent()))[1] for stage in stages)


def known(run: Run) -> int | None:
    """What it did not have to ask for, where it came to tell."""
    return None if run.spent.keys() - run.stages.keys() else sum(own["known"] for own in run.stages.values())


def show_agents(run: Run) -> None:
    """How far a run is with the agents that it asks, if it asks any."""
    if told := run.stages.get(AGENTS):
        _, failed, done = _ended(told, run.spent.get(AGENTS, Spent()))
        words = f"{AGENTS_ASKED}: {done:,} of {told['wanted']:,}" + (f", {failed:,} failed" if failed else "")
        st.progress(min(1.0, done / max(1, told["wanted"])), text=words)


def show_spent(found: Sequence[Run]) -> None:
    """What runs at work have spent so far, each by itself."""
    for run, name in zip(found, runs.names(found).values(), strict=True):
        st.caption(f"This run so far: {in_words(total(run))}.".replace("$", "\\$"))
        show_table(stages_frame(run), f"Run of {name} by stage", _COLUMNS, unknown="unknown")


def show_one(ended: Sequence[Run], called: Mapping[str, str]) -> None:
    """What one of the runs that have ended did, stage by stage."""
    by_name = {called[run.run_id]: run for run in ended}
    run = by_name[pick("Run by stage", list(by_name), "run", width=420)]
    say_what_is_unknown()
    st.caption(f"This run: {in_words(total(run))}.".replace("$", "\\$"))
    show_table(stages_frame(run), "Run by stage", _COLUMNS, unknown="unknown")


def in_words(spent: Spent) -> str:
    """What was asked for and what it took, with how many results the figures leave out."""
    if not spent.results:
        return "nothing was asked for"
    failed = f", of which {spent.failed:,} failed" if spent.failed else ""
    said = [f"{_counted(spent.results, 'result')} of {_counted(spent.calls, 'call')}{failed}"]
    if spent.tokens_unknown < spent.results:
        left_out = f" ({_counted(spent.tokens_unknown, 'result')} of unknown tokens)" if spent.tokens_unknown else ""
        said.append(f"{spent.input_tokens:,} tokens in and {spent.output_tokens:,} out{left_out}")
    left_out = f" and {_counted(spent.cost_unknown, 'result')} of unknown cost" if spent.cost_unknown else ""
    said.append(f"{money(spent.cost_usd)}{left_out}" if spent.cost_unknown < spent.results else "unknown cost")
    return "; ".join(said)


def stages_frame(run: Run) -> pd.DataFrame:
    """A line for each stage of a run, agents first; a figure that nobody knows is empty, not 0."""
    stages = [stage for stage in _WORDS if stage in run.stages or stage in run.spent]
    return pd.DataFrame([_line(_WORDS[stage], run, stage) for stage in stages], columns=["Stage", *_FIGURES])


_FIGURES = ("Wanted", "Made", "Known", "Failed", "Calls", "Tokens in", "Tokens out", "Cost", "Cost known")

_COLUMNS = {
    "Made": st.column_config.NumberColumn(help="Judgments or answers that this run asked for and got."),
    "Known": st.column_config.NumberColumn(help="Without a call: in the store, or the same as another one."),
    "Failed": st.column_config.NumberColumn(help="Of this run; once it has ended also earlier ones not asked again."),
    "Calls": st.column_config.NumberColumn(help="Requests sent, attempts included."),
    "Cost": st.column_config.NumberColumn(format="$%.4f", help="Of what was asked for, as far as it is known."),
    "Cost known": st.column_config.TextColumn(help="Results whose cost is known; the others are left out."),
}


def _line(words: str, run: Run, stage: str) -> dict[str, Any]:
    told, spent = run.stages.get(stage, {}), run.spent.get(stage, Spent())
    made, failed, _ = _ended(told, spent)
    has_tokens, has_cost = (
        spent.results == 0 or left < spent.results for left in (spent.tokens_unknown, spent.cost_unknown)
    )
    return {
        "Stage": words,
        "Wanted": told.get("wanted"),
        "Made": made,
        "Known": told.get("known"),
        "Failed": failed,
        "Calls": spent.calls,
        "Tokens in": spent.input_tokens if has_tokens else None,
        "Tokens out": spent.output_tokens if has_tokens else None,
        "Cost": spent.cost_usd if has_cost else None,
        "Cost known": f"{spent.results - spent.cost_unknown:,} of {spent.results:,}",
    }


def _ended(told: Mapping[str, int], spent: Spent) -> tuple[int, int, int]:
    """Made, failed, and all that came to an end, known ones included; what was told may be of the beginning."""
    made, failed = max(told.get("judged", 0), spent.judged), max(told.get("failed", 0), spent.failed)
    return made, failed, told.get("known", 0) + made + failed


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
