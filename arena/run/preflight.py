"""Checks that need no call to a model, shared by the commands ``plan``, ``doctor`` and ``run``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from arena.config.schema import Config
from arena.config.stages import listed_stages
from arena.data.dataset import Dataset
from arena.results.documents import check_measures
from arena.run.agents import OpenedAgents, open_agents, runs_on_workers
from arena.run.judging import load_data
from arena.stages.queries_config import of_tournament
from arena.stages.together import TournamentStages
from arena.store import Store, missing, sqlite_path
from judges.errors import ConfigError, InputError, PromptError, RagleagueError
from judges.judge import Judge
from judges.prompts import load_prompt
from judges.sections import nearest
from judges.types import Task
from retrieval_eval.data.trec import read_recordings


class Preflight:
    """Checks everything that a configuration names: store, other outputs, judges, agents, data, prompts and settings.

    Attributes:
        faults: errors by what was checked, such as ``judge strong``; errors in data or settings of stages have the key
            ``data``.
        data: the dataset as it is now, before agents are asked and queries are written; ``None`` if it cannot be read.
        stages: the tournament's stages, set up with that dataset.
        opened: the opened agents; ``None`` if the configuration has none.
    """

    def __init__(self, config: Config, data: Dataset | None = None, *, assume: bool = True) -> None:
        """``data`` replaces the dataset from the configured files; ``assume`` is as in ``TournamentStages``."""
        self.faults: dict[str, RagleagueError] = {}
        self.data = data
        self.stages: TournamentStages | None = None
        self.opened: OpenedAgents | None = None
        self._check("store", lambda: _check_store(config))
        asked = config.judges_asked()
        if config.synth is not None:
            self._check("synth", lambda: _check_synth(config))
        for name in asked:
            self._check(f"judge {name}", lambda name=name: _check_judge(config, name))  # type: ignore[misc]
        if not config.lacks_queries and not self.faults.keys() & {f"judge {name}" for name in asked if config.agents}:
            self._check("data", lambda: self._check_data(config, assume=assume))

    @property
    def only_judges(self) -> bool:
        """Whether only judges have errors, such as a missing key: the run can still be planned."""
        return all(at.startswith("judge ") for at in self.faults)

    def require(self) -> None:
        for fault in self.faults.values():
            raise fault

    def _check(self, at: str, check: Callable[[], None]) -> None:
        try:
            check()
        except RagleagueError as fault:
            self.faults[at] = fault

    def _check_data(self, config: Config, *, assume: bool) -> None:
        try:
            if config.agents:
                self.opened = open_agents(config)
            if self.data is None or config.agents:
                self.data = load_data(config, None if self.opened is None else self.opened.declared, self.data)
            self.stages = TournamentStages(config, self.data, assume=assume)
            self.stages.check(complete=not config.agents)
        except InputError as fault:
            raise _placed(config, fault) from fault
        if config.retrieval is not None and config.retrieval.measures is not None:
            check_measures(config.retrieval.measures, self.data)
        known = {*self.data.agents, *config.agents}
        for name in config.families:
            if name not in known:
                raise ConfigError(f"{config.at(f'families.{name}')}: no agent is named {name!r}{nearest(name, known)}")


def _placed(config: Config, fault: InputError) -> InputError:
    """Add the configuration file and line to the message of an error that names a YAML key or a prompt."""
    message = str(fault)
    message = f"data.{message}" if message.startswith("columns: ") else message
    key, _, words = message.partition(": ")
    if key.split(".")[0] in Config.model_fields and not isinstance(fault, PromptError):
        return ConfigError(f"{config.at(key)}: {words}")
    for stage in listed_stages():
        prompt = getattr(config.section(stage.key), "prompt", None)
        if (
            isinstance(fault, PromptError)
            and prompt
            and (repr(prompt) in message or message.startswith(f"{prompt}: made"))
        ):
            return ConfigError(f"{config.at(f'{stage.key}.prompt')}: {message}")
    return fault


def _check_judge(config: Config, name: str) -> None:
    spec = config.judges[name]
    if runs_on_workers(config.executor, spec):  # workers have separate keys and models
        return
    try:
        Judge(name, spec, read_records=read_recordings)
    except InputError as error:
        place = config.at(f"judges.{name}")
        problem = str(error).removeprefix(f"judges.{name}: ")
        raise ConfigError(f"{place}: {problem}") from error


def _check_synth(config: Config) -> None:
    section = of_tournament(config).synth
    load_prompt(section.prompt, Task.QUERIES)
    if section.filters.answerable is not None:
        load_prompt(section.filters.prompt, Task.ANSWERABLE)
    for out in filter(None, (section.out, section.review)):
        require_writable(out)


def _check_store(config: Config) -> None:
    path = sqlite_path(config.store)
    if missing(config.store):
        if path is not None:
            require_writable(path)
        return
    Store.open(config.store).close()
    if path is not None:
        require_writable(path)


def require_writable(path: Path) -> None:
    """Check that a file can be written, without writing it."""
    folder = path.parent
    if path.exists() and not path.is_file():
        problem = "a folder" if path.is_dir() else "a pipe or a device"
        raise InputError(f"{path}: this is {problem}; name a file")
    if not folder.is_dir():
        problem = "is a file and no folder" if folder.exists() else "does not exist"
        raise InputError(f"{path}: the folder {folder} {problem}; make it, or name another one")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{path}: cannot be written; fix its permissions, or name another file")
