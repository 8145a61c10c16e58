"""All that can be known to be wrong before a call is made. ``plan``, ``doctor`` and ``run`` look at the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from arena.config.schema import Config
from arena.config.stages import STAGES
from arena.data.dataset import Dataset
from arena.run.executors import runs_on_workers
from arena.run.judging import load_data
from arena.stages.together import TournamentStages
from arena.store import Store, missing, sqlite_path
from judges.errors import ConfigError, InputError, PromptError, RagleagueError
from judges.judge import Judge
from judges.prompts import load_prompt
from judges.sections import nearest
from judges.types import Task
from retrieval_eval.agents.spec import judges_of_agents
from retrieval_eval.data.recordings import read_recordings

if TYPE_CHECKING:
    from arena.run.agents import OpenedAgents


class Preflight(Struct):
    """What was found.

    Attributes:
        faults: by what was looked at, such as ``judge strong``; the settings of stages and their data are ``data``.
        data: as far as it is there before agents are asked and queries made; ``None`` where it cannot be read.
        stages: of that data, as a plan takes them.
        opened: the agents that are asked, where there are any.
    """

    faults: dict[str, RagleagueError] = field(default_factory=dict)
    data: Dataset | None = None
    stages: TournamentStages | None = None
    opened: OpenedAgents | None = None

    @property
    def only_judges(self) -> bool:
        """Whether nothing is wrong but with judges, such as a key that is not set: a run can be planned then."""
        return all(at.startswith("judge ") for at in self.faults)

    def require(self) -> None:
        """Go on only where nothing is wrong.

        Raises:
            InputError: something is; the first that was found.
            StoreError: the store cannot be used.
        """
        for fault in self.faults.values():
            raise fault

    def look(self, at: str, check: Callable[[], None]) -> None:
        """Keep what a check finds."""
        try:
            check()
        except RagleagueError as fault:
            self.faults[at] = fault


def _placed(config: Config, fault: InputError) -> InputError:
    """A fault that begins with a key, or is about a prompt that a key names, behind the file and line of that key."""
    said = str(fault)
    said = f"data.{said}" if said.startswith("columns: ") else said
    key, _, words = said.partition(": ")
    if key.split(".")[0] in Config.model_fields and not isinstance(fault, PromptError):
        return ConfigError(f"{config.at(key)}: {words}")
    for stage in STAGES:
        prompt = getattr(config.section(stage.key), "prompt", None)
        if isinstance(fault, PromptError) and prompt and (repr(prompt) in said or said.startswith(f"{prompt}: made")):
            return ConfigError(f"{config.at(f'{stage.key}.prompt')}: {said}")
    return fault


def preflight(config: Config, data: Dataset | None = None) -> Preflight:
    """Look at everything that a configuration names: where it writes, judges, agents, data, prompts and settings.

    Args:
        config: the tournament.
        data: in place of the files that it names.
    """
    found = Preflight(data=data)
    found.look("store", lambda: _check_store(config))
    asked = dict.fromkeys([*config.judges_in_use(), *judges_of_agents(config.agents.values())])
    if config.synth is not None:
        asked |= dict.fromkeys(config.synth.judges())
        found.look("synth", lambda: _check_synth(config))
    for name in asked:
        found.look(f"judge {name}", lambda name=name: _check_judge(config, name))  # type: ignore[misc]
    if not config.lacks_queries and not found.faults.keys() & {f"judge {name}" for name in asked if config.agents}:
        found.look("data", lambda: _check_data(config, found))
    return found


def _check_judge(config: Config, name: str) -> None:
    spec = config.judges[name]
    if runs_on_workers(config.executor, spec):  # which have keys and models of their own
        return
    try:
        Judge(name, spec, read_records=read_recordings)
    except InputError as error:
        place = config.at(f"judges.{name}")
        said = str(error).removeprefix(f"judges.{name}: ")
        raise ConfigError(f"{place}: {said}") from error


def _check_data(config: Config, found: Preflight) -> None:
    try:
        if config.agents:
            from arena.run.agents import open_agents

            found.opened = open_agents(config)
        if found.data is None or config.agents:
            found.data = load_data(config, None if found.opened is None else found.opened.declared, found.data)
        found.stages = TournamentStages(config, found.data, assume=True)
        found.stages.check(complete=not config.agents)
    except InputError as fault:
        raise _placed(config, fault) from fault
    if config.retrieval is not None and config.retrieval.measures is not None:
        from arena.results.documents import check_measures

        check_measures(config.retrieval.measures, found.data)
    known = {*found.data.agents, *config.agents}
    for name in config.families:
        if name not in known:
            raise ConfigError(f"{config.at(f'families.{name}')}: no agent is named {name!r}{nearest(name, known)}")


def _check_synth(config: Config) -> None:
    from arena.stages.queries.config import of_tournament

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
    """See that a file can be written, without writing it.

    Raises:
        InputError: its folder is none, or nothing may be written there.
    """
    folder = path.parent
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or a device"
        raise InputError(f"{path}: {what} stands there; name a file")
    if not folder.is_dir():
        what = "is a file and no folder" if folder.exists() else "does not exist"
        raise InputError(f"{path}: the folder {folder} {what}; make it, or name another one")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{path}: cannot be written; mend its permissions, or name another file")
