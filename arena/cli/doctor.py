"""``doctor``: what is installed and set, and what a configuration still lacks."""

from __future__ import annotations

import os
import platform
from importlib import metadata, util
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from arena.cli.console import near, print_json, say
from arena.cli.options import Told
from arena.config.whole import Config, load_config
from arena.data.notes import notes_of
from arena.present.numbers import counted, listed
from arena.run.preflight import Preflight, preflight
from judges.errors import DISTRIBUTION, InputError, RagleagueError, how_to_install
from judges.providers.http_answers import shown
from judges.types import NUGGET_TASKS
from retrieval_eval.data.runs import read_runs

Finding: TypeAlias = tuple[str, bool, str]
"""What was looked at, whether it is fine, and what was found."""

_EXTRAS = {
    "documents": ("datasketch", "docx", "lxml", "pypdf"),
    "local": ("torch", "transformers"),
    "postgres": ("psycopg",),
    "login": ("authlib",),
    "ray": ("ray",),
    "dense": ("sentence_transformers",),
    "ir-datasets": ("ir_datasets",),
    "mlflow": ("mlflow",),
}
_PACKAGES = ("arena", "judges", "retrieval_eval", "ui")
_NAMES: Final = {"data": "config"}
"""What the checks of data and settings are called."""
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


def doctor(
    config: Annotated[str | None, typer.Argument(metavar="[CONFIG]", help="also check this tournament")] = None,
    form: Told = "table",
) -> None:
    """Check what is installed and set.

    With a configuration also what that still lacks. Never shows a key.
    """
    findings = examine(config)
    if form == "json":
        print_json([{"check": check, "ok": ok, "detail": detail} for check, ok, detail in findings])
    else:
        for check, ok, detail in findings:
            unfit = "wrong" if check.startswith("config") else "missing"
            say(f"{'ok' if ok else unfit:<7}  {check}: {near(detail)}")
    if config is not None and not all(ok for check, ok, _ in findings if check.startswith("config")):
        raise typer.Exit(2)


def examine(config_path: str | None = None) -> list[Finding]:
    """Look at the installation and, where one is given, at a configuration with its data, prompts and judges."""
    findings: list[Finding] = [
        ("python", True, platform.python_version()),
        (DISTRIBUTION, True, metadata.version(DISTRIBUTION)),
        _packages(),
    ]
    for extra, modules in _EXTRAS.items():
        absent = [name for name in modules if util.find_spec(name) is None]
        detail = f"not installed: {', '.join(absent)}; {how_to_install(extra)}" if absent else "installed"
        findings.append((f"extra {extra}", not absent, detail))
    for name in _KEYS:
        findings.append((f"key {name}", name in os.environ, "set" if name in os.environ else "not set"))
    if config_path is not None:
        findings += _examine_config(Path(config_path))
    return findings


def _packages() -> Finding:
    """Whether another distribution has put files where ours are: one of both would hide the other's."""
    makers: dict[str, set[str]] = {name: set() for name in _PACKAGES}
    for each in metadata.distributions():
        files = f"\n{each.read_text('RECORD') or each.read_text('top_level.txt') or ''}\n"
        for name, own in makers.items():
            if f"\n{name}/" in files or f"\n{name}\n" in files:
                own.add(each.name)
    others = {name: sorted(own - {DISTRIBUTION}) for name, own in makers.items()}
    shared = [f"{name} ({listed(found)})" for name, found in others.items() if found]
    if shared:
        return "packages", False, f"other distributions have files there too: {listed(shared)}; uninstall one of both"
    return "packages", True, f"{listed(_PACKAGES)} are ours alone"


def _examine_config(path: Path) -> list[Finding]:
    try:
        config = load_config(path)
    except InputError as error:
        return [("config", False, str(error))]
    checked = preflight(config)
    judges = [_of_judge(config, name, checked.faults.pop(f"judge {name}", None)) for name in config.judges_in_use()]
    wrong = [(_NAMES.get(at, f"config {at}"), False, str(fault)) for at, fault in checked.faults.items()]
    return [*wrong, *_of_data(config, path, checked), *judges]


def _of_data(config: Config, path: Path, checked: Preflight) -> list[Finding]:
    """What there is to judge, where it can be read and used."""
    data, stages = checked.data, checked.stages
    if data is None or stages is None or "data" in checked.faults:
        return []
    wanted = sum(want.task not in NUGGET_TASKS for want in stages.wants())  # theirs come about step by step
    exam_last = sorted(stages.stages, key=lambda stage: stage.key == "exam")
    prompts = ", ".join(template.name for stage in exam_last for template in stage.templates.values()) or "none"
    shape = (
        counted(len(data.queries), "query", "queries"),
        counted(len(data.agents), "agent"),
        counted(len(data.answers), "answer"),
        counted(len(data.documents), "document"),
    )
    findings: list[Finding] = [
        ("config", True, f"{path}: {wanted} judgments wanted, prompts {prompts}"),
        ("config data", True, ", ".join(shape)),
    ]
    for run in read_runs(config.data.runs):
        findings += [("config data", True, f"run {run.name}: {note.text}") for note in run.notes]
    findings += [("data", False, note) for note in notes_of(data)]
    return findings


def _of_judge(config: Config, name: str, fault: RagleagueError | None) -> Finding:
    spec = config.judges[name]
    where = f" at {shown(spec.address)}" if fault is None and spec.address else ""
    return (f"config judge {name}", fault is None, str(fault) if fault is not None else spec.provider + where)
