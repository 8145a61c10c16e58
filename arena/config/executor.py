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
    """``local``: this process; ``ray``: workers on a Ray cluster."""
    address: str | None = None
    """``auto``, ``HOST:PORT`` or ``ray://HOST:PORT`` of a running cluster; else ``RAY_ADDRESS``; without both, the run
    starts a Ray of its own."""
    workers: Count = 2
    """Processes of each judge, each with the judge's ``concurrency``."""
    gpus: Annotated[float, Field(ge=0)] = 0
    """For each worker of a local model; may be a fraction."""
    wait_s: Annotated[float, Field(ge=0)] = 300
    """Seconds to wait for machines of an autoscaling cluster, or for a model to load."""
    runtime_env: dict[str, Any] | None = None
    """What Ray brings to the workers: ``pip``, ``working_dir``, ``env_vars`` and others; a key in it is refused."""

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
