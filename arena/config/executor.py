"""Where calls are made: in this process, or on a Ray cluster."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from judges.sections import Count, Section, nearest

_RUNTIME_ENV: Final = (
    "pip",
    "uv",
    "conda",
    "working_dir",
    "py_modules",
    "py_executable",
    "excludes",
    "env_vars",
    "image_uri",
    "config",
)
_SECRET: Final = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.IGNORECASE)
_PASSWORD: Final = re.compile(r"://[^/@\s\"]*:[^/@\s\"]+@")


class ExecutorSection(Section):
    """``local`` needs nothing; ``ray`` spreads each judge over worker processes, on one machine or many."""

    kind: Literal["local", "ray"] = "local"
    address: str | None = None
    """``auto``, ``HOST:PORT`` or ``ray://HOST:PORT`` of a running cluster; else what ``RAY_ADDRESS`` says. Without both
    a Ray of its own is started on this machine."""
    workers: Count = 2
    """Processes of each judge. Each makes up to the judge's ``concurrency`` calls at once; limits by the minute and
    ``max_cost_usd`` hold for all of them together."""
    gpus: Annotated[float, Field(ge=0)] = 0
    """For each worker of a local model; may be a fraction."""
    wait_s: Annotated[float, Field(ge=0)] = 300
    """How long workers may wait for machines that an autoscaling cluster starts for them, take to load a model, or be
    back after all of them were lost."""
    runtime_env: dict[str, Any] | None = None
    """What workers need that their machines lack, as Ray takes it: ``pip``, ``working_dir``, ``env_vars`` and others.
    A key of a judge is none of it: Ray writes all of it to logs and shows it on its dashboard."""

    @field_validator("runtime_env")
    @classmethod
    def _without_keys(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        if given is None:
            return given
        for key in given:
            if key not in _RUNTIME_ENV:
                raise ValueError(f"unknown key {key!r}{nearest(key, _RUNTIME_ENV)}")
        variables = given.get("env_vars", {})
        if not isinstance(variables, dict) or {type(part) for pair in variables.items() for part in pair} - {str}:
            raise ValueError("env_vars: names and texts, such as {HF_HOME: /models}; put numbers in quotes")
        for name in variables:
            if _SECRET.search(name):
                raise ValueError(
                    f"env_vars: {name} looks like a key, and Ray shows runtime_env in its logs: set it on the "
                    "machines, from a secret"
                )
        if _PASSWORD.search(json.dumps(given, default=str)):
            raise ValueError("an address in it holds a password, and Ray shows runtime_env in its logs: take it out")
        return given

    @model_validator(mode="after")
    def _belongs_to_ray(self) -> ExecutorSection:
        if self.kind == "local" and (given := self.model_fields_set - {"kind"}):
            raise ValueError(f"{', '.join(sorted(given))}: only for 'kind: ray'")
        return self
