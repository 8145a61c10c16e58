"""``doctor``: what is installed and set, and what a configuration still lacks."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from arena.cli.console import near, print_json, say
from arena.cli.options import Told
from arena.config.schema import Config
from arena.data.corpus import tables_of
from arena.data.warnings import notes_of
from arena.present.numbers import counted, listed
from arena.run.preflight import Preflight, preflight
from arena.run.reach import reached
from arena.stages.queries.config import SynthConfig, load_either
from arena.store import sqlite_path
from judges.errors import DISTRIBUTION, InputError, RagleagueError, how_to_install
from judges.judge import Judge
from judges.providers.http_answers import shown
from judges.types import NUGGET_TASKS
from retrieval_eval.agents.spec import judges_of_agents
from retrieval_eval.data.collections import irds_name as dataset_name
from retrieval_eval.data.recordings import read_recordings
from retrieval_eval.data.runs import read_runs
from retrieval_eval.documents.read import read_documents
from retrieval_eval.documents.types import FileNote, Limits

DoctorLine: TypeAlias = tuple[str, bool, str]
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
_DOCUMENTS: Final = "documents"
_UNFIT: Final = {_DOCUMENTS: "unread"}
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


def doctor(
    config: Annotated[str | None, typer.Argument(metavar="[CONFIG]", help="also check this tournament")] = None,
    reach: Annotated[
        bool, typer.Option("--reach", help="look at the addresses of judges and agents, by a GET that costs nothing")
    ] = False,
    form: Told = "table",
) -> None:
    """Check what is installed and set.

    With a configuration what that needs and still lacks, and which of its documents cannot be read. Never shows a key.
    """
    if reach and config is None:
        raise InputError("--reach: name the configuration whose addresses are to be reached")
    findings = examine(config, reach=reach)
    if form == "json":
        print_json([{"check": check, "ok": ok, "detail": detail} for check, ok, detail in findings])
    else:
        for check, ok, detail in findings:
            unfit = _UNFIT.get(check) or ("wrong" if check.startswith("config") else "missing")
            say(f"{'ok' if ok else unfit:<7}  {check}: {near(detail)}")
    if config is not None and not all(ok for check, ok, _ in findings if check.startswith("config")):
        raise typer.Exit(2)


def examine(config_path: str | None = None, *, reach: bool = False) -> list[DoctorLine]:
    """Look at the installation and, where one is given, at a configuration with its data, prompts and judges.

    ``reach`` also looks at the addresses that it names.
    """
    findings: list[DoctorLine] = [
        ("python", True, platform.python_version()),
        (DISTRIBUTION, True, metadata.version(DISTRIBUTION)),
        _packages(),
    ]
    if config_path is not None:
        return findings + _examine_config(Path(config_path), reach=reach)
    findings += map(_extra, _EXTRAS)
    for name in _KEYS:
        findings.append((f"key {name}", name in os.environ, "set" if name in os.environ else "not set"))
    return findings


def _extra(extra: str) -> DoctorLine:
    absent = [name for name in _EXTRAS[extra] if util.find_spec(name) is None]
    detail = f"not installed: {', '.join(absent)}; {how_to_install(extra)}" if absent else "installed"
    return f"extra {extra}", not absent, detail


def _needed(config: Config) -> Iterator[str]:
    """The extras that a configuration needs, in the order of the list."""
    asked = [*config.judges_in_use(), *judges_of_agents(config.agents.values()), *_writers(config)]
    here = {config.judges[name].provider for name in asked}
    vectors = {own.embeddings.provider for own in config.agents.values() if own.retriever != "bm25"}
    sources = [*config.data.queries, *config.data.documents, *config.data.corpus, *config.data.qrels]
    if _folders(config):
        yield "documents"
    if {"transformers", "extractive_qa"} & here or "transformers" in vectors:
        yield "local"
    if "://" in config.store and sqlite_path(config.store) is None:
        yield "postgres"
    if config.executor.kind == "ray":
        yield "ray"
    if "minilm" in vectors:
        yield "dense"
    if any(dataset_name(source) is not None for source in sources):
        yield "ir-datasets"


def _writers(config: Config) -> list[str]:
    return [] if config.synth is None else config.synth.judges()


def _folders(config: Config) -> dict[Path, Limits]:
    """Folders and files of documents that are cut into passages, with what reading one may take."""
    tables = tables_of(config.data.corpus) if config.data.corpus else []
    own = {path: config.data.limits for path in config.data.corpus if path not in tables}
    made = {} if config.synth is None else dict.fromkeys(config.synth.documents, config.synth.limits)
    return own | made


def _packages() -> DoctorLine:
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


def _examine_config(path: Path, *, reach: bool) -> list[DoctorLine]:
    try:
        config = load_either(path)
    except InputError as error:
        return [("config", False, str(error))]
    if isinstance(config, SynthConfig):
        return _examine_synth(config, reach=reach)
    checked = preflight(config)
    asked = dict.fromkeys([*config.judges_in_use(), *_writers(config), *judges_of_agents(config.agents.values())])
    judges = [_of_judge(config, name, checked.faults.pop(f"judge {name}", None)) for name in asked]
    wrong = [(_NAMES.get(at, f"config {at}"), False, str(fault)) for at, fault in checked.faults.items()]
    findings = [
        *map(_extra, _needed(config)),
        *wrong,
        *_of_data(config, path, checked),
        *_unread(_folders(config)),
        *judges,
    ]
    if reach:
        findings += _reached(config, asked)
    return findings


def _examine_synth(config: SynthConfig, *, reach: bool) -> list[DoctorLine]:
    """Of a file that only makes queries."""
    asked = config.synth.judges()
    findings = [_extra("documents"), *_unread(dict.fromkeys(config.synth.documents, config.synth.limits))]
    for name in asked:
        fault = None
        try:
            Judge(name, config.judges[name], read_records=read_recordings)
        except InputError as error:
            fault = error
        findings.append(_of_judge(config, name, fault))
    return findings + _reached(config, asked) if reach else findings


def _reached(config: Config | SynthConfig, asked: Iterable[str]) -> list[DoctorLine]:
    agents = config.agents if isinstance(config, Config) else {}
    found = reached({name: config.judges[name] for name in asked}, agents)
    return [(f"config {what}", fine, said) for what, fine, said in found]


def _unread(folders: Mapping[Path, Limits]) -> Iterator[DoctorLine]:
    """What cannot be read of documents, a line each."""
    for folder, limits in folders.items():
        read = 0
        try:
            for found in read_documents([folder], limits):
                if not isinstance(found, FileNote):
                    read += 1
                elif found.outcome != "note":
                    file = folder / found.source if folder.is_dir() else folder
                    yield _DOCUMENTS, False, f"{file}: {found.reason}"
        except InputError as error:
            yield f"config {_DOCUMENTS}", False, str(error)
        else:
            yield f"config {_DOCUMENTS}", read > 0, f"{folder}: {counted(read, 'document')} can be read"


def _of_data(config: Config, path: Path, checked: Preflight) -> list[DoctorLine]:
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
    findings: list[DoctorLine] = [
        ("config", True, f"{path}: {wanted} judgments wanted, prompts {prompts}"),
        ("config data", True, ", ".join(shape)),
    ]
    for run in read_runs(config.data.runs):
        findings += [("config data", True, f"run {run.name}: {note.text}") for note in run.notes]
    findings += [("data", False, note) for note in notes_of(data)]
    return findings


def _of_judge(config: Config | SynthConfig, name: str, fault: RagleagueError | None) -> DoctorLine:
    spec = config.judges[name]
    where = f" at {shown(spec.address)}" if fault is None and spec.address else ""
    return (f"config judge {name}", fault is None, str(fault) if fault is not None else spec.provider + where)
