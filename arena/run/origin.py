"""Whether a tournament in the store is a configuration's own, and how the two differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from arena.config.declared import deciding, told_settings
from arena.config.schema import Config
from arena.data.files import load_files
from arena.run.recorder import answer_digests, origin_of, query_digests
from arena.store.runs import Runs
from judges.errors import InputError
from retrieval_eval.data.column_report import unsaid

if TYPE_CHECKING:
    from arena.data.dataset import Dataset
    from arena.store import Store

_NAMED = 5
"""Agents that a message names."""


def compared_with_stored(store: Store, config: Config) -> str:
    """How a configuration differs from its tournament as the store holds it, in one line; empty where it does not.

    A file that was edited since it was run differs, and what is stored is still its own. So is what another file of
    the same data has run, such as a copy, or this file before agents and queries were added to it.

    Raises:
        InputError: another file has run a tournament of this name, with other data, agents or judges.
    """
    subject = Runs(store, config.name).last_subject()
    mine, stored = origin_of(config), subject.get("origin", {})
    if not subject or mine == stored or store.settings(config.name).imported:
        return ""
    edited = mine.get("file") == stored.get("file") is not None
    try:
        with unsaid():
            here = _described(config, load_files(config), subject["queries"])
    except InputError as error:
        here = None
        problem = f"its data cannot be read: {error}"
    if here is None:
        if edited:
            return f"{config.file}: has changed since its last run, which is shown, and {problem}"
        raise _another(config, subject, problem)
    gone, added = _differences(config, here, subject)
    if gone and not edited:
        raise _another(config, subject, "")
    said = [
        *([f"not in the store yet: {_listed(added)}"] if added else []),
        *([f"changed since its last run, which is shown: {_listed(gone)}"] if gone else []),
    ]
    return f"{config.file}: {'; '.join(said)}; run it to bring the store up to date" if said else ""


def _another(config: Config, subject: Mapping[str, Any], problem: str) -> InputError:
    agents = _listed([str(agent) for agent in subject["agents"]]) or "none"
    judges = _listed(sorted((subject.get("settings") or {}).get("judges", {})))
    held = f"agents {agents}; judges {judges}" if judges else f"agents {agents}"
    return InputError(
        f"{config.file}: the store holds tournament {config.name!r} as another file ran it ({held})"
        f"{f', and {problem}' if problem else ''}; run this one first, or give it another name"
    )


def _described(config: Config, data: Dataset, among: Collection[str]) -> dict[str, Any]:
    """The same that a run keeps of its data, as far as files say it: agents are not asked, and no corpus is read."""
    queries = query_digests(data)
    runs: set[str] = set()
    if config.data.runs:
        from retrieval_eval.data.runs import read_runs

        runs = {run.name for run in read_runs(config.data.runs)}
    return {
        "queries": queries,
        "answers": answer_digests(data, among),
        "agents": {*data.agents, *config.agents},
        "runs": runs,
    }


def _differences(config: Config, here: Mapping[str, Any], subject: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What is stored and not, or not so, in the files; and what is in the files alone."""
    stored, known = subject["queries"], {*here["agents"], *here["runs"]}
    gone = [f"agent {agent!r}" for agent in subject["agents"] if agent not in known]
    gone += [
        f"answers of agent {agent!r}"
        for agent, digest in here["answers"].items()
        if agent not in config.agents and subject.get("answers", {}).get(agent, digest) != digest
    ]
    changed = sum(here["queries"].get(query_id) != digest for query_id, digest in stored.items())
    gone += [_counted(changed)] if changed else []
    judges, used = (subject.get("settings") or {}).get("judges", {}), config.judges_in_use()
    gone += [f"judge {name!r}" for name in judges if name not in used or deciding(config.judges[name]) != judges[name]]
    gone += _changed_agents(config, (subject.get("settings") or {}).get("agents", ()))
    added = [f"agent {agent!r}" for agent in sorted(here["agents"].difference(subject["agents"]))]
    more = len(here["queries"].keys() - stored.keys())
    added += [f"judge {name!r}" for name in used if name not in judges]
    return gone, added + ([_counted(more)] if more else [])


def _changed_agents(config: Config, stored: Collection[Mapping[str, Any]]) -> list[str]:
    specs = config.agents
    return [
        f"settings of agent {each['name']!r}"
        for each in stored
        if each["name"] in specs and told_settings(specs[each["name"]]) != each.get("settings", {})
    ]


def _counted(queries: int) -> str:
    from arena.present.numbers import counted

    return counted(queries, "query", "queries")


def _listed(names: Collection[str]) -> str:
    shown = list(names)[:_NAMED]
    more = len(names) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])
