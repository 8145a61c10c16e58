"""Where a local model comes from, checked before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from judges.errors import InputError, MissingExtraError
from judges.providers.local_model import device_or_error, fingerprint
from judges.spec import JudgeSpec


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A folder or a hub's name for the loader, a name for people, a hash of a folder's files, and the device."""

    source: str
    name: str
    weights: str | None
    device: str


def local_source(spec: JudgeSpec) -> LocalSource:
    """What a declaration with ``path`` or ``model`` means on this machine.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        InputError: the folder is missing or holds no model, or the device is not there.
    """
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("local", f"provider {spec.provider!r}")
    if spec.path is not None and not (spec.path / "config.json").is_file():
        problem = "holds no config.json" if spec.path.is_dir() else "is not a folder"
        raise InputError(f"{spec.path}: {problem}; a model folder is what save_pretrained writes")
    name = spec.model or str(spec.path and spec.path.resolve().name)
    weights = fingerprint(spec.path) if spec.path else None
    return LocalSource(str(spec.path or spec.model), name, weights, device_or_error(spec.device))
