"""``doctor``: check the installation, and the files, judges and addresses of a configuration."""

from __future__ import annotations

import asyncio
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata, util
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from msgspec import Struct

from arena.cli.console import print_json, say, short_paths
from arena.cli.options import JsonForm
from arena.config.schema import Config
from arena.data.corpus import tables_of
from arena.data.dataset import notes_of
from arena.present.numbers import counted, listed
from arena.run.preflight import Preflight
from arena.stages.queries_config import SynthConfig, load_either
from arena.store import sqlite_path
from judges.errors import DISTRIBUTION, TO_DO, InputError, ProviderError, RagleagueError, how_to_install
from judges.judge import Judge
from judges.providers.endpoint import Endpoint
from judges.providers.hosted import HostedProvider
from judges.providers.http_answers import shown
from judges.spec import JudgeSpec
from judges.types import NUGGET_TASKS
from retrieval_eval.agents.embeddings import HostedEmbedder
from retrieval_eval.agents.remote import RemoteAgent
from retrieval_eval.agents.spec import AgentSpec
from retrieval_eval.data.collections import irds_name as dataset_name
from retrieval_eval.data.runs import read_runs
from retrieval_eval.data.trec import read_recordings
from retrieval_eval.documents.read import read_documents
from retrieval_eval.documents.types import FileNote, Limits

DoctorLine: TypeAlias = tuple[str, bool, str]
"""Result of one check: the check's name, whether it passed, and details."""

_EXTRAS = {
    "documents": ("datasketch", "docx", "lxml", "pypdf"),
    "local": ("torch", "transformers"),
    "postgres": ("psycopg",),
    "login": ("authlib",),
    "ray": ("ray",),
    "dense": ("sentence_transformers",),
    "ir-datasets": ("ir_datasets",),
    "mlflow": ("mlflow",),
    "png": ("vl_convert",),
}
_PACKAGES = ("arena", "judges", "retrieval_eval", "ui")
_NAMES: Final = {"data": "config"}
"""Printed names of the checks that ``Preflight`` makes; a check without an entry is printed as ``config NAME``."""
_DOCUMENTS: Final = "documents"
_FAILED_WORDS: Final = {_DOCUMENTS: "unread", "data": "note"}
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_NO_ACCESS: Final = frozenset({401, 403})
_NAMED: Final = 5


def doctor(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONFIG]",
            help="YAML file with a configuration, to check it and what it needs",
        ),
    ] = None,
    reach: Annotated[
        bool, typer.Option("--reach", help="send a GET request, which is free, to each address of a judge or an agent")
    ] = False,
    form: JsonForm = "table",
) -> None:
    """Check the installation, or a configuration.

    With a configuration it checks the packages, data, judges and keys that this needs, and says which documents cannot
    be read. It never shows a key.
    """
    if reach and config is None:
        raise InputError("--reach: checks the addresses in a configuration; name its YAML file too")
    findings = examine(config, reach=reach)
    if form == "json":
        print_json([{"check": check, "ok": ok, "detail": detail} for check, ok, detail in findings])
    else:
        for check, ok, detail in findings:
            failed_word = _FAILED_WORDS.get(check) or ("wrong" if check.startswith("config") else "missing")
            say(f"{'ok' if ok else failed_word:<7}  {check}: {short_paths(detail)}")
    if config is not None and not all(ok for check, ok, _ in findings if check.startswith("config")):
        raise typer.Exit(2)


def examine(config_path: str | None = None, *, reach: bool = False) -> list[DoctorLine]:
    """Check the installation or, if ``config_path`` is given, a configuration with its data, prompts and judges.

    With ``reach``, also send a request to the addresses that the configuration names.
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
    """Names of ragleague's optional extras that the configuration needs."""
    provider_names = {config.judges[name].provider for name in config.judges_asked()}
    embedding_providers = {agent.embeddings.provider for agent in config.agents.values() if agent.retriever != "bm25"}
    sources = [*config.data.queries, *config.data.documents, *config.data.corpus, *config.data.qrels]
    if _folders(config):
        yield "documents"
    if {"transformers", "extractive_qa"} & provider_names or "transformers" in embedding_providers:
        yield "local"
    if "://" in config.store and sqlite_path(config.store) is None:
        yield "postgres"
    if config.executor.kind == "ray":
        yield "ray"
    if "minilm" in embedding_providers:
        yield "dense"
    if any(dataset_name(source) is not None for source in sources):
        yield "ir-datasets"


def _folders(config: Config) -> dict[Path, Limits]:
    """Folders and files whose documents a run cuts into passages, each with the limits on a file's size."""
    tables = tables_of(config.data.corpus) if config.data.corpus else []
    corpus_folders = {path: config.data.limits for path in config.data.corpus if path not in tables}
    synth_folders = {} if config.synth is None else dict.fromkeys(config.synth.documents, config.synth.limits)
    return corpus_folders | synth_folders


def _packages() -> DoctorLine:
    """Check that no other installed distribution has packages with ragleague's names; one would hide the other."""
    owners_by_package: dict[str, set[str]] = {name: set() for name in _PACKAGES}
    for distribution in metadata.distributions():
        files = f"\n{distribution.read_text('RECORD') or distribution.read_text('top_level.txt') or ''}\n"
        for name, owners in owners_by_package.items():
            if f"\n{name}/" in files or f"\n{name}\n" in files:
                owners.add(distribution.name)
    others = {name: sorted(owners - {DISTRIBUTION}) for name, owners in owners_by_package.items()}
    shared = [f"{name} ({listed(names)})" for name, names in others.items() if names]
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
    checked = Preflight(config)
    judge_names = config.judges_asked()
    judges = [_judge_line(config, name, checked.faults.pop(f"judge {name}", None)) for name in judge_names]
    faults = [(_NAMES.get(name, f"config {name}"), False, str(fault)) for name, fault in checked.faults.items()]
    findings = [
        *map(_extra, _needed(config)),
        *faults,
        *_data_lines(config, path, checked),
        *_unread(_folders(config)),
        *judges,
    ]
    if reach:
        findings += _reach_lines(config, judge_names)
    return findings


def _examine_synth(config: SynthConfig, *, reach: bool) -> list[DoctorLine]:
    judge_names = config.synth.judges()
    findings = [_extra("documents"), *_unread(dict.fromkeys(config.synth.documents, config.synth.limits))]
    for name in judge_names:
        fault = None
        try:
            Judge(name, config.judges[name], read_records=read_recordings)
        except InputError as error:
            fault = error
        findings.append(_judge_line(config, name, fault))
    return findings + _reach_lines(config, judge_names) if reach else findings


def _unread(folders: Mapping[Path, Limits]) -> Iterator[DoctorLine]:
    """A line for each document that cannot be read; then, per folder, a line with the number of readable documents."""
    for folder, limits in folders.items():
        readable = 0
        try:
            for document in read_documents([folder], limits):
                if not isinstance(document, FileNote):
                    readable += 1
                elif document.outcome != "note":
                    file = folder / document.source if folder.is_dir() else folder
                    yield _DOCUMENTS, False, f"{file}: {document.reason}"
        except InputError as error:
            yield f"config {_DOCUMENTS}", False, str(error)
        else:
            yield f"config {_DOCUMENTS}", readable > 0, f"{folder}: {counted(readable, 'document')} can be read"


def _data_lines(config: Config, path: Path, checked: Preflight) -> list[DoctorLine]:
    """Lines on the number of planned judgments, the prompts and the size of the data; none for unreadable data."""
    data, stages = checked.data, checked.stages
    if data is None or stages is None or "data" in checked.faults:
        return []
    wanted = sum(
        want.task not in NUGGET_TASKS for want in stages.wants()
    )  # nuggets are planned step by step, so not counted
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


def _judge_line(config: Config | SynthConfig, name: str, fault: RagleagueError | None) -> DoctorLine:
    spec = config.judges[name]
    where = f" at {shown(spec.address)}" if fault is None and spec.address else ""
    return (f"config judge {name}", fault is None, str(fault) if fault is not None else spec.provider + where)


class _Place(Struct, frozen=True):
    """Address of a judge, an agent or an embedding model, to check that its server replies.

    Attributes:
        name: whose address it is, such as ``judge NAME``.
        key: environment variable or setting that the API key comes from, to name in messages.
        address: setting that the address comes from, to name in messages.
        path: path of the server's list of models, relative to the address; empty to request the address itself.
        model: name of the model that the list should contain.
    """

    name: str
    endpoint: Endpoint
    key: str
    address: str
    path: str = ""
    model: str = ""


def _reach_lines(config: Config | SynthConfig, judge_names: Iterable[str]) -> list[DoctorLine]:
    """Send a request to each address of a judge, an agent or an embedding model; returns a line for each address."""
    agents = config.agents if isinstance(config, Config) else {}
    places = list(_places({name: config.judges[name] for name in judge_names}, agents))

    async def look_at_all() -> list[DoctorLine]:
        return list(await asyncio.gather(*map(_look, places)))

    return [(f"config {name}", ok, detail) for name, ok, detail in asyncio.run(look_at_all())]


async def _look(place: _Place) -> DoctorLine:
    try:
        received = await place.endpoint.look(place.path)
    except ProviderError as error:
        to_do = TO_DO.get(error.cause, "").format(address=place.address, key=place.key, code="")
        return place.name, False, "; ".join(filter(None, (str(error), to_do)))
    finally:
        await place.endpoint.close()
    where, status = place.endpoint.name, received.status
    if status in _NO_ACCESS:
        return place.name, False, f"{where}: HTTP {status}; check the key in {place.key}"
    if status >= 500 or 300 <= status < 400:
        return place.name, False, f"{where}: HTTP {status}; check the server and {place.address}"
    return place.name, True, f"{where} was reached (HTTP {status}){_of_models(received.content, place.model)}"


def _of_models(content: bytes, model: str) -> str:
    """Say whether the server's list of models contains the model; empty if the reply is no such list."""
    listed: list[str] = []
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        listed = [str(each["id"]) for each in json.loads(content)["data"]]
    if not model or not listed:
        return ""
    if model in listed:
        return f" and lists {model!r}"
    more = ", ..." if len(listed) > _NAMED else ""
    return f"; {model!r} is not among the models that it lists: {', '.join(listed[:_NAMED])}{more}"


def _places(judges: Mapping[str, JudgeSpec], agents: Mapping[str, AgentSpec]) -> Iterator[_Place]:
    """Addresses of judges and agents. Those whose settings are wrong are left out, since other checks report them."""
    for name, spec in judges.items():
        with suppress(InputError):
            provider = Judge(name, spec, read_records=read_recordings).provider
            if isinstance(provider, HostedProvider):
                where = provider.endpoint, spec.key_from, spec.address_from
                yield _Place(f"judge {name}", *where, "/models", spec.model)
    for name, agent in agents.items():
        yield from _of_agent(name, agent)


def _of_agent(name: str, spec: AgentSpec) -> Iterator[_Place]:
    with suppress(InputError):
        if spec.kind in {"endpoint", "http"}:
            agent = RemoteAgent(name, spec, {}, "")
            key = spec.api_key_env or "'headers_env'"
            yield _Place(f"agent {name}", agent.endpoint, key, "'url'" if spec.url else "'base_url'")
        elif spec.kind in {"rag", "fusion"} and spec.retriever != "bm25" and spec.embeddings.provider == "openai":
            settings = spec.embeddings
            yield _Place(
                f"agent {name} embeddings",
                HostedEmbedder(settings).endpoint,
                settings.api_key_env or "OPENAI_API_KEY",
                "'base_url'",
                "/models",
                settings.model,
            )
