"""A scripted judge that makes nuggets of what it is shown, and tournaments for it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from arena.config.schema import Config
from tests.support.llm_server import Call, Reply, steady_judge
from tests.support.tournaments import configured

SUPPORTED = "all"
"""The fact that every answer is said to state; of any other it states nothing."""


def nugget_judge(call: Call) -> Reply:
    """Keeps the list it is shown and adds a fact for each document; facts of ``z`` are okay, all others vital."""
    task, user = task_of(call), user_of(call)
    if task == "relevance":
        return Reply(json.dumps({"reason": "r", "label": "very relevant"}))
    if task == "nuggets":
        facts = [f"fact of {name}" for name in re.findall(r"as (\w+) tells it", user)]
        return Reply(json.dumps({"nuggets": [*shown_nuggets(call), *facts]}))
    if task == "importance":
        return labels("okay" if text.endswith("z") else "vital" for text in shown_nuggets(call))
    if task == "assignment":
        return labels("support" if text.endswith(SUPPORTED) else "not_support" for text in shown_nuggets(call))
    return steady_judge(call)


def labels(words: Any) -> Reply:
    return Reply(json.dumps({"labels": list(words)}))


def task_of(call: Call) -> str:
    return str(call.body["response_format"]["json_schema"]["name"])


def user_of(call: Call) -> str:
    return next(str(message["content"]) for message in call.body["messages"] if message["role"] == "user")


def shown_nuggets(call: Call) -> list[str]:
    return re.findall(r"^\d+\. (.*)$", user_of(call), re.MULTILINE)


def nugget_tournament(folder: Path, base_url: str | None, **sections: Any) -> Config:
    """A tournament over the tables in ``folder`` that makes nuggets two documents at a time, and nothing else."""
    section = {"judge": "judge", "create": {"window": 2}}
    return configured(folder, base_url, **{"pairwise": None, "criteria": None, "nuggets": section, **sections})
