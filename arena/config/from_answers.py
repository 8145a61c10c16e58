"""The default configuration of a tournament for which the user named files of answers and a judge, but no YAML file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import yaml

from arena.config.schema import Config
from judges.errors import ConfigError, InputError
from judges.sections import nearest, parse_section
from retrieval_eval.data.table_spec import Columns

STORE: Final = "ragleague.db"
"""Path of the default store, in the working directory; all tournaments without a YAML file share its judgments."""
_MAX_NAME: Final = 60
_SLASH_KEYS: Final = {
    "openai": "model",
    "anthropic": "model",
    "transformers": "model",
    "python": "function",
    "replay": "path",
}
"""For each provider, the key for the text after the slash: ``openai/X`` means ``{provider: openai, model: X}``."""


def judge_named(judge: str | Callable[..., Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the declaration of a judge, given a name such as ``openai/gpt-4.1-mini``, a function, or a declaration."""
    if isinstance(judge, Mapping):
        return dict(judge)
    if not isinstance(judge, str):
        return {"provider": "python", "function": judge}
    provider, _, name = judge.partition("/")
    if judge == "lexical":
        return {"provider": "lexical"}
    if provider not in _SLASH_KEYS or not name:
        raise InputError(
            f"--judge {judge!r}: name provider and model, such as openai/gpt-4.1-mini"
            f"{'' if provider in _SLASH_KEYS else nearest(provider, [*_SLASH_KEYS, 'lexical'])}"
        )
    return {"provider": provider, _SLASH_KEYS[provider]: name}


def assumed_content(
    answers: Sequence[Path | str],
    agents: Sequence[str],
    judge: str | Callable[..., Any] | Mapping[str, Any],
    *,
    columns: Columns,
    limit: int | None,
    store: str = STORE,
    folder: Path | None = None,
    asked: Mapping[str, Callable[..., Any] | Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Content of a configuration in which judges compare all pairs of agents in both orders on every query.

    Args:
        answers: files of answers, or patterns such as ``*.jsonl``, relative to the working directory.
        agents: names of the agents in these files; the tournament is named after all agents.
        judge: the judge's name, function or declaration, see ``judge_named``.
        columns: the column in the files for a column name of ragleague, if it differs.
        limit: maximum number of queries; ``None`` for all.
        store: path or URL of the store.
        folder: folder of the YAML file; paths are made relative to it. ``None`` for the working directory.
        asked: agents to ask for answers, by name: functions, or declarations as in the section ``agents``.
    """

    def path(name: Path | str) -> str:
        text = os.fspath(name)
        return text if folder is None or "://" in text or Path(text).is_absolute() else os.path.relpath(text, folder)

    data: dict[str, Any] = {"answers": [path(file) for file in answers]}
    data |= {"columns": dict(columns)} if columns else {}
    data |= {} if limit is None else {"limit": limit}
    declared = judge_named(judge)
    judge_name = Path(str(declared.get("model") or ("judge" if len(declared) > 1 else declared["provider"]))).name
    for key, value in declared.items():
        if key == "path" or (key == "function" and isinstance(value, str) and ".py:" in value):
            declared[key] = path(value)
    asked = asked or {}
    agent_sections = {
        name: {"kind": "python", "function": agent} if callable(agent) else agent for name, agent in asked.items()
    }
    return {
        "name": _name([*agents, *asked]),
        "store": path(store),
        "data": data,
        "judges": {judge_name: declared},
        **({"agents": agent_sections} if agent_sections else {}),
        "pairwise": {"judges": judge_name},
    }


def assumed_yaml(content: Mapping[str, Any]) -> str:
    """The text of a YAML file with this content, see ``assumed_content``."""
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=120)


def assumed(content: Mapping[str, Any]) -> Config:
    """Check the content of ``assumed_content`` and return the configuration, with paths from the working directory."""
    return parse_section(content, "run", Config, ConfigError, folder=Path.cwd())


def _name(agents: Sequence[str]) -> str:
    """Make a tournament name from the agents' names; a long name is cut and ends in a hash."""
    name = "-".join(re.sub(r"[^\w .-]+", "_", agent).strip(" .-") or "_" for agent in agents)
    if len(name) > _MAX_NAME:
        name = f"{name[: _MAX_NAME - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
    return name.strip(" .-") or "answers"
