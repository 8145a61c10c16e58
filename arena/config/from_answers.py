"""A tournament without a YAML file: what is assumed of it, as the YAML file that would say the same."""

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
from retrieval_eval.data.vocabulary import Columns

STORE: Final = "ragleague.db"
"""Where such tournaments are kept, in the working directory: judgments that they share are made once."""
_LONGEST: Final = 60
_JUDGES: Final = {
    "openai": "model",
    "anthropic": "model",
    "transformers": "model",
    "python": "function",
    "replay": "path",
}
"""For each kind of judge what is named behind its slash; ``lexical`` needs nothing."""


def judge_named(named: str | Callable[..., Any] | Mapping[str, Any]) -> dict[str, Any]:
    """The declaration of a judge that is named as ``openai/gpt-4.1-mini``, is a function, or is declared as in a file.

    Raises:
        InputError: it is not named so.
    """
    if isinstance(named, Mapping):
        return dict(named)
    if not isinstance(named, str):
        return {"provider": "python", "function": named}
    provider, _, name = named.partition("/")
    if named == "lexical":
        return {"provider": "lexical"}
    if provider not in _JUDGES or not name:
        raise InputError(
            f"--judge {named!r}: name provider and model, such as openai/gpt-4.1-mini"
            f"{'' if provider in _JUDGES else nearest(provider, [*_JUDGES, 'lexical'])}"
        )
    return {"provider": provider, _JUDGES[provider]: name}


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
    """What a configuration says of games between all agents, each pair in both orders on every query.

    Args:
        answers: files of answers or patterns, as the working directory has them.
        agents: whose answers are in them; they name the tournament.
        judge: see ``judge_named``.
        columns: for a name of ours the column of the files.
        limit: of the queries, if any.
        store: where results are kept.
        folder: where it is to be saved, so that its paths start there; ``None``: in the working directory.
        asked: agents that answer when they are asked: functions, or what would stand under ``agents``.

    Raises:
        InputError: the judge is not named as judges are.
    """

    def path(name: Path | str) -> str:
        own = os.fspath(name)
        return own if folder is None or "://" in own or Path(own).is_absolute() else os.path.relpath(own, folder)

    data: dict[str, Any] = {"answers": [path(file) for file in answers]}
    data |= {"columns": dict(columns)} if columns else {}
    data |= {} if limit is None else {"limit": limit}
    declared = judge_named(judge)
    called = Path(str(declared.get("model") or ("judge" if len(declared) > 1 else declared["provider"]))).name
    for key, named in declared.items():
        if key == "path" or (key == "function" and isinstance(named, str) and ".py:" in named):
            declared[key] = path(named)
    asked = asked or {}
    own = {name: {"kind": "python", "function": each} if callable(each) else each for name, each in asked.items()}
    return {
        "name": _name([*agents, *asked]),
        "store": path(store),
        "data": data,
        "judges": {called: declared},
        **({"agents": own} if own else {}),
        "pairwise": {"judges": called},
    }


def assumed_yaml(content: Mapping[str, Any]) -> str:
    """The YAML file that says the same as ``assumed_content``."""
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=120)


def assumed(content: Mapping[str, Any]) -> Config:
    """The configuration that ``assumed_content`` of the working directory says."""
    return parse_section(content, "run", Config, ConfigError, folder=Path.cwd())


def _name(agents: Sequence[str]) -> str:
    """The agents' names, as far as a tournament may be called so, cut where they are many."""
    whole = "-".join(re.sub(r"[^\w .-]+", "_", agent).strip(" .-") or "_" for agent in agents)
    if len(whole) > _LONGEST:
        whole = f"{whole[: _LONGEST - 9]}-{sha256(whole.encode()).hexdigest()[:8]}"
    return whole.strip(" .-") or "answers"
