"""Where the figures come from: what was asked, settings, models, versions, digests, and how to get them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from arena.present.blocks import Block, Commands, Remarks, Section
from arena.present.numbers import COUNT, MISSING, MONEY, POINTS
from arena.present.table import Column, Table
from arena.report.facts import Facts

_SECTIONS = ("pairwise", "retrieval", "criteria", "exam", "nuggets", "agents", "ratings", "prompts")
"""Of the settings, in the order in which they are shown; any other comes behind."""


def effort(facts: Facts) -> list[Block]:
    """What each judge was asked and what it took."""
    columns = [
        Column("judge", "Judge"),
        Column("task", "Stage"),
        Column("models", "Model that replied"),
        Column("judgments", "Judgments", COUNT),
        Column("failed", "Failed", COUNT),
        Column("calls", "Calls", COUNT),
        Column("input_tokens", "Tokens in", POINTS),
        Column("output_tokens", "Tokens out", POINTS),
        Column("cost_usd", "Cost", MONEY),
    ]
    rows = [
        asdict(own)
        | asdict(own.usage)
        | {"models": [f"{model} ({COUNT.write(count)})" for model, count in own.models.items()]}
        for own in facts.effort
    ]
    notes = ["A judgment that several games share, because their texts are the same, was paid for and counts once."]
    return [Table("effort", "What was asked", columns, rows, notes)] if rows else []


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


def _judges(settings: Mapping[str, Any]) -> Iterator[Table]:
    judges = settings.get("judges") or {}
    if judges:
        names = dict.fromkeys(name for own in judges.values() for name, value in own.items() if value not in (None, ""))
        rows = [
            {"setting": name} | {f"of {judge}": _plain(own.get(name)) for judge, own in judges.items()}
            for name in names
        ]
        columns = [Column("setting", "Setting"), *(Column(f"of {judge}", judge) for judge in judges)]
        yield Table("judge-settings", "Judges", columns, rows)


def _settings(settings: Mapping[str, Any]) -> Iterator[Table]:
    names = dict.fromkeys([*_SECTIONS, *settings])
    shown = {name: settings[name] for name in names if name in settings and name != "judges"}
    if isinstance(exam := shown.get("exam"), Mapping):
        shown["exam"] = {name: value for name, value in exam.items() if name != "bank"}  # it may hold secret items
    if rows := [{"setting": path, "value": value} for path, value in _flat(shown)]:
        columns = [Column("setting", "Setting"), Column("value", "Value")]
        notes = ["Prompts by name and version in their sections, and by a digest of their words under 'prompts'."]
        yield Table("settings", "Settings", columns, rows, notes)


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
        return value or MISSING
    return MISSING if value in (None, {}) else json.dumps(value, ensure_ascii=False)


def _reproduce(facts: Facts, source: str) -> Section:
    name = facts.board.tournament
    values = {
        "Data": ", ".join(f"{count:,} {what}" for what, count in facts.counts.items()),
        "Digest of the data (SHA-256)": facts.data_digest,
        "Digest of all judgments (SHA-256)": facts.results_digest,
        "Seed of ratings and intervals": _plain(facts.board.settings["ratings"].get("seed")),
        **facts.versions,
    }
    columns = [Column("what", "What"), Column("value", "Value")]
    rows = [{"what": what, "value": value} for what, value in values.items()]
    chosen = [] if source.endswith((".yaml", ".yml")) else ["--tournament", name]
    commands = [shlex.join(["ragarena", command, source, *chosen]) for command in ("leaderboard", "report", "failures")]
    remarks = [
        "The same store gives the same figures, whatever the machine: all draws are seeded. With the same data, "
        "prompts and models a new run asks nothing that the store knows.",
        "Two stores with equal digests hold the same texts and the same judgments.",
    ]
    blocks: list[Block] = [Table("identity", "Identity", columns, rows), Commands(commands), Remarks(remarks)]
    return Section(
        "reproduce", "How to get these figures again", "From the store that this report was made of.", blocks
    )
