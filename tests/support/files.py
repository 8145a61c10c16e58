"""Files that tests write."""

from __future__ import annotations

import gzip
import json
from pathlib import Path


def put(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file; a text is packed if the name ends in ``.gz``."""
    path = folder / name
    if isinstance(content, str):
        content = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    path.write_bytes(content)
    return path


def lines(folder: Path, name: str, *records: object) -> Path:
    """Write one line for each record: a text as it is, anything else as JSON."""
    texts = (record if isinstance(record, str) else json.dumps(record) for record in records)
    return put(folder, name, "".join(f"{text}\n" for text in texts))
