"""Vectors that are kept in a file, so that none is paid for twice."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judges.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Kept:
    """A vector, and of a query's what it took to make: seconds, calls, tokens and dollars."""

    vector: NDArray[np.float32]
    took: Mapping[str, Any] | None = None


class VectorCache:
    """One file per embedder, a JSON line per text; kept in memory only where there is no folder.

    Lines are appended whole, so several processes may write, and a line that a crash cut short is passed over.
    """

    def __init__(self, folder: Path | None, identity: Mapping[str, str | int | None]) -> None:
        """Read what is there.

        Raises:
            InputError: the file cannot be read.
        """
        digest = hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()[:16]
        self._path = None if folder is None else folder / f"embeddings-{digest}.jsonl"
        self._kept: dict[str, Kept] = {}
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                for line in file:
                    if (entry := _entry(line)) is not None:
                        self._kept[entry[0]] = entry[1]
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error

    def find(self, text: str) -> Kept | None:
        """What is kept of a text."""
        return self._kept.get(_key(text))

    def keep(self, found: Mapping[str, Kept]) -> None:
        """Keep vectors by their texts.

        Raises:
            InputError: the file cannot be written.
        """
        entries = {_key(text): kept for text, kept in found.items()}
        self._kept |= entries
        if self._path is None:
            return
        lines = b"".join(_line(key, kept) for key, kept in entries.items())
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab", buffering=0) as file:
                file.write(b"\n" + lines)  # ends what a crash may have left
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror}") from error


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _line(key: str, kept: Kept) -> bytes:
    vector = base64.b64encode(kept.vector.astype("<f4").tobytes()).decode()
    took = {} if kept.took is None else {"took": dict(kept.took)}
    return json.dumps({"key": key, "vector": vector, **took}).encode() + b"\n"


def _entry(line: bytes) -> tuple[str, Kept] | None:
    import numpy as np

    try:
        entry = json.loads(line)
        vector = np.frombuffer(base64.b64decode(entry["vector"], validate=True), dtype="<f4").astype(np.float32)
        return str(entry["key"]), Kept(vector, entry.get("took"))
    except (ValueError, LookupError, TypeError, binascii.Error):
        return None
