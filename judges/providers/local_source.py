"""Where a local model comes from, checked before anything is loaded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from judges.errors import InputError, MissingExtraError
from judges.progress import PROGRESS
from judges.providers.texts import one_line
from judges.spec import JudgeSpec

_SAMPLES, _SAMPLE_BYTES = 64, 65536


@dataclass(frozen=True, slots=True)
class LocalSource:
    """Where a model comes from.

    Attributes:
        source: a folder or a hub's name, for the loader.
        name: for people.
        weights: a hash of a folder's files.
        device: that holds the model, or in words those that share it.
        note: what of the declaration is not heeded; empty where all of it is.
    """

    source: str
    name: str
    weights: str | None
    device: str
    note: str

    def say_it_loads(self) -> None:
        """Tell whoever waits that the model is loaded now."""
        PROGRESS.info("loading model %s on %s ...%s", self.name, self.device, self.note and f" ({self.note})")


def local_source(spec: JudgeSpec) -> LocalSource:
    """What a declaration with ``path`` or ``model`` means on this machine.

    Raises:
        MissingExtraError: torch or transformers is not installed, or accelerate where ``device_map`` needs it.
        InputError: the folder is missing or holds no model, or the device is not there.
    """
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("local", f"provider {spec.provider!r}")
    if spec.device_map is not None and find_spec("accelerate") is None:
        raise MissingExtraError("local", "'device_map' (by accelerate)")
    if spec.path is not None and not (spec.path / "config.json").is_file():
        problem = "holds no config.json" if spec.path.is_dir() else "is not a folder"
        raise InputError(f"{spec.path}: {problem}; a model folder is what save_pretrained writes")
    name = spec.model or str(spec.path and spec.path.resolve().name)
    weights = _fingerprint(spec.path) if spec.path else None
    device = _device_or_error(spec.device) if spec.device_map is None else f"the devices of {spec.device_map!r}"
    return LocalSource(str(spec.path or spec.model), name, weights, device, spec.unheeded)


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
