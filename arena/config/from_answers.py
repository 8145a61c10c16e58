"""The default configuration of a tournament without a YAML file, built from its answers and a judge."""

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
"""The default store of such tournaments, in the working directory; they share its judgments."""
_MAX_NAME: Final = 60
_SLASH_KEYS: Final = {
    "openai": "model",
    "anthropic": "model",
    "transformers": "model",
    "python": "function",
    "replay": "path",
}
"""By provider, the key whose value is the part of a judge's name after the slash; ``lexical`` needs none."""


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
    """The content of a configuration in which all pairs of agents play in both orders on every query.

    Args:
        answers: files of answers or patterns, relative to the working directory.
        agents: agents in these files; the tournament is named after the agents.
        judge: the judge's name, function or declaration, see ``judge_named``.
        columns: the name in the files for each column that ragleague reads.
        limit: maximum number of queries, if any.
        store: path or URL of the store.
        folder: folder of the file to be saved, to which paths become relative; by default the working directory.
        asked: agents that the tournament asks: functions, or declarations as in the section ``agents``.
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
    """``assumed_content`` as the text of a YAML file."""
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=120)


def assumed(content: Mapping[str, Any]) -> Config:
    """``assumed_content`` as a checked configuration, with paths relative to the working directory."""
    return parse_section(content, "run", Config, ConfigError, folder=Path.cwd())


def _name(agents: Sequence[str]) -> str:
    """A valid tournament name from the agents' names, shortened with a hash if it is too long."""
    name = "-".join(re.sub(r"[^\w .-]+", "_", agent).strip(" .-") or "_" for agent in agents)
    if len(name) > _MAX_NAME:
        name = f"{name[: _MAX_NAME - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
    return name.strip(" .-") or "answers"
