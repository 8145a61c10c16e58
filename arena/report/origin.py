"""Where figures come from: coverage, failures, settings, models, versions, digests, and how to get them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from arena.present.blocks import Block, Commands, Remarks, Section
from arena.present.table import Table
from arena.report.blocks import text_table
from arena.report.facts import Facts
from arena.report.figures import NONE, percent
from arena.wording import STAGES
from judges.errors import CAUSES, RETRIED_NEXT_RUN

_SECTIONS = ("pairwise", "retrieval", "criteria", "exam", "nuggets", "agents", "ratings", "prompts")
"""Of the settings, in the order in which they are shown; any other comes behind."""


def coverage(facts: Facts) -> Section | None:
    """What was judged and what failed; ``None`` where nothing is planned."""
    stages = facts.board.coverage
    if not stages:
        return None
    rows = [
        [
            STAGES.get(task, task.value),
            percent(stage.share, 1),
            *(f"{count:,}" for count in (stage.wanted, stage.judged, stage.failed, stage.left, stage.identical)),
        ]
        for task, stage in stages.items()
    ]
    columns = ["Stage", "Done", "Wanted", "Judged", "Failed", "Left", "Without a call"]
    notes = ["Left: not asked yet. Without a call: ties between equal answers, among the judged."]
    lead = "How much of what was planned is behind the figures. A failure is never counted as a verdict."
    return Section(
        "coverage",
        "Coverage and failures",
        lead,
        [text_table("By stage", columns, rows, notes), *_failures(facts), *_effort(facts)],
    )


def origin(facts: Facts, source: str) -> list[Section]:
    """Settings, and how to reproduce the report.

    Args:
        facts: of the tournament.
        source: the configuration or store, as it may be shown.
    """
    settings = facts.board.settings
    lead = "What decided the results, as it was stored with the tournament. Keys are never stored."
    return [
        Section("settings", "Settings, prompts and models", lead, [*_judges(settings), *_settings(settings)]),
        _reproduce(facts, source),
    ]


def _failures(facts: Facts) -> Iterator[Table]:
    if not facts.failures:
        return
    rows = [
        [
            CAUSES.get(cause, cause),
            task.value,
            judge,
            f"{count:,}",
            "run again" if cause in RETRIED_NEXT_RUN else "run again with --retry-failed",
        ]
        for (task, judge, cause), count in sorted(facts.failures.items(), key=lambda entry: -entry[1])
    ]
    columns = ["Cause", "Stage", "Judge", "Failures", "What to do"]
    notes = ["Samples are counted one by one. 'ragarena failures' lists them with their replies."]
    yield text_table("Why judgments failed", columns, rows, notes, frozenset({"Stage", "Judge", "What to do"}))


def _effort(facts: Facts) -> Iterator[Table]:
    if not facts.effort:
        return
    rows = [
        [
            own.judge,
            own.task.value,
            ", ".join(f"{model} ({count:,})" for model, count in own.models.items()),
            *(f"{count:,}" for count in (own.judgments, own.failed, own.calls)),
            _tokens(own.usage.input_tokens),
            _tokens(own.usage.output_tokens),
            "unknown" if own.cost_usd is None else f"${own.cost_usd:,.2f}",
        ]
        for own in facts.effort
    ]
    columns = ["Judge", "Stage", "Model that replied", "Judgments", "Failed", "Calls"]
    columns += ["Tokens in", "Tokens out", "Cost"]
    notes = ["A judgment that several games share, because their texts are the same, was paid for and counts once."]
    yield text_table("What was asked", columns, rows, notes, frozenset({"Stage", "Model that replied"}))


def _tokens(count: int | None) -> str:
    return NONE if count is None else f"{count:,}"


def _judges(settings: Mapping[str, Any]) -> Iterator[Table]:
    judges = settings.get("judges") or {}
    if judges:
        names = dict.fromkeys(name for own in judges.values() for name, value in own.items() if value not in (None, ""))
        rows = [[name, *(_plain(judges[judge].get(name)) for judge in judges)] for name in names]
        yield text_table("Judges", ["Setting", *judges], rows, (), frozenset(judges))


def _settings(settings: Mapping[str, Any]) -> Iterator[Table]:
    names = dict.fromkeys([*_SECTIONS, *settings])
    shown = {name: settings[name] for name in names if name in settings and name != "judges"}
    if isinstance(exam := shown.get("exam"), Mapping):
        shown["exam"] = {name: value for name, value in exam.items() if name != "bank"}  # it may hold secret items
    if rows := list(_flat(shown)):
        notes = ["Prompts by name and version in their sections, and by a digest of their words under 'prompts'."]
        yield text_table("Settings", ["Setting", "Value"], rows, notes, frozenset({"Value"}))


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Leaves by their dotted path; what is not set or empty is left out."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        for at, part in enumerate(value, start=1):
            yield from _flat({key: own for key, own in part.items() if key != "name"}, f"{path}.{part.get('name', at)}")
    elif value not in (None, "", [], ()):
        yield path, _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(part, str | int | float) for part in value):
        return ", ".join(map(_plain, value))
    if isinstance(value, str):
        return value or NONE
    return NONE if value in (None, {}) else json.dumps(value, ensure_ascii=False)


def _reproduce(facts: Facts, source: str) -> Section:
    name = facts.board.tournament
    counts = ", ".join(f"{count:,} {what}" for what, count in facts.counts.items())
    rows = [
        ["Data", counts],
        ["Digest of the data (SHA-256)", facts.data_digest],
        ["Digest of all judgments (SHA-256)", facts.results_digest],
        ["Seed of ratings and intervals", _plain(facts.board.settings["ratings"].get("seed"))],
        *([what, version] for what, version in facts.versions.items()),
    ]
    chosen = [] if source.endswith((".yaml", ".yml")) else ["--tournament", name]
    commands = [shlex.join(["ragarena", command, source, *chosen]) for command in ("leaderboard", "report", "failures")]
    blocks: list[Block] = [
        text_table("Identity", ["What", "Value"], rows, (), frozenset({"Value"})),
        Commands(commands),
        Remarks(
            [
                "The same store gives the same figures, whatever the machine: all draws are seeded. With the same "
                "data, prompts and models a new run asks nothing that the store knows.",
                "Two stores with equal digests hold the same texts and the same judgments.",
            ]
        ),
    ]
    lead = "From the store that this report was made of."
    return Section("reproduce", "How to get these figures again", lead, blocks)
