"""What runs have asked for and what that took: in a sentence, and stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from arena.present.numbers import MONEY, counted, listed
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
    told = run.stages and not run.spent.keys() - run.stages.keys()
    return sum(own["known"] for own in run.stages.values()) if told else None


def show_agents(found: Sequence[Run]) -> None:
    """How far each run at work is with the agents that it asks, if it asks any."""
    for run, name in _named(found):
        if told := run.stages.get(AGENTS):
            _, failed, done = _ended(told, run.spent.get(AGENTS, Spent()))
            whose = f" by the {name}" if len(found) > 1 else ""
            words = f"{AGENTS_ASKED}{whose}: {done:,} of {told['wanted']:,}" + (
                f", {failed:,} failed" if failed else ""
            )
            st.progress(min(1.0, done / max(1, told["wanted"])), text=words)


def show_spent(found: Sequence[Run]) -> None:
    """What each run at work has spent so far."""
    for run, name in _named(found):
        st.caption(f"The {name} so far: {in_words(run)}.".replace("$", "\\$"))
        frame = stages_frame(run).drop(columns=["Wanted", "Known"])  # told in the end; meanwhile the bars say how far
        _show_stages(frame, f"The {name} by stage")


def _named(found: Sequence[Run]) -> list[tuple[Run, str]]:
    """Runs at work, the first first, as sentences name them."""
    called = runs.names(found)
    return [(run, f"run of {called[run.run_id]}") for run in reversed(found)]


def show_one(ended: Sequence[Run], called: Mapping[str, str]) -> None:
    """What one of the runs that have ended did, stage by stage."""
    by_name = {called[run.run_id]: run for run in ended}
    run = by_name[pick("Run by stage", list(by_name), "run", width=420)]
    say_what_is_unknown()
    st.caption(f"This run: {in_words(run)}.".replace("$", "\\$"))
    _show_stages(stages_frame(run), "Run by stage")


def _show_stages(frame: pd.DataFrame, name: str) -> None:
    if not frame.empty:
        show_table(frame, name, _COLUMNS, unknown="unknown")


def in_words(run: Run) -> str:
    """What was asked for and what it took, with how many results the figures leave out."""
    spent, answers = total(run), run.spent.get(AGENTS, Spent()).judged
    if not spent.results:
        return "nothing was asked for" if run.state == "complete" else "no reply was kept"
    came = [(answers, "answer"), (spent.judged - answers, "judgment"), (spent.failed, "failure")]
    made = listed([_counted(number, one) for number, one in came if number])
    said = [f"{made} by {_counted(spent.calls, 'call')}"]
    if spent.tokens_known:
        tokens = f"{spent.input_tokens:,} tokens in and {spent.output_tokens:,} out"
        said.append(tokens + _without(spent.tokens_unknown, "tokens"))
    cost = MONEY.write(spent.cost_usd) + _without(spent.cost_unknown, "cost")
    said.append(cost if spent.cost_known else "unknown cost")
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
    return {
        "Stage": words,
        "Wanted": told.get("wanted"),
        "Made": made,
        "Known": told.get("known"),
        "Failed": failed,
        "Calls": spent.calls,
        "Tokens in": spent.input_tokens if spent.tokens_known else None,
        "Tokens out": spent.output_tokens if spent.tokens_known else None,
        "Cost": spent.cost_usd if spent.cost_known else None,
        "Cost known": f"{spent.results - spent.cost_unknown:,} of {spent.results:,}",
    }


def _ended(told: Mapping[str, int], spent: Spent) -> tuple[int, int, int]:
    """Made, failed, and all that came to an end, known ones included; what was told may be of the beginning."""
    made, failed = max(told.get("judged", 0), spent.judged), max(told.get("failed", 0), spent.failed)
    return made, failed, told.get("known", 0) + made + failed


def _without(number: int, what: str) -> str:
    return f" without {_counted(number, 'result')} of unknown {what}" if number else ""


def _counted(number: int, one: str) -> str:
    return counted(number, one, f"{one}s")
