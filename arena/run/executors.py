"""Opens judges in this process or on Ray workers, as the configuration says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec

from arena.config.schema import Config, ExecutorSection
from judges.errors import PROGRESS, InputError, MissingExtraError
from judges.judge import Judge, Stop
from judges.spec import JudgeSpec
from judges.types import CallTrace
from retrieval_eval.data.trec import read_recordings


def open_judges(
    config: Config, stop: Stop, trace: Callable[[CallTrace], None] | None, names: Iterable[str] | None = None
) -> dict[str, Judge]:
    """Open the judges with these names; by default all judges that a stage uses.

    With every executor, limits, retries, parsing and costs stay in this process; only the provider runs elsewhere.

    Raises:
        InputError: a judge cannot be used, or the cluster cannot be reached.
    """
    executor = config.executor
    if executor.kind == "ray" and find_spec("ray") is None:
        raise MissingExtraError("ray", "'executor: {kind: ray}'")
    variables = (executor.runtime_env or {}).get("env_vars", {})
    judges: dict[str, Judge] = {}
    for name in config.judges_in_use() if names is None else names:
        spec = config.judges[name]
        if runs_on_workers(executor, spec):
            for secret in {spec.api_key_env, *spec.headers_env.values()} & variables.keys():
                raise InputError(
                    f"executor.runtime_env: {secret} is the key of judge {name!r}, and Ray shows runtime_env "
                    "in its logs: set it on the machines, from a secret"
                )
            # Ray reads this on import: it stops Ray from printing lines on dead nodes, which ragleague reports itself.
            os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
            from arena.run.ray_workers import RayProvider

            provider = RayProvider(name, spec, executor)
            judges[name] = Judge(name, with_all_workers(executor, spec), provider, stop=stop, trace=trace)
        else:
            judges[name] = Judge(name, spec, read_records=read_recordings, stop=stop, trace=trace)
        if lacking := getattr(judges[name].provider, "lacking", ""):
            PROGRESS.warning("judge %s: %s", name, lacking)
    return judges


def runs_on_workers(executor: ExecutorSection, spec: JudgeSpec) -> bool:
    """Whether Ray workers make a judge's calls; recorded and batched replies are always read in this process."""
    return executor.kind == "ray" and spec.provider != "replay" and not spec.in_batches


def with_all_workers(executor: ExecutorSection, spec: JudgeSpec) -> JudgeSpec:
    """A copy of the judge's spec with the total concurrency of all its Ray workers."""
    if not runs_on_workers(executor, spec):
        return spec
    return spec.model_copy(update={"concurrency": spec.concurrency * executor.workers})
