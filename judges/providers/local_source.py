"""Where a local model comes from, checked before anything is loaded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from judges.errors import InputError, MissingExtraError
from judges.providers.texts import one_line
from judges.spec import JudgeSpec

_SAMPLES, _SAMPLE_BYTES = 64, 65536


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
    weights = _fingerprint(spec.path) if spec.path else None
    return LocalSource(str(spec.path or spec.model), name, weights, _device_or_error(spec.device))


def _device_or_error(wanted: str | None) -> str:
    """The device to use: the one wanted, else an accelerator if there is one, else the CPU.

    Raises:
        InputError: the device is not there.
    """
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if wanted is None:
        return accelerator.type if accelerator else "cpu"
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {wanted!r} cannot be used: {one_line(str(error))}") from error
    return wanted


def _fingerprint(folder: Path) -> str:
    """Tells the models of two folders apart without reading gigabytes: a hash over all files, large ones in samples."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        size = path.stat().st_size
        total.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as raw:
            step = max(size // _SAMPLES, _SAMPLE_BYTES)
            for start in range(0, size, step):
                raw.seek(start)
                total.update(raw.read(_SAMPLE_BYTES))
    return total.hexdigest()[:16]
