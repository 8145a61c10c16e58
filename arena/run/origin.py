"""Checks whether a stored tournament came from this configuration, and how the two differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from arena.config.schema import Config
from arena.data.files import load_files
from arena.run.recorder import answer_digests, origin_of, query_digests
from arena.store.runs import Runs
from judges.errors import InputError
from retrieval_eval.data.table_spec import unsaid

if TYPE_CHECKING:
    from arena.data.dataset import Dataset
    from arena.store import Store

_NAMED = 5
"""Maximum number of agents named in a message."""


def compared_with_stored(store: Store, config: Config) -> str:
    """Describe in one line how a configuration differs from its stored tournament; empty if it does not.

    The configuration may have been edited since its last run; the stored results are still shown. It may also be a
    copy, or an older version that lacks agents or queries added later.

    Raises:
        InputError: a tournament of this name was run from another file, with other data, agents or judges.
    """
    subject = Runs(store, config.name).last_subject()
    origin, stored = origin_of(config), subject.get("origin", {})
    if not subject or origin == stored or store.settings(config.name).imported:
        return ""
    edited = origin.get("file") == stored.get("file") is not None
    try:
        with unsaid():
            described = _described(config, load_files(config), subject["queries"])
    except InputError as error:
        described = None
        problem = f"its data cannot be read: {error}"
    if described is None:
        if edited:
            return f"{config.file}: has changed since its last run, which is shown, and {problem}"
        raise _another(config, subject, problem)
    gone, added = _differences(config, described, subject)
    if gone and not edited:
        raise _another(config, subject, "")
    changes = [
        *([f"not in the store yet: {_listed(added)}"] if added else []),
        *([f"changed since its last run, which is shown: {_listed(gone)}"] if gone else []),
    ]
    return f"{config.file}: {'; '.join(changes)}; run it to bring the store up to date" if changes else ""


def _another(config: Config, subject: Mapping[str, Any], problem: str) -> InputError:
    agents = _listed([str(agent) for agent in subject["agents"]]) or "none"
    judges = _listed(sorted((subject.get("settings") or {}).get("judges", {})))
    owner = f"agents {agents}; judges {judges}" if judges else f"agents {agents}"
    return InputError(
        f"{config.file}: another file ran the tournament {config.name!r} in the store ({owner})"
        f"{f', and {problem}' if problem else ''}; run this file first, or give its tournament another name"
    )


def _described(config: Config, data: Dataset, query_ids: Collection[str]) -> dict[str, Any]:
    """Digests of the data in the files, as a run records them; does not ask agents or read a corpus."""
    queries = query_digests(data)
    runs: set[str] = set()
    if config.data.runs:
        from retrieval_eval.data.runs import read_runs

        runs = {run.name for run in read_runs(config.data.runs)}
    return {
        "queries": queries,
        "answers": answer_digests(data, query_ids),
        "agents": {*data.agents, *config.agents},
        "runs": runs,
    }


def _differences(
    config: Config, described: Mapping[str, Any], subject: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """Lists what is missing or changed in the files since the last run, and what is only in the files."""
    stored, known = subject["queries"], {*described["agents"], *described["runs"]}
    gone = [f"agent {agent!r}" for agent in subject["agents"] if agent not in known]
    gone += [
        f"answers of agent {agent!r}"
        for agent, digest in described["answers"].items()
        if agent not in config.agents and subject.get("answers", {}).get(agent, digest) != digest
    ]
    changed = sum(described["queries"].get(query_id) != digest for query_id, digest in stored.items())
    gone += [_counted(changed)] if changed else []
    judges, used = (subject.get("settings") or {}).get("judges", {}), config.judges_in_use()
    gone += [f"judge {name!r}" for name in judges if name not in used or config.judges[name].stored() != judges[name]]
    gone += _changed_agents(config, (subject.get("settings") or {}).get("agents", ()))
    added = [f"agent {agent!r}" for agent in sorted(described["agents"].difference(subject["agents"]))]
    more = len(described["queries"].keys() - stored.keys())
    added += [f"judge {name!r}" for name in used if name not in judges]
    return gone, added + ([_counted(more)] if more else [])


def _changed_agents(config: Config, stored: Collection[Mapping[str, Any]]) -> list[str]:
    specs = config.agents
    return [
        f"settings of agent {agent['name']!r}"
        for agent in stored
        if agent["name"] in specs and specs[agent["name"]].stored() != agent.get("settings", {})
    ]


def _counted(queries: int) -> str:
    from arena.present.numbers import counted

    return counted(queries, "query", "queries")


def _listed(names: Collection[str]) -> str:
    shown = list(names)[:_NAMED]
    more = len(names) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])
